"""`beliefbound bound`: a model folder in; a bracket, every bound behind it, two policies and a page to look at, out.

*The certified policy* attains the lower bound, and the certificate is about it; it mostly learns as it acts.
*The memoryless policy* is a table to read and to use anywhere, with a value and a gap of its own: the upper bound minus
its exact value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable, write_aside, write_text
from beliefbound.base.io.paths import as_path
from beliefbound.base.validation import check_probability, check_threads
from beliefbound.beliefs.folder import ModelFolder, read_models
from beliefbound.beliefs.signals import RewardSignal
from beliefbound.bounds.bound import Bound, Kind, Regret
from beliefbound.bounds.bracket import Bracket, Target, bracket_of, limits_of, seed_of
from beliefbound.bounds.finite.decision_graph import DecisionGraph
from beliefbound.bounds.finite.small_controller import small_controller_of
from beliefbound.bounds.information.result import Information
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.bounds.record import TracePoint
from beliefbound.models.evaluation import evaluate
from beliefbound.planning.plan import Plan
from beliefbound.planning.task import FiniteTask
from beliefbound.policy.naming import names_of, printable
from beliefbound.report.decision import decision_sections, write_decision
from beliefbound.report.decision_graph import graph_sections
from beliefbound.report.figures import figure, save
from beliefbound.report.information import (
    information_entries,
    information_sections,
    information_words,
    measured_next,
)
from beliefbound.report.memoryless import memoryless_plan, memoryless_regret, policy_tables
from beliefbound.report.page import Page, Picture, Section, Table, write_page
from beliefbound.report.verify import FORMAT, VERSION, Made


@dataclass(frozen=True, eq=False)
class Certificate:
    """What was found, and where it was written.

    Attributes:
      folder: what was read.
      bracket: the bracket; `bracket.policy` is the certified policy, in the file `policy`.
      plan: the memoryless policy, in the files `memoryless.json` and `memoryless.csv`.
      plan_gap: how far `plan` can be from Bayes-optimal.
      checks: value of `plan` on the folder's other models.
      graph: a decision graph of few nodes, in the files `controller.json` and `controller.npz`; where it was asked for.
      information: what to measure next, in the file `information.json`; where it was asked for.
      interrupted: whether somebody ended the search before its time.
      made: what makes the certificate again, for `beliefbound verify`.
    """

    folder: ModelFolder
    bracket: Bracket
    plan: Plan
    plan_gap: Regret
    checks: dict[str, float]
    interrupted: bool
    policy: Path
    report: Path
    made: Made
    graph: DecisionGraph | None = None
    information: Information | None = None

    def decision_words(self) -> list[str]:
        """What is proven about the first action, and how far weights may move before it is not."""
        decision, belief = self.bracket.decision, self.folder.training
        if decision is None:
            return []
        words = [decision.describe(belief.actions) + "."]
        if decision.stability is not None:
            narrow = int(np.argmin(decision.stability[:, 1] - decision.stability[:, 0]))
            (low, high), now = decision.stability[narrow], belief.weights[narrow]
            name = printable(names_of(belief).model(narrow))
            words.append(
                "It stays proven while any one model's weight moves within its interval and the others keep their "
                f"proportions; the narrowest is that of {name}, {low:.4g} to {high:.4g} (now {now:.4g})."
            )
        return words

    def policy_words(self) -> list[str]:
        """What is true of each of the two policies, and where it is."""
        certified = f"The certified policy ({_kind(self.bracket)}) is in {self.policy.name}: it is within "
        certified += f"{self.bracket.regret.value:.6g} of Bayes-optimal, {_holds(self.bracket.regret.confidence)}."
        words = [certified, _memoryless_words(self.plan, self.plan_gap)]
        if self.graph is not None:
            words.append(f"{self.graph.words(self.bracket.upper.value)} They are in controller.json.")
        words += [f"On the {name} the memoryless policy earns {value:.6g}." for name, value in self.checks.items()]
        return words

    def information_words(self) -> list[str]:
        """What to measure next, where that was asked for."""
        return [] if self.information is None else information_words(self.information)


def certify_folder(
    models: Path | str,
    out: Path | str,
    *,
    horizon: int | None = None,
    confidence: float = 0.95,
    target: Target = "value",
    target_gap: float | None = None,
    time_limit: float | None = None,
    effort: int | None = None,
    reward_signal: RewardSignal | None = None,
    absorbing: Sequence[str] = (),
    controller: int | None = None,
    measure: int | None = None,
    seed: int = 1,
    threads: int | None = None,
    watch: Callable[[TracePoint], object] | None = None,
    say: Callable[[], object] = lambda: None,
) -> Certificate:
    """Bracket the Bayes-optimal value of a model folder's training belief and write what was found into `out`.

    Writes `bounds.json` (`lower`, `upper`, `confidence`, every bound with its method, what each first action and each
    policy is worth, and what `beliefbound verify` needs), the certified policy as `policy.npz` (one that learns) or
    `policy.json` (a table), both for `load_policy`; the best memoryless policy as `memoryless.json` and
    `memoryless.csv`, stage by stage; `bracket.{png,svg}` and `report.html`. With `controller`, a decision graph of at
    most so many nodes as well: `controller.{json,png,svg}` to look at, `controller.npz` for `load_policy`. With
    `measure`, what so many tries of each state and action are worth before acting: `information.{json,png,svg}`.

    `watch` is told each time the bracket closes. Ctrl-C ends the search, not the command: `say` is called, and all that
    was found so far is written and marked as interrupted; a second one leaves at once and writes nothing. Nothing is
    written before the search is over, and whether `out` can be written to is seen before it begins.
    """
    folder, place = read_models(models, reward_signal=reward_signal, absorbing=absorbing), as_path(out)
    task = FiniteTask.of(folder.training, discount=folder.discount, horizon=horizon, initial=folder.initial)
    limits = limits_of(target_gap=target_gap, time_limit=time_limit, effort=effort, stop=None)
    check_probability(confidence, "confidence")
    check_writable(place)
    with first_interrupt(say) as asked:
        graph = None  # it may need more nodes, which must not be noticed after a long search
        if controller is not None:
            graph = small_controller_of(task, nodes=controller, rng=seed)
        asked_for: dict[str, Any] = {"confidence": confidence, "target": target, "threads": check_threads(threads)}
        until = limits._replace(stop=asked.is_set)
        found = bracket_of(task, until, seed=seed_of(seed), watch=watch, **asked_for).bracket
        plan = memoryless_plan(task)
        interrupted = asked.is_set()
    stages = horizon if plan.policy.horizon is None else None
    gap = memoryless_regret(plan, task, found)
    information = None
    if measure is not None:
        information = measured_next(task, found, tries=measure, confidence=confidence, seed=seed)
    checks: dict[str, float] = {}
    if folder.test is not None:
        values = evaluate(plan.policy, folder.test, discount=folder.discount, horizon=stages)
        checks["test models"] = float(folder.test.weights @ values @ folder.initial)
    if folder.true is not None:
        values = evaluate(plan.policy, folder.true, discount=folder.discount, horizon=stages)
        checks["true model"] = float(values @ folder.initial)
    result = Certificate(
        folder,
        found,
        plan,
        gap,
        checks,
        interrupted,
        place / ("policy.npz" if AnyPolicy(found.policy).as_table() is None else "policy.json"),
        place / "report.html",
        Made.of(
            folder,
            models,
            horizon=horizon,
            confidence=confidence,
            target=target,
            seed=found.seed,
            effort=found.effort,
            version=found.version,
            controller=controller,
            measure=measure,
        ),
        graph,
        information,
    )
    _write(result, Path(models).resolve().name, place)
    return result


def _write(result: Certificate, name: str, target: Path) -> None:
    _write_policies(result, target)
    with figure() as (drawn, axes):
        result.bracket.plot(axes)
        picture = save(drawn, target / "bracket")[1]
    decision = write_decision(result.bracket, result.folder.training, target)
    if result.graph is not None:
        result.graph.save(target / "controller.json")
    write_text(target / "bounds.json", _bounds_json(result))
    write_page(_page(name, result, picture, decision), result.report)


def best_rows(bounds: tuple[Bound, ...]) -> tuple[list[str], list[list[str]]]:
    """Header and formatted cells of the best bound of each kind, in order of value: the two sides meet in the
    middle."""
    best: dict[tuple[str, Kind], Bound] = {}
    for bound in bounds:
        kind = (bound.side, bound.kind)
        sign = 1.0 if bound.side == "lower" else -1.0
        if kind not in best or sign * bound.value > sign * best[kind].value:
            best[kind] = bound
    rows = [
        [
            bound.method,
            bound.side,
            f"{bound.value:.6g}",
            "" if bound.exact else f"{bound.estimate:.6g}",
            "proven" if bound.exact else f"{100 * bound.confidence:.4g}%",
        ]
        for bound in sorted(best.values(), key=lambda bound: (bound.side, bound.value))
    ]
    return ["how", "side", "bound", "estimate", "holds"], rows


def bound_entry(bound: Bound) -> dict[str, Any]:
    """A bound as an entry of `bounds` in a certificate's file."""
    return {
        "side": bound.side,
        "value": bound.value,
        "estimate": bound.estimate,
        "confidence": bound.confidence,
        "samples": bound.n_samples,
        "method": bound.method,
        "proof": str(bound.kind),
        "asymptotic": bound.asymptotic,
    }


