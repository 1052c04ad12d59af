"""Policies in the place of agents: what `play` makes of one, and one from a file."""

from pathlib import Path

from beliefbound.base.errors import PolicyError
from beliefbound.bounds.policy_files import load_policy
from beliefbound.lab.engine.protocol import CompiledAgent, setting_of
from beliefbound.lab.engine.table_policy import table_machine
from beliefbound.lab.envs.environment import Environment
from beliefbound.models.evaluation import check_fits
from beliefbound.policy import MemorylessPolicy, Policy, StationaryPolicy


def saved_policy(path: Path | str, environment: Environment) -> Policy:
    """The policy of a file, to be played in an environment that it fits.

    >>> import tempfile
    >>> from beliefbound.lab.envs import make_env
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     StationaryPolicy([1, 1, 1, 1, 1]).save(f"{folder}/forward.json")
    ...     saved_policy(f"{folder}/forward.json", make_env("chain"))
    StationaryPolicy([1, 1, 1, 1, 1])
    """
    policy = load_policy(path)
    check_plays(policy, environment)
    return policy


def check_plays(policy: Policy, environment: Environment, decisions: int = 0) -> None:
    """A policy fits an environment: its states, its actions, and the decisions it has."""
    if isinstance(policy, StationaryPolicy | MemorylessPolicy):
        check_fits(policy, environment.mdp.models)
    elif (policy.n_states, policy.n_actions) != (environment.n_states, environment.n_actions):
        raise PolicyError(
            f"{policy} has {policy.n_states} states and {policy.n_actions} actions, {environment.name} has "
            f"{environment.n_states} and {environment.n_actions}"
        )
    if policy.horizon is not None and decisions > policy.horizon:
        raise PolicyError(f"{policy} has {policy.horizon} decisions, and {decisions} are to be made; play fewer steps")


def player(policy: Policy, environment: Environment, decisions: int) -> CompiledAgent | Policy:
    """A walk of its own for a policy that fits: compiled where the policy is a table."""
    check_plays(policy, environment, decisions)
    if isinstance(policy, StationaryPolicy | MemorylessPolicy):
        return CompiledAgent(repr(policy), setting_of(environment, 0.0), table_machine(policy))
    return policy.fresh()
