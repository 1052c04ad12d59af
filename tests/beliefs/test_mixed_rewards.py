"""Rewards known for some pairs and learnt for others: exact where they can be, and refused where they contradict."""

import numpy as np
import pytest

from beliefbound import DirichletBelief, DirichletRewards, bracket, make_agent, make_env
from beliefbound.base.errors import BeliefError, ObservationError
from beliefbound.beliefs.rewards import MixedRewards

KNOWN = [[[0.3, 1.0], [np.nan, np.nan]], [[0.6, 0.6], [0.2, 0.0]]]


def belief():
    mixed = MixedRewards(KNOWN, DirichletRewards([0.0, 2.0], [0.7, 0.3]))
    return DirichletBelief(2, 2, concentration=1.0, rewards=mixed, initial=0)


def exact(believed, s, discount, horizon):
    """The Bayes-optimal value, every history: next states and, where it is learnt, rewards."""
    if horizon == 0:
        return 0.0
    columns, best = believed.rewards.columns(), -np.inf
    for a in range(2):
        chances = columns.counts[:, s, a] / columns.counts[:, s, a].sum()
        total = 0.0
        for t, p in enumerate(believed.predictive(s, a)):
            for k in np.flatnonzero(chances):
                paid = columns.paid[k, s, a, t]
                after = believed.update(s, a, paid, t)
                total += p * chances[k] * (paid + discount * exact(after, t, discount, horizon - 1))
        best = max(best, total)
    return best


@pytest.mark.full
def test_the_bracket_encloses_the_value_of_every_history():
    truth = exact(belief(), 0, 0.9, 3)
    found = bracket(belief(), discount=0.9, horizon=3, effort=8, rng=4)
    assert found.lower.value <= truth <= found.upper.value
    assert found.relative_gap < 0.05


def test_sampled_models_pay_what_is_known():
    drawn = belief().sample(200, 1)
    p = drawn.transitions
    assert np.allclose(drawn.rewards[:, 0, 0], p[:, 0, 0] @ [0.3, 1.0])
    assert np.allclose(drawn.rewards[:, 1, 0], 0.6)
    learnt = drawn.rewards[:, 0, 1]
    assert learnt.std() > 0.3
    assert learnt.mean() == pytest.approx(0.6, abs=5 * learnt.std() / np.sqrt(200))
    assert belief().reward_range == (0.0, 2.0)


def test_what_contradicts_is_refused():
    with pytest.raises(ObservationError, match="known to be"):
        belief().update(1, 0, 5.0, 0)
    with pytest.raises(ObservationError, match="none of the values"):
        belief().update(0, 1, 1.0, 0)
    half = np.array(KNOWN)
    half[0, 0, 0] = np.nan
    for known, message in ((half, "some next states only"), (np.zeros((3, 3)), "has shape"), ([1.0], "has shape")):
        with pytest.raises(BeliefError, match=message):
            DirichletBelief(2, 2, rewards=MixedRewards(known, DirichletRewards([0.0, 1.0])))
    with pytest.raises(BeliefError, match="learns finitely many"):
        MixedRewards(KNOWN, 3.0)


@pytest.mark.full
def test_an_agent_learns_with_them():
    chain = make_env("chain")
    known = np.array(chain.mdp.rewards)
    known[4] = np.nan
    prior = DirichletBelief(5, 2, rewards=MixedRewards(known, DirichletRewards([0.0, 2.0, 10.0])))
    agent = make_agent("mcbrl:n=2", chain, belief=prior)
    agent.reset(1)
    assert agent.act(0) in (0, 1)
    agent.observe(4, 1, 10.0, 4)
    assert agent.act(4) in (0, 1)
