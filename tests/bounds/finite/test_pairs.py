"""Upper values by pairs of models: against the exact tree, a plain twin, and what the relaxation asks of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefbound.base.errors import ParameterError
from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.basic import qmdp
from beliefbound.bounds.finite import pairs
from beliefbound.bounds.finite.pairs import matching, pair_bound, read_pairs, with_pairs
from beliefbound.bounds.finite.problem import problem_of
from beliefbound.bounds.finite.relaxation import certifier_of
from beliefbound.planning.task import FiniteTask
from support import oracles
from support.beliefs import ROUNDING, SIGNALS, chain_belief, random_belief
from support.tiers import tiers


def paired_problem(belief, horizon, discount=0.9):
    task = FiniteTask.of(belief, discount=discount, horizon=horizon)
    return with_pairs(problem_of(task, stages=horizon or 1, policies=()), task)


@pytest.mark.parametrize("signal", tiers(SIGNALS, "deterministic"))
def test_the_bound_lies_between_the_exact_value_and_qmdp(signal):
    rng = np.random.default_rng(1)
    for i in range(25):
        belief, (P, r, w, p0) = random_belief(rng, signal, n_models=2 + i % 5)
        exact = oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 4, signal)
        found = pair_bound(belief, discount=0.9, horizon=4)
        assert found.exact
        assert exact - ROUNDING <= found.value <= p0 @ qmdp(belief, discount=0.9, horizon=4).values + ROUNDING


@pytest.mark.parametrize("signal", tiers(SIGNALS, "deterministic"))
def test_two_models_are_solved_up_to_the_grid(signal):
    """With two models nothing is told; the rest is linear interpolation on 33 points."""
    rng = np.random.default_rng(2)
    for _ in range(10):
        belief, (P, r, w, p0) = random_belief(rng, signal, n_models=2)
        exact = oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 5, signal)
        top = p0 @ qmdp(belief, discount=0.9, horizon=5).values
        value = pair_bound(belief, discount=0.9, horizon=5).value
        assert value - exact <= 0.1 * (top - exact) + 1e-3


def plain_pair(belief, i, j, horizon, n_grid, discount=0.9):
    """`Q[stage,s,g,a]` of one pair, from the definitions, rewards known."""
    P, r = belief.models.dense()[[i, j]], belief.rewards[[i, j]]
    grid = np.linspace(0.0, 1.0, n_grid)
    n_states, n_actions = r.shape[1:]
    q = np.zeros((horizon + 1, n_states, n_grid, n_actions))
    for k in range(horizon - 1, -1, -1):
        later = q[k + 1].max(axis=-1)
        for s, (g, p), a in itertools.product(range(n_states), enumerate(grid), range(n_actions)):
            b = np.array([1.0 - p, p])
            q[k, s, g, a] = b @ r[:, s, a]
            for t in range(n_states):
                joint = b * P[:, s, a, t]
                if joint.sum() > 0.0:
                    chance = joint.sum()
                    q[k, s, g, a] += discount * chance * np.interp(joint[1] / chance, grid, later[t])
    return q


def test_a_plain_twin_solves_pairs_alike():
    belief, _ = random_belief(np.random.default_rng(3), "known", n_models=5, n_states=3)
    problem = paired_problem(belief, 6)
    assert problem.partner.shape == (4, 5)
    for pairing, m in itertools.product(range(4), range(5)):
        partner, cell = problem.partner[pairing, m], problem.cell[pairing, m]
        if partner == 5:
            i, j = m, m
        else:
            assert problem.partner[pairing, partner] == m
            assert problem.cell[pairing, partner] == cell
            i, j = min(m, partner), max(m, partner)
        assert problem.pairs[pairing, cell] == pytest.approx(plain_pair(belief, i, j, 6, 33), abs=1e-10)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), signal=st.sampled_from(SIGNALS), horizon=st.sampled_from([None, 3]))
def test_values_fall_under_their_own_backups(seed, signal, horizon):
    """`W ≥ r + γ E W` at any belief: without it, costs of the relaxation could be negative."""
    rng = np.random.default_rng(seed)
    belief, _ = random_belief(rng, signal, n_models=int(rng.integers(2, 6)))
    problem = paired_problem(belief, horizon)
    b = rng.dirichlet(np.full(belief.n_models, 0.3))
    here = read_pairs(problem, b)
    later = problem if horizon is None else problem._replace(pairs=problem.pairs[:, :, 1:])
    for s, a in itertools.product(range(belief.n_states), range(belief.n_actions)):
        total = b @ belief.rewards[:, s, a]
        base, n_rows = problem.first[s, 0], problem.first[s, -1] - problem.first[s, 0]
        like = problem.like[base * len(b) :][: len(b) * n_rows].reshape(len(b), n_rows)
        for k in range(problem.first[s, a], problem.first[s, a + 1]):
            total += 0.9 * read_pairs(later, b * like[:, k - base])[problem.arrive[k]]
        assert here[s] >= total - ROUNDING


@pytest.mark.full
def test_without_a_horizon_values_are_above_a_long_horizon_and_below_qmdp():
    rng = np.random.default_rng(4)
    for signal in SIGNALS:
        belief, (P, r, w, p0) = random_belief(rng, signal)
        exact = oracles.bayes_adaptive_value(P, r, w, p0, 0.3, 6, signal)
        value = pair_bound(belief, discount=0.3).value
        assert exact - ROUNDING <= value <= p0 @ qmdp(belief, discount=0.3).values + 1e-6


def test_the_order_of_models_does_not_matter():
    rng = np.random.default_rng(5)
    belief, (P, r, w, p0) = random_belief(rng, "bernoulli", n_models=7, n_states=3)
    order = rng.permutation(7)
    other = FiniteBelief(P[order], r[order], w[order], reward_signal="bernoulli", initial=p0)
    one, two = (pair_bound(x, discount=0.9, horizon=20).value for x in (belief, other))
    assert one == pytest.approx(two, abs=1e-9)


def test_a_model_alone_and_a_problem_beyond_the_limits_are_qmdp(monkeypatch):
    rng = np.random.default_rng(6)
    alone, (*_, p0) = random_belief(rng, "known", n_models=1)
    found = pair_bound(alone, discount=0.9, horizon=8)
    assert found.method == "QMDP"
    assert found.value == pytest.approx(p0 @ qmdp(alone, discount=0.9, horizon=8).values)
    belief, (*_, p0) = random_belief(np.random.default_rng(7), "known", n_models=6, n_states=3)
    tight = pair_bound(belief, discount=0.9, horizon=8)
    monkeypatch.setattr(pairs, "_WORK", 0)
    loose = pair_bound(belief, discount=0.9, horizon=8)
    assert loose.value == pytest.approx(p0 @ qmdp(belief, discount=0.9, horizon=8).values)
    assert tight.value < loose.value - 1e-6


def test_a_coarser_grid_is_looser_and_more_pairings_are_tighter(monkeypatch):
    belief, _ = random_belief(np.random.default_rng(7), "known", n_models=6, n_states=3)
    values = {}
    for size in ((1, 3), (1, 9), (1, 33), (4, 33)):
        monkeypatch.setattr(pairs, "_SIZES", (size,))
        values[size] = pair_bound(belief, discount=0.9, horizon=20).value
    assert values[1, 3] > values[1, 9] > values[1, 33] >= values[4, 33]


def test_only_some_pairs_are_compared_where_there_are_too_many(monkeypatch):
    belief, (P, r, w, p0) = random_belief(np.random.default_rng(8), "known", n_models=6)
    monkeypatch.setattr(pairs, "_candidates", lambda n, room: np.array([[0, 5], [1, 4]]))
    found = pair_bound(belief, discount=0.9, horizon=4)
    assert found.value >= oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 4, "known") - ROUNDING
    monkeypatch.undo()
    assert len(pairs._candidates(6, 100)) == 15
    assert len(np.unique(pairs._candidates(6, 9), axis=0)) == 9


def every_matching(models):
    """All ways of pairing an even number of models."""
    if not models:
        yield []
        return
    first, *others = models
    for i, second in enumerate(others):
        for rest in every_matching(others[:i] + others[i + 1 :]):
            yield [[first, second], *rest]


@pytest.mark.parametrize("n", [2, 3, 6, 7, 8])
def test_a_matching_uses_every_model_once_and_gains_at_least_half_the_most(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        gain = rng.random((n, n)) ** 3
        gain = gain + gain.T
        found = matching(gain)
        assert sorted(itertools.chain(*found)) == list(range(n))
        assert [len(pair) for pair in found] == [2] * (n // 2) + [1] * (n % 2)
        if n % 2 == 0:
            most = max(sum(gain[i, j] for i, j in pairs) for pairs in every_matching(list(range(n))))
            assert sum(gain[i, j] for i, j in found) >= 0.5 * most


def test_continuous_rewards_and_bad_horizons_are_refused():
    belief, _ = random_belief(np.random.default_rng(9), "known")
    with pytest.raises(ParameterError, match="horizon"):
        pair_bound(belief, discount=0.9, horizon=0)
    P, r = np.ones((2, 1, 1, 1)), np.array([[[0.0]], [[1.0]]])
    continuous = FiniteBelief(P, r, reward_signal="continuous")
    with pytest.raises(ParameterError, match="continuous"):
        pair_bound(continuous, discount=0.9)


@pytest.mark.full
def test_pairs_narrow_the_gap_of_a_graph_where_models_are_alike():
    """Sixteen Chain models after a hundred steps, five draws, graphs of 2000 beliefs: the gap of the search shrinks on
    each, and so does that of the scenarios, in the mean to about 70% and 43%."""
    shares, address = [], np.array([1], dtype=np.uint64)
    for seed in range(5):
        belief = chain_belief(100, seed).sample(16, np.random.default_rng(seed))
        gaps = []
        for paired in (False, True):
            made = certifier_of(FiniteTask.of(belief, discount=0.95, horizon=150), core_nodes=2000, pairs=paired)
            made.grow(2000)
            made.freeze_values()
            costs = made.sample(address, 0, 512, clip=np.inf, stop=np.inf)
            gaps.append((made.upper - made.lower, costs.between.mean()))
        assert (np.array(gaps[1]) < np.array(gaps[0])).all()
        shares.append(np.array(gaps[1]) / np.array(gaps[0]))
    assert (np.mean(shares, axis=0) < (0.8, 0.55)).all(), shares
