"""CADP's sweep against MMBI's: `python -m benchmarks.cadp`. Ratios of medians inside one run.

A CADP sweep is the forward occupancies of all stages and the backward improvement; an MMBI sweep is its backward
induction over the same stages, in the same layout (both without the copy into that layout, made once).
"""

import statistics
import time
from collections.abc import Callable

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.kernels import sweep
from beliefbound.planning.cadp import Ascent
from beliefbound.planning.mmbi import induct

SIZES = ((16, 5, 2, 180), (32, 100, 4, 100))  # models, states, actions, horizon


def interleaved(functions: list[Callable[[], object]], seconds: float = 2.0) -> list[float]:
    """Median time of each function, called in turn for `seconds`."""
    for function in functions:
        function()
    times: list[list[float]] = [[] for _ in functions]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for function, kept in zip(functions, times, strict=True):
            begin = time.perf_counter()
            function()
            kept.append(time.perf_counter() - begin)
    return [statistics.median(kept) for kept in times]


def sweeps(n_models: int, n_states: int, n_actions: int, horizon: int) -> tuple[float, float, float]:
    """Seconds of an MMBI sweep, of a CADP sweep with full occupancies, and of one as CADP runs it on average."""
    rng = np.random.default_rng(1)
    transitions = rng.dirichlet(np.full(n_states, 0.3), size=(n_models, n_states, n_actions))
    belief = FiniteBelief(transitions, rng.random((n_states, n_actions)))
    ascent = Ascent(belief, 0.95, horizon, np.full(n_states, 1.0 / n_states))
    actions, _ = induct(belief.models, belief.weights, 0.95, horizon)
    values = np.zeros((n_states, n_models))
    p, r = belief.models.transitions.lanes(), np.ascontiguousarray(np.moveaxis(belief.models.rewards, 0, -1))

    def mmbi_sweep() -> None:
        if ascent.lanes:
            values[:] = 0.0
            sweep.induct_lanes(p, r, ascent.weights, belief.models.available, 0.95, values, actions.copy())
        else:
            induct(belief.models, belief.weights, 0.95, horizon)

    def cadp_sweep() -> None:
        ascent.sweep(actions.copy(), 0)

    def climb() -> None:
        ascent.climb(actions, "MMBI")

    count = ascent.climb(actions, "MMBI").sweeps
    mmbi_time, cadp_time, climb_time = interleaved([mmbi_sweep, cadp_sweep, climb])
    return mmbi_time, cadp_time, climb_time / count


def main() -> None:
    """Print one line per size."""
    print("models states actions horizon | MMBI sweep  CADP sweep  ratio | within an ascent  ratio")
    for size in SIZES:
        mmbi_time, cadp_time, average = sweeps(*size)
        print(
            f"{size[0]:6d} {size[1]:6d} {size[2]:7d} {size[3]:7d} | {1e3 * mmbi_time:7.3f} ms "
            f"{1e3 * cadp_time:8.3f} ms {cadp_time / mmbi_time:6.2f} | "
            f"{1e3 * average:13.3f} ms {average / mmbi_time:6.2f}"
        )


if __name__ == "__main__":
    main()
