"""Brackets of hidden-model problems against SARSOP, ten seconds each on one thread.

A finite belief is a POMDP whose observed part is the state and whose hidden part, the model, never changes. SARSOP
(Kurniawati, Hsu & Lee 2008; the C++ program `pomdpsol` of the APPL toolkit) is the usual solver of such problems. Its
figures below were measured once, on one thread of a machine like those of a continuous-integration service, from the
same problems in its own file format; they are constants here, because the program is not part of this project.

The problems, made from fixed seeds:

species-A   adaptive management: 2 states (threatened, safe), A actions with costs, one model for every stationary
            policy, the mean of all parameter draws under which it is optimal. Rewards known.
bandit-K-A  K models of a bandit with A Bernoulli arms, kept as 2 states (the last pull paid or not). Rewards known.
maze-L-G    an L × L grid with one of G goals, slips of 0.2; the goal pays 1 and sends back. Rewards unobserved.
chain-K     K models from the Dirichlet(1/5) prior of Chain, its rewards known.

With the name of a folder in BELIEFBOUND_RACE, the problems are read from model folders of these names in it instead.
"""

import os
import time
from pathlib import Path

import numpy as np

from beliefbound.beliefs import FiniteBelief
from beliefbound.beliefs.folder import read_models
from beliefbound.bounds.bracket import Bracket, bracket

SECONDS = 10.0
_SOLVED = 1e-6  # of the value: a bracket that is no wider
SARSOP = {
    "species-3": (83.828, 89.385),
    "species-4": (83.928, 96.565),
    "species-6": (82.389, 107.615),
    "bandit-16-3": (13.733, 14.083),
    "bandit-64-5": (15.064, 15.819),
    "maze-4-8": (3.57641, 3.57641),
    "maze-5-16": (2.313, 2.545),
    "chain-16": (7.0853, 7.1297),
    "chain-64": (29.145, 36.982),
}


def species(n_actions: int, seed: int) -> tuple[FiniteBelief, float]:
    draws, discount = 40_000, 0.9
    rewards = np.zeros((2, n_actions))
    rewards[0] = -np.round(np.linspace(0, 5, n_actions), 2)
    rewards[1] = 20 + rewards[0]
    safe = np.random.default_rng(seed).random((draws, 2, n_actions))  # the chance to be safe next
    values = np.zeros((draws, 2))
    for _ in range(250):
        q = rewards + discount * (safe * values[:, 1, None, None] + (1 - safe) * values[:, 0, None, None])
        values = q.max(-1)
    best, models = q.argmax(-1), []
    for i in range(n_actions):
        for j in range(n_actions):
            mine = (best[:, 0] == i) & (best[:, 1] == j)
            if mine.sum() >= 20:
                models.append(safe[mine].mean(0))
    chances = np.array(models)
    return _belief(np.stack([1 - chances, chances], -1), rewards), discount


def bandit(n_models: int, n_arms: int, seed: int) -> tuple[FiniteBelief, float]:
    paid = np.random.default_rng(seed).beta(0.5, 0.5, (n_models, n_arms))
    rewards = np.zeros((2, n_arms))
    rewards[1] = 1.0  # for the last pull, on leaving state 1
    return _belief(np.stack([1 - paid, paid], -1)[:, None].repeat(2, 1), rewards), 0.95


def maze(side: int, n_goals: int, seed: int) -> tuple[FiniteBelief, float]:
    slip, n_states = 0.2, side * side
    goals = np.random.default_rng(seed).choice(np.arange(1, n_states), n_goals, replace=False)
    moves = [(-1, 0), (0, 1), (1, 0), (0, -1)]
    p, r = np.zeros((n_goals, n_states, 4, n_states)), np.zeros((n_goals, n_states, 4))
    for m, goal in enumerate(goals):
        for s in range(n_states):
            for a in range(4):
                if s == goal:
                    p[m, s, a, 0], r[m, s, a] = 1.0, 1.0
                    continue
                for b, chance in ((a, 1 - slip), ((a + 1) % 4, slip / 2), ((a - 1) % 4, slip / 2)):
                    x, y = s // side + moves[b][0], s % side + moves[b][1]
                    p[m, s, a, x * side + y if 0 <= x < side and 0 <= y < side else s] += chance
    return FiniteBelief(p, r, reward_signal="unobserved", initial=0), 0.95


def chain(n_models: int, seed: int, discount: float) -> tuple[FiniteBelief, float]:
    p = np.random.default_rng(seed).dirichlet(np.full(5, 0.2), (n_models, 5, 2))
    rewards = np.zeros((5, 2))
    rewards[:, 0], rewards[:, 1] = 0.2 * 0.8, 0.2 * 0.2
    rewards[4] += 0.2 * 1.0, 0.8
    return _belief(p / p.sum(-1, keepdims=True), rewards), discount


def _belief(p: np.ndarray, rewards: np.ndarray) -> FiniteBelief:
    return FiniteBelief(p, np.repeat(rewards[None], len(p), axis=0), reward_signal="known", initial=0)


PROBLEMS = {
    "species-3": lambda: species(3, 1),
    "species-4": lambda: species(4, 2),
    "species-6": lambda: species(6, 3),
    "bandit-16-3": lambda: bandit(16, 3, 4),
    "bandit-64-5": lambda: bandit(64, 5, 5),
    "maze-4-8": lambda: maze(4, 8, 6),
    "maze-5-16": lambda: maze(5, 16, 7),
    "chain-16": lambda: chain(16, 8, 0.95),
    "chain-64": lambda: chain(64, 9, 0.99),
}


def problem(name: str) -> tuple[FiniteBelief, float]:
    """A problem of the race, and its discount."""
    place = os.environ.get("BELIEFBOUND_RACE")
    if place is None:
        return PROBLEMS[name]()
    folder = read_models(Path(place) / name)
    return folder.training, folder.discount


def proven(found: Bracket) -> tuple[float, float]:
    """The best ends that hold with certainty."""
    lower, upper = ([b.value for b in found.bounds if b.exact and b.side == side] for side in ("lower", "upper"))
    return max(lower), min(upper)


def main() -> None:
    print(f"{'problem (models)':<18}{'SARSOP, 10 s':>22}{'ours, 95%':>24}{'times':>8}{'ours, proven':>24}{'effort':>8}")
    for name, (low, high) in SARSOP.items():
        belief, discount = problem(name)
        bracket(belief, discount=discount, effort=1, rng=1, threads=1)  # to load what is compiled
        began = time.perf_counter()
        found = bracket(belief, discount=discount, time_limit=SECONDS, rng=1, threads=1)
        seconds, ends = time.perf_counter() - began, proven(found)
        solved = found.width <= _SOLVED * abs(found.upper.value)
        times = "solved" if solved else f"{(high - low) / found.width:.1f}"
        print(
            f"{name + f' ({belief.n_models})':<18}{f'[{low:.5g}, {high:.5g}]':>22}"
            f"{f'[{found.lower.value:.5f}, {found.upper.value:.5f}]':>24}{times:>8}"
            f"{f'[{ends[0]:.5f}, {ends[1]:.5f}]':>24}{found.effort:>8}  {seconds:.1f} s"
        )


if __name__ == "__main__":
    main()
