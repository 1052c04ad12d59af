"""Environments drawn from a prior: the Bayesian benchmark protocol of Castronovo, Ernst, Couëtoux & Fonteneau (2016).

The protocol draws the *true* MDP from a known prior, many times, and scores the mean discounted return. Each prior is a
product of Dirichlets with concentration 1 on the successors a pair may have and 0 elsewhere, with known rewards
`[s,a,t]` paid on arrival. `prior-chain:seed=7` is one draw; in experiments, `drawn-chain` draws another for every run:
run r plays `prior-chain:seed=r`, whoever the agent is. Agents with `prior=environment` are told the prior that it came
from, agents with `prior=inaccurate` its rewards, and that any transition is possible.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray, frozen
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.rewards import KnownRewards
from beliefbound.lab.envs.environment import Environment, from_outcomes
from beliefbound.lab.envs.registry import SEED, env

Tables = tuple[FloatArray, FloatArray]

_GOAL = 24  # of the grid


def benchmark_prior(kind: str) -> Tables:
    """`(concentration, rewards)`, each `[s,a,t]`, of `"chain"`, `"double-loop"` or `"grid"`.

    >>> concentration, rewards = benchmark_prior("chain")
    >>> concentration[1, 0].tolist(), rewards[1, 0].tolist()
    ([1.0, 0.0, 1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0, 10.0])
    """
    if kind not in _PRIORS:
        raise ParameterError(f"there is no benchmark prior {kind!r}; known: {', '.join(_PRIORS)}")
    concentration, rewards = _PRIORS[kind]()
    return frozen(concentration), frozen(rewards)


@env("prior-chain", summary="a chain drawn from a prior (Castronovo 2016)", parameters=(SEED,))
def prior_chain(name: str, *, seed: int) -> Environment:
    """Generalised chain: 5 states, 3 actions, each of which leads forward or back to the start, with unknown chances.

    Arriving in state 0 pays 2, arriving in state 4 pays 10.
    """
    return _draw(name, "chain", seed)


@env("prior-double-loop", summary="a double loop drawn from a prior (Castronovo 2016)", parameters=(SEED,))
def prior_double_loop(name: str, *, seed: int) -> Environment:
    """Generalised double loop: 9 states, 2 actions. From state 0 to 1 or 5; each with unknown chances.

    1 → 2 → 3 → 4 → 0 is certain and pays 1 at its end; 5, 6 and 7 lead on or back to 0; 8 → 0 is certain and pays 2.
    """
    return _draw(name, "double-loop", seed)


@env("prior-grid", summary="a 5 × 5 grid drawn from a prior (Castronovo 2016)", parameters=(SEED,))
def prior_grid(name: str, *, seed: int) -> Environment:
    """5 × 5 grid; left, right, up and down succeed with an unknown chance in each cell and otherwise stay.

    A move into the corner opposite the start pays 10 and leads to the start: the corner itself is never occupied.
    """
    return _draw(name, "grid", seed)


@env("drawn-chain", summary="prior-chain, another draw for every run of an experiment")
def drawn_chain(name: str) -> Environment:
    """Run r plays `prior-chain:seed=r`."""
    return _one_per_run(name, "chain")


@env("drawn-double-loop", summary="prior-double-loop, another draw for every run of an experiment")
def drawn_double_loop(name: str) -> Environment:
    """Run r plays `prior-double-loop:seed=r`."""
    return _one_per_run(name, "double-loop")


@env("drawn-grid", summary="prior-grid, another draw for every run of an experiment")
def drawn_grid(name: str) -> Environment:
    """Run r plays `prior-grid:seed=r`."""
    return _one_per_run(name, "grid")


def belief_of(kind: str) -> DirichletBelief:
    """The benchmark prior as a belief.

    >>> belief_of("grid")
    DirichletBelief(25 states, 4 actions, KnownRewards)
    """
    concentration, rewards = benchmark_prior(kind)
    known = KnownRewards(rewards)  # on arrival, of impossible ones too: a wider prior asks for them
    return DirichletBelief(*concentration.shape[:2], concentration=concentration, rewards=known, initial=0)


def _chain() -> Tables:
    concentration, rewards = np.zeros((5, 3, 5)), np.zeros((5, 3, 5))
    for s in range(5):
        concentration[s, :, [0, min(s + 1, 4)]] = 1.0
    rewards[:, :, 0], rewards[:, :, 4] = 2.0, 10.0
    return concentration, rewards


def _double_loop() -> Tables:
    concentration, rewards = np.zeros((9, 2, 9)), np.zeros((9, 2, 9))
    successors = [[1, 5], [2], [3], [4], [0], [0, 6], [0, 7], [0, 8], [0]]
    for s, targets in enumerate(successors):
        concentration[s][:, targets] = 1.0
    rewards[4, :, 0], rewards[8, :, 0] = 1.0, 2.0
    return concentration, rewards


def _grid() -> Tables:
    concentration, rewards = np.zeros((25, 4, 25)), np.zeros((25, 4, 25))
    for s in range(24):
        row, column = divmod(s, 5)
        for a, (down, right) in enumerate(((0, -1), (0, 1), (-1, 0), (1, 0))):
            concentration[s, a, s] = 1.0
            if 0 <= row + down < 5 and 0 <= column + right < 5:
                to = 5 * (row + down) + column + right
                concentration[s, a, 0 if to == _GOAL else to] = 1.0
                rewards[s, a, 0] = 10.0 if to == _GOAL else 0.0
    concentration[_GOAL, :, 0] = 1.0
    return concentration, rewards


_PRIORS: dict[str, Callable[[], Tables]] = {"chain": _chain, "double-loop": _double_loop, "grid": _grid}


def _one_per_run(name: str, kind: str) -> Environment:
    return replace(_draw(name, kind, 0), of_run=lambda run: _draw(f"prior-{kind}:seed={run}", kind, run))


def _draw(name: str, kind: str, seed: int) -> Environment:
    """One MDP: normalised exponentials on each support are a Dirichlet of concentration 1."""
    concentration, rewards = _PRIORS[kind]()
    n_outcomes = int(concentration.sum(axis=2).max())
    target = np.argsort(concentration == 0.0, axis=2, kind="stable")[:, :, :n_outcomes]  # supports first, in order
    possible = np.take_along_axis(concentration, target, axis=2)
    weights = np.random.default_rng(seed).standard_exponential(possible.shape) * possible
    probability = weights / weights.sum(axis=2, keepdims=True)
    return from_outcomes(
        name,
        probability,
        target,
        np.take_along_axis(rewards, target, axis=2),
        reward_range=(0.0, float(rewards.max())),
        prior=lambda: belief_of(kind),
    )
