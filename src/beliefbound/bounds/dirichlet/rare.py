"""Rare outcomes are bounded, not sampled; and what values can be at all.

*Cutting.* An outcome that the belief gives a chance of 1e-5, say, is in hardly any particle and on hardly any
trajectory; if it is a jackpot or a ruin, an average over samples says nothing of it. Let `R` be such outcomes of a row,
with the predictive chance `m = Σ_{j∈R} α_j / Σ_j α_j`. As long as none of them has been seen their chance is at most
`m`, whatever else is counted, and given that none of them happens next, the row is Dirichlet with the other
parameters. So in the tree of histories

    V(h) ≤ max_a r + γ [(1 − m) E(V(h') | not R) + m · high],    V(h) ≥ the same with `low`,

where `high` and `low` are above and below everything that can follow. Doing so in every row gives a belief without
those outcomes whose rows sum to `keep = 1 − m` and pay `credit = m (paid + γ high)` in addition: its Bayes-optimal
value is at least that of the belief given, and, with `low`, the value of any policy is at most that under the belief
given.
Bounds are made for that problem. How much of a row may be cut follows from the effective horizon `H`: `m H` is at most
`SHARE`, so that the bound moves by no more than this share of the range of values.

*Extremes.* `low[s]` and `high[s]` are the least and largest values of any policy on any model of the belief: nature
picks the next state among those possible, separately for the reward. Policy iteration, exact up to a residual that is
added, so that it is valid whenever it ends.
"""

from typing import Literal

import numpy as np

from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.kernels.particles.rows import BAMDP
from beliefbound.models.enclosing import rounding_of
from beliefbound.planning.task import effective_horizon

SHARE = {"lower": 1e-3, "upper": 3e-4}  # of the range of values: what outcomes that are cut may cost in all
_ROUNDS = 100  # of policy iteration
_FADED = 1e-18  # what follows then is lost in rounding
_WORK = 5e7  # comparisons that they may take
_MOST_STAGES = 5000  # a horizon up to which extremes are those of each stage


def cut(
    problem: BAMDP, side: Literal["lower", "upper"], horizon: int | None, extremes: "Extremes | None" = None
) -> BAMDP:
    """The problem without rare outcomes, worth at least as much (`upper`) or at most as much (`lower`); itself where
    there are none. `extremes`: of the problem, where they are known."""
    posterior, pairs = problem.posterior, len(problem.available)
    chance = posterior.alpha / posterior.alpha.sum(axis=1, keepdims=True)
    order = np.argsort(chance, axis=1, kind="stable")
    ranked = np.cumsum(np.take_along_axis(chance, order, axis=1), axis=1)
    share = SHARE[side] / effective_horizon(problem.discount, horizon)
    rare = np.zeros(chance.shape, dtype=bool)
    np.put_along_axis(rare, order, ranked <= share, axis=1)
    rare &= chance > 0.0
    if not rare.any():
        return problem
    row = posterior.row if posterior.tied else np.arange(pairs)
    mass = np.where(rare, chance, 0.0).sum(axis=1)[row]
    extremes = Extremes(problem, horizon) if extremes is None else extremes
    later = np.broadcast_to(extremes.ever(side), (problem.n_states,))
    possible, arrive = _outcomes(problem)
    top = side == "upper"
    follows = np.where(possible, later[arrive], -np.inf if top else np.inf)
    follows = follows.max(axis=1) if top else follows.min(axis=1)
    paid = np.zeros(pairs)
    if posterior.paid.size > posterior.reward.size:  # on arrival
        paid = _paid(problem, possible, top)
    return problem._replace(
        posterior=posterior._replace(alpha=np.where(rare, 0.0, posterior.alpha)),
        keep=problem.keep * (1.0 - mass),
        credit=np.where(problem.available, mass * (paid + problem.discount * follows), 0.0),
    )


