"""`beliefbound verify`: a certificate is made again, and every number compared."""

import json

import numpy as np
import pytest

from beliefbound import FiniteBelief, write_models
from beliefbound.base.errors import FileError
from beliefbound.bounds.bracket import Closed
from beliefbound.report import verify
from beliefbound.report.certificate import certify_folder
from beliefbound.report.verify import digest_of, verify_bounds
from support.beliefs import chain_belief
from support.command_line import command

ACTIONS = ("wait, then look", "go $x_$")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A folder of six models and its certificate."""
    place = tmp_path_factory.mktemp("certificate")
    drawn = chain_belief(30, 4).sample(6, np.random.default_rng(5))
    named = FiniteBelief.of(drawn.models, initial=drawn.initial, actions=ACTIONS)
    folder = write_models(place / "chain", named, discount=0.95)
    made = certify_folder(folder, place / "out", effort=6, seed=3, controller=8, measure=1)
    return made, folder, place / "out" / "bounds.json"


def test_a_certificate_is_found_again_bit_for_bit(certificate):
    made, folder, file = certificate
    for threads in (1, 2):
        result = verify_bounds(file, threads=threads)
        assert result.exact
        assert result.same
        assert result.differs == ()
        assert result.found.policy == made.bracket.policy
    assert f"identical: all {len(made.bracket.bounds)} bounds, bit for bit" in result.words
    written = json.loads(file.read_text())["made"]
    assert (written["seed"], written["effort"], written["discount"]) == (3, 6, 0.95)
    assert written["digest"] == digest_of(made.folder)
    assert written["models"] == str(folder)


@pytest.mark.parametrize(
    ("change", "machine", "same"),
    [
        ((0.0, 0.0), "another", True),
        ((1e-8, 0.0), "another", True),
        ((1e-3, 0.0), "another", False),
        ((1e-12, 0.0), None, False),
        ((0.0, -1e-3), None, False),
    ],
)
def test_what_was_changed_is_noticed_and_other_machines_are_named(
    tmp_path, certificate, monkeypatch, change, machine, same
):
    _, folder, file = certificate
    written = json.loads(file.read_text())
    written["lower"], written["upper"] = written["lower"] + change[0], written["upper"] + change[1]
    (tmp_path / "bounds.json").write_text(json.dumps(written))
    if machine is not None:
        monkeypatch.setattr(verify, "machine", lambda: machine)
    result = verify_bounds(tmp_path / "bounds.json", folder)
    assert result.same == same
    assert bool(result.differs) == (machine is not None)
    assert ("different" in result.words[-2]) == (not same)


@pytest.mark.parametrize("machine", [None, "another"])
def test_no_number_of_a_certificate_can_be_changed(tmp_path, certificate, monkeypatch, machine):
    """What is said of the policies, of the width and of the first decision, not only the ends."""
    made, folder, file = certificate
    if machine is not None:
        monkeypatch.setattr(verify, "machine", lambda: machine)
    closed = Closed(made.bracket, None)
    monkeypatch.setattr(verify, "bracket_of", lambda *values, **named: closed)  # the search itself is tested above
    monkeypatch.setattr(verify, "small_controller_of", lambda *values, **named: made.graph)
    monkeypatch.setattr(verify, "measured_next", lambda *values, **named: made.information)
    changes = [("width",), ("relative_gap",), ("confidence",), ("decision",)]
    changes += [(policy, key) for policy in ("policy", "memoryless") for key in ("gap", "confidence")]
    for *place, key in [*changes, ("policy", "value_at_least"), ("memoryless", "value")]:
        written = json.loads(file.read_text())
        held = written[place[0]] if place else written
        held[key] = None if key == "decision" else held[key] + 0.25
        (tmp_path / "bounds.json").write_text(json.dumps(written))
        result = verify_bounds(tmp_path / "bounds.json", folder)
        assert not result.same, key
        assert any(".".join([*place, key]) in words for words in result.words)


def test_names_decisions_and_policies_cannot_be_changed_either(tmp_path, certificate, monkeypatch):
    """Names that say what is done, numbers of a decision behind another machine's name, and the files of policies."""
    made, folder, file = certificate
    closed = Closed(made.bracket, None)
    monkeypatch.setattr(verify, "bracket_of", lambda *values, **named: closed)
    monkeypatch.setattr(verify, "small_controller_of", lambda *values, **named: made.graph)
    monkeypatch.setattr(verify, "measured_next", lambda *values, **named: made.information)
    for name in ("policy.npz", "memoryless.json", "controller.npz"):
        (tmp_path / name).write_bytes((file.parent / name).read_bytes())
    copy, text = tmp_path / "bounds.json", file.read_text()
    copy.write_text(text)
    assert verify_bounds(copy, folder).same
    written = json.loads(text)
    copy.write_text(json.dumps(written | {"actions": written["actions"][::-1]}))
    assert not verify_bounds(copy, folder).same
    written["made"]["machine"] = "another"
    written["decision"]["lower"][0] += 1.0
    copy.write_text(json.dumps(written))
    assert not verify_bounds(copy, folder).same
    for change in (("controller", "value"), ("information", "confidence")):
        written = json.loads(text)
        written[change[0]][change[1]] *= 0.99
        copy.write_text(json.dumps(written))
        assert not verify_bounds(copy, folder).same, change
    copy.write_text(text)
    (tmp_path / "policy.npz").write_bytes(b"nothing")
    result = verify_bounds(copy, folder)
    assert not result.same
    assert any("policy.npz cannot be read" in words for words in result.words)
    (tmp_path / "policy.npz").unlink()
    result = verify_bounds(copy, folder)
    assert result.same
    assert any("was not compared" in words for words in result.words)


