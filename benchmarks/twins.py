"""Every agent, per step on Chain: compiled against its own functions run by the Python interpreter.

The twin is the agent itself under `NUMBA_DISABLE_JIT=1`, in a process of its own: the same file, line by line, on the
same state and the same noise, so both must earn the same. Only explicit vectors (`kernels.planning.simd`), which Python
does not know, are written out as loops here. Plans made before the first
step of all runs (`beetle`, `controller`) or of each (`hypotheses`) are made compiled, handed over, and not timed.

`gittins` plays on a bandit. A step is a look into a table of indices, or, when counts are met for the first time,
the computation of an index: both are timed. Its table outlives a run, so the same run is played again and again, each
time with the table as the twin had it.
"""

import importlib
import os
import pickle
import subprocess
import sys
import time
import warnings

import numpy as np

STEPS = 300  # of a twin at most
SECONDS, PATIENCE = 0.5, 60  # that a twin plays, and that it is waited for
WORK = 0.2  # seconds that the compiled agent plays at least
BESIDE = ("mcbrl-cadp:n=8", "branch-and-bound:leaves=cadp")
INDICES = ("gittins", "gittins, all indices known")


def backup(p, r, w, discount, v, q, mixed, n_states, n_actions, n_models, m, w_step, width):
    weights = w.reshape(-1)
    for s in range(n_states):
        for a in range(n_actions):
            for lane in range(m, m + width):
                total = 0.0
                for t in range(n_states):
                    total += p[s, a, t, lane] * v[t, lane]
                q[s, a, lane] = r[s, a, lane] + discount * total
                mixed[s, a] += weights[s * w_step + lane] * q[s, a, lane]


def copy(source, i, target, j, width):
    target.reshape(-1)[j : j + width] = source.reshape(-1)[i : i + width]


def carry_lanes(p, actions, b, mass, k, m, width):
    n_states = p.shape[0]
    for t in range(n_states):
        if m == 0:
            mass[k + 1, t] = 0.0
        for lane in range(m, m + width):
            total = 0.0
            for s in range(n_states):
                if mass[k, s] != 0.0:
                    total += b[k, s, lane] * p[s, actions[k, s], t, lane]
            b[k + 1, t, lane] = total
            mass[k + 1, t] += total


def gather(p, index, at, length, v, first, totals):
    values = v.reshape(-1)
    for lane in range(16):
        total = 0.0
        for k in range(at + lane, at + lane + 16 * length, 16):
            total += p[k] * values[first + index[k]]
        totals[lane] = total


def without_vectors():
    """Loops in place of the explicit vectors of agents' kernels."""
    simd = importlib.import_module("beliefbound.kernels.planning.simd")
    for width in (16, 8, 4, 1):
        setattr(simd, f"backup_{width}", lambda *given, width=width: backup(*given, width))
        setattr(simd, f"carry_lanes_{width}", lambda *given, width=width: carry_lanes(*given, width))
        setattr(simd, f"copy_{width}", lambda *given, width=width: copy(*given, width))
    simd.gather_16 = gather


def interpreted() -> None:
    """In the twin's process: play what stands on standard input, and say how many steps, how long, and what for."""
    without_vectors()
    warnings.simplefilter("ignore")  # integers of 64 bits wrap around
    from beliefbound.kernels.play import agent_stream
    from beliefbound.lab.envs import make_env

    where, state, functions = pickle.load(sys.stdin.buffer)  # from `twin`, through a pipe
    environment = make_env(where)
    reset, look, learn = (getattr(importlib.import_module(module), each) for module, each in functions)
    reset(state, agent_stream(1, 0, 0))
    act, observe = (lambda s: look(state, s)), (lambda *seen: learn(state, *seen))
    print(*stepped(act, observe, environment, STEPS, SECONDS))


