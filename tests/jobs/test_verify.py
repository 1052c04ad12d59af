"""`beliefbound verify`: a certificate is made again, and everything that was written is compared."""

import json
import shutil

import numpy as np
import pytest

from beliefbound import FiniteBelief, write_models
from beliefbound.base.errors import FileError
from beliefbound.base.io.arrays import read_arrays, write_arrays
from beliefbound.base.io.result_folder import CONTENTS, names_in
from beliefbound.bounds.bracket import Bracket
from beliefbound.bounds.information import value
from beliefbound.jobs import bound, robust, verify
from beliefbound.jobs.bound import BoundOptions, certify_folder
from beliefbound.jobs.made import digest_of
from beliefbound.jobs.robust import RobustOptions, robust_folder
from support.beliefs import chain_belief
from support.command_line import command
from support.tampering import code, copied, is_told, relisted, tampered_objects
from support.tiers import tiers

ACTIONS = ("wait, then look", "go $x_$")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder of six models."""
    drawn = chain_belief(30, 4).sample(6, np.random.default_rng(5))
    named = FiniteBelief.of(drawn.models, initial=drawn.initial, actions=ACTIONS)
    return write_models(tmp_path_factory.mktemp("models") / "chain", named, discount=0.95, test=named)


@pytest.fixture(scope="module")
def certificate(models, tmp_path_factory):
    """Its certificate, with everything that can be asked for."""
    place = tmp_path_factory.mktemp("bound") / "out"
    with pytest.MonkeyPatch.context() as patch:
        remember(patch)
        made = certify_folder(models, place, BoundOptions(effort=6, seed=3, controller=8, measure=1))
    return made, models, place / "bounds.json"


@pytest.fixture(scope="module")
def secured(models, tmp_path_factory):
    """The certificate under the worst prior."""
    place = tmp_path_factory.mktemp("robust") / "out"
    return robust_folder(models, place, RobustOptions(effort=2, seed=3)), models, place / "robust.json"


@pytest.fixture
def remembered(monkeypatch):
    """Searches and pages that were made once are not made again: only what is asked for otherwise is."""
    remember(monkeypatch)


def remember(monkeypatch):
    for place, name in (
        (bound, "bracket_of"),
        (bound, "small_controller_of"),
        (bound, "memoryless_of"),
        (value, "information_of"),
    ):
        monkeypatch.setattr(place, name, once(getattr(place, name)))
    monkeypatch.setattr(robust, "robust_bracket", once(robust.robust_bracket))
    for job in (bound, robust):
        monkeypatch.setattr(job, "write_pages", drawn_once(job, job.write_pages))


MADE = {}


def drawn_once(job, write_pages):
    """Pages that were drawn of a certificate's file are not drawn again."""

    def write(found, place):
        key, before = (place / job.FILE).read_bytes(), {*names_in(place)}
        if key not in MADE:
            write_pages(found, place)
            MADE[key] = {name: (place / name).read_bytes() for name in {*names_in(place)} - before}
        for name, data in MADE[key].items():
            (place / name).write_bytes(data)

    return write


def once(function):
    """A function that remembers: tasks are told apart by what can be changed of them."""

    def remembering(task, *values, watch=None, **named):
        key = (function.__name__, getattr(task, "horizon", None), repr(values), repr(sorted(named.items())))
        if key not in MADE:
            MADE[key] = function(task, *values, **named)
        return MADE[key]

    return remembering


@pytest.mark.parametrize("threads", tiers([1, 2], 1))
def test_a_certificate_is_found_again_bit_for_bit(certificate, threads):
    made, folder, file = certificate
    result = verify.verify(file, threads=threads)
    assert result.words[-1] == f"identical: all {len(names_in(file.parent)) + 1} files, bit for bit"
    assert result.same
    assert (result.code, result.differs) == (0, ())
    assert result.found.policy == made.bracket.policy
    written = json.loads(file.read_text())
    assert (written["seed"], written["effort"], written["job"]["made"]["discount"]) == (3, 6, 0.95)
    assert written["job"]["made"]["digest"] == digest_of(made.folder)
    assert written["job"]["made"]["models"] == str(folder)
    assert Bracket.load(file) == made.bracket


@pytest.mark.full
def test_a_robust_certificate_is_found_again_bit_for_bit(secured):
    made, folder, file = secured
    result = verify.verify(file, folder)
    assert (result.code, result.found) == (0, made.bracket)


