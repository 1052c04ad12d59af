"""Cost against the number of states: a step of every learning agent, and a stage of every planner.

Agents that plan sweep over all states at every step, so a step costs at least the number of pairs; what is dense costs
its square. Models of a posterior are dense up to some 90 states and compressed from there on. There is a dash where a
first step takes longer than `PATIENCE`, or would if it grew with the square of the states, in whatever is larger too,
and where an agent refuses the size. Agents whose work is a plan made before the first step (`beetle`, `controller`) are
left out, as are those for one state and for files.

Agents are compiled first, in as many processes as there are cores; that takes most of the time, once.
"""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numba import typeof

from beliefbound import FiniteBelief, cadp, expected_mdp_policy, mmbi
from beliefbound.base.errors import BeliefboundError
from beliefbound.lab.agents import agents, make_agent, play
from beliefbound.lab.envs import make_env

ENVIRONMENTS = ("chain", "double-loop", "grid:5", "grid:10", "maze")
AGENTS = [name for name in agents() if name not in ("beetle", "controller", "gittins", "policy")]
STEPS = 200  # of a run: agents that plan on a clock do so more often at first
SECONDS, PATIENCE = 0.1, 0.2  # of processor time: a figure; a first step
STATES = (5, 20, 80, 320)
MODELS, ACTIONS, STAGES = 16, 4, 20


def compile_ahead(name: str) -> None:
    """Compile an agent for small problems and, where that is other code, for large ones."""
    known = set()
    for where in ("chain", "grid:10"):
        environment = make_env(where)
        try:
            agent = make_agent(name, environment)
        except BeliefboundError:  # refuses the size
            return
        form = typeof(agent.machine.state) if hasattr(agent, "machine") else None
        if form not in known:
            known.add(form)
            play(agent, environment, seed=1, runs=1, steps=1)


def seconds(agent, environment, runs: int, steps: int) -> float:
    """Of the processor."""
    begin = time.thread_time()
    play(agent, environment, seed=1, runs=runs, steps=steps)
    return time.thread_time() - begin


def step_cost(name: str, environment) -> float | None:
    """Microseconds a step, from as many runs of the same length as fit into the time; nothing where a step is long."""
    agent, runs = make_agent(name, environment), 1
    if min(seconds(agent, environment, 1, 1) for _ in range(2)) > PATIENCE:
        return None
    rough = seconds(agent, environment, 1, 5) / 5
    steps = max(5, min(STEPS, int(SECONDS / max(rough, 1e-9))))  # slow agents play shorter runs
    while True:
        spent = seconds(agent, environment, runs, steps)
        if spent > SECONDS or steps < STEPS:
            return 1e6 * spent / (runs * steps)
        runs = int(runs * min(20.0, max(2.0, 1.5 * SECONDS / spent)))


def costs_by_size(name: str, environments):
    """`step_cost` in environments of growing size, as text; a dash from where it takes too long, or is refused."""
    cost, before = 0.0, 1
    for environment in environments:
        if cost is None or cost * (environment.n_states / before) ** 2 > 1e6 * PATIENCE:
            cost = None
            yield "–"
            continue
        try:
            cost, before = step_cost(name, environment), environment.n_states
            yield "–" if cost is None else f"{cost:.2f}"
        except BeliefboundError:
            yield "–"


def stage_costs(n_states: int) -> list[float]:
    """Microseconds a stage of each planner on random sparse models."""
    rng = np.random.default_rng(1)
    shape = (MODELS, n_states, ACTIONS)
    transitions = rng.dirichlet(np.full(n_states, 1.0 / n_states), shape)
    belief = FiniteBelief(transitions, rng.random(shape[1:]), initial=0)
    planners = (
        lambda: mmbi(belief, discount=0.95, horizon=STAGES),
        lambda: cadp(belief, discount=0.95, horizon=STAGES, initial=0),
        lambda: expected_mdp_policy(belief, discount=0.95, horizon=STAGES),
    )
    costs = []
    for plan in planners:
        plan()
        begin = time.perf_counter()
        plan()
        costs.append(1e6 * (time.perf_counter() - begin) / STAGES)
    return costs


def main() -> None:
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        list(pool.map(compile_ahead, AGENTS))
    print(f"microseconds a step, in runs of up to {STEPS} steps; what is planned at their start is part of it")
    print(f"  {'agent':<20}" + "".join(f"{name:>14}" for name in ENVIRONMENTS))
    environments = [make_env(name) for name in ENVIRONMENTS]
    print(f"  {'states':<20}" + "".join(f"{environment.n_states:>14}" for environment in environments))
    for name in AGENTS:
        print(f"  {name:<20}" + "".join(f"{cost:>14}" for cost in costs_by_size(name, environments)), flush=True)
    print(f"\nmicroseconds a stage of a plan and its evaluation, {MODELS} models, {ACTIONS} actions")
    print(f"  {'states':<14}{'mmbi':>14}{'cadp':>14}{'expected MDP':>14}")
    for n_states in STATES:
        print(f"  {n_states:<14}" + "".join(f"{cost:>14.1f}" for cost in stage_costs(n_states)), flush=True)


if __name__ == "__main__":
    main()
