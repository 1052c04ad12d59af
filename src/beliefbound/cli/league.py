"""`beliefbound league`."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beliefbound.cli.app import Address, Plugins, Repair, Threads, Where, app, load_plugins
from beliefbound.cli.show import end_failed, leave_on_interrupt, loading, show_table

if TYPE_CHECKING:
    from beliefbound.lab.league.timing import Timing


@app.command()
def league(
    environment: Annotated[str, typer.Argument(help="Such as chain, double-loop, grid:5, maze, drawn-chain.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder; default: league-ENVIRONMENT.")] = None,
    agents: Annotated[
        list[str] | None,
        typer.Option("--agents", "-a", help="Only this one and MCBRL, mcbrl:n=16; repeat for several."),
    ] = None,
    prior: Annotated[
        str | None, typer.Option(help="Told to every agent that can be told one, such as known-rewards, support.")
    ] = None,
    runs: Annotated[int | None, typer.Option(min=2, help="Runs of each agent; default: by environment.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of a run; default: as in the papers.")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    discount: Annotated[
        float | None, typer.Option(help="With which all agents plan, and of the utility; default: by environment.")
    ] = None,
    budget: Annotated[
        float,
        typer.Option(
            min=0.1,
            help="Seconds of one core for each agent: slow ones play fewer runs, or shorter ones. MCBRL, which all are "
            "compared with, has as much as all together.",
        ),
    ] = 120.0,
    effort: Annotated[
        int | None, typer.Option(min=0, help="Steps of work for the band of the best possible value; 0 for none.")
    ] = None,
    threads: Threads = None,
    executor: Where = "threads",
    address: Address = None,
    repair: Repair = False,
    plugin: Plugins = None,
) -> None:
    """Every agent on one environment: what it earns, how sure that is, what a step costs, beside what was published.

    All face the same noise, so differences are taken run by run, over common runs, with intervals that hold together.
    All plan with the same discount. Writes `league.csv`, `ranking.csv`, `league.md`, figures and `report.html`.
    Finished runs are kept, so the same command continues, and more agents can join later. An agent of which two runs do
    not fit `--budget` plays shorter ones and stands at the end of the table, compared with as many steps of MCBRL; of
    whom not one step fits, the time of a step is said.
    `drawn-chain`, `drawn-double-loop` and `drawn-grid` draw another MDP for every run from a prior that agents are told
    (Castronovo et al. 2016); `--prior inaccurate` tells them a wrong one. There, the certified bracket of what the best
    possible agent earns is drawn as a band.

    Example: `beliefbound league chain -a boss -a bamcp --runs 200`
    """
    with loading():
        from beliefbound.base.executors import opened
        from beliefbound.base.progress import TurnDisplay
        from beliefbound.lab.league.band import EFFORT
        from beliefbound.lab.league.page import write_league
        from beliefbound.lab.league.season import league as play_league
        from beliefbound.lab.league.tables import about_table, shown, words

        load_plugins(plugin)
    folder = out or Path("league-" + "".join(c if c.isalnum() or c in "-_" else "-" for c in environment))

    said: list[tuple[str, object]] = [("--plugin", each) for each in plugin or ()]
    said += [("--agents", each) for each in agents or ()]
    said += [("--prior", prior), ("--runs", runs), ("--steps", steps), ("--seed", seed if seed != 1 else None)]
    said += [("--discount", discount), ("--budget", f"{budget:g}"), ("--effort", effort)]
    given = [str(word) for option in said for word in option if option[1] is not None]

    def begin(agent: str, timing: "Timing | None") -> None:
        doing = "compiling, once, and taking its time"
        if timing is not None:
            doing = f"{timing.runs} runs of {timing.steps} step{'s' * (timing.steps != 1)}"
        show.turn(f"{agent}: {doing}")

    with leave_on_interrupt(folder):
        with opened(executor, threads=threads, address=address) as where, TurnDisplay() as show:
            found = play_league(
                environment,
                folder,
                agents=agents,
                prior=prior,
                runs=runs,
                steps=steps,
                seed=seed,
                discount=discount,
                budget=budget,
                effort=EFFORT if effort is None else effort,
                executor=where,
                repair=repair,
                begin=begin,
                progress=show.block,
                say=show.say,
                doing=show.doing,
            )
        report = write_league(found, folder, shlex.join(["beliefbound", "league", environment, *given]))
    show_table(f"League: {environment}", *shown(found))
    for sentence in (*words(found), about_table(found)):
        print(sentence)
    for agent, why in found.left_out.items():
        print(f"left out: {agent}: {why}", file=sys.stderr)
    print(f"report: {report}")
    end_failed(found.failed, folder)
