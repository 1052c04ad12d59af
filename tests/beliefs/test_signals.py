"""What a step shows of the reward: updates, bounds and policies agree on it, whatever the signal."""

import numpy as np
import pytest
import scipy.sparse as sp

from beliefbound import FiniteBelief
from beliefbound.base.errors import BeliefError, ObservationError
from beliefbound.beliefs import FiniteValues
from beliefbound.beliefs.amounts import merged
from beliefbound.bounds.bracket import bracket
from beliefbound.bounds.finite.outcomes import outcome_rows
from beliefbound.models import ModelSet
from support.oracles import bayes_adaptive_value, random_models

SURE = {"target_gap": 1e-9, "effort": 1000}


def two_stage(first):
    """State 0 leads to state 1 and pays `first[m]`; there the right action, the model's own, pays 2."""
    p = np.zeros((2, 2, 2, 2))
    p[:, :, :, 1] = 1.0
    r = np.zeros((2, 2, 2))
    r[:, 0] = np.array(first)[:, None]
    r[0, 1, 0] = r[1, 1, 1] = 2.0
    return p, r


def test_amounts_equal_up_to_rounding_are_one_amount_for_updates_bounds_and_policies():
    p, r = two_stage([0.3, 0.1 + 0.2])
    assert r[0, 0, 0] != r[1, 0, 0]
    belief = FiniteBelief(p, r, reward_signal="deterministic", initial=0)
    for seen in (0.3, 0.1 + 0.2):
        assert belief.update(0, 0, seen, 1).weights.tolist() == [0.5, 0.5]
    found = bracket(belief, discount=1.0, horizon=2, rng=np.random.default_rng(0), **SURE)
    assert found.lower.value == pytest.approx(1.3)
    assert found.upper.value == pytest.approx(1.3)  # 2.3 if the two were told apart
    rows = outcome_rows(belief)
    assert rows.first[0, 1] - rows.first[0, 0] == 1
    p, r = two_stage([0.3, 0.3 + 1e-6])
    told = FiniteBelief(p, r, reward_signal="deterministic", initial=0)
    assert told.update(0, 0, 0.3, 1).weights.tolist() == [1.0, 0.0]
    found = bracket(told, discount=1.0, horizon=2, rng=np.random.default_rng(0), **SURE)
    assert found.lower.value == pytest.approx(2.3, abs=1e-5)


def test_a_restricted_signal_keeps_what_was_decided_for_all_models():
    p, r = two_stage([0.3, 0.1 + 0.2])
    belief = FiniteBelief(p, r, reward_signal="deterministic", initial=0)
    part = belief.signal.select(np.array([1]))
    assert part.shown(0, 0, np.array([1]))[0][0] == 0.3
    assert part.likelihood(0, 0, 0.3, 1).tolist() == [1.0]
    assert part.likelihood(0, 0, 0.4, 1).tolist() == [0.0]


def test_merging_is_within_a_pair_and_keeps_what_differs():
    x = np.array([[[0.3, 5.0, 0.1 + 0.2], [0.1 + 0.2, 1.0, 2.0]]])
    assert merged(x).tolist() == [[[0.3, 5.0, 0.3], [0.1 + 0.2, 1.0, 2.0]]]


def test_bernoulli_rewards_on_arrival_tell_what_their_mean_does_not():
    """Both models pay half the time; one on arrival in state 1, the other in state 2. So one step tells all."""
    p = np.zeros((2, 3, 2, 3))
    p[:, 0, :, 1] = p[:, 0, :, 2] = 0.5
    p[:, 1:, :, 0] = 1.0
    paid = np.zeros((2, 3, 2, 3))
    paid[0, 0, :, 1] = paid[1, 0, :, 2] = 1.0
    paid[0, 1:, 0, 0] = paid[1, 1:, 1, 0] = 1.0
    belief = FiniteBelief(p, paid, reward_signal="bernoulli", initial=0)
    assert belief.rewards[:, 0, 0].tolist() == [0.5, 0.5]
    assert belief.update(0, 0, 1.0, 1).weights.tolist() == [1.0, 0.0]
    exact = bayes_adaptive_value(p, belief.rewards, belief.weights, 0, 1.0, 2, "bernoulli", arrival=paid)
    assert exact == 1.5
    found = bracket(belief, discount=1.0, horizon=2, rng=np.random.default_rng(0), **SURE)
    assert (found.lower.value, found.upper.value) == pytest.approx((1.5, 1.5))


