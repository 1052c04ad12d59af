"""Ctrl-C and kill -9: what is finished is kept, and the same command continues to the same bytes."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from beliefbound.base.interrupt import first_interrupt
from beliefbound.lab.experiments.run import run
from beliefbound.lab.experiments.spec import load_spec
from beliefbound.lab.experiments.store import Store
from soak.kills import contents, kill_and_compare, parts

QUICK = 'agents = ["random", "exploit", "mcbrl:n=8"]\nenvironments = ["chain"]\nruns = 600\nsteps = 300\n'
# The third block of this one plays for a quarter of an hour: whoever waits for it hangs.
ENDLESS = 'agents = ["random", "mcbrl:n=64"]\nenvironments = ["grid:10"]\nruns = 2\nsteps = 20000000\n'


@pytest.fixture
def command(tmp_path):
    """Begin `beliefbound run` in a folder; what is still running at the end of the test is killed."""
    begun = []

    def begin(*arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
        said = tmp_path / f"said-{len(begun)}"
        with said.open("wb") as errors:
            child = subprocess.Popen(
                [sys.executable, "-c", "from beliefbound.cli import command; command()", "run", "try.toml", *arguments],
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1"},
            )
        begun.append(child)
        return child, said

    yield begin
    for child in begun:
        child.kill()
        child.wait()


def until(fact, child):
    """Wait for a fact while the command runs; two minutes without it are a failure."""
    deadline = time.monotonic() + 120
    while not fact():
        assert child.poll() is None, "ended too soon"
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.full
def test_ctrl_c_finishes_the_blocks_in_flight_and_the_same_command_continues(tmp_path, command):
    (tmp_path / "try.toml").write_text(QUICK)
    child, said = command("--block", "20", "--threads", "2")
    until(lambda: parts(tmp_path / "try") >= 3, child)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=600) == 130
    assert "finishing the blocks in flight; a second Ctrl-C leaves at once" in said.read_text()
    assert "keeps every finished run. Run the same command to continue." in said.read_text()
    assert "Traceback" not in said.read_text()
    assert 3 <= parts(tmp_path / "try") < 90
    kept = contents(tmp_path / "try")
    spec = load_spec(tmp_path / "try.toml")
    run(spec, tmp_path / "try", block=20)
    run(spec, tmp_path / "undisturbed", block=20)
    assert contents(tmp_path / "try") == contents(tmp_path / "undisturbed")
    assert kept.items() <= contents(tmp_path / "try").items()


@pytest.mark.full
def test_a_second_ctrl_c_leaves_at_once_and_loses_only_the_blocks_in_flight(tmp_path, command):
    (tmp_path / "try.toml").write_text(ENDLESS)
    child, said = command("--block", "1", "--threads", "1")
    until(lambda: parts(tmp_path / "try") == 2, child)
    child.send_signal(signal.SIGINT)
    until(lambda: "finishing the blocks in flight" in said.read_text(), child)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=600) == 130
    assert "keeps every finished run" in said.read_text()
    assert "Traceback" not in said.read_text()
    assert len(Store.existing(tmp_path / "try").read()) == 2
    second, said = command("--block", "1", "--threads", "1")  # the lock went with its process
    time.sleep(0.2)
    until(lambda: (tmp_path / "try" / ".lock").read_bytes(), second)
    third, refused = command()
    assert third.wait(timeout=600) == 1
    assert f"process {second.pid} on" in refused.read_text()
    assert "is writing to" in refused.read_text()


def deaf():
    """Work that drops a second Ctrl-C, as a callback would, and then goes on for long."""
    with first_interrupt(lambda: None) as asked:
        signal.raise_signal(signal.SIGINT)
        assert asked.is_set()
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        time.sleep(300)
    pytest.fail("nobody repeated it")


def test_a_second_ctrl_c_that_nobody_heard_is_repeated(monkeypatch):
    monkeypatch.setattr("beliefbound.base.interrupt._PATIENCE", 0.05)
    with pytest.raises(KeyboardInterrupt):
        deaf()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.full
def test_kills_at_random_moments_change_no_byte(tmp_path):
    said = []
    assert kill_and_compare(tmp_path, kills=5, runs=200, seed=3, say=said.append) == []
    assert len(said) == 5
