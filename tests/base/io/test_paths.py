"""Names of files: whatever is given for one is refused in words, and what is no file is never replaced."""

import os
from pathlib import Path

import pytest

import beliefbound as bb
from beliefbound.base.errors import FileError
from beliefbound.beliefs.files import save_belief
from beliefbound.bounds.policy_files import load_policy
from beliefbound.lab.experiments import Spec, load_spec, run

TABLE = bb.StationaryPolicy([0, 1])
ONE = bb.FiniteBelief([[[[1.0]]]], [[[1.0]]], initial=0)
TAKE_A_PATH = {
    "load_actor": bb.load_actor,
    "load_belief": bb.load_belief,
    "load_policy": load_policy,
    "load_spec": load_spec,
    "policy.save": TABLE.save,
    "read_log": bb.read_log,
    "read_models": bb.read_models,
    "result.load": bb.Bracket.load,
    "result.save": bb.Bound(1.0, "lower", "x").save,
    "run": lambda path: run(Spec(agents=("random",), environments=("chain",), runs=1, steps=1), path),
    "save_belief": lambda path: save_belief(path, bb.DirichletBelief(2, 2)),
    "write_models": lambda path: bb.write_models(path, ONE, discount=0.9),
}


@pytest.mark.parametrize("name", sorted(TAKE_A_PATH))
def test_what_names_no_file_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for wrong in (None, 3, object(), [], b"bytes", "a\x00b", "\ud800", "x" * 5000):
        with pytest.raises(FileError, match="name of a file"):
            TAKE_A_PATH[name](wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_and_a_folder_are_not_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileError, match="pipe: it is no file; give a file's name"):
        TABLE.save(pipe)
    assert pipe.is_fifo()
    with pytest.raises(FileError, match="it is a folder; give a file's name"):
        TABLE.save(tmp_path)


def test_what_is_written_through_a_link_is_in_the_file_it_leads_to(tmp_path):
    (folder := tmp_path / "kept").mkdir()
    link = tmp_path / "policy.json"
    link.symlink_to(folder / "own.json")
    TABLE.save(link)
    assert link.is_symlink()
    assert load_policy(folder / "own.json") == load_policy(Path(link)) == TABLE


def test_models_on_a_full_disk_or_below_a_file_are_refused_in_words(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="cannot write .*file/models: .*; make room, or choose a place"):
        bb.write_models(tmp_path / "file" / "models", ONE, discount=0.9)

    def full(*values, **named):
        raise OSError("No space left on device (os error 28)")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(FileError, match="models: No space left on device"):
        bb.write_models(tmp_path / "models", ONE, discount=0.9)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]
