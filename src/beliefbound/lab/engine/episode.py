"""Step an agent by hand through gymnasium: one episode, with every transition kept."""

from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray, check_count, check_seed
from beliefbound.kernels.play import agent_stream, environment_stream
from beliefbound.lab.engine.protocol import Agent, CompiledAgent, seed_of
from beliefbound.lab.envs.adapter import DiscreteEnv
from beliefbound.policy.stepping import transitions


class Episode(NamedTuple):
    """One episode: `states[k + 1]`, `actions[k]`, `rewards[k]`."""

    states: IntArray
    actions: IntArray
    rewards: FloatArray


def run_episode(agent: Agent, env: Any, *, steps: int, seed: int, run: int = 0, reset: bool = True) -> Episode:
    """Play until the episode ends or `steps` actions are made.

    Args:
      agent: any agent made for this environment.
      env: a gymnasium environment with discrete spaces, or a `DiscreteEnv`. On one of ours (`gymnasium_env`) this is
        exactly run `run` of `play(…, seed=seed)`; others are seeded from the same address.
      steps: most actions.
      seed, run: the address of the run.
      reset: forget what was learnt in earlier episodes; pass `False` to go on learning.

    >>> from beliefbound.lab.agents import make_agent
    >>> from beliefbound.lab.envs import gymnasium_env, make_env
    >>> environment = make_env("double-loop")
    >>> agent = make_agent("oracle", environment)
    >>> run_episode(agent, gymnasium_env(environment), steps=5, seed=1).states.tolist()
    [0, 5, 6, 7, 8, 0]
    """
    from beliefbound.lab.envs.tabular_env import TabularEnv  # imports gymnasium

    steps, seed, run = check_count(steps, "steps"), check_seed(seed), check_count(run, "run", least=0)
    if reset:
        own = agent_stream(seed, 0, run)
        if isinstance(agent, CompiledAgent):
            agent.reset(own)
        else:
            agent.reset(seed_of(own))
    world = env if isinstance(env, DiscreteEnv) else DiscreteEnv(env)
    noise = environment_stream(seed, run)
    if isinstance(world.env.unwrapped, TabularEnv):
        s = int(world.env.reset(options={"stream": noise})[0])
    else:
        s = world.reset(seed=int(noise[0] >> np.uint64(33)))
    states, actions, rewards, over = [s], list[int](), list[Any](), False

    def follow(s: int, a: int) -> tuple[float, int]:
        nonlocal over
        reward, t, terminated, truncated = world.step(a)
        over = terminated or truncated
        return reward, t

    for _, a, reward, t in islice(transitions(agent, s, follow), steps):
        states.append(t)
        actions.append(a)
        rewards.append(reward)
        if over:
            break
    return Episode(np.array(states), np.array(actions), np.array(rewards))
