"""Grid and Dearden's maze: four moves, a slip to either side, a goal that sends the walker back to the start.

Moves are north, east, south, west (actions 0–3); row 0 is the northern one. With probability `slip` the walker goes
sideways instead: half to the right of the intended direction, half to the left. A move into a wall or off the board
stays in place. In the goal every action pays and returns to the start; elsewhere rewards are 0.
"""

from collections.abc import Iterable

import numpy as np

from beliefbound.base.grammar import Number
from beliefbound.lab.envs.environment import Environment, from_outcomes
from beliefbound.lab.envs.registry import SLIP, env

Cell = tuple[int, int]  # (column, row)

_MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
_NAMES = ("north", "east", "south", "west")
_TURNS = (0, 1, -1)  # outcomes: as intended, to its right, to its left

MAZE_SIZE = (7, 6)
MAZE_WALLS = frozenset([(0, 3), (1, 0), (1, 1), (1, 3), (4, 0), (4, 1), (5, 3), (6, 3), (6, 5)])
MAZE_FLAGS = ((0, 5), (2, 0), (6, 4))
MAZE_START, MAZE_GOAL = (0, 0), (6, 0)


@env(
    "grid",
    summary="square grid with slips, a prize in the far corner",
    parameters=(Number("size", 5, 2, 500, "cells along one side", whole=True, by_position=True), SLIP),
)
def grid(name: str, *, size: int, slip: float) -> Environment:
    """Grid: `size × size` cells, start in the north-west corner; the goal, worth 1, is the south-east corner.

    State `row · size + column`. Without slip the goal pays once every `2 · size − 1` steps.
    """
    cells = [(x, y) for y in range(size) for x in range(size)]
    target = _targets(cells)
    target[-1] = 0
    reward = np.zeros(target.shape)
    reward[-1] = 1.0
    return from_outcomes(
        name,
        _chances(len(cells), slip),
        target,
        reward,
        states=[f"({x},{y})" for x, y in cells],
        actions=_NAMES,
    )


@env(
    "maze",
    summary="Dearden's maze: 33 cells, 3 flags to bring to the goal, 264 states",
    parameters=(Number("slip", 0.1, 0.0, 1.0, "probability of going sideways"),),
)
def maze(name: str, *, slip: float) -> Environment:
    """Dearden's maze (Dearden, Friedman & Russell 1998): collect flags, bring them to the goal. 264 states.

        S # F . # . G        S start, G goal, F flags, # walls; columns 0–6 from the west, rows 0–5 from the north
        . # . . # . .
        . . . . . . .
        # # . . . # #
        . . . . . . F
        F . . . . . #

    A state is one of 33 free cells and the subset of the 3 flags held: `cell · 8 + flags`, cells row by row, flag `i`
    (in the order (0,5), (2,0), (6,4)) as bit `i`. A flag is picked up by arriving in its cell. In the goal every
    action pays the number of flags held and leads back to the start with none.
    """
    cells = [(x, y) for y in range(MAZE_SIZE[1]) for x in range(MAZE_SIZE[0]) if (x, y) not in MAZE_WALLS]
    index = {cell: i for i, cell in enumerate(cells)}
    flag_at = np.zeros(len(cells), dtype=np.int64)
    for i, flag in enumerate(MAZE_FLAGS):
        flag_at[index[flag]] = 1 << i
    held = np.arange(8)
    arrive = _targets(cells)[:, None]  # [cell, 1, action, outcome]
    target = arrive * 8 + (held[None, :, None, None] | flag_at[arrive])
    reward = np.zeros(target.shape)
    goal = index[MAZE_GOAL]
    target[goal] = index[MAZE_START] * 8
    reward[goal] = np.array([int(x).bit_count() for x in held])[:, None, None]
    n = 8 * len(cells)
    return from_outcomes(
        name,
        _chances(n, slip),
        target.reshape(n, 4, 3),
        reward.reshape(n, 4, 3),
        start=index[MAZE_START] * 8,
        states=[f"({x},{y}) flags {''.join(str(f >> i & 1) for i in range(3))}" for x, y in cells for f in range(8)],
        actions=_NAMES,
    )


def _chances(n_states: int, slip: float) -> np.ndarray:
    return np.broadcast_to([1.0 - slip, slip / 2, slip / 2], (n_states, 4, 3))


def _targets(cells: Iterable[Cell]) -> np.ndarray:
    """Cell reached `[cell, action, outcome]`."""
    cells = list(cells)
    index = {cell: i for i, cell in enumerate(cells)}
    moved = np.array([[index.get((x + dx, y + dy), i) for dx, dy in _MOVES] for i, (x, y) in enumerate(cells)])
    turned = np.array([[(a + turn) % 4 for turn in _TURNS] for a in range(4)])
    return np.ascontiguousarray(moved[:, turned])
