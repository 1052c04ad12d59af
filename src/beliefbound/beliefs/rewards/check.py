"""`check_rewards`: what every reward model must do, ours or yours, as one function to call in a test.

1. `expand` makes it fit, `range` holds what it draws, `mean` is the mean of what it draws.
2. `columns`, where there are any, are counts whose mean is `mean`.
3. `update` is Bayes' rule, leaves the belief as it was, and counts `times`: a reward seen three times is three rewards,
   which is how logs are read.
4. `log_marginal_likelihood` is that of the same law: of several rewards it is that of the first, and of the others
   after an update.

`base.kits` has how means are compared.
"""

from typing import Any

import numpy as np

from beliefbound.base.kits import CLOSE, assert_mean
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.beliefs.rewards.belief import RewardSample
from beliefbound.beliefs.signals import Signal
from beliefbound.kernels.random import stream_from

NEEDED = ("learns", "range", "expand", "mean", "columns", "update", "sample", "log_marginal_likelihood")
_DRAWS, _STATES, _ACTIONS = 4000, 2, 3


def check_rewards(rewards: Any, *, draws: int = _DRAWS, seed: int = 1) -> None:
    """Raise `AssertionError`, saying what is wrong, unless the reward model keeps its word.

    Args:
      rewards: for any number of states and actions, or for 2 and 3.
      draws: models that what it expects is compared with.
      seed: of everything drawn.

    >>> from beliefbound import BetaRewards
    >>> check_rewards(BetaRewards(1.0, 2.0))
    """
    assert callable(getattr(rewards, "expand", None)), "it has no expand; see beliefbound.beliefs.rewards.RewardBelief"
    full = rewards.expand(_STATES, _ACTIONS)
    for name in NEEDED:
        assert hasattr(full, name), f"expand({_STATES}, {_ACTIONS}) gave {full!r}, which has no {name}"
    again = np.asarray(full.expand(_STATES, _ACTIONS).mean())
    assert np.array_equal(again, full.mean()), "expand changes what already has so many states and actions; leave it"
    pairs = (_STATES, _ACTIONS)
    drawn = _check_draws(full, draws, seed)
    mean = np.asarray(full.mean())
    assert mean.shape[:2] == pairs, f"mean() has shape {mean.shape}; expected {pairs}, or {(*pairs, _STATES)}"
    assert_mean(mean, drawn.rewards, "mean()")
    _check_columns(full, mean)
    values = _possible(drawn, seed)
    _check_updates(full, drawn, values)
    if full.learns:
        _check_likelihood(full, values)


def _check_draws(full: Any, draws: int, seed: int) -> RewardSample:
    drawn = full.sample(draws, stream_from(np.random.default_rng(seed)))
    again = full.sample(draws, stream_from(np.random.default_rng(seed)))
    assert isinstance(drawn, tuple) and len(drawn) == 2, f"sample gave {type(drawn).__name__}; give a RewardSample"  # noqa: PT018
    paid, signal = np.asarray(drawn[0]), drawn[1]
    shapes = [(draws, _STATES, _ACTIONS), (draws, _STATES, _ACTIONS, _STATES)]
    assert paid.shape in shapes, f"sample({draws}, stream) has rewards of shape {paid.shape}; expected {shapes[0]}"
    assert isinstance(signal, Signal), f"sample has the signal {signal!r}; give a beliefbound.beliefs.signals.Signal"
    assert np.array_equal(paid, again[0]), "equal streams drew different rewards; draw from the stream alone"
    if full.range is not None:
        low, high = full.range
        assert low <= high, f"range is ({low}, {high}); give the least first"
        slack = CLOSE * max(abs(low), abs(high), 1.0)
        assert low - slack <= paid.min() and paid.max() <= high + slack, (  # noqa: PT018
            f"rewards drawn lie between {paid.min()} and {paid.max()}; range says {low} to {high}"
        )
    return RewardSample(paid, signal)


