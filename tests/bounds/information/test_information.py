"""What information is worth: EVPI, EVPPI and EVSI against enumeration, and in cases where the answer is known."""

from itertools import product

import numpy as np
import pytest

from beliefbound import bracket, e_max, value_of_information
from beliefbound.base.errors import BeliefboundError, ParameterError
from beliefbound.beliefs import BetaRewards, DirichletBelief, FiniteBelief, KnownRewards, NormalRewards
from beliefbound.bounds import evpi, evppi, evsi
from beliefbound.bounds.information import finite
from support import oracles
from support.beliefs import SIGNALS, random_belief
from support.tiers import tiers

ROUNDING = 1e-7


def exact_value(P, r, mass, p0, horizon, signal):
    """`V*` of unnormalised weights."""
    held = mass > 0
    w = mass[held] / mass.sum()
    return mass.sum() * oracles.bayes_adaptive_value(P[held], r[held], w, p0, 0.9, horizon, signal)


@pytest.mark.parametrize("signal", tiers(SIGNALS, "bernoulli"))
def test_perfect_and_partial_information_of_a_finite_belief_by_enumeration(signal):
    """Every group of models that agree on a pair, valued by the exact tree."""
    belief, (P, r, w, p0) = random_belief(np.random.default_rng(1), signal, n_models=3, n_states=2)
    P = P.copy()
    now = exact_value(P, r, w, p0, 3, belief.reward_signal)
    task = {"discount": 0.9, "horizon": 3}
    found = evpi(belief, **task)
    truth = p0 @ e_max(belief, **task).values - now
    assert found.exact
    assert found.low - ROUNDING <= truth <= found.high + ROUNDING
    assert found.high - found.low < 1e-6
    ranked = value_of_information(belief, **task)
    for s, a in product(range(2), range(2)):
        parts = finite.split_by_laws(belief, [(s, a)])
        assert parts.sum(axis=0) == pytest.approx(w)
        truth = sum(exact_value(P, r, part, p0, 3, belief.reward_signal) for part in parts) - now
        assert ranked.low[s, a] - ROUNDING <= truth <= ranked.high[s, a] + ROUNDING
        assert ranked.high[s, a] - ranked.low[s, a] < 1e-6
    assert ranked.confidence == 1.0
    lows = [x.low for x in ranked.ranking()]
    assert lows == sorted(lows, reverse=True)


