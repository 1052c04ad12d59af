"""Values in exact rational arithmetic, of the doubles as they are stored; and problems whose rewards differ in scale.

No beliefbound import: an oracle. `P[m][s][a][t]`, `r[m][s][a]` are arrays of doubles, which are rational numbers.
"""

from fractions import Fraction

import numpy as np


def rational(array):
    """Nested lists of fractions, the doubles themselves."""
    return [rational(x) for x in array] if np.ndim(array) else Fraction(float(array))


def solve(system, right):
    """`x` with `system x = right`, by elimination."""
    n = len(right)
    rows = [[*row, value] for row, value in zip(system, right, strict=True)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def policy_value(P, r, actions, discount):
    """`V[s]` of a stationary policy of one model, for ever; all fractions."""
    n = len(P)
    system = [[(1 if s == t else 0) - discount * P[s][actions[s]][t] for t in range(n)] for s in range(n)]
    return solve(system, [r[s][actions[s]] for s in range(n)])


def action_values(P, r, discount, values):
    """`Q[s][a]` from values of what comes next."""
    return [
        [r[s][a] + discount * sum(p * v for p, v in zip(P[s][a], values, strict=True) if p) for a in range(len(P[s]))]
        for s in range(len(P))
    ]


def optimal(P, r, discount, horizon=None):
    """`(V[s], Q[s][a])` of one model, exactly: policy iteration for ever, else backwards induction."""
    n = len(P)
    if horizon is not None:
        values = [Fraction(0)] * n
        for _ in range(horizon):
            q = action_values(P, r, discount, values)
            values = [max(row) for row in q]
        return values, q
    floats = np.array([[float(x) for x in row] for row in r])
    actions = [int(a) for a in floats.argmax(axis=1)]
    while True:
        values = policy_value(P, r, actions, discount)
        q = action_values(P, r, discount, values)
        better = [max(range(len(row)), key=lambda a, row=row: row[a]) for row in q]
        better = [b if q[s][b] > values[s] else actions[s] for s, b in enumerate(better)]
        if better == actions:
            return values, q
        actions = better


def outcomes(P, r, s, a, b, signal):
    """What a step may show under weights `b`, and the weights afterwards, not normalised: `[(t, weights)]`. Signals:
    `known`, `unobserved` (next states only) and `deterministic` (the reward `r_m(s,a)` as well)."""
    paid = [r[m][s][a] for m in range(len(b))] if signal == "deterministic" else [0] * len(b)
    found = []
    for t in range(len(P[0])):
        for amount in sorted(set(paid)):
            after = [x * P[m][s][a][t] if paid[m] == amount else Fraction(0) for m, x in enumerate(b)]
            if any(after):
                found.append((t, after))
    return found


def bayes_adaptive(P, r, w, s, discount, horizon, signal):
    """The Bayes-optimal value of a finite belief for a few decisions: every history, exactly."""

    def value(b, s, left):
        if left == 0:
            return Fraction(0)
        return max(
            sum(x * r[m][s][a] for m, x in enumerate(b))
            + discount * sum(value(after, t, left - 1) for t, after in outcomes(P, r, s, a, b, signal))
            for a in range(len(P[0][s]))
        )

    return value(list(w), s, horizon) / sum(w)


def belief_mdp(P, r, w, s0, discount, signal, *, most=60):
    """The Bayes-optimal value for ever and `Q*[a]` at the start, where finitely many beliefs can be met; `None` where
    there are more than `most`."""

    def normal(b):
        total = sum(b)
        return tuple(x / total for x in b)

    nodes, queue = {(s0, normal(w)): 0}, [(s0, normal(w))]
    steps, rewards = [], []
    for s, b in queue:
        rewards.append([sum(x * r[m][s][a] for m, x in enumerate(b)) for a in range(len(P[0][s]))])
        row = []
        for a in range(len(P[0][s])):
            chances = {}
            for t, after in outcomes(P, r, s, a, b, signal):
                key = (t, normal(after))
                if key not in nodes:
                    if len(nodes) == most:
                        return None
                    nodes[key] = len(queue)
                    queue.append(key)
                chances[nodes[key]] = chances.get(nodes[key], 0) + sum(after)
            row.append(chances)
        steps.append(row)
    n = len(queue)
    dense = [[[chances.get(t, Fraction(0)) for t in range(n)] for chances in row] for row in steps]
    values, q = optimal(dense, rewards, discount)
    return values[0], q[0]


DISCOUNTS = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999)


