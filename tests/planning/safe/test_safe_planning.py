"""Policies that improve on behaviour: each against a definition, an enumeration or a linear programme."""

import itertools

import numpy as np
import pytest
import scipy.optimize as optimize

from beliefbound import MDP, evaluate
from beliefbound.bounds.posterior.safe_candidates import policy_of
from beliefbound.logs import log_of
from beliefbound.planning.optimal import backward_induction, policy_iteration
from beliefbound.planning.safe.adjusted import reward_adjusted, robust_l1, worst_mean
from beliefbound.planning.safe.bounded import bounded_optimum, value_of
from beliefbound.planning.safe.frequencies import Frequencies
from beliefbound.planning.safe.pessimistic import bootstrapped, ceiling, pessimistic
from beliefbound.planning.safe.soft_spibb import moved, soft_spibb
from beliefbound.planning.safe.spibb import spibb

S, A = 4, 3


def random_data(seed: int, rows: int = 60) -> Frequencies:
    """A log of random steps; the last state ends episodes."""
    rng = np.random.default_rng(seed)
    s, a, t = rng.integers(0, S - 1, rows), rng.integers(0, A, rows), rng.integers(0, S, rows)
    done = t == S - 1
    log = log_of(s, a, 1.0 * done, t, terminated=done, n_states=S, n_actions=A)
    behaviour = rng.dirichlet(np.ones(A), S)
    return Frequencies.of(log, behaviour, np.ones((S, A), dtype=bool), log.terminal)


def vertices(low, high):
    """Every vertex of `low ≤ p ≤ high, Σ p = 1`: all coordinates at an end but one."""
    for free in range(len(low)):
        for ends in itertools.product(*([(x, y) for i, (x, y) in enumerate(zip(low, high, strict=True)) if i != free])):
            p = np.insert(np.array(ends, dtype=float), free, 1.0 - sum(ends))
            if low[free] - 1e-12 <= p[free] <= high[free] + 1e-12:
                yield p


@pytest.mark.parametrize("seed", range(3))
def test_the_best_policy_within_bounds_is_the_best_of_all_vertices(seed):
    """Two states, three actions: policy iteration within bounds is worth as much as every combination of vertices."""
    rng = np.random.default_rng(seed)
    rows, rewards = rng.dirichlet(np.ones(2), (2, A)), rng.random((2, A))
    low = rng.random((2, A)) * 0.2
    high = np.minimum(1.0, low + 0.3 + 0.3 * rng.random((2, A)))
    found = bounded_optimum(rows, rewards, low, high, discount=0.9, horizon=None)
    best = np.max(
        [
            value_of(np.stack(pair), rows, rewards, 0.9)
            for pair in itertools.product(vertices(low[0], high[0]), vertices(low[1], high[1]))
        ],
        axis=0,
    )
    np.testing.assert_allclose(value_of(found, rows, rewards, 0.9), best, atol=1e-9)


def test_without_bounds_it_is_policy_iteration_and_backward_induction():
    """SPIBB that trusts every count is the best policy of the frequencies."""
    data = random_data(1, 400)
    rows, rewards = data.model()
    mdp = MDP(rows, rewards)
    own = policy_of(spibb(data, least=0, discount=0.9))
    best = policy_iteration(mdp, discount=0.9)
    padded = np.vstack([own.chances(A), np.eye(1, A)])
    np.testing.assert_allclose(evaluate(policy_of(padded), mdp, discount=0.9), best.values, atol=1e-9)
    staged = spibb(data, least=0, discount=0.9, horizon=3)
    whole = np.concatenate([staged, np.broadcast_to(np.eye(1, A), (3, 1, A))], axis=1)
    plan = backward_induction(mdp, discount=0.9, horizon=3)
    np.testing.assert_allclose(evaluate(policy_of(whole), mdp, discount=0.9), plan.values, atol=1e-12)


@pytest.mark.parametrize("bound", ["equal", "at most"])
def test_spibb_keeps_its_bounds_and_ends_in_behaviour(bound):
    """Rare pairs have behaviour's chance, or at most that; a threshold beyond every count leaves behaviour."""
    data = random_data(2)
    found, rare = spibb(data, least=6, bound=bound, discount=0.9), data.visits < 6
    rare[data.terminal] = False
    assert rare.any()
    assert not rare[:-1].all()
    if bound == "equal":
        np.testing.assert_allclose(found[rare], data.behaviour[rare], atol=1e-12)
    assert (found[rare] <= data.behaviour[rare] + 1e-12).all()
    kept = spibb(data, least=1e9, bound=bound, discount=0.9)
    np.testing.assert_allclose(kept[:-1], data.behaviour[:-1], atol=1e-12)
    values = [value_of(np.vstack([p, np.eye(1, A)]), *data.model(), 0.9) for p in (found, data.behaviour)]
    assert (values[0] >= values[1] - 1e-9).all()


