"""`beliefbound bound`: a model folder in; a bracket, every bound behind it, two policies and a page to look at, out.

`bounds.json` is what `Bracket.save` writes, and `Bracket.load` reads it; its entry `job` says besides:

    made          how it was made (`jobs.made`)
    interrupted   whether somebody ended the search before its time
    kind          of the certified policy, in words
    memoryless    files, value, gap and its confidence, guarantee; most: no memoryless policy is worth more, null where
                  that was not searched for; proven: whether it is the best one
    controller    files, nodes, value, gap and its confidence of the decision graph; null where none was asked for
    information   what to measure next, as in information.json; null where it was not asked for
    checks        what the memoryless policy earns on the folder's other models
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable, write_text
from beliefbound.base.io.csv_table import csv_text
from beliefbound.base.io.paths import as_path
from beliefbound.base.io.result_folder import one_result
from beliefbound.base.validation import check_probability, check_threads
from beliefbound.beliefs.folder import ModelFolder
from beliefbound.bounds.bracket import Bracket, Target, bracket_of, limits_of, seed_of
from beliefbound.bounds.finite.small_controller import small_controller_of
from beliefbound.bounds.record import TracePoint
from beliefbound.bounds.steps import Limits
from beliefbound.bounds.warmup import warm_up
from beliefbound.jobs.beside import compared_policies, efforts_of, moving, starts_of
from beliefbound.jobs.made import Again, Job, Made, ModelOptions, write_json
from beliefbound.jobs.memoryless import memoryless_of, searched_of
from beliefbound.kernels.compiling import clock
from beliefbound.models.evaluation import evaluate
from beliefbound.planning.task import FiniteTask
from beliefbound.policy.naming import names_of
from beliefbound.report.beside import start_columns
from beliefbound.report.certificate import Certificate, write_certificate

JOB, FILE = "bound", "bounds.json"
SOMETIMES = frozenset(  # files that not every certificate has
    {"policy.npz", "policy.json", "controller.npz", "controller.json", "information.json", "decisions.csv"}
    | {f"{name}.{end}" for name in ("controller", "information", "decision") for end in ("png", "svg")}
    | {f"{name}.{end}" for name in ("acceptability", "sensitivity") for end in ("png", "svg", "csv")}
)
write_pages = write_certificate


@dataclass(frozen=True, kw_only=True)
class BoundOptions(ModelOptions):
    """What can be asked of `beliefbound bound`.

    Attributes:
      target, effort: as for `bracket`.
      controller: also a decision graph of at most so many nodes.
      measure: also what so many tries of each state and action are worth before acting.
      starts: also the first action from each state in which it may start.
      sensitivity: also which policy is best as the weight of a model moves, or those of two (`wet,dry`).
    """

    target: Target = "value"
    effort: int | None = None
    controller: int | None = None
    measure: int | None = None
    starts: bool = False
    sensitivity: str | None = None

    def made(self, folder: ModelFolder, models: Path | str) -> Made:
        """How a certificate of a folder's models is made; what is wrong with the options is said."""
        self.limits()
        check_probability(self.confidence, "confidence")
        how = {name: getattr(self, name) for name in ("horizon", "confidence", "target", "controller", "measure")}
        beside = {"starts": [] if self.starts else None, "sensitivity": moving(self.sensitivity, folder)}
        return Made.of(folder, models, **how, **beside, **self.chosen(folder))

    def limits(self, stop: Callable[[], bool] | None = None) -> Limits:
        """When the search ends."""
        return limits_of(target_gap=self.target_gap, time_limit=self.time_limit, effort=self.effort, stop=stop)


_DEFAULT = BoundOptions()


