"""Small decision graphs: their exact values against enumeration, what they find against all graphs there are."""

import itertools
import json

import numpy as np
import pytest

from beliefbound import FiniteBelief, cadp, load_policy, write_models
from beliefbound.base.errors import ParameterError
from beliefbound.bounds.finite.controller_value import enclosed_values, start_value
from beliefbound.bounds.finite.local_search import Nodes, Search
from beliefbound.bounds.finite.outcomes import outcome_rows
from beliefbound.bounds.finite.small_controller import small_controller
from beliefbound.jobs.bound import BoundOptions, certify_folder
from beliefbound.planning.task import FiniteTask
from support.beliefs import SIGNALS, random_belief
from support.enumeration import value_by_enumeration
from support.tiers import tiers


@pytest.mark.parametrize("signal", tiers(SIGNALS, "deterministic"))
def test_the_value_is_that_of_what_the_file_does(tmp_path, signal):
    """Enumeration of five steps of the loaded policy; the rest is worth at most `0.2⁵/0.8` of the largest reward."""
    belief, _ = random_belief(np.random.default_rng(3), signal)
    graph = small_controller(belief, nodes=4, discount=0.2, rng=1)
    graph.save(tmp_path / "controller.json")
    policy = load_policy(tmp_path / "controller.npz")
    assert value_by_enumeration(policy, belief, 0.2, 5) == pytest.approx(graph.value, abs=0.2**5 / 0.8)
    task = FiniteTask.of(belief, discount=0.2)
    controller = policy.data[0]
    again = start_value(enclosed_values(controller, task)[0], controller, task)
    np.testing.assert_allclose(again, graph.model_values, atol=1e-9)
    assert graph.value >= cadp(belief, discount=0.2).value() - 1e-9  # the table is one of its beginnings
    assert len(graph.nodes) <= 4
    assert small_controller(belief, nodes=4, discount=0.2, rng=1).to_dict() == graph.to_dict()


@pytest.mark.full
def test_two_nodes_for_two_arms_are_the_best_two_there_are():
    """All 64 controllers of two nodes on a Bernoulli bandit; and more nodes earn no less."""
    rng = np.random.default_rng(5)
    arms = rng.random((4, 1, 2))
    belief = FiniteBelief(np.ones((4, 1, 2, 1)), arms, reward_signal="bernoulli", initial=0)
    outcomes = outcome_rows(belief)
    search = Search(FiniteTask.of(belief, discount=0.9), outcomes)
    width = int(outcomes.first[0, -1])
    best = -np.inf
    for actions in itertools.product(range(2), repeat=2):
        for after in itertools.product(range(2), repeat=4):
            links = np.full((2, width), -1)
            for x, a in enumerate(actions):
                links[x, outcomes.first[0, a] : outcomes.first[0, a + 1]] = after[2 * x : 2 * x + 2]
            best = max(best, search.value(Nodes(np.zeros(2, int), np.array(actions), links)).value)
    found = [small_controller(belief, nodes=n, discount=0.9, rng=1).value for n in (1, 2, 4)]
    assert found[1] == pytest.approx(best)
    assert found[0] <= found[1] <= found[2]


def test_a_policy_that_meets_more_states_than_nodes_is_refused():
    belief, _ = random_belief(np.random.default_rng(3), "known", n_states=3)
    for nodes, message in ((2, "needs a node in each; give at least 3"), (0, "at least 1"), (1000, "at most 200")):
        with pytest.raises(ParameterError, match=message):
            small_controller(belief, nodes=nodes, discount=0.4, rng=1)


def test_the_report_shows_the_graph_with_every_name(tmp_path):
    belief, _ = random_belief(np.random.default_rng(3), "known", n_models=2)
    names = {"states": ("low & <dry>", "high"), "actions": ("wait", "burn"), "model_names": ("M1", "<M2>")}
    named = FiniteBelief.of(belief.models, belief.weights, initial=np.array([1.0, 0.0]), **names)
    write_models(tmp_path / "models", named, discount=0.5)
    found = certify_folder(
        tmp_path / "models", tmp_path / "out", BoundOptions(effort=20, target_gap=0.05, controller=4)
    )
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What to do, as a decision graph" in page
    assert "low &amp; &lt;dry&gt;" in page
    assert "<M2>" not in page
    assert "% of the upper bound" in page
    assert (tmp_path / "out" / "controller.svg").stat().st_size > 1000
    written = json.loads((tmp_path / "out" / "controller.json").read_text())
    assert {node["action"] for node in written["nodes"]} <= {"wait", "burn"}
    assert set(written["model_values"]) == {"M1", "<M2>"}
    bounds = json.loads((tmp_path / "out" / "bounds.json").read_text())
    assert bounds["job"]["controller"]["value"] == found.graph.value
    assert bounds["names"]["models"] == ["M1", "<M2>"]
    header = np.load(tmp_path / "out" / "controller.npz")["header"].tobytes()
    assert json.loads(header)["state_names"] == ["low & <dry>", "high"]
    with pytest.raises(ParameterError, match="without a horizon"):
        certify_folder(tmp_path / "models", tmp_path / "out", BoundOptions(horizon=3, controller=4))
