"""Plain NumPy twins of the optimistic agents and of their solver."""

import math

import numpy as np

from support.agent_twins import Belief


def best_in_ball(p, v, radius):
    """The distribution in the L1 ball around `p` that maximises `q·v`, as published: fill the best, empty the worst."""
    q, order = p.copy(), np.argsort(v, kind="stable")
    q[order[-1]] = min(1.0, p[order[-1]] + radius / 2)
    for i in order:
        if q.sum() <= 1.0:
            break
        q[i] = max(0.0, 1.0 - (q.sum() - q[i]))
    return q


def best_in_box(p, v, reach):
    """The distribution within `reach[t]` of `p[t]` everywhere that maximises `q·v`: the least of all, then the best."""
    low, high = np.maximum(0.0, p - reach), np.minimum(1.0, p + reach)
    q = low.copy()
    for i in np.argsort(v, kind="stable")[::-1]:
        q[i] += min(high[i] - low[i], 1.0 - q.sum())
    return q


def outlook(kind, p, width, v):
    """What the next state is worth."""
    if kind == "ball":
        return float(best_in_ball(p, v, width) @ v)
    if kind == "shift" and (p > 0).any():
        return float((1 - width) * (p @ v) + width * v[p > 0].max())
    return float(p @ v)


def sweep(kind, p, r, width, available, discount, cap, v):
    """One sweep of value iteration with optimism: values and actions."""
    q = np.full(r.shape, -np.inf)
    for s, a in np.argwhere(available):
        q[s, a] = min(cap, r[s, a] + discount * outlook(kind, p[s, a], width[s, a], v))
    return q.max(axis=1), q.argmax(axis=1)


class Solver:
    """Sweeps until the values converge, warm from the call before."""

    def solve(self, kind, p, r, width):
        for _ in range(1000):
            v, self.actions = sweep(kind, p, r, width, self.available, self.discount, self.cap, self.v)
            change, self.v = np.abs(v - self.v).max(), v
            if change <= 1e-4:
                break


class OptimistTwin(Belief, Solver):
    """BEB, VBRB and BOLT, by their formulas."""

    def __init__(self, environment, rule, value, *, cap=math.inf):
        super().__init__(environment)
        self.rule, self.value, self.discount, self.cap = rule, value, environment.discount, cap

    def reset(self, seed, cell=0, run=0):
        super().reset(seed, cell, run)
        self.v = np.full(self.S, 1 / (1 - self.discount))

    def act(self, s):
        p, r = self.expected()
        total = self.alpha.sum(axis=-1)
        width = np.zeros_like(total)
        if self.rule == "beb":
            r = r + self.value / (1 + total)
        elif self.rule == "vbrb":
            n = self.successes + self.failures
            variance = self.alpha * (total[..., None] - self.alpha) / (total**2 * (total + 1))[..., None]
            deviation = np.sqrt(self.successes * self.failures / (n**2 * (n + 1)))
            r = r + self.value[0] * deviation + self.value[1] * np.sqrt(variance.sum(axis=-1))
        else:
            width = self.value / (total + self.value)
        self.solve("shift" if self.rule == "bolt" else "mean", p, r, width)
        return int(self.actions[s])


class IntervalTwin(Solver):
    """MBIE (intervals of both) and MBIE-EB (`transitions = 0`)."""

    def __init__(self, environment, rewards, transitions):
        self.S, self.A, self.available = environment.n_states, environment.n_actions, environment.mdp.available
        self.low, self.high = environment.reward_range
        self.rewards, self.transitions = rewards, transitions
        self.discount, self.cap = environment.discount, 1 / (1 - environment.discount)

    def reset(self, seed, cell=0, run=0):
        self.seen = [[[] for _ in range(self.A)] for _ in range(self.S)]
        self.v = np.full(self.S, self.cap)

    def observe(self, s, a, r, t):
        self.seen[s][a].append(((r - self.low) / (self.high - self.low), t))

    def act(self, s):
        p, r = np.zeros((self.S, self.A, self.S)), np.full((self.S, self.A), self.cap)
        width = np.zeros((self.S, self.A))
        for i in range(self.S):
            for a in range(self.A):
                n = len(self.seen[i][a])
                if n:
                    rewards, arrivals = zip(*self.seen[i][a], strict=True)
                    p[i, a] = np.bincount(arrivals, minlength=self.S) / n
                    r[i, a] = np.mean(rewards) + self.rewards / math.sqrt(n)
                    width[i, a] = self.transitions / math.sqrt(n)
        self.solve("ball" if self.transitions else "mean", p, r, width)
        return int(self.actions[s])


class UcrlTwin:
    """UCRL2 and UCRL2B (`bernstein`): radii, episodes, and extended value iteration from 0, as published."""

    def __init__(self, environment, *, scale, delta=0.05, bernstein=False):
        self.S, self.A, self.available = environment.n_states, environment.n_actions, environment.mdp.available
        self.low, self.high = environment.reward_range
        self.scale, self.delta, self.bernstein = scale, delta, bernstein

    def reset(self, seed, cell=0, run=0):
        self.arrivals = np.zeros((self.S, self.A, self.S))
        self.rewards = np.zeros((self.S, self.A))
        self.actions, self.t = None, 1

    def observe(self, s, a, r, t):
        self.arrivals[s, a, t] += 1
        self.rewards[s, a] += (r - self.low) / (self.high - self.low)
        self.t += 1

    def act(self, s):
        visits = self.arrivals.sum(axis=2)
        if self.actions is None:
            self.begin(visits)
        a = self.actions[s]
        if visits[s, a] - self.before[s, a] >= max(1, self.before[s, a]):
            self.begin(visits)
        return int(self.actions[s])

    def begin(self, visits):
        self.before, u, tolerance = visits, np.zeros(self.S), 1 / math.sqrt(self.t)
        while True:
            q = np.full((self.S, self.A), -np.inf)
            for s, a in np.argwhere(self.available):
                q[s, a] = self.worth(s, a, visits[s, a], u)
            change, u = q.max(axis=1) - u, q.max(axis=1)
            if np.ptp(change) <= tolerance:
                break
            u = u - u.min()
        self.actions = q.argmax(axis=1)

    def worth(self, s, a, visits, u):
        n, pairs = max(1, visits), self.S * self.A
        p, r = self.arrivals[s, a] / n, self.rewards[s, a] / n
        if self.bernstein:
            log = math.log(6 * pairs * n / self.delta)
            side = lambda x: self.scale * (2 * np.sqrt(x * (1 - x) * log / n) + 6 * log / n)  # noqa: E731
            return r + side(r) + (best_in_box(p, u, side(p)) @ u if visits else u.max())
        reward = self.scale * math.sqrt(7 * math.log(2 * pairs * self.t / self.delta) / (2 * n))
        radius = self.scale * math.sqrt(14 * self.S * math.log(2 * self.A * self.t / self.delta) / n)
        return r + reward + (best_in_ball(p, u, radius) @ u if visits else u.max())
