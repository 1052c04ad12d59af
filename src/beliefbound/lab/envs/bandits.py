"""Bernoulli bandits: one state, and arms that pay 1 with probabilities of their own."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number, Text
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.rewards import BetaRewards
from beliefbound.lab.envs.environment import Environment, check_size, from_outcomes
from beliefbound.lab.envs.registry import SEED, env

_DRAWN = ("means", ("drawn",))


@env(
    "bandit",
    summary="one state; arms that pay 1 or 0 (means=0.3/0.7, or drawn uniformly)",
    parameters=(
        Number("arms", 2, 1, 1_000_000, "actions", whole=True, by_position=True, needs=_DRAWN),
        Text("means", "drawn", "chances of the arms, such as 0.3/0.7, or drawn", by_position=False),
        replace(SEED, needs=_DRAWN),
    ),
)
def bandit(name: str, *, arms: int, means: str, seed: int) -> Environment:
    """Bernoulli bandit: action a pays 1 with probability `means[a]`, else 0, and the state stays.

    Without `means` they are uniform on [0, 1], independent, drawn from `seed`: the prior `environment` is Beta(1, 1).
    """
    drawn = means == "drawn"
    chance = np.random.default_rng([seed, arms]).random(arms) if drawn else _chances(name, means)
    n = len(chance)
    check_size(name, 2 * n)
    probability = np.stack([chance, 1.0 - chance], axis=1)[None]
    reward = np.broadcast_to([1.0, 0.0], (1, n, 2))
    return from_outcomes(
        name,
        probability,
        np.zeros((1, n, 2), dtype=np.int64),
        np.array(reward),
        reward_range=(0.0, 1.0),
        prior=_uniform(n) if drawn else None,
    )


def _uniform(arms: int) -> Callable[[], DirichletBelief]:
    return lambda: DirichletBelief(1, arms, rewards=BetaRewards())


def _chances(name: str, means: str) -> FloatArray:
    """The numbers between the slashes."""
    try:
        chance = np.array([float(x) for x in means.split("/")])
    except ValueError:
        chance = np.array([np.nan])
    if not ((chance >= 0.0) & (chance <= 1.0)).all():
        raise ParameterError(f"{name!r}: means is {means!r}; give probabilities with slashes between, such as 0.3/0.7")
    return chance
