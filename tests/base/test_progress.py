"""What is shown is what is being done."""

import io

from rich.console import Console

from beliefbound.base.progress import RunDisplay, TurnDisplay
from beliefbound.lab.experiments.run import run
from beliefbound.lab.experiments.spec import Cell, Spec
from beliefbound.lab.paper.figure1 import figure1


def shown(act) -> str:
    """The display after `act(display)`, as one would read it."""
    screen = io.StringIO()
    console = Console(file=screen, width=120, force_terminal=True, color_system=None)
    display = RunDisplay(10, 4, console)
    act(display)
    console.print(display._bars.get_renderable())
    return screen.getvalue()


def test_a_display_tells_compiling_from_playing_from_what_comes_after():
    def played(display):
        display.block(Cell("exploit", "chain", 1), 6)

    def drawing(display):
        played(display)
        display.stage("Figure 2")
        display.stage("Figure 1, belief 3 of 41")

    assert "compiling, once" in shown(lambda display: None)
    assert "4/10" in shown(lambda display: None)
    assert "exploit chain" in shown(played)
    assert "10/10" in shown(played)
    text = shown(drawing)
    assert "Figure 1, belief 3 of 41" in text
    assert "Figure 2" not in text
    assert "10/10" not in text, "a full bar says that nothing is left to do"


def test_the_library_shows_the_same_bars_when_asked(tmp_path, capsys):
    spec = Spec(agents=("random",), environments=("chain",), runs=4, steps=10)
    quiet = run(spec, tmp_path / "quiet").read()
    figure1(points=2, n_states=3)
    assert capsys.readouterr() == ("", "")
    assert run(spec, tmp_path / "loud", progress=True).read().equals(quiet)
    out, err = capsys.readouterr()
    assert out == ""
    assert "4/4" in err
    figure1(points=2, n_states=3, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Figure 1" in err
    assert "100%" in err


def test_whose_turn_it_is_and_how_far():
    file = io.StringIO()
    with TurnDisplay(Console(file=file, width=80, force_terminal=True)) as display:
        display.turn("[bold]mine: 3 runs of 20 steps")
        display.block(None, 2)
        display._line.refresh()
        display.turn("random: 5 runs of 20 steps")
        display._line.refresh()
        display.doing("between 1 and 2")
        display._line.refresh()
    text = file.getvalue()
    assert "[bold]mine: 3 runs of 20 steps\n" in text.replace("\x1b[2K", "").replace("\r", "")
    assert "[bold]mine: 3 runs of 20 steps, 2 done" in text
    assert "random: 5 runs of 20 steps, " not in text
    assert "between 1 and 2 " in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor is back
