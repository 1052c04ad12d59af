"""Plain Python twins of agents that sample. Only the random draws are shared, so that both see the same numbers."""

import math

import numpy as np
from scipy import optimize, special

from beliefbound.kernels.draws import dirichlet_row
from beliefbound.kernels.play import agent_stream
from beliefbound.kernels.random import gamma, normal


class MergedTwin:
    """What BOSS and SBOSS share: flat Dirichlet and Beta(1, 1) counts, and value iteration on the merged MDP."""

    def __init__(self, environment):
        self.S, self.A, self.discount = environment.n_states, environment.n_actions, environment.discount
        self.available = environment.mdp.available.tolist()
        self.low, self.high = environment.reward_range

    def reset(self, seed, cell=0, run=0):
        self.stream = agent_stream(seed, cell, run)
        self.alpha = np.full((self.S * self.A, self.S), 1.0 / self.S)
        self.rewards = np.ones((self.S * self.A, 2))
        self.plans, self.due = 0, True

    def act(self, s):
        if self.due:
            self.plan()
            self.plans, self.due = self.plans + 1, False
        return self.actions[s]

    def observe(self, s, a, r, t):
        x = (r - self.low) / (self.high - self.low)
        self.alpha[s * self.A + a, t] += 1
        self.rewards[s * self.A + a] += x, 1.0 - x

    def draw(self, copies):
        """`(reward, chances)` of `copies[pair]` samples of each pair."""
        theta, rho, samples = np.zeros(self.S), np.zeros(2), []
        for pair in range(self.S * self.A):
            samples.append([])
            for _ in range(copies[pair]):
                dirichlet_row(self.stream, self.alpha[pair], theta)
                dirichlet_row(self.stream, self.rewards[pair], rho)
                samples[pair].append((float(rho[0]), theta.tolist()))
        return samples

    def merge(self, samples):
        """Values and lowest optimal actions."""
        v, change = [0.0] * self.S, 1.0
        while change > 1e-12:
            q = [[self.best(samples[s * self.A + a], v, s, a) for a in range(self.A)] for s in range(self.S)]
            change = max(abs(max(row) - old) for row, old in zip(q, v, strict=True))
            v = [max(row) for row in q]
        self.v = v
        self.actions = [min(a for a in range(self.A) if q[s][a] >= v[s] - 1e-9) for s in range(self.S)]

    def best(self, samples, v, s, a):
        if not self.available[s][a]:
            return -math.inf
        return max(r + self.discount * sum(x * y for x, y in zip(p, v, strict=True)) for r, p in samples)


class BossTwin(MergedTwin):
    """BOSS."""

    def __init__(self, environment, k, b):
        super().__init__(environment)
        self.k, self.b = k, b

    def reset(self, seed, cell=0, run=0):
        super().reset(seed, cell, run)
        self.visits = [0] * (self.S * self.A)

    def plan(self):
        self.merge(self.draw([self.k] * (self.S * self.A)))

    def observe(self, s, a, r, t):
        super().observe(s, a, r, t)
        self.visits[s * self.A + a] += 1
        self.due = self.due or self.visits[s * self.A + a] == self.b


class OpsrlTwin(MergedTwin):
    """Optimistic PSRL: models drawn anew when a count has doubled."""

    def __init__(self, environment, psi):
        super().__init__(environment)
        self.psi = psi

    def reset(self, seed, cell=0, run=0):
        super().reset(seed, cell, run)
        self.visits, self.before = {}, {}

    def plan(self):
        self.before = dict(self.visits)
        self.merge(self.draw([self.psi] * (self.S * self.A)))

    def observe(self, s, a, r, t):
        super().observe(s, a, r, t)
        self.visits[s, a] = self.visits.get((s, a), 0) + 1
        before = self.before.get((s, a), 0)
        self.due = self.due or self.visits[s, a] - before >= max(1, before)


class PsrlTwin(MergedTwin):
    """PSRL until a count doubles, and TSDE (`dynamic`): one model an episode."""

    def __init__(self, environment, *, dynamic):
        super().__init__(environment)
        self.dynamic = dynamic

    def reset(self, seed, cell=0, run=0):
        super().reset(seed, cell, run)
        self.visits, self.before = {}, {}
        self.lengths = []

    def act(self, s):
        if not self.lengths or (self.longer() if self.dynamic else self.doubled(s, self.actions[s])):
            self.before = dict(self.visits)
            self.merge(self.draw([1] * (self.S * self.A)))
            self.lengths.append(0)
        self.lengths[-1] += 1
        return self.actions[s]

    def doubled(self, s, a):
        before = self.before.get((s, a), 0)
        return self.visits.get((s, a), 0) - before >= max(1, before)

    def longer(self):
        """Than the last episode, the one before the first being of one step; or a pair more than twice as often."""
        last = self.lengths[-2] if len(self.lengths) > 1 else 1
        return self.lengths[-1] > last or any(n > 2 * self.before.get(pair, 0) for pair, n in self.visits.items())

    def observe(self, s, a, r, t):
        super().observe(s, a, r, t)
        self.visits[s, a] = self.visits.get((s, a), 0) + 1


