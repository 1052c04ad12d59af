"""The value of anybody's policy on a finite belief, by simulation, with intervals that are proven.

A walk draws outcomes from the *Bayesian predictive* distribution; the model itself is never drawn. With QMDP values `W`
of the posterior `x` (any `W ≥ V*` that falls under its own backups) the loss of a step is

    loss(x,a) = W(x) − r(x,a) − γ E[W(x') | x,a] ≥ 0,

and for any time `τ` that looks at the past only

    V^π(x_0) = W(x_0) − E[ Σ_{k<τ} γ^k loss_k + γ^τ (W(x_τ) − V^π(x_τ)) ].

A walk ends after `depth` steps, or when its losses pass a ceiling. What is left of `V^π` there lies between what the
worst policy of each model earns and `W`: taking either end of it, the mean cost of walks bounds the value from below
and from above. The losses of a good policy are small, so few walks suffice: `W` is a control
variate. Costs are bounded, and their means are read off with the betting intervals of `bounds.statistics.betting`.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.finite.outcomes import outcome_rows
from beliefbound.bounds.finite.problem import models_apart
from beliefbound.bounds.statistics.betting import mean_at_least, mean_at_most
from beliefbound.errors import ObservationError, ParameterError
from beliefbound.limits import TABLE_BYTES
from beliefbound.planning.task import FiniteTask
from beliefbound.validation import FloatArray, IntArray

_LEFT = 1e-4  # of the largest value: what may be left at the depth
_PILOT = 64  # walks that choose the ceiling; they are not part of any bound
_MOST_STEPS = 100_000


class Simulated(NamedTuple):
    """The value lies in `[low, high]`; both hold together with the confidence asked for."""

    low: float
    high: float
    estimate: float
    samples: int


class Walks:
    """Walks of one policy under a task; `rng` is the source of all of them."""

    def __init__(self, policy: Any, task: FiniteTask, rng: np.random.Generator) -> None:
        self.policy, self.task, self.rng = policy, task, rng
        models, discount = task.models, task.discount
        self.outcomes = outcome_rows(task.belief)
        self.depth = _MOST_STEPS if task.horizon is None else task.horizon
        if 0.0 < discount < 1.0:
            self.depth = min(self.depth, max(1, math.ceil(math.log(_LEFT) / math.log(discount))))
        stages = 0 if task.horizon is None else task.horizon
        if 8 * (stages + 1) * models.rewards.size > TABLE_BYTES:
            raise ParameterError(f"horizon {task.horizon} needs too large tables for a simulation; give a shorter one")
        _, self.q = models_apart(task, stages)
        turned = FiniteBelief.of(replace(models, rewards=-models.rewards), task.weights, reward_signal="unobserved")
        _, least = models_apart(FiniteTask(turned, task.start, discount, task.horizon), stages)
        self.least = -np.where(models.available, least, -np.inf).max(axis=-1)  # [stage,m,s]: of the worst policy
        best = np.where(models.available, self.q, -np.inf).max(axis=-1)
        self.span = float(max(0.0, (best - self.least).max()))  # no loss, and nothing that is left, is larger
        self.paid = task.belief.signal.on_arrival

    def top(self) -> float:
        """`W` at the start."""
        states = np.flatnonzero(self.task.start)
        return float(
            self.task.start[states] @ self._best(np.tensordot(self.task.weights, self._q(0)[:, states], 1), states)
        )

    def _q(self, stage: int) -> FloatArray:
        """`[m,s,a]`"""
        here: FloatArray = self.q[min(stage, len(self.q) - 1)]
        return here

    def _best(self, q: FloatArray, states: IntArray) -> FloatArray:
        """The largest of `q[i,a]` over the actions of `states[i]`."""
        best: FloatArray = np.where(self.task.models.available[states], q, -np.inf).max(axis=-1)
        return best

    def cost(self, ceiling: float) -> tuple[float, float]:
        """`(above, below)` of one walk: what it has lost for certain, and what it can have lost at most."""
        policy, rng, discount = self.policy, self.rng, self.task.discount
        like, arrive, first, shown = self.outcomes
        policy.reset(int(rng.integers(2**63)))
        start = self.task.start
        s = int(rng.choice(len(start), p=start))
        b, lost, weight, stage = np.array(self.task.weights), 0.0, 1.0, 0
        value = float(self._best((b @ self._q(0)[:, s])[None], np.array([s]))[0])
        while stage < self.depth and lost <= ceiling:
            a = checked_action(policy, s, policy.act(s), self.task)
            rows = slice(int(first[s, a]), int(first[s, a + 1]))
            joint = b[:, None] * like[:, rows]
            chances = joint.sum(axis=0)
            later = np.einsum("mk,mka->ka", joint, self._q(stage + 1)[:, arrive[rows]])
            later = self._best(later, arrive[rows])
            gained = float(b @ self.task.models.rewards[:, s, a])
            lost += weight * max(0.0, value - gained - discount * float(later.sum()))
            u, k = rng.random() * float(chances.sum()), 0
            while k + 1 < len(chances) and (u >= chances[k] or chances[k] <= 0.0):
                u -= chances[k]
                k += 1
            while chances[k] <= 0.0:
                k -= 1
            t = int(arrive[rows.start + k])
            policy.observe(s, a, self._reward(rows.start + k, s, a, t, shown), t)
            value, b = float(later[k] / chances[k]), joint[:, k] / chances[k]
            s, weight, stage = t, weight * discount, stage + 1
        low = float(b @ self.least[min(stage, len(self.least) - 1)][:, s])
        return lost, lost + weight * max(0.0, value - low)

    def _reward(self, row: int, s: int, a: int, t: int, shown: FloatArray) -> float | None:
        """What a step shows: the reward seen; where all models pay the same, that; nothing where rewards are unseen."""
        if not np.isnan(shown[row]):
            return float(shown[row])
        if self.task.belief.reward_signal != "known":
            return None
        return float(self.task.models.rewards[0, s, a] if self.paid is None else self.paid[0, s, a, t])


def checked_action(policy: Any, s: int, action: Any, task: FiniteTask) -> int:
    """An action that state `s` offers, as somebody's policy returned it."""
    if isinstance(action, bool | np.bool_) or not isinstance(action, int | np.integer):
        raise ObservationError(f"the policy chose {action!r} in state {s}; an action is a whole number")
    if not 0 <= action < task.models.n_actions or not task.models.available[s, action]:
        raise ObservationError(f"the policy chose action {action} in state {s}, which does not offer it")
    return int(action)


def simulate(
    policy: Any,
    task: FiniteTask,
    rng: np.random.Generator,
    *,
    samples: int,
    alpha: float,
    stop: Callable[[], bool] | None = None,
) -> Simulated:
    """Bounds on the value of a policy that fail with probability at most `alpha`, half of it on each side.

    `stop` is asked between walks: the interval holds after any number of them.
    """
    walks = Walks(policy, task, rng)
    top = walks.top()
    pilot = np.array([walks.cost(np.inf) for _ in range(_PILOT)])
    ceiling = 2.0 * float(pilot[:, 1].max())
    found = [walks.cost(ceiling)]
    while len(found) < samples and not (stop is not None and stop()):
        found.append(walks.cost(ceiling))
    costs = np.array(found)
    # A walk ends at most one loss beyond the ceiling; one loss, and what is left, are at most a span each.
    most = ceiling + 2.0 * walks.span
    below = mean_at_most(costs[:, 1], low=0.0, high=most, alpha=0.5 * alpha, pilot=pilot[:, 1])
    above = mean_at_least(costs[:, 0], low=0.0, high=most, alpha=0.5 * alpha, pilot=pilot[:, 0])
    return Simulated(top - below, top - above, top - float(costs.mean()), len(found))
