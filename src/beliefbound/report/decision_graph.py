"""The picture of a decision graph: boxes that say where one is and what to do, arrows that say what is seen.

Nodes stand in columns by how many steps they are from the start. Arrows from one node to another that several
observations share are one arrow; its label and its head stand along it, where no box hides them.
"""

from pathlib import Path
from typing import Any

from beliefbound.bounds.finite.decision_graph import DecisionGraph, Node
from beliefbound.policy.results import literal
from beliefbound.report.figures import COLOURS, figure, save
from beliefbound.report.page import Picture, Section, Table

_DRAWN = 24  # nodes up to which a picture can be read
_SHOWN = 40  # models whose values the page lists
_WIDE, _HIGH = 3.4, 1.5  # inches between columns and between rows
_BEND = 0.18  # of arrows, as a share of their length
_LABEL, _HEAD = 0.4, 0.62  # how far along them labels and heads stand


def graph_sections(graph: DecisionGraph | None, upper: float, folder: Path) -> list[Section]:
    """What a report says of a decision graph: a picture, where it is small enough to be read, and a table."""
    if graph is None:
        return []
    pictures = list[Picture]()
    if len(graph.nodes) <= _DRAWN:
        caption = (
            "A box says where one is and what to do; an arrow, what is seen next. Green boxes are where it starts."
        )
        pictures.append(Picture(draw(graph, folder / "controller"), caption, wide=True))
    header = ["node", "in state", "do", "and then", "share of steps"]
    table = Table(header, graph.rows(), "What to do: begin at the start, and follow what is seen from node to node.")
    starts = "; ".join(f"in {state} begin at {node}" for state, node in graph.start)
    rows = [[name, f"{value:.6g}"] for name, value in zip(graph.models, graph.model_values, strict=True)]
    worth = Table(["model", "the graph earns"], rows[:_SHOWN], "Its exact value on each model.")
    words = [graph.words(upper), f"Start: {starts}."]
    return [Section("What to do, as a decision graph", words, [table, worth], pictures)]


def draw(graph: DecisionGraph, stem: Path) -> Path:
    """Write `<stem>.png` and `<stem>.svg`; returns the SVG."""
    place = _places(graph)
    columns, rows = (1 + max(xy[i] for xy in place.values()) for i in (0, 1))
    size = (2.4 + _WIDE * (columns - 1), 1.6 + _HIGH * max(1.0, rows))
    with figure(figsize=size, layout="constrained") as (drawn, axes):
        axes.set_axis_off()
        axes.grid(visible=False)
        axes.set_xlim(-0.55 * _WIDE, _WIDE * (columns - 0.45))
        axes.set_ylim(-_HIGH * (rows - 0.2), 0.8 * _HIGH)
        axes.set_aspect("equal")
        starts = {node for _, node in graph.start}
        for node in graph.nodes:
            _arrows(axes, node, place)
            edge = COLOURS["ours"] if node.number in starts else "#555555"
            text = f"{node.number}. {literal(node.state)}\n{literal(node.action)}"
            box = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": edge, "linewidth": 1.6}
            axes.text(*_at(place[node.number]), text, ha="center", va="center", fontsize=9, zorder=4, bbox=box)
        return save(drawn, stem)[1]


def _places(graph: DecisionGraph) -> dict[int, tuple[int, float]]:
    """Column and row of each node: columns by distance from the start, rows centred."""
    after = {node.number: [target for _, target in node.next] for node in graph.nodes}
    depth = {node: 0 for _, node in graph.start}
    front = list(depth)
    for node in front:
        for target in after[node]:
            if target not in depth:
                depth[target] = depth[node] + 1
                front.append(target)
    columns: dict[int, list[int]] = {}
    for node, column in depth.items():
        columns.setdefault(column, []).append(node)
    tallest = max(len(nodes) for nodes in columns.values())
    return {
        node: (column, i + 0.5 * (tallest - len(nodes)))
        for column, nodes in columns.items()
        for i, node in enumerate(sorted(nodes))
    }


def _at(place: tuple[int, float]) -> tuple[float, float]:
    return _WIDE * place[0], -_HIGH * place[1]


def _arrows(axes: Any, node: Node, place: dict[int, tuple[int, float]]) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    targets: dict[int, list[str]] = {}
    for observed, after in node.next:
        targets.setdefault(after, []).append(observed)
    begin = _at(place[node.number])
    small = {"ha": "center", "va": "center", "fontsize": 7.5, "color": "#333333"}
    for target, seen in targets.items():
        label = "whatever is seen" if len(targets) == 1 and len(node.next) > 1 else literal(" or ".join(seen), 30)
        if target == node.number:
            axes.text(begin[0], begin[1] + 0.33 * _HIGH, f"↻ {label}", zorder=5, **small)
            continue
        end = _at(place[target])
        bend = (
            0.5 * (begin[0] + end[0]) + _BEND * (end[1] - begin[1]),
            0.5 * (begin[1] + end[1]) - _BEND * (end[0] - begin[0]),
        )
        line = Curve([begin, bend, end], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])
        axes.add_patch(PathPatch(line, fill=False, edgecolor="#8a8f98", linewidth=1.1, zorder=1))
        head = {"arrowstyle": "-|>", "color": "#5b6570", "linewidth": 1.1, "mutation_scale": 13}
        axes.annotate("", _on(begin, bend, end, _HEAD), _on(begin, bend, end, _HEAD - 0.03), arrowprops=head, zorder=2)
        box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        axes.text(*_on(begin, bend, end, _LABEL), label, zorder=3, bbox=box, **small)


def _on(
    begin: tuple[float, float], bend: tuple[float, float], end: tuple[float, float], t: float
) -> tuple[float, float]:
    """The point of a quadratic curve at `t` from 0 to 1."""
    a, b, c = (1.0 - t) ** 2, 2.0 * t * (1.0 - t), t**2
    return a * begin[0] + b * bend[0] + c * end[0], a * begin[1] + b * bend[1] + c * end[1]
