"""Importance-weighted returns: what a policy would have earned in episodes of somebody else.

Behaviour took the action `a_t` of a step with the chance `p_t`, whatever it knew; the policy has `π_t(a_t|s_t)`. With
`ρ_t = Π_{k≤t} π_k(a_k|s_k)/p_k` the *per-decision* return (Precup, Sutton & Singh 2000)

    Σ_t γ^t ρ_t r_t

has the policy's value as its mean, whatever the process is, Markov or not.

**Cut off.** Rewards are counted from the least one, `m` (0 if that is less and episodes end): every term is then at
least 0, being over pays `−m` a step for ever, and the rest of an episode that was cut off – by the end of the log, by a
truncation – counts 0: it is taken to pay the least. So the mean is not above the value, if where an episode is cut off
does not depend on what would have come. The same from above, for what behaviour itself earned.
"""

from dataclasses import dataclass

import numpy as np

from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.logs.log import Episodes

_LARGE = 600.0  # the logarithm of a weight at most: less is on the safe side


@dataclass(frozen=True, eq=False)
class Weighted:
    """Episodes, ready to be weighed.

    Attributes:
      episodes: the steps `[i]`; `propensity`: `[i]`, with which chance each action was taken.
      time: `[i]`, which step of its episode it is, below the horizon.
      above: `[i]`, what a step adds to the return if rewards are counted from the least; `below`: what it adds to what
        is missing to the most.
      least, most: of the value, if every step paid the least, or the most.
      cut: how many episodes are cut off.
    """

    episodes: Episodes
    propensity: FloatArray
    time: IntArray
    above: FloatArray
    below: FloatArray
    least: float
    most: float
    cut: int

    @classmethod
    def of(
        cls,
        episodes: Episodes,
        propensity: FloatArray,
        rewards: tuple[float, float],
        terminal: BoolArray,
        *,
        discount: float,
        horizon: int | None,
    ) -> "Weighted":
        """Episodes under rewards between two numbers and states `[s]` where nothing happens any more."""
        first, lengths = episodes.first, episodes.lengths
        time = np.arange(len(episodes.state)) - np.repeat(first, lengths)
        gone = within(terminal[episodes.state].astype(np.int64), first, lengths) > 0
        counts = ~gone if horizon is None else ~gone & (time < horizon)
        ends = counts & terminal[episodes.next_state]
        low, high = (min(rewards[0], 0.0), max(rewards[1], 0.0)) if terminal.any() else rewards
        now, later = discount**time, left(time + 1, discount, horizon)
        above = np.where(counts, now * (episodes.reward - low), 0.0) - np.where(ends, low * later, 0.0)
        below = np.where(counts, now * (high - episodes.reward), 0.0) + np.where(ends, high * later, 0.0)
        done = ends if horizon is None else ends | (time == horizon - 1)
        whole = float(left(np.zeros(1, dtype=np.int64), discount, horizon)[0])
        cut = int((np.add.reduceat(done.astype(np.int64), first) == 0).sum()) if len(first) else 0
        time = time if horizon is None else np.minimum(time, horizon - 1)
        return cls(episodes, propensity, time, above, below, low * whole, high * whole, cut)

    def returns(self, chances: FloatArray) -> FloatArray:
        """Weighted returns `[e]` of a policy `[s,a]` or `[t,s,a]`, above `least`; each is at least 0."""
        e = self.episodes
        own = chances[e.state, e.action] if chances.ndim == 2 else chances[self.time, e.state, e.action]
        never = own <= 0.0
        logs = np.log(np.where(never, 1.0, own) / self.propensity)
        weight = np.exp(np.minimum(within(logs, e.first, e.lengths), _LARGE))
        weight[within(never.astype(np.int64), e.first, e.lengths) > 0] = 0.0
        return np.asarray(np.add.reduceat(weight * self.above, e.first))

    def missing(self) -> FloatArray:
        """What each episode's own return is below `most`, `[e]`, at least 0 and not more than it is."""
        return np.asarray(np.add.reduceat(self.below, self.episodes.first))

    def logged(self) -> FloatArray:
        """What each episode paid, discounted, `[e]`, the rest of those that were cut off at the least."""
        return np.asarray(self.least + np.add.reduceat(self.above, self.episodes.first))


def within(values: FloatArray | IntArray, first: IntArray, lengths: IntArray) -> FloatArray:
    """Sums `[i]` within an episode, up to and with the step.

    >>> within(np.array([1, 2, 4, 8]), np.array([0, 2]), np.array([2, 2])).tolist()
    [1, 3, 4, 12]
    """
    total = np.cumsum(values)
    return np.asarray(total - np.repeat(total[first] - values[first], lengths))


def left(time: IntArray, discount: float, horizon: int | None) -> FloatArray:
    """`Σ_{k≥t} γ^k` of the steps from each time on, up to the horizon.

    >>> left(np.array([0, 1, 3]), 0.5, 3).tolist(), left(np.array([0, 1]), 0.5, None).tolist()
    ([1.75, 0.75, 0.0], [2.0, 1.0])
    """
    if discount == 1.0:
        return np.maximum(0.0, (horizon or 0) - time.astype(np.float64))
    rest = 0.0 if horizon is None else discount**horizon
    return np.asarray(np.maximum(0.0, discount**time - rest) / (1.0 - discount))
