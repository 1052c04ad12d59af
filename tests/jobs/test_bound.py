"""`beliefbound bound` from inside: what is written is true of the policy it stands next to, and nothing is lost."""

import json
import signal

import numpy as np
import pytest

from beliefbound import FiniteBelief, StationaryPolicy, evaluate, write_models
from beliefbound.base.errors import FileError, ParameterError
from beliefbound.bounds.bracket import Bracket, bracket_of
from beliefbound.bounds.policy_files import load_policy
from beliefbound.bounds.steps import Limits
from beliefbound.jobs import bound, memoryless
from beliefbound.jobs.bound import BoundOptions, certify_folder
from support.beliefs import chain_belief
from support.oracles import random_models

STATES = ("cold & <dry>", "cold", "warm", "hot", "far")
ACTIONS = ("wait, then look", "go")


@pytest.fixture
def chain(tmp_path):
    """Eight models of the chain, whose states and actions have names."""
    drawn = chain_belief(30, 4).sample(8, np.random.default_rng(5))
    named = FiniteBelief.of(drawn.models, initial=drawn.initial, states=STATES, actions=ACTIONS)
    return named, write_models(tmp_path / "chain", named, discount=0.95)


def test_the_certified_policy_is_the_one_that_is_written(tmp_path, chain):
    belief, folder = chain
    found = certify_folder(folder, tmp_path / "out", BoundOptions(target_gap=0.01, effort=1000))
    assert found.policy.name == "policy.npz"
    assert load_policy(found.policy) == found.bracket.policy
    written = json.loads((tmp_path / "out" / "bounds.json").read_text())
    assert written["policy"] == "policy.npz"
    assert written["job"]["kind"] == "learns"
    assert written["lower"] == found.bracket.lower.to_dict()
    assert written["regret"] == found.bracket.regret.to_dict()
    assert not written["job"]["interrupted"]
    assert Bracket.load(tmp_path / "out" / "bounds.json") == found.bracket
    memoryless = load_policy(tmp_path / "out" / "memoryless.json")
    value = float(belief.weights @ evaluate(memoryless, belief, discount=0.95) @ belief.initial)
    assert value < found.bracket.lower.value
    assert written["job"]["memoryless"]["gap"] == pytest.approx(found.bracket.upper.value - value)


def test_a_table_that_closes_the_bracket_is_written_as_one_and_replaces_an_earlier_policy(tmp_path, chain):
    p, r, _, _ = random_models(np.random.default_rng(1), 1, 3, 2)
    folder = write_models(tmp_path / "one", FiniteBelief(p, r, initial=0), discount=0.9)
    certify_folder(chain[1], tmp_path / "out", BoundOptions(target_gap=0.01, effort=1000))
    assert (tmp_path / "out" / "policy.npz").exists()
    found = certify_folder(folder, tmp_path / "out")
    assert isinstance(load_policy(found.policy), StationaryPolicy)
    assert found.policy.name == "policy.json"
    assert not (tmp_path / "out" / "policy.npz").exists()
    assert found.memoryless.gap.value == pytest.approx(0.0, abs=1e-9)


def test_names_reach_every_file(tmp_path, chain):
    _, folder = chain
    certify_folder(folder, tmp_path / "out", BoundOptions(target_gap=0.05, effort=1000))
    page = (tmp_path / "out" / "report.html").read_text()
    assert "cold &amp; &lt;dry&gt;" in page
    assert "<dry>" not in page
    assert "wait, then look" in page
    table = (tmp_path / "out" / "memoryless.csv").read_text().splitlines()
    assert table[0] == "idstate,state,idaction,action"
    assert table[1].startswith("0,cold & <dry>,")
    assert json.loads((tmp_path / "out" / "memoryless.json").read_text())["action_names"] == list(ACTIONS)
    written = json.loads((tmp_path / "out" / "bounds.json").read_text())
    assert written["names"] == {"states": list(STATES), "actions": list(ACTIONS)}


def test_ctrl_c_keeps_what_was_found(tmp_path, chain):
    """The first bound of the graph is answered by Ctrl-C; there would be much left to do."""
    _, folder = chain
    seen, said = [], []

    def watch(point):
        seen.append(point)
        if point.lower.method.startswith("search"):
            signal.raise_signal(signal.SIGINT)

    found = certify_folder(
        folder, tmp_path / "out", BoundOptions(target_gap=0.0, effort=1000), watch=watch, say=lambda: said.append(True)
    )
    assert found.interrupted
    assert said == [True]
    assert load_policy(found.policy) == found.bracket.policy
    written = json.loads((tmp_path / "out" / "bounds.json").read_text())
    assert written["job"]["interrupted"]
    ends = written["lower"]["value"], written["upper"]["value"]
    assert ends == (seen[-1].lower.value, seen[-1].upper.value)
    assert "interrupted" in (tmp_path / "out" / "report.html").read_text()
    with pytest.raises(KeyboardInterrupt):  # Ctrl-C is Python's own again
        signal.raise_signal(signal.SIGINT)


def test_a_second_ctrl_c_leaves_at_once_and_an_earlier_result_stays(tmp_path, chain):
    _, folder = chain
    certify_folder(folder, tmp_path / "out", BoundOptions(target_gap=0.05, effort=1000))
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    def watch(point):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        certify_folder(folder, tmp_path / "out", BoundOptions(target_gap=0.0, effort=1000), watch=watch)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_folder_that_cannot_be_written_is_noticed_before_the_search(tmp_path, chain):
    _, folder = chain
    (tmp_path / "file").write_text("x")
    seen = []
    for out in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(FileError, match="file"):
            certify_folder(folder, out, watch=seen.append)
    with pytest.raises(ParameterError, match="needs a node in each"):  # nor is too small a graph
        certify_folder(folder, tmp_path / "out", BoundOptions(controller=1), watch=seen.append)
    assert seen == []


@pytest.mark.parametrize(("spent", "left"), [(7.0, 3.0), (12.0, 0.0)])
def test_a_time_is_for_all_that_is_computed_and_parts_are_named(tmp_path, chain, monkeypatch, spent, left):
    """The clock moves by `spent` while the memoryless policy is found; the search gets what is left of ten seconds."""
    now, given, told = [100.0], [], []

    def searched(task):
        now[0] += spent
        return memoryless.searched_of(task)

    def search(task, limits, **knobs):
        given.append(limits.seconds)
        return bracket_of(task, Limits(effort=1), **knobs)

    monkeypatch.setattr(bound, "clock", lambda: now[0])
    monkeypatch.setattr(bound, "searched_of", searched)
    monkeypatch.setattr(bound, "bracket_of", search)
    certify_folder(chain[1], tmp_path / "out", BoundOptions(time_limit=10.0), doing=told.append)
    assert given == [left]
    late = [text for text in told if "all of the time" in text]
    assert [text for text in told if text not in late] == [
        f"reading {chain[1]}",
        "finding a memoryless policy",
        "closing the bracket",
        "writing",
    ]
    assert len(late) == (left == 0.0)
