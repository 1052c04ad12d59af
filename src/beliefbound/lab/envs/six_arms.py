"""SixArms (Strehl & Littman 2008): rooms that are harder to reach the better they pay."""

import numpy as np

from beliefbound.lab.envs.environment import Environment, from_outcomes
from beliefbound.lab.envs.registry import env

REACH = (1.0, 0.15, 0.1, 0.05, 0.03, 0.01)
PAY = (50.0, 133.0, 300.0, 800.0, 1660.0, 6000.0)
LEAVES_FIRST = 4  # the one action that leaves room 1


@env("six-arms", summary="six rooms, harder to reach the better they pay")
def six_arms(name: str) -> Environment:
    """SixArms: a hub, state 0, and rooms 1 to 6; start in the hub.

    In the hub action a reaches room a + 1 with probability 1, .15, .1, .05, .03, .01, else the hub is kept. Room a + 1
    is kept by action a only, and pays 50, 133, 300, 800, 1660, 6000 each time; other actions lead back to the hub and
    pay nothing. Room 1 is kept by all actions but 4.
    """
    probability = np.zeros((7, 6, 2))  # outcomes: what the action is for, or the hub
    target = np.zeros((7, 6, 2), dtype=np.int64)
    reward = np.zeros((7, 6, 2))
    probability[0, :, 0], probability[0, :, 1] = REACH, 1.0 - np.array(REACH)
    target[0, :, 0] = np.arange(1, 7)
    probability[1:, :, 1] = 1.0
    for room in range(1, 7):
        keeping = [a for a in range(6) if (a != LEAVES_FIRST if room == 1 else a == room - 1)]
        probability[room, keeping] = [1.0, 0.0]
        target[room, keeping, 0] = room
        reward[room, keeping, 0] = PAY[room - 1]
    return from_outcomes(name, probability, target, reward)
