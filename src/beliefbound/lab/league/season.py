"""A league: agents on one environment and the same noise, each in a store of its own, so that more can join later."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from beliefbound.base.errors import BeliefboundError, ParameterError, PluginError
from beliefbound.base.executors import Executor
from beliefbound.base.io.atomic import check_writable
from beliefbound.base.io.paths import as_path
from beliefbound.base.tables import pl
from beliefbound.base.validation import check_count, check_discount
from beliefbound.lab.envs import make_env
from beliefbound.lab.experiments.run import Fault, Say, fault_of, foreign, keep_failures, run
from beliefbound.lab.experiments.spec import Cell, Spec
from beliefbound.lab.league.band import EFFORT, Band, band_of
from beliefbound.lab.league.entries import REFERENCE, chosen, edition, entries, length_of, with_prior
from beliefbound.lab.league.ranking import ranking
from beliefbound.lab.league.standings import standings
from beliefbound.lab.league.timing import Timing, read_timings, timed, write_timings

_POINTS = 100  # of a learning curve


@dataclass(frozen=True, eq=False)
class League:
    """What a league found.

    Attributes:
      table: one row per agent, best first, those who were told something else and those with fewer runs or steps last;
        see `standings`.
      ranking: who may be the best within each bound on the time of a step; see `ranking`.
      frame: every run that the table counts: agent, steps, run, total, utility, curve.
      spec: the experiment of the agent that all are compared with, in full length.
      score: what agents are compared by: `"utility"` where every run has an MDP of its own, else `"total"`.
      discount: with which all planned, and of the utility.
      prior: what every agent was told that can be told one, unless its name says another; nothing where each had its
        own default.
      left_out: agents that cannot play, and why.
      failed: agents of other people that raised an error, and which; `failures.txt` has the tracebacks.
      band: encloses what the best possible agent earns on average, where MDPs are drawn from a prior; see `band`.
    """

    table: pl.DataFrame
    ranking: pl.DataFrame
    frame: pl.DataFrame
    spec: Spec
    score: str
    discount: float
    prior: str | None
    left_out: dict[str, str]
    failed: dict[str, str] = field(default_factory=dict)
    band: Band | None = None


def league(
    environment: str,
    out: Path | str,
    *,
    agents: Sequence[str] | None = None,
    prior: str | None = None,
    runs: int | None = None,
    steps: int | None = None,
    seed: int = 1,
    discount: float | None = None,
    budget: float = 120.0,
    effort: int = EFFORT,
    executor: Executor | None = None,
    repair: bool = False,
    begin: Callable[[str, Timing | None], object] = lambda agent, timing: None,
    progress: Callable[[Cell, int], None] | None = None,
    say: Say = lambda text: None,
    doing: Say = lambda text: None,
) -> League:
    """Play every agent, or the ones named, and compare them.

    Args:
      environment: such as `"chain"`; its usual number of steps and runs is taken unless given.
      out: a folder; what is there already is not played again.
      agents: in place of all; the reference, `mcbrl:n=16`, always plays.
      prior: told to every agent that can be told one; default `environment` where MDPs are drawn from a prior, else
        each agent's own.
      runs, steps, seed: of each agent; all face the same environment noise, run by run.
      discount: with which all agents plan, and of the utility; default: by environment, so that who knows the MDP and
        plans so earns what can be earned in so many steps (`entries`).
      budget: seconds of one core for an agent: where runs take longer it plays fewer, and where two do not fit,
        shorter ones, which are compared with as many steps of the reference. It is left out where one step takes
        longer. The reference has as much as all together: nobody is ranked by more runs than it plays.
      effort: steps of work for the band of the Bayes-optimal value, where MDPs are drawn from a prior; 0 for none.
      executor: where runs are played; default threads.
      repair: play the runs of corrupt parts again.
      begin: told of `(agent, None)` before an agent's time is taken, of `(agent, timing)` before it plays.
      progress, say: as in `lab.experiments.run`.
      doing: told how far the band is.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = league("double-loop", folder, agents=["oracle"], runs=2, steps=100)
    >>> found.table["agent"].to_list(), found.table["total"].to_list()[0]
    (['oracle', 'mcbrl:n=16'], 40.0)
    """
    place = make_env(environment)
    usual = length_of(place.name)
    runs = usual.runs if runs is None else check_count(runs, "runs", least=2)
    steps = usual.steps if steps is None else check_count(steps, "steps")
    discount = usual.discount if discount is None else check_discount(discount, 1)
    discount = None if discount == place.discount else discount  # the runs of all who say nothing of it are the same
    if not budget > 0.0:
        raise ParameterError(f"budget is {budget}; give seconds for each agent")
    if prior is None and place.of_run is not None:
        prior = "environment"
    named = entries(prior) if agents is None else chosen(list(agents), prior)
    folder = as_path(out)
    check_writable(folder)
    timings = read_timings(folder / "timing.json")
    reference = with_prior(REFERENCE, prior)
    frames, times, left_out, faults = [], {}, {}, dict[str, Fault]()

    def played(agent: str, timing: Timing) -> pl.DataFrame:
        begin(agent, timing)
        spec = _spec(agent, place.name, timing.runs, timing.steps, seed, discount)
        short = ("" if timing.steps == steps else f"@{timing.steps}") + ("" if discount is None else f"@{discount:g}")
        own = folder / "runs" / f"{Cell(agent, place.name, seed).folder}{edition(agent)}{short}"
        store = run(spec, own, executor=executor, repair=repair, progress=progress, say=say)
        return store.read(("total", "utility", "curve")).with_columns(steps=pl.lit(timing.steps))

    planned = "" if discount is None else f", discount {discount:g}"
    for agent in named:
        key = f"{agent}{edition(agent)} on {place.name}{planned}, {runs} runs of {steps} steps, {budget:g} s"
        if key not in timings:
            begin(agent, None)
            seconds = budget * len(named) if agent == reference else budget
            try:
                timings[key] = timed(agent, place.name, steps=steps, runs=runs, budget=seconds, discount=discount)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as cause:
                if foreign(agent, place.name):
                    faults[agent] = fault_of(cause)
                elif isinstance(cause, BeliefboundError) and agents is None:
                    left_out[agent] = str(cause)
                else:
                    raise
                continue
            write_timings(folder / "timing.json", timings)
        if timings[key].runs == 0:
            left_out[agent] = f"a step takes {timings[key].step:.3g} s, longer than the {budget:g} s that it has"
            continue
        try:
            frames.append(played(agent, timings[key]))
        except PluginError as cause:
            faults[agent] = Fault(str(cause), cause.details)
            continue
        times[agent] = timings[key]
    keep_failures(folder, {agent: fault.details for agent, fault in faults.items()})
    if reference in faults:
        raise PluginError(f"{reference}, which all are compared with, failed: {faults[reference].reason}")
    if not frames:
        raise ParameterError(f"nobody can play: {'; '.join(f'{agent}: {why}' for agent, why in left_out.items())}")
    frame = pl.concat(frames)
    shorter = [played(reference, timing) for timing in _to_compare(times, reference)]
    compared = pl.concat([frame.filter(agent=reference), *shorter])
    score = "utility" if place.of_run is not None else "total"
    papers = place.name if steps == usual.steps else None  # what was published is of so many steps
    gamma = place.discount if discount is None else discount
    papers = papers if gamma == (place.discount if usual.discount is None else usual.discount) else None
    table = standings(
        frame, times, papers, prior=prior, steps=steps, reference=reference, compared=compared, score=score
    )
    ranks = ranking(frame, table, score=score)
    reasons = {agent: fault.reason for agent, fault in faults.items()}
    spec = _spec(reference, place.name, runs, steps, seed, discount)
    band = band_of(place, folder, steps=steps, discount=gamma, effort=effort, doing=doing)
    return League(table, ranks, frame, spec, score, gamma, prior, left_out, reasons, band)


def _to_compare(times: Mapping[str, Timing], reference: str) -> list[Timing]:
    """What the reference plays for those who play fewer steps than itself: as many, in as many runs."""
    own = times.get(reference)
    if own is None:
        return []
    runs: dict[int, int] = {}
    for timing in times.values():
        if timing.steps < own.steps:
            runs[timing.steps] = max(timing.runs, runs.get(timing.steps, 0))
    return [replace(own, steps=steps, runs=most) for steps, most in runs.items()]


def _spec(agent: str, environment: str, runs: int, steps: int, seed: int, discount: float | None) -> Spec:
    return Spec(
        agents=(agent,),
        environments=(environment,),
        runs=runs,
        steps=steps,
        seeds=(seed,),
        discount=discount,
        curve_every=max(1, steps // _POINTS),
    )
