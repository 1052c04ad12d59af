"""`beliefbound bound`: a model folder in; a bracket, every bound behind it, a policy and a page to look at, out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from beliefbound.beliefs.finite import RewardSignal
from beliefbound.beliefs.folder import ModelFolder, read_models
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.bracket import Bracket, TracePoint, bracket
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
    watch: Callable[[TracePoint], None] | None = None,
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
    checks = {
        name: float(
            np.mean(evaluate(plan.policy, other, discount=folder.discount, horizon=_stages(plan, horizon)) @ start)
        )
        for name, other, start in (
            ("test models", folder.test, folder.initial),
            ("true model", folder.true, folder.initial),
        )
        if other is not None
    }
    target = Path(out)
    write_text(target / "bounds.json", _bounds_json(found))
    _write_policy(plan, target)
    with figure() as (drawn, axes):
        found.plot(axes)
        picture = save(drawn, target / "bracket")[1]
    page = _page(Path(models), folder, found, plan, checks, picture)
    return Certificate(folder, found, plan, checks, write_page(page, target / "report.html"))


def _stages(plan: Plan, horizon: int | None) -> int | None:
    return None if isinstance(plan.policy, MemorylessPolicy) else horizon


def bound_rows(bounds: tuple[Bound, ...]) -> pl.DataFrame:
    """The best bound of each side and method, lower ones first, tightest last and first: they meet in the middle."""
    best: dict[tuple[str, str], Bound] = {}
    for bound in bounds:
        key = (bound.side, bound.method)
        sign = 1.0 if bound.side == "lower" else -1.0
        if key not in best or sign * bound.value > sign * best[key].value:
            best[key] = bound
    ordered = sorted(best.values(), key=lambda b: (b.side, b.value))
    return pl.DataFrame(
        {
            "side": [b.side for b in ordered],
            "value": [b.value for b in ordered],
            "estimate": [b.estimate for b in ordered],
            "confidence": [b.confidence for b in ordered],
            "samples": [b.n_samples for b in ordered],
            "method": [b.method for b in ordered],
        },
        schema={
            "side": pl.String,
            "value": pl.Float64,
            "estimate": pl.Float64,
            "confidence": pl.Float64,
            "samples": pl.Int64,
            "method": pl.String,
        },
    )


def _bounds_json(found: Bracket) -> str:
    content = {
        "lower": found.lower.value,
        "upper": found.upper.value,
        "gap": found.gap,
        "relative_gap": found.relative_gap,
        "confidence": found.confidence,
        "bounds": bound_rows(found.bounds).to_dicts(),
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
    rows = bound_rows(found.bounds)
    table = Table(
        ["side", "bound", "estimate", "holds", "how"],
        [
            [
                row["side"],
                f"{row['value']:.6g}",
                "" if row["confidence"] == 1.0 else f"{row['estimate']:.6g}",
                "proven" if row["confidence"] == 1.0 else f"{100 * row['confidence']:.4g}%, {row['samples']} samples",
                row["method"],
            ]
            for row in rows.iter_rows(named=True)
        ],
        "Every bound found. An estimated one is the conservative end of an interval.",
        frozenset(
            i
            for i, row in enumerate(rows.iter_rows(named=True))
            if row["value"] in (found.lower.value, found.upper.value)
        ),
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
            Section("Every bound", found.summary().splitlines()[1:], [table]),
            Section("A policy to use", policy_text),
            *([Section("What was assumed in reading the folder", folder.notes)] if folder.notes else []),
        ],
    )
