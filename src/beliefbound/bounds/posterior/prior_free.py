"""What a policy is worth at least, whatever the process is: no prior, every policy at once.

*Rows.* Let a pair have been tried `n` times, outcome `i` – next state and reward – seen `N_i` times. For any
distribution Q over rows that is fixed beforehand, `∫ Π_j q(x_j) dQ(q) / Π_j p(x_j)` is a martingale that begins at 1
under the true row `p`. So at whatever time one stops looking, by Markov's inequality, with probability `1 − δ`,

    Σ_i N_i log p_i ≥ log ∫ Π_i q_i^{N_i} dQ(q) − log(1/δ)

for as many tries as there were, even if their number depends on what was seen. Q is a bet, no belief: the statement
holds whatever Q is, and is the tighter the better the bet. It is that of rows with few successors, nobody knows which,
over `|S|` next states times the rewards that the log has.

*Value.* Every pair gets `δ = error/(|S||A| + 1)`, the starts of episodes the last one, so that all sets hold together
with probability `1 − error`. The least value of a policy over all processes in the sets is a robust evaluation, pair by
pair; of what was never tried, and of outcomes never seen, the worst is assumed. Since the sets do not know the policy,
the bound holds for every policy at once, also for one that was chosen after looking.

*Assumed*: steps from the same state under the same action are independent draws of one row (the process is Markov and
does not change); rewards take no other values than the log shows; starts are independent draws; nothing else.

*The inner problem* `min_p Σ p_i v_i` subject to a set has the solution `p_i ∝ N_i/(v_i − ν)` on what was seen, with
`ν ≤ v_min`, and the rest, where `ν` would pass it, on the worst outcome (Filippi, Cappé & Garivier 2010): a bisection.
"""

import math
from typing import NamedTuple

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.planning.safe.frequencies import Frequencies

_HALVINGS, _ROUNDS = 60, 100
_CLOSE = 1e-9
_NOTHING = 1e-3


class PriorFree(NamedTuple):
    """A bound without a prior.

    Attributes:
      value: what the policy is worth at least.
      least: the least possible value; `vacuous`: whether the bound says no more, up to a thousandth of a step's reward.
      confidence: with which it holds, for every policy at once.
    """

    value: float
    least: float
    confidence: float
    vacuous: bool


class Sets(NamedTuple):
    """Rows of counts `[k]` in one list, and how far from their frequencies the chances may be.

    Attributes:
      first: `[r]`, where each row begins in `times` `[i]`; `reach`: `[r]`, `KL(frequencies ‖ chances)` at most.
    """

    first: IntArray
    times: FloatArray
    reach: FloatArray

    @classmethod
    def of(cls, first: IntArray, times: FloatArray, outcomes: int, error: float) -> "Sets":
        """Sets of rows with `outcomes` possible outcomes, each with an error."""
        from scipy.special import gammaln, xlogy

        n = np.add.reduceat(times, first)
        seen = np.diff(np.append(first, len(times)))
        likely = np.add.reduceat(xlogy(times, times), first) - xlogy(n, n)
        # The bet: k successors with P(k) ∝ 2^-k, which of them equally likely, Dirichlet(1/2) on them.
        k = np.arange(1, max(int(seen.max()), min(outcomes, 64)) + 1)
        sizes = -k * math.log(2.0)
        sizes = sizes - np.logaddexp.reduce(sizes)
        with np.errstate(invalid="ignore"):
            ways = gammaln(k + 1.0) - gammaln(np.maximum(k - seen[:, None], 0) + 1.0)
            ways += gammaln(outcomes - seen + 1.0)[:, None] - gammaln(outcomes + 1.0)
        logs = sizes + ways + gammaln(0.5 * k) - gammaln(0.5 * k + n[:, None])
        logs = np.where((k >= seen[:, None]) & (k <= outcomes), logs, -np.inf)
        bet = np.logaddexp.reduce(logs, axis=1) + np.add.reduceat(gammaln(0.5 + times) - gammaln(0.5), first)
        return cls(first, times, np.maximum(0.0, (likely - bet + math.log(1.0 / error)) / n))

    def worst_chances(self, values: FloatArray, worst: float) -> tuple[FloatArray, FloatArray]:
        """The chances `[i]` of outcomes with values `[i]` whose mean is least, and what is left `[r]` for outcomes that
        were not seen; these are worth `worst`, no value less."""
        first, often = self.first, np.diff(np.append(self.first, len(self.times)))
        share = self.times / np.repeat(np.add.reduceat(self.times, first), often)
        above = values - worst
        top = np.maximum.reduceat(above, first)
        ratio = np.maximum(0.0, above) / np.repeat(np.maximum(top, 1e-300), often)  # in [0, 1]
        # p_i ∝ share_i/(ratio_i + ν): its distance Σ share log(ratio + ν) + log Σ share/(ratio + ν) falls as ν rises.
        low, high = np.full(len(first), -60.0), np.full(len(first), 40.0)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            near = ratio + np.repeat(np.exp(middle), often)
            far = np.add.reduceat(share * np.log(near), first) + np.log(np.add.reduceat(share / near, first))
            low, high = np.where(far <= self.reach, low, middle), np.where(far <= self.reach, middle, high)
        near = ratio + np.repeat(np.exp(low), often)  # a little beyond the reach, where the mean is not above the least
        tilted = share / near
        inside = tilted / np.repeat(np.add.reduceat(tilted, first), often)
        # Where ν = 0 is within reach, the rest of the distance goes into what was not seen.
        solid = np.minimum.reduceat(ratio, first) > 0.0
        safe = np.where(np.repeat(solid, often), ratio, 1.0)
        tilted = share / safe
        total = np.add.reduceat(tilted, first)
        edge = np.add.reduceat(share * np.log(safe), first) + np.log(total)
        free = solid & (edge <= self.reach)
        kept = np.where(free, np.exp(np.minimum(0.0, edge - self.reach)), 1.0)
        outside = tilted / np.repeat(total, often) * np.repeat(kept, often)
        chances = np.where(np.repeat(free, often), outside, inside)
        flat = top <= 0.0  # nothing is better than the worst
        return np.where(np.repeat(flat, often), 0.0, chances), np.where(flat, 1.0, 1.0 - kept)

    def least_mean(self, values: FloatArray, worst: float) -> FloatArray:
        """The least mean `[r]`.

        >>> rows = Sets(np.array([0]), np.array([3.0, 1.0]), np.array([0.0]))
        >>> rows.least_mean(np.array([2.0, 1.0]), 0.0).round(6).tolist()
        [1.75]
        """
        chances, lost = self.worst_chances(values, worst)
        return np.asarray(np.add.reduceat(chances * values, self.first) + lost * worst)


