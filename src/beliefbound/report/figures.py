"""One look for every figure, saved as PNG and SVG."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from beliefbound.base.io.atomic import write_aside

COLOURS = {
    "ours": "#0b6e4f",
    "mmbi": "#08519c",
    "expected": "#b2182b",
    "upper": "#555555",
    "sharp": "#e08214",
    "other": "#7b3294",
}

_MARGIN = 0.1  # inches
_STYLE: Any = {
    "figure.figsize": (6.4, 4.0),
    "figure.dpi": 120,
    "savefig.dpi": 160,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "font.size": 10,
    "svg.hashsalt": "beliefbound",
    "svg.fonttype": "none",
}


@contextmanager
def figure(**keywords: Any) -> Iterator[tuple[Any, Any]]:
    """`(figure, axes)` in the house style, drawn without a display and closed afterwards."""
    import matplotlib

    with _without_listing():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    with matplotlib.rc_context(_STYLE):
        drawn = Figure(**keywords)
        FigureCanvasAgg(drawn)
        yield drawn, drawn.subplots()


@contextmanager
def _without_listing() -> Iterator[None]:
    """Where matplotlib is loaded for our pictures, its docstrings do not list the properties of all that can be drawn:
    to find them took a third of the time to load it."""
    from matplotlib import artist

    listing = artist.kwdoc
    artist.kwdoc = lambda artist: ""
    try:
        yield
    finally:
        artist.kwdoc = listing


def save(drawn: Any, stem: Path) -> tuple[Path, Path]:
    """Write `<stem>.png` and `<stem>.svg`, aside and renamed, with `_MARGIN` around what is drawn; the bytes depend on
    the data alone."""
    paths = stem.with_suffix(".png"), stem.with_suffix(".svg")
    drawn.draw_without_rendering()  # once for both: each would find out for itself how much space it needs
    box = drawn.get_tightbbox().padded(_MARGIN)
    nothing: tuple[dict[str, None], ...] = {"Software": None}, {"Date": None, "Creator": None}
    for path, metadata in zip(paths, nothing, strict=True):
        kind = path.suffix[1:]
        write_aside(path, partial(drawn.savefig, format=kind, metadata=metadata, bbox_inches=box))
    return paths
