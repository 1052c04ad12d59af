"""Cost against the number of states: a step of every learning agent, and a stage of every planner.

Agents that plan sweep over all states at every step, so a step costs at least the number of pairs; what is dense costs
its square. Models of a posterior are dense up to some 90 states and compressed from there on. Where a step can be
expected to take longer than `PATIENCE`, or an agent refuses the size, there is a dash. Agents whose work is a plan made
before the first step (`beetle`, `controller`) are left out, as are those for one state and for files.
"""

import time

import numpy as np

from beliefbound import FiniteBelief, cadp, expected_mdp_policy, mmbi
from beliefbound.agents import agents, make_agent, play
from beliefbound.envs import make_env
from beliefbound.errors import BeliefboundError

ENVIRONMENTS = ("chain", "double-loop", "grid:5", "grid:10", "maze")
AGENTS = [name for name in agents() if name not in ("beetle", "controller", "gittins", "policy")]
STEPS = 200  # of a run: agents that plan on a clock do so more often at first
SECONDS, PATIENCE = 0.2, 0.05  # a figure; the longest step
STATES = (5, 20, 80, 320)
MODELS, ACTIONS, STAGES = 16, 4, 20


def step_cost(name: str, environment) -> float:
    """Microseconds a step, from as many runs of the same length as fit into the time."""
    agent, runs, steps = make_agent(name, environment), 1, STEPS
    play(agent, environment, seed=1, runs=1, steps=3)
    while True:
        begin = time.thread_time()
        play(agent, environment, seed=1, runs=runs, steps=min(steps, 5) if runs == 1 else steps)
        spent = time.thread_time() - begin
        if runs == 1:  # a first look: slow agents play shorter runs
            runs, steps = 2, max(5, min(STEPS, int(5 * SECONDS / max(spent, 1e-9))))
        elif spent > SECONDS or steps < STEPS:
            return 1e6 * spent / (runs * steps)
        else:
            runs = int(runs * min(20.0, max(2.0, 1.5 * SECONDS / spent)))


def costs_by_size(name: str, environments):
    """`step_cost` in environments of growing size, as text; a dash from where it takes too long, or is refused."""
    cost, before = 0.0, 1
    for environment in environments:
        if cost * (environment.n_states / before) ** 2 > 1e6 * PATIENCE:
            yield "–"
            continue
        try:
            cost, before = step_cost(name, environment), environment.n_states
            yield f"{cost:.2f}"
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
    print(f"microseconds a step, in runs of {STEPS}")
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
