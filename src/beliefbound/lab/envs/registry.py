"""Environments by name: `chain`, `grid:5`, `garnet:50,4,5,seed=3`. `@env` registers one, `make_env` makes one."""

from collections.abc import Callable

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number, Parameter
from beliefbound.base.plugins import Build, Registry, blamed
from beliefbound.lab.envs.environment import Environment

ENVIRONMENTS = Registry("environment", group="beliefbound.envs", example="grid:5", package="beliefbound.lab.envs")

SLIP = Number("slip", 0.2, 0.0, 1.0, "probability that a move goes wrong")
SEED = Number("seed", 0, 0, 2**63 - 1, "of the random numbers that make it", whole=True)


def env(
    name: str, *, summary: str, parameters: tuple[Parameter, ...] = (), others: bool = False
) -> Callable[[Build], Build]:
    """Register a function `build(name, **parameters) -> Environment`; it is given the canonical string as `name`.

    Args:
      name: of the family.
      summary: one line about it.
      parameters: each with a default; sizes with `by_position=True` first.
      others: accept any other `key=value` too, as text.

    >>> import numpy as np
    >>> from beliefbound import MDP
    >>> from beliefbound.lab.envs import environment_from_mdp, make_env
    >>> @env("coin", summary="heads pays 1", parameters=(Number("heads", 0.5, 0.0, 1.0, "probability"),))
    ... def coin(name, *, heads):
    ...     return environment_from_mdp(MDP(np.ones((1, 2, 1)), [[heads, 1 - heads]], initial=0), name=name)
    >>> make_env("coin:0.25")
    Environment('coin:heads=0.25', 1 states, 2 actions)
    """
    return ENVIRONMENTS.register(name, summary=summary, parameters=parameters, others=others)


def environments() -> dict[str, str]:
    """Every family with its parameters and their defaults, and one line about it.

    >>> environments()["grid:size=5,slip=0.2"]
    'square grid with slips, a prize in the far corner'
    """
    return {family.usage: family.summary for family in ENVIRONMENTS.families().values()}


def make_env(name: str) -> Environment:
    """The environment that `name` describes: a family, then values in order or by key.

    >>> make_env("chain")
    Environment('chain', 5 states, 2 actions)
    >>> make_env("garnet:50,4,5,seed=3")
    Environment('garnet:50,4,5,seed=3', 50 states, 4 actions)
    >>> make_env("gird:5")
    Traceback (most recent call last):
    beliefbound.base.errors.ParameterError: 'gird:5': there is no environment 'gird'; did you mean 'grid'? ...
    """
    parsed = ENVIRONMENTS.parse(name)
    with blamed(f"the environment {parsed}", foreign=parsed.foreign):
        made = parsed.family.build(str(parsed), **parsed.values)
        if not isinstance(made, Environment):
            raise ParameterError(f"the environment {parsed.family.name!r} makes {made!r}; it must be an Environment")
        return made
