"""The command line teaches, reports, and never shows a traceback for a user's mistake."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

SPEC = 'agents = ["oracle", "random"]\nenvironments = ["chain"]\nruns = 20\nsteps = 30\ntitle = "<b>bold</b> & co"\n'


def beliefbound(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from beliefbound.cli import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1"},
    )


def test_help_lists_every_command():
    done = beliefbound("--help")
    assert done.returncode == 0
    for command in ("paper", "run", "report", "agents", "envs"):
        assert command in done.stdout
    for command in ("paper", "run"):
        assert "--out" in beliefbound(command, "--help").stdout


def test_listings():
    assert "mcbrl" in beliefbound("agents").stdout
    assert "chain" in beliefbound("envs").stdout


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
    again = beliefbound("report", "try", cwd=tmp_path)
    assert again.returncode == 0
    (tmp_path / "try.toml").write_text(SPEC.replace("steps = 30", "steps = 31"))
    refused = beliefbound("run", "try.toml", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.strip().endswith("choose another folder or restore the spec")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "missing.toml"], "error: cannot read missing.toml"),
        (["report", "nowhere"], "error: nowhere holds no experiment"),
        (["paper", "--runs", "0"], "Invalid value for '--runs'"),
        (["paper", "--n", "0"], "Invalid value for '--n'"),
        (["fly"], "No such command 'fly'"),
    ],
)
def test_mistakes_get_one_line_and_a_failing_exit_code(tmp_path, arguments, message):
    done = beliefbound(*arguments, cwd=tmp_path)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
