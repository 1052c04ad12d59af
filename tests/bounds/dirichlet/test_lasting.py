"""Chains of one large set: chosen where it outlives the search, with weights that are kept or found again."""

import numpy as np
import pytest

from beliefbound.beliefs import DirichletBelief, KnownRewards
from beliefbound.bounds.dirichlet import chains
from beliefbound.bounds.dirichlet.chains import Chain, lasting
from beliefbound.bounds.dirichlet.effort import Effort, effort
from beliefbound.bounds.dirichlet.prepared import above_of
from beliefbound.bounds.dirichlet.sampler import Sampler
from beliefbound.kernels.particles.renewal import _NORMALISED, weigh
from beliefbound.lab.envs.benchmark import belief_of
from beliefbound.planning.task import Task


def chain_of(task, kept, n=64, nodes=2000):
    chain = Chain(task, above_of(task).problem, 3, 1, Effort((), n, nodes, 1))
    assert len(chain.search.weight) == kept
    return chain


@pytest.mark.parametrize("learnt", [False, True])
def test_weights_that_are_not_kept_are_found_again(learnt, monkeypatch):
    """The same drops, and at every node the likelihood of its counts, particle by particle."""
    task = Task.of(DirichletBelief(3, 3, concentration=1.0, initial=0) if learnt else belief_of("chain"), discount=0.95)
    whole = chain_of(task, 2000)
    monkeypatch.setattr(chains, "_KEPT", 0.0)
    part = chain_of(task, 50)
    for i in range(3):
        assert part.run(i).value == pytest.approx(whole.run(i).value, rel=1e-9)
    search, posterior = part.search, above_of(task).problem.posterior
    nodes, columns = int(search.size[0]), search.counts.shape[1]
    assert nodes > 61
    problem = above_of(task).problem
    deepest = int(search.node["stage"][:nodes].argmax())
    for x in (1, 49, 50, 60, deepest, nodes - 1):
        likely, at, steps = np.ones(64), x, 0
        while search.node[at]["parent"] >= 0:
            parent, row = int(search.node[at]["parent"]), int(search.node[at]["row"])
            pair = int(search.node[parent]["state"]) * posterior.n_actions + row // columns
            draws = part.rows.draws[search.slots[0, pair]]
            k, t = divmod(row % columns, posterior.alpha.shape[1])
            likely *= draws[t] * (draws[problem.n_states + 1 + k] if learnt else 1.0)
            at, steps = parent, steps + (at >= 50)
        assert x != deepest or learnt or steps > _NORMALISED
        assert weigh(problem, search, part.rows.draws, x) == pytest.approx(likely / likely.sum(), rel=1e-9)


def test_actions_that_are_needless_are_not_looked_at():
    """Three fresh arms of a chain: at the start only the first has outcomes."""
    chain = chain_of(Task.of(belief_of("chain"), discount=0.95), 2000)
    chain.run(0)
    assert (chain.search.prob[0].reshape(3, -1).sum(axis=1) > 0.0).tolist() == [True, False, False]


def test_sets_last_where_searches_on_them_do_not_end():
    """On the benchmarks' chain and grid; not where one observation nearly tells the model, nor with a horizon."""
    chain, grid = (Task.of(belief_of(kind), discount=0.95) for kind in ("chain", "grid"))
    assert lasting(chain)
    assert lasting(grid)
    assert not lasting(Task.of(belief_of("chain"), discount=0.95, horizon=10))
    assert not lasting(Task.of(DirichletBelief(5, 2, initial=0), discount=0.95))
    paid = KnownRewards(np.random.default_rng(1).random((6, 2)))
    concentration = np.zeros((6, 2, 6))
    for s in range(6):
        concentration[s, 0, [s, (s + 1) % 6]] = concentration[s, 1, [s, (s + 2) % 6]] = 1.0
    apart = Task.of(DirichletBelief(6, 2, concentration=concentration, rewards=paid, initial=0), discount=0.95)
    assert not lasting(apart)  # its actions pay differently enough for searches to end at once
    assert [effort(above_of(chain).problem, 2, 1, 59, lasting=x).sets for x in (True, False)] == [1, 8192]


def test_a_larger_set_with_more_histories_proves_more_on_a_chain_prior():
    """Drops of 32 chains of one set against the renewed ones before, far beyond their standard errors."""
    task, found = Task.of(belief_of("chain"), discount=0.95), {}
    for sizes in (Effort((), 128, 2048, 1000), Effort((), 512, 4096, 1, 4096)):
        sampler = Sampler(task, 3, 1)
        sampler.effort = sizes
        sampler.relax(62 if sizes.sets > 1 else 32)
        assert min(sampler.drops) >= 0.0
        found[sizes.sets] = sampler.mean_drop, np.std(sampler.drops) / len(sampler.drops) ** 0.5
    assert found[1][0] - found[1000][0] > 2.0
    assert found[1][1] < 1.0


def test_chains_of_one_set_are_the_same_on_any_number_of_threads():
    task = Task.of(belief_of("double-loop"), discount=0.95)
    found = []
    for threads in (1, 2, 3):
        sampler = Sampler(task, 3, threads)
        sampler.effort = Effort((), 64, 512, 1)
        sampler.relax(14)
        found.append(sampler.drops)
    assert found[0] == found[1] == found[2]
