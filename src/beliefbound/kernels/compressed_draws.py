"""Models of a product-Dirichlet belief drawn straight into compressed rows, as sets of models store them.

The law is that of `kernels.planning.compressed_rows`, whose text has the proof: entries of a row that share the least
concentration are exchangeable, so sticks are broken over them until less than `LEFT = 1e-12` of the row is left, which
goes to one more state. A draw takes as long as it has entries, however many states there are.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.draws import dirichlet_row
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.planning.compressed_rows import BLOCK, break_sticks

kernel = njit(**EXACT)


@kernel
def draw_by_row(stream, alpha, common, n):
    """n draws of each row of `alpha[row,t]`, in which entries of size `common[row]` are exchangeable.

    Returns `(lengths [row,m], next_state [entry], p [entry])`, the draws of a row one after the other. A row without
    positive entries is empty.
    """
    n_rows, n_states = alpha.shape
    lengths = np.zeros((n_rows, n), np.int64)
    index, p = np.empty(16 * n_rows * n + n_states, np.int32), np.empty(16 * n_rows * n + n_states)
    seen, others, sticks = np.empty(n_states, np.int64), np.empty(n_states, np.int64), np.empty(n_states)
    shape, drawn, block = np.empty(n_states + 1), np.empty(n_states + 1), np.empty((2, BLOCK))
    at = 0
    for row in range(n_rows):
        k, u = 0, 0
        for t in range(n_states):
            if alpha[row, t] == common[row]:
                others[u] = t
                u += 1
            elif alpha[row, t] > 0.0:
                seen[k], shape[k] = t, alpha[row, t]
                k += 1
        shape[k] = u * common[row]
        parts = k + 1 if u > 0 else k
        if parts == 0:
            continue
        for m in range(n):
            if at + n_states > p.size:
                wider, larger = np.empty(2 * p.size + n_states, np.int32), np.empty(2 * p.size + n_states)
                for i in range(at):
                    wider[i], larger[i] = index[i], p[i]
                index, p = wider, larger
            first = at
            dirichlet_row(stream, shape[:parts], drawn[:parts])
            for i in range(k):
                index[at], p[at] = seen[i], drawn[i]
                at += 1
            if u > 0:
                for i in range(break_sticks(stream, drawn[k], common[row], others[:u], sticks, block)):
                    index[at], p[at] = others[u - 1 - i], sticks[i]
                    at += 1
            lengths[row, m] = at - first
    return lengths, index[:at], p[:at]


@kernel
def by_model(lengths, index, p):
    """The same, models first: `(starts [(m,row) + 1], next_state [entry], p [entry])`."""
    n_rows, n = lengths.shape
    starts = np.zeros(n * n_rows + 1, np.int64)
    for m in range(n):
        for row in range(n_rows):
            i = m * n_rows + row
            starts[i + 1] = starts[i] + lengths[row, m]
    moved, placed = np.empty(index.size, np.int32), np.empty(p.size)
    at = 0
    for row in range(n_rows):
        for m in range(n):
            to = starts[m * n_rows + row]
            for i in range(lengths[row, m]):
                moved[to + i], placed[to + i] = index[at + i], p[at + i]
            at += lengths[row, m]
    return starts, moved, placed
