"""Worlds, behaviour and logs of the safe-policy-improvement papers, written from their descriptions.

*Random MDPs* (Laroche, Trichelair & Tachet des Combes 2019): 50 states, 4 actions, 4 successors a pair, chances from a
uniform partition of the unit interval; reaching the goal pays 1 and ends the episode. The goal is the state whose
optimal value from the start is least: where it is hardest to reach. *Gridworld*: 5 × 5, from one corner to the opposite
one; a move goes where it should with 75%, to either side with 10%, back with 5%, and stays where a wall is.

*Behaviour* at a share η of the way from uniform to optimal value: a softmax of the optimal values, cooled until it is
at `(1 + η)/2`, then the chance of the best action is lowered by a tenth in states drawn at random until η is reached.
*Trajectories* end at the goal or after 50 steps. Discount 0.95.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.logs import Log, log_of
from beliefbound.planning.safe.bounded import bounded_optimum, value_of

DISCOUNT, STEPS, START = 0.95, 50, 0
_COOLING, _LOWERING = 0.9, 0.9


class World(NamedTuple):
    """One MDP that starts in state 0: transitions `[s,a,t]`, rewards `[s,a]`, and the state that ends it."""

    rows: FloatArray
    rewards: FloatArray
    goal: int

    def value(self, policy: FloatArray) -> float:
        """From the start, of chances `[s,a]`."""
        return float(value_of(policy, self.rows, self.rewards, DISCOUNT)[START])

    def optimum(self) -> FloatArray:
        """Chances `[s,a]` of the best policy."""
        none = np.zeros_like(self.rewards)
        return bounded_optimum(self.rows, self.rewards, none, none + 1.0, discount=DISCOUNT, horizon=None)


def random_mdp(rng: np.random.Generator, *, states: int = 50, actions: int = 4, successors: int = 4) -> World:
    """A random MDP with the goal where it is hardest to reach."""
    rows = np.zeros((states, actions, states))
    for s, a in np.ndindex(states, actions):
        cuts = np.sort(rng.random(successors - 1))
        rows[s, a, rng.choice(states, successors, replace=False)] = np.diff(np.concatenate([[0.0], cuts, [1.0]]))
    worlds = [_ended(rows, goal) for goal in range(1, states)]
    return min(worlds, key=lambda world: world.value(world.optimum()))


def gridworld(rng: np.random.Generator | None = None, *, size: int = 5) -> World:
    """The stochastic grid; there is only one."""
    steps = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])
    rows = np.zeros((size * size, 4, size * size))
    for s, a in np.ndindex(size * size, 4):
        for turn, chance in ((0, 0.75), (1, 0.1), (2, 0.05), (3, 0.1)):
            place = np.array(divmod(s, size)) + steps[(a + turn) % 4]
            t = s if (place < 0).any() or (place >= size).any() else int(place @ (size, 1))
            rows[s, a, t] += chance
    return _ended(rows, size * size - 1)


def _ended(rows: FloatArray, goal: int) -> World:
    paid, rows = np.array(rows[..., goal]), np.array(rows)
    paid[goal], rows[goal] = 0.0, 0.0
    rows[goal, :, goal] = 1.0
    return World(rows, paid, goal)


def behaviour_at(world: World, share: float, rng: np.random.Generator) -> FloatArray:
    """Chances `[s,a]` of a policy at a share of the way from uniform to optimal value."""
    best = world.optimum()
    q = world.rewards + DISCOUNT * world.rows @ value_of(best, world.rows, world.rewards, DISCOUNT)
    low, high = world.value(np.full_like(q, 1.0 / q.shape[1])), world.value(best)

    def softmax(cold: float) -> FloatArray:
        weights = np.exp(cold * (q - q.max(axis=1, keepdims=True)))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def share_of(policy: FloatArray) -> float:
        return (world.value(policy) - low) / (high - low)

    cold = 1.0
    while share_of(softmax(cold)) < 0.5 * (1.0 + share):
        cold /= _COOLING
    policy = softmax(cold * _COOLING)
    while share_of(policy) > share:
        s = int(rng.integers(len(q)))
        policy[s, q[s].argmax()] *= _LOWERING
        policy[s] /= policy[s].sum()
    return policy


def logged(world: World, policy: FloatArray, trajectories: int, rng: np.random.Generator) -> Log:
    """A log of so many trajectories."""
    s, open_ = np.full(trajectories, START), np.arange(trajectories)
    actions, arrivals = policy.cumsum(axis=1), world.rows.cumsum(axis=2)
    steps = []
    for _ in range(STEPS):
        now = s[open_]
        a = np.minimum((rng.random((len(now), 1)) > actions[now]).sum(axis=1), policy.shape[1] - 1)
        t = np.minimum((rng.random((len(now), 1)) > arrivals[now, a]).sum(axis=1), len(policy) - 1)
        steps.append(np.stack([open_, now, a, t]))
        s[open_] = t
        open_ = open_[t != world.goal]
    episode, state, action, after = (x[np.argsort(np.concatenate([e[0] for e in steps]), kind="stable")]
                                     for x in np.concatenate(steps, axis=1))  # fmt: skip
    done = after == world.goal
    last = np.append(np.diff(episode) > 0, True) & ~done
    reward = done.astype(np.float64)
    sizes = {"n_states": len(policy), "n_actions": policy.shape[1]}
    flags = {"terminated": done, "truncated": last, "episodes": episode}
    return log_of(state, action, reward, after, **flags, **sizes)
