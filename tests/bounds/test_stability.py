"""How far weights may move: what was found stays found as the search goes on, and nothing is said where nothing is."""

import numpy as np
import pytest

from beliefbound import bracket
from beliefbound.bounds.decision import stability_of, widest
from beliefbound.bounds.finite import first_actions
from support.beliefs import random_belief


def six_models():
    rng = np.random.default_rng(4)
    for _ in range(4):
        belief, _ = random_belief(rng, "bernoulli", n_models=6, n_states=4, n_actions=3)
    return belief.reweight(np.full(6, 1 / 6))


def spread(found):
    return found[:, 1] - found[:, 0]


@pytest.mark.full
def test_a_long_search_keeps_the_intervals():
    """The graph has so many beliefs by then that one sweep less than a hundred must do."""
    found = bracket(six_models(), discount=0.97, initial=0, effort=80, rng=1).decision
    assert found.best is not None
    assert (spread(found.stability) > 0.01).all()
    assert (found.stability[:, 0] < 1 / 6).all()
    assert (found.stability[:, 1] > 1 / 6).all()


@pytest.mark.parametrize("effort", [2, 8, pytest.param(16, marks=pytest.mark.full)])
def test_intervals_prove_something_or_are_not_reported(effort, monkeypatch):
    """Where no policy of a graph can be valued, alpha vectors and the first policy are left, or nothing is."""
    rng = np.random.default_rng(5)
    for limit in (None, 0.0):
        if limit is not None:
            monkeypatch.setattr(first_actions, "_MOST_WORK", limit)
            monkeypatch.setattr(first_actions, "_SHARE", limit)
        for _ in range(2):
            belief, (_, _, w, _) = random_belief(rng, "bernoulli", n_models=4)
            decision = bracket(belief, discount=0.9, initial=0, effort=effort, rng=1).decision
            if decision.stability is not None:
                assert decision.best is not None
                inside = (w > 0.0) & (w < 1.0)
                assert (spread(decision.stability)[inside] > 0.0).all()
                assert ((decision.stability[:, 0] <= w) & (w <= decision.stability[:, 1])).all()


def test_a_policy_that_proves_nothing_at_the_weights_gives_no_intervals():
    weights = np.array([0.5, 0.5])
    known = without = np.zeros((2, 1))
    assert stability_of(weights, np.array([1.0, 1.0]), np.array([1.5]), known, without) is None
    some = stability_of(weights, np.array([1.0, -0.5]), np.array([0.1]), known, without)
    more = stability_of(weights, np.array([-0.2, 1.0]), np.array([0.1]), known, without)
    both = widest([some, None, more])
    assert (both[:, 0] == np.minimum(some[:, 0], more[:, 0])).all()
    assert (both[:, 1] == np.maximum(some[:, 1], more[:, 1])).all()
    assert widest([None, None]) is None
