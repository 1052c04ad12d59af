"""Timing by interleaved repeats: every contender runs in turn, so a noisy neighbour hits all of them."""

import time
from collections.abc import Callable

import numpy as np


def race(contenders: dict[str, Callable[[], object]], repeats: int = 7) -> dict[str, float]:
    """Median seconds of each contender over interleaved repeats; one warm-up call each."""
    for run in contenders.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, run in contenders.items():
            begin = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begin)
    return {name: float(np.median(seconds)) for name, seconds in times.items()}


def show(title: str, times: dict[str, float], ours: str, target: str = "") -> None:
    """Print seconds and each contender's time as a multiple of ours."""
    print(f"\n{title}" + (f"   [target: {target}]" if target else ""))
    for name, seconds in times.items():
        ratio = "" if name == ours else f"   {seconds / times[ours]:8.2f} x ours"
        print(f"  {name:<44} {1e3 * seconds:10.3f} ms{ratio}")
