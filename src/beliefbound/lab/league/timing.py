"""How long an agent takes for a step, and how many runs of how many steps fit into a budget.

A run is its first step, before which agents may plan for minutes, and the steps that follow, up to the last or to a
terminal state: `first + (steps − 1) later`. Both are taken by stepping an agent by hand, and where that goes fast
enough again by playing it, which leaves out what stepping by hand costs. Each of the two may take a tenth of the
budget, but for a step that was begun; where the first step takes longer than that, those after it have a tenth to tell
whether all do, or one in so many.

What counts is the time that the processor spends on it, so that a busy machine says nearly the same as a quiet one; or
the time that passes, where an agent waits (`lab.league.clock`). Times are no part of a run's results, which stay the
same bit for bit; they are measured once per folder and kept in `timing.json`.
"""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from beliefbound.base.errors import FileError
from beliefbound.base.io.atomic import write_text
from beliefbound.kernels.play import environment_stream
from beliefbound.lab.engine.play import play, steps_in
from beliefbound.lab.engine.policies import player
from beliefbound.lab.engine.protocol import Agent
from beliefbound.lab.engine.registry import make_agent
from beliefbound.lab.envs import make_env
from beliefbound.lab.envs.environment import Environment
from beliefbound.lab.league.clock import Clock, working_time
from beliefbound.policy import Policy

_SHARE = 0.1  # of the budget: for stepping by hand, and again for playing
_BY_HAND = 10  # steps that tell roughly how long a run takes
_ALL_BY_HAND = 100  # where the first takes too long to be played again: agents may plan every so many steps
_GROWTH = 10  # of what is played next: agents may plan again after some steps, and then take longer than so far
_AT_ONCE = 1000  # steps: short runs are played together, or most of what is measured is the call
_REPEATS = 2  # of what takes a small part of that
_LEAST = 1e-9  # seconds of a step
_ROUND = [digit * 10**power for power in range(9, -1, -1) for digit in (5, 2, 1)]  # numbers of steps, falling
_OF_KEY = re.compile(r" runs of (\d+) steps, \S+ s$")


@dataclass(frozen=True)
class Timing:
    """Seconds a step on average over a run and to build the agent (offline planning); the runs to play, none where one
    step takes longer than the budget, and the steps of each."""

    step: float
    build: float
    runs: int
    steps: int


class Pace(NamedTuple):
    """Seconds of the first step of a run, what comes before it included, and of one that follows, on average; the steps
    after which a run is over, on average, though more were asked for."""

    first: float
    later: float
    over: float

    def run(self, steps: int) -> float:
        return max(self.first, _LEAST) + (self.made(steps) - 1) * self.later

    def made(self, steps: int) -> float:
        return min(steps, self.over)


def timed(
    agent: str,
    environment: str,
    *,
    steps: int,
    runs: int,
    budget: float,
    discount: float | None,
    clock: Clock | None = None,
) -> Timing:
    """The time of a step, and what fits into `budget` seconds.

    Two runs of `steps` steps, or of the largest round number (1, 2, 5, 10, …) of steps of which two fit, or of one step
    where not even that does; and as many more of these, up to `runs`, as fit. None where one step does not fit.
    """
    place = make_env(environment)
    place = place if place.of_run is None else place.of_run(0)
    with working_time(clock) as now:
        began = now()
        machine = make_agent(agent, place, discount=discount)
        build = now() - began
        pace = _pace(machine, place, steps, budget, discount, now)
    lengths = (steps, *(n for n in _ROUND if n < steps))
    length = next((n for n in lengths if 2 * pace.run(n) <= budget), 1)
    seconds = pace.run(length)
    fit = int(min(runs, budget / seconds))
    return Timing(seconds / pace.made(length), build, max(2, fit) if fit else 0, length)


def _pace(machine: Agent, place: Environment, steps: int, budget: float, discount: float | None, now: Clock) -> Pace:
    """By hand; then, as long as this lengthens what was measured, by playing."""

    def played(n: int, runs: int) -> tuple[float, float]:
        began = now()
        visits = play(machine, place, seed=0, runs=runs, steps=n, discount=discount, visits=True).visits
        return (now() - began) / runs, n if visits is None else float(visits.sum()) / runs

    left = _SHARE * budget
    pace, done = _by_hand(machine, place, steps, budget, now)
    n = 0
    while n < steps and pace.first <= left:
        fit = 1 + (left - pace.first) / max(pace.later, _LEAST)
        longer = int(min(steps, _GROWTH * max(n, done), fit if fit < pace.over else steps))
        # Where the first step is most of what is played, the others cannot be told from its noise.
        if longer < steps and (longer < max(2 * n, done) or pace.first > left / 2):
            break
        n = longer
        seconds, made = played(n, 1)
        left -= seconds
        runs = int(min(max(1.0, _AT_ONCE / made), left / (_REPEATS * max(seconds, _LEAST)))) if n == steps else 0
        if runs > 0:
            seconds, made = min(played(n, runs) for _ in range(_REPEATS))
        first = min(pace.first, seconds)
        pace = Pace(first, (seconds - first) / max(made - 1.0, 1.0), made if made < n else steps)
    return pace


def _by_hand(machine: Agent, place: Environment, steps: int, budget: float, now: Clock) -> tuple[Pace, int]:
    """The pace of the first steps of a run, and how many were made."""
    if isinstance(machine, Policy):  # as `play` does
        machine = player(machine, place, steps)
    walk = steps_in(place, machine, environment_stream(0, 0))
    done, first, spent, over, enough = 0, 0.0, 0.0, False, False
    began = now()
    machine.reset(0)
    share, most = _SHARE * budget, min(steps, _BY_HAND)
    while not (over or enough or done >= most):
        over = bool(place.terminal[next(walk).next_state])
        done, spent = done + 1, now() - began
        if done == 1:
            first, most = spent, most if 2 * spent <= share else min(steps, _ALL_BY_HAND)
        enough = 2 * first > budget or (spent - first if 2 * first > share else spent) > share
    return Pace(first, (spent - first) / max(done - 1, 1), done if over else steps), done


def read_timings(path: Path) -> dict[str, Timing]:
    """What was measured before; nothing where there is no file.

    Where the steps are not given, as in earlier versions, an agent plays all that its key speaks of, and one that was
    to play no run is measured anew.
    """
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = {key: _timing(key, entry) for key, entry in content.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as cause:
        raise FileError(f"{path} does not hold times ({cause}); remove it to measure again") from None
    return {key: timing for key, timing in found.items() if timing.steps > 0}


def _timing(key: str, entry: Any) -> Timing:
    whole = _OF_KEY.search(key)
    steps = entry.get("steps", whole[1] if whole and int(entry["runs"]) > 0 else 0)
    return Timing(float(entry["step"]), float(entry["build"]), int(entry["runs"]), int(steps))


def write_timings(path: Path, timings: dict[str, Timing]) -> None:
    """Keep what was measured."""
    write_text(path, json.dumps({name: asdict(timing) for name, timing in timings.items()}, indent=1) + "\n")
