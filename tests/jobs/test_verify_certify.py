"""`beliefbound verify` of what `beliefbound certify` wrote: the same again, and every change is noticed."""

import json

import numpy as np
import pytest

from beliefbound import FiniteBelief, write_models
from beliefbound.base.errors import FileError
from beliefbound.bounds.certified import Certified
from beliefbound.jobs.certify import CertifyOptions, certify_policy
from beliefbound.jobs.made import write_json
from beliefbound.jobs.verify import verify
from support.command_line import command
from support.oracles import random_models

RULE = "state,action\nmedium,treat\nlow,wait\nhigh,treat\n"
AGENT = """
class Steady:
    def __init__(self, n_states):
        self.n_states = n_states
    def reset(self, seed):
        pass
    def act(self, state):
        return 0 if state == 0 else 1
    def observe(self, state, action, reward, next_state):
        pass
"""


@pytest.fixture
def certified(tmp_path):
    p, r, _, _ = random_models(np.random.default_rng(3), 2, 3, 2)
    names = {"states": ("low", "medium", "high"), "actions": ("wait", "treat")}
    belief = FiniteBelief(p, r, initial=0, reward_signal="deterministic", **names)
    models = write_models(tmp_path / "models", belief, discount=0.9)
    (tmp_path / "rule.csv").write_text(RULE)
    (tmp_path / "agent.py").write_text(AGENT)
    made = certify_policy(tmp_path / "rule.csv", models, tmp_path / "out.json", CertifyOptions(target_gap=0.2, seed=4))
    return made.found, tmp_path / "out.json"


def test_a_certificate_is_found_again_bit_for_bit(certified):
    found, file = certified
    result = verify(file)
    assert result.same
    assert result.code == 0
    assert result.found == found
    assert result.words[-1] == "identical: all 2 files, bit for bit"
    assert Certified.load(file).effort == found.effort
    assert command("verify", file).returncode == 0


def entries_of(held, path=()):
    """Every number and word of a file, with the way to it."""
    if isinstance(held, dict | list):
        for key, inside in held.items() if isinstance(held, dict) else enumerate(held):
            yield from entries_of(inside, (*path, key))
    else:
        yield path, held


UNTOLD = {("job", "made", "models"), ("job", "made", "name"), ("job", "policy")}  # where things lay
ASKED = {("effort",), ("job", "seed"), ("job", "interrupted")}  # another search may well find the same
MACHINE = {("job", "made", "machine"), ("job", "library")}  # told, where they are others


@pytest.mark.full
def test_no_entry_can_be_changed(certified):
    _, file = certified
    whole = json.loads(file.read_text())
    models, policy = whole["job"]["made"]["models"], whole["job"]["policy"]
    seen = 0
    for path, held in list(entries_of(whole)):
        if path in UNTOLD | ASKED:
            continue
        changed = json.loads(json.dumps(whole))
        inside = changed
        for key in path[:-1]:
            inside = inside[key]
        other = "another" if held is None or isinstance(held, str) else not held if isinstance(held, bool) else held + 1
        inside[path[-1]] = other
        write_json(file, changed)  # as the program writes it: only the entry differs
        try:
            result = verify(file, models, policy=policy)
            if path in MACHINE:
                assert any(word.startswith("not the same") for word in result.words)
            else:
                assert result.code == (3 if path == ("policy",) else 1), path
        except FileError:
            pass
        seen += 1
    assert seen > 40


def test_changed_policies_and_files_are_noticed(certified):
    found, file = certified
    beside = file.with_name("out.policy.json")
    text = beside.read_text()
    beside.write_text(text.replace("1", "0", 1))
    assert verify(file).code == 1
    beside.unlink()
    result = verify(file)
    assert result.code == 3
    assert result.words[0] == "not compared: out.policy.json is not beside the certificate"
    beside.write_text(text)
    renamed = file.rename(file.with_name("kept.json"))
    assert verify(renamed).same
    (file.parent / "rule.csv").write_text(RULE.replace("low,wait", "low,treat"))
    with pytest.raises(FileError, match=r"rule.csv is not the policy of .*give the file it was made from by --policy"):
        verify(renamed)
    (file.parent / "rule.csv").unlink()
    with pytest.raises(FileError, match=r"was made from .*rule.csv, which is not here; give the policy by --policy"):
        verify(renamed)
    (file.parent / "moved.csv").write_text(RULE)
    assert verify(renamed, policy=str(file.parent / "moved.csv")).same


def test_what_was_ended_by_hand_is_refused(certified):
    _, file = certified
    whole = json.loads(file.read_text())
    file.write_text(json.dumps(whole | {"job": whole["job"] | {"interrupted": True}}))
    with pytest.raises(FileError, match="ended by hand before its time"):
        verify(file)
    for wrong in ("../x.json", 3, ""):
        file.write_text(json.dumps(whole | {"policy": wrong}))
        with pytest.raises(FileError, match="no name of a file beside it"):
            verify(file)
    del whole["job"]
    file.write_text(json.dumps(whole))
    with pytest.raises(FileError, match="`certify` and `plan` wrote"):
        verify(file)


@pytest.mark.full
def test_a_class_runs_only_if_somebody_names_it(certified):
    """Its value is simulated: the same walks again."""
    _, file = certified
    policy, models, out = file.parent / "agent.py:Steady", file.parent / "models", file.parent / "class.json"
    made = certify_policy(policy, models, out, CertifyOptions(target_gap=0.2, samples=40, seed=2))
    assert not made.found.exact
    with pytest.raises(FileError, match=r"a class of Python; name it to run it: --policy .*agent.py:Steady"):
        verify(out)
    result = verify(out, policy=str(policy))
    assert result.same
    assert result.words[-1] == "identical, bit for bit"
    told = command("verify", out)
    assert told.returncode == 1
    assert "name it to run it" in told.stderr
