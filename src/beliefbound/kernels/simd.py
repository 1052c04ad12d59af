"""Explicit vectors for the one inner loop that compilers miss: a backup of one row for a few models at once.

`for t: for m: q[m] += p[t,m] v[t,m]` has a short inner loop; a compiler that vectorises it stores and reloads every
`q[m]` at every `t`, and first tests at run time whether the arrays overlap. Written as vectors, the sums stay in
registers. Multiplications and additions are kept apart and in order, so results are the same on every machine and
wherever the code is inlined.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_DOUBLE, _LANE = ir.DoubleType(), ir.IntType(32)


def _address(context, builder, array, kind, index, vector):
    """The address of `vector` at a flat index of a C-ordered array of doubles."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _sum(builder, x):
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


def _backup_block(width):
    """The backup for `width` neighbouring models; see `backup_block_8`."""
    vector = ir.VectorType(_DOUBLE, width)

    @intrinsic
    def block(typing_context, p, i, v, j, n_next, n_models, r, k, discount, w, out, o):
        signature = types.float64(p, i, v, j, n_next, n_models, r, k, discount, w, out, o)

        def generate(context, builder, signature, arguments):
            p, i, v, j, n_next, n_models, r, k, discount, w, out, o = arguments
            kinds = signature.args

            def read(array, kind, index):
                return builder.load(_address(context, builder, array, kind, index, vector), align=8)

            first = builder.fmul(read(p, kinds[0], i), read(v, kinds[2], j))
            total = cgutils.alloca_once_value(builder, first)
            with cgutils.for_range(builder, n_next, start=ir.Constant(n_next.type, 1)) as loop:
                step = builder.mul(loop.index, n_models)
                product = builder.fmul(read(p, kinds[0], builder.add(i, step)), read(v, kinds[2], builder.add(j, step)))
                builder.store(builder.fadd(builder.load(total), product), total)
            factor = ir.Constant(vector, ir.Undefined)
            for lane in range(width):
                factor = builder.insert_element(factor, discount, ir.Constant(_LANE, lane))
            q = builder.fadd(read(r, kinds[6], k), builder.fmul(factor, builder.load(total)))
            builder.store(q, _address(context, builder, out, kinds[10], o, vector), align=8)
            return _sum(builder, builder.fmul(read(w, kinds[9], j), q))

        return signature, generate

    return block


def _copy_block(width):
    """`out[o + l] = q[i + l]` for `width` lanes l."""
    vector = ir.VectorType(_DOUBLE, width)

    @intrinsic
    def block(typing_context, q, i, out, o):
        def generate(context, builder, signature, arguments):
            q, i, out, o = arguments
            value = builder.load(_address(context, builder, q, signature.args[0], i, vector), align=8)
            builder.store(value, _address(context, builder, out, signature.args[2], o, vector), align=8)
            return context.get_dummy_value()

        return types.void(q, i, out, o), generate

    return block


# `backup_block_8(p, i, v, j, n_next, n_models, r, k, discount, w, out, o)` for models j … j + 7 computes
# `out[o + l] = r[k + l] + discount Σ_t p[i + t n_models + l] v[t n_models + j + l]` and returns `Σ_l w[j + l] out[o + l]`.
# Arrays are C-ordered float64 of any shape, indices count flat elements.
backup_block_16 = _backup_block(16)
backup_block_8 = _backup_block(8)
backup_block_4 = _backup_block(4)
copy_block_8 = _copy_block(8)
copy_block_4 = _copy_block(4)
