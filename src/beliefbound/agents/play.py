"""Play many runs of one agent on one environment, in compiled code that holds no lock.

A run has `steps` rewards `r_1 … r_steps`; its total is their sum and its utility `Σ_k γ^{k−1} r_k`. Under `standard`
accounting they are the rewards of `steps` actions. Under `paper` accounting `r_1 = 0` is the reset's, as in the paper's
experiments: `steps − 1` actions follow, and the first reward earned has weight γ. A run that enters a terminal state is
over: the rest of its rewards are 0.

Run i of a root seed has its own streams, the environment's at the address (seed, i), the same for all agents, and the
agent's at (seed, cell, i): results do not depend on how runs are split into blocks, nor on threads.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from beliefbound.agents.agent import Agent, CompiledAgent
from beliefbound.agents.policies import player
from beliefbound.envs.environment import Environment
from beliefbound.errors import ParameterError
from beliefbound.kernels import play as kernel
from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.planning.simd import copied
from beliefbound.kernels.random import uniform
from beliefbound.policy import Policy
from beliefbound.validation import FloatArray, IntArray, check_count, check_discount, check_seed

Accounting = Literal["standard", "paper"]


class Runs(NamedTuple):
    """Results of n runs.

    Attributes:
      total: `[n]`, sum of rewards.
      utility: `[n]`, discounted sum.
      curve: `[n, steps // curve_every]`, sum of the first `curve_every`, `2·curve_every`, … rewards; or `None`.
      visits: `[n, s]`, actions taken in each state; or `None`.
    """

    total: FloatArray
    utility: FloatArray
    curve: FloatArray | None
    visits: IntArray | None


def play(
    agent: Agent,
    environment: Environment,
    *,
    seed: int,
    runs: range,
    steps: int,
    discount: float | None = None,
    accounting: Accounting = "standard",
    cell: int = 0,
    curve_every: int | None = None,
    visits: bool = False,
) -> Runs:
    """Play the runs numbered `runs` of a root seed, on this thread.

    Args:
      agent: from `make_agent`, or a `Policy`, both left as they were; or any object with the three methods of `Agent`,
        which is played in plain Python and reset for every run.
      environment: what it was made for.
      seed: root seed, 0 to 2⁶³ − 1.
      runs: consecutive run numbers.
      steps: rewards in a run.
      discount: of the utility; default the environment's.
      accounting: `standard` or `paper`.
      cell: gives the agent other random numbers against the same environment noise.
      curve_every: record the total so far after every so many rewards.
      visits: record how often each state was acted in.

    >>> from beliefbound.agents import make_agent
    >>> from beliefbound.envs import make_env
    >>> environment = make_env("double-loop")
    >>> play(make_agent("oracle", environment), environment, seed=1, runs=range(2), steps=1000).total.tolist()
    [400.0, 400.0]
    """
    seed, steps, cell = check_seed(seed), check_count(steps, "steps"), check_count(cell, "cell", least=0)
    if not isinstance(runs, range) or runs.step != 1 or runs.start < 0:
        raise ParameterError(f"runs is {runs!r}; give a range of consecutive run numbers such as range(0, 100)")
    if accounting not in ("standard", "paper"):
        raise ParameterError(f"accounting is {accounting!r}; give 'standard' or 'paper'")
    every = steps + 1 if curve_every is None else check_count(curve_every, "curve_every")
    weight = check_discount(environment.discount if discount is None else discount, steps)
    n = len(runs)
    results = (
        np.zeros(n),
        np.zeros(n),
        np.zeros((n, steps // every)),
        np.zeros((n, environment.n_states if visits else 0), dtype=np.int64),
    )
    address = (seed, cell, runs.start, steps)
    skipped = int(accounting == "paper")
    if isinstance(agent, Policy):
        agent = player(agent, environment, steps - skipped)
    if isinstance(agent, CompiledAgent):
        _check_fit(agent, environment)
        state = agent.machine.state
        copy = type(state)(*(copied(x) if isinstance(x, np.ndarray) else x for x in state))
        agent.machine.module.play(
            copy, environment.outcomes, environment.terminal, address, weight, skipped, every, results
        )
    else:
        _play_plain(agent, environment, address, weight, skipped, every, results)
    total, utility, curve, counts = results
    return Runs(total, utility, None if curve_every is None else curve, counts if visits else None)


def _check_fit(agent: CompiledAgent, environment: Environment) -> None:
    setting = agent.setting
    if (setting.n_states, setting.n_actions) != (environment.n_states, environment.n_actions):
        raise ParameterError(f"{agent} was not made for {environment}; call make_agent(name, environment)")
    low, high = environment.reward_range
    if low < setting.reward_range[0] or high > setting.reward_range[1]:
        raise ParameterError(
            f"{agent} expects rewards in {setting.reward_range}, {environment} pays {low:g} to {high:g}"
        )


def _play_plain(
    agent: Any,
    environment: Environment,
    address: tuple[int, int, int, int],
    discount: float,
    skipped: int,
    every: int,
    results: tuple[FloatArray, FloatArray, FloatArray, IntArray],
) -> None:
    """The loop of `kernels.play`, for agents that are not compiled."""
    seed, cell, first, steps = address
    total, utility, curve, visits = results
    for i in range(len(total)):
        luck = kernel.environment_stream(seed, first + i)
        agent.reset(int(kernel.agent_stream(seed, cell, first + i)[0] >> np.uint64(1)))
        s = int(begin(environment.outcomes, uniform(luck)))
        rewards = np.zeros(steps)
        for k in range(skipped, steps):
            if visits.shape[1]:
                visits[i, s] += 1
            a = agent.act(s)
            rewards[k], t = step(environment.outcomes, s, a, uniform(luck))
            agent.observe(s, a, float(rewards[k]), int(t))
            s = int(t)
            if environment.terminal[s]:
                break
        total[i] = rewards.sum()
        utility[i] = rewards @ discount ** np.arange(steps)
        curve[i] = rewards.cumsum()[every - 1 :: every]
