"""Plain NumPy twins of the EM agents, written from the formulas of their docstrings."""

import numpy as np
from scipy.special import digamma

from beliefbound.kernels.draws import beta_models, dirichlet_models
from beliefbound.kernels.random import uniform
from support.agent_twins import Belief


def gains(policy, p, r, s, discount):
    """`(value, gain[s,a], f[τ,s], v[τ+1,s])` on transitions `p[τ][s,a,t]` and rewards `r[τ][s,a]`."""
    horizon, n_states = len(p), len(policy)
    v = np.zeros((horizon + 1, n_states))
    q = np.zeros((horizon, *policy.shape))
    for k in reversed(range(horizon)):
        q[k] = r[k] + discount * p[k] @ v[k + 1]
        v[k] = (policy * q[k]).sum(axis=1)
    f = np.zeros((horizon, n_states))
    f[0, s] = 1.0
    for k in range(horizon - 1):
        f[k + 1] = discount * np.einsum("s,sa,sat->t", f[k], policy, p[k])
    return v[0, s], np.einsum("ks,sa,ksa->sa", f, policy, q), f, v


def improved(policy, gain):
    """The M-step."""
    total = gain.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, gain / np.where(total > 0.0, total, 1.0), policy)


class EmTwin(Belief):
    """What the three agents share; `step(s)` is one iteration of a plan."""

    def __init__(self, environment, *, horizon, interval, iterations, floor=1e-3, n=0, rounds=1, damping=0.5):
        super().__init__(environment)
        self.horizon, self.interval, self.iterations, self.floor = horizon, interval, iterations, floor
        self.n, self.rounds, self.damping, self.discount = n, rounds, damping, environment.discount

    def reset(self, seed, cell=0, run=0):
        super().reset(seed, cell, run)
        self.uniform = self.available / self.available.sum(axis=1, keepdims=True)
        self.policy, self.steps = self.uniform, 0
        self.rho = np.zeros_like(self.alpha)
        self.sites = np.zeros((self.horizon, *self.alpha.shape))

    def act(self, s):
        if self.steps % self.interval == 0:
            self.policy = (1 - self.floor) * self.policy + self.floor * self.uniform
            self.prepare()
            for _ in range(self.iterations):
                self.policy = improved(self.policy, self.step(s))
        self.steps += 1
        return int(np.searchsorted(np.cumsum(self.policy[s]), uniform(self.stream) * self.policy[s].sum(), "right"))

    def prepare(self):
        pass


class SemTwin(EmTwin):
    """SEM; `n` = 0 is the point estimate."""

    def prepare(self):
        if self.n:
            self.p, self.r = np.empty((self.n, *self.alpha.shape)), np.empty((self.n, self.S, self.A))
            dirichlet_models(self.stream, self.alpha, self.p)
            beta_models(self.stream, self.successes, self.failures, 0.0, 1.0, self.r)
        else:
            self.p, self.r = (x[None] for x in self.expected())

    def step(self, s):
        models = zip(self.p, self.r, strict=True)
        return sum(gains(self.policy, [p] * self.horizon, [r] * self.horizon, s, self.discount)[1] for p, r in models)


class VbTwin(EmTwin):
    """VB-EM."""

    def step(self, s):
        r = self.expected()[1]
        for _ in range(self.rounds):
            counts = self.alpha + self.rho
            p = np.exp(digamma(counts) - digamma(counts.sum(axis=-1, keepdims=True)))
            value, gain, f, v = gains(self.policy, [p] * self.horizon, [r] * self.horizon, s, self.discount)
            weight = np.einsum("ks,sa,sat,kt->sat", f, self.policy, p, self.discount * v[1:])
            self.rho = weight / value
        return gain


class AmpTwin(EmTwin):
    """AMP-EM."""

    def step(self, s):
        r = self.expected()[1]
        for _ in range(self.rounds):
            total = self.alpha + self.sites.sum(axis=0)
            cavity = np.maximum(total - self.sites, 1e-3 * self.alpha)
            p = cavity / cavity.sum(axis=-1, keepdims=True)
            value, gain, f, v = gains(self.policy, p, [r] * self.horizon, s, self.discount)
            for k in range(self.horizon):
                w = np.einsum("s,sa,sat,t->sat", f[k], self.policy, p[k], self.discount * v[k + 1]) / value
                for row in np.ndindex(self.S, self.A):
                    self.sites[k][row] += self.damping * (matched(cavity[k][row], w[row]) - self.sites[k][row])
        return gain


def matched(c, w):
    """The site of a row from the moments of `Σ_j w_j Dirichlet(c + e_j) + (1 − Σ w) Dirichlet(c)`."""
    parts = [(1.0 - w.sum(), c), *((w[j], c + np.eye(len(c))[j]) for j in range(len(c)))]
    mean = sum(share * x / x.sum() for share, x in parts)
    second = sum(share * x * (x + 1) / (x.sum() * (x.sum() + 1)) for share, x in parts)
    size = (1.0 - (mean**2).sum()) / (second - mean**2).sum() - 1.0
    return mean * size - c
