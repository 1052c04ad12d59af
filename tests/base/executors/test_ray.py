"""Ray gives the bytes that threads give, whoever dies meanwhile."""

import importlib.util
import json
import os
import pickle
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest

import beliefbound
from beliefbound.base.errors import BeliefboundError, ExecutorError, ParameterError
from beliefbound.base.executors import opened
from beliefbound.base.executors.cluster import _ONE_THREAD, RayExecutor, _environment, _work
from beliefbound.lab.experiments.run import run
from beliefbound.lab.experiments.spec import Spec


def needs_ray(test):
    """It does, so it is for the full tier."""
    there = importlib.util.find_spec("ray") is not None
    return pytest.mark.full(pytest.mark.skipif(not there, reason="Ray is not installed: extra `ray`")(test))


SPEC = Spec(agents=("mcbrl:n=2", "oracle"), environments=("chain", "grid:5"), runs=40, steps=60, visits=True)


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.glob("*/*/*.parquet"))}


def python(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which Ray's threads and sockets end with."""
    paths = [str(Path(beliefbound.__file__).parents[1]), str(Path(__file__).parents[2])]
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NO_COLOR": "1"},
        **options,
    )


@needs_ray
def test_a_killed_worker_and_a_killed_node_change_no_byte(tmp_path):
    run(SPEC, tmp_path / "threads", block=5, threads=1)
    (tmp_path / "notes").mkdir()
    arguments = (tmp_path / "ray", tmp_path / "notes")
    done = python("-m", "support.two_nodes", *arguments, input=msgspec.json.encode(SPEC).decode())
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads((tmp_path / "notes" / "seen.json").read_text())
    assert content(tmp_path / "ray") == content(tmp_path / "threads")  # parquet files, byte for byte
    assert len(content(tmp_path / "ray")) == 4 * 8

    starts = {note.name: len(note.read_text().splitlines()) for note in (tmp_path / "notes").glob("*@*")}
    on_victim = [name for name in starts if name.endswith(seen["victim"])]
    assert len(on_victim) == 1, "the node died with one block"
    assert sum(starts.values()) == 4 * 8 + 2, "each death cost the one block in flight"

    assert seen["threads"] == [1, "1"]
    assert seen["error"] == "ParameterError: block 7 is refused"
    assert seen["kept"] == sorted(seen["kept"])
    assert len(seen["kept"]) <= 4  # what was in flight


@needs_ray
def test_the_command_starts_a_cluster_of_its_own_and_says_nothing_of_it(tmp_path):
    spec = msgspec.structs.replace(SPEC, environments=("chain",))
    (tmp_path / "try.json").write_bytes(msgspec.json.encode(spec))
    command = ("-c", "from beliefbound.cli import command; command()", "run", "try.json", "--block", "10")
    done = python(*command, "--executor", "ray", "--threads", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run(spec, tmp_path / "threads", block=10)
    assert content(tmp_path / "try") == content(tmp_path / "threads")
    for noise in ("ray", "warning", "dashboard", "usage"):
        assert noise not in (done.stdout + done.stderr).lower().replace(str(tmp_path).lower(), "")


@needs_ray
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc/net")
def test_a_cluster_of_its_own_cannot_be_reached_from_elsewhere():
    done = python("-m", "support.listening")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()
    assert all(address.endswith("0100007F") for address in done.stdout.split())  # 127.0.0.1, as the kernel writes it


def test_without_ray_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ParameterError, match=r"pip install 'beliefbound\[ray\]'"), opened("ray"):
        pass


@needs_ray
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 2, "address": "auto"}, "threads is 2, but the cluster at auto has its own; leave one out"),
        ({"address": "127.0.0.1:1"}, "no Ray cluster at 127.0.0.1:1: .*; start one with: ray start --head"),
        ({"address": "somewhere"}, "address is 'somewhere'; give host:port, or auto"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_at_once(arguments, message):
    with pytest.raises(BeliefboundError, match=message), opened("ray", **arguments):
        pass


def test_a_worker_without_the_package_is_told_what_it_lacks():
    """Ray's own words for it, as it raises them."""

    class RayTaskError(Exception):
        cause = RuntimeError(
            "The remote function failed to import on the worker. This may be because needed library dependencies are "
            "not installed in the worker environment:\n\nModuleNotFoundError: No module named 'beliefbound'"
        )

    class RayError(Exception):
        pass

    class Cluster:
        exceptions = type("exceptions", (), {"RayTaskError": RayTaskError, "RayError": RayError})

        def get(self, done):
            raise RayTaskError

    executor = RayExecutor.__new__(RayExecutor)
    executor._ray = Cluster()
    with pytest.raises(ExecutorError, match="on every node: pip install beliefbound=="):
        executor._result(None, 7)


def test_a_node_with_another_version_is_refused():
    with pytest.raises(ExecutorError, match=r"a node has beliefbound .*, this process 0\.0\.0; install the same"):
        _work("0.0.0", pickle.dumps(abs), pickle.dumps(1))
    with _environment(_ONE_THREAD):  # what a worker sets is undone here
        assert _work(version("beliefbound"), pickle.dumps(abs), pickle.dumps(-1)) == 1
