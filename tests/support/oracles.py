"""Slow and plain twins of the library's algorithms, written from the definitions. NumPy only, no beliefbound import.

Arrays: `P[m,s,a,t]`, `r[m,s,a]`, `w[m]`, start distribution `p0[s]`, time-indexed policy `pi[k,s]`.
"""

import itertools

import numpy as np


def bayes_adaptive_value(
    P, r, w, s0, discount, horizon, signal="known", *, reward_range=(0.0, 1.0), available=None, arrival=None
):
    """The Bayes-optimal value of a finite belief, exactly, by recursion over every history.

    With unnormalised weights `b_m = w_m Pr(history | m, actions)`,

        V_k(b, s) = max_a Σ_m b_m r_m(s,a) + γ Σ_o V_{k-1}(b^o, s'),   b^o_m = b_m Pr_m(o | s,a),   V_0 = 0

    where the outcome `o` of a step is the next state and what is seen of the reward:

    * `known`, `unobserved`: nothing, `o = s'`;
    * `deterministic`: the value `r_m(s,a)` itself (or `arrival[m,s,a,t]`): models that pay differently are told apart;
    * `bernoulli`: high with probability `(r_m − low)/(high − low)`, else low, where `r_m` is `r_m(s,a)`, or
      `arrival[m,s,a,t]`;
    * `finite`: value `k` with probability `arrival[m,s,a,k]`, values all different.

    `s0` is a start state, or a start distribution `[s]` (the first state is seen). Cost `O((A · |outcomes|)^horizon)`.
    """
    P, r, w = np.asarray(P, float), np.asarray(r, float), np.asarray(w, float)
    n_states, n_actions = r.shape[1:]
    available = np.ones((n_states, n_actions), bool) if available is None else np.asarray(available)
    if np.ndim(s0):
        arguments = (discount, horizon, signal)
        knobs = {"reward_range": reward_range, "available": available, "arrival": arrival}
        return sum(p * bayes_adaptive_value(P, r, w, s, *arguments, **knobs) for s, p in enumerate(s0) if p > 0)

    def seen(s, a, t):
        """For each thing the agent may see of the reward, its probability under each model."""
        if signal in ("known", "unobserved"):
            return [np.ones(len(w))]
        if signal == "deterministic":
            paid = r[:, s, a] if arrival is None else arrival[:, s, a, t]
            return [(paid == value).astype(float) for value in np.unique(paid)]
        if signal == "bernoulli":
            mean = r[:, s, a] if arrival is None else arrival[:, s, a, t]
            chance = (mean - reward_range[0]) / (reward_range[1] - reward_range[0])
            return [chance, 1.0 - chance]
        if signal == "finite":
            return list(arrival[:, s, a].T)
        raise ValueError(f"no exact tree for the signal {signal!r}")

    def value(b, s, stages):
        if stages == 0 or not b.any():
            return 0.0
        best = -np.inf
        for a in range(n_actions):
            if not available[s, a]:
                continue
            total = b @ r[:, s, a]
            for t in range(n_states):
                for likelihood in seen(s, a, t):
                    total += discount * value(b * likelihood * P[:, s, a, t], t, stages - 1)
            best = max(best, total)
        return best

    return float(value(w, int(s0), horizon))


def dirichlet_value(belief, s, discount, horizon):
    """The Bayes-optimal value of a `DirichletBelief` with known rewards, Bernoulli ones or finitely many (attributes
    `counts` and `values`, `[s,a,k]`): every history, exactly."""
    if horizon == 0:
        return 0.0
    mean = belief.mean()
    chances, rewards = mean.transitions, mean.rewards
    best = -np.inf
    for a in np.flatnonzero(belief.available[s]):
        total, seen = rewards[s, a], [(None, 1.0)]
        if hasattr(belief.rewards, "alpha"):
            low, high = belief.rewards.low, belief.rewards.high
            won = (belief.rewards.mean()[s, a] - low) / (high - low)
            seen = [(high, won), (low, 1.0 - won)]
        if hasattr(belief.rewards, "counts"):
            counts = belief.rewards.counts[s, a]
            seen = list(zip(belief.rewards.values[s, a], counts / counts.sum(), strict=True))
        for reward, p in seen:
            for t in np.flatnonzero(chances[s, a]):
                after = belief.update(s, a, reward, int(t))
                total += discount * p * chances[s, a, t] * dirichlet_value(after, int(t), discount, horizon - 1)
        best = max(best, total)
    return float(best)


