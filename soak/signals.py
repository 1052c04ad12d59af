"""Brackets of tiny beliefs under every reward signal, against exact trees of all histories.

`python -m soak.signals --instances 10000 --seed 0` prints every false certificate, and a summary; it fails if there is
one. Half of the problems have a horizon, and one exact value. The others go on for ever: their trees end in exact
values of models known and of stationary policies, so that the true value lies between two numbers that are close.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import beliefbound as bb

SIGNALS = ("known", "deterministic", "bernoulli", "unobserved")
_ROUNDING = 1e-9  # of values of order 1, in the trees
_MOST_EFFORT = 4
Array = np.ndarray[Any, Any]
Ends = Callable[[Array, int], tuple[float, float]]


def instance(rng: np.random.Generator, signal: str) -> tuple[Array, Array, Array]:
    """`(P[m,s,a,t], r[m,s,a], w[m])` of two to four models; rewards in [0, 1]."""
    n_models, n_states, n_actions = int(rng.integers(2, 5)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    P = rng.dirichlet(np.full(n_states, 0.7), (n_models, n_states, n_actions))
    P = np.where(P < 0.05, 0.0, P)  # outcomes that rule models out
    P /= P.sum(axis=-1, keepdims=True)
    r = rng.random((n_models, n_states, n_actions))
    if signal == "known":
        r = np.repeat(r[:1], n_models, axis=0)
    if signal == "deterministic":
        r = np.floor(3 * r) / 3  # ties between models
    return P, r, rng.dirichlet(np.ones(n_models))


def shown(r: Array, s: int, a: int, signal: str) -> list[Array]:
    """For each thing that may be seen of the reward, its probability under each model."""
    if signal == "deterministic":
        return [(r[:, s, a] == value).astype(float) for value in np.unique(r[:, s, a])]
    return [r[:, s, a], 1.0 - r[:, s, a]] if signal == "bernoulli" else [np.ones(len(r))]


def tree(P: Array, r: Array, b: Array, s: int, discount: float, left: int, signal: str, ends: Ends) -> Array:
    """`[lower, upper]` at unnormalised weights: every history of `left` steps, then `ends`."""
    if not b.any():
        return np.zeros(2)
    if left == 0:
        return np.array(ends(b, s))
    best = np.full(2, -np.inf)
    for a in range(r.shape[2]):
        total = np.full(2, b @ r[:, s, a])
        for t, seen in itertools.product(range(r.shape[1]), shown(r, s, a, signal)):
            total += discount * tree(P, r, b * seen * P[:, s, a, t], t, discount, left - 1, signal, ends)
        best = np.maximum(best, total)
    return best


def ends_for_ever(P: Array, r: Array, discount: float) -> Ends:
    """The best stationary policy from below, each model known from above, for ever."""
    n_models, n_states, n_actions = r.shape
    states, values = np.arange(n_states), []
    for actions in itertools.product(range(n_actions), repeat=n_states):
        system = np.eye(n_states) - discount * P[:, states, actions]
        values.append(np.linalg.solve(system, r[:, states, actions][..., None])[..., 0])
    held = np.array(values)  # [policy,m,s]
    best = held.max(axis=0)  # a model's optimal policy is stationary, and best in every state at once
    return lambda b, s: (float((held[:, :, s] @ b).max()), float(best[:, s] @ b))


def false_bounds(seed: int) -> list[str]:
    """What is false about one belief."""
    rng = np.random.default_rng([seed, 11])
    signal, endless = SIGNALS[seed % 4], seed // 4 % 2 == 0
    P, r, w = instance(rng, signal)
    discount = float(rng.choice([0.3, 0.5, 0.7] if endless else [0.5, 0.9, 1.0]))
    outcomes = r.shape[1] * r.shape[2] * (1 + (signal in ("deterministic", "bernoulli")))
    depth = 1 + int(np.log(1000) / np.log(outcomes))
    depth = depth if endless else int(rng.integers(1, depth + 1))
    s, task = int(rng.integers(r.shape[1])), {"discount": discount, "horizon": None if endless else depth}
    ends = ends_for_ever(P, r, discount) if endless else lambda b, s: (0.0, 0.0)
    low, high = tree(P, r, w, s, discount, depth, signal, ends)
    belief = bb.FiniteBelief(P, r, w, reward_signal=signal, initial=s)
    found = bb.bracket(belief, effort=int(rng.integers(1, _MOST_EFFORT + 1)), rng=seed, threads=1, **task)
    return list(contradicted(found, low, high))


def contradicted(found: bb.Bracket, low: float, high: float) -> Iterator[str]:
    """Proven bounds that leave no room for a value between `low` and `high`."""
    for bound in found.bounds:
        if bound.exact and bound.side == "lower" and bound.value > high + _ROUNDING:
            yield f"at least {bound.value!r} ({bound.method}), but it is at most {high!r}"
        if bound.exact and bound.side == "upper" and bound.value < low - _ROUNDING:
            yield f"at most {bound.value!r} ({bound.method}), but it is at least {low!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=10_000, help="beliefs")
    parser.add_argument("--seed", type=int, default=0, help="number of the first one")
    arguments = parser.parse_args()
    began, false = time.process_time(), 0
    for n, seed in enumerate(range(arguments.seed, arguments.seed + arguments.instances), start=1):
        for sentence in false_bounds(seed):
            false += 1
            print(f"{seed}: {sentence}", flush=True)
        if n % 1000 == 0 or n == arguments.instances:
            print(f"{false} false certificates of {n} beliefs, {time.process_time() - began:.0f} s", flush=True)
    sys.exit(1 if false else 0)


if __name__ == "__main__":
    main()
