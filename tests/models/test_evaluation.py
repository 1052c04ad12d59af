"""Policies and their exact values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefbound import MDP, FiniteBelief, MemorylessPolicy, StationaryPolicy, evaluate
from beliefbound.base.errors import ParameterError, PolicyError
from support.oracles import policy_values, random_models, stationary_values


def instance(seed, n_models=3, n_states=4, n_actions=3):
    rng = np.random.default_rng(seed)
    p, r, w, _ = random_models(rng, n_models, n_states, n_actions)
    return rng, p, r, FiniteBelief(p, r, w, reward_signal="unobserved")


@given(seed=st.integers(0, 10**6), horizon=st.integers(1, 9), discount=st.floats(0.0, 1.0))
@settings(max_examples=40)
def test_finite_horizon_values_equal_the_definition(seed, horizon, discount):
    rng, p, r, belief = instance(seed)
    actions = rng.integers(3, size=(horizon, 4))
    truth = policy_values(p, r, actions, discount)
    assert np.allclose(evaluate(MemorylessPolicy(actions), belief, discount=discount), truth, atol=1e-12)
    stochastic = MemorylessPolicy(probabilities=np.eye(3)[actions])
    assert np.allclose(evaluate(stochastic, belief, discount=discount), truth, atol=1e-12)
    repeated = StationaryPolicy(actions[0])
    assert np.allclose(
        evaluate(repeated, belief, discount=discount, horizon=horizon),
        evaluate(repeated.repeat(horizon), belief, discount=discount),
        atol=1e-12,
    )


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.95, 0.9999])
def test_infinite_horizon_values_solve_the_bellman_equation(discount):
    rng, p, r, belief = instance(7)
    actions = rng.integers(3, size=4)
    truth = stationary_values(p, r, actions, discount)
    scale = 1.0 / (1.0 - discount)
    policy = StationaryPolicy(actions)
    assert np.allclose(evaluate(policy, belief, discount=discount), truth, rtol=0, atol=1e-12 * scale)
    for m in range(3):
        sparse = MDP(p[m], r[m]).to_sparse()
        assert np.allclose(evaluate(policy, sparse, discount=discount), truth[m], rtol=0, atol=2e-10 * scale)


def test_a_stochastic_policy_is_the_mixture_it_says():
    rng, p, r, belief = instance(3)
    chances = rng.dirichlet(np.ones(3), size=4)
    values = evaluate(StationaryPolicy(probabilities=chances), belief, discount=0.9)
    for m in range(3):
        chain = np.einsum("sa,sat->st", chances, p[m])
        reward = (chances * r[m]).sum(-1)
        assert np.allclose(values[m], reward + 0.9 * chain @ values[m], atol=1e-11)


def test_a_policy_must_fit():
    _, p, r, belief = instance(1)
    with pytest.raises(PolicyError, match="policy has 2 states, the model has 4"):
        evaluate(StationaryPolicy([0, 0]), belief, discount=0.9)
    with pytest.raises(PolicyError, match=r"policy action\[1\] is 3; ids run from 0 to 2"):
        evaluate(StationaryPolicy([0, 3, 0, 0]), belief, discount=0.9)
    with pytest.raises(ParameterError, match="horizon is 3 but the policy has 2 stages"):
        evaluate(MemorylessPolicy(np.zeros((2, 4), int)), belief, discount=0.9, horizon=3)
    with pytest.raises(ParameterError, match="discount is 1 and there is no horizon"):
        evaluate(StationaryPolicy([0, 0, 0, 0]), belief, discount=1.0)
    with pytest.raises(ParameterError, match="discount is 1.5"):
        evaluate(StationaryPolicy([0, 0, 0, 0]), belief, discount=1.5, horizon=2)
    with pytest.raises(ParameterError, match="horizon is 0; it must be at least 1"):
        evaluate(StationaryPolicy([0, 0, 0, 0]), belief, discount=0.9, horizon=0)
    closed = MDP(p[0], r[0], available=[[True, False, True]] * 4)
    with pytest.raises(PolicyError, match="takes action 1 in state 2, which does not offer it"):
        evaluate(StationaryPolicy([0, 0, 1, 0]), closed, discount=0.9)


def test_policies_are_frozen_values():
    assert StationaryPolicy([0, 1]) == StationaryPolicy(np.array([0, 1]))
    assert StationaryPolicy([0, 1]) != StationaryPolicy([1, 1])
    assert len({StationaryPolicy([0, 1]), StationaryPolicy([0, 1])}) == 1
    with pytest.raises(PolicyError, match="stochastic"):
        _ = StationaryPolicy(probabilities=[[0.5, 0.5]]).actions
    with pytest.raises(PolicyError, match=r"probabilities\[state 0\] sums to 0.9"):
        StationaryPolicy(probabilities=[[0.5, 0.4]])
    with pytest.raises(PolicyError, match=r"actions\[0\] is -1"):
        StationaryPolicy([-1])
    with pytest.raises(PolicyError, match="either actions or probabilities"):
        StationaryPolicy()
    with pytest.raises(AttributeError, match="frozen"):
        StationaryPolicy([0])._actions = None
    policy = MemorylessPolicy([[0, 1], [1, 1], [0, 0]])
    assert policy.drop(1).actions.tolist() == [[1, 1], [0, 0]]
    with pytest.raises(PolicyError, match="cannot drop 3 of 3"):
        policy.drop(3)
