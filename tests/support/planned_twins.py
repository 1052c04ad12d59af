"""Plain twins of the agents that plan beforehand: given their plans, how they act and learn, from the definitions."""

import math

import numpy as np

from beliefbound.kernels.play import agent_stream
from beliefbound.kernels.random import uniform


class BeetleTwin:
    """BEETLE on line: every expectation afresh, `E_b φ = Π B(α + m) / B(α)`, monomial by monomial."""

    def __init__(self, state):
        self.functions, self.basis = state.functions, state.basis
        self.prior = np.array(state.posterior.prior_alpha)
        self.n_actions = state.posterior.n_actions
        self.cells = [np.argwhere(power) for power in np.moveaxis(state.basis.powers, -1, 0)]

    def reset(self, seed, cell=0, run=0):
        self.alpha = self.prior.copy()

    def act(self, s):
        phi = [
            self.basis.start[i] * self.expectation(self.alpha, i) / self.expectation(self.prior, i) for i in self.all
        ]
        mine = range(self.functions.first[s], self.functions.first[s + 1])
        best = max(mine, key=lambda f: sum(c * x for c, x in zip(self.functions.coefficients[f], phi, strict=True)))
        return int(self.functions.action[best])

    @property
    def all(self):
        return range(len(self.cells))

    def expectation(self, alpha, i):
        total = 0.0
        for row, column in self.cells[i]:
            a, m = alpha[row, column], self.basis.powers[row, column, i]
            total += math.lgamma(a + m) - math.lgamma(a)
        for row in {int(row) for row, _ in self.cells[i]}:
            a, m = alpha[row].sum(), self.basis.degree[row, i]
            total -= math.lgamma(a + m) - math.lgamma(a)
        return math.exp(total)

    def observe(self, s, a, r, t):
        self.alpha[s * self.n_actions + a, t] += 1.0


class ControllerTwin:
    """A controller in plain Python."""

    def __init__(self, state):
        self.tables = state.tables

    def reset(self, seed, cell=0, run=0):
        self.node, self.stream = 0, agent_stream(seed, cell, run)

    def pick(self, chances):
        u, reached = uniform(self.stream) * sum(chances), 0.0
        for i, chance in enumerate(chances):
            reached += chance
            if u < reached:
                return i
        return int(np.flatnonzero(chances)[-1])

    def act(self, s):
        return self.pick(self.tables.policy[self.node, s])

    def observe(self, s, a, r, t):
        self.node = self.pick(self.tables.memory[self.node, s, a, t])
