"""One Bellman backup over compressed rows, `q[i] = r[i] + γ Σ_k p[k] v[t(k)]`, for a range of rows: threads share a
sweep by ranges, and the bits are the same for any number of them.

What a row reads of `v` is scattered. Where models share their support, four of them are swept at once: `v[t,4]` lies in
one half of a cache line, so one index and one access serve four models, and the line is asked for `AHEAD` entries
before it is used. On 10⁶ states, 8 models and successors at random that is 3.6 times as fast as model by model; with
successors close by, 1.6 times.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from beliefbound.kernels.options import EXACT, FAST

AHEAD = 16  # entries: of 8, 16, 32 and 64 the best at random successors, and all alike at close ones


@intrinsic
def fetch(typing_context, array, place):
    """Ask for the cache line of `array[place]`, flat; nothing waits for it."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address, word, word, word])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        to_read, keep, of_data = (ir.Constant(word, x) for x in (0, 3, 1))
        builder.call(call, [builder.bitcast(builder.gep(data, [arguments[1]]), address), to_read, keep, of_data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@njit(**FAST)
def backup_csr(indptr, indices, data, r, discount, v, q, first, last):
    """`q[(m,s,a)]` of rows `first … last − 1` from compressed rows over `(m,s,a)` and `v[m,t]`."""
    per_model = r.shape[0] // v.shape[0]
    i = first
    while i < last:  # model by model: a division a row made short rows a third slower
        m = i // per_model
        values, end = v[m], min(last, (m + 1) * per_model)
        for row in range(i, end):
            total = 0.0
            for k in range(indptr[row], indptr[row + 1]):
                total += data[k] * values[indices[k]]
            q[row] = r[row] + discount * total
        i = end


@njit(**EXACT)
def backup_four(indptr, indices, p0, p1, p2, p3, r, discount, v, q, first, last):
    """`q[4,(s,a)]` of rows `first … last − 1` of four models with one support: their entries `p0 … p3`, `r[4,(s,a)]`
    and `v[t,4]`."""
    flat, most = v.reshape(-1), indices.size - 1
    for i in range(first, last):
        t0 = t1 = t2 = t3 = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            fetch(flat, np.int64(indices[min(k + AHEAD, most)]) * 4)
            t = indices[k]
            t0 += p0[k] * v[t, 0]
            t1 += p1[k] * v[t, 1]
            t2 += p2[k] * v[t, 2]
            t3 += p3[k] * v[t, 3]
        q[0, i] = r[0, i] + discount * t0
        q[1, i] = r[1, i] + discount * t1
        q[2, i] = r[2, i] + discount * t2
        q[3, i] = r[3, i] + discount * t3