def _bounds_json(result: Certificate) -> str:
    found, belief = result.bracket, result.folder.training
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "lower": found.lower.value,
        "upper": found.upper.value,
        "width": found.width,
        "relative_gap": found.relative_gap,
        "confidence": found.confidence,
        "interrupted": result.interrupted,
        "policy": {
            "file": result.policy.name,
            "kind": _kind(found),
            "value_at_least": found.lower.value,
            "gap": found.regret.value,
            "confidence": found.regret.confidence,
        },
        "memoryless": {
            "files": ["memoryless.json", "memoryless.csv"],
            "value": result.plan.value(result.folder.initial),
            "gap": result.plan_gap.value,
            "confidence": result.plan_gap.confidence,
            "guarantee": result.plan.guarantee,
        },
        "bounds": [bound_entry(bound) for bound in found.bounds],
        "trace": [[point.seconds, point.lower.value, point.upper.value] for point in found.trace],
        "decision": None if found.decision is None else found.decision.to_dict(),
        "information": information_entries(result.information),
        "made": msgspec.to_builtins(result.made),
    }
    if result.graph is not None:
        gap = max(0.0, found.upper.value - result.graph.value)
        content["controller"] = {
            "files": ["controller.json", "controller.npz"],
            "nodes": len(result.graph.nodes),
            "value": result.graph.value,
            "gap": gap,
            "confidence": found.upper.confidence if found.upper.exact else found.confidence,
        }
    named = {"states": belief.states, "actions": belief.actions, "models": belief.model_names}
    content |= {key: names for key, names in named.items() if names is not None}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _write_policies(result: Certificate, target: Path) -> None:
    """The certified policy and the memoryless one, each with what is true of it."""
    belief, certified = result.folder.training, result.bracket.policy
    names: dict[str, Any] = {"state_names": belief.states, "action_names": belief.actions}
    certified.save(result.policy, note=result.policy_words()[0], **names)
    for other in {target / "policy.json", target / "policy.npz"} - {result.policy}:
        other.unlink(missing_ok=True)  # an earlier one of the other kind would pass for this one
    policy = result.plan.policy
    policy.save(target / "memoryless.json", note=_memoryless_words(result.plan, result.plan_gap), **names)
    actions = np.atleast_2d(policy.actions)
    stages, states = np.indices(actions.shape)
    columns: dict[str, Any] = {} if policy.horizon is None else {"stage": stages.ravel()}
    columns["idstate"] = states.ravel()
    if belief.states is not None:
        columns["state"] = [belief.states[s] for s in states.ravel()]
    columns["idaction"] = actions.ravel()
    if belief.actions is not None:
        columns["action"] = [belief.actions[a] for a in actions.ravel()]
    write_aside(target / "memoryless.csv", pl.DataFrame(columns).write_csv)


