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

    def best(self, s, score):
        return [a for a in self.offered[s] if score[a] == max(score[b] for b in self.offered[s])]

    def one_of(self, actions):
        """Uniformly, with no random number where there is one."""
        return actions[int(uniform(self.stream) * len(actions))] if len(actions) > 1 else actions[0]

    def observe(self, s, a, r, t):
        super().observe(s, a, r, t)
        x = (r - self.low) / (self.high - self.low)
        self.q[s, a] += self.rate * (x + self.discount * max(self.q[t, self.offered[t]]) - self.q[s, a])

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
            a = self.one_of(untried or self.best(s, [self.score(here, a) for a in range(self.A)]))
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
            u, greedy = (z & 0xFFFFFFFF) * 2.0**-32, self.best(s, self.q[s])
            if u < self.epsilon:
                a = self.offered[s][int(u / self.epsilon * len(self.offered[s]))]
            else:
                a = greedy[int((u - self.epsilon) / (1.0 - self.epsilon) * len(greedy))]
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
        tries = max(node["n"][a], 1)  # an action that is not on offer has none
        return node["q"][a] + self.c * math.sqrt(math.log(node["N"] + 1.0) / tries)

    def act(self, s):
        self.root = self.node()
        for _ in range(self.simulations):
            self.simulate(s)
        means = [q if n > 0 else -np.inf for q, n in zip(self.root["q"], self.root["n"], strict=True)]
        return self.one_of(self.best(s, means))


class Bfs3Twin(Belief):
    """BFS3 from its description: nodes are dictionaries, posteriors are copied along the path; Beta rewards."""

    def __init__(self, environment, *, rollouts, width, depth, discount=0.95):
        super().__init__(environment)
        self.rollouts, self.width, self.depth, self.discount = rollouts, width, depth, discount
        self.offered = [np.flatnonzero(row).tolist() for row in self.available]
        self.most = 1.0 / (1.0 - discount)

    def counts(self, seen, s, a):
        """`(arrivals, their sum, rewards)` after what was seen on the path."""
        arrivals, rewards, total = self.alpha[s, a].tolist(), [self.successes[s, a], self.failures[s, a]], 0.0
        for x in arrivals:
            total += x
        for pair, k, t in seen:
            if pair == (s, a):
                arrivals[t] += 1.0
                rewards[k] += 1.0
                total += 1.0
        return arrivals, total, rewards

    def draw(self, seen, s, a):
        arrivals, total, rewards = self.counts(seen, s, a)
        target, reached, t = uniform(self.stream) * total, 0.0, -1
        while t < self.S - 1 and reached <= target:
            t += 1
            reached += arrivals[t]
        return 0 if uniform(self.stream) * (rewards[0] + rewards[1]) - rewards[0] < 0.0 else 1, t

    def reward(self, seen, s, a):
        won, lost = self.counts(seen, s, a)[2]
        return won / (won + lost)

    def node(self):
        return {"U": self.most, "L": 0.0, "actions": None}

    def back_up(self, node):
        for each in node["actions"].values():
            for end in "UL":
                total = sum(n * child[end] for n, child in each["children"].values())
                each[end] = each["r"] + self.discount * total / self.width
        for end in "UL":
            node[end] = max(each[end] for each in node["actions"].values())

    def roll_out(self, node, seen, s, left):
        if left == 0 or node["U"] - node["L"] <= self.most * (self.discount**left + 1e-9):
            return
        if node["actions"] is None:
            node["actions"] = {}
            for a in self.offered[s]:
                children = {}
                for _ in range(self.width):
                    children.setdefault(self.draw(seen, s, a), [0, self.node()])[0] += 1
                node["actions"][a] = {"r": self.reward(seen, s, a), "children": children}
            self.back_up(node)
        a = max(self.offered[s], key=lambda a: (node["actions"][a]["U"], -a))
        tail = self.most * self.discount ** (left - 1)
        children = node["actions"][a]["children"]
        k, t = max(children, key=lambda c: children[c][0] * (children[c][1]["U"] - children[c][1]["L"] - tail))
        self.roll_out(children[k, t][1], [*seen, ((s, a), k, t)], t, left - 1)
        self.back_up(node)

    def act(self, s):
        self.upper, self.lower = np.full(self.A, -np.inf), np.full(self.A, -np.inf)
        for a in self.offered[s]:
            ends = np.zeros(2)
            for _ in range(self.width):
                k, t = self.draw([], s, a)
                root = self.node()
                for _ in range(self.rollouts):
                    self.roll_out(root, [((s, a), k, t)], t, self.depth)
                ends += root["U"], root["L"]
            self.upper[a], self.lower[a] = self.reward([], s, a) + self.discount * ends / self.width
        return int(self.upper.argmax())