def test_other_models_and_other_files_are_refused(tmp_path, certificate):
    _, _, file = certificate
    belief = chain_belief(30, 4).sample(6, np.random.default_rng(6))
    other = write_models(tmp_path / "other", belief, discount=0.95)
    with pytest.raises(FileError, match="not those of"):
        verify_bounds(file, other)
    for text in ("{", "[]", '{"lower": 1.0}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(FileError, match="no certificate that can be made again"):
            verify_bounds(tmp_path / "bad.json")
    with pytest.raises(FileError, match="cannot read"):
        verify_bounds(tmp_path / "missing.json")
    written = json.loads(file.read_text())
    for version in (2, None, "3"):
        (tmp_path / "old.json").write_text(json.dumps(written | {"version": version}))
        with pytest.raises(FileError, match=f"version {version!r}; this program makes .* of version 3 again"):
            verify_bounds(tmp_path / "old.json")
    written["made"]["models"] = "nowhere"
    (tmp_path / "lost.json").write_text(json.dumps(written))
    with pytest.raises(FileError, match="give the models"):
        verify_bounds(tmp_path / "lost.json")


def test_the_first_action_is_in_every_file(certificate):
    made, _, file = certificate
    written = json.loads(file.read_text())["decision"]
    assert written["lower"] == made.bracket.decision.lower.tolist()
    assert (file.parent / "decision.png").exists()
    page = (file.parent / "report.html").read_text()
    assert "What to do first" in page
    assert "go $x_$" in page
    assert "beliefbound verify" in page
    assert "What to measure next" in page
    assert made.information_words()[0].split(";")[0] in page
    assert (file.parent / "information.json").exists()
    if made.bracket.decision.best is not None:
        assert f"{ACTIONS[made.bracket.decision.best]} is proven optimal" in page


def test_from_the_command_line(certificate, tmp_path):
    _, folder, file = certificate
    done = command("verify", str(file), str(folder))
    assert done.returncode == 0, done.stderr
    assert "identical" in done.stdout
    assert "Traceback" not in command("verify", str(tmp_path / "none.json")).stderr
