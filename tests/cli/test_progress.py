"""What is shown is what is being done."""

import io

from rich.console import Console

from beliefbound.experiments.spec import Cell
from beliefbound.progress import RunDisplay


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