class SbossTwin(MergedTwin):
    """SBOSS with samples by variance."""

    def __init__(self, environment, epsilon, delta):
        super().__init__(environment)
        self.epsilon, self.delta = epsilon, delta

    def plan(self):
        counts = [(self.alpha[pair], self.rewards[pair]) for pair in range(self.S * self.A)]
        self.copies = [max(1, *(math.ceil(max(variances(x)) / self.epsilon) for x in both)) for both in counts]
        self.merge(self.draw(self.copies))
        self.planned = self.alpha.copy(), self.rewards.copy()

    def observe(self, s, a, r, t):
        super().observe(s, a, r, t)
        if not self.due:
            pair = s * self.A + a
            both = ((self.planned[0], self.alpha), (self.planned[1], self.rewards))
            self.due = sum(moved(old[pair], new[pair]) for old, new in both) > self.delta


def variances(alpha):
    total = float(sum(alpha))
    return [float(x) * (total - float(x)) / (total**2 * (total + 1.0)) for x in alpha]


def moved(old, new):
    before, now = float(sum(old)), float(sum(new))
    terms = zip(old.tolist(), new.tolist(), variances(old), strict=True)
    return sum(abs(x / before - y / now) / math.sqrt(v) for x, y, v in terms if v > 0.0)


class BayesQTwin:
    """Bayesian Q-learning; parameters of a pair are a tuple (mean, strength, shape, rate)."""

    def __init__(self, environment, choose, update, prior):
        self.S, self.A, self.discount = environment.n_states, environment.n_actions, environment.discount
        self.offered = [[a for a in range(self.A) if row[a]] for row in environment.mdp.available.tolist()]
        self.low, self.high = environment.reward_range
        self.choose, self.update, self.prior = choose, update, prior

    def reset(self, seed, cell=0, run=0):
        self.stream = agent_stream(seed, cell, run)
        self.law = {(s, a): self.prior for s in range(self.S) for a in range(self.A)}

    def act(self, s):
        laws = [self.law[s, a] for a in self.offered[s]]
        worth = [self.sample(law) for law in laws] if self.choose == "sample" else information(laws)
        return self.offered[s][worth.index(max(worth))]

    def sample(self, law):
        mean, strength, shape, rate = law
        precision = gamma(self.stream, shape) / rate
        return mean + normal(self.stream) / math.sqrt(strength * precision)

    def observe(self, s, a, r, t):
        x = (r - self.low) / (self.high - self.low)
        means = [self.law[t, b][0] for b in self.offered[t]]
        following = self.law[t, self.offered[t][means.index(max(means))]]
        learn = mixture if self.update == "mixture" else moments
        self.law[s, a] = learn(self.law[s, a], x, self.discount, following)


def information(laws):
    """`μ0 + VPI` of each action."""
    means = [law[0] for law in laws]
    if len(laws) == 1:
        return means
    first, second = sorted(means, reverse=True)[:2]
    leader, worth = means.index(first), []
    for i, (mean, strength, shape, rate) in enumerate(laws):
        nu, sigma = 2 * shape, math.sqrt(rate / (strength * shape))
        z = ((second if i == leader else first) - mean) / sigma
        density = math.exp(math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2)) / math.sqrt(nu * math.pi)
        density *= (1 + z * z / nu) ** (-(nu + 1) / 2)
        g, below = sigma * (nu + z * z) / (nu - 1) * density, float(special.stdtr(nu, z))
        gain = g + sigma * z * below if i == leader else g - sigma * z * (1 - below)
        worth.append(mean + max(0.0, gain))
    return worth


def moments(law, x, discount, following):
    (mean, strength, shape, rate), (m, n, a, b) = law, following
    first = x + discount * m
    second = x * x + 2 * discount * x * m + discount**2 * ((n + 1) / n * b / (a - 1) + m * m)
    rate += (second - first**2) / 2 + strength * (first - mean) ** 2 / (2 * (strength + 1))
    return (strength * mean + first) / (strength + 1), strength + 1, shape + 0.5, rate


def mixture(law, x, discount, following, nodes=20_001):
    """By brute force: the midpoint of very many equal shares of a wide interval."""
    (mean, strength, shape, rate), (m, n, a, b) = law, following
    limit = math.acosh(math.exp(math.log(1e14) / (2 * a)))
    w = np.linspace(-limit, limit, nodes)
    weights = np.exp(-2 * a * np.log(np.cosh(w)))
    weights /= weights.sum()
    sample = x + discount * (m + math.sqrt(2 * b * (n + 1) / n) * np.sinh(w))
    rates = rate + strength * (sample - mean) ** 2 / (2 * (strength + 1))
    means, precision = (strength * mean + sample) / (strength + 1), (shape + 0.5) / rates
    tau = weights @ precision
    new = weights @ (means * precision) / tau
    spread = 1 / (strength + 1) + weights @ ((means - new) ** 2 * precision)
    gap = math.log(tau) - special.digamma(shape + 0.5) + weights @ np.log(rates)
    fitted = optimize.brentq(lambda y: math.log(y) - special.digamma(y) - gap, 1e-3, 1e7, xtol=1e-13)
    fitted = max(1.001, fitted)
    return float(new), float(1 / spread), fitted, fitted / float(tau)