def fork():
    """Two rows that matter only together: state 0 leads to 1 or 2 by a row that three of four models share."""
    P = np.zeros((4, 3, 2, 3))
    P[:, 1:, :, 1:] = np.eye(2)[:, None]
    P[:, 0, 0] = [[0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    P[:, 0, 1] = [[0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]]
    return FiniteBelief(P, [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]], initial=0)


def test_groups_of_pairs_are_known_together():
    """One decision that counts: 1/2 without knowing, 3/4 with either row known, and no more with both."""
    task = {"discount": 1.0, "horizon": 2}
    for pairs in ((0, 0), (0, 1), [(0, 0), (0, 1)]):
        found = evppi(fork(), pairs, **task)
        assert (found.low, found.high) == pytest.approx((0.25, 0.25))
    assert evppi(fork(), (1, 0), **task).high == 0.0
    assert evpi(fork(), **task).low == pytest.approx(0.25)
    both = value_of_information(fork(), **task)
    assert both.best() == (0, 0)
    assert both.ranking()[0] == (0, 0, pytest.approx(0.25), pytest.approx(0.25))


@pytest.mark.parametrize("tries", [1, 2])
def test_tries_of_a_finite_belief_by_enumeration(tries):
    """Every sequence of outcomes; and the same with outcomes drawn, at a confidence of 1 − 1e-4."""
    belief, (P, r, w, p0) = random_belief(np.random.default_rng(3), "known", n_models=3, n_states=2)
    task = {"discount": 0.9, "horizon": 3}
    now = exact_value(P, r, w, p0, 3, "known")
    for s, a in ((0, 0), (1, 1)):
        after = 0.0
        for seen in product(range(2), repeat=tries):
            mass = w * np.prod(P[:, s, a, list(seen)], axis=1)
            after += exact_value(P, r, mass, p0, 3, "known") if mass.sum() else 0.0
        found = evsi(belief, (s, a), tries, **task)
        assert found.exact
        assert found.low - ROUNDING <= after - now <= found.high + ROUNDING
        assert found.high - found.low < 1e-6
    assert evsi(belief, (0, 0), 5, **task).high <= evppi(belief, (0, 0), **task).high + ROUNDING


def test_outcomes_that_are_too_many_are_drawn(monkeypatch):
    belief, _ = random_belief(np.random.default_rng(3), "known", n_models=3, n_states=2)
    task = {"discount": 0.9, "horizon": 3}
    listed = evsi(belief, (0, 0), 2, **task)
    monkeypatch.setattr(finite, "_MOST_OUTCOMES", 0)
    drawn = evsi(belief, (0, 0), 2, confidence=0.9999, rng=1, **task)
    assert not drawn.exact
    assert drawn.confidence == pytest.approx(0.9999)
    assert drawn.low <= listed.low + ROUNDING
    assert drawn.high >= listed.high - ROUNDING
    assert value_of_information(belief, tries=2, rng=1, **task).confidence == pytest.approx(0.95)


def test_a_bracket_narrows_what_is_known_without_it():
    belief, (P, r, w, p0) = random_belief(np.random.default_rng(5), "known", n_models=5)
    task = {"discount": 0.9, "horizon": 6}
    wide = evpi(belief, nodes=1, **task)
    given = bracket(belief, effort=20, rng=1, **task)
    narrow = evpi(belief, nodes=1, bounds=given, **task)
    assert wide.low <= narrow.low <= narrow.high <= wide.high
    with pytest.raises(ParameterError, match="bounds"):
        evpi(belief, bounds=3, **task)


def sure_arm(p):
    """One state; arm 0 pays 0.5 for sure, arm 1 pays 1 with a Beta probability: `E max` has a closed form."""
    return DirichletBelief(1, 2, concentration=1.0, rewards=BetaRewards([[1e9, p[0]]], [[1e9, p[1]]]), initial=0)


@pytest.mark.full
def test_information_about_a_dirichlet_belief_lies_inside_its_intervals():
    """One decision: `E max = E max(1/2, p)` with `p` uniform is 5/8, any plan is worth 1/2. Knowing the uncertain arm
    is worth 1/8, one try 1/12, knowing what is sure nothing."""
    task = {"discount": 0.9, "horizon": 1, "confidence": 0.99, "rng": 1}
    belief = sure_arm((1, 1))
    knobs = {"discount": 0.9, "horizon": 1}
    task |= {"bounds": bracket(belief, effort=6, confidence=0.995, rng=1, **knobs), "n_models": 2000}
    whole = evpi(belief, **task)
    assert whole.low <= 0.125 <= whole.high
    assert whole.high < 0.25
    assert whole.confidence == pytest.approx(0.995 - 0.0025)
    for found, truth in (
        (evppi(belief, (0, 1), **task), 1 / 8),
        (evsi(belief, (0, 1), 1, **task), 1 / 12),
        (evppi(belief, (0, 0), **task), 0.0),
    ):
        assert found.low <= truth <= found.high
        assert (found.low > 0.3 * truth) == (truth > 0.0)
        assert ("looks ahead" in found.method) == (found.low > 0.0)
    found = value_of_information(belief, **task)
    assert 0.05 < found.low[0, 1] <= 0.125 <= found.high[0, 1]
    assert found.low[0, 0] == 0.0
    assert found.high[0, 0] <= found.high[0, 1]
    assert 0.97 < found.confidence < 1.0


@pytest.mark.full
def test_what_is_left_to_be_known_lowers_the_worth_of_a_row():
    """Two uncertain arms and one try: perfect information is worth more than one arm, and the interval says so."""
    arms = DirichletBelief(1, 2, concentration=1.0, rewards=BetaRewards([[1.0, 1.0]], [[1.0, 1.0]]), initial=0)
    bounds = bracket(arms, discount=0.9, horizon=1, effort=8, rng=1)
    task = {"discount": 0.9, "horizon": 1, "rng": 2, "bounds": bounds}
    whole = evpi(arms, **task)
    assert whole.low <= 2 / 3 - 1 / 2 <= whole.high
    one = evppi(arms, (0, 0), draws=80, **task)
    assert 5 / 8 - 1 / 2 <= one.high < whole.high - 0.01  # E max(p, 1/2) − 1/2
    assert one.low <= 5 / 8 - 1 / 2
    both = evppi(arms, [(0, 0), (0, 1)], draws=80, **task)
    assert one.low < both.low <= 2 / 3 - 1 / 2 <= both.high


@pytest.mark.full
def test_lower_ends_of_worth_fail_no_more_often_than_they_say():
    """Twelve times at 80%, both ends together: more than 7 failures have probability 6e-4 if each fails with 0.2. The
    truth is 1/8."""
    belief, failed, above = sure_arm((1, 1)), 0, 0
    bounds = bracket(belief, effort=8, confidence=0.9, rng=1, discount=0.9, horizon=1)
    for seed in range(12):
        task = {"discount": 0.9, "horizon": 1, "confidence": 0.8, "rng": seed, "bounds": bounds, "n_models": 2000}
        found = evppi(belief, (0, 1), draws=12, **task)
        failed += not found.low <= 0.125 <= found.high
        above += found.low > 0.0
    assert failed <= 7
    assert above > 6


@pytest.mark.full
def test_normal_rewards_get_asymptotic_intervals_that_say_so():
    belief = DirichletBelief(1, 2, concentration=1.0, rewards=NormalRewards(0.0), initial=0)
    found = evpi(belief, discount=0.9, horizon=1, n_models=400, rng=9)
    assert found.asymptotic
    assert "asymptotic" in repr(found)
    assert found.high > 0.0


def test_slips():
    belief = fork()
    task = {"discount": 1.0, "horizon": 2}
    for wrong in ("a", (0,), (0.5, 1), [], [(0, 0, 0)], (0, 9), (7, 0)):
        with pytest.raises(BeliefboundError):
            evppi(belief, wrong, **task)
    with pytest.raises(ParameterError, match="one"):
        evsi(belief, [(0, 0), (0, 1)], 1, **task)
    for tries in (0, 10**9, "x"):
        with pytest.raises(BeliefboundError):
            evsi(belief, (0, 0), tries, **task)
    shut = DirichletBelief(2, 2, available=[[True, False], [True, True]], rewards=KnownRewards(0.0), initial=0)
    with pytest.raises(ParameterError, match="not available"):
        evppi(shut, (0, 1), discount=0.9)
