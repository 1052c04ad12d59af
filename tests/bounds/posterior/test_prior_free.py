"""A bound without a prior: its inner problem, its fixed point, and how often it is false."""

import math

import numpy as np
import pytest
import scipy.optimize as optimize

from beliefbound.bounds.posterior.prior_free import Sets, prior_free
from beliefbound.logs import log_of
from beliefbound.planning.safe.frequencies import Frequencies


def rows_of(*counts):
    first = np.cumsum([0, *(len(c) for c in counts)])[:-1]
    return first, np.concatenate([np.asarray(c, dtype=float) for c in counts])


@pytest.mark.parametrize("seed", range(10))
def test_the_least_mean_is_that_of_a_convex_programme(seed):
    """Against SLSQP on chances of what was seen and of one outcome that was not."""
    rng = np.random.default_rng(seed)
    counts, values = rng.integers(1, 20, 3).astype(float), rng.random(3) + 0.2 * (seed % 2)
    sets = Sets.of(*rows_of(counts), 10, 0.01)
    share, reach = counts / counts.sum(), float(sets.reach[0])
    near = {"type": "ineq", "fun": lambda p: reach - share @ np.log(share / np.maximum(p[:3], 1e-12))}
    whole = {"type": "eq", "fun": lambda p: p.sum() - 1.0}
    start = np.append(0.9 * share, 0.1)
    solved = optimize.minimize(
        lambda p: p[:3] @ values, start, constraints=[whole, near], bounds=[(1e-9, 1.0)] * 4, tol=1e-12
    )
    found = float(sets.least_mean(values, 0.0)[0])
    assert found == pytest.approx(solved.fun, abs=1e-6)
    chances, lost = sets.worst_chances(values, 0.0)
    assert chances.sum() + lost[0] == pytest.approx(1.0, abs=1e-9)


def test_the_bet_sums_to_one_over_everything_that_can_be_seen():
    """`exp(−n reach + Σ N log share) · error⁻¹` is the bet's probability of a sequence; over all 3³ sequences of three
    outcomes it sums to 1, so that Markov's inequality applies."""
    total = 0.0
    for sequence in np.ndindex(3, 3, 3):
        counts = np.unique(sequence, return_counts=True)[1].astype(float)
        sets = Sets.of(*rows_of(counts), 3, 1e-9)  # so small an error that no reach is cut at 0
        likely = float(counts @ np.log(counts / counts.sum()))
        total += math.exp(likely - 3.0 * float(sets.reach[0]) + math.log(1e9))
    assert total == pytest.approx(1.0, abs=1e-9)


def uniform(log):
    S, A = log.n_states, log.n_actions
    return Frequencies.of(log, np.full((S, A), 1.0 / A), np.ones((S, A), dtype=bool), log.terminal)


def test_it_is_below_the_value_and_rises_to_it():
    """One state that pays 1 for ever: from nothing to what it is worth, as the log grows; a policy that does what was
    never tried is worth the least."""
    found = []
    for n in (10, 1000, 100_000):
        log = log_of([0] * n, [0] * n, [1.0, 0.0] * (n // 2), [0] * n, n_states=1, n_actions=2)
        data = uniform(log)
        tell = {"discount": 0.9, "horizon": None, "error": 0.05}
        found.append(prior_free(data, log.starts, np.array([[1.0, 0.0]]), **tell).value)
        never = prior_free(data, log.starts, np.array([[0.0, 1.0]]), **tell)
        assert never.vacuous
        assert never.least == 0.0
    assert 0.0 <= found[0] < found[1] < found[2] < 5.0
    assert found[2] > 4.5


def test_stages_agree_with_for_ever():
    """The bound of very many decisions is that of all of them."""
    rng = np.random.default_rng(0)
    s, a, t = rng.integers(0, 3, 3000), rng.integers(0, 2, 3000), rng.integers(0, 3, 3000)
    log = log_of(s, a, 1.0 * (t == 2), t, n_states=3, n_actions=2)
    data, policy = uniform(log), np.array([[1.0, 0.0], [0.3, 0.7], [0.0, 1.0]])
    forever = prior_free(data, log.starts, policy, discount=0.9, horizon=None, error=0.05)
    stages = prior_free(data, log.starts, policy, discount=0.9, horizon=300, error=0.05)
    assert 0.0 < forever.value == pytest.approx(stages.value, abs=1e-6)
    known = prior_free(data, log.starts, policy, discount=0.9, horizon=None, error=0.05, given=log.initial)
    assert known.value > forever.value


@pytest.mark.full
def test_it_is_hardly_ever_false_even_for_the_policy_that_looks_best():
    """Two hundred logs of random chains, the policy chosen on the log that is judged: at most 5% may be false, and none
    is, since all rows, all policies and the starts are covered at once (11 or more of 200 would come with 0.4%)."""
    false = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows = rng.dirichlet(np.full(3, 0.5), (3, 2))
        start = rng.dirichlet(np.ones(3))
        s, steps = 0, []
        for k in range(400):
            s = int(rng.choice(3, p=start)) if k % 20 == 0 else s
            a = int(rng.integers(2))
            t = int(rng.choice(3, p=rows[s, a]))
            steps.append((k // 20, s, a, t))
            s = t
        episode, s, a, t = np.array(steps).T
        log = log_of(s, a, 1.0 * (t == 0), t, episodes=episode, n_states=3, n_actions=2)
        data = uniform(log)
        share = data.model()[0][:3, :, :3]
        policy = np.eye(2)[share[:, :, 0].argmax(axis=1)]
        chain, paid = np.einsum("sa,sat->st", policy, rows), np.einsum("sa,sa->s", policy, rows[:, :, 0])
        truth = start @ np.linalg.solve(np.eye(3) - 0.9 * chain, paid)
        false += truth < prior_free(data, log.starts, policy, discount=0.9, horizon=None, error=0.05).value
    assert false <= 10