def _kind(found: Bracket) -> str:
    if AnyPolicy(found.policy).as_table() is None:
        return "learns"
    return f"a table: one action per {'state' if found.policy.horizon is None else 'stage and state'}"


def _holds(confidence: float) -> str:
    return "proven" if confidence == 1.0 else f"with {100 * confidence:.4g}% confidence"


def _memoryless_words(plan: Plan, gap: Regret) -> str:
    return (
        f"The memoryless policy earns exactly {plan.value():.6g} on the training models, within {gap.value:.6g} of "
        f"Bayes-optimal, {_holds(gap.confidence)}; it is in memoryless.json and memoryless.csv."
    )


def _page(name: str, result: Certificate, picture: Path, decision: Path | None) -> Page:
    folder, found = result.folder, result.bracket
    belief = folder.training
    header, rows = best_rows(found.bounds)
    ends = {f"{found.lower.value:.6g}", f"{found.upper.value:.6g}"}
    table = Table(
        header,
        rows,
        "The best bound of each kind; all of them are in bounds.json. An estimated one is the conservative end of an "
        "interval that holds with the probability given.",
        frozenset(i for i, row in enumerate(rows) if row[2] in ends),
    )
    early = " The search was interrupted: more time would have brought a narrower one." if result.interrupted else ""
    summary = [line.strip() for line in found.summary().splitlines()[1:]]
    return Page(
        title=f"What {name} is worth",
        lead=(
            f"Acting Bayes-optimally is worth between {found.lower.value:.6g} and {found.upper.value:.6g}: "
            f"a bracket {100 * found.relative_gap:.2g}% wide, {_holds(found.confidence)}.{early}"
        ),
        facts=[
            ("models", str(belief.n_models)),
            ("states", str(belief.n_states)),
            ("actions", str(belief.n_actions)),
            ("discount", f"{folder.discount:g}"),
            ("rewards", belief.reward_signal),
        ],
        sections=[
            Section(
                "The bracket closing",
                pictures=[Picture(picture, "Lower and upper bound over time; dots are sampled bounds.")],
            ),
            *decision_sections(found, belief, result.decision_words(), decision),
            Section("What is proven and what is estimated", summary, [table]),
            Section(
                "Two policies to use",
                [*result.policy_words(), f"The memoryless policy is the {result.plan.note}."],
                policy_tables(result.plan, result.folder.training),
            ),
            Section("How to check it", _made_words(result.made)),
            *graph_sections(result.graph, found.upper.value, result.report.parent),
            *information_sections(result.information, result.report.parent),
            *([Section("What was assumed in reading the folder", folder.notes)] if folder.notes else []),
        ],
    )


def _made_words(made: Made) -> list[str]:
    made_by = f"seed {made.seed}, effort {made.effort}, version {made.version}, on {made.machine}"
    return [f"`beliefbound verify bounds.json {made.models}` makes the same certificate again: {made_by}."]