def policy_values(P, r, pi, discount):
    """Value `[m,s]` of a time-indexed policy `pi[k,s]` on each model."""
    P, r = np.asarray(P), np.asarray(r)
    states = np.arange(r.shape[1])
    v = np.zeros(r.shape[:2])
    for actions in np.asarray(pi)[::-1]:
        v = r[:, states, actions] + discount * np.einsum("mst,mt->ms", P[:, states, actions], v)
    return v


def stationary_values(P, r, actions, discount):
    """Value `[m,s]` of a stationary policy `actions[s]` on each model, for ever."""
    P, r = np.asarray(P), np.asarray(r)
    states = np.arange(r.shape[1])
    chains, rewards = P[:, states, actions], r[:, states, actions]
    return np.stack(
        [np.linalg.solve(np.eye(len(states)) - discount * c, x) for c, x in zip(chains, rewards, strict=True)]
    )


def every_policy(n_states, n_actions, available=None):
    """Every deterministic decision rule `[s]`."""
    options = [range(n_actions) if available is None else np.flatnonzero(available[s]) for s in range(n_states)]
    return (np.array(rule, dtype=np.int64) for rule in itertools.product(*options))


def best_memoryless_value(P, r, w, p0, discount, horizon, available=None):
    """The best time-indexed memoryless policy by enumerating all `A^(S·T)` of them: `(value, pi[k,s])`."""
    rules = list(every_policy(P.shape[1], P.shape[2], available))
    best, which = -np.inf, None
    for pi in itertools.product(rules, repeat=horizon):
        value = float(w @ policy_values(P, r, pi, discount) @ p0)
        if value > best:
            best, which = value, np.array(pi)
    return best, which


def best_stationary_value(P, r, w, p0, discount, available=None):
    """The best deterministic stationary policy by enumeration: `(value, actions[s])`."""
    best, which = -np.inf, None
    for actions in every_policy(P.shape[1], P.shape[2], available):
        value = float(w @ stationary_values(P, r, actions, discount) @ p0)
        if value > best:
            best, which = value, actions
    return best, which


def optimal_values(P, r, discount, horizon, available=None):
    """Each model's own optimal value `[m,s]` and policy `[m,k,s]` (ties: lowest action)."""
    v = np.zeros(r.shape[:2])
    pi = np.zeros((r.shape[0], horizon, r.shape[1]), dtype=np.int64)
    for k in range(horizon - 1, -1, -1):
        q = r + discount * np.einsum("msat,mt->msa", P, v)
        if available is not None:
            q = np.where(available, q, -np.inf)
        pi[:, k], v = q.argmax(-1), q.max(-1)
    return v, pi


def random_models(rng, n_models, n_states, n_actions, *, concentration=0.5, equal_rewards=False, sparsity=0.0):
    """`(P, r, w, p0)` with Dirichlet rows and weights and rewards in [0, 1]."""
    P = rng.dirichlet(np.full(n_states, concentration), size=(n_models, n_states, n_actions))
    if sparsity:
        P = np.where((rng.random(P.shape) < sparsity) & (P.max(-1, keepdims=True) > P), 0.0, P)
    P = P / P.sum(-1, keepdims=True)
    r = rng.random((n_models, n_states, n_actions))
    if equal_rewards:
        r[:] = r[0]
    return P, r, rng.dirichlet(np.ones(n_models)), rng.dirichlet(np.ones(n_states))
