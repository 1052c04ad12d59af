"""`beliefbound imitate`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from beliefbound.cli.app import (
    Actions,
    Address,
    AsNames,
    Effort,
    KeepSuspicious,
    Seed,
    Sort,
    States,
    TimedThreads,
    Where,
    app,
)
from beliefbound.cli.batch import sampled_on
from beliefbound.cli.show import closing, doing, loading, show_table


@app.command()
def imitate(
    demonstrations: Annotated[str, typer.Argument(help="Steps of people who know what they do: CSV or Parquet.")],
    discount: Annotated[float, typer.Option(min=0.0, max=0.9999, help="Of the demonstrators.")],
    transitions: Annotated[
        str | None, typer.Option(help="A log of what others did in the same world; its rewards are not used.")
    ] = None,
    reward: Annotated[
        str, typer.Option(help="What it depends on: state, pair, or a CSV file state,action?,FEATURE,….")
    ] = "state",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder; default: NAME-imitate.")] = None,
    reward_prior: Annotated[
        str | None, typer.Option(help="Of rewards: uniform on [0, 1], sparse, or normal (for features).")
    ] = None,
    rationality: Annotated[
        float | None, typer.Option(min=0.0, help="How rational they are, where it is known; default: learnt.")
    ] = None,
    prior: Annotated[
        str, typer.Option(help="Of the dynamics: suggest, uniform, jeffreys, sparse, empirical, local, or a number.")
    ] = "suggest",
    initial: Annotated[
        list[str] | None, typer.Option(help="Start state; repeat for several. Default: as demonstrations begin.")
    ] = None,
    grid: Annotated[str | None, typer.Option(help="ROWSxCOLUMNS: states are cells of a map, row by row.")] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="COLUMN=NAME",
            help="Which column holds what: state, action, next_state, demonstrator, episode, t, terminated, truncated.",
        ),
    ] = None,
    states: States = None,
    actions: Actions = None,
    names: AsNames = False,
    sort: Sort = False,
    keep_suspicious: KeepSuspicious = False,
    draws: Annotated[int, typer.Option(min=16, max=100_000, help="Models that are kept, in all.")] = 256,
    chains: Annotated[int, typer.Option(min=4, max=64, help="Markov chains, an even number.")] = 4,
    steps: Annotated[
        int | None, typer.Option(min=100, help="Of each chain; default: 3000 for each unknown, at least 100 000.")
    ] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of each interval.")] = 0.95,
    time_limit: Annotated[
        float, typer.Option("--time", min=0.0, help="Seconds for a bracket of policies that learn; 0: without one.")
    ] = 5.0,
    effort: Effort = None,
    seed: Seed = 1,
    threads: TimedThreads = None,
    executor: Where = "threads",
    address: Address = None,
) -> None:
    """From what experts did, without rewards, to a policy, how sure it is, and what they seem to want.

    The file has the columns `state, action, next_state` and, if it has them, `demonstrator, episode, t, terminated,
    truncated`; no rewards. Writes `policy.csv`, `policy.json` (for `load_policy`), `policy.npz` (one that learns as it
    acts, where that was found), `posterior.npz` (draws of rewards and dynamics, for `beliefbound bound`, `certify` and
    `robust`), `imitation.json` and `report.html`. Nothing is written before everything is found; then an earlier
    result in the folder gives way, and other files stay. With `--executor ray` the Markov chains run on a cluster.

    Example: `beliefbound imitate demos.csv --discount 0.95`
    """
    given = locals()
    with loading():
        from beliefbound.base.options import chosen
        from beliefbound.jobs.imitation.command import ImitateOptions, imitate_file

    target = out or Path(f"{Path(demonstrations).name.split('.')[0]}-imitate")
    with sampled_on(executor, threads, address), closing() as (watch, say_stop):
        options = chosen(ImitateOptions, given)
        done, report = imitate_file(demonstrations, target, options, watch=watch, say=doing(watch), stopping=say_stop)
    found = done.found
    print(found)
    for note in found.notes():
        print(note if note.startswith("WARNING") else f"note: {note}", file=sys.stderr)
    rows = [[r.name, f"{r.value.value:.4g}", f"{r.gain.low:.4g} to {r.gain.high:.4g}"] for r in done.rivals]
    show_table("Against other policies", ["policy", "its value", "gain over it"], rows)
    print(f"policy: made by {done.origin}, in {target / 'policy.json'}")
    print(done.loss_words())
    print(done.want_words())
    print(done.question_words())
    print(f"report: {report}")
