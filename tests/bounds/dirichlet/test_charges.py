"""First tries that are charged: zero on average, tables against the plain definition, bounds against exact values."""

from itertools import product

import numpy as np
import pytest

from beliefbound.beliefs import DirichletBelief, KnownRewards
from beliefbound.bounds.dirichlet.chains import Chain
from beliefbound.bounds.dirichlet.charges import _mean_rows, charged_order, chosen_memory, most_paid_back, with_pair
from beliefbound.bounds.dirichlet.effort import Effort
from beliefbound.bounds.dirichlet.fresh_models import FreshModels
from beliefbound.bounds.dirichlet.prepared import above_of
from beliefbound.bounds.dirichlet.sampler import Sampler
from beliefbound.kernels.particles.memory import memory_of
from beliefbound.kernels.particles.opened import everything_open, n_tables, order_of
from beliefbound.lab.envs.benchmark import belief_of
from beliefbound.planning.task import Task
from support import oracles

DISCOUNT = 0.4


def two_states(kind):
    """Two actions in each of two states: alike in both, in one, or nowhere."""
    concentration = np.array([[[1.0, 0.5], [1.0, 0.5]], [[0.5, 1.0], [0.5, 1.0]]])
    concentration[1, 1, 0] += kind >= 1
    concentration[0, 1, 1] += kind >= 2
    paid = np.array([[[0.1, 1.0]] * 2, [[0.6, 0.0]] * 2])
    belief = DirichletBelief(2, 2, concentration=concentration, rewards=KnownRewards(paid), initial=0)
    return Task.of(belief, discount=DISCOUNT)


def charged_at_random(problem, size):
    """Every pair that is alike to none is opened, too; charges are of no use to anybody."""
    order = order_of(problem)
    for pair in np.flatnonzero(order.most == 0):
        order = with_pair(order, int(pair))
    charge = np.random.default_rng(4).normal(size=(n_tables(order), 4, 2)) * size
    return order._replace(charge=charge, mean=(charge * _mean_rows(problem)[:, :2]).sum(axis=2))


def by_definition(p, r, order):
    """`Q[o,pair]` by sweeps over states and what is opened."""
    classes = sorted({(int(order.stride[x]), int(order.most[x])) for x in range(4) if order.most[x] > 0})
    v, q = np.zeros((n_tables(order), 2)), np.full((n_tables(order), 4), -np.inf)
    for _ in range(100):
        for opened in product(*(range(most + 1) for _, most in classes)):
            o = sum(d * stride for d, (stride, _) in zip(opened, classes, strict=True))
            for x in range(4):
                d = o // order.stride[x] % (order.most[x] + 1)
                new = order.place[x] == d < order.most[x]
                if order.place[x] <= d:
                    after = p[x] @ v[o + order.adds[x]] if new else p[x] @ v[o]
                    q[o, x] = r[x] + DISCOUNT * after - new * (order.charge[o, x] @ p[x] - order.mean[o, x])
        v = q.reshape(-1, 2, 2).max(axis=2)
    return q


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_tables_are_those_of_the_definition(kind):
    task = two_states(kind)
    problem = above_of(task).problem
    order = charged_at_random(problem, 0.3)
    assert n_tables(order) == (4, 8, 16)[kind]
    chain = Chain(task, problem, 3, 1, Effort((), 16, 50, 1), memory_of(problem, order))
    drop = chain.run(0)
    draws = chain.rows.draws[chain.search.slots[0]]
    for m in range(16):
        expected = by_definition(draws[:, :2, m], draws[:, 2, m], order)
        found = chain.search.q[0, 0].reshape(chain.tables, 4, 16)[:, :, m]
        known = expected > -np.inf
        assert found[known] == pytest.approx(expected[known], abs=1e-9)
        assert (found[known] >= expected[known] - 1e-14).all()
    assert min(drop.ordered) >= -most_paid_back(problem, chain.memory)


def test_losses_are_never_negative_whatever_is_charged():
    task = two_states(2)
    problem = above_of(task).problem
    chain = Chain(task, problem, 3, 1, Effort((), 32, 200, 1), memory_of(problem, charged_at_random(problem, 3.0)))
    for i in range(20):
        assert chain.run(i).value >= 0.0
        nodes = int(chain.search.size[0])
        assert (chain.search.loss[:nodes] >= 0.0).all()


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("size", [0.2, 2.0])
def test_bounds_are_not_below_the_exact_value_whatever_is_charged(kind, size):
    """Every history of six steps, at a discount that leaves .004 of the value after them."""
    task = two_states(kind)
    problem = above_of(task).problem
    exact = oracles.dirichlet_value(task.belief, 0, DISCOUNT, 6)
    chain = Chain(task, problem, 5, 1, Effort((), 128, 400, 1), memory_of(problem, charged_at_random(problem, size)))
    models = FreshModels(task, above_of(task), (5, 2))
    models.sample(200, [models.scratch()])
    known, drops = np.concatenate(models.values), np.array([chain.run(i).whole for i in range(400)])
    error = np.hypot(known.std() / len(known) ** 0.5, drops.std() / len(drops) ** 0.5)
    assert known.mean() - drops.mean() >= exact - 4.5 * error


@pytest.mark.full
def test_what_is_chosen_lowers_bounds_of_grids_and_chains():
    """Rows near the goal of the grid, which no search reaches soon; drops of the same sets, charged and not."""
    for kind, least in (("grid", 0.1), ("chain", -0.1)):  # of a chain less, but at a lower price
        task = Task.of(belief_of(kind), discount=0.95)
        problem, order = above_of(task).problem, charged_order(task)
        assert order.charge.size > 0
        assert n_tables(order) == (16 if kind == "grid" else 243)
        memories = None, memory_of(problem, order)
        free, charged = (Chain(task, problem, 3, 1, Effort((), 512, 4096, 1), each) for each in memories)
        gained = np.array([charged.run(i).whole - free.run(i).whole for i in range(24)])
        assert gained.mean() - 2.0 * gained.std() / len(gained) ** 0.5 > least


def test_nothing_is_charged_with_a_horizon_or_where_nothing_can_be_learnt():
    certain = DirichletBelief(2, 1, concentration=np.eye(2)[:, None, ::-1], rewards=KnownRewards(np.eye(2)[:, :1]))
    for task in (Task.of(certain, discount=0.9), Task.of(belief_of("chain"), discount=0.95, horizon=10)):
        order = charged_order(task)
        assert order.charge.size == 0
        assert n_tables(order) == 1
        assert most_paid_back(above_of(task).problem, chosen_memory(task)) == 0.0
    assert n_tables(everything_open(4)) == 1


def test_a_sample_allows_for_what_is_paid_back():
    """The interval of what order and charges take is that of samples which may be negative."""
    sampler = Sampler(Task.of(belief_of("chain"), discount=0.95), 3, 1)
    sampler.effort = Effort((), 128, 256, 1)
    sampler.relax(30)
    assert 0.0 < sampler.drop(0.01) < sampler.mean_drop
    back = sampler.problem.unit * most_paid_back(sampler.problem, sampler.memory)
    assert 1.0 < back < 200.0
    sampler.drops, sampler.ordered = [0.0] * 30, [-0.5 * back, -0.9 * back] * 400
    assert sampler.drop(0.01) < sampler.mean_drop == pytest.approx(-0.7 * back)
