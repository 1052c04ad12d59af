"""How large things may get, in one place: what each limit trades, and the checks of sizes.

Limits of bytes choose a layout or refuse what would not fit in memory; they never change a result beyond rounding,
except those under "Effort of searches", which bound it: less of it, looser bounds.
"""

import math
from collections.abc import Sequence
from typing import Any

from beliefbound.base.errors import BeliefboundError, ParameterError
from beliefbound.base.validation import check_count

# Layouts.
LANES_BYTES = 1 << 20  # up to here a models-last copy lives in the second-level cache and SIMD over models pays
SHORT_ROW = 16  # entries: a row of one model is added up one by one; stage by stage from Python takes longer
COMPRESS_BYTES = 1 << 20  # from here on a dense array that is nearly empty is swept in compressed rows
SPARSE_BYTES = 64 << 20  # a table of transitions above this is read and kept in compressed rows, if mostly empty
STACK_BYTES = 64 << 20  # sparse models up to here are copied into one matrix, which is swept in one call
COMPRESS_SHARE = 0.04  # "nearly empty": at most this share of entries; the rows then take under 6% of the array
SOLVE_BYTES = 32 << 20  # dense linear systems are solved in batches of this size: memory stays that of the rewards

# What is refused.
ARRAY_BYTES = 16 << 30  # one array that a constructor allocates
FILE_BYTES = 4 << 30  # arrays of one file, once unpacked: a small archive may claim to be large
HEADER_BYTES = 64 << 10  # words at the head of an archive of arrays
SPEC_BYTES = 100_000  # a spec: a hundred agents with all their parameters are a tenth of that
TEXT_BYTES = 256 << 20  # a problem as words: POMDPX or Cassandra format; larger ones come as arrays
AGENT_BYTES = 4 << 30  # tables of counts, or of sampled models, that one agent holds
RUN_BYTES = 8 << 30  # totals, curves and visits of one call of `play`: fewer runs at a time, or sparser curves
OUTCOME_BYTES = 2 << 30  # outcome rows of a finite belief, models × (pair, arrival, reward): no search beyond
DENSE_BYTES = 8 << 30  # a compressed set is written out as an array, where an algorithm needs one, up to here
INVERSE_BYTES = 4 << 30  # CADP without a horizon keeps one inverse per model: exact swaps, or none
STAGE_BYTES = 4 << 30  # policies, values and occupancies per stage: a longer horizon needs a stationary policy
MOST_STAGES = 10_000_000  # decisions: beyond, even one state takes minutes; no horizon and a discount say the same
MOST_WORK = 1e13  # multiply-adds of one backwards induction: an hour or so

# Effort of searches.
TABLE_BYTES = 1 << 28  # leaf values of a belief graph, one table a stage: fewer stages, looser leaves
PAIR_BYTES = 1 << 27  # leaf values by pairs of models: fewer pairings and coarser grids
CELL_BYTES = 1 << 28  # leaf values by cells of models, and scratch to solve one: coarser grids, or smaller cells
GRAPH_BYTES = 1 << 30  # nodes of one belief graph; each thread that samples has a copy
PARTICLE_BYTES = 256 << 20  # histories, particle sets and rows of one thread: smaller sets, looser bounds
ROWS_BYTES = 64 << 20  # rows that a policy which replans keeps between steps: drawn again where they do not fit


def check_size(shape: Sequence[int], what: str, error: type[BeliefboundError], *, fix: str) -> None:
    """An array of floats of this shape may be allocated."""
    nbytes = 8 * math.prod(shape)
    if nbytes > ARRAY_BYTES:
        raise error(f"{what} of shape {tuple(shape)} needs {nbytes / 2**30:,.0f} GiB; {fix}")


def check_horizon(horizon: Any, work: int, stage_bytes: int = 0) -> int:
    """A number of decisions that can be made: a stage costs `work` multiply-adds and keeps `stage_bytes`.

    >>> check_horizon(10, 100)
    10
    """
    stages = check_count(horizon, "horizon")
    if stages > MOST_STAGES or stages * work > MOST_WORK:
        raise ParameterError(
            f"horizon is {stages}, that is {float(stages) * work:.2g} multiply-adds; give at most "
            f"{max(1, min(MOST_STAGES, int(MOST_WORK / max(1, work))))}, or no horizon and a discount below 1"
        )
    if stages * stage_bytes > STAGE_BYTES:
        raise ParameterError(
            f"horizon is {stages}, which needs {stages * stage_bytes / 2**30:.1f} GiB for its stages; give at most "
            f"{max(1, STAGE_BYTES // stage_bytes)}, or no horizon and a discount below 1"
        )
    return stages
