"""Posteriors that doubt what was rarely tried: values of policies on models drawn from them.

Of every pair the outcomes that were seen – next state and reward – have the chances `Dirichlet(times seen)`, with one
more outcome of weight `doubt`: the worst (`planning.safe.frequencies`). Without doubt this is the Bayesian bootstrap
of the log (Rubin 1981); with it, a pair of `n` visits is expected to lead to the worst with the chance
`doubt/(n + doubt)`. What was never tried leads there for sure. Differences of policies on the same models are paired.
"""

from dataclasses import dataclass

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.planning.safe.frequencies import Frequencies


@dataclass(frozen=True, eq=False)
class Doubtful:
    """Models drawn from a posterior.

    Attributes:
      data: the log.
      seen: `[m,i]`, chances of the outcomes of `data`, sorted by pair; `lost`: `[m,s,a]`, chances of the worst.
    """

    data: Frequencies
    order: IntArray
    seen: FloatArray
    lost: FloatArray

    @classmethod
    def drawn(cls, data: Frequencies, doubt: float, n: int, rng: np.random.Generator) -> "Doubtful":
        """`n` models of a posterior."""
        S, A = data.behaviour.shape
        pair = data.state * A + data.action
        order = np.argsort(pair, kind="stable")
        weight = rng.standard_gamma(np.broadcast_to(data.times[order], (n, len(order))))
        met, first = np.unique(pair[order], return_index=True)
        worst = rng.standard_gamma(doubt, (n, len(met))) if doubt > 0.0 else np.zeros((n, len(met)))
        total = np.add.reduceat(weight, first, axis=1) + worst
        lost = np.ones((n, S * A))
        lost[:, met] = worst / total
        often = np.diff(np.append(first, len(order)))
        seen = weight / np.repeat(total, often, axis=1)
        lost = lost.reshape(n, S, A) * ~data.terminal[:, None]
        return cls(data, order, seen, lost)

    def values(self, chances: FloatArray, start: FloatArray, discount: float, horizon: int | None) -> FloatArray:
        """Values `[m]` of a policy `[s,a]` or `[t,s,a]` from a start distribution `[s]`."""
        if chances.ndim == 3 or horizon is not None:
            stages = chances if chances.ndim == 3 else np.broadcast_to(chances, (horizon or 1, *chances.shape))
            return self._staged(stages, start, discount)
        data, S = self.data, self.data.n_states
        s, a, t = (x[self.order] for x in (data.state, data.action, data.next_state))
        taken = self.seen * chances[s, a]
        lost = (self.lost * chances).sum(axis=2)
        paid = lost * data.least
        key = s * S + t
        by_key = np.argsort(key, kind="stable")
        entries, first = np.unique(key[by_key], return_index=True)
        chain = np.zeros((len(taken), S * S))
        chain[:, entries] = np.add.reduceat(taken[:, by_key], first, axis=1)
        acted, begin = np.unique(s, return_index=True)  # pairs, and so states, are in order
        paid[:, acted] += np.add.reduceat(taken * data.reward[self.order], begin, axis=1)
        paid += discount * lost * data.least / (1.0 - discount)  # what the worst pays from then on
        paid[:, data.terminal] = 0.0
        moves = np.eye(S) - discount * chain.reshape(-1, S, S)
        return np.asarray(np.linalg.solve(moves, paid[..., None])[..., 0] @ start)

    def _staged(self, stages: FloatArray, start: FloatArray, discount: float) -> FloatArray:
        data = self.data
        n, S, A = self.lost.shape
        s, a, t, r = (x[self.order] for x in (data.state, data.action, data.next_state, data.reward))
        met, first = np.unique(s * A + a, return_index=True)
        values, worst = np.zeros((n, S)), 0.0
        for now in stages[::-1]:
            q = self.lost * (data.least + discount * worst)
            q.reshape(n, -1)[:, met] += np.add.reduceat(self.seen * (r + discount * values[:, t]), first, axis=1)
            values = np.where(data.terminal, 0.0, (now * q).sum(axis=2))
            worst = data.least + discount * worst
        return np.asarray(values @ start)
