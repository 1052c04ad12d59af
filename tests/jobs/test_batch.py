"""Many problems at once: certificates as one by one, nothing made twice, nothing lost, wherever blocks run."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from beliefbound import FiniteBelief, write_models
from beliefbound.base.errors import FileError, ParameterError
from beliefbound.base.executors import ThreadExecutor
from beliefbound.jobs.batch import certify_folders, names_of_problems
from beliefbound.jobs.bound import BoundOptions, certify_folder
from support.command_line import command
from support.oracles import random_models

pytestmark = pytest.mark.full
OPTIONS = BoundOptions(effort=3)
SECONDS = ("seconds", "compile_seconds")


def problems(folder: Path, n: int) -> list[Path]:
    """Small problems of two states, each another."""
    found = []
    for i in range(n):
        p, r, w, p0 = random_models(np.random.default_rng(i), 2, 2, 2)
        belief = FiniteBelief(p, r, w, reward_signal="unobserved", initial=0, actions=("a", "<b>"))
        found.append(write_models(folder / f"site-{i:03d}", belief, discount=0.9))
    return found


def content(folder: Path) -> dict[str, object]:
    """The files of a result, without the times in them and what is drawn from these."""

    def timeless(entry: object) -> object:
        if isinstance(entry, dict):
            return {key: timeless(value) for key, value in entry.items() if key not in SECONDS}
        return [timeless(each) for each in entry] if isinstance(entry, list) else entry

    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".json", ".csv", ".npz")}
    del files["contents.json"]
    files["bounds.json"] = timeless(json.loads(files["bounds.json"]))
    return files


class Counting:
    """An executor that notes what it runs."""

    def __init__(self, threads: int = 1, most: float = np.inf) -> None:
        self.executor, self.ran, self.most = ThreadExecutor(threads), list[str](), most

    def map(self, function, blocks, *, stop=None):
        for block, result in self.executor.map(function, blocks, stop=stop):
            self.ran.append(block.name)
            yield block, result
            if len(self.ran) >= self.most:
                raise KeyboardInterrupt


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    return problems(tmp_path_factory.mktemp("problems"), 3)


def test_a_batch_has_the_certificates_of_one_by_one_and_makes_none_twice(tmp_path, three):
    for path in three:
        certify_folder(path, tmp_path / "single" / path.name, OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        certify_folders(three, tmp_path / "all", OPTIONS, executor=Counting(most=2))
    again = Counting(threads=2)
    found = certify_folders(three, tmp_path / "all", OPTIONS, executor=again)
    assert len(again.ran) == 1
    assert found.kept == 2
    for path in three:
        assert content(tmp_path / "all" / path.name) == content(tmp_path / "single" / path.name)
    written = [json.loads((tmp_path / "single" / path.name / "bounds.json").read_text()) for path in three]
    assert [row.lower for row in found.rows] == [each["lower"]["value"] for each in written]
    page = found.report.read_text()
    assert all(path.name in page for path in three)
    assert "&lt;b&gt;" in page or "<b>" not in page
    assert len((tmp_path / "all" / "summary.csv").read_text().splitlines()) == 4


def test_what_is_asked_otherwise_or_was_touched_is_made_again(tmp_path, three):
    def ran(options=OPTIONS):
        counting = Counting()
        certify_folders(three[:2], tmp_path, options, executor=counting)
        return counting.ran

    assert ran() == ["site-000", "site-001"]
    assert ran() == []
    (tmp_path / "site-001" / "memoryless.csv").write_text("mine")
    assert ran() == ["site-001"]
    assert ran(BoundOptions(effort=4)) == ["site-000", "site-001"]
    (tmp_path / "finished.json").write_text("{")
    with pytest.raises(FileError, match="remove it"):
        ran()


def test_what_is_wrong_with_one_is_told_and_the_others_go_on(tmp_path, three):
    (tmp_path / "empty").mkdir()
    done = command("bound", three[0], tmp_path / "empty", three[1], "--effort", 2, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "1 of 3 problems have no certificate" in done.stderr
    assert "error: " in done.stdout
    assert (tmp_path / "out" / "site-001" / "bounds.json").exists()
    with pytest.raises(ParameterError, match="given twice"):
        names_of_problems([three[0], three[0]])


def test_logs_are_planned_as_one_by_one(tmp_path):
    logs, rng = [], np.random.default_rng(1)
    for i in range(3):
        rows = rng.integers(0, 2, (60, 4))
        logs.append(tmp_path / f"log-{i}.csv")
        text = "\n".join(",".join(map(str, row)) for row in rows)
        logs[-1].write_text(f"state,action,reward,next_state\n{text}\n")
    knobs = ("--discount", 0.9, "--models", 60, "--time", 0, "--no-measure", "--keep-suspicious")
    for log in logs:
        assert command("plan", log, *knobs, "--out", tmp_path / "single" / log.stem).returncode == 0
    done = command("plan", *logs, *knobs, "--out", tmp_path / "all")
    assert done.returncode == 0, done.stderr
    for log in logs:
        for name in ("policy.csv", "certificate.json", "posterior.npz"):
            one, two = (tmp_path / place / log.stem / name for place in ("single", "all"))
            assert one.read_bytes() == two.read_bytes(), name
    again = command("plan", *logs, *knobs, "--out", tmp_path / "all")
    assert "3 were finished before" in again.stderr
    logs[1].write_text(logs[1].read_text() + "0,0,1,1\n")
    assert "2 were finished before" in command("plan", *logs, *knobs, "--out", tmp_path / "all").stderr


def batch(paths: list[Path], out: Path, *options: str) -> subprocess.Popen[str]:
    arguments = ("bound", *paths, "--effort", "2", "--out", out, *options)
    return subprocess.Popen(
        [sys.executable, "-c", "from beliefbound.cli import command; command()", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1"},
        start_new_session=True,
    )


@pytest.mark.parametrize(("executor", "n"), [("threads", 50), ("ray", 200)])
def test_many_problems_killed_and_resumed_are_those_of_one_by_one(tmp_path, executor, n):
    if executor == "ray":
        pytest.importorskip("ray")
    paths = problems(tmp_path / "problems", n)
    first = batch(paths, tmp_path / "out", "--executor", executor)
    while len(list((tmp_path / "out").glob("*/bounds.json"))) < 20:
        assert first.poll() is None, first.communicate()
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    before = len(json.loads((tmp_path / "out" / "finished.json").read_text()))
    assert 15 <= before < n
    second = batch(paths, tmp_path / "out", "--executor", executor)
    said, errors = second.communicate()
    assert second.returncode == 0, errors
    assert f"{before} were finished before" in errors
    assert len(said.splitlines()) >= n
    chosen = [paths[i] for i in (0, 37, n - 1)]
    with ThreadPoolExecutor(1) as pool:
        options = BoundOptions(effort=2)
        list(pool.map(lambda path: certify_folder(path, tmp_path / "single" / path.name, options), chosen))
    for path in chosen:
        assert content(tmp_path / "out" / path.name) == content(tmp_path / "single" / path.name)
