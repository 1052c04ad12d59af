"""Agents that search trees: simulations a second of BAMCP on Chain, one core, and time a step against its plain twin.

The BAMCP authors' program, in C++, makes 110 to 125 thousand simulations a second there.
"""

import sys
import time
from pathlib import Path

from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.envs import make_env

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.search_twins import BamcpTwin

SIMULATIONS, STEPS, REPEATS = 1000, 60, 5
SEARCHES = ("bfs3", "sparse-sampling", "branch-and-bound", "branch-and-bound:leaves=mmbi", "mcbrl-lookahead")


def seconds_a_step(name, environment, steps=STEPS):
    """Of the processor, in the first steps of a run; the fastest of a few runs."""
    agent = make_agent(name, environment)
    play(agent, environment, seed=1, runs=1, steps=1)  # compiles
    times = []
    for _ in range(REPEATS):
        began = time.thread_time()
        play(agent, environment, seed=1, runs=1, steps=steps)
        times.append((time.thread_time() - began) / steps)
    return min(times)


def main() -> None:
    chain = make_env("chain")
    print("BAMCP on Chain, depth 89, one core   [target: 625 000 a second, 5 times the authors' C++]")
    ours = {}
    for what, prior in (("rewards learnt", "flat"), ("rewards known", "known-rewards")):
        ours[what] = seconds_a_step(f"bamcp:simulations={SIMULATIONS},prior={prior}", chain)
        print(f"  {what:<16}{SIMULATIONS / ours[what]:>12,.0f} simulations a second", flush=True)
    twin = BamcpTwin(chain, simulations=SIMULATIONS, depth=89)
    twin.reset(1)
    began = time.thread_time()
    twin.act(0)
    theirs = time.thread_time() - began
    print(
        f"  plain Python twin: {1e3 * theirs:.0f} ms a step, {theirs / ours['rewards learnt']:.0f} x   [target: 20 x]"
    )
    print("\na step on Chain with default parameters, ms")
    for name in SEARCHES:
        print(f"  {name:<32}{1e3 * seconds_a_step(name, chain, 10):>8.3f}", flush=True)


if __name__ == "__main__":
    main()
