"""Sparse rows: closed forms against enumeration of all supports, Bayes' rule, brackets, agents, logs and files."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln

import beliefbound as bb
from beliefbound.base.errors import BeliefError, ObservationError
from beliefbound.beliefs import SparseDirichletBelief
from beliefbound.beliefs.check import check_belief
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.envs import make_env

SIZES = 0.5 ** np.arange(1, 6)


def enumerated(counts, alpha, sizes):
    """`(P(k | N), predictive, log evidence)` of a row, by every support there is."""
    n = len(counts)
    by_size, chances, evidence = np.zeros(n), np.zeros(n), 0.0
    for k in range(1, n + 1):
        for support in itertools.combinations(range(n), k):
            inside = np.isin(np.arange(n), support)
            if (counts[~inside] > 0).any():
                continue
            own, total = counts[inside], counts.sum()
            log = gammaln(k * alpha) - gammaln(k * alpha + total) + (gammaln(alpha + own) - gammaln(alpha)).sum()
            weight = sizes[k - 1] / sizes.sum() / math.comb(n, k) * math.exp(log)
            by_size[k - 1] += weight
            chances[inside] += weight * (alpha + own) / (k * alpha + total)
            evidence += weight
    return by_size / evidence, chances / evidence, math.log(evidence)


def of_counts(counts, alpha=0.5, sizes=None):
    belief = SparseDirichletBelief(5, 1, concentration=alpha, sizes=sizes, rewards=bb.KnownRewards(np.zeros((5, 1))))
    seen = np.repeat(np.arange(5), counts)
    return belief if len(seen) == 0 else belief.update([0] * len(seen), [0] * len(seen), None, seen)


def test_published_numbers():
    """n = 5, α = ½, sizes halving."""
    belief = of_counts([3, 0, 1, 0, 0])
    expected = [0.6530453799, 0.0223593429, 0.2798765914, 0.0223593429, 0.0223593429]
    np.testing.assert_allclose(belief.predictive(0, 0), expected, atol=5e-11)
    expected = [0.0, 0.4882688649, 0.2976114986, 0.1464806595, 0.0676389770]
    np.testing.assert_allclose(belief.sizes_of(0, 0), expected, atol=5e-11)
    belief = of_counts([10, 0, 0, 0, 0])
    np.testing.assert_allclose(belief.predictive(0, 0), [0.9898300849] + [0.0025424788] * 4, atol=5e-11)
    expected = [0.8184235064, 0.1442038091, 0.0292294109, 0.0065547186, 0.0015885549]
    np.testing.assert_allclose(belief.sizes_of(0, 0), expected, atol=5e-11)


@pytest.mark.parametrize(
    "counts", [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [2, 1, 0, 4, 0], [1, 1, 1, 1, 1], [50, 0, 3, 0, 0]]
)
@pytest.mark.parametrize("alpha", [0.05, 0.5, 3.0])
def test_closed_forms_are_those_of_all_supports(counts, alpha):
    sizes = np.array([3.0, 0.0, 1.0, 0.5, 2.0])
    belief, blank = of_counts(counts, alpha, sizes), of_counts([0] * 5, alpha, sizes)
    by_size, chances, evidence = enumerated(np.array(counts), alpha, sizes)
    np.testing.assert_allclose(belief.sizes_of(0, 0), by_size, atol=1e-12)
    np.testing.assert_allclose(belief.predictive(0, 0), chances, rtol=1e-10)
    np.testing.assert_allclose(belief.mean().transitions[0, 0], chances, rtol=1e-10)
    seen = np.repeat(np.arange(5), counts)
    if len(seen):
        zeros = np.zeros(len(seen), int)
        assert blank.log_marginal_likelihood(zeros, zeros, None, seen) == pytest.approx(evidence, rel=1e-10)


def test_it_keeps_the_word_of_a_belief():
    belief = SparseDirichletBelief(3, 2, rewards=bb.BetaRewards(1.0, 2.0), terminal=[2], initial=0)
    check_belief(belief)
    check_belief(belief.update([0, 0, 1], [0, 1, 1], [1.0, 0.0, 1.0], [1, 0, 1]))


def test_drawn_supports_have_the_sizes_that_are_believed():
    """Of 20 000 draws each; false alarms below 1e-4 altogether."""
    belief = of_counts([3, 0, 1, 0, 0])
    rows = belief.sample(20_000, 1).transitions[:, 0, 0]
    chance = belief.sizes_of(0, 0)
    share = np.bincount((rows > 0.0).sum(axis=1), minlength=6)[1:] / len(rows)
    assert (np.abs(share - chance) <= 4.5 * np.sqrt(chance * (1 - chance) / len(rows)) + 1e-12).all()
    assert (rows[:, [0, 2]] > 0.0).all()
    tiny = of_counts([0] * 5, alpha=1e-4).sample(500, 2).transitions[:, 0, 0]
    np.testing.assert_allclose(tiny.sum(axis=1), 1.0)


def test_all_sizes_alike_as_large_as_can_be_is_a_dirichlet():
    sizes = np.array([1e-300, 0.0, 0.0, 0.0, 1.0])
    belief = of_counts([4, 0, 2, 0, 1], 0.7, sizes)
    np.testing.assert_allclose(belief.predictive(0, 0), (0.7 + np.array([4, 0, 2, 0, 1])) / (3.5 + 7), rtol=1e-12)


@pytest.mark.full
def test_its_brackets_hold_on_the_exact_value():
    """One coin with two sides, of which it is not known whether there are one or two: a step pays where it stays in 0.

    Two decisions in state 0: `stay` (an unknown row) or `go` for sure to state 1, which pays ½ for ever. By hand.
    """
    p = np.zeros((2, 2, 2), bool)
    p[0, 0] = True
    p[0, 1, 1] = p[1, :, 1] = True
    rewards = bb.KnownRewards(np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]]))
    belief = SparseDirichletBelief(2, 2, support=p, rewards=rewards, initial=0)
    # Stay pays 1 with chance ½. After a 0, the next is 0 with P(k=1)·1 + P(k=2)·(1.5/2).
    one = (2 / 3) * 0.5 / ((2 / 3) * 0.5 + (1 / 3) * 0.5)
    again = one + (1 - one) * 1.5 / 2
    exact = max(0.5 + 0.9 * (0.5 * max(again, 0.5) + 0.5 * 0.5), 0.5 + 0.9 * 0.5)
    assert belief.predictive(0, 0).tolist() == pytest.approx([0.5, 0.5])
    for seed in range(3):
        found = bb.bracket(belief, discount=0.9, horizon=2, effort=12, rng=seed, confidence=0.9999)
        assert found.lower.value <= exact + 1e-9
        assert found.upper.value >= exact - 1e-9
        assert found.width < 0.3


@pytest.mark.full
def test_agents_play_on_it_by_the_name_of_a_prior():
    environment = make_env("grid:3")
    agent = make_agent("exploit:prior=sparse-support", environment)
    assert play(agent, environment, seed=1, runs=2, steps=60).total.shape == (2,)


def test_a_log_conditions_it(tmp_path):
    from beliefbound.logs import log_of

    log = log_of([0, 0, 1, 2], [0, 1, 0, 1], [0.0, 1.0, 1.0, 0.0], [1, 2, 2, 0])
    prior = SparseDirichletBelief(3, 2, rewards=bb.BetaRewards())
    found = bb.plan_log(log, prior=prior, discount=0.9, n_models=60, time_limit=0.0, measure=False)
    assert found.policy is not None
    bb.save_belief(tmp_path / "belief.npz", prior.update(0, 1, 1.0, 2))
    back = bb.load_belief(tmp_path / "belief.npz")
    np.testing.assert_array_equal(back.mean().transitions, prior.update(0, 1, 1.0, 2).mean().transitions)
    np.testing.assert_array_equal(back.sample(3, 1).transitions, prior.update(0, 1, 1.0, 2).sample(3, 1).transitions)


def test_mistakes_are_answered():
    for knobs, message in (
        ({"concentration": 0.0}, "concentration"),
        ({"sizes": [1.0]}, "sizes has shape"),
        ({"sizes": [0.0, 1.0, 1.0]}, "the first above 0"),
        ({"sizes": [1.0, -1.0, 1.0]}, "none of them negative"),
    ):
        with pytest.raises(bb.BeliefboundError, match=message):
            SparseDirichletBelief(3, 2, **knobs)
    support = np.ones((3, 2, 3), bool)
    support[0, 0, 2] = False
    with pytest.raises((ObservationError, BeliefError)):
        SparseDirichletBelief(3, 2, support=support).update(0, 0, 0.0, 2)
