"""Cost against the number of states: a step of every learning agent, and a stage of every planner.

Agents that plan sweep over all states at every step, so a step costs at least the number of pairs; what is dense costs
its square. Models of a posterior are dense up to some 90 states and compressed from there on.
"""

import time

import numpy as np

from beliefbound import FiniteBelief, cadp, expected_mdp_policy, mmbi
from beliefbound.agents import make_agent, play
from beliefbound.envs import make_env

ENVIRONMENTS = ("chain", "double-loop", "grid:5", "grid:10", "maze")
AGENTS = ("exploit", "thompson", "mcbrl:n=16", "beb", "bolt", "mbie", "ucrl2", "rmax", "qlearning")
STEPS = 200  # of a run: agents that plan on a clock do so more often at first
SECONDS = 0.5  # a figure
STATES = (5, 20, 80, 320)
MODELS, ACTIONS, STAGES = 16, 4, 20


def step_cost(name: str, environment) -> float:
    """Microseconds a step, from as many runs of the same length as fit into the time."""
    agent, runs = make_agent(name, environment), 1
    play(agent, environment, seed=1, runs=1, steps=3)
    while True:
        begin = time.perf_counter()
        play(agent, environment, seed=1, runs=runs, steps=STEPS)
        spent = time.perf_counter() - begin
        if spent > SECONDS:
            return 1e6 * spent / (runs * STEPS)
        runs = int(runs * min(20.0, max(2.0, 1.5 * SECONDS / spent)))


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
    print(f"  {'agent':<14}" + "".join(f"{name:>14}" for name in ENVIRONMENTS))
    environments = [make_env(name) for name in ENVIRONMENTS]
    print(f"  {'states':<14}" + "".join(f"{environment.n_states:>14}" for environment in environments))
    for name in AGENTS:
        print(f"  {name:<14}" + "".join(f"{step_cost(name, each):>14.2f}" for each in environments), flush=True)
    print(f"\nmicroseconds a stage of a plan and its evaluation, {MODELS} models, {ACTIONS} actions")
    print(f"  {'states':<14}{'mmbi':>14}{'cadp':>14}{'expected MDP':>14}")
    for n_states in STATES:
        print(f"  {n_states:<14}" + "".join(f"{cost:>14.1f}" for cost in stage_costs(n_states)), flush=True)


if __name__ == "__main__":
    main()
