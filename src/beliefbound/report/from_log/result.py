"""What was found from a log (`jobs.from_log`): the data that sentences, pictures and pages are made of."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.io.atomic import write_text
from beliefbound.base.io.paths import as_path
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.beliefs.from_log import Learnt
from beliefbound.beliefs.log_checks import Check
from beliefbound.beliefs.log_priors import CLEAR
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.bracket import Bracket
from beliefbound.bounds.information.result import Information
from beliefbound.bounds.posterior.candidates import Candidate, Choice
from beliefbound.bounds.posterior.fresh import Fresh
from beliefbound.bounds.posterior.held_out import HeldOut
from beliefbound.bounds.posterior.prior_free import PriorFree
from beliefbound.bounds.posterior.risk import Estimate, Objective
from beliefbound.bounds.posterior.safe import Safety
from beliefbound.bounds.robust import RobustBracket
from beliefbound.logs.log import Log
from beliefbound.planning.task import Task
from beliefbound.policy.naming import Names
from beliefbound.policy.results import Result, axis


@dataclass(frozen=True, eq=False)
class Comparison:
    """The chosen policy against another, model by model."""

    other: Candidate
    value: Estimate  # of the other policy
    gain: Estimate  # chosen minus other
    worse: Estimate  # probability that the chosen one is worse


class UnderPrior(NamedTuple):
    """What the policy and perfect knowledge are worth under one prior: estimates, and intervals of each on its own.

    `credible`: what the truth pays the policy at least, with the probability of the intervals. `evidence`: by how many
    powers of ten its leave-one-pair-out likelihood differs from that of the best of these priors (0 or less); `None`
    for a prior without data.
    """

    prior: str
    words: str
    value: float
    low: float
    high: float
    credible: float
    best: float
    best_high: float
    evidence: float | None = None

    @property
    def refuted(self) -> bool:
        """Whether the likelihood of another prior is more than a thousand times higher."""
        return self.evidence is not None and self.evidence < -math.log10(CLEAR)


@dataclass(frozen=True, eq=False)
class Reliance:
    """What rests on the prior.

    Attributes:
      table: one row per prior, the chosen one first, that without data last.
      least: the row, of priors that the log does not refute and the chosen one, under which least is credible.
      visits: `[s,a]`, expected discounted visits of the policy in the expected MDP, as shares of all.
      share: of the policy's steps, the part about which the prior speaks.
      untried: of the policy's steps, the part that was never tried.
      warnings: sentences, where it is the prior that speaks.
    """

    table: tuple[UnderPrior, ...]
    least: UnderPrior
    visits: FloatArray
    share: float
    untried: float
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class DrawnModels:
    """What is certain of an objective on models drawn from the posterior.

    Attributes:
      n: how many were drawn.
      bracket: between what its mixture of policies secures and what nobody exceeds, on these models.
      chosen: the objective of the chosen policy on them.
    """

    n: int
    bracket: RobustBracket
    chosen: float


@dataclass(frozen=True, eq=False, repr=False)
class LogPlan(Result):
    """What was found from a log.

    `summary()`, `plot()` and a notebook tell it; `save("plan.json")` writes what `certificate.json` of `beliefbound
    plan` holds, and the policy beside it for `load_policy`. It is not read back: the posterior is not in it.

    Attributes:
      log, learnt, task, checks: what was read, the posterior, the problem, and checks of one against the other.
      choice: the chosen policy and its rivals; `objective`: what was asked to be large, `certified` its estimate, and
        `attainable` that of knowing each model, which nobody's exceeds: every objective rises with values.
      lower, upper: bounds on the Bayes-optimal value, the first attained by the chosen policy.
      credible: its `low` is what the process that made the log pays the chosen policy at least, with the probability
        `confidence`, if the prior is right.
      prior_free: what it is worth at least whatever the process is; `None` where rewards take too many values.
      held_out: an independent check: what a policy chosen from half of the episodes earns at least by the others; or
        why there is none.
      safety: how candidates fared against behaviour, for the objective `safe`; `None` for others.
      bracket: the bracket of policies that learn, where it was computed.
      robust: the bracket of an objective that looks at bad models, on models drawn for it; `None` for others.
      fresh: values on fresh models; its policies are the chosen one and then those of `comparisons`.
      quantiles, cvar: of the chosen policy's value, `quantiles` at `LEVELS`.
      state_lower, state_upper: `[s]`, bounds from each state.
      reliance: how much rests on the prior.
      information: what measuring each pair is worth; `None` where it was not computed.
      confidence: of everything together.
      interrupted: whether somebody ended the work before its time.
      hints: what would tell more.
    """

    log: Log
    learnt: Learnt
    task: Task
    checks: list[Check]
    choice: Choice
    objective: Objective
    certified: Estimate
    attainable: Estimate
    lower: Bound
    upper: Bound
    credible: Estimate
    prior_free: PriorFree | None
    held_out: HeldOut | str
    safety: Safety | None
    bracket: Bracket | None
    robust: DrawnModels | None
    fresh: Fresh
    comparisons: tuple[Comparison, ...]
    quantiles: tuple[Estimate, ...]
    cvar: Estimate
    state_lower: FloatArray
    state_upper: FloatArray
    reliance: Reliance
    information: Information | None
    confidence: float
    interrupted: bool
    hints: tuple[str, ...] = ()

    _kind = "plan of a log"

    def __repr__(self) -> str:
        ends = f"[{self.lower.value:.6g}, {self.upper.value:.6g}]"
        return f"LogPlan(mean value in {ends}, {100 * self.confidence:.4g}% confidence, {self.log!r})"

    @property
    def policy(self) -> Any:
        """The chosen policy."""
        return self.choice.chosen.policy

    @property
    def first_chances(self) -> FloatArray:
        """`[s,a]`, what the policy does at the first stage."""
        chances: FloatArray = self.policy.chances(self.log.n_actions)
        return chances if chances.ndim == 2 else chances[0]

    @property
    def first_actions(self) -> IntArray:
        """`[s]`, the likeliest action of each state at the first stage."""
        taken: IntArray = self.first_chances.argmax(axis=-1)
        return taken

    def first_action(self, state: int) -> str:
        """The likeliest action of a state, by name; where it is drawn, with how often it is."""
        own = self.first_chances[state]
        name, share = self.log.action_name(int(own.argmax())), float(own.max())
        return name if share > 1.0 - 1e-9 else f"{name} ({100 * share:.0f}% of the time)"

    def to_measure(self) -> list[tuple[int, int]]:
        """Pairs, the one most worth measuring first: by what is certain, then what is possible, then by how much of the
        policy's way leads through them by the prior alone. Terminal states and what is not offered are left out."""
        met, info = self.reliance.visits, self.information
        low, high = (np.zeros_like(met),) * 2 if info is None else (info.low, info.high)
        order = np.lexsort((-(met * self.learnt.prior_share).ravel(), -high.ravel(), -low.ravel()))
        belief = self.learnt.belief
        open_ = belief.available & ~self.learnt.terminal[:, None]
        pairs = [(int(k) // self.log.n_actions, int(k) % self.log.n_actions) for k in order]
        return [pair for pair in pairs if open_[pair]]

    def measuring_words(self, s: int, a: int) -> str:
        """What is known of measuring a pair."""
        tried = f"tried {self.log.visits[s, a]:,} times so far"
        if self.information is None:
            met, share = self.reliance.visits[s, a], self.learnt.prior_share[s, a]
            return f"{tried}: {100 * met:.1f}% of the policy's steps, {100 * share:.0f}% from the prior alone"
        low, high = self.information.low[s, a], self.information.high[s, a]
        worth = f"worth {low:.4g} to {high:.4g}" if low > 0.0 else f"worth at most {high:.4g}"
        return f"{worth}, {tried}"

    @property
    def names(self) -> Names:
        """Of the log's states and actions."""
        return Names(self.log.states, self.log.actions)

    def _rows(self) -> list[tuple[str, str]]:
        from beliefbound.report.from_log.headline import (
            checked_words,
            estimate_words,
            free_words,
            mean_words,
            next_words,
            policy_shown,
            sure_words,
        )

        rows = [
            ("estimate", estimate_words(self, 6)),
            ("no prior", free_words(self)),
            ("held out", checked_words(self)),
            ("by the prior", sure_words(self)),
        ]
        rows += [("on average", mean_words(self)), ("policy", policy_shown(self))]
        for c in self.comparisons:
            rows.append((f"against {c.other.name}", f"{c.gain.low:.4g} to {c.gain.high:.4g} more, on average"))
        if next_words(self):
            rows.append(("then", next_words(self)))
        return [*rows, *(("note", note) for note in self.notes())]

    def to_dict(self) -> dict[str, Any]:
        """The numbers and words of `certificate.json` (`report.from_log.certificate`), ready for JSON."""
        from beliefbound.report.from_log.certificate import certificate

        return certificate(self, posterior=None, robust=None)

    def save(self, path: Path | str) -> None:
        """Write `to_dict()` as JSON, and the policy into a file beside it, which its entry `policy` names."""
        from beliefbound.report.from_log.certificate import certificate

        file = as_path(path)
        policy = f"{file.stem}.policy.json"
        content = certificate(self, policy=policy, posterior=None, robust=None)
        self.names.save(self.policy, file.parent / policy)
        write_text(file, json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Not to be had: the posterior is not in the file.

        Raises:
          FileError: always; it says what can be read.
        """
        raise FileError(f"{path} holds no posterior, so no plan can be read back; its policy can: load_policy")

    def plot(self, ax: Any = None) -> Any:
        """How the value of the policy, and of the others, is distributed over models of the posterior; on a matplotlib
        axis, returned."""
        from beliefbound.report.from_log.pictures import draw_values

        ax = axis(ax, figsize=(6.4, 4.0))
        draw_values(self, ax)
        return ax

    def notes(self) -> tuple[str, ...]:
        """What a reader should know, in order of weight."""
        doubts = [f"doubtful: {c.name}: {c.found} (p = {c.p:.2g})" for c in self.checks if c.suspicious]
        return (*self.reliance.warnings, *doubts, *self.hints, *self.log.notes, *self.learnt.notes)