def prior_free(
    data: Frequencies,
    starts: IntArray,
    chances: FloatArray,
    *,
    discount: float,
    horizon: int | None,
    error: float,
    given: FloatArray | None = None,
) -> PriorFree:
    """A bound on the value of a policy `[s,a]` or `[t,s,a]`.

    Args:
      starts: `[s]`, how many episodes begin in each state.
      given: `[s]`, the start distribution where it is known.
      error: of the statement.
    """
    S, A = data.behaviour.shape
    each = error / (S * A + 1.0)
    pair = data.state * A + data.action
    order = np.argsort(pair, kind="stable")
    met, first = np.unique(pair[order], return_index=True)
    sets = Sets.of(first, data.times[order], S * len(np.unique(data.reward)), each)
    s, a, t = (x[order] for x in (data.state, data.action, data.next_state))
    r = data.reward[order]

    def backed(values: FloatArray, worst: float) -> FloatArray:
        """The least `[s,a]` of a step and then values `[s]`, the worst being worth `worst` then."""
        q = np.full(S * A, data.least + discount * worst)
        q[met] = sets.least_mean(r + discount * values[t], data.least + discount * worst)
        return np.where(data.terminal[:, None], 0.0, q.reshape(S, A))

    if chances.ndim == 3 or horizon is not None:
        stages = chances if chances.ndim == 3 else np.broadcast_to(chances, (horizon or 1, S, A))
        values, worst = np.zeros(S), 0.0
        for now in stages[::-1]:
            values, worst = (now * backed(values, worst)).sum(axis=1), data.least + discount * worst
    else:
        worst = data.least / (1.0 - discount)
        values = np.where(data.terminal, 0.0, worst)
        for _ in range(_ROUNDS):  # the worst rows for these values, then the values of these rows
            p, lost = sets.worst_chances(r + discount * values[t], worst)
            gone = np.ones(S * A)
            gone[met] = lost
            paid = (chances * gone.reshape(S, A)).sum(axis=1) * worst
            np.add.at(paid, s, chances[s, a] * p * r)
            chain = np.zeros((S, S))
            np.add.at(chain, (s, t), chances[s, a] * p)
            paid[data.terminal], chain[data.terminal] = 0.0, 0.0
            after = np.linalg.solve(np.eye(S) - discount * chain, paid)
            gap = float(np.abs(after - values).max())
            values = after
            if gap <= _CLOSE * max(1.0, abs(worst), float(np.abs(values).max())):
                break
        # Values that fall by at most e in a backup are within e/(1 − γ) of values that do not fall: of the least.
        fall = float(np.maximum(0.0, values - (chances * backed(values, worst)).sum(axis=1)).max())
        values = values - np.where(data.terminal, 0.0, fall / (1.0 - discount))
    least = min(0.0, worst) if data.terminal.any() else worst
    if given is not None:
        bound = float(given @ values)
    else:
        began = np.flatnonzero(starts)
        row = Sets.of(np.zeros(1, dtype=np.int64), starts[began].astype(np.float64), S, each)
        bound = float(row.least_mean(values[began], float(values.min()))[0])
    nothing = bound <= least + _NOTHING * float(np.abs(data.reward).max())
    return PriorFree(max(least, bound), least, 1.0 - error, nothing)
