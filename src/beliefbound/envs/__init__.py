"""Environments to learn in: by name, from any MDP, to and from gymnasium."""

from beliefbound.envs.adapter import DiscreteEnv, as_gymnasium, from_gymnasium_env
from beliefbound.envs.benchmark import benchmark_prior
from beliefbound.envs.environment import Environment, environment_from_mdp
from beliefbound.envs.registry import environments, make_env

__all__ = [
    "DiscreteEnv",
    "Environment",
    "as_gymnasium",
    "benchmark_prior",
    "environment_from_mdp",
    "environments",
    "from_gymnasium_env",
    "make_env",
]
