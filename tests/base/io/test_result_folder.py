"""One folder, one result: what was there before goes when the new one is complete, and nobody else's file ever."""

import json
import os
import signal
import subprocess
import sys

import pytest

from beliefbound.base.errors import FileError
from beliefbound.base.io.result_folder import CONTENTS, digest, names_in, one_result, read_contents


def written(folder, files, job="bound", last="main.json"):
    with one_result(folder, job, last=last) as aside:
        for name, text in files.items():
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).write_text(text)


def content(folder):
    return {name: (folder / name).read_text() for name in names_in(folder)}


def test_files_of_an_earlier_result_go_and_all_others_stay(tmp_path):
    written(tmp_path, {"main.json": "1", "old.csv": "1", "figures/old.png": "1", "kept/old.png": "1"})
    (tmp_path / "mine.csv").write_text("mine")
    (tmp_path / "kept" / "mine.png").write_text("mine")
    written(tmp_path, {"other.json": "2", "new.csv": "2"}, "plan", "other.json")
    own = {"mine.csv": "mine", "kept/mine.png": "mine"}
    assert content(tmp_path) == {"other.json": "2", "new.csv": "2", **own}
    assert not (tmp_path / "figures").exists()
    assert sorted(read_contents(tmp_path).files) == ["new.csv", "other.json"]
    assert read_contents(tmp_path).job == "plan"


def test_a_file_that_somebody_edited_is_theirs(tmp_path):
    written(tmp_path, {"main.json": "1", "table.csv": "1"})
    (tmp_path / "table.csv").write_text("1, and my notes")
    written(tmp_path, {"main.json": "2"})
    assert content(tmp_path) == {"main.json": "2", "table.csv": "1, and my notes"}


@pytest.mark.parametrize("name", ["../outside.csv", "/outside.csv", "link.csv", "linked/outside.csv", "\0", "."])
def test_a_list_cannot_remove_what_is_no_part_of_a_result(tmp_path, name):
    """Whatever it names, with the right digest: outside the folder, or a link."""
    outside, folder = tmp_path / "outside.csv", tmp_path / "out"
    outside.write_text("mine")
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "outside.csv").write_text("mine")
    written(folder, {"main.json": "1"})
    (folder / "link.csv").symlink_to(outside)
    (folder / "linked").symlink_to(tmp_path / "place")
    listed = json.loads((folder / CONTENTS).read_text())
    listed["files"][str(outside) if name.startswith("/") else name] = digest(outside)
    (folder / CONTENTS).write_text(json.dumps(listed))
    written(folder, {"main.json": "2"})
    assert outside.read_text() == "mine"
    assert (tmp_path / "place" / "outside.csv").read_text() == "mine"
    assert (folder / "link.csv").is_symlink()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": "other", "job": "x", "files": {"main.json": "1"}}'])
def test_a_list_that_cannot_be_read_removes_nothing(tmp_path, text):
    written(tmp_path, {"main.json": "1", "old.csv": "1"})
    (tmp_path / CONTENTS).write_text(text)
    written(tmp_path, {"main.json": "2"})
    assert content(tmp_path) == {"main.json": "2", "old.csv": "1"}


@pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError, OSError])
def test_work_that_does_not_end_leaves_everything_as_it_was(tmp_path, fault):
    written(tmp_path, {"main.json": "1", "old.csv": "1"})
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    class Broken(dict):
        def items(self):
            yield "main.json", "2"
            raise fault

    with pytest.raises(fault):
        written(tmp_path, Broken())
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_in_the_place_of_a_file_is_told_before_anything_is_moved(tmp_path):
    written(tmp_path, {"main.json": "1"})
    (tmp_path / "new.csv").mkdir()
    with pytest.raises(FileError, match="new.csv: it is no file"):
        written(tmp_path, {"main.json": "2", "new.csv": "2"})
    assert content(tmp_path) == {"main.json": "1"}


def test_where_a_link_stands_the_file_that_it_leads_to_is_written(tmp_path):
    (tmp_path / "elsewhere").write_text("0")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "main.json").symlink_to(tmp_path / "elsewhere")
    written(folder, {"main.json": "1"})
    assert (folder / "main.json").is_symlink()
    assert (tmp_path / "elsewhere").read_text() == "1"


def test_what_a_killed_writer_left_is_cleared_and_a_living_ones_stays(tmp_path):
    program = (
        "import sys, time, pathlib\n"
        "from beliefbound.base.io.result_folder import one_result\n"
        "with one_result(pathlib.Path(sys.argv[1]), 'bound', last='x') as aside:\n"
        "    print(aside, flush=True)\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, text=True) as writer:
        aside = writer.stdout.readline().strip()
        written(tmp_path, {"main.json": "1"})
        assert os.path.isdir(aside)
        writer.send_signal(signal.SIGKILL)
    written(tmp_path, {"main.json": "2"})
    assert not os.path.exists(aside)
    assert sorted(path.name for path in tmp_path.iterdir()) == [CONTENTS, "main.json"]
