"""`beliefbound robust`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from beliefbound.cli.app import Absorbing, Gap, Horizon, Initial, Seed, Signal, TimedThreads, TimeLimit, Weights, app
from beliefbound.cli.show import closing, end_interrupted, loading, show_table


@app.command()
def robust(
    models: Annotated[Path, typer.Argument(help="Models: a folder, or a .pomdpx, .pomdp or .npz file.")],
    priors: Annotated[
        str, typer.Option(help="all; cvar:0.2, no model weighs more than five times its weight; l1:0.1, within 0.1.")
    ] = "all",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder; default: NAME-robust.")] = None,
    horizon: Horizon = None,
    target_gap: Gap = None,
    time_limit: TimeLimit = None,
    effort: Annotated[
        int | None, typer.Option(min=1, help="In place of a time: so many rounds, the same result every time.")
    ] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of both bounds together.")] = 0.95,
    reward_signal: Signal = None,
    absorbing: Absorbing = None,
    weights: Weights = None,
    initial: Initial = None,
    seed: Seed = 1,
    threads: TimedThreads = None,
) -> None:
    """Bracket the value when nature picks the worst prior from a set, and find the policy that secures it.

    Writes `robust.json`, with the least favourable prior, and `robust.policy.npz`, a mixture: it draws one of its
    parts at the start and follows it. Whatever prior of the set is true, it earns the lower bound or more. And a
    `report.html` with the least favourable prior and what the policy earns on each model, drawn (`prior.png`).

    Example: `beliefbound robust gouldian.pomdpx --priors cvar:0.2 --time 30`
    """
    given = locals()
    with loading():
        from beliefbound.base.options import chosen
        from beliefbound.jobs.robust import FILE, POLICY, RobustOptions, robust_folder
        from beliefbound.report.page import REPORT
        from beliefbound.report.robust import model_rows

    place = out or Path(f"{models.resolve().stem}-robust")
    with closing() as (watch, say):
        found = robust_folder(models, place, chosen(RobustOptions, given), watch=watch, say=say)
    for note in found.folder.notes:
        print(f"note: {note}", file=sys.stderr)
    header, rows = model_rows(found.bracket, found.folder.training)
    show_table("Weights, the least favourable prior, and what the policy earns", header, rows)
    print(found.bracket.summary())
    print(f"certificate: {place / FILE}, policy: {place / POLICY}, report: {place / REPORT}")
    end_interrupted(found.job.interrupted)
