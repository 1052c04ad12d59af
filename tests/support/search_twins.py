"""Plain Python twins of agents that search trees of histories. Only the random stream is shared."""

import math

import numpy as np

from beliefbound.kernels.random import next_u64, uniform
from support.agent_twins import Belief


class BamcpTwin(Belief):
    """BAMCP from its description, on lists and dictionaries; Beta rewards."""

    def __init__(self, environment, *, simulations, depth, discount=0.95, c=3.0, epsilon=0.5, rate=0.2):
        super().__init__(environment)
        self.simulations, self.depth, self.discount = simulations, depth, discount
        self.c, self.epsilon, self.rate = c, epsilon, rate
        self.offered = [np.flatnonzero(row).tolist() for row in self.available]

    def reset(self, seed, cell=0, run=0):
        super().reset(seed, cell, run)
        self.q = np.zeros((self.S, self.A))

    def greedy(self, s):
        return max(self.offered[s], key=lambda a: (self.q[s, a], -a))

    def observe(self, s, a, r, t):
        super().observe(s, a, r, t)
        x = (r - self.low) / (self.high - self.low)
        self.q[s, a] += self.rate * (x + self.discount * self.q[t, self.greedy(t)] - self.q[s, a])

    def outcome(self, rows, s, a, u):
        """Draw a next state from the predictive of a simulation's own counts, and count it."""
        if (s, a) not in rows:
            counts, total = self.alpha[s, a].tolist(), 0.0
            for x in counts:
                total += x
            rows[s, a] = [counts, total]
        counts, total = rows[s, a]
        reached, t = 0.0, -1
        while t < self.S - 1:
            t += 1
            reached += counts[t]
            if reached > u * total:
                break
        counts[t] += 1.0
        rows[s, a][1] = total + 1.0
        return t

    def simulate(self, s):
        rows, wins, path, here = {}, {}, [], self.root
        while here is not None and len(path) < self.depth:
            untried = [a for a in self.offered[s] if here["n"][a] == 0]
            a = untried[0] if untried else max(self.offered[s], key=lambda a: (self.score(here, a), -a))
            t = self.outcome(rows, s, a, uniform(self.stream))
            counts = wins.setdefault((s, a), [self.successes[s, a], self.failures[s, a]])
            path.append((here, a, counts[0] / (counts[0] + counts[1])))
            k = 0 if uniform(self.stream) * (counts[0] + counts[1]) - counts[0] < 0.0 else 1
            counts[k] += 1.0
            here = here["children"].setdefault((a, k, t), self.node()) if here["n"][a] > 0 else None
            s = t
        gained, weight = 0.0, 1.0
        for _ in range(len(path), self.depth):
            z = int(next_u64(self.stream))
            u, a = (z & 0xFFFFFFFF) * 2.0**-32, self.greedy(s)
            if u < self.epsilon:
                a = self.offered[s][int(u / self.epsilon * len(self.offered[s]))]
            counts = wins.get((s, a), [self.successes[s, a], self.failures[s, a]])
            gained += weight * counts[0] / (counts[0] + counts[1])
            weight *= self.discount
            s = self.outcome(rows, s, a, (z >> 32) * 2.0**-32)
        for here, a, reward in reversed(path):
            gained = reward + self.discount * gained
            here["N"] += 1
            here["n"][a] += 1
            here["q"][a] += (gained - here["q"][a]) / here["n"][a]

    def node(self):
        return {"N": 0, "n": [0] * self.A, "q": [0.0] * self.A, "children": {}}

    def score(self, node, a):
        return node["q"][a] + self.c * math.sqrt(math.log(node["N"] + 1.0) / node["n"][a])

    def act(self, s):
        self.root = self.node()
        for _ in range(self.simulations):
            self.simulate(s)
        tried = [a for a in self.offered[s] if self.root["n"][a] > 0]
        return max(tried, key=lambda a: (self.root["q"][a], -a))
