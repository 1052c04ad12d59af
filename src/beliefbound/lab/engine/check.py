"""`check_agent`: what every agent must do, ours or yours, as one function to call in a test.

On small environments (one with slips, one with actions that some states do not offer, one with a single state):

1. actions are whole numbers that the state offers;
2. equal seeds give equal actions, from a fresh agent, after a reset, and while other agents are at work;
3. it survives transitions that cannot happen, rewards at the ends of their range, `act` without `observe` and `observe`
   without `act`;
4. it neither draws from nor reseeds the global generators of `random` and NumPy.
"""

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from beliefbound.base.errors import ObservationError
from beliefbound.base.kits import global_state
from beliefbound.lab.engine.play import action_check
from beliefbound.lab.engine.protocol import Agent, Factory
from beliefbound.lab.envs.environment import Environment, environment_from_mdp
from beliefbound.lab.envs.registry import make_env
from beliefbound.models.mdp import MDP
from beliefbound.policy.stepping import transitions


def check_agent(factory: Factory, *, steps: int = 60, on: Sequence[Environment] = ()) -> None:
    """Raise `AssertionError`, saying what is wrong, unless the agent keeps the protocol.

    Args:
      factory: makes a new agent for an `Environment`.
      steps: length of the trajectories tried.
      on: environments to try it on, in place of the small ones.

    >>> from beliefbound.lab.agents import make_agent
    >>> check_agent(lambda environment: make_agent("qlearning:epsilon=0.2", environment))
    """
    before = global_state()
    for environment in on or _environments():
        agent = factory(environment)
        assert isinstance(agent, Agent), f"{agent!r} must have the methods reset, act and observe"
        first = _walk(agent, environment, seed=5, steps=steps)
        assert _walk(agent, environment, seed=5, steps=steps) == first, _said(
            environment, "after a reset with the same seed it acts differently: reset must forget everything"
        )
        assert _walk(factory(environment), environment, seed=5, steps=steps) == first, _said(
            environment, "two agents with the same seed act differently: behaviour may depend on the seed only"
        )
        assert _walk(_Interleaved(factory, environment), environment, seed=5, steps=steps) == first, _said(
            environment, "it acts differently while another agent is at work"
        )
        _strange(factory(environment), environment, steps)
    assert global_state() == before, (
        "it used or reseeded a global random generator; draw from one seeded in reset(seed) instead"
    )


def _environments() -> list[Environment]:
    p = np.array([[[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]], [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]] * 2])
    partial = MDP(
        p, [[0.0, -1.0], [2.0, 0.0], [0.0, 1.0]], initial=0, available=[[True, True], [False, True], [True, False]]
    )
    single = MDP(np.ones((1, 3, 1)), [[0.0, 1.0, 0.5]], initial=0)
    return [
        make_env("chain"),
        environment_from_mdp(partial, name="an environment with unavailable actions"),
        environment_from_mdp(single, name="an environment of one state"),
    ]


def _walk(agent: Agent, environment: Environment, *, seed: int, steps: int) -> list[int]:
    """Actions of an agent in true transitions, from a reset on."""
    rng = np.random.default_rng(1)
    agent.reset(seed)

    def follow(s: int, a: int) -> tuple[float, int]:
        tables = environment.outcomes
        o = int(np.searchsorted(tables.cumulative[s, a], rng.random(), side="right"))
        return float(tables.reward[s, a, o]), int(tables.next_state[s, a, o])

    walk = transitions(agent, 0, follow, check=partial(_checked, agent, environment))
    return [each.action for each in islice(walk, steps)]


def _checked(agent: Agent, environment: Environment, s: int, chosen: Any) -> int:
    try:
        return action_check(agent, environment)(s, chosen)
    except ObservationError as cause:
        raise AssertionError(_said(environment, str(cause))) from None


class _Interleaved:
    """An agent, and another of its kind that does in turn what it does."""

    def __init__(self, factory: Factory, environment: Environment) -> None:
        self.one, self.other, self.environment = factory(environment), factory(environment), environment

    def reset(self, seed: int) -> None:
        self.one.reset(seed)
        self.other.reset(seed + 1)

    def act(self, state: int) -> int:
        chosen = self.one.act(state)
        _checked(self.other, self.environment, state, self.other.act(state))
        return chosen

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        self.other.observe(state, action, reward, next_state)
        self.one.observe(state, action, reward, next_state)


def _strange(agent: Agent, environment: Environment, steps: int) -> None:
    """Transitions that cannot happen, extreme rewards, and calls out of turn."""
    rng = np.random.default_rng(2)
    agent.reset(7)
    low, high = environment.reward_range
    for k in range(steps):
        s, t = (int(x) for x in rng.integers(environment.n_states, size=2))
        a = int(rng.choice(np.flatnonzero(environment.mdp.available[s])))
        if k % 3 != 0:
            _checked(agent, environment, s, agent.act(s))
        if k % 3 != 1:
            agent.observe(s, a, high if k % 2 else low, t)
        _checked(agent, environment, t, agent.act(t))


def _said(environment: Environment, what: str) -> str:
    return f"on {environment.name}: {what}"
