"""What commands print: names from files are shown as they are, whatever signs they hold."""

import io

import pytest
import typer
from rich.console import Console

from beliefbound.base.progress import RunDisplay
from beliefbound.cli import main
from beliefbound.cli.app import app
from beliefbound.cli.show import end_interrupted, show_table
from beliefbound.lab.experiments.spec import Spec


def test_names_that_look_like_markup_or_hold_control_characters(capsys):
    show_table("", ["model", "value"], [["mo[/x]del", "1"], [":smile:", "2"], ["two\nlines\x1b[31m", "3"]])
    printed = capsys.readouterr().out
    assert "mo[/x]del" in printed
    assert ":smile:" in printed
    assert "two·lines·[31m" in printed


def test_a_bar_shows_cells_that_look_like_markup():
    spec = Spec(agents=("random",), environments=("folder:[/x]",), runs=4, steps=1)
    file = io.StringIO()
    with RunDisplay(4, 0, Console(file=file, width=120, force_terminal=True)) as display:
        display.block(spec.cells()[0], 2)
        display.say("wrote [/x]")
    assert "wrote [/x]" in file.getvalue()


def test_a_search_that_was_interrupted_says_so_and_has_its_exit_code(capsys):
    end_interrupted(False)
    assert capsys.readouterr().err == ""
    with pytest.raises(typer.Exit) as leaving:
        end_interrupted(True)
    assert leaving.value.exit_code == 130
    assert "interrupted" in capsys.readouterr().err


def test_too_little_memory_is_said_in_one_line(capsys, monkeypatch):
    def exhausted(*values, **named):
        raise MemoryError

    monkeypatch.setattr(type(app), "__call__", exhausted)
    with pytest.raises(SystemExit) as leaving:
        main()
    assert leaving.value.code == 1
    assert capsys.readouterr().err.startswith("error: not enough memory")
