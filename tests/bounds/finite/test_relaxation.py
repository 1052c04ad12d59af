"""Belief graph and information relaxation: against the exact tree, a plain twin, and themselves on other threads."""

import heapq

import numpy as np
import pytest
from scipy import stats

from beliefbound.base.errors import ParameterError
from beliefbound.base.executors.team import Team
from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.finite.pairs import read_pairs
from beliefbound.bounds.finite.relaxation import certifier_of, relaxation
from beliefbound.bounds.statistics.betting import mean_at_least, mean_at_most
from beliefbound.kernels.random import seed_stream, uniform
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.task import FiniteTask
from support import oracles
from support.beliefs import ROUNDING, SIGNALS, random_belief
from support.tiers import tiers

FREE = {"clip": np.inf, "stop": np.inf}


def certifier(belief, **knobs):
    made = certifier_of(
        FiniteTask.of(belief, discount=0.9, horizon=knobs.pop("horizon", 5)), **{"core_nodes": 1, **knobs}
    )
    made.grow(made.core_nodes)
    made.freeze_values()
    return made


def plain_costs(certifier, discount, horizon, scenario, address):
    """One scenario written from the definitions: leaf values one step ahead at the root, leaf values elsewhere; the
    cheapest sequence.

    The root's upper value is its one-step look-ahead (a graph of one node), every other `W` is QMDP or, where the
    certifier pairs models, read from its tables of pairs.
    """
    belief, problem = certifier.belief, certifier.problem
    P, r = belief.models.dense(), belief.rewards
    n_states, n_actions = r.shape[1:]
    q = np.zeros((horizon + 1, *r.shape))
    for k in range(horizon - 1, -1, -1):
        q[k] = r + discount * np.einsum("msat,mt->msa", P, q[k + 1].max(-1))

    def outcomes(b, s, a):
        for chance in oracle_rewards(belief, s, a):
            for t in range(n_states):
                joint = b * chance * P[:, s, a, t]
                if (chance * P[:, s, a, t]).any():
                    yield joint, t

    def leaf(b, s, k):
        if len(problem.partner) == 0:
            return (b @ q[k, :, s]).max()
        return read_pairs(problem._replace(pairs=problem.pairs[:, :, k:]), b)[s]

    def w(b, s, k, root=False):
        return max(backed(b, s, a, k) for a in range(n_actions)) if root else leaf(b, s, k)

    def backed(b, s, a, k):
        return b @ r[:, s, a] + discount * sum(w(joint, t, k + 1) for joint, t in outcomes(b, s, a))

    stream = seed_stream(np.append(address, np.uint64(scenario)))
    u = [uniform(stream) for _ in range(horizon + 1)]
    start = int(np.searchsorted(np.cumsum(belief.initial), u[0], side="right"))
    queue, count = [(0.0, 0, 0, belief.weights, start)], 0
    while True:
        cost, _, k, b, s = heapq.heappop(queue)
        if k == horizon:
            return cost
        for a in range(n_actions):
            loss = w(b, s, k, root=k == 0) - backed(b, s, a, k)
            options = list(outcomes(b, s, a))
            masses = np.array([joint.sum() for joint, _ in options])
            chosen = int(np.searchsorted(np.cumsum(masses / masses.sum()), u[k + 1], side="right"))
            joint, t = options[min(chosen, len(options) - 1)]
            count += 1
            heapq.heappush(queue, (cost + discount**k * loss, count, k + 1, joint / joint.sum(), t))


def oracle_rewards(belief, s, a):
    means = belief.rewards[:, s, a]
    if belief.reward_signal == "deterministic":
        return [(means == x).astype(float) for x in np.unique(means)]
    if belief.reward_signal == "bernoulli":
        return [means, 1.0 - means]
    return [np.ones_like(means)]


@pytest.mark.parametrize("pairs", tiers([False, True], True))
@pytest.mark.parametrize("signal", tiers(SIGNALS, "bernoulli"))
def test_a_plain_twin_finds_the_same_cost_in_every_scenario(signal, pairs):
    belief, _ = random_belief(np.random.default_rng(4), signal, n_models=4)
    made = certifier(belief, horizon=6, pairs=pairs)
    made.tolerance = -1.0  # no early leaves
    address = np.array([1, 2, 3], dtype=np.uint64)
    costs = made.sample(address, 0, 64, **FREE)
    for i in range(64):
        assert costs.above[i] == pytest.approx(plain_costs(made, 0.9, 6, i, address), abs=1e-9)


@pytest.mark.full
def test_exact_bounds_are_never_wrong_and_intervals_no_more_often_than_stated():
    """640 random problems with an exact answer, every kind of reward signal, large and tiny graphs, capped searches,
    leaves by pairs and by QMDP.

    False alarm rate of the binomial test: 1e-4 when intervals fail exactly as often as stated.
    """
    rng = np.random.default_rng(5)
    wrong, count, share = 0, 0, 0.2  # a low confidence, so that the test has something to count
    for i in range(640):
        signal = SIGNALS[i % 4]
        belief, (P, r, w, p0) = random_belief(rng, signal, n_models=2 + i % 3)
        exact = oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 4, signal)
        nodes, cap, pairs = (1, 12)[i % 2], (3, 1000)[i // 2 % 2], i // 4 % 2 == 0
        made = certifier(belief, horizon=4, core_nodes=nodes, max_nodes=cap, pairs=pairs)
        assert made.lower - ROUNDING <= exact <= made.upper + ROUNDING
        found = relaxation(
            belief, discount=0.9, horizon=4, nodes=nodes, max_nodes=cap, scenarios=128, pairs=pairs,
            confidence=1 - share, rng=rng, threads=1,
        )  # fmt: skip
        count += 1
        wrong += not found.lower.value - ROUNDING <= exact <= found.upper.value + ROUNDING
        assert found.lower.estimate <= found.upper.estimate + ROUNDING
    assert count == 640
    assert stats.binom(count, share).sf(wrong - 1) > 1e-4


def test_the_means_of_the_two_costs_enclose_the_exact_value():
    """Over 3000 scenarios each mean is on its side within four standard errors, for each signal."""
    rng = np.random.default_rng(6)
    for signal in SIGNALS:
        belief, (P, r, w, p0) = random_belief(rng, signal, n_models=4)
        exact = oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 5, signal)
        made = certifier(belief, horizon=5)
        costs = made.sample(np.array([7], dtype=np.uint64), 0, 3008, **FREE)
        assert (costs.above <= costs.below).all()
        error = 4 * costs.below.std() / np.sqrt(3008)
        assert made.upper - costs.below.mean() <= exact + error
        assert made.upper - costs.above.mean() >= exact - error


