"""docs/log.md: every command and every line of Python on it works, in the order given."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "log.md"


def test_every_command_on_the_page_works(tmp_path, monkeypatch):
    text = PAGE.read_text()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]
    assert len(commands) == 3
    script = "from beliefbound.cli import main; main()"
    for command in commands:
        name, *words = command.split()
        run = [sys.executable, *(["-c", script, *words] if name == "beliefbound" else words)]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert (tmp_path / "replacement-plan" / "certificate.json").exists()
    assert (tmp_path / "cautious-plan" / "report.html").exists()
    monkeypatch.chdir(tmp_path)
    examples = doctest.DocTestParser().get_doctest(text, {}, "log.md", str(PAGE), 0)
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
    assert results.attempted == 6
    assert results.failed == 0
