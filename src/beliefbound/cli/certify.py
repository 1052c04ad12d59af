"""`beliefbound certify`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from beliefbound.cli.app import Absorbing, TimedThreads, app
from beliefbound.cli.show import closing, end_interrupted, loading


@app.command()
def certify(
    policy: Annotated[
        Path, typer.Argument(help="A policy: policy.json or policy.npz of this program, or SARSOP's .policy file.")
    ],
    models: Annotated[Path, typer.Argument(help="Models: a folder, or a .pomdpx, .pomdp or .npz file.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File; default: POLICY-certificate.json.")] = None,
    horizon: Annotated[
        int | None, typer.Option(min=1, help="Number of decisions; default: the policy's, else infinite.")
    ] = None,
    gap: Annotated[
        float | None, typer.Option(min=0.0, help="Of the bracket it is compared with; default 0.01, or 0 with a time.")
    ] = None,
    time: Annotated[float | None, typer.Option(min=0.1, help="Of that bracket, in seconds; default 60.")] = None,
    samples: Annotated[int, typer.Option(min=2, help="Walks, where the policy's value is simulated.")] = 1000,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of all numbers together.")] = 0.95,
    reward_signal: Annotated[
        str | None,
        typer.Option(help="What the agent sees of rewards: known, deterministic, bernoulli, unobserved, continuous."),
    ] = None,
    absorbing: Absorbing = None,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    threads: TimedThreads = None,
) -> None:
    """Say what a policy earns on a set of models, and how far below Bayes-optimal it can be.

    The value is exact for tables and decision graphs, on every model; else it is simulated. The distance is to a
    proven, or 95%, upper bound on what any policy can earn, found as in `beliefbound bound`.

    Example: `beliefbound certify sarsop.policy gouldian.pomdpx --time 30`
    """
    with loading():
        from beliefbound.base.errors import FileError
        from beliefbound.base.interrupt import first_interrupt
        from beliefbound.base.io.atomic import check_writable
        from beliefbound.beliefs.folder import read_models
        from beliefbound.bounds.certified import certify as certified

    if not policy.is_file():
        raise FileError(f"cannot read {policy}: it is no file")
    held = read_models(models, reward_signal=reward_signal, absorbing=absorbing or ())  # type: ignore[arg-type]
    target = out or Path(f"{policy.stem}-certificate.json")
    check_writable(target.parent)
    with closing() as (watch, say), first_interrupt(say) as asked:
        found = certified(
            policy,
            held.training,
            discount=held.discount,
            horizon=horizon,
            initial=held.initial,
            confidence=confidence,
            samples=samples,
            target_gap=gap,
            time_limit=time,
            rng=seed,
            threads=threads,
            watch=watch,
            stop=asked.is_set,
        )
    for note in held.notes:
        print(f"note: {note}", file=sys.stderr)
    print(found.summary())
    found.save(target)
    print(f"certificate: {target}")
    end_interrupted(asked)
