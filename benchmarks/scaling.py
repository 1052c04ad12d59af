"""How cost grows: a stage and a plan against states, actions, models, horizon and threads, each with the exponent that
fits, beside that of the paper's complexity lemma, `O(|M| |S|² |A| T)` multiply-adds for MMBI over `T` decisions.

Seconds are the processor's, so that a busy machine shows the same; where threads share work, seconds by the clock.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np

import beliefbound as bb
from beliefbound.base.executors.threads import available_threads
from benchmarks.race import problem

BASE = {"models": 32, "states": 120, "actions": 4, "horizon": 20}
LEMMA = {"models": 1.0, "states": 2.0, "actions": 1.0, "horizon": 1.0}
GRID = {
    "models": (8, 16, 32, 64, 128),
    "states": (40, 60, 120, 240, 480),
    "actions": (2, 4, 8, 16),
    "horizon": (10, 20, 40, 80, 160),
}
DRAWN = (50, 100, 200, 400)
SEARCHED = ("species-4", "species-6", "bandit-64-5", "chain-16", "chain-64")
REPEATS = 2


def belief_of(models: int, states: int, actions: int) -> bb.FiniteBelief:
    rng = np.random.default_rng(1)
    p = rng.random((models, states, actions, states))
    p /= p.sum(axis=-1, keepdims=True)
    return bb.FiniteBelief(p, rng.random(p.shape[:3]), reward_signal="unobserved", initial=0)


def seconds(run: Callable[[], object]) -> float:
    """Of the processor: the least of three, after one to compile."""
    times = []
    for _ in range(4):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return min(times[1:])


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """`k` of the power law that fits best."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def planners(axis: str) -> None:
    plans: dict[str, Callable[..., object]] = {
        "mmbi": lambda belief, **knobs: bb.mmbi(belief, **knobs),
        "cadp": lambda belief, **knobs: bb.cadp(belief, restarts=False, **knobs),
        "e_max": lambda belief, **knobs: bb.e_max(belief, **knobs),
    }
    shown = " ".join(f"{size:>9}" for size in GRID[axis])
    print(f"\n{axis:<12}{shown}   exponent (lemma: {LEMMA[axis]:g})")
    for name, plan in plans.items():
        costs = []
        for size in GRID[axis]:
            size_of = {**BASE, axis: size}
            belief = belief_of(size_of["models"], size_of["states"], size_of["actions"])
            costs.append(seconds(lambda b=belief, h=size_of["horizon"], f=plan: f(b, discount=0.95, horizon=h)))
        row = " ".join(f"{1e3 * cost:>9.2f}" for cost in costs)
        print(f"  {name:<10}{row}   {exponent(GRID[axis], costs):.2f}", flush=True)


def draws() -> None:
    """MSBI on posterior draws: drawing, planning and valuing."""
    belief = bb.DirichletBelief(50, 4, concentration=0.2, initial=0)
    costs = []
    for n in DRAWN:
        run = lambda n=n: bb.msbi(belief, discount=0.95, horizon=20, n_models=n, n_evaluate=n, rng=1)  # noqa: E731
        costs.append(seconds(run))
    row = " ".join(f"{1e3 * cost:>9.2f}" for cost in costs)
    print(f"\ndraws       {' '.join(f'{n:>9}' for n in DRAWN)}   exponent (lemma: 1)")
    print(f"  msbi      {row}   {exponent(DRAWN, costs):.2f}", flush=True)


def threads() -> None:
    """The same certificate on more threads: by the clock and of the processor, and the exponent of the clock."""
    counts = {n: bb.DirichletBelief(n, 2, concentration=0.2, initial=0) for n in (5, 20)}
    cases: dict[str, tuple[bb.Belief, float, int]] = {name: (*problem(name), 60) for name in SEARCHED}
    cases |= {f"counts, {n} states": (belief, 0.95, 40) for n, belief in counts.items()}
    cores = available_threads()
    asked = sorted({1, min(2, cores), min(4, cores), cores})
    print("\nthe same effort on threads: seconds by the clock (of the processor); exponent of the clock's")
    for name, (belief, discount, effort) in cases.items():
        row, clocks, ends = [], [], set()
        for n in asked:
            bb.bracket(belief, discount=discount, effort=effort // 2, rng=1, threads=n)  # to load what is compiled
            best = (np.inf, np.inf)
            for _ in range(REPEATS):
                begin = time.perf_counter(), time.process_time()
                found = bb.bracket(belief, discount=discount, effort=effort, rng=1, threads=n)
                best = min(best, (time.perf_counter() - begin[0], time.process_time() - begin[1]))
                ends.add((found.lower.value, found.upper.value))
            clocks.append(best[0])
            row.append(f"{best[0]:7.2f} ({best[1]:.2f})")
        fitted = f"{exponent(asked, clocks):.2f}" if len(asked) > 1 else "–"
        same = "the same ends" if len(ends) == 1 else "ENDS DIFFER"
        print(f"  {name:<18}{' '.join(row)}   {fitted}   {clocks[0] / min(clocks):.2f} times, {same}", flush=True)


def main() -> None:
    print("milliseconds of the processor; where one size varies the others are", BASE)
    for axis in GRID:
        planners(axis)
    draws()
    threads()


if __name__ == "__main__":
    main()
