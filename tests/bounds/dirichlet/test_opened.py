"""Somebody who is told the model and opens alike actions in order: tables against the plain definition, and bounds."""

from itertools import product

import numpy as np
import pytest

from beliefbound.beliefs import DirichletBelief, KnownRewards
from beliefbound.bounds.dirichlet.chains import Chain, Drop
from beliefbound.bounds.dirichlet.effort import Effort, effort
from beliefbound.bounds.dirichlet.fresh_models import FreshModels
from beliefbound.bounds.dirichlet.prepared import above_of
from beliefbound.bounds.dirichlet.sampler import Sampler
from beliefbound.kernels.particles.memory import memory_of
from beliefbound.kernels.particles.opened import everything_open, n_tables, order_of, solve_in_order
from beliefbound.kernels.particles.renewal import begin
from beliefbound.kernels.particles.solving import models_in, optimal
from beliefbound.lab.envs.benchmark import belief_of
from beliefbound.planning.task import Task
from support import oracles


def task_of(belief, discount=0.95, horizon=None):
    return Task.of(belief, discount=discount, horizon=horizon)


def order(belief, **knobs):
    return order_of(above_of(task_of(belief, **knobs)).problem)


def arms(n=3, kind=0, discount=0.4):
    """Two states, in both of which all actions are alike, or but the last in the second."""
    concentration = np.array([[[1.0, 0.5]] * n, [[0.5, 1.0]] * n])
    paid = np.array([[[0.1, 1.0]] * n, [[0.6, 0.0]] * n])
    if kind:
        concentration[1, -1] = 2.0
    belief = DirichletBelief(2, n, concentration=concentration, rewards=KnownRewards(paid), initial=0)
    return task_of(belief, discount)


def by_definition(p, r, order, discount):
    """`Q[o,pair]` by sweeps over states and what is opened, `o` the number of each class."""
    pairs, n_states = p.shape
    n_actions = pairs // n_states
    classes = sorted({(int(order.stride[x]), int(order.most[x])) for x in range(pairs) if order.most[x] > 0})
    tables = n_tables(order)
    v, q = np.zeros((tables, n_states)), np.full((tables, pairs), -np.inf)
    for _ in range(200):
        for opened in product(*(range(most + 1) for _, most in classes)):
            o = sum(d * stride for d, (stride, _) in zip(opened, classes, strict=True))
            for x in range(pairs):
                d = o // order.stride[x] % (order.most[x] + 1)
                if order.place[x] <= d:
                    new = order.place[x] == d < order.most[x]
                    q[o, x] = r[x] + discount * p[x] @ v[o + (order.stride[x] if new else 0)]
        v = q.reshape(tables, n_states, n_actions).max(axis=2)
    return q


def tables_of(chain):
    """`[table,pair,m]`."""
    return chain.search.q[0, 0].reshape(chain.tables, -1, chain.n)


def test_classes_in_which_something_is_to_be_found_out_are_ordered():
    """All three of each state of the chain; of the double loop those of four states; of a grid none are alike."""
    assert [n_tables(order(belief_of(kind))) for kind in ("chain", "double-loop", "grid")] == [243, 16, 1]
    found = order(belief_of("chain"))
    assert found.place.tolist() == [0, 1, 2] * 5
    assert found.adds[:6].tolist() == [1, 1, 0, 3, 3, 0]
    assert n_tables(order(belief_of("chain"), horizon=10)) == 1
    assert n_tables(order(DirichletBelief(9, 2, initial=0))) == 1  # 512 are too many
    assert n_tables(order(DirichletBelief(8, 2, initial=0))) == 256


@pytest.mark.parametrize("kind", [0, 1])
def test_tables_are_those_of_the_definition(kind):
    task = arms(3, kind)
    problem = above_of(task).problem
    chain = Chain(task, problem, 3, 1, Effort((), 20, 50, 1))
    assert chain.tables == (9 if kind == 0 else 6)
    chain.run(0)
    draws = chain.rows.draws[chain.search.slots[0]]
    for m in range(20):
        expected = by_definition(draws[:, :2, m], draws[:, 2, m], chain.memory.order, 0.4)
        known, found = expected > -np.inf, tables_of(chain)[:, :, m]
        assert found[known] == pytest.approx(expected[known], abs=1e-9)
        assert (found >= expected - 1e-14).all()
        best = expected.reshape(len(expected), 2, -1).max(axis=2)
        assert found.reshape(len(found), 2, -1).max(axis=2) == pytest.approx(best, abs=1e-9)


def test_the_last_table_is_that_of_somebody_who_may_take_everything():
    """And the only one where nothing is ordered, bit for bit, in several batches of models."""
    task = arms(2)
    problem = above_of(task).problem
    chain = Chain(task, problem, 3, 1, Effort((), 300, 50, 1))
    chain.run(0)
    draws, slots = chain.rows.draws, chain.search.slots[0]
    q, one = np.empty((1, 4, 300)), np.empty((1, 4, 300))
    optimal(0.4, draws, slots, -1, np.zeros((2, 300), np.int64), q)
    memory, models = memory_of(problem, everything_open(4)), models_in(draws, slots, np.zeros((2, 300), np.int64), one)
    solve_in_order(0.4, memory, models, np.empty((0, 300)), False)
    assert (one == q).all()
    assert tables_of(chain)[-1] == pytest.approx(q[0], abs=1e-12)
    assert (np.diff(tables_of(chain).reshape(4, 2, 2, 300).max(axis=2)[[0, 1, 3]], axis=0) >= -1e-12).all()


