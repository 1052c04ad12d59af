"""Agents of the paper's Table 1 that others published, per step on Chain: compiled against their plain twins."""

import sys
import time
from pathlib import Path

from beliefbound.agents import make_agent, play
from beliefbound.envs import make_env
from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.play import environment_stream
from beliefbound.kernels.random import uniform

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.em_twins import AmpTwin, SemTwin, VbTwin
from support.planned_twins import BeetleTwin, ControllerTwin

PLANNING = {"horizon": 30, "interval": 10, "iterations": 20}
TWINS = {
    "sem": lambda e, state: SemTwin(e, **PLANNING),
    "sem:estimate=sampled,n=8": lambda e, state: SemTwin(e, n=8, **PLANNING),
    "vb-em": lambda e, state: VbTwin(e, rounds=2, **PLANNING),
    "amp-em": lambda e, state: AmpTwin(e, **PLANNING),
    "beetle:prior=known-rewards": lambda e, state: BeetleTwin(state),
    "controller": lambda e, state: ControllerTwin(state),
}
OURS, THEIRS = 5000, 60  # steps


def main() -> None:
    environment = make_env("chain")
    print(f"{'agent':<28}{'planning s':>12}{'µs a step':>12}{'twin':>12}{'ratio':>8}   [target: ratio at least 20]")
    for name, make in TWINS.items():
        started = time.perf_counter()
        agent = make_agent(name, environment)
        planning = time.perf_counter() - started
        play(agent, environment, seed=1, runs=1, steps=20)
        started = time.thread_time()
        play(agent, environment, seed=1, runs=range(5), steps=OURS // 5)
        ours = (time.thread_time() - started) / OURS
        twin, luck = make(environment, agent.machine.state), environment_stream(1, 0)
        twin.reset(1, 0, 0)
        s, total = int(begin(environment.outcomes, uniform(luck))), 0.0
        started = time.thread_time()
        for _ in range(THEIRS):
            a = twin.act(s)
            r, t = step(environment.outcomes, s, a, uniform(luck))
            twin.observe(s, a, r, t)
            total, s = total + r, int(t)
        theirs = (time.thread_time() - started) / THEIRS
        assert total == play(agent, environment, seed=1, runs=1, steps=THEIRS).total[0]
        print(f"{name:<28}{planning:>12.2f}{1e6 * ours:>12.2f}{1e6 * theirs:>12.0f}{theirs / ours:>8.0f}")


if __name__ == "__main__":
    main()
