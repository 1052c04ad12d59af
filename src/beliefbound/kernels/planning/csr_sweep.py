"""One Bellman backup over compressed rows, `q[i] = r[i] + γ Σ_k p[k] v[t(k)]`, for a range of rows: threads share a
sweep by ranges, and the bits are the same for any number of them.

What a row reads of `v` is scattered. Where models share their support, up to eight of them are swept at once: `v[t,8]`
is a cache line, so one index and one access serve eight models, one SIMD lane each, and the line is asked for `AHEAD`
entries before it is used. Probabilities stay in an array a model, from which lanes are put together: that costs a
shuffle an entry, which is hidden by the wait for memory, and no copy.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from beliefbound.kernels.options import EXACT, FAST

TOGETHER = 8  # models, at most: doubles of a cache line
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


@intrinsic
def add_up(typing_context, indices, chances, v, first, last, totals):
    """`totals[l] = Σ_k chances[l][k] v[indices[k],l]` over `first ≤ k < last`, in order, for every lane l: one array of
    probabilities a lane. Arrays are C-ordered; the entries exist."""
    vector, index = ir.VectorType(ir.DoubleType(), len(chances)), ir.IntType(64)

    def generate(context, builder, signature, arguments):
        def data(kind, array):
            return context.make_array(kind)(context, builder, array).data

        states, values, target = (data(signature.args[k], arguments[k]) for k in (0, 2, 5))
        each = [data(signature.args[1].dtype, array) for array in cgutils.unpack_tuple(builder, arguments[1])]
        total = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * vector.count))
        with cgutils.for_range(builder, builder.sub(arguments[4], arguments[3])) as loop:
            k = builder.add(arguments[3], loop.index)
            state = builder.sext(builder.load(builder.gep(states, [k])), index)
            row = builder.gep(values, [builder.mul(state, ir.Constant(index, vector.count))])
            weights = ir.Constant(vector, ir.Undefined)
            for lane, data_of_lane in enumerate(each):
                chance = builder.load(builder.gep(data_of_lane, [k]))
                weights = builder.insert_element(weights, chance, ir.Constant(ir.IntType(32), lane))
            product = builder.fmul(weights, builder.load(builder.bitcast(row, vector.as_pointer()), align=8))
            builder.store(builder.fadd(builder.load(total), product), total)
        builder.store(builder.load(total), builder.bitcast(target, vector.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(indices, chances, v, types.int64, types.int64, totals), generate


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
def backup_together(indptr, indices, chances, r, discount, v, q, first, last):
    """`q[m,(s,a)]` of rows `first … last − 1` of a few models with one support: a tuple of their entries, `r[m,(s,a)]`
    and `v[t,m]`."""
    n, flat, most = len(chances), v.reshape(-1), indices.size - 1
    totals = np.empty(n)
    for i in range(first, last):
        begin, end = indptr[i], indptr[i + 1]
        for k in range(begin, end):
            fetch(flat, np.int64(indices[min(k + AHEAD, most)]) * n)
        add_up(indices, chances, v, begin, end, totals)
        for m in range(n):
            q[m, i] = r[m, i] + discount * totals[m]


@njit(**EXACT)
def lanes_of_values(values, v, first, last):
    """`v[t,m] = values[m,t]` of states `first … last − 1`."""
    for t in range(first, last):
        for m in range(values.shape[0]):
            v[t, m] = values[m, t]
