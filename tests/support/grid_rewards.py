"""A reward model of somebody's own, in one file."""

import numpy as np

from beliefbound.beliefs import FiniteValues
from beliefbound.beliefs.rewards import RewardColumns, RewardSample
from beliefbound.kernels.draws import dirichlet_models


class GridRewards:
    """A reward model of a user's own: rewards in [0, 1] are rounded to a grid, whose points are learnt by counts."""

    learns, range = True, (0.0, 1.0)

    def __init__(self, points, prior=0.5):
        self.values, self.counts = np.linspace(0.0, 1.0, points), prior

    def expand(self, n_states, n_actions):
        full = GridRewards(self.values.shape[-1])
        shape = (n_states, n_actions, self.values.shape[-1])
        full.values, full.counts = (np.array(np.broadcast_to(x, shape)) for x in (self.values, self.counts))
        return full

    def mean(self):
        return (self.counts * self.values).sum(-1) / self.counts.sum(-1)

    def columns(self):
        counts, values = (np.moveaxis(x, -1, 0) for x in (self.counts, self.values))
        return RewardColumns(counts, values[..., None], False)

    def update(self, states, actions, rewards, *, times=None):
        after = GridRewards(self.values.shape[-1])
        after.values, after.counts = self.values, self.counts.copy()
        nearest = np.abs(self.values[states, actions] - rewards[:, None]).argmin(axis=1)
        np.add.at(after.counts, (states, actions, nearest), 1.0 if times is None else times)
        return after

    def sample(self, n, stream):
        chances = np.empty((n, *self.counts.shape))
        dirichlet_models(stream, self.counts, chances)
        signal = FiniteValues(self.values, chances)
        return RewardSample(signal.rewards, signal)

    def log_marginal_likelihood(self, states, actions, rewards):
        total, current = 0.0, self
        for s, a, r in zip(states, actions, rewards, strict=True):
            k = np.abs(self.values[s, a] - r).argmin()
            total += np.log(current.counts[s, a, k] / current.counts[s, a].sum())
            current = current.update(np.array([s]), np.array([a]), np.array([r]))
        return total

    def credible_intervals(self, mass=0.95):
        raise NotImplementedError
