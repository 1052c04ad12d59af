"""Garnet: generic random MDPs (Archibald, McKinnon & Thomas 1995)."""

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.lab.envs.environment import Environment, check_size, from_outcomes
from beliefbound.lab.envs.registry import SEED, env


@env(
    "garnet",
    summary="random MDP with a given number of successors",
    parameters=(
        Number("states", 20, 1, 1_000_000, "states", whole=True, by_position=True),
        Number("actions", 4, 1, 10_000, "actions", whole=True, by_position=True),
        Number("branching", 3, 1, 10_000, "successors of each pair", whole=True, by_position=True),
        SEED,
    ),
)
def garnet(name: str, *, states: int, actions: int, branching: int, seed: int) -> Environment:
    """Garnet: each pair `(s,a)` leads to `branching` distinct states drawn without replacement.

    Their probabilities are the gaps between `branching − 1` sorted uniforms on [0, 1]; the reward of the pair is
    uniform on [0, 1]; start in state 0. The same string is the same MDP on every machine.
    """
    check_size(name, states * actions * branching)
    if branching > states:
        raise ParameterError(f"{name}: branching is {branching} but there are {states} states; lower the branching")
    rng = np.random.default_rng([seed, states, actions, branching])
    pairs = states * actions
    target = np.empty((pairs, branching), dtype=np.int64)
    for k in range(branching):  # Floyd's (1987) sampling without replacement, all pairs at once
        top = states - branching + k
        drawn = np.minimum((rng.random(pairs) * (top + 1)).astype(np.int64), top)
        taken = (target[:, :k] == drawn[:, None]).any(axis=1)
        target[:, k] = np.where(taken, top, drawn)
    cuts = np.sort(rng.random((pairs, branching - 1)), axis=1)
    probability = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    reward = np.repeat(rng.random(pairs)[:, None], branching, axis=1)
    shape = (states, actions, branching)
    return from_outcomes(
        name,
        probability.reshape(shape),
        target.reshape(shape),
        reward.reshape(shape),
        reward_range=(0.0, 1.0),
    )
