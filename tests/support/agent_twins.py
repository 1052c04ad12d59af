"""Plain NumPy twins of the compiled agents. Only the posterior draws are shared, so that both see the same models."""

import numpy as np

from beliefbound.kernels.draws import beta_models, dirichlet_models
from beliefbound.kernels.play import agent_stream


class Belief:
    """Dirichlet and Beta counts, updated one transition at a time."""

    def __init__(self, environment, concentration=None):
        self.S, self.A = environment.n_states, environment.n_actions
        self.available = environment.mdp.available
        self.low, self.high = environment.reward_range
        self.concentration = 1.0 / self.S if concentration is None else concentration

    def reset(self, seed, cell=0, run=0):
        self.stream = agent_stream(seed, cell, run)
        self.alpha = np.full((self.S, self.A, self.S), self.concentration)
        self.successes = np.ones((self.S, self.A))
        self.failures = np.ones((self.S, self.A))

    def observe(self, s, a, r, t):
        x = (r - self.low) / (self.high - self.low)
        self.alpha[s, a, t] += 1
        self.successes[s, a] += x
        self.failures[s, a] += 1 - x

    def expected(self):
        p = self.alpha / self.alpha.sum(axis=-1, keepdims=True)
        return p, self.successes / (self.successes + self.failures)

    def sweep(self, p, r, v, discount):
        """MMBI for models `p[m,s,a,t]`, `r[m,s,a]`, `v[m,s]`: new values, mean values and actions."""
        q = r + discount * np.einsum("msat,mt->msa", p, v)
        self.mixed = np.where(self.available, q.mean(axis=0), -np.inf)
        actions = self.mixed.argmax(axis=1)
        return q[:, np.arange(self.S), actions], self.mixed.max(axis=1), actions

    def indifferent(self, s, a, b):
        """Rows never visited are alike but for rounding, and NumPy's sums round otherwise."""
        return abs(self.mixed[s, a] - self.mixed[s, b]) < 1e-13


class McbrlTwin(Belief):
    """MCBRL under a linear schedule."""

    def __init__(self, environment, n, *, discount, interval=11, increment=1, sweeps=10, tolerance=1e-3, warm=True):
        super().__init__(environment)
        self.n, self.discount, self.interval, self.increment = n, discount, interval, increment
        self.sweeps, self.tolerance, self.warm = sweeps, tolerance, warm

    def reset(self, seed, cell=0, run=0):
        super().reset(seed, cell, run)
        self.step, self.due, self.wait = 0, 1, self.interval
        self.v, self.mean = np.zeros((self.n, self.S)), np.zeros(self.S)
        self.total_sweeps = 0

    def act(self, s):
        self.step += 1
        if self.step == self.due:
            self.p = np.empty((self.n, self.S, self.A, self.S))
            self.r = np.empty((self.n, self.S, self.A))
            dirichlet_models(self.stream, self.alpha, self.p)
            beta_models(self.stream, self.successes, self.failures, 0.0, 1.0, self.r)
            self.due += self.wait
            self.wait += self.increment
            if not self.warm:
                self.v, self.mean = np.zeros((self.n, self.S)), np.zeros(self.S)
        for _ in range(self.sweeps):
            self.v, mean, self.actions = self.sweep(self.p, self.r, self.v, self.discount)
            change, self.mean = np.abs(mean - self.mean).sum(), mean
            self.total_sweeps += 1
            if change < self.tolerance:
                break
        return int(self.actions[s])


class ExploitTwin(Belief):
    """Exploit."""

    def __init__(self, environment, *, discount, sweeps=1):
        super().__init__(environment)
        self.discount, self.sweeps = discount, sweeps

    def reset(self, seed, cell=0, run=0):
        super().reset(seed, cell, run)
        self.v = np.zeros((1, self.S))

    def act(self, s):
        p, r = self.expected()
        for _ in range(self.sweeps):
            self.v, _, actions = self.sweep(p[None], r[None], self.v, self.discount)
        return int(actions[s])