def test_capping_the_search_only_loosens():
    belief, _ = random_belief(np.random.default_rng(7), "bernoulli", n_models=4, n_states=3)
    address = np.array([8], dtype=np.uint64)
    free = certifier(belief, horizon=7, max_nodes=5000).sample(address, 0, 128, **FREE)
    for cap in (1, 4, 16):
        capped = certifier(belief, horizon=7, max_nodes=cap).sample(address, 0, 128, **FREE)
        assert (capped.above <= free.above + ROUNDING).all()
        assert (capped.nodes <= cap).all()


def test_a_larger_graph_tightens_both_sides():
    rng = np.random.default_rng(8)
    belief, (P, r, w, p0) = random_belief(rng, "known", n_models=4, n_states=3)
    exact = oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 5, "known")
    lower, upper = -np.inf, np.inf
    made = certifier_of(FiniteTask.of(belief, discount=0.9, horizon=5), core_nodes=5000)
    for nodes in (1, 10, 100, 5000):
        made.grow(nodes)
        assert lower - ROUNDING <= made.lower <= exact + ROUNDING
        assert exact - ROUNDING <= made.upper <= upper + ROUNDING
        lower, upper = made.lower, made.upper
    assert upper - lower < 1e-6


def test_the_number_of_threads_changes_no_bit():
    belief, _ = random_belief(np.random.default_rng(9), "bernoulli", n_models=5, n_states=3)
    made = certifier(belief, horizon=20, core_nodes=30)
    address = np.array([1], dtype=np.uint64)
    one, two, three = (made.sample(address, 0, 512, team=Team(n), **FREE) for n in (1, 2, 3))
    for other in (two, three):
        assert all(np.array_equal(x, y) for x, y in zip(one, other, strict=True))
    again = made.sample(address, 256, 256, team=Team(2), **FREE)
    assert np.array_equal(again.below, one.below[256:])


def test_look_ahead_explores_where_replanning_never_does():
    """Trying the unknown arm costs a little now and tells the models apart for ever.

    Any plan made at the prior, MMBI included, stays with the safe arm, and its posterior then never changes.
    """
    P = np.ones((2, 1, 2, 1))
    r = np.array([[[0.5, 1.0]], [[0.5, -0.2]]])
    belief = FiniteBelief(P, r, [0.4, 0.6], reward_signal="deterministic", initial=0)
    found = relaxation(belief, discount=0.95, nodes=1, scenarios=256, rng=np.random.default_rng(10))
    explored = 0.4 * (1 / 0.05) + 0.6 * (-0.2 + 0.95 * 0.5 / 0.05)
    assert r[:, 0, 1] @ belief.weights < 0.5
    assert explored > 0.5 / 0.05 + 3
    assert found.lower.estimate == pytest.approx(explored, abs=1e-3)
    assert found.lower.value > mmbi(belief, discount=0.95).value() + 2
    assert found.upper.value == pytest.approx(explored, abs=1e-3)


@pytest.mark.full
@pytest.mark.parametrize("law", ["skewed", "binary"])
def test_betting_bounds_fail_no_more_often_than_stated_even_when_looked_at_often(law):
    """400 sequences, watched after every doubling; binomial test with false alarm rate 1e-4."""
    rng = np.random.default_rng(12)
    alpha, wrong = 0.1, {"least": 0, "most": 0}
    for _ in range(400):
        x = rng.beta(0.2, 4.0, 1024) if law == "skewed" else (rng.random(1024) < 0.03).astype(float)
        mean = 0.2 / 4.2 if law == "skewed" else 0.03
        looks = [x[:n] for n in (16, 64, 256, 1024)]
        wrong["least"] += any(mean_at_least(y, low=0.0, high=1.0, alpha=alpha) > mean for y in looks)
        wrong["most"] += any(mean_at_most(y, low=0.0, high=1.0, alpha=alpha) < mean for y in looks)
    for failures in wrong.values():
        assert stats.binom(400, alpha).sf(failures - 1) > 1e-4


def test_more_scenarios_than_fit_are_refused():
    belief, _ = random_belief(np.random.default_rng(1), "known")
    with pytest.raises(ParameterError, match="scenarios is"):
        relaxation(belief, discount=0.9, scenarios=2**64 - 1, rng=0)


def test_how_likely_models_are_together_is_a_mean_over_nodes():
    belief, _ = random_belief(np.random.default_rng(5), "bernoulli")
    found = certifier(belief, core_nodes=50)
    graph, n = found.graph, found.n_nodes
    weights = np.zeros((n, belief.n_models))
    for x in range(n):
        held = slice(graph.begin[x], graph.begin[x + 1])
        weights[x, graph.model[held]] = graph.weight[held]
    assert found.together() == pytest.approx(weights.T @ weights / n, rel=1e-12)
