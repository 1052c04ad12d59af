"""Somebody who learns on first visits of new ground: places, charges that are fair, values, bounds."""

import numpy as np
import pytest

import beliefbound as bb
from beliefbound.base.errors import ParameterError
from beliefbound.beliefs import DirichletBelief, KnownRewards
from beliefbound.bounds.dirichlet.chains import Chain
from beliefbound.bounds.dirichlet.charges import chosen_memory, most_paid_back
from beliefbound.bounds.dirichlet.effort import Effort
from beliefbound.bounds.dirichlet.fresh_models import FreshModels
from beliefbound.bounds.dirichlet.prepared import above_of
from beliefbound.bounds.dirichlet.sampler import Sampler
from beliefbound.kernels.particles.memory import MOST_PLACES, with_first_visits
from beliefbound.lab.envs.benchmark import belief_of
from beliefbound.planning.task import Task
from support import oracles

DISCOUNT = 0.4


def ladder(n=4, branches=False):
    """Two actions lead on from state to state, or stay; the last state leads back. With `branches` the second action
    of the first state leads past the next one, on the same level."""
    concentration, rewards = np.zeros((n, 2, n)), np.zeros((n, 2, n))
    for s in range(n - 1):
        concentration[s, :, s], concentration[s, 0, s + 1], concentration[s, 1, s + 1] = 1.0, 0.7, 1.5
    if branches:
        concentration[0, 1], concentration[1] = 0.0, 0.0
        concentration[0, 1, [0, 2]] = 1.0
        concentration[1, :, 1], concentration[1, :, 3], concentration[1, 1, 0] = 1.0, 0.8, 0.5
        concentration[2] = 0.0
        concentration[2, :, 2], concentration[2, :, 3], concentration[2, 0, 1] = 1.0, 1.2, 0.4
    concentration[n - 1, :, 0], concentration[n - 1, 0, n - 1] = 1.0, 0.5
    rewards[n - 1, :, 0], rewards[0, 0, 0] = 1.0, 0.1
    return DirichletBelief(n, 2, concentration=concentration, rewards=KnownRewards(rewards), initial=0)


def memory_for(task, followed=4, crossings=1, charges=1.0):
    problem = above_of(task).problem
    likely = np.ones(len(problem.available), dtype=bool)
    memory = with_first_visits(problem, task.start > 0.0, likely, followed, crossings)
    rng = np.random.default_rng(8)
    charge = np.where(memory.follows >= 0, rng.normal(size=memory.follows.shape), 0.0) * charges
    charge[: memory.free] = 0.0
    mean = np.zeros(charge.shape[:2])
    mean[memory.free :] = (charge[memory.free :] * memory.expected).sum(axis=2)
    learns = (memory.expected > 0.0).any(axis=(1, 2))
    charge[memory.free :][~learns] = 0.0
    return memory._replace(charge=charge, mean=mean)


@pytest.mark.parametrize("kind", ["grid", "ladder", "branches", "double-loop"])
@pytest.mark.parametrize("crossings", [0, 1, 2])
def test_what_is_charged_for_is_what_the_history_expects(kind, crossings):
    """Along random histories: a place knows its state, and where it charges for a row, what it takes for its mean is
    the posterior mean after all that was seen of it."""
    belief = belief_of(kind) if kind in ("grid", "double-loop") else ladder(branches=kind == "branches")
    task = Task.of(belief, discount=0.9)
    problem = above_of(task).problem
    n_states, n_actions = problem.n_states, problem.posterior.n_actions
    likely = np.arange(len(problem.available)) % 3 > 0
    memory = with_first_visits(problem, task.start > 0.0, likely, 4, crossings)
    alpha, rng, kinds = problem.posterior.alpha.reshape(n_states, n_actions, n_states), np.random.default_rng(3), set()
    for _ in range(300):
        s, counts = 0, np.zeros(alpha.shape)
        place = int(memory.begins[s])
        for _ in range(60):
            assert memory.state[place] == s
            if place >= memory.free:
                expected = memory.expected[place - memory.free]
                for a in np.flatnonzero(expected.any(axis=1)):
                    after = alpha[s, a] + counts[s, a]
                    assert expected[a] == pytest.approx(after / after.sum())
                kinds.add((bool(expected.any()), counts[s].sum() > 0))
            takes = [a for a in range(n_actions) if memory.follows[place, a].max() >= 0]
            a = int(rng.choice(takes))
            ahead = alpha[s, a] * np.where(np.arange(n_states) == s, 0.6, 1.0)
            t = int(rng.choice(n_states, p=ahead / ahead.sum()))
            counts[s, a, t] += 1
            s, place = t, int(memory.follows[place, a, t])
    assert (True, False) in kinds