def mixed_scales(rng):
    """`(P[s,a,t], r[s,a])` of a model whose rewards are of sizes from 1 to 1e9: ordinary ones, actions forbidden at
    -1e9, states where nothing else is to be had, a large reward somewhere, each reward of its own scale."""
    n_states, n_actions = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    P = np.zeros((n_states, n_actions, n_states))
    for s in range(n_states):
        for a in range(n_actions):
            if rng.random() < 0.5:
                P[s, a, rng.integers(n_states)] = 1.0
            else:
                row = rng.dirichlet(np.full(n_states, 0.5))
                row[row < 1e-3] = 0.0
                P[s, a] = row / row.sum()
    r = rng.choice([0.0, 1.0, 0.95, 1.02475, rng.normal(), rng.random()], size=(n_states, n_actions))
    kind = int(rng.integers(6))
    if kind != 4:
        r = r * rng.choice([1.0, 10.0 ** rng.integers(0, 10)], p=[0.7, 0.3])
    if kind in (0, 1, 2):  # one forbidden action a state
        for s in range(n_states):
            r[s, rng.integers(n_actions)] = -(10.0 ** rng.integers(3, 10))
    if kind in (2, 3):  # a state to be avoided
        r[rng.integers(n_states)] = -(10.0 ** rng.integers(3, 10))
    if kind == 4:  # each reward its own scale
        r = r * 10.0 ** rng.integers(0, 10, size=r.shape)
    if kind == 5:  # a large reward somewhere
        r[rng.integers(n_states), rng.integers(n_actions)] = 10.0 ** rng.integers(3, 10)
    return P, r


def mixed_belief(rng, kind):
    """`(P[m,s,a,t], r[m,s,a], w[m], signal)` of rewards of mixed scale whose Bayes-optimal value can be had exactly:
    `copies` of one model; `told`, models that the first reward tells apart; `ruled out`, deterministic transitions,
    which rule models out; `any`, for a few decisions."""
    P, r = mixed_scales(rng)
    n_models = int(rng.integers(2, 4))
    w = rng.dirichlet(np.ones(n_models)) + 1e-3
    w /= w.sum()
    Ps, rs = np.stack([P] * n_models), np.stack([r] * n_models)
    if kind == "copies":
        return Ps, rs, w, "known"
    if kind == "told":
        others = [rescaled(rng, r, 1.0 + m / 8) for m in range(n_models)]
        return Ps, np.stack(others), w, "deterministic"
    if kind == "ruled out":
        for m in range(n_models):
            for s in range(P.shape[0]):
                for a in range(P.shape[1]):
                    row = np.zeros(P.shape[0])
                    row[P[s, a].argmax() if rng.random() < 0.7 else rng.integers(P.shape[0])] = 1.0
                    Ps[m, s, a] = row
        return Ps, rs, w, "known"
    for m in range(n_models):
        mixed = rng.dirichlet(np.ones(P.shape[0]), size=P.shape[:2])
        Ps[m] = 0.5 * P + 0.5 * mixed
        Ps[m] /= Ps[m].sum(axis=-1, keepdims=True)
        rs[m] = rescaled(rng, r, 1.0 + m / 8)
    return Ps, rs, w, str(rng.choice(["unobserved", "deterministic"]))


def rescaled(rng, r, factor):
    """Rewards that differ from others everywhere by far more than rounding."""
    return r * factor + np.where(r == 0.0, factor - 1.0, 0.0)
