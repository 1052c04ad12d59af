"""`beliefbound plan LOGS… --tasks`: logs of several similar tasks in, one policy for the next one out.

1. The population (`beliefs.population`): how alike the tasks are, row by row.
2. Policies without memory for a task that nobody has seen: that of the expected task, MMBI and CADP on tasks drawn from
   the population; the best on other tasks drawn is taken. They do what no task ever tried in a state only where nothing
   was.
3. Its certificate, on tasks drawn after that (`bounds.certified`): about the population as it is believed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import FileError, ParameterError
from beliefbound.base.io.atomic import check_writable, write_text
from beliefbound.base.io.csv_table import csv_text
from beliefbound.base.io.result_folder import one_result
from beliefbound.beliefs.capabilities import offering
from beliefbound.beliefs.files import save_belief
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.from_log import tried_pairs
from beliefbound.beliefs.population import Population, learn_population
from beliefbound.bounds.certified import certify
from beliefbound.jobs.from_log.command import PlanFileOptions, read_source
from beliefbound.jobs.from_log.writing import policy_table
from beliefbound.logs import Log, read_log
from beliefbound.planning.cadp import cadp
from beliefbound.planning.expected import expected_mdp_policy
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.plan import Plan, plan_for
from beliefbound.planning.task import FiniteTask
from beliefbound.report.page import REPORT, write_page
from beliefbound.report.tasks import TasksPlan, page_of

JOB, FILE, COLUMN = "tasks", "certificate.json", "task"
DRAWS, CHOOSE = 128, 400  # of hyperparameters; tasks that policies are made on, and as many that choose
_SOON = 0.01  # seconds for a bracket that nobody asked for: its first bounds


def check_for_tasks(options: PlanFileOptions) -> None:
    """What is not for tasks has its default."""
    plain = PlanFileOptions(discount=options.discount)
    for name in ("prior", "rewards", "known_rewards", "only_tried", "try_untried", "objective", "effort", "terminal"):
        if getattr(options, name) != getattr(plain, name):
            raise ParameterError(f"--{name.replace('_', '-')} is for one task; leave it out, or --tasks")


def plan_tasks(
    sources: Sequence[str],
    out: Path,
    options: PlanFileOptions,
    *,
    say: Callable[[str], object] = lambda text: None,
) -> tuple[TasksPlan, Path]:
    """Read logs, one a task, or one with a column `task`; plan; write everything into `out`."""
    check_writable(out)
    logs = read_tasks(sources, options, say)
    say("how alike the tasks are")
    population = learn_population(logs, draws=DRAWS, rng=options.seed)
    assert population.log is not None
    meant = options.of_log(population.log)
    start = population.belief.initial if meant.initial is None else meant.initial
    knobs: dict[str, Any] = {"discount": options.discount, "horizon": options.horizon}
    say("policies")
    plan, name, worth = chosen_plan(population, start, options.seed, **knobs)
    say("what it is worth for sure")
    limits: dict[str, Any] = {
        "confidence": options.confidence,
        "time_limit": max(options.seconds, _SOON),
        "threads": options.threads,
    }
    found = certify(
        plan.policy,
        population.belief,
        initial=start,
        samples=options.most_models,
        rng=options.seed + 2,
        **limits,
        **knobs,
    )
    done = TasksPlan(population, plan.policy, name, worth, found, per_task(population, plan, start, **knobs))
    say("writing")
    names: dict[str, Any] = {"state_names": population.log.states, "action_names": population.log.actions}
    with one_result(out, JOB, last=FILE) as aside:
        plan.policy.save(aside / "policy.json", note=". ".join(done.lines()), **names)
        write_text(aside / "policy.csv", csv_text(policy_table(plan.policy, population.log)))
        whole = population.log
        save_belief(aside / "population.npz", population.belief, states=whole.states, actions=whole.actions)
        write_page(page_of(done, _made(sources, options)), aside / REPORT)
        found.save(aside / FILE)
    return done, out / REPORT


def read_tasks(sources: Sequence[str], options: PlanFileOptions, say: Callable[[str], object]) -> list[Log]:
    """Logs of tasks: one a file, or of one file by its column `task`."""
    if len(sources) > 1:
        return [read_source(source, options, say) for source in sources]
    from beliefbound.base.tables import pl

    given = dict(each.partition("=")[::2] for each in options.columns or ())
    column, file = given.pop(COLUMN, COLUMN), Path(sources[0])
    say(f"reading {file}")
    try:
        frame = pl.read_parquet(file) if file.suffix == ".parquet" else pl.read_csv(file, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as fault:
        raise FileError(
            f"cannot read {file}: {str(fault)[:200]}; give a CSV or Parquet file, or one log a task"
        ) from None
    if column not in frame.columns:
        raise FileError(
            f"{file} has no column {column!r}, which says what task a row is of; its columns are "
            f"{', '.join(frame.columns[:12])[:200]}; say --column task=NAME, or give one log a task"
        )
    logs = []
    for name, part in frame.group_by(column, maintain_order=True):
        knobs = {each: getattr(options, each) for each in ("names", "sort", "keep_suspicious")}
        where = f"{file}, task {str(name[0])[:60]}"
        try:
            logs.append(replace(read_log(part.drop(column), columns=given, **knobs), source=where))
        except FileError as fault:
            raise FileError(f"{where}: {fault}") from None
    if len(logs) < 2:
        raise ParameterError(f"{file} has one task; leave --tasks out, and plan for it")
    return logs


def chosen_plan(population: Population, start: Any, seed: int, **knobs: Any) -> tuple[Plan, str, dict[str, float]]:
    """The best plan on tasks that it was not made on, its name, and what each was worth there."""
    belief = offering(population.belief, tried_pairs(population.counts.sum(axis=(0, 3)).astype(np.int64)))
    rng = np.random.default_rng((seed, 1))
    drawn, others = belief.sample(CHOOSE, rng).starting(start), belief.sample(CHOOSE, rng).starting(start)
    plans = {
        "that of the expected task": expected_mdp_policy(drawn, **knobs),
        "MMBI": mmbi(drawn, **knobs),
        "CADP": cadp(drawn, **knobs),
    }
    task = FiniteTask.of(others, **knobs)
    worth = {name: plan_for(plan.policy, task).value(start) for name, plan in plans.items()}
    name = max(worth, key=worth.__getitem__)
    return plans[name], name, worth


def per_task(population: Population, plan: Plan, start: Any, **knobs: Any) -> list[float]:
    """What the policy is expected to earn in each task that was seen, by the mean of what is believed of it."""
    belief, found = population.belief, []
    for counts, successes in zip(population.counts, population.successes, strict=True):
        after = belief.after_counts(counts, successes)
        mean = FiniteBelief.from_mdps([after.mean()]).starting(start)
        found.append(plan_for(plan.policy, FiniteTask.of(mean, **knobs)).value(start))
    return found


def _made(sources: Sequence[str], options: PlanFileOptions) -> str:
    listed = " ".join(sources[:4]) + (" …" if len(sources) > 4 else "")
    command = f"beliefbound plan {listed} --tasks --discount {options.discount:g} --seed {options.seed}"
    return (
        f"`{command}`: {DRAWS} draws of the hyperparameters of every row, {CHOOSE} tasks to make policies and as many "
        f"to choose, up to {options.most_models} to certify."
    )
