"""`beliefbound plan`."""

import sys
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from beliefbound.cli.app import (
    Actions,
    Address,
    AsNames,
    Effort,
    Horizon,
    KeepSuspicious,
    Seed,
    Sort,
    States,
    TimedThreads,
    Where,
    app,
)
from beliefbound.cli.batch import batch, sampled_on
from beliefbound.cli.show import closing, doing, end_interrupted, loading, show_table


@app.command()
def plan(
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG", help="Transitions: CSV (also ; or tabs, also .gz), Parquet, or minari:NAME."),
    ],
    discount: Annotated[float, typer.Option(min=0.0, max=1.0, help="Of the problem; below 1 without a horizon.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder; default: NAME-plan, of several: plans.")
    ] = None,
    horizon: Horizon = None,
    initial: Annotated[
        list[str] | None, typer.Option(help="Start state; repeat for several, equally likely. Default: as the log's.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="COLUMN=NAME",
            help="Which column holds what: state, action, reward, next_state, episode, t, terminated, truncated, "
            "propensity.",
        ),
    ] = None,
    states: States = None,
    actions: Actions = None,
    names: AsNames = False,
    terminal: Annotated[
        list[str] | None, typer.Option(help="A state where episodes end, besides those that the log marks; repeatable.")
    ] = None,
    prior: Annotated[
        str, typer.Option(help="suggest, uniform, jeffreys, sparse, empirical, local, or a concentration.")
    ] = "suggest",
    rewards: Annotated[str, typer.Option(help="suggest, known, values, beta or normal.")] = "suggest",
    known_rewards: Annotated[
        Path | None,
        typer.Option(help="CSV file state,action,reward of pairs whose reward is known; others are learnt."),
    ] = None,
    only_tried: Annotated[
        bool, typer.Option("--only-tried", help="Actions that were not tried in a state do not exist there.")
    ] = False,
    try_untried: Annotated[
        bool, typer.Option("--try-untried", help="Let the policy do what was never tried, by the prior alone.")
    ] = False,
    objective: Annotated[
        str,
        typer.Option(
            help="What is to be large over models: mean, safe:0.05 (worse than behaviour with at most 5%, else keep "
            "it), cvar:0.1, percentile:0.1, l1:0.2, worst; suggest: safe:0.05 unless actions look random, then mean."
        ),
    ] = "suggest",
    behaviour: Annotated[
        Path | None,
        typer.Option(help="The policy that made the log, where it is known: CSV or policy.json. Default: frequencies."),
    ] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of all statements together.")] = 0.95,
    n_models: Annotated[
        int | None,
        typer.Option("--models", min=50, max=1_000_000, help="Fresh models that value policies. Default: up to 2000."),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time", min=0.0, help="Seconds for the bracket; 0: without one. Default: 20.")
    ] = None,
    effort: Effort = None,
    interval: Annotated[
        str, typer.Option(help="betting: proven. t: Student's, narrower, true only in the limit of many models.")
    ] = "betting",
    measure: Annotated[bool, typer.Option(help="Find out what to measure next.")] = True,
    sort: Sort = False,
    keep_suspicious: KeepSuspicious = False,
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Several logs, one a task, or a column `task`: a policy for the next task.")
    ] = False,
    seed: Seed = 1,
    threads: TimedThreads = None,
    executor: Where = "threads",
    address: Address = None,
) -> None:
    """From a log of transitions to a policy, what it is worth for sure, and what to measure next.

    The log has the columns `state, action, reward, next_state` and, if it has them, `episode, t, terminated,
    truncated, propensity` (the chance with which the action was taken). Writes `policy.csv`, `policy.json` (for
    `load_policy`), `certificate.json`, `posterior.npz` (the prior of an agent that goes on learning) and `report.html`.
    Nothing is written before everything is found; then an earlier result in the folder gives way, and other files stay.

    The policy does what was never tried in a state only where nothing was, unless you say `--try-untried`.

    With `--tasks`, logs of several similar tasks: one policy for the next one, what it is worth on average over tasks,
    and what differs between them; `population.npz` is the prior of an agent that learns there.

    Several logs without it are several problems, as for `bound`: a plan for each in a folder of its name, a table and a
    page of all. The same command goes on where it was left; `--executor ray` plans on a cluster. One log's samples are
    drawn there.

    Example: `beliefbound plan log.csv --discount 0.95 --out plan`
    """
    given = locals()
    if tasks:
        _plan_tasks(logs, out, given)
        return
    if len(logs) > 1:
        _plan_all(logs, out or Path("plans"), given)
        return
    log = logs[0]
    with loading():
        from beliefbound.base.options import chosen
        from beliefbound.jobs.from_log.command import PlanFileOptions, plan_file
        from beliefbound.report.from_log.headline import (
            checked_words,
            estimate_words,
            free_words,
            mean_words,
            next_words,
            sure_words,
        )
        from beliefbound.report.from_log.page import robust_words

    target = out or Path(f"{Path(log.removeprefix('minari:')).name.split('.')[0]}-plan")
    with sampled_on(executor, threads, address), closing() as (watch, say_stop):
        options = chosen(PlanFileOptions, given)
        found, report = plan_file(log, target, options, watch=watch, say=doing(watch), stopping=say_stop)
    print(found.log.summary())
    for note in found.notes():
        print(note if note.startswith("WARNING") else f"note: {note}", file=sys.stderr)
    rows = [
        [c.other.name, f"{c.value.value:.4g}", f"{c.gain.low:.4g} to {c.gain.high:.4g}", f"{100 * c.worse.high:.1f}%"]
        for c in found.comparisons
    ]
    show_table("Against other policies", ["policy", "its value", "gain over it", "worse than it at most"], rows)
    print(f"policy: {found.choice.chosen.name}, in {target / 'policy.json'}")
    print(estimate_words(found))
    print(free_words(found))
    print(checked_words(found))
    print(sure_words(found))
    print(mean_words(found))
    if not found.objective.is_mean:
        c = found.certified
        top = f"; no policy's is above {found.attainable.high:.4g}" if isfinite(found.attainable.high) else ""
        print(f"{found.objective.words}: {c.value:.4g}, at least {c.low:.4g} ({c.method}){top}")
    if found.robust is not None:
        print(robust_words(found))
    others = [row for row in found.reliance.table[1:-1] if not row.refuted]
    listed = ", ".join(f"{row.value:.4g} under {row.prior}" for row in others)
    print(
        f"rests on the prior ({found.learnt.name}): {100 * found.reliance.share:.1f}% of its steps; "
        + (f"the same policy is worth about {listed}" if others else "the log refutes all other priors that were tried")
    )
    if next_words(found):
        print(next_words(found))
    print(f"report: {report}")
    end_interrupted(found.interrupted, "less was computed than asked for")


