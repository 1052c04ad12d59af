"""What more cores can do for one search, whatever else the machine does: its tasks are run one by one, each with the
seconds of the processor that it takes, and then laid out on 1, 2, 4 and 16 workers as a `Team` would share them.

A round of a search (`bounds.strands`) is a few strands; a strand is what one thread does, with tasks between that any
thread may take. A worker that has no strand takes tasks. What it leaves out: memory that cores share, waking a thread.

    python -m benchmarks.critical_path 70 chain-64 counts-5    # steps; problems of `benchmarks.race`, counts of states
"""

import heapq
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from beliefbound.base.executors import elsewhere
from beliefbound.base.executors.team import Team
from beliefbound.beliefs import DirichletBelief
from beliefbound.bounds.bracket import bracket
from beliefbound.bounds.finite import search
from benchmarks.race import problem
from benchmarks.scaling import exponent

WORKERS = (2, 4, 16)
PROBLEMS = ("species-4", "species-6", "bandit-64-5", "chain-16", "chain-64", "counts-5", "counts-20")
Strand = list[list[float]]  # seconds: of what its thread does (one number), of tasks (several), in turn


class Recording(Team):
    """Runs tasks one by one, as those of two threads, and notes how long each takes."""

    rounds: list[list[Strand]] = []  # noqa: RUF012 - of all

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(2)
        self.strand: Strand | None = None
        self.began = 0.0

    def run(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        if self.strand is None:
            self.rounds.append([])
            return [self._advance(task) for task in tasks]
        if len(tasks) < 2:
            return [task() for task in tasks]
        self.strand.append([time.thread_time() - self.began])
        found, seconds, strand, self.strand = [], [], self.strand, []
        for task in tasks:
            self.began = begin = time.thread_time()
            found.append(task())
            seconds.append(time.thread_time() - begin)
        self.strand = strand
        strand.append(seconds)
        self.began = time.thread_time()
        return found

    def map(self, function: Callable[..., Any], blocks: Sequence[Any], scratch: Sequence[Any]) -> list[Any]:
        return self.run([lambda block=block: function(block, scratch[0]) for block in blocks])

    def _advance(self, task: Callable[[], Any]) -> Any:
        self.strand, self.began = [], time.thread_time()
        found = task()
        self.strand.append([time.thread_time() - self.began])
        self.rounds[-1].append(self.strand)
        self.strand = None
        return found


def mapped(function: Callable[..., Any], blocks: Sequence[Any], scratch: Sequence[Any]) -> list[Any]:
    """Samples under counts, one by one: a round of one strand."""
    found, seconds = [], []
    for block in blocks:
        begin = time.thread_time()
        found.append(function(block, scratch[0]))
        seconds.append(time.thread_time() - begin)
    Recording.rounds.append([[seconds]])
    return found


def case(name: str) -> tuple[Any, float]:
    """A belief and its discount."""
    if not name.startswith("counts-"):
        return problem(name)
    return DirichletBelief(int(name.removeprefix("counts-")), 2, concentration=0.2, initial=0), 0.95


def laid_out(strands: list[Strand], workers: int) -> float:
    """Seconds of a round on so many workers."""
    now, free, waiting = 0.0, workers, list(range(len(strands)))
    at, left, out = [0] * len(strands), [list[float]() for _ in strands], [0] * len(strands)
    ends: list[tuple[float, int]] = []

    def begin(i: int) -> None:
        """The next part of a strand; its worker takes the first task."""
        if at[i] < len(strands[i]):
            left[i] = list(strands[i][at[i]])
            give(i)

    def give(i: int) -> None:
        out[i] += 1
        heapq.heappush(ends, (now + left[i].pop(0), i))

    while True:
        while free and (waiting or any(left)):
            free -= 1
            if waiting:
                begin(waiting.pop(0))
            else:
                give(next(i for i, tasks in enumerate(left) if tasks))
        if not ends:
            return now
        now, i = heapq.heappop(ends)
        out[i] -= 1
        free += 1
        if not left[i] and out[i] == 0:
            at[i] += 1
            if at[i] < len(strands[i]):
                free -= 1
                begin(i)


def main(effort: int = 70, *names: str) -> None:
    search.Team, elsewhere.map_with_scratch = Recording, mapped  # type: ignore[misc, assignment]
    on = ", ".join(map(str, WORKERS))
    print(f"{effort} steps; times the work in the same time, on {on} workers; exponent of the seconds")
    for name in names or PROBLEMS:
        belief, discount = case(name)
        bracket(belief, discount=discount, effort=effort // 3, rng=1)  # to load what is compiled
        Recording.rounds.clear()
        begin = time.process_time()
        bracket(belief, discount=discount, effort=effort, rng=1)
        total = time.process_time() - begin
        alone = sum(sum(map(sum, strand)) for strands in Recording.rounds for strand in strands)
        times = []
        for n in WORKERS:
            spent = sum(laid_out(strands, n) for strands in Recording.rounds)
            times.append(total / (total - alone + spent))
        shown = " ".join(f"{x:6.2f}" for x in times)
        fitted = exponent((1, *WORKERS), [1.0, *(1.0 / x for x in times)])
        print(f"  {name:<12}{total:6.1f} s of one core  {shown}   {fitted:.2f}", flush=True)


if __name__ == "__main__":
    main(*(int(word) if word.isdigit() else word for word in sys.argv[1:]))  # type: ignore[arg-type]
