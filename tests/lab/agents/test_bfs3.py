"""BFS3: a plain twin, and bounds of the tree it sampled."""

import numpy as np

from beliefbound.lab.agents import make_agent
from support.environments import CHAIN
from support.every_agent import EveryAgent
from support.following import follow
from support.search_twins import Bfs3Twin
from support.searches import SAFE, TOSS, check_a_search_leaves_the_belief_as_it_was, check_exact_tree, searched


class TestBfs3(EveryAgent):
    name = "bfs3"
    small = "bfs3:rollouts=1,width=2,depth=5"
    mistakes = (
        ("bfs3:width=0", "width is 0"),
        ("bfs3:rollouts=1000000,depth=1000", "a tree of .* nodes needs .* GB"),
    )


def test_bfs3_equals_its_twin_step_by_step():
    twin = Bfs3Twin(CHAIN, rollouts=4, width=3, depth=5)
    agent = make_agent("bfs3:rollouts=4,width=3,depth=5", CHAIN)

    def watch(k):
        np.testing.assert_allclose(agent.machine.state.upper, twin.upper, rtol=1e-12)
        np.testing.assert_allclose(agent.machine.state.lower, twin.lower, rtol=1e-12)

    follow(agent, CHAIN, 6, seed=2, twin=twin, watch=watch)


def test_values_of_shared_rows_are_those_of_the_exact_tree():
    check_exact_tree("bfs3:rollouts=60,width=250,depth=2", "tied", lambda state: state.lower.max())


def test_a_search_leaves_the_belief_as_it_was():
    check_a_search_leaves_the_belief_as_it_was("bfs3:rollouts=3,width=3,depth=6")


def test_bfs3_bounds_the_tree_it_sampled():
    """Depth 3 below the first action: U keeps what four decisions leave open, L does not have it."""
    tail = 0.95**4 / 0.05
    toss, safe = np.mean(
        [
            np.column_stack([state.upper - tail, state.lower])
            for state in (searched("bfs3:rollouts=40,width=150,depth=3", seed=seed) for seed in range(12))
        ],
        axis=0,
    )
    np.testing.assert_allclose(
        toss, TOSS, atol=0.035
    )  # deviation .8 · .5 / √(12 · 150), and a bias that falls as 1/√width
    np.testing.assert_allclose(safe, SAFE, atol=0.035)
    few = searched("bfs3:rollouts=2,width=20,depth=3")
    assert (few.lower < few.upper - tail).all()  # not all was looked at