def stepped(act, observe, environment, steps, patience):
    """`(steps, seconds, total)` of run 0, step by step, for as long as patience lasts."""
    from beliefbound.kernels.outcomes import begin, step
    from beliefbound.kernels.play import environment_stream
    from beliefbound.kernels.random import uniform

    luck = environment_stream(1, 0)
    s, total, done = int(begin(environment.outcomes, uniform(luck))), 0.0, 0
    began = time.thread_time()
    while done < steps and time.thread_time() - began < patience:
        a = int(act(s))
        r, t = step(environment.outcomes, s, a, uniform(luck))
        observe(s, a, float(r), int(t))
        total, s, done = total + float(r), int(t), done + 1
    return done, time.thread_time() - began, total


def twin(agent, where):
    """`(steps, seconds, total)` of an agent's twin."""
    state, *functions = agent.machine[:4]
    names = [(each.py_func.__module__, each.py_func.__name__) for each in functions]
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.twins"],
        input=pickle.dumps((where, state, names)),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr.decode()[-600:])
    steps, seconds, total = ran.stdout.split()
    return int(steps), float(seconds), float(total)


def entered(agent, environment, steps, state):
    """`(seconds, total)` of run 0 in the compiled loop, on this state."""
    from beliefbound.kernels.play import Request, RunSetup

    setup = RunSetup(
        seed=1,
        cell=0,
        first=0,
        steps=steps,
        discount=environment.discount,
        skipped=0,
        every=steps + 1,
        terminal=environment.terminal,
        total=np.zeros(1),
        utility=np.zeros(1),
        curve=np.zeros((1, 0)),
        visits=np.zeros((1, 0), np.int64),
        own=np.zeros(4, np.uint64),
        noise=np.zeros(4, np.uint64),
    )
    began = time.thread_time()
    agent.enter(Request(), state, environment.outcomes, setup)
    return time.thread_time() - began, setup.total[0]


def seconds_a_step(agent, environment, steps):
    """Of the compiled agent, in runs as long as the twin's, and what run 0 earned."""
    from beliefbound.lab.agents import play
    from beliefbound.lab.engine.play import copied_state

    runs, spent = 1, 0.0
    if agent.machine.plan is not None or environment.name == "bandit":
        _, first = entered(agent, environment, steps, copied_state(agent.machine.state))  # compiles
        times = []
        while sum(times) < WORK:
            times.append(entered(agent, environment, steps, copied_state(agent.machine.state))[0])
        return min(times) / steps, first
    first = play(agent, environment, seed=1, runs=1, steps=steps).total[0]
    while spent < WORK:
        runs *= 2
        began = time.thread_time()
        play(agent, environment, seed=1, runs=range(runs), steps=steps)
        spent = time.thread_time() - began
    return spent / (runs * steps), first


def main(*asked: str) -> None:
    from beliefbound.lab.agents import make_agent
    from beliefbound.lab.envs import make_env
    from beliefbound.lab.league.entries import entries

    names = [name for name in entries(None) if name not in INDICES]
    print(f"{'agent':<58}{'µs a step':>12}{'interpreted':>14}{'ratio':>9}   [target: ratio at least 20]")
    for label in asked or (*names, *BESIDE, *INDICES):
        name, where = label.partition(", all")[0], "bandit" if label in INDICES else "chain"
        environment = make_env(where)
        agent = make_agent(name, environment)
        if agent.machine.plan is not None:
            agent.reset(1)
        if label != name:
            entered(agent, environment, STEPS, agent.machine.state)
        try:
            steps, seconds, total = twin(agent, where)
        except subprocess.TimeoutExpired:
            ours, _ = seconds_a_step(agent, environment, 3)
            print(f"{label:<58}{1e6 * ours:>12.2f}{'> ' + str(PATIENCE) + ' s':>14}")
            continue
        except RuntimeError as cause:
            print(f"{label:<58} no twin: {str(cause).strip().splitlines()[-1]}", flush=True)
            continue
        ours, earned = seconds_a_step(agent, environment, steps)
        same = "" if abs(earned - total) <= 1e-9 * max(1.0, abs(total)) else f"   earned {earned:g}, twin {total:g}"
        theirs = seconds / steps
        print(f"{label:<58}{1e6 * ours:>12.2f}{1e6 * theirs:>14.0f}{theirs / ours:>9.0f}{same}", flush=True)


if __name__ == "__main__":
    interpreted()
