"""A plain twin of the agent `visits`: indices as suprema, sums over all states, nothing kept but counts and values."""

import numpy as np

from support.agent_twins import Belief


class VisitsTwin(Belief):
    """Rewards learnt, or known where `paid[s,a,t]` says them; `concentration[s,a,t]` or one for all."""

    def __init__(self, environment, *, discount, sweeps=5, tolerance=0.01, concentration=None, paid=None):
        super().__init__(environment, concentration)
        self.discount, self.sweeps, self.tolerance, self.paid = discount, sweeps, tolerance, paid

    def reset(self, seed, cell=0, run=0):
        super().reset(seed, cell, run)
        if np.ndim(self.concentration):
            self.alpha = np.array(self.concentration)
        self.v = np.zeros(self.S)
        self.solve(1000, self.tolerance * (1 - self.discount))

    def index(self, stays, plays, leave, reward):
        """The largest share of what is earned in n plays, of what is not left after them."""
        q = (stays + np.arange(1000)) / (plays + np.arange(1000))
        weight = np.cumprod(np.append(1.0, self.discount * q))
        earned = np.cumsum(weight[:-1] * ((1 - q) * leave + q * reward))
        return (earned / (1 - weight[1:])).max()

    def arms(self, s):
        """`(x, A, R, ρ)` of each action that s offers, and their indices."""
        found, others = [], np.arange(self.S) != s
        for a in np.flatnonzero(self.available[s]):
            if self.paid is None:
                won, lost = self.successes[s, a], self.failures[s, a]
                r = np.full(self.S, won / (won + lost))
            else:
                r = (self.paid[s, a] - self.low) / (self.high - self.low)
            weights = self.alpha[s, a, others]
            leave = weights @ (r + self.discount * self.v)[others] / weights.sum() if weights.any() else 0.0
            found.append([self.alpha[s, a, s], self.alpha[s, a].sum(), leave, r[s]])
        return found, np.array([self.index(*arm) for arm in found])

    def visit(self, s):
        arms, index = self.arms(s)
        value, weight = 0.0, 1.0
        for _ in range(100):
            i = int(index.argmax())
            stays, plays, leave, reward = arms[i]
            if weight <= 1e-3 or stays == 0 or reward > (1 - self.discount) * leave:
                break
            q = stays / plays
            value += weight * ((1 - q) * leave + q * reward)
            weight *= self.discount * q
            arms[i][0], arms[i][1] = stays + 1, plays + 1
            index[i] = self.index(*arms[i])
        return value + weight * index.max()

    def solve(self, sweeps, tolerance):
        for k in range(sweeps):
            change = 0.0
            for s in range(self.S) if k % 2 else reversed(range(self.S)):
                value = self.visit(s)
                change, self.v[s] = max(change, abs(value - self.v[s])), value
            if change <= tolerance * (self.v.max() - self.v.min()):
                break

    def act(self, s):
        self.solve(self.sweeps, self.tolerance)
        _, self.indices = self.arms(s)
        self.offered = np.flatnonzero(self.available[s])
        best = 0
        for i, index in enumerate(self.indices):
            if index > self.indices[best] + 1e-11 * (1 + self.indices[best]):
                best = i
        return int(self.offered[best])