def _plan_all(logs: list[str], place: Path, given: dict[str, Any]) -> None:
    with loading():
        from beliefbound.base.options import chosen
        from beliefbound.jobs.batch import plan_files
        from beliefbound.jobs.from_log.command import PlanFileOptions

    options = chosen(PlanFileOptions, given)
    batch(partial(plan_files, logs, place, options), len(logs), place, given)


def _plan_tasks(logs: list[str], out: Path | None, given: dict[str, Any]) -> None:
    with loading():
        from beliefbound.base.options import chosen
        from beliefbound.jobs.from_log.command import PlanFileOptions
        from beliefbound.jobs.tasks import check_for_tasks, plan_tasks

    target = out or Path(f"{Path(logs[0]).name.split('.')[0]}-tasks-plan")
    options = chosen(PlanFileOptions, given)
    check_for_tasks(options)
    with closing() as (watch, _):
        found, report = plan_tasks(logs, target, options, say=doing(watch))
    for note in found.population.notes():
        print(f"note: {note}", file=sys.stderr)
    header = ["state", "action", "transitions differ", "rewards differ", "tasks that tried it"]
    show_table("What differs between tasks, from 0, nothing, to 1", header, found.differences())
    for line in found.lines():
        print(line)
    print(f"policy: {target / 'policy.json'}; prior of an agent that learns: {target / 'population.npz'}")
    print(f"report: {report}")
