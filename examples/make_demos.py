"""Writes what an expert does in a garden of 5 × 5 cells: python examples/make_demos.py [garden.csv] [steps]

The expert walks – up, right, down, left, and one step in ten goes anywhere – to the pond (cell 22), around the thorns
(cell 12), and stays there; nobody wrote down that the pond is worth 1, the thorns 0 and everything else 0.2. Each walk
begins anywhere and has 20 steps. The expert is softmax with rationality 20, at a discount of 0.95.
"""

import csv
import sys

import numpy as np

from beliefbound import MDP, optimal_values

SIDE, DISCOUNT, RATIONALITY, SLIP, STEPS = 5, 0.95, 20.0, 0.1, 20
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
NAMES = ("up", "right", "down", "left")


def garden() -> tuple[np.ndarray, np.ndarray]:
    """Transitions `[s,a,t]` and the rewards `[s]` that nobody wrote down."""
    n = SIDE * SIDE
    transitions = np.zeros((n, len(MOVES), n))
    for s in range(n):
        y, x = divmod(s, SIDE)
        to = [min(max(y + dy, 0), SIDE - 1) * SIDE + min(max(x + dx, 0), SIDE - 1) for dy, dx in MOVES]
        for a in range(len(MOVES)):
            for b, t in enumerate(to):
                transitions[s, a, t] += SLIP / len(MOVES) + (1.0 - SLIP) * (a == b)
    rewards = np.full(n, 0.2)
    rewards[22], rewards[12] = 1.0, 0.0
    return transitions, rewards


def walks(steps: int, rng: np.random.Generator) -> list[tuple]:
    """Rows: walk, step, cell, action, next cell."""
    transitions, rewards = garden()
    q = optimal_values(MDP(transitions, np.repeat(rewards[:, None], len(MOVES), axis=1)), discount=DISCOUNT).q[0]
    chances = np.exp(RATIONALITY * (q - q.max(axis=1, keepdims=True)))
    chances /= chances.sum(axis=1, keepdims=True)
    rows, s = [], 0
    for k in range(steps):
        walk, t = divmod(k, STEPS)
        s = int(rng.integers(len(q))) if t == 0 else s
        a = int(rng.choice(len(MOVES), p=chances[s]))
        after = int(rng.choice(len(q), p=transitions[s, a]))
        rows.append((walk, t, s, NAMES[a], after))
        s = after
    return rows


def main() -> None:
    file = sys.argv[1] if len(sys.argv) > 1 else "garden.csv"
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    with open(file, "w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(("episode", "t", "state", "action", "next_state"))
        writer.writerows(walks(steps, np.random.default_rng(7)))
    print(f"{file}: {steps} steps")


if __name__ == "__main__":
    main()
