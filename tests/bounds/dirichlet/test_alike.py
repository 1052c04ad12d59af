"""Actions that a best policy may do without: found right, and bounds that leave them out stay bounds."""

from itertools import product

import numpy as np
import pytest

from beliefbound.beliefs import BetaRewards, DirichletBelief, KnownRewards
from beliefbound.bounds.dirichlet.arrays import problem_of
from beliefbound.bounds.dirichlet.effort import Effort
from beliefbound.bounds.dirichlet.fresh_models import FreshModels
from beliefbound.bounds.dirichlet.prepared import above_of
from beliefbound.bounds.dirichlet.sampler import Sampler
from beliefbound.kernels.particles import renewal
from beliefbound.kernels.particles.alike import WAITS, classes_of, needless
from beliefbound.lab.envs.benchmark import belief_of
from beliefbound.planning.task import Task
from support import oracles


def classes(belief):
    return classes_of(problem_of(Task.of(belief, discount=0.9), np.zeros(1, np.uint64), horizon=None))


def rows(*alpha, **knobs):
    """A belief of two states whose actions have these rows in state 0."""
    concentration = np.array([alpha, [[0.0, 1.0]] * len(alpha)])
    return DirichletBelief(2, len(alpha), concentration=concentration, initial=0, **knobs)


def test_actions_are_alike_where_all_that_is_believed_of_them_is_the_same():
    paid = KnownRewards([[0.0, 0.0, 0.0], [0.1, 0.5, 0.7]])
    assert classes(rows([1, 2], [1, 2], [1, 2], rewards=paid)).tolist() == [0, 0, 0, 3, 4, 5]
    assert classes(rows([1, 2], [2, 1], [1, 2], rewards=paid)).tolist() == [0, 1, 0, 3, 4, 5]
    assert classes(rows([1, 2], [2, 1], [3, 1], rewards=paid)).size == 0
    paid = KnownRewards([[0.0, 2.0, 0.0], [0.1, 0.5, 0.7]])
    assert classes(rows([1, 2], [1, 2], [1, 2], rewards=paid)).tolist() == [0, 1, 0, 3, 4, 5]


