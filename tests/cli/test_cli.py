"""The command line teaches, reports, and never shows a traceback for a user's mistake."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from beliefbound import DirichletBelief, KnownRewards, evaluate, write_models
from beliefbound.bounds.policy_files import load_policy
from support.command_line import beliefbound, command

SPEC = 'agents = ["oracle", "random"]\nenvironments = ["chain"]\nruns = 20\nsteps = 30\ntitle = "<b>bold</b> & co"\n'


def test_help_lists_every_command():
    done = beliefbound("--help")
    assert done.returncode == 0
    for name in ("paper", "run", "report", "bound", "agents", "envs"):
        assert name in done.stdout
    for name in ("paper", "run"):
        assert "--out" in command(name, "--help").stdout


def test_listings():
    assert "mcbrl" in command("agents").stdout
    assert "chain" in command("envs").stdout


def test_a_run_prints_a_table_and_writes_a_report(tmp_path):
    (tmp_path / "try.toml").write_text(SPEC)
    done = beliefbound("run", "try.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "oracle" in done.stdout
    html = (tmp_path / "try" / "report.html").read_text()
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; co" in html
    assert "<b>bold" not in html
    assert "http" not in html.replace("http://www.w3.org", "")  # nothing to fetch
    assert pl.read_parquet(tmp_path / "try" / "runs.parquet").shape == (40, 6)
    assert pl.read_csv(tmp_path / "try" / "summary.csv").shape[0] == 2
    again = command("report", "try", cwd=tmp_path)
    assert again.returncode == 0
    (tmp_path / "try.toml").write_text(SPEC.replace("steps = 30", "steps = 31"))
    refused = command("run", "try.toml", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.strip().endswith("choose another folder or restore the spec")


def test_a_mistake_ends_the_process_with_one_line(tmp_path):
    done = beliefbound("run", "missing.toml", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot read missing.toml")
    assert len(done.stderr.splitlines()) == 1


ENDING = """
import atexit, sys
from beliefbound import cli
def main():
    atexit.register(print, "at the end")
    print("said")
    sys.exit({code!r})
cli.main = main
cli.command()
"""


@pytest.mark.parametrize(("code", "exit_code", "error"), [(None, 0, ""), (3, 3, ""), ("why", 1, "why\n")])
def test_what_a_command_says_and_registers_is_done_before_the_process_ends(code, exit_code, error):
    done = subprocess.run([sys.executable, "-c", ENDING.format(code=code)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (exit_code, "said\nat the end\n", error)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "nowhere"], "error: nowhere holds no experiment"),
        (["paper", "--runs", "0"], "Invalid value for '--runs'"),
        (["paper", "--n", "0"], "Invalid value for '--n'"),
        (["fly"], "No such command 'fly'"),
    ],
)
def test_mistakes_get_one_line_and_a_failing_exit_code(tmp_path, arguments, message):
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_bound_takes_a_model_folder_to_a_bracket_a_policy_and_a_report(tmp_path):
    belief = DirichletBelief(3, 2, concentration=0.5, rewards=KnownRewards([[0.0, 0.1], [0.2, 0.0], [1.0, 0.3]]))
    models = belief.sample(4, np.random.default_rng(0))
    write_models(tmp_path / "models", models, discount=0.9, initial=0, test=models)
    done = command("bound", "models", "--gap", "0.02", "--effort", "1000", "--out", "found", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "QMDP" in done.stdout
    assert "On the test models the memoryless policy earns" in done.stdout
    found = json.loads((tmp_path / "found" / "bounds.json").read_text())
    assert found["lower"]["value"] <= found["upper"]["value"]
    assert found["relative_gap"] <= 0.02
    assert {"MMBI", "QMDP", "E max"} <= {bound["method"] for bound in found["bounds"]}
    certified = load_policy(tmp_path / "found" / found["policy"])
    assert certified.n_states == 3
    assert f"within {found['regret']['value']:.6g} of Bayes-optimal" in done.stdout
    table = pl.read_csv(tmp_path / "found" / "memoryless.csv")
    exported = load_policy(tmp_path / "found" / "memoryless.json")
    assert table["idaction"].to_list() == exported.actions.tolist()
    value = models.weights @ evaluate(exported, models, discount=0.9)[:, 0]
    assert value == pytest.approx(found["job"]["memoryless"]["value"])
    assert found["job"]["memoryless"]["gap"] == pytest.approx(found["upper"]["value"] - value)
    memoryless = found["job"]["memoryless"]
    stated = f"earns exactly {value:.6g} on the training models, within {memoryless['gap']:.6g} of Bayes-optimal"
    for text in (
        done.stdout,
        (tmp_path / "found" / "memoryless.json").read_text(),
        (tmp_path / "found" / "report.html").read_text(),
    ):
        assert stated in text
    assert "<svg" not in (tmp_path / "found" / "report.html").read_text()  # figures are embedded as data
    table = command("compare", "models", "--horizon", "7", "--out", "table.csv", cwd=tmp_path)
    assert table.returncode == 0, table.stderr
    rows = pl.read_csv(tmp_path / "table.csv")
    assert rows["method"].to_list() == ["expected MDP", "MMBI", "CADP", "oracle"]
    assert rows["training"].to_list() == pytest.approx(rows["test"].to_list())
    assert rows["training"].to_list() == sorted(rows["training"].to_list())
    timed = command("bound", "models", "--horizon", "5", "--out", "timed", cwd=tmp_path)
    assert timed.returncode == 0, timed.stderr
    assert pl.read_csv(tmp_path / "timed" / "memoryless.csv").columns == ["stage", "idstate", "idaction"]
    for arguments, message in (
        (["bound", "nowhere"], "error: "),
        (["bound", "models", "--reward-signal", "often"], "reward_signal is 'often'"),
    ):
        failed = command(*arguments, cwd=tmp_path)
        assert failed.returncode == 1
        assert message in failed.stderr
        assert "Traceback" not in failed.stderr


AGENT = """
import numpy as np

