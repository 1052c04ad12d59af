"""Pairs that share parameters learn together."""

import numpy as np
import pytest
from scipy.special import betaln

from beliefbound.base.errors import BeliefError, ObservationError
from beliefbound.beliefs import BetaRewards, DirichletBelief, DirichletRewards, KnownRewards
from beliefbound.beliefs.compiled import posterior_of
from beliefbound.kernels.posterior import draw, expected, forget, learn
from beliefbound.kernels.random import stream_from


def chain(row, concentration=((1.0, 1.0),), **knobs):
    """Chain: forward moves on or, slipping, to the start; back the other way round. Rewards are paid on arrival."""
    arrive = np.zeros((5, 2, 2), dtype=int)
    onward = np.minimum(np.arange(5) + 1, 4)
    arrive[:, 0, 0] = arrive[:, 1, 1] = onward
    paid = np.zeros((5, 2, 5))
    paid[:, :, 0], paid[4, :, 4] = 2.0, 10.0
    return DirichletBelief.tied(row, arrive, concentration, rewards=KnownRewards(paid), initial=0, **knobs)


TIED = np.zeros((5, 2), dtype=int)
SEMI_TIED = np.tile([0, 1], (5, 1))


def slips(transitions):
    """Chance of slipping at every pair, `[…,s,a]`."""
    s, onward = np.arange(5), np.minimum(np.arange(5) + 1, 4)
    return np.stack([transitions[..., s, 0, 0], transitions[..., s, 1, onward]], axis=-1)


def test_sampled_models_slip_the_same_everywhere():
    sample = chain(TIED).sample(50, 0)
    slip = slips(sample.transitions)
    assert (slip == slip[:, :1, :1]).all()
    assert len(np.unique(slip)) == 50
    assert np.allclose(sample.rewards[:, 4, 0], 2 * slip[:, 0, 0] + 10 * (1 - slip[:, 0, 0]))
    semi = slips(chain(SEMI_TIED, np.ones((2, 2))).sample(50, 0).transitions)
    assert (semi == semi[:, :1]).all()
    assert (semi[:, 0, 0] != semi[:, 0, 1]).all()


def test_what_is_seen_at_one_pair_moves_all_that_share_it():
    belief = chain(TIED).update([0, 0, 3], [0, 0, 1], None, [1, 0, 4])  # one success, two slips
    assert np.allclose(slips(belief.mean().transitions), 3 / 5)
    assert belief.predictive(2, 1).tolist() == pytest.approx([2 / 5, 0.0, 0.0, 3 / 5, 0.0])
    semi = chain(SEMI_TIED, np.ones((2, 2))).update([0, 0, 3], [0, 0, 1], None, [1, 0, 4])
    assert np.allclose(slips(semi.mean().transitions), [1 / 2, 2 / 3])
    assert semi.tied_to(2, 1).tolist() == [[s, 1] for s in range(5)]
    with pytest.raises(ObservationError, match="state 1, action 0, next state 4 is outside"):
        belief.update(1, 0, None, 4)


def test_the_evidence_is_beta_binomial():
    rng = np.random.default_rng(1)
    belief, s, seen = chain(TIED, [[0.7, 1.3]]), 0, []
    for _ in range(40):
        a, slip = int(rng.integers(2)), bool(rng.random() < 0.2)
        t = min(s + 1, 4) if (a == 0) != slip else 0
        seen.append((s, a, slip, t))
        s = t
    states, actions, slipped, arrivals = (np.array(x) for x in zip(*seen, strict=True))
    n, k = len(seen), int(slipped.sum())
    exact = betaln(0.7 + n - k, 1.3 + k) - betaln(0.7, 1.3)
    assert belief.log_marginal_likelihood(states, actions, None, arrivals) == pytest.approx(exact)
    semi = chain(SEMI_TIED, np.ones((2, 2)))
    exact = 0.0
    for a in range(2):
        won, lost = int((~slipped[actions == a]).sum()), int(slipped[actions == a].sum())
        exact += betaln(1 + won, 1 + lost) - betaln(1, 1)
    assert semi.log_marginal_likelihood(states, actions, None, arrivals) == pytest.approx(exact)


def test_credible_intervals_are_those_of_the_shared_parameter():
    low, high = chain(TIED, [[8.0, 2.0]]).credible_intervals(0.9)
    assert np.allclose(slips(low), slips(low)[0, 0])
    assert (low[:, :, 0][:, 0] < high[:, :, 0][:, 0]).all()
    assert (high[2, 0, [1, 2, 4]] == 0.0).all()