def _check_columns(full: Any, mean: FloatArray) -> None:
    columns = full.columns()
    if columns is None:
        return
    counts, paid = np.asarray(columns.counts), np.asarray(columns.paid)
    k = len(counts)
    assert counts.shape == (k, _STATES, _ACTIONS), (
        f"columns().counts has shape {counts.shape}; expected [value, state, action]"
    )
    assert paid.shape in ((k, _STATES, _ACTIONS, 1), (k, _STATES, _ACTIONS, _STATES)), (
        f"columns().paid has shape {paid.shape}; expected {(k, _STATES, _ACTIONS, 1)}, or {_STATES} at the end"
    )
    assert (counts >= 0.0).all(), f"columns().counts has {counts.min()}; counts are not negative"
    share = (counts / counts.sum(axis=0))[..., None]
    own = (share * paid).sum(axis=0)
    own = own[..., 0] if mean.ndim == 2 else np.broadcast_to(own, mean.shape)
    assert np.allclose(own, mean), f"columns() has the mean {own.ravel()[0]:.6g}; mean() says {mean.ravel()[0]:.6g}"


def _possible(drawn: RewardSample, seed: int) -> list[float]:
    """Some rewards that pair (0, 0) may show on the way to state 0."""
    rng = np.random.default_rng((seed, 1))
    if not drawn.signal.finite:
        return [float(x) for x in rng.choice(drawn.rewards.reshape(len(drawn.rewards), -1)[:, 0], 3)]
    shown = [(v, np.broadcast_to(c, (len(drawn.rewards), 1))) for v, c in drawn.signal.shown(0, 0, np.array([0]))]
    values = [float(v) for v, c in shown if not np.isnan(v) and c.mean() > 1e-3]
    if not values:
        values = [float(drawn.rewards.reshape(len(drawn.rewards), -1)[0, 0])]
    return [values[0], values[0], values[-1]]


def _arrays(values: list[float]) -> tuple[IntArray, IntArray, FloatArray]:
    return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.int64), np.array(values)


def _check_updates(full: Any, drawn: RewardSample, values: list[float]) -> None:
    before = np.array(full.mean())
    s, a, r = _arrays(values)
    after = full.update(s, a, r)
    for name in NEEDED:
        assert hasattr(after, name), f"update gave {after!r}, which has no {name}; give another reward belief"
    assert np.array_equal(np.array(full.mean()), before), "update changed the reward belief itself; give another one"
    try:
        repeated = full.update(s, a, r, times=np.full(len(r), 3))
    except TypeError as fault:
        raise AssertionError(
            f"update(states, actions, rewards, times=...) raised {fault}; take times, how often each reward was seen: "
            "logs are read so"
        ) from fault
    thrice = full.update(*(np.repeat(x, 3) for x in (s, a, r)))
    assert np.allclose(repeated.mean(), thrice.mean()), (
        f"update with times=3 expects {np.ravel(repeated.mean())[0]:.6g}, the same three times over "
        f"{np.ravel(thrice.mean())[0]:.6g}; times is how often each reward was seen"
    )
    if not full.learns:
        assert np.allclose(after.mean(), before), "it says that it learns nothing, but update changes mean()"
    elif drawn.signal.finite:
        logs = np.zeros(len(drawn.rewards))
        with np.errstate(divide="ignore"):
            for value in values:
                logs = logs + np.log(drawn.signal.likelihood(0, 0, value, 0))
        weights = np.exp(logs - logs.max())
        what = f"after rewards {values} of state 0, action 0: mean()"
        assert_mean(after.mean(), drawn.rewards, what, weights=weights / weights.sum())


def _check_likelihood(full: Any, values: list[float]) -> None:
    first, rest = _arrays(values[:1]), _arrays(values[1:])
    whole = float(full.log_marginal_likelihood(*_arrays(values)))
    parts = float(full.log_marginal_likelihood(*first)) + float(full.update(*first).log_marginal_likelihood(*rest))
    assert np.isclose(whole, parts, atol=1e-6), (
        f"log_marginal_likelihood of rewards {values} is {whole:.6g}; of the first, and of the others after an update, "
        f"{parts:.6g}"
    )
