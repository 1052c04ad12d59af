"""What measuring one (state, action) is worth under a belief that is not finite.

Where rows are independent, knowing one leaves the others as uncertain as before; pairs that share a row are learnt
together. Of a belief that says nothing of the kind all rows are drawn again after tries, and what a row made known
would tell is left open.

For each of many simulated measurements: draw the truth of the pair; replace the pair's row in fresh models by what is
believed after measuring it (the truth itself when the pair becomes known, draws from the posterior after `k`
tries); on most of these models look for a policy of the pool that beats the plan made without measuring by more than a
standard error, else keep that plan; value the choice, relative to that plan, on the others.

Choosing and valuing on different models keeps the mean honest: it is what planning on so many models after the
measurement would earn, never above what the best policy would. What counts is how far that is below each model's own
best on the same models: `E max` is the same whatever is measured, and the two differ by less than either varies.
Measurements are independent, so there is a betting interval on the range of values, or Student's (asymptotic) where
rewards have none. Every pair sees the same fresh models elsewhere.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.beliefs import Belief, FiniteBelief
from beliefbound.beliefs.capabilities import conditioned, learnt_together, terminal
from beliefbound.bounds.finite.problem import stage_values
from beliefbound.bounds.statistics.intervals import Interval, mean_bound
from beliefbound.models import Dense, ModelSet
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import Task
from beliefbound.policy import TablePolicy

_CHOOSE, _VALUE = 48, 8  # models a plan is chosen on after a measurement, and models that value it
_MEASUREMENTS, _LEAST = 800, 40  # simulated, where models are small; at least
_BYTES = 128 << 20  # of all models


def measurements(belief: Belief) -> int:
    """How many are simulated: as many as fit, within reason.

    >>> from beliefbound.beliefs import DirichletBelief
    >>> measurements(DirichletBelief(5, 2)), measurements(DirichletBelief(100, 2))
    (800, 40)
    """
    each = 8 * (_CHOOSE + _VALUE) * belief.n_states**2 * belief.n_actions
    return int(np.clip(_BYTES // each, _LEAST, _MEASUREMENTS))


class Gains(NamedTuple):
    """`[s,a]`: the mean rise over the plan without, and the most that is missing after measuring to `E max`."""

    gain: FloatArray
    missing: FloatArray


def dirichlet_gains(
    task: Task,
    pool: list[TablePolicy],
    now: int,
    *,
    tries: int | None,
    draws: int,
    confidence: float,
    rng: np.random.Generator,
) -> Gains:
    """What is missing after measuring each pair, over `draws` measurements; `pool[now]` is the plan without. All ends
    hold together with the `confidence`."""
    belief = task.belief
    per_draw = _CHOOSE + _VALUE
    fresh = belief.sample(draws * per_draw, rng)
    if tries is not None and not fresh.signal.finite:
        raise ParameterError("tries of Normal rewards cannot be simulated here; pass tries=None for a pair made known")

    def values_on(policy: TablePolicy, models: ModelSet) -> FloatArray:
        values: FloatArray = stage_values(policy, models, task.discount, task.horizon, 0)[0] @ task.start
        return values

    base = np.stack([values_on(policy, fresh.models) for policy in pool])
    takes = _takes(pool, belief.n_states, belief.n_actions)
    shape = belief.available.shape
    gain, missing = np.zeros(shape), np.zeros(shape)
    valuing = (np.arange(draws)[:, None] * per_draw + np.arange(_CHOOSE, per_draw)).ravel()
    each = 1.0 - (1.0 - confidence) / (belief.n_states * belief.n_actions)
    rewards, lasts = belief.reward_range, task.effective_horizon
    range_ = None if rewards is None else (0.0, (rewards[1] - rewards[0]) * lasts)
    interval: Interval = "t" if range_ is None else "betting"
    for s, a in np.argwhere(open_pairs(belief)):
        together = learnt_together(belief, int(s), int(a))
        if together is None and tries is None:  # nobody knows what else a known row would tell
            missing[s, a] = np.inf
            continue
        changed = _measured(belief, fresh, int(s), int(a), together, tries, draws, rng)
        values = base.copy()
        for k in range(len(pool)) if together is None else _touched(takes, together):
            values[k] = values_on(pool[k], changed)
        rise = (values - values[now]).reshape(len(pool), draws, per_draw)
        looked = rise[:, :, :_CHOOSE]
        clear = looked.mean(axis=2) - looked.std(axis=2) / np.sqrt(_CHOOSE)  # zero for the present plan
        chosen = np.where(clear.max(axis=0) > 0.0, clear.argmax(axis=0), now)
        gain[s, a] = rise[chosen, np.arange(draws), _CHOOSE:].mean()
        earned = values.reshape(len(pool), draws, per_draw)[chosen, np.arange(draws), _CHOOSE:]
        solved = optimal_values(changed.select(valuing), discount=task.discount, horizon=task.horizon)
        lost = ((solved.above @ task.start).reshape(draws, _VALUE) - earned).mean(axis=1)
        lost = np.maximum(lost, 0.0) if range_ is None else np.clip(lost, *range_)
        missing[s, a] = mean_bound(lost, "upper", confidence=each, range_=range_, interval=interval)
    return Gains(gain, missing)


def open_pairs(belief: Belief) -> BoolArray:
    """Pairs `[s,a]` about which there is something to measure: actions that are offered where nothing has ended."""
    return np.asarray(belief.available & ~terminal(belief)[:, None])


def _touched(takes: BoolArray, together: IntArray) -> IntArray:
    """Policies whose value depends on some of the pairs."""
    return np.flatnonzero(takes[:, together[:, 0], together[:, 1]].any(axis=1))


def _takes(pool: list[TablePolicy], n_states: int, n_actions: int) -> BoolArray:
    """`[policy,s,a]`: whether a policy ever takes the action there, so that its value depends on the pair."""
    chances = [policy.chances(n_actions).reshape(-1, n_states, n_actions) for policy in pool]
    return np.stack([(x > 0.0).any(axis=0) for x in chances])


def _measured(
    belief: Belief,
    fresh: FiniteBelief,
    s: int,
    a: int,
    together: IntArray | None,
    tries: int | None,
    draws: int,
    rng: np.random.Generator,
) -> ModelSet:
    """The fresh models with the pair, and those learnt `together` with it, as believed after measuring it; the first
    model of each draw is the truth."""
    p, r = np.array(fresh.models.dense()), np.array(fresh.rewards)
    rows, paid = p.reshape(draws, -1, *p.shape[1:]), r.reshape(draws, -1, *r.shape[1:])
    if tries is None:
        assert together is not None
        others = together[(together != (s, a)).any(axis=1)]
        if len(others) and fresh.signal.teaches and fresh.signal.on_arrival is not None:
            raise ParameterError("pairs share transitions and learn rewards on arrival: pass tries=... instead of None")
        paid[:, :, s, a] = paid[:, :1, s, a]
        for i, j in together:
            rows[:, :, i, j] = rows[:, :1, i, j]
            if not fresh.signal.teaches:  # then rewards depend on the model through its transitions alone
                paid[:, :, i, j] = paid[:, :1, i, j]
        return ModelSet(Dense(p), r, fresh.available)
    per_draw = rows.shape[1]
    for j in range(draws):
        truth = rows[j, 0, s, a] / rows[j, 0, s, a].sum()
        arrivals = rng.choice(len(truth), size=tries, p=truth)
        seen = _shown(fresh, j * per_draw, s, a, arrivals, rng) if fresh.signal.teaches else None
        what = "the worth of tries"
        after = conditioned(belief, np.full(tries, s), np.full(tries, a), seen, arrivals, what=what).sample(
            per_draw, rng
        )
        if together is None:  # anything may have been learnt
            rows[j], paid[j] = after.models.dense(), after.rewards
            continue
        for i, k in together:
            rows[j, :, i, k] = after.transitions[:, i, k]
            if (i, k) == (s, a) or after.signal.on_arrival is not None:
                paid[j, :, i, k] = after.rewards[:, i, k]
    return ModelSet(Dense(p), r, fresh.available)


def _shown(fresh: FiniteBelief, model: int, s: int, a: int, arrivals: IntArray, rng: np.random.Generator) -> FloatArray:
    """Rewards that one of the models shows on the way to `arrivals`."""
    own = fresh.signal.select(np.array([model]))
    shown = own.shown(s, a, arrivals)
    chances = np.stack([np.broadcast_to(chance[0], arrivals.shape) for _, chance in shown], axis=1)
    which = (rng.random(len(arrivals))[:, None] >= np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
    values = np.nan_to_num(np.array([value for value, _ in shown]))  # nothing to see in absorbing states
    seen: FloatArray = values[which]
    return seen
