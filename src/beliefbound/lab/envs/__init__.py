"""Environments to learn in: by name, from a model folder, from gymnasium, from any MDP. Files are found by name."""

from beliefbound.lab.envs.adapter import DiscreteEnv, gymnasium_env
from beliefbound.lab.envs.benchmark import benchmark_prior
from beliefbound.lab.envs.environment import Environment, environment_from_mdp, from_outcomes
from beliefbound.lab.envs.registry import env, environments, make_env

__all__ = [
    "DiscreteEnv",
    "Environment",
    "benchmark_prior",
    "env",
    "environment_from_mdp",
    "environments",
    "from_outcomes",
    "gymnasium_env",
    "make_env",
]
