"""`beliefbound plan LOGS… --tasks`: one log a task or a column, files, and mistakes from the command line."""

import numpy as np
import pytest
from typer.testing import CliRunner

import beliefbound as bb
from beliefbound.bounds.certified import Certified
from beliefbound.cli import app
from beliefbound.report.tasks import TasksPlan

pytestmark = pytest.mark.full


def rows(k, n=60):
    """Action `good` leads on from `cold` in all sites, `odd` in every other one; `warm` pays."""
    rng, state, lines = np.random.default_rng(k), "cold", []
    for _ in range(n):
        action = ("good", "odd")[int(rng.integers(2))]
        chance = 0.9 if action == "good" or k % 2 else 0.1
        after = "warm" if rng.random() < chance and state == "cold" else "cold"
        lines.append(f"{state},{action},{float(state == 'warm')},{after}")
        state = after
    return lines


HEADER = "state,action,reward,next_state"


@pytest.fixture
def sites(tmp_path):
    files = []
    for k in range(6):
        (tmp_path / f"site{k}.csv").write_text("\n".join([HEADER, *rows(k)]))
        files.append(str(tmp_path / f"site{k}.csv"))
    return files


def call(*words):
    return CliRunner().invoke(app, ["plan", *map(str, words)])


KNOBS = ("--discount", 0.9, "--time", 0, "--models", 100)


def test_one_log_a_task_and_a_column_are_the_same(sites, tmp_path):
    done = call(*sites, "--tasks", *KNOBS, "--out", tmp_path / "by-file")
    assert done.exit_code == 0, done.output
    table = [f"{line},{k}" for k in range(6) for line in rows(k)]
    (tmp_path / "all.csv").write_text("\n".join([f"{HEADER},site", *table]))
    again = call(tmp_path / "all.csv", "--tasks", "--column", "task=site", *KNOBS, "--out", tmp_path / "by-column")
    assert again.exit_code == 0, again.output
    one, other = (tmp_path / name / "policy.csv" for name in ("by-file", "by-column"))
    assert one.read_text() == other.read_text()
    policy = bb.load_policy(tmp_path / "by-file" / "policy.json")
    assert policy.act(0) == 0  # `good` in `cold`
    belief = bb.load_belief(tmp_path / "by-file" / "population.npz")
    assert isinstance(belief, bb.beliefs.PopulationBelief)
    certificate = Certified.load(tmp_path / "by-file" / "certificate.json")
    assert certificate.lower.value <= certificate.value <= certificate.best.value
    page = (tmp_path / "by-file" / "report.html").read_text()
    assert "What differs between tasks" in page
    assert "odd" in done.output


def test_what_differs_most_comes_first(sites, tmp_path):
    done = call(*sites, "--tasks", *KNOBS, "--out", tmp_path / "out")
    first = done.output.split("tasks that tried it")[1].split()[:2]
    assert first == ["cold", "odd"]


def test_mistakes_are_answered_and_nothing_is_lost(sites, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    for words, message in (
        ((sites[0], "--tasks", *KNOBS), "has no column 'task'"),
        ((sites[0], tmp_path / "none.csv", "--tasks", *KNOBS), "none.csv"),
        ((*sites, "--tasks", *KNOBS, "--prior", "uniform"), "--prior is for one task"),
    ):
        done = call(*words, "--out", out)
        assert done.exit_code != 0
        assert "Traceback" not in done.output
        assert message in " ".join((done.output + str(done.exception or "")).split()).replace(" │ │ ", " ")
    assert sorted(path.name for path in out.iterdir()) == ["mine.txt"]


def test_the_page_escapes_names(tmp_path):
    evil = [line.replace("odd", "<script>x</script>") for k in range(4) for line in (f"{x},{k}" for x in rows(k))]
    (tmp_path / "all.csv").write_text("\n".join([f"{HEADER},task", *evil]))
    done = call(tmp_path / "all.csv", "--tasks", *KNOBS, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "<script>x" not in (tmp_path / "out" / "report.html").read_text()
    assert TasksPlan.__doc__
