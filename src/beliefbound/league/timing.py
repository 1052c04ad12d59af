"""How long an agent takes for a step: one run on one thread, compiled before the clock starts.

What counts is the time that the processor spends on it, so that a busy machine says nearly the same as a quiet one.

Times are no part of a run's results, which stay the same bit for bit; they are measured once per folder and kept in
`timing.json`, with the number of runs that a budget of seconds allows.
"""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from beliefbound.engine.play import play
from beliefbound.engine.registry import make_agent
from beliefbound.envs import make_env
from beliefbound.errors import FileError
from beliefbound.io.atomic import write_text

_FIRST = 10  # steps that tell roughly how long a run takes
_TOO_LONG = 0.05  # of the budget: an agent whose first step takes so much is not tried any further


@dataclass(frozen=True)
class Timing:
    """Processor seconds a step on average over a run and to build the agent (offline planning); the runs to play."""

    step: float
    build: float
    runs: int


def timed(agent: str, environment: str, *, steps: int, runs: int, budget: float, discount: float | None) -> Timing:
    """Play one run, or as many steps of one as a tenth of the budget allows; `runs` is 0 where not even two fit."""
    place = make_env(environment)
    place = place if place.of_run is None else place.of_run(0)

    def seconds(n: int) -> float:
        began = time.process_time()
        play(machine, place, seed=0, runs=1, steps=n, discount=discount)
        return time.process_time() - began

    began = time.process_time()
    machine = make_agent(agent, place, discount=discount)
    build = time.process_time() - began
    seconds(1)  # compiles
    once = seconds(1)
    if steps * _TOO_LONG >= 1.0 and once > _TOO_LONG * budget:
        return Timing(once, build, 0)
    first = min(_FIRST, steps)
    rough = max(seconds(first) / first, 1e-9)
    n = steps if rough * steps <= budget else max(first, min(steps, int(budget / 10 / rough)))
    step = min(seconds(n) for _ in range(3 if rough * n < 0.1 else 1)) / n
    fit = int(budget / max(step * steps, 1e-12))
    return Timing(step, build, min(runs, fit) if fit >= 2 else 0)


def read_timings(path: Path) -> dict[str, Timing]:
    """What was measured before; nothing where there is no file."""
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {str(k): Timing(float(v["step"]), float(v["build"]), int(v["runs"])) for k, v in content.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as cause:
        raise FileError(f"{path} does not hold times ({cause}); remove it to measure again") from None


def write_timings(path: Path, timings: dict[str, Timing]) -> None:
    """Keep what was measured."""
    write_text(path, json.dumps({name: asdict(timing) for name, timing in timings.items()}, indent=1) + "\n")