ALL = pytest.mark.full
SOME = ("bounds.json", "memoryless.json")  # in the first tier
FILES = {"bounds.json": 23, "memoryless.json": 3, "controller.json": 11, "information.json": 9, "robust.json": 7}


@pytest.mark.parametrize("every", [pytest.param(None, id="some"), pytest.param(1, id="all", marks=ALL)])
@pytest.mark.parametrize("which", tiers(FILES, *SOME))
def test_no_entry_of_any_file_can_be_changed(tmp_path, request, remembered, which, every):
    """Neither alone nor, but for what nothing can find again, together with the list of files; some of a thousand ways,
    or all of them."""
    _, models, file = request.getfixturevalue("secured" if which == "robust.json" else "certificate")
    copy = copied(file, tmp_path / "copy")
    assert code(copy, models) == 0
    target, text = copy.parent / which, (file.parent / which).read_text()
    listing, count = (file.parent / CONTENTS).read_text(), 0
    for what, path, content in list(tampered_objects(json.loads(text)))[:: every or FILES[which]]:
        target.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        (copy.parent / CONTENTS).write_text(listing)
        if not is_told(path):
            relisted(copy)
        assert code(copy, models) != 0, what
        count += 1
    assert count >= (400 if every and which == "bounds.json" else 15), count


@pytest.mark.parametrize("every", [pytest.param(7, id="some"), pytest.param(1, id="all", marks=ALL)])
def test_no_file_can_be_changed_removed_or_added(tmp_path, certificate, remembered, every):
    """Every array of every archive, every cell of the table, pictures, the page, and the list of files."""
    _, models, file = certificate
    count = 0

    def noticed(name, change, codes=(1,), relist=True):
        nonlocal count
        count += 1
        if count % every:
            return
        copy = copied(file, tmp_path / "copy")
        change(copy.parent / name)
        if relist:
            relisted(copy)
        assert code(copy, models) in codes, (name, change)

    for name in ("policy.npz", "controller.npz"):
        arrays = read_arrays(file.parent / name)
        for key, held in arrays.items():
            other = ~held if held.dtype == bool else np.nan_to_num(held) + held.dtype.type(1)
            rest = {k: x for k, x in arrays.items() if k != key}
            ways = [rest, rest | {key: other}, rest | {key: held.astype(np.float32)}, rest | {key: held[None]}]
            for way in ways[: 4 if held.size else 1]:
                noticed(name, lambda path, way=way: write_arrays(path, way))
        noticed(name, lambda path, arrays=arrays: write_arrays(path, arrays | {"more": np.zeros(1)}))
        noticed(name, lambda path: path.write_bytes(b"nothing"))
    lines = (file.parent / "memoryless.csv").read_text().splitlines()
    for row in range(len(lines)):
        for cell, held in enumerate(lines[row].split(",", 2)):
            cells = lines[row].split(",", 2)
            cells[cell] = "1" if held == "0" else "0" if held.isdigit() else held + "x"
            text = "\n".join([*lines[:row], ",".join(cells), *lines[row + 1 :]]) + "\n"
            noticed("memoryless.csv", lambda path, text=text: path.write_text(text))
    for name in [*names_in(file.parent), CONTENTS]:
        gone = (3,) if name != "bounds.json" else (1,)
        noticed(name, lambda path: path.unlink(), gone, relist=False)
        relist = name not in (CONTENTS,)
        noticed(name, lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), relist=relist)
        noticed(name, lambda path: path.write_bytes(b""), relist=relist)
    for name in ("report.html", "bracket.svg", "decision.svg"):
        noticed(name, lambda path: path.write_text(path.read_text().replace("0", "1", 1)))
    for name in ("policy.json", "decision.gif"):
        added = (1,) if name == "policy.json" else (0,)  # a file of this certificate's kind; and anybody's own
        noticed(name, lambda path: path.write_text("{}"), added, relist=False)
    assert count > 150


def swapped(file, name):
    """Let the certificate's policy be another file."""
    text = file.read_text()
    file.write_text(text.replace('"policy": "policy.npz"', f'"policy": "{name}"'))
    assert file.read_text() != text


def test_a_pointer_to_another_policy_is_noticed(tmp_path, certificate, remembered):
    """The adaptive policy would not be compared, and its value be claimed for the table."""
    _, models, file = certificate
    for name in ("memoryless.json", "controller.npz", "../out/policy.npz", "nothing.npz"):
        copy = copied(file, tmp_path / "copy")
        swapped(copy, name)
        relisted(copy)
        result = verify.verify(copy, models)
        assert result.code == 1
        assert any("policy is" in words for words in result.words)