@pytest.mark.full
def test_the_compiled_posterior_is_the_belief():
    belief = chain(TIED, [[3.0, 1.0]])
    posterior = posterior_of(belief)
    learn(posterior, 2, 1, 2.0, 0)
    after, p = belief.update(2, 1, None, 0).mean(), np.empty(5)
    for s in range(5):
        for a in range(2):
            assert expected(posterior, s * 2 + a, p) == pytest.approx(after.rewards[s, a])
            assert p == pytest.approx(after.transitions[s, a])
    learn(posterior, 2, 1, 2.0, 1)  # cannot happen: teaches nothing
    assert posterior.alpha.tolist() == [[4.0, 1.0]]
    forget(posterior)
    p, r = np.empty((5, 2, 5, 200)), np.empty((5, 2, 200))
    draw(posterior, stream_from(np.random.default_rng(0)), p, r)
    slip = slips(np.moveaxis(p, -1, 0))
    assert (slip == slip[:, :1, :1]).all()
    assert abs(slip[:, 0, 0].mean() - 0.25) < 4.5 * np.sqrt(0.25 * 0.75 / 5 / 200)
    assert np.allclose(r[4, 0], 10 - 8 * slip[:, 4, 0])


def test_terminal_states_and_unavailable_actions_have_no_part_in_what_is_shared():
    available = np.ones((5, 2), bool)
    available[2, 1] = False
    belief = chain(TIED, terminal=[4], available=available)
    mean = belief.mean()
    assert (mean.transitions[4, :, 4] == 1.0).all()
    assert (mean.rewards[4] == 0.0).all()
    assert mean.transitions[2, 1].sum() == 0.0
    assert np.allclose(belief.update(3, 0, None, 4).mean().transitions[0, 0, 1], 2 / 3)
    with pytest.raises(ObservationError, match="outside"):
        belief.update(2, 1, None, 0)
    with pytest.raises(BeliefError, match="action 1 is not available in state 2"):
        posterior_of(belief)


def test_learnt_rewards_stay_with_their_pair():
    arrive = [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]
    for rewards in (BetaRewards(1, 1), DirichletRewards([0.0, 1.0])):
        belief = DirichletBelief.tied(np.zeros((2, 2), int), arrive, [[1.0, 1.0]], rewards=rewards)
        after = belief.update(0, 0, 1.0, 0).mean()
        assert after.rewards.ravel().tolist() == pytest.approx([2 / 3, 0.5, 0.5, 0.5])
        assert after.transitions[1, 1].tolist() == pytest.approx([2 / 3, 1 / 3])


@pytest.mark.parametrize(
    ("row", "arrive", "concentration", "message"),
    [
        ([[0], [0]], [[[0, 0]], [[1, 0]]], [[1.0, 1.0]], "outcomes 0 and 1 of state 0, action 0 both lead to state 0"),
        ([[0], [1]], [[[0, 1]], [[1, 0]]], [[1.0, 1.0]], r"row\[1, 0\] is 1; ids run from 0 to 0"),
        ([[0], [0]], [[[0, 2]], [[1, 0]]], [[1.0, 1.0]], r"arrive\[0, 0, 1\] is 2"),
        ([[0], [0]], [[[0, -1]], [[1, 0]]], [[1.0, 1.0]], "say where it leads"),
        ([[0], [0]], [[[0, 1]], [[1, 0]]], [[1.0, -1.0]], r"concentration\[row 0, outcome 1\] is -1.0"),
        ([[0], [0]], [[[0, 1]], [[1, 0]]], [[0.0, 0.0]], "row 0 has no possible outcome"),
        ([[0], [0]], [[[0, 1]], [[1, 0]]], [[np.nan, 0.0]], "is nan"),
        ([[0], [0]], [[0, 1], [1, 0]], [[1.0, 1.0]], "expected .state, action. and"),
        ([0, 0], [[[0, 1]], [[1, 0]]], [[1.0, 1.0]], r"row has shape \(2,\)"),
    ],
)
def test_bad_ties_are_named(row, arrive, concentration, message):
    with pytest.raises(BeliefError, match=message):
        DirichletBelief.tied(row, arrive, concentration)


def test_an_outcome_that_a_row_does_not_have_leads_nowhere():
    belief = DirichletBelief.tied(
        [[0], [1]], [[[0, 1]], [[1, -1]]], [[1.0, 1.0], [1.0, 0.0]], rewards=KnownRewards(0.0)
    )
    assert belief.mean().transitions[1, 0].tolist() == [0.0, 1.0]
