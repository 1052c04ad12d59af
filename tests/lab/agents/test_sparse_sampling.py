"""Sparse sampling: values and choices of its tree."""

import numpy as np
import pytest

from support.every_agent import EveryAgent
from support.searches import SAFE, TOSS, check_a_search_leaves_the_belief_as_it_was, check_exact_tree, searched


class TestSparseSampling(EveryAgent):
    name = "sparse-sampling"
    small = "sparse-sampling:samples=3,depth=5"
    mistakes = (("sparse-sampling:samples=none", "samples is 'none'"),)


def test_sparse_sampling_values_and_chooses_as_it_should():
    state = searched("sparse-sampling:samples=20000,depth=4")
    np.testing.assert_allclose(state.tree.q[0], [TOSS, SAFE], atol=0.02)
    assert abs(state.tree.tries[0, 0] - 10000) < 4 * np.sqrt(5000)  # Thompson sampling at the root: false alarms 6e-5
    # Untried actions have the expected MDP's value, and one decision is worth its reward.
    state = searched("sparse-sampling:samples=1,depth=4")
    (untried,) = np.flatnonzero(state.tree.tries[0] == 0)
    assert state.tree.q[0, untried] == pytest.approx(SAFE)


def test_values_of_rewards_on_arrival_are_those_of_the_exact_tree():
    check_exact_tree("sparse-sampling:samples=15000,depth=3", "on arrival", lambda state: state.tree.value[0])


def test_a_search_leaves_the_belief_as_it_was():
    check_a_search_leaves_the_belief_as_it_was("sparse-sampling:samples=6")