def test_a_history_has_the_table_of_what_was_tried():
    chain = Chain(
        task_of(belief_of("chain")), above_of(task_of(belief_of("chain"))).problem, 3, 1, Effort((), 64, 500, 1)
    )
    chain.run(0)
    search = chain.search
    for x in range(int(search.size[0])):
        tried, at = set(), x
        while search.node[at]["parent"] >= 0:
            parent, row = int(search.node[at]["parent"]), int(search.node[at]["row"])
            tried.add(3 * int(search.node[parent]["state"]) + row // search.counts.shape[1])
            at = parent
        opened = [min(2, sum(pair // 3 == s for pair in tried)) for s in range(5)]
        assert search.node[x]["place"] == 5 * sum(d * 3**s for s, d in enumerate(opened)) + search.node[x]["state"]


def bound(task, *, ordered):
    """`E max` minus what chains drop: mean and standard error."""
    problem = above_of(task).problem
    memory = None if ordered else memory_of(problem, everything_open(len(problem.available)))
    chain = Chain(task, problem, 5, 1, Effort((), 32, 400, 1), memory)
    models = FreshModels(task, above_of(task), (5, 2))
    models.sample(200, [models.scratch()])
    known, drops = np.concatenate(models.values), np.array([chain.run(i).whole for i in range(300)])
    return known.mean() - drops.mean(), np.hypot(known.std() / len(known) ** 0.5, drops.std() / len(drops) ** 0.5)


@pytest.mark.parametrize("kind", [0, 1])
def test_bounds_are_not_below_the_exact_value_and_not_above_those_of_somebody_who_is_told_more(kind):
    """Every history of six steps, at a discount that leaves .004 of the value after them."""
    task = arms(2, kind)
    exact = oracles.dirichlet_value(task.belief, 0, 0.4, 6)
    (found, error), (other, _) = (bound(task, ordered=x) for x in (True, False))
    assert found >= exact - 4.5 * error
    assert found <= other + 0.01
    assert found - exact < 0.1


def test_what_is_lost_by_order_and_by_the_search_are_added():
    task = task_of(belief_of("double-loop"))
    problem = above_of(task).problem
    chain = Chain(task, problem, 3, 1, Effort((), 64, 512, 1))
    drop = chain.run(1)
    assert len(drop.ordered) == 1
    assert min(drop.ordered) >= 0.0
    assert drop.whole == pytest.approx(drop.value + np.mean(drop.ordered))
    assert Drop(2.0, 1.0).whole == 2.0
    best = tables_of(chain).reshape(16, 9, 2, 64).max(axis=2)[:, 0].mean(axis=1)
    assert np.mean(drop.ordered) == pytest.approx(problem.unit * (best[-1] - best[0]), rel=1e-9)
    begin(problem, chain.search, chain.rows.draws, chain.states)
    assert drop.whole >= problem.unit * (best[-1] - chain.search.node["upper"][0]) - 1e-9


def test_samples_are_the_same_on_any_number_of_threads():
    found = []
    for threads in (1, 2):
        sampler = Sampler(task_of(belief_of("double-loop")), 3, threads)
        sampler.effort = Effort((), 256, 512, 1)
        sampler.relax(56)
        found.append((sampler.drops, sampler.ordered, sampler.drop(0.01), sampler.mean_drop))
    assert found[0] == found[1]
    assert 0.0 < found[0][2] < found[0][3]
    whole = 56 // len(sampler.kinds_of_chains) * len(sampler.kinds_of_chains)
    assert found[0][3] == pytest.approx(np.mean(found[0][0][:whole]) + np.mean(found[0][1]))


def test_sets_with_several_tables_are_small_or_the_largest():
    """The largest as soon as a few rounds of it are afforded, with no more histories than any chain has."""
    problem = above_of(task_of(belief_of("chain"))).problem
    sizes = [effort(problem, stage, 1, 59, lasting=True, tables=243).of("upper") for stage in range(2, 6)]
    assert sizes[0] == (1024, 32768, 1, 593)
    assert sizes[1] == sizes[2] == sizes[3]
    assert sizes[1][:3] == (8192, 65536, 1)


def test_order_lowers_the_bound_of_a_chain_prior():
    """Drops of a few chains with the same particles, far beyond their standard errors."""
    task, found = task_of(belief_of("chain")), {}
    problem = above_of(task).problem
    for ordered, memory in ((True, None), (False, memory_of(problem, everything_open(15)))):
        chain = Chain(task, problem, 3, 1, Effort((), 512, 4096, 1), memory)
        drops = [chain.run(i).whole for i in range(24)]
        found[ordered] = np.mean(drops), np.std(drops) / len(drops) ** 0.5
    assert found[True][0] - found[False][0] > 1.5
    assert found[True][1] < 0.5
