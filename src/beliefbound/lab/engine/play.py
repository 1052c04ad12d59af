"""Play many runs of one agent on one environment, in compiled code that holds no lock.

A run has `steps` rewards `r_1 … r_steps`; its total is their sum and its utility `Σ_k γ^{k−1} r_k`. Under `standard`
accounting they are the rewards of `steps` actions. Under `paper` accounting `r_1 = 0` is the reset's, as in the paper's
experiments: `steps − 1` actions follow, and the first reward earned has weight γ. A run that enters a terminal state is
over: the rest of its rewards are 0.

Run i of a root seed has its own streams, the environment's at the address (seed, i), the same for all agents, and the
agent's at (seed, cell, i): results do not depend on how runs are split into blocks, nor on threads.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import numpy as np

from beliefbound.base.errors import ObservationError, ParameterError
from beliefbound.base.limits import RUN_BYTES
from beliefbound.base.validation import (
    as_flag,
    check_count,
    check_discount,
    check_kind,
    check_seed,
    shown,
)
from beliefbound.kernels import play as kernel
from beliefbound.kernels.lines import copied
from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.play import RunSetup
from beliefbound.kernels.random import uniform
from beliefbound.lab.engine.policies import player
from beliefbound.lab.engine.protocol import Agent, CompiledAgent, seed_of
from beliefbound.lab.engine.runs import Runs
from beliefbound.lab.envs.environment import Environment
from beliefbound.policy import Policy
from beliefbound.policy.protocol import checked_action
from beliefbound.policy.stepping import transitions

Accounting = Literal["standard", "paper"]
MAX_STEPS = 10**9


def play(
    agent: Agent,
    environment: Environment,
    *,
    seed: int,
    runs: range | int,
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
      runs: consecutive run numbers, or how many: 100 is `range(100)`.
      steps: rewards in a run.
      discount: of the utility; default the environment's.
      accounting: `standard` or `paper`.
      cell: gives the agent other random numbers against the same environment noise.
      curve_every: record the total so far after every so many rewards.
      visits: record how often each state was acted in.

    >>> from beliefbound.lab.agents import make_agent
    >>> from beliefbound.lab.envs import make_env
    >>> environment = make_env("double-loop")
    >>> play(make_agent("oracle", environment), environment, seed=1, runs=range(2), steps=1000).total.tolist()
    [400.0, 400.0]
    """
    check_kind(environment, Environment, "environment", ParameterError, fix="give one such as make_env('chain')")
    if environment.of_run is not None:
        raise ParameterError(
            f"in {environment} every run has an MDP of its own; play environment.of_run(0), or `beliefbound run`"
        )
    if not all(callable(getattr(agent, name, None)) for name in ("reset", "act", "observe")):
        raise ParameterError(f"agent is {shown(agent)}; give one such as make_agent('exploit', environment)")
    seed, steps, cell = check_seed(seed), check_count(steps, "steps"), check_count(cell, "cell", least=0)
    if steps > MAX_STEPS:
        raise ParameterError(f"steps is {steps}; it may be at most {MAX_STEPS}")
    numbers = _run_numbers(runs)
    if not isinstance(accounting, str) or accounting not in ("standard", "paper"):
        raise ParameterError(f"accounting is {shown(accounting)}; give 'standard' or 'paper'")
    every = steps + 1 if curve_every is None else min(steps + 1, check_count(curve_every, "curve_every"))
    weight = check_discount(environment.discount if discount is None else discount, steps)
    visits = as_flag(visits, "visits")
    n = len(numbers)
    if cell >= 2**63:
        raise ParameterError(f"cell is {cell}; it must be below 2**63")
    _check_memory(n, steps // every, environment.n_states if visits else 0)
    results = (
        np.zeros(n),
        np.zeros(n),
        np.zeros((n, steps // every)),
        np.zeros((n, environment.n_states if visits else 0), dtype=np.int64),
    )
    skipped, streams = int(accounting == "paper"), kernel.streams()
    setup = RunSetup(seed, cell, numbers.start, steps, weight, skipped, every, environment.terminal, *results, *streams)
    if isinstance(agent, Policy):  # tables become compiled agents; others get a walk of their own, theirs untouched
        agent = player(agent, environment, steps - setup.skipped)
    if isinstance(agent, CompiledAgent):
        _check_fit(agent, environment)
        _play_compiled(agent, environment, setup)
    else:
        _play_plain(agent, environment, setup)
    total, utility, curve, counts = results
    kept = None if curve_every is None else curve
    return Runs(total, utility, kept, counts if visits else None, None if curve_every is None else every)


def _run_numbers(runs: Any) -> range:
    if isinstance(runs, range):
        if runs.step != 1 or runs.start < 0 or max(runs.start, runs.stop) >= 2**63:
            raise ParameterError(f"runs is {runs!r}; give consecutive run numbers such as range(0, 100)")
        return runs
    return range(min(check_count(runs, "runs"), 2**62))


def _check_memory(runs: int, points: int, states: int) -> None:
    size = 8 * runs * (2 + points + states)
    if size > RUN_BYTES:
        raise ParameterError(
            f"the results of {runs} runs need {size / 1e9:.0f} GB; play fewer at a time, or a larger curve_every"
        )


def copied_state(state: Any, known: dict[int, Any] | None = None) -> Any:
    """A machine's state in arrays of its own, nested tuples included. What is one array stays one."""
    known = {} if known is None else known
    if isinstance(state, np.ndarray):  # a leaf; anything but an array or a tuple is a number, which is never shared
        return known.setdefault(id(state), copied(state)) if id(state) not in known else known[id(state)]
    return type(state)(*(copied_state(each, known) for each in state)) if isinstance(state, tuple) else state


def _check_fit(agent: CompiledAgent, environment: Environment) -> None:
    setting = agent.setting
    if (setting.n_states, setting.n_actions) != (environment.n_states, environment.n_actions):
        raise ParameterError(f"{agent} was not made for {environment}; call make_agent(name, environment)")
    low, high = environment.reward_range
    if low < setting.reward_range[0] or high > setting.reward_range[1]:
        raise ParameterError(
            f"{agent} expects rewards in {setting.reward_range}, {environment} pays {low:g} to {high:g}"
        )


def _play_compiled(agent: CompiledAgent, environment: Environment, setup: RunSetup) -> None:
    """The loop of `kernels.play` on a copy of the agent's state, or run by run where each begins with its own plan."""
    plan, outcomes = agent.machine.plan, environment.outcomes
    try:
        if plan is None:
            agent.enter(kernel.Request(), copied_state(agent.machine.state), outcomes, setup)
            return
        for i in range(len(setup.total)):
            state, one = plan(seed_of(kernel.agent_stream(setup.seed, setup.cell, setup.first + i))), slice(i, i + 1)
            results = {name: getattr(setup, name)[one] for name in ("total", "utility", "curve", "visits")}
            agent.enter(kernel.Request(), state, outcomes, setup._replace(first=setup.first + i, **results))
    except IndexError as cause:
        raise ObservationError(f"{_called(agent)} chose {cause} of {environment.n_actions} actions") from None


def _play_plain(agent: Any, environment: Environment, setup: RunSetup) -> None:
    """The loop of `kernels.play`, operation by operation, for agents that are not compiled."""
    every, curve, visits = setup.every, setup.curve, setup.visits
    for i in range(len(setup.total)):
        agent.reset(seed_of(kernel.agent_stream(setup.seed, setup.cell, setup.first + i)))
        steps = steps_in(environment, agent, kernel.environment_stream(setup.seed, setup.first + i))
        gained, discounted, weight = 0.0, 0.0, setup.discount**setup.skipped
        point = 0
        for k, (s, _, reward, t) in zip(range(setup.skipped, setup.steps), steps, strict=False):
            while point < curve.shape[1] and (point + 1) * every <= k:
                curve[i, point] = gained
                point += 1
            if visits.shape[1]:
                visits[i, s] += 1
            gained += reward
            discounted += weight * reward
            weight *= setup.discount
            if environment.terminal[t]:
                break
        curve[i, point:] = gained
        setup.total[i], setup.utility[i] = gained, discounted


def steps_in(environment: Environment, agent: Any, stream: Any) -> Iterator[Any]:
    """The steps of an agent in an environment whose randomness is a stream, on and on: past terminal states too."""
    outcomes = environment.outcomes

    def follow(s: int, a: int) -> tuple[float, int]:
        reward, t = step(outcomes, s, a, uniform(stream))
        return float(reward), int(t)

    return transitions(agent, int(begin(outcomes, uniform(stream))), follow, check=action_check(agent, environment))


def action_check(agent: Any, environment: Environment) -> Callable[[int, Any], int]:
    """Whether a state offers what an agent of plain Python chose there, for `transitions`."""
    return partial(checked_action, available=environment.mdp.available, who=_called(agent))


def _called(agent: Any) -> str:
    return f"the agent {getattr(agent, 'name', type(agent).__name__)}"