def test_doubt_is_a_visit_that_led_to_the_worst():
    """One visit and one of doubt: half the chance, and a worst state that pays the least for ever."""
    log = log_of([0, 1, 1], [0, 0, 0], [-2.0, 1.0, 1.0], [1, 0, 1], n_states=2, n_actions=2)
    data = Frequencies.of(log, np.full((2, 2), 0.5), np.ones((2, 2), dtype=bool), log.terminal)
    rows, rewards = data.model(1.0)
    assert rows[0, 0].tolist() == [0.0, 0.5, 0.5]
    assert rewards[0, 0] == -2.0
    np.testing.assert_allclose(rows[1, 0], [1 / 3, 1 / 3, 1 / 3])
    np.testing.assert_allclose(rewards[1, 0], 2 / 3 - 2 / 3)
    assert rows[0, 1].tolist() == [0.0, 0.0, 1.0]
    assert rewards[0, 1] == -2.0
    assert rows[2, 0].tolist() == [0.0, 0.0, 1.0]
    assert rewards[2].tolist() == [-2.0, -2.0]


def test_an_action_tried_once_is_taken_only_if_behaviour_likes_it():
    """Of two actions tried once each the one that behaviour hardly takes stays below its chance; tried twice it may."""
    log = log_of([0, 0, 1], [0, 1, 0], [0.0, 1.0, 0.0], [1, 1, 0], n_states=2, n_actions=2)
    b = np.array([[0.9, 0.1], [0.5, 0.5]])
    data = Frequencies.of(log, b, np.ones((2, 2), dtype=bool), log.terminal)
    assert ceiling(data)[0].tolist() == [1.0, 0.1]
    np.testing.assert_allclose(pessimistic(data, doubt=0.5, discount=0.9)[0], [0.9, 0.1], atol=1e-12)
    bold = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert bootstrapped(data, bold).tolist() == [[0.9, 0.1], [1.0, 0.0]]
    twice = log_of([0, 0, 0, 1], [0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0], [1, 1, 1, 0], n_states=2, n_actions=2)
    data = Frequencies.of(twice, b, np.ones((2, 2), dtype=bool), twice.terminal)
    assert pessimistic(data, doubt=0.5, discount=0.9)[0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("seed", range(20))
def test_soft_spibb_keeps_its_budget_and_is_exact_for_two_actions(seed):
    """Against the linear programme `max π·q` with `Σ e|π − b| ≤ ε`."""
    rng = np.random.default_rng(seed)
    for n in (2, 5):
        b, q, e, budget = rng.dirichlet(np.ones(n)), rng.random(n), rng.random(n) + 0.1, 0.4 * rng.random()
        p = moved(b, q, e, budget)
        assert e @ np.abs(p - b) <= budget + 1e-12
        assert abs(p.sum() - 1.0) < 1e-12
        assert (p >= -1e-12).all()
        assert p @ q >= b @ q - 1e-12
        # π = b + up − down
        upper = optimize.linprog(
            np.concatenate([-q, q]),
            A_ub=[np.concatenate([e, e])],
            b_ub=[budget],
            A_eq=[np.concatenate([np.ones(n), -np.ones(n)])],
            b_eq=[0.0],
            bounds=[(0.0, 1.0)] * n + [(0.0, x) for x in b],
        )
        best = b @ q - upper.fun
        assert p @ q <= best + 1e-9
        if n == 2:
            assert p @ q == pytest.approx(best, abs=1e-9)


def test_soft_spibb_rises_above_behaviour_and_keeps_what_was_never_tried():
    data = random_data(3, 12)
    found = soft_spibb(data, budget=0.7, discount=0.9)
    never = ~data.tried
    assert never.any()
    np.testing.assert_allclose(found[never], data.behaviour[never], atol=1e-12)
    values = [value_of(np.vstack([p, np.eye(1, A)]), *data.model(), 0.9) for p in (found, data.behaviour)]
    assert (values[0] >= values[1] - 1e-9).all()


def test_reward_adjustment_is_a_penalty_of_rare_pairs():
    """Without a penalty, the best of what was tried; with it, the pair that was tried four times as often."""
    s, a = [0] * 5 + [1], [0, 1, 1, 1, 1, 0]
    log = log_of(s, a, [1.0, 0.9, 0.9, 0.9, 0.9, 0.0], [1] * 5 + [0], n_states=2, n_actions=3)
    data = Frequencies.of(log, np.full((2, 3), 1 / 3), np.ones((2, 3), dtype=bool), log.terminal)
    assert reward_adjusted(data, penalty=0.0, discount=0.5)[0].argmax() == 0
    assert reward_adjusted(data, penalty=0.3, discount=0.5)[0].argmax() == 1
    assert robust_l1(data, distance=0.0, discount=0.9)[0].argmax() == 0
    assert robust_l1(data, distance=0.5, discount=0.9)[0].argmax() == 1


@pytest.mark.parametrize("seed", range(10))
def test_the_worst_mean_in_l1_is_that_of_a_linear_programme(seed):
    rng = np.random.default_rng(seed)
    p, v, reach = rng.dirichlet(np.ones(5)), rng.random(5), 1.5 * rng.random()
    found = worst_mean(p[None, None], v, np.array([[reach]]))[0, 0]
    n = len(p)
    solved = optimize.linprog(
        np.concatenate([v, -v]),
        A_ub=[np.ones(2 * n)],
        b_ub=[reach],
        A_eq=[np.concatenate([np.ones(n), -np.ones(n)])],
        b_eq=[0.0],
        bounds=[(0.0, None)] * n + [(0.0, x) for x in p],
    )
    assert found == pytest.approx(p @ v + solved.fun, abs=1e-9)
