"""Sets of priors: what a linear program returns is put back into the set, exactly, before anything is bounded there."""

from fractions import Fraction

import numpy as np
import pytest

import beliefbound as bb
from beliefbound.bounds.prior_sets import prior_set
from support.tiers import tiers

SETS = ("all", "cvar:1", "cvar:0.7", "cvar:0.2", "cvar:0.01", "l1:2", "l1:0.5", "l1:0.1", "l1:1e-3", "l1:1e-6")


def exact_worst(kind, centre, x):
    """`min w·x` over a set, in rational arithmetic: weight moves to the least values, as much as is allowed."""
    name, _, level = kind.partition(":")
    x, centre = [Fraction(float(v)) for v in x], [Fraction(float(w)) for w in centre]
    total = sum(centre)
    centre = [w / total for w in centre]
    if name == "all":
        return min(x)
    if name == "cvar":
        left, value = Fraction(1), Fraction(0)
        for v, w in sorted(zip(x, centre, strict=True)):
            taken = min(left, w / Fraction(float(level)))
            left, value = left - taken, value + taken * v
        return value
    least = min(range(len(x)), key=lambda m: x[m])
    moved = min(Fraction(float(level)) / 2, 1 - centre[least])
    value = sum(w * v for w, v in zip(centre, x, strict=True)) + moved * x[least]
    for m in sorted(range(len(x)), key=lambda m: -x[m]):
        taken = min(moved, centre[m]) if m != least else Fraction(0)
        moved, value = moved - taken, value - taken * x[m]
    return value


@pytest.mark.parametrize("kind", tiers(SETS, "all", "cvar:0.2", "l1:0.5"))
def test_the_prior_of_a_game_is_in_the_set(kind):
    rng = np.random.default_rng(2)
    for _ in range(60):
        n_models = int(rng.integers(2, 9))
        centre = rng.dirichlet(np.ones(n_models))
        if rng.random() < 0.3:
            centre[rng.integers(n_models)] = 0.0
            centre /= centre.sum()
        set_ = prior_set(kind, centre)
        values = rng.normal(size=(int(rng.integers(1, 6)), n_models)) * 10.0 ** rng.integers(0, 10, size=n_models)
        _, prior = set_.play(values)
        assert set_.contains(prior)
        assert prior.sum() == pytest.approx(1.0, abs=1e-15)
        _, worst = set_.worst(values[0])
        outside = rng.dirichlet(np.ones(n_models))
        for given in (worst, outside, centre):
            assert set_.contains(set_.inside(given))
        assert Fraction(set_.least(values[0])) <= exact_worst(kind, centre, values[0])


def test_a_prior_that_is_in_the_set_stays_as_it_is():
    set_ = prior_set("l1:0.5", np.array([0.5, 0.25, 0.25]))
    inside = np.array([0.5, 0.375, 0.125])
    assert (set_.inside(inside) == inside).all()
    assert not set_.contains(np.array([1.0, 0.0, 0.0]))
    assert not set_.contains(np.array([0.5, 0.625, -0.125]))
    moved = set_.inside(np.array([1.0, 0.0, 0.0]))
    assert np.abs(moved - set_.centre).sum() == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("kind", tiers(SETS, "all", "cvar:0.2", "l1:0.5"))
def test_robust_ends_hold_for_every_set(kind):
    """One state and one action: the value under a prior is a sum, and its least over the set is known exactly."""
    rng = np.random.default_rng(5)
    for _ in range(6):
        n_models = int(rng.integers(2, 5))
        rewards = (rng.normal(size=n_models) * 10.0 ** rng.integers(0, 10, size=n_models))[:, None, None]
        belief = bb.FiniteBelief(
            np.ones((n_models, 1, 1, 1)), rewards, rng.dirichlet(np.ones(n_models)), reward_signal="unobserved"
        )
        found = bb.robust_bracket(belief, priors=kind, discount=0.5, effort=2, rng=1)
        truth = 2 * exact_worst(kind, belief.weights, rewards[:, 0, 0])
        assert Fraction(found.lower.value) <= truth <= Fraction(found.upper.value)
        assert prior_set(kind, belief.weights).contains(found.prior)
        assert found.width <= 1e-6 * np.abs(rewards).max()
