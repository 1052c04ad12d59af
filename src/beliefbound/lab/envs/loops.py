"""Chain and double loop: the two problems of Strens (2000) that Bayesian reinforcement learning is measured on."""

import numpy as np

from beliefbound.base.grammar import Number
from beliefbound.lab.envs.environment import Environment, from_outcomes
from beliefbound.lab.envs.registry import SLIP, env


@env(
    "chain",
    summary="5 states in a row, actions that slip; the paper's benchmark (Strens 2000)",
    parameters=(Number("states", 5, 2, 100_000, "states in the row", whole=True, by_position=True), SLIP),
)
def chain(name: str, *, states: int, slip: float) -> Environment:
    """Chain: `states` states in a row, start in state 0; moves are back (action 0) and forward (action 1).

    With probability `slip` the other move is made. Back pays 2 and leads to state 0. Forward pays 10 in the last state,
    else 0, and leads to `min(s + 1, last)`. The reward follows the move that is made, not the one intended.
    With 5 states and slip 0.2 the best policy is always forward, 3.677 a step in the long run.
    """
    s = np.arange(states)
    target = np.stack([np.zeros(states, dtype=np.int64), np.minimum(s + 1, states - 1)])  # [move, s]
    pays = np.stack([np.full(states, 2.0), np.where(s == states - 1, 10.0, 0.0)])
    moves = np.array([[0, 1], [1, 0]])  # [action, outcome]: outcome 0 is the intended move, outcome 1 the slip
    probability = np.broadcast_to([1.0 - slip, slip], (states, 2, 2))
    return from_outcomes(
        name,
        probability,
        np.moveaxis(target[moves], -1, 0),
        np.moveaxis(pays[moves], -1, 0),
        reward_range=(0.0, 10.0),
        actions=("back", "forward"),
    )


@env("double-loop", summary="two loops of five steps, the better one easy to leave (Strens 2000)")
def double_loop(name: str) -> Environment:
    """Double loop: two loops of five steps that share state 0, one easy to stay in, one that pays twice as much.

    From 0 action 0 leads to 1 and action 1 to 5. Right loop 1 → 2 → 3 → 4 → 0 under any action, which pays 1 in
    state 4. Left loop 5 → 6 → 7 → 8 → 0 under action 1, which pays 2 in state 8; action 0 leads back to 0. The
    reward in states 4 and 8 is for any action. Deterministic; the optimum is 400 in 1000 steps.
    """
    target = np.array([[1, 5], [2, 2], [3, 3], [4, 4], [0, 0], [0, 6], [0, 7], [0, 8], [0, 0]])
    reward = np.zeros((9, 2))
    reward[4], reward[8] = 1.0, 2.0
    return from_outcomes(
        name, np.ones((9, 2, 1)), target[:, :, None], reward[:, :, None], actions=("right loop", "left loop")
    )
