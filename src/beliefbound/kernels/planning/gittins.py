"""The Gittins index of a Bernoulli arm with a Beta(a, b) posterior, between two bounds.

The index is the λ at which playing the arm, with the option to retire for λ a step at any later time, is worth as much
as retiring at once. With values times `1 − γ`, `p = a/(a + b)`, and `W` the value of an arm that may still be played,

`W(a,b) = max(λ, C(a,b))`, `C(a,b) = (1 − γ) p + γ (p W(a+1,b) + (1 − p) W(a,b+1))`, index: `C(a,b) = λ`.

After N plays the true W lies between `max(λ, p)` and `E max(λ, θ)`, `θ ~ Beta`: retiring for good or never, and being
told θ. Backward induction from either gives a C from below or above, the zero of `C − λ` an index from below or above:
`lower ≤ index ≤ upper` whatever N is, and N is doubled until they are close. One induction costs N²/2 updates.
"""

import math

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT
from beliefbound.kernels.special import beta_cdf

FIRST_DEPTH = 16


@njit(**EXACT)
def told(layer, depth, level, a, b):
    """`layer[k] = E max(level, θ)` after k wins in `depth` plays, an upper bound on the value there.

    With F(x,y) = P(θ ≤ λ) for Beta(x, y) and `T = Γ(a+b) / (Γ(a+1) Γ(b)) λ^a (1−λ)^b`,
    `E max(λ, θ) = λ F(a,b) + p (1 − F(a+1,b))`, `F(a+1,b) = F(a,b) − T` and `F(a+1,b−1) = F(a,b) − T/(1−λ)`.
    """
    total = a + b + depth
    log_win, log_loss = math.log(level), math.log1p(-level)
    below = beta_cdf(level, a, b + depth)
    for k in range(depth + 1):
        wins, losses = a + k, b + depth - k
        step = math.exp(
            math.lgamma(total) - math.lgamma(wins + 1.0) - math.lgamma(losses) + wins * log_win + losses * log_loss
        )
        mean = wins / total
        value = level * below + mean * (1.0 - (below - step))
        layer[k] = max(value, level, mean)
        below = max(0.0, below - step / (1.0 - level))


@njit(**EXACT)
def continuation(layer, depth, level, a, b, discount):
    """C at the root, by backward induction from `layer`, which is overwritten."""
    rest = 1.0 - discount
    for n in range(depth - 1, -1, -1):
        share = 1.0 / (a + b + n)
        retire = level if n > 0 else -np.inf
        for k in range(n + 1):
            p = (a + k) * share
            layer[k] = max(retire, rest * p + discount * (p * layer[k + 1] + (1.0 - p) * layer[k]))
    return layer[0]


@njit(**EXACT)
def advantage(layer, depth, level, a, b, discount, above):
    """`C − λ` of truncation at `depth`, from above or below: convex and falling in λ, 0 at the index."""
    if above:
        told(layer, depth, level, a, b)
    else:
        for k in range(depth + 1):
            layer[k] = max(level, (a + k) / (a + b + depth))
    return continuation(layer, depth, level, a, b, discount) - level


@njit(**EXACT)
def bracket(layer, depth, a, b, discount, low, high, precision, above):
    """`(low, high)` around the index of truncation at `depth`, at most `precision` apart, from a wider pair.

    The zero of a chord lies above that of a convex function: it is the next `high`. Just below it may be the next
    `low`, which ends the search; else it is the next `high`, and the middle of what is left is tried as well.
    """
    at_low = advantage(layer, depth, low, a, b, discount, above)
    at_high = (1.0 - discount) * (a / (a + b) - high)  # below the true one, so the first chord's zero may be too low
    while high - low > precision:
        for attempt in range(3):
            if attempt == 0:
                level = low + (high - low) * at_low / (at_low - at_high) if at_low > 0.0 else low
                level = min(level + 0.25 * precision, high - 0.25 * precision)
            elif attempt == 1:
                level = high - 0.75 * precision
            else:
                level = 0.5 * (low + high)
            if not low < level < high:
                continue
            found = advantage(layer, depth, level, a, b, discount, above)
            if found >= 0.0:
                low, at_low = level, found
            else:
                high, at_high = level, found
    return low, high


@njit(**EXACT)
def index_bounds(a, b, discount, tolerance, layer):
    """Bounds `(lower, upper)` on the index, at most `tolerance` apart where `layer[N + 1]` allows the depth N."""
    lower, upper = a / (a + b), 1.0
    depth = min(FIRST_DEPTH, layer.size - 1)
    precision = 0.25 * tolerance
    while upper - lower > tolerance:
        lower = bracket(layer, depth, a, b, discount, lower, upper, precision, False)[0]
        upper = bracket(layer, depth, a, b, discount, lower, upper, precision, True)[1]
        if depth == layer.size - 1:
            break
        depth = min(2 * depth, layer.size - 1)
    return lower, upper