class Wandering:
    def reset(self, seed):
        self.rng = np.random.default_rng(seed)

    def act(self, state):
        return int(self.rng.random() < 0.2)

    def observe(self, state, action, reward, next_state):
        pass
"""


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: extra `ray`")
def test_on_ray_each_command_writes_what_it_writes_here(tmp_path):
    """A policy of somebody's class, Markov chains, one problem: the same numbers, to the last digit."""
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "demos.csv").write_text("state,action,next_state\n0,1,1\n1,1,1\n1,1,0\n0,1,1\n1,0,0\n")
    write_models(tmp_path / "models", DirichletBelief(3, 2, initial=0).sample(3, 1), discount=0.8)
    chains = ("--steps", "200", "--draws", "16", "--time", "0")
    for asked, here, there in (
        (("certify", "agent.py:Wandering", "models", "--samples", "70"), "h.json", "t.json"),
        (("imitate", "demos.csv", "--discount", "0.8", *chains), "h/imitation.json", "t/imitation.json"),
        (("bound", "models", "--effort", "4"), "b/bounds.json", "all/models/bounds.json"),
    ):
        for out, where in ((here, ()), (there, ("--executor", "ray", "--threads", "2"))):
            done = beliefbound(*asked, *where, "--out", out.split("/")[0], cwd=tmp_path)
            assert done.returncode == 0, done.stderr
        found = [json.loads((tmp_path / out).read_text()) for out in (here, there)]
        timed = dict.fromkeys(("trace", "compile_seconds"))
        assert {**found[0], **timed} == {**found[1], **timed}


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: extra `ray`")
def test_a_cluster_that_is_not_there_is_one_line_and_nothing_is_written(tmp_path):
    (tmp_path / "log.csv").write_text("state,action,reward,next_state\n0,0,1,0\n0,1,0,0\n")
    (tmp_path / "agent.py").write_text(AGENT)
    write_models(tmp_path / "models", DirichletBelief(3, 2, initial=0).sample(3, 1), discount=0.8)
    where = ("--executor", "ray", "--address", "127.0.0.1:1")
    for asked in (
        ("plan", "log.csv", "--discount", "0.9"),
        ("imitate", "log.csv", "--discount", "0.9"),
        ("certify", "agent.py:Wandering", "models"),
        ("bound", "models"),
    ):
        done = command(*asked, *where, "--out", "there", cwd=tmp_path)
        assert done.returncode == 1
        assert done.stderr.strip().endswith("start one with: ray start --head")
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "there").exists()
    refused = command("plan", "log.csv", "--discount", "0.9", *where[2:], "--out", "plan", cwd=tmp_path)
    assert refused.returncode == 1
    assert "threads have none; add: --executor ray" in refused.stderr
