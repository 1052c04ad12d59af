"""Bernoulli bandits: one state, and arms that pay 1 with probabilities of their own."""

from collections.abc import Callable

import numpy as np

from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.rewards import BetaRewards
from beliefbound.envs.environment import Environment, check_size, from_outcomes
from beliefbound.envs.registry import SEED, env
from beliefbound.errors import ParameterError
from beliefbound.grammar import Number, Text
from beliefbound.validation import FloatArray

MAX_ARMS = 1_000_000


@env(
    "bandit",
    summary="one state; arms that pay 1 or 0 (means=0.3/0.7, or drawn uniformly)",
    parameters=(
        Number("arms", None, 1, MAX_ARMS, "actions", whole=True, by_position=True, auto="2"),
        Text("means", "drawn", "chances of the arms, such as 0.3/0.7, or drawn", by_position=False),
        SEED,
    ),
)
def bandit(name: str, *, arms: int | None, means: str, seed: int) -> Environment:
    """Bernoulli bandit: action a pays 1 with probability `means[a]`, else 0, and the state stays.

    Without `means` they are uniform on [0, 1], independent, drawn from `seed`: the prior `environment` is Beta(1, 1).
    """
    if means == "drawn":
        chance = np.random.default_rng([seed, arms or 2]).random(arms or 2)
    else:
        if seed != 0:
            raise ParameterError(f"{name!r}: seed has no effect where means are given; drop one of them")
        chance = _chances(name, means)
        if arms not in (None, len(chance)):
            raise ParameterError(f"{name!r}: arms is {arms} but {len(chance)} means are given; drop arms")
    n = len(chance)
    check_size(name, 2 * n)
    probability = np.stack([chance, 1.0 - chance], axis=1)[None]
    reward = np.broadcast_to([1.0, 0.0], (1, n, 2))
    drawn_from = _uniform(n) if means == "drawn" else None
    return from_outcomes(
        name,
        probability,
        np.zeros((1, n, 2), dtype=np.int64),
        np.array(reward),
        reward_range=(0.0, 1.0),
        prior=drawn_from,
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
