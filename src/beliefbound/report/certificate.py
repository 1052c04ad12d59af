"""`beliefbound bound`: a model folder in; a bracket, every bound behind it, a policy and a page to look at, out."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from beliefbound.beliefs.folder import ModelFolder, read_models
from beliefbound.beliefs.signals import RewardSignal
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.bracket import Bracket, bracket
from beliefbound.bounds.log import TracePoint
from beliefbound.evaluation import evaluate
from beliefbound.io.atomic import write_aside, write_text
from beliefbound.planning.cadp import cadp
from beliefbound.planning.plan import Plan
from beliefbound.policy import MemorylessPolicy
from beliefbound.report.figures import figure, save
from beliefbound.report.page import Page, Picture, Section, Table, write_page


@dataclass(frozen=True, eq=False)
class Certificate:
    """What was found: the bracket, the best memoryless plan, and its value on the folder's other models."""

    folder: ModelFolder
    bracket: Bracket
    plan: Plan
    checks: dict[str, float]
    report: Path


def certify_folder(
    models: Path | str,
    out: Path | str,
    *,
    horizon: int | None = None,
    confidence: float = 0.95,
    target_gap: float | None = None,
    time_limit: float | None = None,
    reward_signal: RewardSignal | None = None,
    seed: int = 1,
    threads: int | None = None,
    watch: Callable[[TracePoint], object] | None = None,
) -> Certificate:
    """Bracket the Bayes-optimal value of a model folder's training belief and write what was found into `out`.

    Writes `bounds.json` (`lower`, `upper`, `confidence`, every bound with its method), `policy.csv` and `policy.json`
    (the best memoryless policy, stage by stage), `bracket.{png,svg}` and `report.html`. `watch` is told each time the
    bracket closes.
    """
    folder = read_models(models, reward_signal=reward_signal)
    found = bracket(
        folder.training,
        initial=folder.initial,
        discount=folder.discount,
        horizon=horizon,
        confidence=confidence,
        target_gap=target_gap,
        time_limit=time_limit,
        rng=np.random.default_rng(seed),
        threads=threads,
        watch=watch,
    )
    plan = cadp(folder.training, discount=folder.discount, horizon=horizon, initial=folder.initial)
    stages = None if isinstance(plan.policy, MemorylessPolicy) else horizon
    checks: dict[str, float] = {}
    if folder.test is not None:
        values = evaluate(plan.policy, folder.test, discount=folder.discount, horizon=stages)
        checks["test models"] = float(folder.test.weights @ values @ folder.initial)
    if folder.true is not None:
        values = evaluate(plan.policy, folder.true, discount=folder.discount, horizon=stages)
        checks["true model"] = float(values @ folder.initial)
    target = Path(out)
    write_text(target / "bounds.json", _bounds_json(found))
    _write_policy(plan, target)
    with figure() as (drawn, axes):
        found.plot(axes)
        picture = save(drawn, target / "bracket")[1]
    page = _page(Path(models), folder, found, plan, checks, picture)
    return Certificate(folder, found, plan, checks, write_page(page, target / "report.html"))


def best_rows(bounds: tuple[Bound, ...]) -> tuple[list[str], list[list[str]]]:
    """Header and formatted cells of the best bound of each kind, in order of value: the two sides meet in the middle.

    Bounds that differ only in the size of a graph or a sample are of one kind.
    """
    best: dict[tuple[str, str], Bound] = {}
    for bound in bounds:
        kind = (bound.side, re.sub(r"\d+", "#", bound.method))
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


def _bounds_json(found: Bracket) -> str:
    content = {
        "lower": found.lower.value,
        "upper": found.upper.value,
        "width": found.width,
        "relative_gap": found.relative_gap,
        "confidence": found.confidence,
        "bounds": [
            {
                "side": bound.side,
                "value": bound.value,
                "estimate": bound.estimate,
                "confidence": bound.confidence,
                "samples": bound.n_samples,
                "method": bound.method,
            }
            for bound in found.bounds
        ],
        "trace": [[point.seconds, point.lower.value, point.upper.value] for point in found.trace],
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _write_policy(plan: Plan, target: Path) -> None:
    actions = np.atleast_2d(plan.policy.actions)
    stages, states = np.indices(actions.shape)
    table = pl.DataFrame({"stage": stages.ravel(), "idstate": states.ravel(), "idaction": actions.ravel()})
    if not isinstance(plan.policy, MemorylessPolicy):
        table = table.drop("stage")
    write_aside(target / "policy.csv", table.write_csv)
    content: dict[str, Any] = {
        "kind": "memoryless" if isinstance(plan.policy, MemorylessPolicy) else "stationary",
        "actions": plan.policy.actions.tolist(),
        "value": plan.value(),
        "guarantee": plan.guarantee,
    }
    write_text(target / "policy.json", msgspec.json.encode(content).decode() + "\n")


def _page(
    models: Path, folder: ModelFolder, found: Bracket, plan: Plan, checks: dict[str, float], picture: Path
) -> Page:
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
    policy_text = [f"The best memoryless policy found earns {plan.value():.6g} on the training models: {plan.note}."]
    policy_text += [f"On the {name} it earns {value:.6g}." for name, value in checks.items()]
    policy_text.append("It is in policy.csv and policy.json.")
    return Page(
        title=f"What {models.name} is worth",
        lead=(
            f"Acting Bayes-optimally is worth between {found.lower.value:.6g} and {found.upper.value:.6g}: "
            f"a bracket {100 * found.relative_gap:.2g}% wide, "
            + ("proven." if found.confidence == 1.0 else f"at {100 * found.confidence:.4g}% confidence.")
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
            Section("What is proven and what is estimated", found.summary().splitlines()[1:], [table]),
            Section("A policy to use", policy_text),
            *([Section("What was assumed in reading the folder", folder.notes)] if folder.notes else []),
        ],
    )
