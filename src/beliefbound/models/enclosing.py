"""Values of policies for ever, `(I − γP)V = r`, and how far what was computed can be from them.

*A residual proves.* With `ρ = r + γPx − x` for any `x`, `V − x = (I − γP)⁻¹ρ`, so `|V − x| ≤ ε` wherever
`ε ≥ |ρ| + γPε`. Computed, `ρ` is off by at most `κ(|r| + γP|x| + |x|)`, with `κ` the longest sum times `2⁻⁵³`: that is
added to `|ρ|`. Rounding is thus measured at each state by the values that meet there. A state worth −10⁹ has large
residuals and those around it small ones; where one number for all states would drown the small ones, `ε` is solved for
like a value, per state, which needs few digits: what it misses itself is bounded by one number in turn.

*Refinement.* A solver's own error is small beside the *largest* value only. `x ← x + solve(ρ)` makes it small beside
each state's own.

All of this holds for the numbers as they are stored, and for rows that sum to exactly one: these differ by rounding.
"""

from collections.abc import Callable

import numpy as np

from beliefbound.base.validation import FloatArray

UNIT = 2.0**-53  # a rounded operation is off by at most this share
_STORED = 72  # in units: rows sum to one that closely, and a few operations beside sums
_REFINED = 3  # times, at most
_ENOUGH = 1e-9  # of the values that meet at any state: one error for all states may be this large
_SPARE = 1e-3  # of an error that is solved for: what its own rounding may take

Linear = Callable[[FloatArray], FloatArray]


def rounding_of(terms: int) -> float:
    """What rounding takes of a sum of so many products, as a share of the sum of their sizes."""
    return (terms + _STORED) * UNIT


def left_after(discount: float) -> float:
    """`1 − γ`, or a little less: where rows sum to more than one by rounding. 0 where nothing can be proven."""
    return max(0.0, 1.0 - discount * (1.0 + _STORED * UNIT) - UNIT)


def divided(off: FloatArray, left: float) -> FloatArray:
    """`off / left`, infinite where nothing is left."""
    return np.asarray(off / left if left > 0.0 else np.full_like(off, np.inf))


def tail(change: FloatArray, discount: float, *, up: bool) -> FloatArray:
    """`Σ_{k≥1} γ^k` of a change, for ever, rounded up or down."""
    rows = 1.0 + np.where((change > 0.0) == up, 1.0, -1.0) * _STORED * UNIT
    left = np.maximum(1.0 - discount * rows - UNIT * np.sign(rows - 1.0), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(change == 0.0, 0.0, discount * rows * change / left))


def swept(values: FloatArray, before: FloatArray, discount: float, rounding: float, *, up: bool) -> FloatArray:
    """MacQueen's bound `[m,s]` of a fixed point, rounded up or down: `values [m,s]` are a sweep from `before`."""
    off = 3.0 * rounding * np.maximum(np.abs(values), np.abs(before)).max(axis=1, keepdims=True)
    change = values - before
    if up:
        return np.asarray(values + off + tail(change.max(axis=1, keepdims=True) + 2.0 * off, discount, up=True))
    return np.asarray(values - off + tail(change.min(axis=1, keepdims=True) - 2.0 * off, discount, up=False))


def enough(size: FloatArray, rewards: FloatArray) -> FloatArray:
    """`[m]`: an error that may be the same for all states, whose values are of the size `[m,s]`: small beside all of
    them, and where some are nothing, beside the rewards `[m,…]`."""
    least: FloatArray = np.where(size > 0.0, size, np.inf).min(axis=1)
    if not size.all():
        paid = np.abs(rewards).reshape(len(size), -1)
        least = np.minimum(least, np.where(paid > 0.0, paid, np.inf).min(axis=1))
    return _ENOUGH * least


def enclosed(
    solve: Linear,
    ahead: Linear,
    rewards: FloatArray,
    sizes: FloatArray,
    close: float,
    discount: float,
    rounding: float,
) -> tuple[FloatArray, FloatArray]:
    """`(values [m,s], error [m,s])`: the true values are no further away than that. Values are refined until residuals
    are `close` to none as a share of what meets at a state, or nothing helps.

    `solve(r)` is about `(I − γP)⁻¹r`, `ahead(x)` is `γPx`; `rounding` bounds that of the latter and of `rewards`, which
    are sums of terms of the size `sizes`, as `rounding_of` does.
    """
    values, residual, size = _refined(solve, ahead, rewards, sizes, close)
    off = np.abs(residual) + rounding * size
    return values, excess(solve, ahead, off, enough(size, sizes), discount, rounding)


def lowered(values: FloatArray, error: FloatArray) -> FloatArray:
    """Values that can be off by so much, and no more than the true ones."""
    return np.asarray(values - error - 4.0 * UNIT * (np.abs(values) + error))


def excess(
    solve: Linear, ahead: Linear, off: FloatArray, small: FloatArray, discount: float, rounding: float
) -> FloatArray:
    """`ε[m,s] ≥ off + γPε`: one number for a model where that is no more than `small[m]`, else solved for."""
    left = left_after(discount)
    alike = divided(off.max(axis=1), left)
    error = np.repeat(alike[:, None], off.shape[1], axis=1)
    if left > 0.0 and (alike > small).any():
        own = np.maximum((1.0 + _SPARE) * solve(off), off)
        later = ahead(own)
        missing = (off + later - own + 4.0 * rounding * (own + later)).max(axis=1, keepdims=True)
        own += np.maximum(missing, 0.0) / left
        error = np.where(np.isfinite(own), np.minimum(error, own), error)
    return error


def _refined(
    solve: Linear, ahead: Linear, rewards: FloatArray, sizes: FloatArray, close: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`(values, residual, size)`."""
    values = solve(rewards)
    best = np.inf
    for k in range(_REFINED + 1):
        later, absolute = ahead(values), np.abs(values)
        alike = values.min() >= 0.0 or values.max() <= 0.0
        size = sizes + (np.abs(later) if alike else ahead(absolute)) + absolute
        residual = rewards + later - values
        off = np.abs(residual) > close * size
        if k == _REFINED or not off.any():
            break
        share = float((np.abs(residual)[off] / size[off]).max())
        if not share < best:
            break
        best = share
        values = values + solve(residual)
    return values, residual, size
