"""Wrong calls and damaged files: refused in words, or they work. `make soak` does the same for as long as you like."""

import inspect
import sys
import tempfile

import pytest

import beliefbound
from beliefbound.base.errors import ParameterError
from soak.calls import calls
from soak.fuzz import outcome, supervise

# Results of functions, which check nothing, protocols and errors; and what finds faults, for tests, by assertions.
NOT_CALLED = {
    "ApproximateLP",
    "Belief",
    "BeliefboundError",
    "BestMemoryless",
    "Bracket",
    "Capability",
    "Certified",
    "Information",
    "Kind",
    "Log",
    "ModelFolder",
    "Plan",
    "Policy",
    "Population",
    "RobustBracket",
    "Runs",
    "Sensitivity",
    "check_belief",
    "check_policy",
    "check_rewards",
}


@pytest.mark.full
def test_two_thousand_wrong_calls_end_in_words(tmp_path, monkeypatch):
    """In a process of its own: a crash or a hang of five minutes would be a failure among others. No file stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    counts, failures = supervise(7, 2000, say=lambda text: None)
    assert failures == []
    assert sum(counts.values()) == 2000
    assert counts["refused"] > 1000
    assert counts["worked"] > 100
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_was_killed_leaves_no_files(tmp_path, monkeypatch):
    """One that writes, begins a call and dies."""
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\nmkdir "$TMPDIR/left"\nprintf "0\\tbegins\\tf()\\n"\nkill -9 $$\n')
    fake.chmod(0o700)
    (folder := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(sys, "executable", str(fake))
    counts, failures = supervise(1, 1, say=lambda text: None)
    assert counts == {"hang": 1}
    assert [failure.what for failure in failures] == ["f()"]
    assert list(folder.iterdir()) == []


def test_every_public_callable_is_called():
    called = {getattr(make().function, "__name__", "") for make in calls().values()}
    rooms = [beliefbound, *(x for name in beliefbound.__all__ if inspect.ismodule(x := getattr(beliefbound, name)))]
    assert len(rooms) == 4
    public = {name for room in rooms for name in room.__all__ if callable(getattr(room, name))}
    assert public - called == NOT_CALLED


@pytest.mark.full
def test_the_calls_that_are_spoilt_are_good():
    """One test for all of them: what they are made of takes a search, which is not for the collection of tests."""
    of_files = {"load_actor", "load_belief", "load_policy", "read_models"}  # that are there only after others
    found = {}
    for name, make in calls().items():
        if name not in of_files:
            function, arguments = make()
            inspect.signature(function).bind(**arguments)
            found[name] = outcome(lambda f=function, a=arguments: f(**a))
    assert len(found) > 60
    assert {name: how for name, how in found.items() if how != ("worked", "")} == {}


def raising(error):
    def call():
        raise error

    return call


def test_what_counts_as_a_failure():
    assert outcome(raising(ParameterError("n is 3; give 4"))) == ("refused", "")
    assert outcome(raising(TypeError("f() missing 1 required positional argument: 'x'")))[0] == "refused"
    for error in (TypeError("unsupported operand"), KeyError("x"), MemoryError(), RecursionError()):
        assert outcome(raising(error))[0] == "raised"
    assert outcome(lambda: float("nan")) == ("silent", "not a number in the result")
