"""The approximate linear program: above the exact tree, below E max, and an estimate where it is no proof."""

import numpy as np
import pytest

import beliefbound as bb
from beliefbound.base.errors import ParameterError
from beliefbound.beliefs import FiniteBelief
from support.oracles import bayes_adaptive_value

pytestmark = pytest.mark.full


@pytest.mark.parametrize("seed", range(12))
def test_it_is_between_the_exact_tree_and_e_max(seed):
    rng = np.random.default_rng(seed)
    p, r = rng.dirichlet(np.full(2, 0.5), size=(3, 2, 2)), rng.random((2, 2))
    belief = FiniteBelief(p, r, initial=0)
    exact = bayes_adaptive_value(p, np.broadcast_to(r, (3, 2, 2)), np.full(3, 1 / 3), 0, 0.9, 4)
    found = bb.bounds.alp(belief, discount=0.9, horizon=4)
    assert found.proven
    assert found.value >= exact - 1e-12
    assert found.value <= bb.e_max(belief, discount=0.9, horizon=4).value + 1e-6
    assert found.bound.exact
    assert found.bound.value == found.value


def test_features_that_say_it_all_give_the_exact_value():
    """With the exact value of every belief as the feature, by the tree, nothing is left."""
    belief = FiniteBelief([[[[1.0]] * 2]] * 2, [[[1.0, 0.0]], [[0.0, 1.0]]], [0.5, 0.5], reward_signal="deterministic")

    def exact(left, states, weights):
        top = weights.max(axis=1)
        later = 2.0 - 0.5 ** (left - 1)  # 1 now and from then on, once it is known
        return np.stack([top + later - 1.0, np.full(len(top), later)], axis=1)

    found = bb.bounds.alp(belief, discount=0.5, horizon=3, features=exact)
    assert found.value == pytest.approx(0.5 + 0.5 + 0.25, abs=1e-8)


def test_without_a_horizon_where_observations_rule_models_out():
    """A hidden goal: three doors, one of which pays at every try; beliefs are finitely many."""
    r = np.eye(3)[:, None, :]
    belief = FiniteBelief(np.ones((3, 1, 3, 1)), r, reward_signal="deterministic")
    found = bb.bounds.alp(belief, discount=0.9)
    exact = (1 / 3) * 10 + (1 / 3) * 0.9 * 10 + (1 / 3) * 0.81 * 10
    assert found.proven
    assert exact - 1e-9 <= found.value <= 10.0 + 1e-6


def test_where_beliefs_are_too_many_it_is_an_estimate():
    rng = np.random.default_rng(0)
    belief = FiniteBelief(rng.dirichlet(np.ones(3), size=(4, 3, 2)), rng.random((3, 2)), initial=0)
    found = bb.bounds.alp(belief, discount=0.9, most=300, rng=1)
    assert not found.proven
    assert 0.0 <= found.violated <= 1.0
    with pytest.raises(ParameterError, match="estimate and no bound"):
        _ = found.bound


def test_features_without_a_solution_are_refused():
    belief = FiniteBelief([[[[1.0]]]], [[1.0]])
    with pytest.raises(ParameterError, match="add a constant"):
        bb.bounds.alp(belief, discount=0.5, horizon=2, features=lambda left, s, b: np.zeros((len(s), 1)))