def certify_folder(
    models: Path | str,
    out: Path | str,
    options: BoundOptions = _DEFAULT,
    *,
    watch: Callable[[TracePoint], object] | None = None,
    say: Callable[[], object] = lambda: None,
    doing: Callable[[str], object] = lambda text: None,
) -> Certificate:
    """Bracket the Bayes-optimal value of a model folder's training belief and write what was found into `out`.

    Writes `bounds.json`, the certified policy as `policy.npz` (one that learns) or `policy.json` (a table), both for
    `load_policy`; the memoryless policy as `memoryless.json` and `memoryless.csv`, stage by stage; `bracket.{png,svg}`
    and `report.html`. With `controller`, `controller.{json,png,svg}` to look at, `controller.npz` for `load_policy`.
    With `measure`, `information.{json,png,svg}`. An earlier result in the folder gives way (`base.io.result_folder`).

    `watch` is told each time the bracket closes, and `doing` what is done next. A time limit is for everything
    between reading and writing: the memoryless policy and the decision graph are found first, and the search takes
    what is left; only what to measure, which needs the bracket, comes after. Ctrl-C ends the search, not the
    command: `say` is called, and all that was found so far is written and marked as interrupted; a second one
    leaves at once and writes nothing. Nothing is written before the search is over, and whether `out` can be
    written to is seen before it begins.
    """
    doing(f"reading {models}")
    folder, place = options.read(models), as_path(out)
    made = options.made(folder, models)
    check_writable(place)
    with first_interrupt(say) as asked:
        knobs: dict[str, Any] = {"seed": seed_of(options.seed), "threads": options.threads, "watch": watch}
        found = certificate_of(folder, made, options.limits(asked.is_set), asked.is_set, place, doing=doing, **knobs)
    doing("writing")
    with one_result(place, JOB, last=FILE) as aside:
        write_files(found, made, aside)
        write_pages(found, aside)
    return found


def again(
    file: Path,
    content: dict[str, Any],
    models: Path | str | None,
    *,
    threads: int | None,
    watch: Callable[[TracePoint], object] | None,
) -> Again:
    """The certificate that a file is of, found again; what no search can find again is taken from the file: seconds,
    machine and version, and whether somebody ended the search."""
    entries, job = Bracket.entries_of(file, content), Job.of(file, content)
    path, folder = job.made.read(file, models)
    check_probability(job.made.confidence, "confidence")
    knobs: dict[str, Any] = {"seed": seed_of(entries.seed), "threads": threads, "watch": watch}
    if any(m >= folder.training.n_models for m in job.made.sensitivity or ()):
        raise FileError(f"{file} is damaged: there is no such model in sensitivity")
    found = certificate_of(folder, job.made, Limits(effort=entries.effort), lambda: job.interrupted, Path(), **knobs)
    told = zip(found.bracket.trace, entries.trace, strict=False)
    trace = tuple(point._replace(seconds=theirs.seconds) for point, theirs in told)
    bracket = replace(
        found.bracket,
        trace=trace + found.bracket.trace[len(trace) :],
        compile_seconds=entries.compile_seconds,
        version=entries.library,
    )
    found = replace(found, bracket=bracket)
    return Again(
        bracket,
        (entries.lower.value, entries.upper.value),
        f"{path}, seed {bracket.seed}",
        job.made.machine,
        entries.library,
        lambda place: write_files(found, job.made, place),
        lambda place: write_pages(found, place),
    )


def certificate_of(
    folder: ModelFolder,
    made: Made,
    limits: Limits,
    interrupted: Callable[[], bool],
    place: Path,
    *,
    seed: int,
    threads: int | None,
    watch: Callable[[TracePoint], object] | None,
    doing: Callable[[str], object] = lambda text: None,
) -> Certificate:
    """What `certify_folder` writes into `place`, found but not written."""
    task = FiniteTask.of(folder.training, discount=folder.discount, horizon=made.horizon, initial=folder.initial)
    warm_up(task)  # the other core compiles while a memoryless policy is looked for
    graph, information, began = None, None, clock()
    if made.controller is not None:  # it may need more nodes, which must not be noticed after a long search
        doing("finding a decision graph")
        graph = small_controller_of(task, nodes=made.controller, rng=seed)
    doing("finding a memoryless policy")
    searched, spent = searched_of(task), clock() - began
    if spent >= limits.seconds and limits.effort is None:
        doing(f"that took {spent:.1f} s, all of the time: only first bounds are looked for")
    asked: dict[str, Any] = {"confidence": made.confidence, "target": made.target, "threads": check_threads(threads)}
    doing("closing the bracket")
    left = limits._replace(seconds=max(0.0, limits.seconds - spent))
    found = bracket_of(task, left, seed=seed, watch=watch, **asked).bracket
    memoryless = memoryless_of(task, found, searched)
    if made.measure is not None:
        doing("finding out what to measure, beyond the time of the search")
        from beliefbound.bounds.information.value import information_of  # only here

        information = information_of(task, tries=made.measure, bounds=found, confidence=made.confidence, rng=seed)
    begun = None
    if made.starts is not None:
        doing("finding first actions, start by start, beyond the time of the search")
        begun = starts_of(folder, made.horizon, limits, made.starts, seed=seed, threads=check_threads(threads))
    moved = None if not made.sensitivity else compared_policies(task, found.policy, memoryless.plan.policy)
    policy, start, checks = memoryless.plan.policy, folder.initial, dict[str, float]()
    knobs: dict[str, Any] = {"discount": folder.discount, "horizon": None if policy.horizon else made.horizon}
    if folder.test is not None:
        checks["test models"] = float(folder.test.weights @ evaluate(policy, folder.test, **knobs) @ start)
    if folder.true is not None:
        checks["true model"] = float(evaluate(policy, folder.true, **knobs) @ start)
    told = (made.models, made.name, found, memoryless, checks, interrupted(), made.machine)
    return Certificate(folder, *told, place, graph, information, begun, moved, made.sensitivity)


