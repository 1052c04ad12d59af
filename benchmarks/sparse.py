"""Sparse models at a million states: how long they take to build, what a sweep reads a second on one core and on two,
and the most memory the process has held, as a multiple of the models'. Beside it, how fast the same cores read as many
arrays of numbers that lie one after the other, and only add them up: no sweep can be faster than that.

Successors of a state lie close by, as where stocks or queues change a little, or anywhere. Models have one support, as
posterior draws and re-estimated models have. Each case is a process of its own, so that its peak is its own.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numba import njit

MODELS, STATES, ACTIONS, SUCCESSORS = 8, 1_000_000, 4, 5
SWEEPS = 5


def support(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Successors `[(s,a), k]` of every pair, ascending and different."""
    if kind == "close by":
        gaps = rng.integers(1, 20, (STATES * ACTIONS, SUCCESSORS), dtype=np.int32).cumsum(axis=1, dtype=np.int32)
        first = np.repeat(np.arange(STATES, dtype=np.int32), ACTIONS)[:, None] - np.int32(50)
        return np.sort((first + gaps) % STATES, axis=1)
    gaps = rng.integers(1, STATES // SUCCESSORS, (STATES * ACTIONS, SUCCESSORS), dtype=np.int32)
    return np.sort(gaps.cumsum(axis=1, dtype=np.int32) % STATES, axis=1)


def peak() -> int:
    """The most memory this process has held, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def sweep_seconds(belief, cores: set[int]) -> tuple[float, float]:
    """Of one MMBI stage on these cores, and of their processors together: the least of several."""
    os.sched_setaffinity(0, cores)
    models, weights = belief.models, belief.weights
    values, q = np.zeros((MODELS, STATES)), np.empty(models.rewards.shape)
    actions, times = np.empty(STATES, dtype=np.int64), []
    for _ in range(SWEEPS + 1):
        begin = time.perf_counter(), time.process_time()
        models.greedy(values, weights, 0.95, q=q, actions=actions, out=values)
        times.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    spent, busy = (min(each) for each in zip(*times[1:], strict=True))
    return spent, busy


def reading_seconds(matrices, cores: set[int]) -> float:
    """Of adding up all probabilities on these cores, a thread each: the least of several."""
    os.sched_setaffinity(0, cores)
    parts = [part for matrix in matrices for part in np.array_split(matrix.data, 16)]
    times = []
    with ThreadPoolExecutor(len(cores)) as pool:
        for _ in range(SWEEPS + 1):
            begin = time.perf_counter()
            list(pool.map(added_up, parts))
            times.append(time.perf_counter() - begin)
    return min(times[1:])


@njit(nogil=True, fastmath=True)
def added_up(numbers):
    total = 0.0
    for i in range(numbers.size):
        total += numbers[i]
    return total


def case(kind: str) -> None:
    import scipy.sparse as sp

    import beliefbound as bb

    rng = np.random.default_rng(1)
    pairs = STATES * ACTIONS
    indices, indptr = support(kind, rng).ravel(), np.arange(0, pairs * SUCCESSORS + 1, SUCCESSORS, dtype=np.int32)
    given = []
    for _ in range(MODELS):
        chances = rng.random((pairs, SUCCESSORS))
        chances /= chances.sum(axis=1, keepdims=True)
        given.append(sp.csr_array((chances.ravel(), indices, indptr), shape=(pairs, STATES)))
    rewards = rng.random((MODELS, STATES, ACTIONS))
    begin = time.perf_counter()
    belief = bb.FiniteBelief(given, rewards, reward_signal="unobserved", initial=0)
    built = time.perf_counter() - begin
    matrices = belief.models.transitions.matrices
    stored = sum(matrix.data.nbytes for matrix in matrices) + rewards.nbytes
    stored += indices.nbytes + indptr.nbytes
    cores = sorted(os.sched_getaffinity(0))
    rows = []
    for n in sorted({1, min(2, len(cores)), len(cores)}):
        seconds, busy = sweep_seconds(belief, set(cores[:n]))
        rate = f"{stored / busy / 1e9:.1f} GB/s of processor time, {stored / seconds / 1e9:.1f} by the clock"
        read = sum(matrix.data.nbytes for matrix in matrices) / reading_seconds(matrices, set(cores[:n])) / 1e9
        rows.append(f"on {n} core{'s' * (n > 1)} {rate}; this machine's memory reads at {read:.1f} GB/s there")
    begin = time.perf_counter()
    plan = bb.mmbi(belief, discount=0.95, horizon=20)
    planned = time.perf_counter() - begin
    begin = time.perf_counter()
    bb.evaluate(plan.policy.first_step(), belief, discount=0.5)
    print(f"successors {kind}: models of {stored / 1e9:.2f} GB, built in {built:.1f} s")
    for row in rows:
        print(f"  a sweep {row}")
    print(f"  mmbi over 20 decisions {planned:.1f} s; a policy valued for ever {time.perf_counter() - begin:.1f} s")
    print(f"  peak {peak() / 1e9:.2f} GB, {peak() / stored:.2f} x the models")


def main() -> None:
    print(f"{MODELS} models x {STATES:,} states x {ACTIONS} actions x {SUCCESSORS} successors, one support, float64")
    for kind in ("close by", "anywhere"):
        subprocess.run([sys.executable, "-m", "benchmarks.sparse", kind], check=True)


if __name__ == "__main__":
    case(*sys.argv[1:])
