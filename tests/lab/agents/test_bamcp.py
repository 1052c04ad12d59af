"""BAMCP: a plain twin, exact values, and simulations that stay in one model."""

import numpy as np
import pytest

from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.bamcp import child_of
from support.environments import CHAIN, ENVIRONMENTS
from support.every_agent import EveryAgent
from support.following import follow
from support.search_twins import BamcpTwin
from support.searches import BELIEFS, SAFE, TOSS, check_a_search_leaves_the_belief_as_it_was, check_exact_tree, searched


class TestBamcp(EveryAgent):
    name = "bamcp"
    small = "bamcp:simulations=20"
    mistakes = (
        ("bamcp:simulations=0", "simulations is 0"),
        ("bamcp:epsilon=2", "epsilon is 2.0"),
        ("bamcp:depth=0", "depth is 0"),
        ("bamcp:simulations=100000000", "simulations need .* GB"),
        ("bamcp:prior=environment", "was not drawn from a prior"),
    )


@pytest.mark.parametrize("environment", [CHAIN, ENVIRONMENTS["partial"]], ids=["chain", "partial"])
def test_bamcp_equals_its_twin_step_by_step(environment):
    twin = BamcpTwin(environment, simulations=60, depth=12, c=0.7)
    agent = make_agent("bamcp:simulations=60,depth=12,c=0.7,discount=0.95", environment)

    def watch(k):
        np.testing.assert_allclose(agent.machine.state.tree.value[0], twin.root["q"], rtol=1e-12)
        assert agent.machine.state.tree.tries[0].tolist() == twin.root["n"]

    follow(agent, environment, 25, seed=2, twin=twin, watch=watch)


def test_bamcp_converges_to_the_bayes_adaptive_value():
    """Returns of exploring simulations are averaged too, so it comes from below."""
    state = searched("bamcp:simulations=300000,depth=4,c=0.3")
    assert state.tree.value[0, 0] == pytest.approx(TOSS, abs=4e-3)  # a planner that ignores learning says SAFE
    assert state.tree.value[0, 1] == pytest.approx(SAFE, abs=0.02)  # tried less often


def test_a_simulation_of_bamcp_is_in_one_model():
    """After W, W has the chance 2/3; were models drawn anew below the root it would be 1/2."""
    tree = searched("bamcp:simulations=40000,depth=4,c=10").tree
    won = child_of(tree, 0, 0, 1)
    seen = np.zeros(2)
    for a in range(2):
        back = child_of(tree, won, a, 0)
        seen += [tree.visits[child_of(tree, back, 0, column)] for column in (1, 2)]
    assert abs(seen[0] / seen.sum() - 2 / 3) < 4 * np.sqrt(2 / 9 / seen.sum())  # false alarms: 6e-5
    assert seen.sum() > 2000


# All searches share the urn, which BAMCP tries on every kind of belief; each kind is compiled anew.
@pytest.mark.full
@pytest.mark.parametrize("kind", BELIEFS)
def test_values_of_structured_beliefs_are_those_of_the_exact_tree(kind):
    check_exact_tree("bamcp:simulations=120000,depth=3,c=0.3", kind, lambda state: state.tree.value[0].max())


def test_a_search_leaves_the_belief_as_it_was():
    check_a_search_leaves_the_belief_as_it_was("bamcp:simulations=40")


def test_ties_are_broken_uniformly():
    """With one simulation each action is tried alike: 200 of 400 first actions, with false alarms of 6e-5."""
    agent, first = make_agent("bamcp:simulations=1", CHAIN), 0
    for seed in range(400):
        agent.reset(seed)
        first += agent.act(0)
    assert abs(first - 200) < 4 * 10