def write_files(found: Certificate, made: Made, place: Path) -> None:
    """Write everything but pictures and the page: `bounds.json` and the files of policies."""
    made = msgspec.structs.replace(made, starts=efforts_of(found.starts))
    belief, bracket, memoryless = found.folder.training, found.bracket, found.memoryless
    names: dict[str, Any] = {"state_names": belief.states, "action_names": belief.actions}
    bracket.policy.save(place / found.policy.name, note=found.policy_words()[0], **names)
    memoryless.plan.policy.save(place / "memoryless.json", note=memoryless.words(), **names)
    write_text(place / "memoryless.csv", csv_text(_table(found)))
    if found.graph is not None:
        found.graph.save(place / "controller.json")
    if found.information is not None:
        found.information.save(place / "information.json")
    if found.starts is not None:
        columns = start_columns(found.starts, found.folder.initial, names_of(belief))
        write_text(place / "decisions.csv", csv_text(columns))
    if found.sensitivity is not None and found.moving:
        write_text(place / "acceptability.csv", csv_text(found.sensitivity.one_way(found.moving[0])))
        if len(found.moving) == 2:
            first, second = found.moving
            write_text(place / "sensitivity.csv", csv_text(found.sensitivity.two_way(first, second)))
    write_json(place / FILE, bracket.as_file(found.policy.name, _job(found, made)))


def _job(found: Certificate, made: Made) -> dict[str, Any]:
    upper, memoryless, graph = found.bracket.upper, found.memoryless, found.graph
    return {
        **Job(made=made, interrupted=found.interrupted).entries(),
        "kind": found.kind_words(),
        "memoryless": {
            "files": ["memoryless.json", "memoryless.csv"],
            "value": memoryless.plan.value(found.folder.initial),
            "gap": memoryless.gap.value,
            "confidence": memoryless.gap.confidence,
            "guarantee": memoryless.plan.guarantee,
            "most": memoryless.most,
            "proven": memoryless.proven,
        },
        "controller": None
        if graph is None
        else {
            "files": ["controller.json", "controller.npz"],
            "nodes": len(graph.nodes),
            "value": graph.value,
            "gap": max(0.0, upper.value - graph.value),
            "confidence": upper.confidence if upper.exact else found.bracket.confidence,
        },
        "information": None if found.information is None else found.information.to_dict(),
        "checks": found.checks,
    }


def _table(found: Certificate) -> dict[str, Any]:
    """The memoryless policy, one row per stage and state."""
    policy, belief = found.plan.policy, found.folder.training
    actions = np.atleast_2d(policy.actions)
    stages, states = np.indices(actions.shape)
    columns: dict[str, Any] = {} if policy.horizon is None else {"stage": stages.ravel()}
    columns["idstate"] = states.ravel()
    if belief.states is not None:
        columns["state"] = [belief.states[s] for s in states.ravel()]
    columns["idaction"] = actions.ravel()
    if belief.actions is not None:
        columns["action"] = [belief.actions[a] for a in actions.ravel()]
    return columns
