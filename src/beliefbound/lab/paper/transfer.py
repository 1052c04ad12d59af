"""What earlier tasks are worth to the next one: `python -m beliefbound.lab.paper.transfer chain`.

Or `grid`; with `zero-shot`, and a number of runs.

Tasks are drawn from a population: chains with unknown chances (`prior-chain`), or 4 × 4 grids of which only the goal
is elsewhere. K of them are logged, `LOGGED` steps of random actions each; then an agent plays the next one, and starts

* *with transfer*: from the population that the logs show (`beliefs.learn_population`);
* *pooled*: from one Dirichlet posterior of all logs, as if they were of one task;
* *alone*: from the same prior without logs;
* *told*: from the population as it is, rewards included.

Task, logs and noise are the same for all of them, so differences are taken run by run. *Zero-shot*: one memoryless
policy before the first step of any new task, made from the same K logs, valued exactly on `FRESH` new tasks.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.population import learn_population
from beliefbound.beliefs.rewards import BetaRewards
from beliefbound.lab.engine.play import play
from beliefbound.lab.engine.registry import make_agent
from beliefbound.lab.envs.environment import Environment, from_outcomes
from beliefbound.lab.envs.registry import make_env
from beliefbound.lab.experiments.statistics import bootstrap_mean
from beliefbound.logs.log import Log
from beliefbound.logs.rollouts import log_of
from beliefbound.planning.cadp import cadp
from beliefbound.planning.expected import expected_mdp_policy
from beliefbound.planning.mmbi import mmbi

KS = (0, 1, 2, 5, 10, 20)
AFTER = (100, 250, 1000)  # steps of the next task whose reward is shown
LOGGED, DRAWS, FRESH = 250, 64, 100
SIDE = 4  # of the grids
AGENTS = ("mcbrl:n=16", "thompson")


class Tasks(NamedTuple):
    """A population: task k, and what is believed of the next one by somebody who is told."""

    of: Callable[[int], Environment]
    told: Callable[[], Any]


def chains() -> Tasks:
    """Chains of five states and three actions; task k is `prior-chain:seed=k`."""
    return Tasks(lambda k: make_env(f"prior-chain:seed={k}"), lambda: make_env("prior-chain:seed=0").prior())  # type: ignore[misc]


def grids() -> Tasks:
    """Grids with a slip of 0.2; the goal, worth 1 and back to the start, is in any other cell, all alike."""
    goals = np.random.default_rng(5).integers(1, SIDE * SIDE, 10_000)

    def told() -> FiniteBelief:
        all_of_them = [moved_goal(g).mdp for g in range(1, SIDE * SIDE)]
        return FiniteBelief.from_mdps(all_of_them, reward_signal="deterministic")

    return Tasks(lambda k: moved_goal(int(goals[k])), told)


def moved_goal(goal: int) -> Environment:
    """A grid with the goal in a cell, by number."""
    x, y = np.arange(SIDE * SIDE) % SIDE, np.arange(SIDE * SIDE) // SIDE
    moves = np.array([(0, -1), (1, 0), (0, 1), (-1, 0)])
    target = np.empty((SIDE * SIDE, 4, 3), dtype=np.int64)
    for a in range(4):
        for o, turn in enumerate((0, 1, -1)):
            dx, dy = moves[(a + turn) % 4]
            inside = (x + dx >= 0) & (x + dx < SIDE) & (y + dy >= 0) & (y + dy < SIDE)
            target[:, a, o] = np.where(inside, (y + dy) * SIDE + x + dx, y * SIDE + x)
    target[goal] = 0
    reward = np.zeros(target.shape)
    reward[goal] = 1.0
    chances = np.broadcast_to([0.8, 0.1, 0.1], target.shape)
    return from_outcomes(f"grid-goal-{goal}", np.array(chances), target, reward)


def random_log(environment: Environment, steps: int, seed: int) -> Log:
    """Random actions, logged."""
    rng, tables, chances = np.random.default_rng((seed, 1)), environment.outcomes, environment.chances
    s = int(rng.choice(environment.n_states, p=environment.mdp.initial))
    rows: list[tuple[int, int, float, int]] = []
    for _ in range(steps):
        a = int(rng.integers(environment.n_actions))
        o = int(rng.choice(chances.shape[2], p=chances[s, a]))
        t = int(tables.next_state[s, a, o])
        rows.append((s, a, float(tables.reward[s, a, o]), t))
        s = t
    return log_of(*(np.array(column) for column in zip(*rows, strict=True)))


def beliefs_of(tasks: Tasks, k: int, run: int) -> dict[str, Any]:
    """What the next task's agent may start from after K logs of its run."""
    first = tasks.of(1000 * run)
    knobs: dict[str, Any] = {"n_states": first.n_states, "n_actions": first.n_actions}
    logs = [random_log(tasks.of(1000 * run + i), LOGGED, 1000 * run + i) for i in range(1, k + 1)]
    low, high = first.reward_range
    shared = learn_population(
        logs, reward_range=(low, high), initial=first.mdp.initial, draws=DRAWS, rng=1000 * run + k, **knobs
    )
    alone = DirichletBelief(
        first.n_states, first.n_actions, rewards=BetaRewards(low=low, high=high), initial=first.mdp.initial
    )
    pooled = alone
    for log in logs:
        cells = log.cells
        pooled = pooled.update(cells.state, cells.action, cells.reward, cells.next_state, times=cells.times)
    return {"transfer": shared.belief, "pooled": pooled, "alone": alone}