def test_rewards_to_be_learnt_are_alike_by_their_counts():
    won = np.array([[1.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    belief = rows([1, 2], [1, 2], [1, 2], rewards=BetaRewards(won, np.ones((2, 3))))
    assert classes(belief).tolist() == [0, 0, 2, 3, 4, 5]


def test_rewards_of_what_cannot_happen_do_not_matter():
    paid = np.zeros((2, 2, 2))
    paid[1, :, 1], paid[1, 1, 0], paid[0, 0] = 1.0, 5.0, 3.0
    assert classes(rows([1, 2], [1, 2], rewards=KnownRewards(paid))).tolist() == [0, 1, 2, 2]


def test_actions_that_are_not_available_are_alike_to_none():
    available = np.array([[True, True, False], [True, False, False]])
    found = classes(rows([1, 2], [1, 2], [1, 2], available=available, rewards=KnownRewards(1.0)))
    assert found[:2].tolist() == [0, 0]
    assert found[2] not in (0, 1)
    assert np.unique(found[2:]).size == 4


def test_pairs_that_share_a_row_are_not_taken_for_alike():
    arrive = [[[0, 1], [0, 1]], [[0, 1], [0, 1]]]
    knobs = {"rewards": KnownRewards([[0.0, 0.0], [1.0, 1.0]])}
    assert classes(DirichletBelief.tied([[0, 0], [1, 2]], arrive, np.ones((3, 2)), **knobs)).tolist() == [0, 1, 2, 2]
    arrive[1][1] = [1, 0]
    assert classes(DirichletBelief.tied([[0, 0], [1, 2]], arrive, np.ones((3, 2)), **knobs)).size == 0


def test_waiting_is_staying_for_the_least_where_there_is_something_else():
    stay = np.array([[[1, 0], [1, 1]], [[0, 1], [0, 1]]], dtype=float)
    assert classes(
        DirichletBelief(2, 2, concentration=stay, rewards=KnownRewards([[0.0, 0.0], [0.0, 1.0]]))
    ).tolist() == [WAITS, 1, WAITS, 3]
    found = classes(DirichletBelief(2, 2, concentration=stay, rewards=KnownRewards([[0.1, 0.0], [1.0, 1.0]])))
    assert found.tolist() == [0, 1, 2, 2]  # the first pays more than the least; nothing else is there in state 1
    cut = stay.copy()
    cut[0, 1, 1] = 1e-9
    task = Task.of(
        DirichletBelief(2, 2, concentration=cut, rewards=KnownRewards([[0.0, 0.0], [0.0, 1.0]])), discount=0.9
    )
    assert (above_of(task).problem.keep < 1.0).any()
    assert WAITS not in classes_of(above_of(task).problem)


def test_the_benchmarks_have_what_their_drawings_show():
    assert classes(belief_of("chain")).tolist() == [0] * 3 + [3] * 3 + [6] * 3 + [9] * 3 + [12] * 3
    grid = classes(belief_of("grid")).reshape(25, 4)
    walls = [[s % 5 == 0, s % 5 == 4, s < 5, s >= 20] for s in range(24)]
    assert ((grid[:24] == WAITS) == walls).all()
    assert (grid[24] == 96).all()  # never occupied: four names of one way out
    assert [len(set(x)) for x in classes(belief_of("double-loop")).reshape(9, 2)] == [1] * 9


def test_the_first_of_those_with_the_same_counts_is_taken():
    """Against the definition, for all counts of one or none of three actions in two columns."""
    kin = np.array([0, 0, 0, 3, 4, 3])
    for seen in product(range(2), repeat=12):
        counts = np.array(seen).reshape(6, 2)
        for pair in range(6):
            lower = range(pair - pair % 3, pair)
            twin = any(kin[b] == kin[pair] and (counts[b] == counts[pair]).all() for b in lower)
            assert needless(kin, counts, pair, 3) == twin
    assert needless(np.array([WAITS, 1]), np.zeros((2, 2), np.int64), 0, 2)


def mean_and_error(belief, discount, horizon, seed, n, count):
    """`E max` minus the drop of chains: mean and standard error."""
    sampler = Sampler(Task(belief, np.array(belief.initial), discount, horizon), seed, 1)
    sampler.effort = Effort((), n, 400, 100)
    models = FreshModels(sampler.task, above_of(sampler.task), (seed, 2))
    models.sample(40, [models.scratch()])
    sampler.relax(count // 3 * 3)
    known, drops = np.concatenate(models.values), np.reshape(sampler.drops, (-1, 3)).mean(axis=1)
    return known.mean() - drops.mean(), np.hypot(known.std() / len(known) ** 0.5, drops.std() / len(drops) ** 0.5)


def any_belief(seed):
    """Three actions, of which two or three are alike in a state, one may wait; what is counted is random."""
    rng = np.random.default_rng(seed)
    concentration = np.tile(rng.choice([0.3, 0.5, 1.0], (2, 1, 2)), (1, 3, 1))
    paid = np.tile(rng.choice([0.0, 0.5, 1.0], (2, 1, 2)), (1, 3, 1))
    if seed % 3 == 1:
        concentration[1, 0], paid[1, 0] = (0.0, 1.0), 0.0
    if seed % 3 == 2:
        concentration[0, 2] += 1.0
    return DirichletBelief(2, 3, concentration=concentration, rewards=KnownRewards(paid), initial=0)


@pytest.mark.full
def test_bounds_with_and_without_the_others_are_not_below_the_exact_value(monkeypatch):
    """Twelve beliefs, horizon 4: four and a half standard errors; on average what may leave out others is lower."""
    lower = []
    for seed in range(12):
        belief = any_belief(seed)
        assert classes(belief).size
        exact, found = oracles.dirichlet_value(belief, 0, 0.9, 4), {}
        for restricted in (True, False):
            with monkeypatch.context() as patch:
                if not restricted:
                    patch.setattr(renewal, "classes_of", lambda problem: np.empty(0, dtype=np.int64))
                found[restricted], error = mean_and_error(belief, 0.9, 4, seed, 24, 240)
            assert found[restricted] >= exact - 4.5 * error
        lower.append(found[False] - found[True])
    assert np.mean(lower) > 0.0


def test_leaving_out_alike_actions_comes_nearer_to_the_exact_value(monkeypatch):
    """Three fresh arms, four pulls: the exact value, what is found without them, and what is found with them."""
    rewards = KnownRewards(np.array([[[0.0, 1.0]] * 3, [[1.0, 0.0]] * 3]))
    belief = DirichletBelief(2, 3, concentration=1.0, rewards=rewards, initial=0)
    exact = oracles.dirichlet_value(belief, 0, 0.9, 4)
    alone, error = mean_and_error(belief, 0.9, 4, 3, 24, 300)
    monkeypatch.setattr(renewal, "classes_of", lambda problem: np.empty(0, dtype=np.int64))
    other, _ = mean_and_error(belief, 0.9, 4, 3, 24, 300)
    assert exact - 4.0 * error <= alone < other - 4.0 * error


def test_nothing_changes_where_no_actions_are_alike():
    """The same losses, bit for bit, with the classes of each action by itself as with none."""
    concentration = np.array([[[0.3, 0.7], [0.5, 0.4]], [[1.0, 1.0], [0.2, 0.2]]])
    belief = DirichletBelief(
        2, 2, concentration=concentration, rewards=KnownRewards([[0.4, 0.0], [0.0, 1.0]]), initial=0
    )
    drops = {}
    for own in (False, True):
        sampler = Sampler(Task(belief, np.eye(2)[0], 0.9, None), 5, 1)
        sampler.effort = Effort((), 20, 400, 50)
        search = sampler.chains[0].search
        assert search.classes.size == 0
        if own:
            sampler.chains[0].search = search._replace(classes=np.arange(4))
        sampler.relax(14)
        drops[own] = sampler.drops
    assert drops[True] == drops[False]