@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize("crossings", [0, 1, 2])
def test_values_are_those_of_the_definition(branches, crossings):
    """By sweeps over all places, and never less."""
    task = Task.of(ladder(branches=branches), discount=0.9)
    memory = memory_for(task, crossings=crossings, charges=0.2)
    chain = Chain(task, above_of(task).problem, 3, 1, Effort((), 12, 60, 1), memory)
    drop = chain.run(0)
    places, draws = len(memory.state), chain.rows.draws[chain.search.slots[0]]
    for m in range(12):
        p, v = draws[:, :4, m].reshape(4, 2, 4), np.zeros(places)
        r = draws[:, 4, m].reshape(4, 2)[memory.state]
        own, open_ = p[memory.state], memory.follows.max(axis=2) >= 0
        charge = (memory.charge * own).sum(axis=2) - memory.mean
        for _ in range(400):
            after = np.where(memory.follows >= 0, v[memory.follows], 0.0)
            q = np.where(open_, r + 0.9 * (own * after).sum(axis=2) - charge, -np.inf)
            v = q.max(axis=1)
        found = chain.search.q[0, 0, :, m].reshape(places, 2)
        assert found[open_] == pytest.approx(q[open_], abs=1e-9)
        assert (found[open_] >= q[open_] - 1e-13).all()
    assert min(drop.ordered) >= -most_paid_back(above_of(task).problem, memory)


def test_losses_are_never_negative_whatever_is_charged():
    task = Task.of(ladder(branches=True), discount=0.9)
    chain = Chain(task, above_of(task).problem, 3, 1, Effort((), 32, 200, 1), memory_for(task, charges=3.0))
    for i in range(20):
        assert chain.run(i).value >= 0.0
        nodes = int(chain.search.size[0])
        assert (chain.search.loss[:nodes] >= 0.0).all()


@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize("charges", [0.0, 0.2, 2.0])
def test_bounds_are_not_below_the_exact_value_whatever_is_charged(branches, charges):
    """Every history of seven steps, at a discount that leaves .003 of the value after them."""
    task = Task.of(ladder(branches=branches), discount=DISCOUNT)
    problem = above_of(task).problem
    exact = oracles.dirichlet_value(task.belief, 0, DISCOUNT, 7)
    chain = Chain(task, problem, 5, 1, Effort((), 128, 400, 1), memory_for(task, crossings=2, charges=charges))
    models = FreshModels(task, above_of(task), (5, 2))
    models.sample(200, [models.scratch()])
    known, drops = np.concatenate(models.values), np.array([chain.run(i).whole for i in range(400)])
    error = np.hypot(known.std() / len(known) ** 0.5, drops.std() / len(drops) ** 0.5)
    assert known.mean() - drops.mean() >= exact - 4.5 * error


def test_first_visits_are_learnt_from_where_that_says_more_than_tables():
    """On the benchmarks' grid; on their chain, alike actions in order say more."""
    grid, chain = (chosen_memory(Task.of(belief_of(kind), discount=0.95)) for kind in ("grid", "chain"))
    assert grid.free < len(grid.state) <= MOST_PLACES
    assert len(chain.state) == chain.free == 243 * 5
    task = Task.of(belief_of("grid"), discount=0.95)
    told = Chain(task, above_of(task).problem, 3, 1, Effort((), 256, 1024, 1))
    learns = Chain(task, above_of(task).problem, 3, 1, Effort((), 256, 1024, 1), grid)
    gained = np.array([learns.run(i).whole - told.run(i).whole for i in range(12)])
    assert gained.mean() - 2.0 * gained.std() / len(gained) ** 0.5 > 0.3


def test_where_first_visits_are_not_offered():
    def offered(task, followed=3):
        problem = above_of(task).problem
        likely = np.ones(len(problem.available), dtype=bool)
        return with_first_visits(problem, task.start > 0.0, likely, followed, 1)

    belief = ladder()
    assert offered(Task.of(belief, discount=0.9)) is not None
    assert offered(Task.of(belief, discount=0.9, horizon=10)) is None
    assert offered(Task.of(belief_of("grid"), discount=0.95), followed=12) is None  # too many places
    bandit = DirichletBelief(1, 2, rewards=KnownRewards([[0.0, 1.0]]))
    assert offered(Task.of(bandit, discount=0.9)) is None  # one level
    problem = above_of(Task.of(belief, discount=0.9)).problem
    cut = problem._replace(keep=0.5 * problem.keep)
    assert with_first_visits(cut, np.arange(4) == 0, np.ones(8, dtype=bool), 3, 1) is None


def test_samples_are_the_same_on_any_number_of_threads():
    found = []
    for threads in (1, 2):
        sampler = Sampler(Task.of(belief_of("grid"), discount=0.95), 3, threads)
        sampler.effort = Effort((), 128, 512, 1)
        sampler.relax(12)
        found.append((sampler.drops, sampler.ordered, sampler.drop(0.01), sampler.mean_drop))
    assert found[0] == found[1]
    assert found[0][2] < found[0][3]


def test_the_upper_end_alone_can_be_closed():
    belief = ladder()
    knobs = {"discount": 0.9, "rng": 5, "effort": 12}
    alone, both = bb.bracket(belief, target="upper", **knobs), bb.bracket(belief, **knobs)
    assert alone.lower.value < alone.upper.value
    assert alone.lower.kind == "memoryless table" or alone.policy is not None
    assert alone.upper.value < both.upper.value + 0.1
    assert {bound.side for bound in alone.bounds} == {"lower", "upper"}
    assert all("trajectories" not in bound.method for bound in alone.bounds)
    finite = bb.FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    with pytest.raises(ParameterError, match="beliefs that count"):
        bb.bracket(finite, discount=0.5, target="upper")
