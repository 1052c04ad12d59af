"""RiverSwim and the optimistic task: small problems in which a learner must go through worse states on purpose."""

import numpy as np

from beliefbound.envs.environment import Environment, from_outcomes
from beliefbound.envs.registry import env
from beliefbound.grammar import Number


@env(
    "riverswim",
    summary="swim against the current for a distant prize",
    parameters=(Number("length", 6, 2, 100_000, "states", whole=True, by_position=True),),
)
def riverswim(name: str, *, length: int) -> Environment:
    """RiverSwim (Strehl & Littman 2008): swim left with the current or right against it; start in state 0.

    Left (action 0) always moves one state left, and pays 0.005 in state 0, where it stays. Right (action 1) moves right
    with probability .35, stays with .6, is carried left with .05; in state 0 it moves right with .6 and stays with
    .4; in the last state it stays with .6 and is carried left with .4, and pays 1 whatever happens.
    """
    s = np.arange(length)
    right, left = np.minimum(s + 1, length - 1), np.maximum(s - 1, 0)
    probability = np.zeros((length, 2, 3))  # outcomes of an attempt to swim right: right, stay, left
    probability[:, 0, 0] = 1.0
    probability[:, 1] = [0.35, 0.6, 0.05]
    probability[0, 1] = [0.6, 0.4, 0.0]
    probability[-1, 1] = [0.0, 0.6, 0.4]
    target = np.stack([np.repeat(left[:, None], 3, axis=1), np.stack([right, s, left], axis=1)], axis=1)
    reward = np.zeros((length, 2, 3))
    reward[0, 0], reward[-1, 1] = 0.005, 1.0
    return from_outcomes(name, probability, target, reward, actions=("left", "right"))


@env(
    "optimistic",
    summary="3 states where hoping for more is costly",
    parameters=(
        Number("epsilon", 0.1, 0.0, 1.0, "the small reward"),
        Number("delta", 0.1, 0.0, 1.0, "probability of leaving the middle"),
    ),
)
def optimistic(name: str, *, epsilon: float, delta: float) -> Environment:
    """Optimistic task: 3 states; a small reward in both outer ones, none in the middle, which is hard to leave.

    State 0: action 0 stays, action 1 leads to 1. State 2: action 1 stays, action 0 leads to 1. State 1: with
    probability `delta` action 0 leads to 0 and action 1 to 2, otherwise it stays. A step that ends in state 0 or 2 pays
    `epsilon`, one that ends in 1 pays nothing. Start in 0. Staying there is optimal, `epsilon / (1 − γ)`; a learner who
    hopes for rewards up to 1 (the declared range is [0, 1]) pays for finding out about state 2.
    """
    target = np.array([[[0, 0], [1, 1]], [[0, 1], [2, 1]], [[1, 1], [2, 2]]])
    probability = np.broadcast_to([delta, 1.0 - delta], (3, 2, 2))
    reward = np.where(target == 1, 0.0, epsilon)
    return from_outcomes(name, probability, target, reward, reward_range=(0.0, 1.0))
