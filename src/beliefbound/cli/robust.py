"""`beliefbound robust`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from beliefbound.cli.app import Absorbing, TimedThreads, app
from beliefbound.cli.show import closing, end_interrupted, loading, show_table


@app.command()
def robust(
    models: Annotated[Path, typer.Argument(help="Models: a folder, or a .pomdpx, .pomdp or .npz file.")],
    priors: Annotated[
        str, typer.Option(help="all; cvar:0.2, no model weighs more than five times its weight; l1:0.1, within 0.1.")
    ] = "all",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder; default: NAME-robust.")] = None,
    horizon: Annotated[int | None, typer.Option(min=1, help="Number of decisions; default: infinite.")] = None,
    gap: Annotated[
        float | None, typer.Option(min=0.0, help="Stop at this share of the value; default 0.01, or 0 with a time.")
    ] = None,
    time: Annotated[float | None, typer.Option(min=0.1, help="Stop after so many seconds; default 60.")] = None,
    effort: Annotated[
        int | None, typer.Option(min=1, help="In place of a time: so many rounds, the same result every time.")
    ] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of both bounds together.")] = 0.95,
    reward_signal: Annotated[
        str | None,
        typer.Option(help="What the agent sees of rewards: known, deterministic, bernoulli, unobserved, continuous."),
    ] = None,
    absorbing: Absorbing = None,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    threads: TimedThreads = None,
) -> None:
    """Bracket the value when nature picks the worst prior from a set, and find the policy that secures it.

    Writes `robust.json`, with the least favourable prior, and `robust.policy.npz`, a mixture: it draws one of its
    parts at the start and follows it. Whatever prior of the set is true, it earns the lower bound or more. And a
    `report.html` with the least favourable prior and what the policy earns on each model, drawn (`prior.png`).

    Example: `beliefbound robust gouldian.pomdpx --priors cvar:0.2 --time 30`
    """
    with loading():
        from beliefbound.base.interrupt import first_interrupt
        from beliefbound.base.io.atomic import check_writable
        from beliefbound.beliefs.folder import read_models
        from beliefbound.bounds.robust import robust_bracket
        from beliefbound.report.robust import model_rows, write_robust

    held = read_models(models, reward_signal=reward_signal, absorbing=absorbing or ())  # type: ignore[arg-type]
    target = out or Path(f"{models.resolve().stem}-robust")
    check_writable(target)
    with closing() as (watch, say), first_interrupt(say) as asked:
        found = robust_bracket(
            held.training,
            priors=priors,
            initial=held.initial,
            discount=held.discount,
            horizon=horizon,
            confidence=confidence,
            target_gap=gap,
            time_limit=time,
            effort=effort,
            rng=seed,
            threads=threads,
            watch=watch,
            stop=asked.is_set,
        )
    for note in held.notes:
        print(f"note: {note}", file=sys.stderr)
    header, rows = model_rows(found, held.training)
    show_table("Weights, the least favourable prior, and what the policy earns", header, rows)
    print(found.summary())
    report = write_robust(found, held, models, target, horizon=horizon, confidence=confidence)
    print(f"certificate: {target / 'robust.json'}, policy: {target / 'robust.policy.npz'}, report: {report}")
    end_interrupted(asked)