class Extremes:
    """Least and largest values of any policy on any model of a problem, for so many decisions."""

    def __init__(self, problem: BAMDP, horizon: int | None) -> None:
        self._problem, self._horizon = problem, horizon
        self._possible, self._arrive = _outcomes(problem)
        self._tables: dict[bool, FloatArray] = {}

    def low(self, left: int) -> FloatArray:
        """`[s]`, with `left` decisions to go; below 0, for ever."""
        return -self._row(left, top=False)

    def high(self, left: int) -> FloatArray:
        """`[s]`, with `left` decisions to go; below 0, for ever."""
        return self._row(left, top=True)

    def ever(self, side: Literal["lower", "upper"]) -> FloatArray:
        """`[s]`: the extreme on that side whatever number of decisions is left."""
        top = side == "upper"
        table = self._table(top=top)
        if self._horizon is not None:
            table = np.maximum(table.max(axis=0), 0.0)[None]
        extreme: FloatArray = table[0] if top else -table[0]
        return extreme

    def _row(self, left: int, *, top: bool) -> FloatArray:
        row = self._table(top=top)[0 if self._horizon is None else left]
        return np.ascontiguousarray(np.broadcast_to(row, (self._problem.n_states,)))

    def _table(self, *, top: bool) -> FloatArray:
        """Largest values `[left,s]`, or the negative of the least; one row where there is no horizon, and one column
        where there are too many stages to tell states apart."""
        if top not in self._tables:
            problem, posterior = self._problem, self._problem.posterior
            arriving = posterior.paid.size > posterior.reward.size
            sign = 1.0 if top else -1.0
            paid = _paid(problem, self._possible, top) * (problem.keep if arriving else 1.0)
            reward = np.where(problem.available, sign * (paid + problem.credit), -np.inf)
            self._tables[top] = self._for_ever(reward) if self._horizon is None else self._staged(reward)
        return self._tables[top]

    def _back_up(self, reward: FloatArray, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """`Q[pair]` when the best possible next state follows, and that state."""
        follows = np.where(self._possible, values[self._arrive], -np.inf)
        best = follows.argmax(axis=1)
        rows = np.arange(len(best))
        state = self._arrive[rows, best] if self._arrive.ndim == 2 else best
        return reward + self._problem.discount * self._problem.keep * follows[rows, best], state

    def _staged(self, reward: FloatArray) -> FloatArray:
        problem, stages = self._problem, int(self._horizon or 0)
        if stages <= _MOST_STAGES and stages * self._possible.size <= 4 * _WORK:
            table = np.zeros((stages + 1, problem.n_states))
            for left in range(stages):
                q, _ = self._back_up(reward, table[left])
                table[left + 1] = q.reshape(problem.n_states, -1).max(axis=1)
            return table
        lasts = [effective_horizon(problem.discount, left) for left in range(stages + 1)]
        return max(0.0, float(reward.max())) * np.array(lasts)[:, None]

    def _for_ever(self, reward: FloatArray) -> FloatArray:
        problem, n_states = self._problem, self._problem.n_states
        values = np.zeros(n_states)
        for _ in range(max(2, min(_ROUNDS, int(_WORK / self._possible.size)))):
            q, state = self._back_up(reward, values)
            action = q.reshape(n_states, -1).argmax(axis=1)
            pair = np.arange(n_states) * problem.posterior.n_actions + action
            better = _followed(reward[pair], problem.discount * problem.keep[pair], state[pair])
            same = np.allclose(better, values, rtol=1e-12, atol=0.0)
            values = better
            if same:
                break
        q, _ = self._back_up(reward, values)
        excess = max(0.0, float((q.reshape(n_states, -1).max(axis=1) - values).max()))
        excess += rounding_of(1) * float(np.abs(values).max())
        return (values + excess / (1.0 - problem.discount))[None]


def _followed(reward: FloatArray, factor: FloatArray, follows: IntArray) -> FloatArray:
    """`v[s] = reward[s] + factor[s] v[follows[s]]`, for ever: twice as many steps with every round."""
    values = reward.copy()
    while factor.max(initial=0.0) > _FADED:
        values, factor, follows = values + factor * values[follows], factor * factor[follows], follows[follows]
    return values


def _outcomes(problem: BAMDP) -> tuple[BoolArray, IntArray]:
    """Which outcomes `[pair,j]` are possible, and where they lead: `[pair,j]`, or `[j]` if that is the same for all."""
    posterior = problem.posterior
    if not posterior.tied:
        return posterior.alpha > 0.0, np.arange(problem.n_states)
    return (posterior.alpha[posterior.row] > 0.0) & (posterior.arrive >= 0), np.maximum(posterior.arrive, 0)


def _paid(problem: BAMDP, possible: BoolArray, top: bool) -> FloatArray:
    """The largest, or least, reward of each pair."""
    worst = -np.inf if top else np.inf
    paid = problem.posterior.paid.reshape(*problem.posterior.reward.shape, -1)
    paid = np.where(possible if paid.shape[2] > 1 else True, paid, worst)
    extreme: FloatArray = paid.max(axis=(0, 2)) if top else paid.min(axis=(0, 2))
    return extreme
