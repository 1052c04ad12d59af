"""`beliefbound certify`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from beliefbound.cli.app import Absorbing, Address, Initial, Seed, Signal, TimedThreads, Weights, Where, app
from beliefbound.cli.batch import sampled_on
from beliefbound.cli.show import closing, end_interrupted, loading


@app.command()
def certify(
    policy: Annotated[
        Path,
        typer.Argument(
            help="A policy: policy.json or policy.npz of this program; a CSV of states and actions; SARSOP's .policy; "
            "agent.py:Class, a Python class with reset, act and observe."
        ),
    ],
    models: Annotated[Path, typer.Argument(help="Models: a folder, or a .pomdpx, .pomdp or .npz file.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File; default: POLICY-certificate.json.")] = None,
    horizon: Annotated[
        int | None, typer.Option(min=1, help="Number of decisions; default: the policy's, else infinite.")
    ] = None,
    target_gap: Annotated[
        float | None,
        typer.Option("--gap", min=0.0, help="Of the bracket it is compared with; default 0.01, or 0 with a time."),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time", min=0.1, help="Of that bracket, in seconds; default 60.")
    ] = None,
    samples: Annotated[int, typer.Option(min=2, help="Walks, where the policy's value is simulated.")] = 1000,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of all numbers together.")] = 0.95,
    reward_signal: Signal = None,
    absorbing: Absorbing = None,
    weights: Weights = None,
    initial: Initial = None,
    seed: Seed = 1,
    threads: TimedThreads = None,
    executor: Where = "threads",
    address: Address = None,
) -> None:
    """Say what a policy earns on a set of models, and how far below Bayes-optimal it can be.

    The value is exact for tables and decision graphs, on every model; else it is simulated. The distance is to a
    proven, or 95%, upper bound on what any policy can earn, found as in `beliefbound bound`.

    A CSV has the columns `state` (or `idstate`), `action` (or `idaction`) and, where actions change with time, `stage`.
    Of `agent.py:Class` one object is made; its constructor may ask for `n_states`, `n_actions`, `discount`, `initial`,
    `belief`. With `--executor ray` the walks of a policy whose value is simulated are taken on a cluster, which pays
    where it takes long to act; the search for the bound stays here. Its workers read the file of such a class by its
    path.

    Example: `beliefbound certify sarsop.policy gouldian.pomdpx --time 30`
    """
    given = locals()
    with loading():
        from beliefbound.base.options import chosen
        from beliefbound.jobs.certify import CertifyOptions, certify_policy

    file = out or Path(f"{policy.stem}-certificate.json")
    with sampled_on(executor, threads, address), closing() as (watch, say):
        result = certify_policy(policy, models, file, chosen(CertifyOptions, given), watch=watch, say=say)
    for note in result.folder.notes:
        print(f"note: {note}", file=sys.stderr)
    print(result.found.summary())
    print(f"certificate: {file}")
    end_interrupted(result.interrupted)
