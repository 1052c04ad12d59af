"""Agents that search trees: simulations a second of BAMCP on Chain, one core, and time a step against its plain twin.

The BAMCP authors' program, in C++, makes 110 to 125 thousand simulations a second there.
"""

import sys
import time
from pathlib import Path

from beliefbound.agents import make_agent
from beliefbound.envs import make_env
from benchmarks.timing import race

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.search_twins import BamcpTwin

SIMULATIONS = 1000
SEARCHES = ("bamcp", "bfs3", "sparse-sampling", "branch-and-bound", "branch-and-bound:leaves=mmbi", "mcbrl-lookahead")


def ready(name, environment):
    """An agent that has seen a little of Chain, past the checks of its Python face."""
    agent = make_agent(name, environment)
    agent.reset(1)
    for k in range(60):
        agent.observe(k % 5, 1, 0.0, min(k % 5 + 1, 4))
    state, _, act, _ = agent.machine
    act(state, 0)
    return lambda: act(state, 0)


def main() -> None:
    chain = make_env("chain")
    ours = {
        "rewards learnt": ready(f"bamcp:simulations={SIMULATIONS}", chain),
        "rewards known": ready(f"bamcp:simulations={SIMULATIONS},prior=known-rewards", chain),
    }
    times = race(ours, repeats=200)
    print("BAMCP on Chain, depth 89, one core   [target: 625 000 a second, 5 times the authors' C++]")
    for name, seconds in times.items():
        print(f"  {name:<16}{SIMULATIONS / seconds:>12,.0f} simulations a second")
    twin = BamcpTwin(chain, simulations=SIMULATIONS, depth=89)
    twin.reset(1)
    for k in range(60):
        twin.observe(k % 5, 1, 0.0, min(k % 5 + 1, 4))
    began = time.perf_counter()
    twin.act(0)
    theirs = time.perf_counter() - began
    print(
        f"  plain Python twin: {1e3 * theirs:.0f} ms a step, {theirs / times['rewards learnt']:.0f} x   [target: 20 x]"
    )
    print("\na step on Chain with default parameters, ms")
    for name, seconds in race({name: ready(name, chain) for name in SEARCHES}, repeats=30).items():
        print(f"  {name:<32}{1e3 * seconds:>8.3f}")


if __name__ == "__main__":
    main()
