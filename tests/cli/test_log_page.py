"""docs/log.md: every command and every line of Python on it works, in the order given."""

import doctest
import re
import runpy
import sys
from pathlib import Path

from beliefbound.cli import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "log.md"


def test_every_command_on_the_page_works(tmp_path, monkeypatch):
    text = PAGE.read_text()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    commands = [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]
    assert len(commands) == 3
    for command in commands:
        name, *words = command.split()
        if name == "beliefbound":
            app(words, standalone_mode=False)
        else:
            assert name == "python"
            monkeypatch.setattr(sys, "argv", words)
            runpy.run_path(words[0], run_name="__main__")
    assert (tmp_path / "replacement-plan" / "certificate.json").exists()
    assert (tmp_path / "cautious-plan" / "report.html").exists()
    examples = doctest.DocTestParser().get_doctest(text, {}, "log.md", str(PAGE), 0)
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
    assert results.attempted == 11
    assert results.failed == 0
