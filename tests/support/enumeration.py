"""The exact value of what a policy does, by playing it through every history."""

import numpy as np


def act_after(policy, history, s):
    """The action in `s` after a history: the walk from the start."""
    policy.reset(0)
    for step in history:
        policy.observe(*step)
    return policy.act(s)


def rewards_seen(belief, s, a):
    """`(reward seen, likelihood [m,1])` of every reward outcome of a pair."""
    means = belief.rewards[:, s, a, None]
    if belief.reward_signal == "bernoulli":
        return [(1.0, means), (0.0, 1.0 - means)]
    if belief.reward_signal == "deterministic":
        return [(float(x), (means == x).astype(float)) for x in np.unique(means)]
    return [(None, np.ones_like(means))]


def value_by_enumeration(policy, belief, discount, horizon):
    """The value of `act` under a finite belief: every history, weighed by its probability in each model."""

    def value(b, s, history):
        if len(history) == horizon:
            return 0.0
        a = act_after(policy, history, s)
        total = float(b @ belief.rewards[:, s, a])
        for reward, like in rewards_seen(belief, s, a):
            joint = b[:, None] * like * belief.transitions[:, s, a]
            for t in np.flatnonzero(joint.sum(axis=0) > 0):
                total += discount * value(joint[:, t], int(t), [*history, (s, a, reward, int(t))])
        return total

    start = belief.initial
    return sum(value(start[s] * belief.weights, int(s), []) for s in np.flatnonzero(start))
