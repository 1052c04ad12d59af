"""RiverSwim and the optimistic task: small problems in which a learner must go through worse states on purpose."""

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Choice, Number
from beliefbound.lab.envs.environment import Environment, from_outcomes
from beliefbound.lab.envs.registry import env


@env(
    "riverswim",
    summary="swim against the current for a distant prize",
    parameters=(
        Number("length", 6, 2, 100_000, "states", whole=True, by_position=True),
        Choice("form", "osband", ("osband", "strehl"), "of the two that are published"),
    ),
)
def riverswim(name: str, *, length: int, form: str) -> Environment:
    """RiverSwim (Strehl & Littman 2008): swim left with the current or right against it. Two forms are in use.

    Left (action 0) always moves one state left, and pays a little in state 0, where it stays. Right (action 1) moves
    right, stays, or is carried left, with probabilities

    * `osband` (Osband et al. 2013): .35, .6, .05; in state 0 it moves right with .6 and stays with .4; in the last
      state it stays with .6 and is carried left with .4, and pays 1 whatever happens. Left pays .005 in state 0. Start
      in state 0.
    * `strehl` (Strehl & Littman 2008): .3, .6, .1; in state 0 it moves right with .3 and stays with .7; in the last
      state it stays with .3, which pays 10 000, and is carried left with .7. Left pays 5 in state 0. Start in state 1
      or 2, each with probability ½.
    """
    if form == "strehl":
        if length < 3:
            raise ParameterError(
                f"{name!r}: length is {length}; the form strehl starts in state 1 or 2, give 3 or more"
            )
        return _river(name, length, ([0.3, 0.7, 0.0], [0.3, 0.6, 0.1], [0.0, 0.3, 0.7]), 5.0, 10_000.0, stays=True)
    return _river(name, length, ([0.6, 0.4, 0.0], [0.35, 0.6, 0.05], [0.0, 0.6, 0.4]), 0.005, 1.0, stays=False)


def _river(
    name: str, length: int, swims: tuple[list[float], ...], little: float, prize: float, *, stays: bool
) -> Environment:
    """A river whose attempts to swim right succeed with `swims` in the first, inner and last states.

    Where the prize is paid for staying only (`stays`), the start is state 1 or 2, else state 0.
    """
    s = np.arange(length)
    right, left = np.minimum(s + 1, length - 1), np.maximum(s - 1, 0)
    probability = np.zeros((length, 2, 3))  # outcomes of an attempt to swim right: right, stay, left
    probability[:, 0, 0] = 1.0
    probability[:, 1] = swims[1]
    probability[0, 1], probability[-1, 1] = swims[0], swims[2]
    target = np.stack([np.repeat(left[:, None], 3, axis=1), np.stack([right, s, left], axis=1)], axis=1)
    reward = np.zeros((length, 2, 3))
    reward[0, 0], reward[-1, 1] = little, [0.0, prize, 0.0] if stays else prize
    start = np.isin(s, (1, 2)) / 2.0 if stays else 0
    return from_outcomes(name, probability, target, reward, start=start, actions=("left", "right"))


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