def test_a_worse_policy_does_not_pass_behind_another_machines_name(tmp_path, certificate, remembered):
    """Not even where page and list of files tell the same name: that is said first, and has an exit code of its own."""
    _, models, file = certificate
    machine = json.loads(file.read_text())["job"]["made"]["machine"]
    copy = copied(file, tmp_path / "copy")
    shutil.copy(copy.parent / "controller.npz", copy.parent / "policy.npz")
    for path in (copy, copy.parent / "report.html"):
        path.write_text(path.read_text().replace(machine, "another"))
    relisted(copy)
    result = verify.verify(copy, models)
    assert result.code == 3
    assert result.words[0].startswith("not compared: machine")
    assert any("policy.npz is another policy" in words for words in result.words)
    done = command("verify", copy, models)
    assert done.returncode == 3
    assert done.stdout.startswith("not compared")


@pytest.mark.parametrize(
    ("change", "machine", "expected"),
    [
        ((0.0, 0.0), "another", 0),
        ((1e-8, 0.0), "another", 3),
        ((1e-3, 0.0), "another", 1),
        ((1e-12, 0.0), None, 1),
        ((0.0, -1e-3), None, 1),
    ],
)
def test_another_machine_is_named_and_may_round_otherwise(
    tmp_path, certificate, remembered, monkeypatch, change, machine, expected
):
    _, folder, file = certificate
    copy = copied(file, tmp_path / "copy")
    written = json.loads(file.read_text())
    written["lower"]["value"] += change[0]
    written["upper"]["value"] += change[1]
    if any(change):
        copy.write_text(json.dumps(written))
    if machine is not None:
        monkeypatch.setattr(verify, "machine", lambda: machine)
    result = verify.verify(copy, folder)
    assert result.code == expected
    assert bool(result.differs) == (machine is not None)
    assert result.same == (expected == 0)
    if expected == 1:
        assert result.words[0].startswith("different")


def test_a_certificate_without_its_files_is_not_compared_as_a_whole(tmp_path, certificate, remembered):
    _, folder, file = certificate
    shutil.copy(file, tmp_path / "bounds.json")
    result = verify.verify(tmp_path / "bounds.json", folder)
    assert result.code == 3
    assert result.words[0].startswith("not compared: ")
    assert "policy.npz is not beside the certificate" in result.words[0]


def test_other_models_and_other_files_are_refused(tmp_path, certificate):
    _, _, file = certificate
    belief = chain_belief(30, 4).sample(6, np.random.default_rng(6))
    other = write_models(tmp_path / "other", belief, discount=0.95)
    with pytest.raises(FileError, match="not those of"):
        verify.verify(file, other)
    for text in ("{", "[]", '{"lower": 1.0}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(FileError, match="is not a saved result"):
            verify.verify(tmp_path / "bad.json")
    with pytest.raises(FileError, match="cannot read"):
        verify.verify(tmp_path / "missing.json")
    written = json.loads(file.read_text())
    for version in (2, None, "3"):
        (tmp_path / "old.json").write_text(json.dumps(written | {"version": version}))
        with pytest.raises(FileError, match=f"version {version!r} of kind 'bracket'; this program reads version 3"):
            verify.verify(tmp_path / "old.json")
    Bracket.load(file).save(tmp_path / "saved.json")
    with pytest.raises(FileError, match="no certificate that can be made again by this command"):
        verify.verify(tmp_path / "saved.json")
    written["job"]["made"]["models"] = "nowhere"
    (tmp_path / "lost.json").write_text(json.dumps(written))
    with pytest.raises(FileError, match="give the models"):
        verify.verify(tmp_path / "lost.json")


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


@pytest.mark.full
def test_from_the_command_line(certificate, secured, tmp_path):
    for _, folder, file in (certificate, secured):
        done = command("verify", str(file), str(folder))
        assert done.returncode == 0, done.stderr
        assert "identical" in done.stdout
    copy = copied(certificate[2], tmp_path / "copy")
    (copy.parent / "memoryless.csv").write_text("idstate,idaction\n")
    done = command("verify", copy, certificate[1])
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "different: not the same bit for bit")
    copy.parent.joinpath("memoryless.csv").unlink()
    assert command("verify", copy, certificate[1]).returncode == 3
    assert "Traceback" not in command("verify", str(tmp_path / "none.json")).stderr
    assert "3 when not everything could be compared" in command("verify", "--help").stdout.replace("\n", " ")
