"""Runs of the paper's protocol: compiled agents against their plain NumPy twins, and MCBRL against its floor.

The floor of MCBRL is what no implementation of the protocol can leave out: the Gamma draws of its plans and the
multiply-adds of its sweeps, each timed alone, in a loop that does nothing else.
"""

import sys
import time
from pathlib import Path

import numpy as np
from numba import njit

from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.play import environment_stream
from beliefbound.kernels.random import draw_gamma, gamma_constants, load, save, seed_stream, uniform
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.agents.mcbrl import PLANS, SWEEPS
from beliefbound.lab.engine.jobs import compile_agents_beside
from beliefbound.lab.envs import make_env
from benchmarks.timing import race

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.agent_twins import ExploitTwin, McbrlTwin

STEPS = 1000
MODELS = (1, 8, 16)


@njit(nogil=True)
def gammas(stream, shape, count):
    """Sum of Gamma draws of one shape."""
    constants, words, total = gamma_constants(shape), load(stream), 0.0
    for _ in range(count):
        x, words = draw_gamma(constants, words)
        total += x
    save(stream, words)
    return total


@njit(nogil=True, fastmath=True)
def multiply_adds(x, y, repeats):
    """`repeats` dot products of vectors that stay in the first-level cache."""
    total = 0.0
    for _ in range(repeats):
        for i in range(x.size):
            total += x[i] * y[i]
        x[0] += 1e-9
    return total


def play_twin(twin, environment, run):
    luck = environment_stream(1, run)
    twin.reset(1, 0, run)
    s, total = int(begin(environment.outcomes, uniform(luck))), 0.0
    for _ in range(STEPS - 1):
        a = twin.act(s)
        r, t = step(environment.outcomes, s, a, uniform(luck))
        twin.observe(s, a, r, t)
        total += r
        s = int(t)
    return total


def work_of_a_run(n, environment, runs=20):
    """Mean number of plans and sweeps in a run, counted by stepping the compiled agent."""
    agent = make_agent(f"mcbrl:n={n}", environment)
    counts = []
    for run in range(runs):
        step_through(agent, environment, run)
        clock = agent.machine.state.clock
        counts.append((clock[PLANS], clock[SWEEPS]))
    plans, sweeps = np.mean(counts, axis=0)
    return plans, sweeps


def step_through(agent, environment, run):
    """One run by hand, past the checks of the agent's Python face."""
    state, _, act, observe, _ = agent.machine
    luck = environment_stream(1, run)
    agent.reset(run)
    s = int(begin(environment.outcomes, uniform(luck)))
    for _ in range(STEPS - 1):
        a = act(state, s)
        r, t = step(environment.outcomes, s, a, uniform(luck))
        observe(state, s, a, r, t)
        s = int(t)


def main() -> None:
    environment = make_env("chain")
    S, A = environment.n_states, environment.n_actions
    names = ("exploit", *(f"mcbrl:n={n}" for n in MODELS))
    begin_at = time.perf_counter()
    compile_agents_beside(["chain"], names)
    for name in names:
        play(make_agent(name, environment), environment, seed=1, runs=range(1), steps=10)
    print(f"compiling or loading the agents: {time.perf_counter() - begin_at:.2f} s")

    block = 200
    made = {name: make_agent(name, environment) for name in names}
    players = {
        name: lambda agent=agent: play(agent, environment, seed=1, runs=range(block), steps=STEPS, accounting="paper")
        for name, agent in made.items()
    }
    stream, draws = seed_stream(np.array([1], np.uint64)), 100_000
    x, y = np.random.default_rng(0).random((2, 800))
    times = race(
        players
        | {
            "gammas": lambda: gammas(stream, 1.2, draws),
            "madds": lambda: multiply_adds(x, y, 1000),
        },
        repeats=7,
    )
    per_gamma, per_madd = times["gammas"] / draws, times["madds"] / 800_000
    print(f"one core; a Gamma draw {1e9 * per_gamma:.1f} ns, a multiply-add {1e9 * per_madd:.3f} ns")
    print(f"\nChain, {STEPS} steps, paper protocol, one core   [target: twin at least 50 x ours, n=16 about 1 ms]")
    print(f"  {'agent':<12}{'ms a run':>10}{'NumPy twin':>12}{'ratio':>8}{'floor':>9}{'ratio':>8}")
    for name in names:
        ours = times[name] / block
        n = int(name.partition("=")[2] or 0)
        twin = McbrlTwin(environment, n, discount=0.95) if n else ExploitTwin(environment, discount=0.95)
        started = time.perf_counter()
        total = play_twin(twin, environment, 0)
        theirs = time.perf_counter() - started
        assert total == play(made[name], environment, seed=1, runs=range(1), steps=STEPS, accounting="paper").total[0]
        line = f"  {name:<12}{1e3 * ours:>10.3f}{1e3 * theirs:>12.1f}{theirs / ours:>8.0f}"
        if n:
            plans, sweeps = work_of_a_run(n, environment)
            gamma_count, madd_count = plans * n * S * A * (S + 2), sweeps * n * S * A * S
            floor = gamma_count * per_gamma + madd_count * per_madd
            line += f"{1e3 * floor:>9.3f}{ours / floor:>8.2f}"
            line += f"   ({plans:.0f} plans, {gamma_count:,.0f} draws; {sweeps:,.0f} sweeps, {madd_count:,.0f} madds)"
        print(line)


if __name__ == "__main__":
    main()
