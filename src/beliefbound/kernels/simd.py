"""Explicit vectors for the one loop that compilers miss: the backup of every row for a few models at once.

`for t: for m: q[m] += p[t,m] v[t,m]` has a short inner loop; a compiler that vectorises it stores and reloads every
`q[m]` at every `t`, and first tests at run time whether the arrays overlap. Written as vectors, the sums stay in
registers. Multiplications and additions are kept apart and in order, so results are the same on every machine and
wherever the code is inlined.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_LANE = ir.IntType(32)
_LINE = 64  # bytes of a cache line: a vector that straddles two of them costs two loads


def zeros(*shape: int) -> npt.NDArray[np.float64]:
    """Zeros `[shape]`, float64, at the start of a cache line."""
    raw = np.zeros(8 * math.prod(shape) + _LINE, dtype=np.uint8)
    first = -raw.ctypes.data % _LINE
    return raw[first : first + 8 * math.prod(shape)].view(np.float64).reshape(shape)


def copied(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy, at the start of a cache line if it holds doubles."""
    if array.dtype != np.float64:
        return array.copy()
    copy = zeros(*array.shape)
    copy[...] = array
    return copy


def _lanes_sum(builder, x):
    """The sum over lanes: the upper half is added to the lower until one lane is left."""
    size = x.type.count
    while size > 1:
        size //= 2
        empty = ir.Constant(x.type, ir.Undefined)
        lower, upper = (
            builder.shuffle_vector(x, empty, ir.Constant(ir.VectorType(_LANE, size), list(lanes)))
            for lanes in (range(size), range(size, 2 * size))
        )
        x = builder.fadd(lower, upper)
    return builder.extract_element(x, ir.Constant(_LANE, 0))


def _backup(width):
    """`backup(p, r, w, discount, v, q, mixed, n_states, n_actions, n_models, m, w_step)`, models m … m + width − 1:

    `q[s,a,m] = r[s,a,m] + discount Σ_t p[s,a,t,m] v[t,m]` and `mixed[s,a] += Σ_m w_s[m] q[s,a,m]` for every state and
    action, where the weights `w_s` stand `w_step` doubles further for each state: 0 for one set of weights. Arrays are
    C-ordered float64 with models as their last axis; the models exist.
    """
    vector = ir.VectorType(ir.DoubleType(), width)

    @intrinsic
    def backup(typing_context, p, r, w, discount, v, q, mixed, n_states, n_actions, n_models, m, w_step):
        signature = types.void(p, r, w, discount, v, q, mixed, n_states, n_actions, n_models, m, w_step)

        def generate(context, builder, signature, arguments):
            def pointer(k, offset):
                array = context.make_array(signature.args[k])(context, builder, arguments[k])
                return builder.gep(array.data, [offset])

            def read(address):
                return builder.load(builder.bitcast(address, vector.as_pointer()), align=8)

            def advance(variable, by):
                builder.store(builder.gep(builder.load(variable), [by]), variable)

            discount, n_states, n_actions, n_models, m, w_step = (arguments[k] for k in (3, 7, 8, 9, 10, 11))
            p_at, r_at, w_at, q_at = (cgutils.alloca_once_value(builder, pointer(k, m)) for k in (0, 1, 2, 5))
            mixed_at = cgutils.alloca_once_value(builder, pointer(6, ir.Constant(m.type, 0)))
            v_first = pointer(4, m)
            v_at = cgutils.alloca_once_value(builder, v_first)
            zero, factor = ir.Constant(vector, [0.0] * width), ir.Constant(vector, ir.Undefined)
            total = cgutils.alloca_once_value(builder, zero)
            for lane in range(width):
                factor = builder.insert_element(factor, discount, ir.Constant(_LANE, lane))
            with cgutils.for_range(builder, n_states):
                weights = read(builder.load(w_at))
                with cgutils.for_range(builder, n_actions):
                    builder.store(v_first, v_at)
                    builder.store(zero, total)
                    with cgutils.for_range(builder, n_states):
                        product = builder.fmul(read(builder.load(p_at)), read(builder.load(v_at)))
                        builder.store(builder.fadd(builder.load(total), product), total)
                        advance(p_at, n_models)
                        advance(v_at, n_models)
                    value = builder.fadd(read(builder.load(r_at)), builder.fmul(factor, builder.load(total)))
                    builder.store(value, builder.bitcast(builder.load(q_at), vector.as_pointer()), align=8)
                    advance(r_at, n_models)
                    advance(q_at, n_models)
                    sum_at = builder.load(mixed_at)
                    share = _lanes_sum(builder, builder.fmul(weights, value))
                    builder.store(builder.fadd(builder.load(sum_at), share), sum_at)
                    advance(mixed_at, ir.Constant(m.type, 1))
                advance(w_at, w_step)
            return context.get_dummy_value()

        return signature, generate

    return backup


def _copy(width):
    """`copy(source, i, target, j)`: `target[j + l] = source[i + l]` for `width` lanes l, indices into flat arrays."""
    vector = ir.VectorType(ir.DoubleType(), width).as_pointer()

    @intrinsic
    def copy(typing_context, source, i, target, j):
        def generate(context, builder, signature, arguments):
            def address(k):
                array = context.make_array(signature.args[k])(context, builder, arguments[k])
                return builder.bitcast(builder.gep(array.data, [arguments[k + 1]]), vector)

            builder.store(builder.load(address(0), align=8), address(2), align=8)
            return context.get_dummy_value()

        return types.void(source, i, target, j), generate

    return copy


def _spread(width):
    """`spread(b, i, p, j, k, n_next, n_models)`: `b[k + t·n + l] += b[i + l] · p[j + t·n + l]` for `width` lanes l and
    every next state t, with n = `n_models`; indices into flat arrays.
    """
    vector = ir.VectorType(ir.DoubleType(), width)

    @intrinsic
    def spread(typing_context, b, i, p, j, k, n_next, n_models):
        def generate(context, builder, signature, arguments):
            def address(array, index):
                data = context.make_array(signature.args[array])(context, builder, arguments[array]).data
                return builder.gep(data, [arguments[index]])

            def lanes(at):
                return builder.bitcast(at, vector.as_pointer())

            weights = builder.load(lanes(address(0, 1)), align=8)
            p_at, to_at = (cgutils.alloca_once_value(builder, address(*where)) for where in ((2, 3), (0, 4)))
            with cgutils.for_range(builder, arguments[5]):
                to = lanes(builder.load(to_at))
                product = builder.fmul(weights, builder.load(lanes(builder.load(p_at)), align=8))
                builder.store(builder.fadd(builder.load(to, align=8), product), to, align=8)
                for variable in (p_at, to_at):
                    builder.store(builder.gep(builder.load(variable), [arguments[6]]), variable)
            return context.get_dummy_value()

        return types.void(b, i, p, j, k, n_next, n_models), generate

    return spread


backup_16, backup_8, backup_4, backup_1 = (_backup(width) for width in (16, 8, 4, 1))
copy_8 = _copy(8)
spread_16, spread_8, spread_1 = (_spread(width) for width in (16, 8, 1))
