"""What measuring one (state, action) is worth under a product-Dirichlet belief.

Rows are independent, so knowing one leaves the others as uncertain as before. For each of many simulated measurements:
draw the truth of the pair; replace the pair's row in fresh models by what is believed after measuring it (the truth
itself when the pair becomes known, draws from the posterior after `k` tries); on most of these models look for a policy
of the pool that beats the plan made without measuring by more than a standard error, else keep that plan; value the
choice, relative to that plan, on the others.

Choosing and valuing on different models keeps the mean honest: it is the rise that planning on so many models after the
measurement would bring, never above the best plan's. Measurements are independent, so Student's interval applies
(asymptotic). Every pair sees the same fresh models elsewhere.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.beliefs import BetaRewards, DirichletBelief, KnownRewards
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.finite.problem import stage_values
from beliefbound.bounds.statistics.intervals import margin
from beliefbound.errors import ParameterError
from beliefbound.models import Dense, ModelSet
from beliefbound.policy import TablePolicy
from beliefbound.validation import BoolArray, FloatArray

_CHOOSE, _VALUE = 96, 32  # models a plan is chosen on after a measurement, and models that value it


class Gains(NamedTuple):
    """`[s,a]`: mean rise and the ends of its interval."""

    gain: FloatArray
    low: FloatArray
    high: FloatArray


def dirichlet_gains(
    belief: DirichletBelief,
    pool: list[TablePolicy],
    now: int,
    start: FloatArray,
    *,
    discount: float,
    horizon: int | None,
    tries: int | None,
    draws: int,
    confidence: float,
    rng: np.random.Generator,
) -> Gains:
    """The rise in value from measuring each pair, over `draws` measurements; `pool[now]` is the plan without."""
    if tries is not None and not isinstance(belief.rewards, KnownRewards | BetaRewards):
        raise ParameterError("tries of Normal rewards cannot be simulated here; pass tries=None for a pair made known")
    n_states, n_actions = belief.n_states, belief.n_actions
    per_draw = _CHOOSE + _VALUE
    fresh = belief.sample(draws * per_draw, rng).models
    base = np.stack([stage_values(policy, fresh, discount, horizon, 0)[0] @ start for policy in pool])
    takes = _takes(pool, n_states, n_actions)
    shape = (n_states, n_actions)
    gain, low, high = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    each = 1.0 - (1.0 - confidence) / (2 * n_states * n_actions)
    for s in range(n_states):
        for a in range(n_actions):
            changed = _measured(belief, fresh, s, a, tries, draws, rng)
            values = base.copy()
            for k in np.flatnonzero(takes[:, s, a]):
                values[k] = stage_values(pool[k], changed, discount, horizon, 0)[0] @ start
            rise = (values - values[now]).reshape(len(pool), draws, per_draw)
            looked = rise[:, :, :_CHOOSE]
            clear = looked.mean(axis=2) - looked.std(axis=2) / np.sqrt(_CHOOSE)  # zero for the present plan
            chosen = np.where(clear.max(axis=0) > 0.0, clear.argmax(axis=0), now)
            x = rise[chosen, np.arange(draws), _CHOOSE:].mean(axis=1)
            gain[s, a] = x.mean()
            reach = margin(x, confidence=each, interval="t")
            low[s, a], high[s, a] = gain[s, a] - reach, gain[s, a] + reach
    return Gains(gain, low, high)


def _takes(pool: list[TablePolicy], n_states: int, n_actions: int) -> BoolArray:
    """`[policy,s,a]`: whether a policy ever takes the action there, so that its value depends on the pair."""
    chances = [policy.chances(n_actions).reshape(-1, n_states, n_actions) for policy in pool]
    return np.stack([(x > 0.0).any(axis=0) for x in chances])


def _measured(
    belief: DirichletBelief,
    fresh: ModelSet,
    s: int,
    a: int,
    tries: int | None,
    draws: int,
    rng: np.random.Generator,
) -> ModelSet:
    """The fresh models with the pair as believed after measuring it; the first model of each draw is the truth."""
    p, r = np.array(fresh.dense()), np.array(fresh.rewards)
    rows = p.reshape(draws, -1, *p.shape[1:])[:, :, s, a]
    paid = r.reshape(draws, -1, *r.shape[1:])[:, :, s, a]
    if tries is None:
        rows[:] = rows[:, :1]
        paid[:] = paid[:, :1]
        return ModelSet(Dense(p), r, fresh.available)
    for j in range(draws):
        truth = rows[j, 0] / rows[j, 0].sum()
        arrivals = rng.choice(len(truth), size=tries, p=truth)
        seen = None
        if isinstance(belief.rewards, BetaRewards):
            bottom, top = belief.rewards.range
            wins = rng.random(tries) < (paid[j, 0] - bottom) / (top - bottom)
            seen = np.where(wins, top, bottom)
        after = belief.update(np.full(tries, s), np.full(tries, a), seen, arrivals).sample(rows.shape[1], rng)
        rows[j], paid[j] = _pair(after, s, a)
    return ModelSet(Dense(p), r, fresh.available)


def _pair(sample: FiniteBelief, s: int, a: int) -> tuple[FloatArray, FloatArray]:
    return sample.transitions[:, s, a], sample.rewards[:, s, a]