def rewards_of(tasks: Tasks, agent: str, belief: Any, run: int) -> list[float]:
    """The reward of the first steps of the task of a run."""
    environment = tasks.of(1000 * run)
    played = play(
        make_agent(agent, environment, belief=belief), environment, seed=run, runs=1, steps=AFTER[-1], curve_every=50
    )
    assert played.curve is not None
    return [float(played.curve[0, n // 50 - 1]) for n in AFTER]


def few_shot(tasks: Tasks, runs: int) -> None:
    """Print the table of agents that start from what earlier tasks show."""
    found: dict[tuple[str, str, int], list[list[float]]] = {}
    for run in range(runs):
        for k in KS:
            made = beliefs_of(tasks, k, run)
            starts = ["transfer", "pooled"] if k else ["transfer", "alone", "told"]
            for agent in AGENTS:
                for name in starts:
                    belief = tasks.told() if name == "told" else made[name]
                    found.setdefault((agent, name, k), []).append(rewards_of(tasks, agent, belief, run))
    print(f"| agent | starts | K | {' | '.join(f'first {n}' for n in AFTER)} | transfer − this, first {AFTER[1]} |")
    for (agent, name, k), totals in sorted(found.items()):
        row, other = np.array(totals), np.array(found[agent, "transfer", k if name == "pooled" else KS[-1]])
        cells = [*(_shown(row[:, i]) for i in range(len(AFTER))), _shown((other - row)[:, 1])]
        print(f"| {agent} | {name} | {k} | {' | '.join(cells)} |")


def zero_shot(tasks: Tasks, runs: int, discount: float = 0.95) -> None:
    """Print the table of memoryless policies for tasks that nobody has seen."""
    names = ("expected task", "MMBI", "CADP")
    print(f"| K | {' | '.join(names)} | MMBI − expected | CADP − expected |")
    fresh = [tasks.of(9000 + i).mdp for i in range(FRESH)]
    for k in KS[1:]:
        rows = []
        for run in range(runs):
            belief = beliefs_of(tasks, k, run)["transfer"]
            drawn = belief.sample(200, run)
            plans = (
                expected_mdp_policy(drawn, discount=discount),
                mmbi(drawn, discount=discount),
                cadp(drawn, discount=discount),
            )
            rows.append([float(np.mean([_value(mdp, plan.policy, discount) for mdp in fresh])) for plan in plans])
        found = np.array(rows)
        cells = [_shown(found[:, i]) for i in range(3)] + [_shown(found[:, i] - found[:, 0]) for i in (1, 2)]
        print(f"| {k} | {' | '.join(cells)} |", flush=True)


def _value(mdp: Any, policy: Any, discount: float) -> float:
    """What a memoryless policy earns from the start, exactly."""
    chances = mdp.models.dense()[0]
    table = np.asarray(policy.actions)
    rows, paid = chances[np.arange(len(table)), table], mdp.rewards[np.arange(len(table)), table]
    return float(mdp.initial @ np.linalg.solve(np.eye(len(table)) - discount * rows, paid))


def _shown(samples: Any) -> str:
    mean = bootstrap_mean(np.asarray(samples, dtype=float))
    return f"{mean.mean:.1f} ({mean.low:.1f} to {mean.high:.1f})"


if __name__ == "__main__":
    words = sys.argv[1:] or ["chain"]
    population = grids() if "grid" in words else chains()
    count = next((int(word) for word in words if word.isdecimal()), 20)
    (zero_shot if "zero-shot" in words else few_shot)(population, count)