@pytest.mark.parametrize("signal", ["bernoulli", "known", "finite"])
def test_brackets_close_on_the_exact_tree(signal):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p, _, w, p0 = random_models(rng, 3, 2, 2)
        knobs = {"initial": p0}
        if signal == "finite":
            told = rng.dirichlet(np.ones(3), size=(3, 2, 2))
            belief = FiniteBelief(p, None, w, reward_signal=FiniteValues([0.0, 0.5, 2.0], told), **knobs)
            assert np.allclose(belief.rewards, told @ [0.0, 0.5, 2.0])
        else:
            told = rng.random((3, 2, 2, 2))
            if signal == "known":
                told = np.repeat(told[:1], 3, axis=0)
            belief = FiniteBelief(p, told, w, reward_signal=signal, **knobs)
            assert np.allclose(belief.rewards, (p * told).sum(-1))
        exact = bayes_adaptive_value(p, belief.rewards, w, p0, 0.9, 3, signal, arrival=told)
        found = bracket(belief, discount=0.9, horizon=3, rng=rng, **SURE)
        assert (found.lower.value, found.upper.value) == pytest.approx((exact, exact), rel=1e-6)


def test_known_rewards_on_arrival_can_be_updated_sampled_and_reweighted():
    rng = np.random.default_rng(3)
    p, _, w, _ = random_models(rng, 3, 2, 2)
    belief = FiniteBelief(p, np.broadcast_to(rng.random((2, 2, 2)), (3, 2, 2, 2)), w)
    after = belief.update(0, 1, None, 1)
    assert np.allclose(after.weights, w * p[:, 0, 1, 1] / (w @ p[:, 0, 1, 1]))
    assert belief.sample(4, rng).reward_signal == "known"
    assert belief.reweight([1.0, 0.0, 0.0]).signal is belief.signal
    impossible = np.array(p)
    impossible[0, 0, 0] = [1.0, 0.0]
    paid = np.ones((3, 2, 2, 2))
    paid[0, 0, 0, 1] = 7.0  # where model 0 never gets: not seen, so not a difference
    assert FiniteBelief(impossible, paid, w).signal.on_arrival[0, 0, 0, 1] == 1.0
    paid[0, 0, 0, 0] = 7.0
    with pytest.raises(BeliefError, match=r"rewards\[model 1, state 0, action 0\] is 1.0 but model 0 has 7.0"):
        FiniteBelief(impossible, paid, w)


def test_a_finite_set_of_values_is_learnt_by_its_chances():
    values, chances = [0.0, 1.0, 5.0], np.array([[[[0.5, 0.5, 0.0]]], [[[0.5, 0.0, 0.5]]]])
    belief = FiniteBelief([[[[1.0]]]] * 2, None, reward_signal=FiniteValues(values, chances))
    assert belief.reward_signal == "finite"
    assert belief.rewards.ravel().tolist() == [0.5, 2.5]
    assert belief.update(0, 0, 0.0, 0).weights.tolist() == [0.5, 0.5]
    assert belief.update(0, 0, 5.0, 0).weights.tolist() == [0.0, 1.0]
    with pytest.raises(ObservationError, match="reward 3, next state 0 has probability 0"):
        belief.update(0, 0, 3.0, 0)
    with pytest.raises(ObservationError, match="no reward was given"):
        belief.update(0, 0, None, 0)
    with pytest.raises(BeliefError, match="rewards follow from the finite signal"):
        FiniteBelief([[[[1.0]]]] * 2, [[1.0]], reward_signal=FiniteValues(values, chances))
    with pytest.raises(BeliefError, match=r"values have shape \(2,\)"):
        FiniteValues([0.0, 1.0], chances)
    with pytest.raises(BeliefError, match=r"chances\[model 0, state 0, action 0\] sums to 0.75"):
        FiniteValues([0.0, 1.0], [[[[0.5, 0.25]]]])


def test_a_sparse_set_is_read_as_it_is(monkeypatch):
    rng = np.random.default_rng(5)
    p, r, w, _ = random_models(rng, 3, 6, 2, sparsity=0.6)
    sparse = [sp.csr_array(x.reshape(12, 6)) for x in p]
    for signal in ("unobserved", "deterministic", "bernoulli"):
        dense = FiniteBelief(p, r, w, reward_signal=signal)
        rows, belief = outcome_rows(dense), FiniteBelief(sparse, r, w, reward_signal=signal)
        with monkeypatch.context() as patch:
            patch.setattr(ModelSet, "dense", None)
            patch.setattr(sp.csr_array, "toarray", None)
            patch.setattr(sp.coo_array, "toarray", None)
            for ours, theirs in zip(outcome_rows(belief), rows, strict=True):
                assert np.array_equal(ours, theirs, equal_nan=True)
            s, a, t = (int(i) for i in np.argwhere((p > 0).all(axis=0))[0])
            seen = r[0, s, a] if signal == "deterministic" else 1.0
            assert np.allclose(belief.update(s, a, seen, t).weights, dense.update(s, a, seen, t).weights)
            assert np.allclose(belief.predictive(s, a), w @ p[:, s, a])
