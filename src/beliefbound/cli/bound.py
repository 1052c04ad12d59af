"""`beliefbound bound`."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from beliefbound.cli.app import (
    Absorbing,
    Address,
    Effort,
    Gap,
    Horizon,
    Initial,
    Seed,
    Signal,
    TimedThreads,
    TimeLimit,
    Weights,
    Where,
    app,
)
from beliefbound.cli.batch import batch
from beliefbound.cli.show import closing, doing, end_interrupted, loading, show_table


@app.command()
def bound(
    models: Annotated[
        list[Path],
        typer.Argument(
            help="Models: a folder with training.csv, …, or a .pomdpx, .pomdp or .npz file. Several: one table of all."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder; default: NAME-bounds, of several: bounds.")
    ] = None,
    horizon: Horizon = None,
    target_gap: Gap = None,
    time_limit: TimeLimit = None,
    effort: Effort = None,
    target: Annotated[
        str, typer.Option(help="value; decision: until one first action is proven optimal; upper: the upper end alone.")
    ] = "value",
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of all bounds together.")] = 0.95,
    reward_signal: Signal = None,
    absorbing: Absorbing = None,
    weights: Weights = None,
    initial: Initial = None,
    controller: Annotated[
        int | None, typer.Option(min=1, max=200, help="Also find a decision graph of at most so many nodes.")
    ] = None,
    measure: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Also what so many observations of each state and action are worth."),
    ] = None,
    starts: Annotated[
        bool, typer.Option("--starts", help="Also the proven first action from each state in which it may start.")
    ] = False,
    sensitivity: Annotated[
        str | None,
        typer.Option(help="Also which policy is best as the weight of a model moves, or of two: wet or wet,dry."),
    ] = None,
    seed: Seed = 1,
    threads: TimedThreads = None,
    executor: Where = "threads",
    address: Address = None,
) -> None:
    """Bracket the Bayes-optimal value of a set of models, and find policies for all of them.

    Writes `bounds.json`; the policy that the certificate is about, `policy.npz` (it learns as it acts) or `policy.json`
    (a table), for `load_policy`; a memoryless policy, the best one where that can be proven quickly, with a gap of its
    own, as `memoryless.csv` and `memoryless.json`; `bracket.png` and a `report.html`. With `--controller N`, a decision
    graph of at most N nodes to read and to follow: `controller.json`, `controller.npz`, `controller.png`. With
    `--measure K`, what to measure next: how much K observations of each state and action before acting, or knowing the
    model, would raise the value. With `--starts`, `decisions.csv`: the first action from each possible start, proven
    where it can be. With `--sensitivity wet,dry`, which policy has the highest expected value as these weights move
    (`sensitivity.csv`), and how probably each is the best (`acceptability.csv`), as pictures too. An earlier result in
    the folder gives way once the new one is complete; other files stay.
    `beliefbound verify` makes the certificate again from its seed and effort and compares.
    `--time` is for all that is computed, but for `--measure` and `--starts`; each part is named as it begins.
    Ctrl-C ends the search and writes what was found; a second one leaves at once.

    Several problems are searched side by side, each on one thread, into a folder of its name, with a table and a page
    of all; `--time` is for each. The same command goes on where it was left: what is finished is not made again.
    `--executor ray` searches on a cluster, a worker a problem; one problem is there what several are, a table of one.

    Example: `beliefbound bound models/ --gap 0.01 --time 30`
    """
    given = locals()
    if len(models) > 1 or executor != "threads" or address is not None:
        _bound_all(models, out or Path("bounds"), given)
        return
    (only,) = models
    with loading():
        from beliefbound.base.options import chosen
        from beliefbound.jobs.bound import BoundOptions, certify_folder
        from beliefbound.report.certificate import best_rows

    place = out or Path(f"{only.resolve().name if only.is_dir() else only.stem}-bounds")
    with closing() as (watch, say):
        found = certify_folder(only, place, chosen(BoundOptions, given), watch=watch, say=say, doing=doing(watch))
    for note in found.folder.notes:
        print(f"note: {note}", file=sys.stderr)
    if found.bracket.compile_seconds >= 2.0:
        print(f"note: compiling took {found.bracket.compile_seconds:.0f} s, not counted as search", file=sys.stderr)
    show_table("Bounds on the Bayes-optimal value", *best_rows(found.bracket.bounds))
    print(found.bracket.summary())
    for words in [*found.decision_words(), *found.policy_words(), *found.information_words(), *found.beside_words()]:
        print(words)
    print(f"report: {found.report}")
    end_interrupted(found.interrupted)


def _bound_all(models: list[Path], place: Path, given: dict[str, Any]) -> None:
    with loading():
        from beliefbound.base.options import chosen
        from beliefbound.jobs.batch import certify_folders
        from beliefbound.jobs.bound import BoundOptions

    options = chosen(BoundOptions, given)
    batch(partial(certify_folders, models, place, options), len(models), place, given)
