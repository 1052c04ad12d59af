"""Explicit vectors for the loops that compilers miss: the backup of every row for a few models at once, and its mirror
image, the occupancies of the next stage; and the products of many compressed rows with a vector.

`for t: for m: q[m] += p[t,m] v[t,m]` has a short inner loop; a compiler that vectorises it stores and reloads every
`q[m]` at every `t`, and first tests at run time whether the arrays overlap. Written as vectors, the sums stay in
registers. Multiplications and additions are kept apart and in order, so results are the same on every machine and
wherever the code is inlined.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_LANE = ir.IntType(32)
_TILE = 4  # next states whose sums are kept in registers together


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


def _sums(builder, vector, n_states, term, offsets):
    """Vectors `Σ_s weights_s · row_s[offset …]`, one for every offset: sums in registers, states in order.

    `term(s)` gives the address of a double that is zero when the state is left out, its weights, and where its row is.
    """
    totals = [cgutils.alloca_once(builder, vector) for _ in offsets]
    for total in totals:
        builder.store(ir.Constant(vector, [0.0] * vector.count), total)
    with cgutils.for_range(builder, n_states) as loop:
        test, weights, row = term(loop.index)
        counts = builder.fcmp_ordered("!=", builder.load(test), ir.Constant(vector.element, 0.0))
        with builder.if_then(counts, likely=True):
            for total, offset in zip(totals, offsets, strict=True):
                at = builder.bitcast(builder.gep(row, [offset]), vector.as_pointer())
                product = builder.fmul(weights, builder.load(at, align=8))
                builder.store(builder.fadd(builder.load(total), product), total)
    return [builder.load(total) for total in totals]


def _carry_lanes(width):
    """`carry(p, actions, b, mass, k, m)`, one stage of occupancies for models m … m + width − 1:

    `b[k+1,t,m] = Σ_s b[k,s,m] p[s,actions[k,s],t,m]` over the states s with `mass[k,s] ≠ 0`, for every next state t,
    and `mass[k+1,t] = Σ_m b[k+1,t,m]` over the models up to these. Arrays are C-ordered float64, `actions` int64; the
    models exist.
    """
    vector = ir.VectorType(ir.DoubleType(), width)

    @intrinsic
    def carry(typing_context, p, actions, b, mass, k, m):
        def generate(context, builder, signature, arguments):
            arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]) for i in range(4)]
            n_states, n_actions, _, n_models = cgutils.unpack_tuple(builder, arrays[0].shape)
            p, actions, b, mass = (array.data for array in arrays)
            k, m = arguments[4:]
            here = builder.mul(k, n_states)
            after = builder.add(here, n_states)
            is_first = builder.icmp_signed("==", m, ir.Constant(m.type, 0))

            def offset(state):
                return builder.add(builder.mul(state, n_models), m)

            def lanes(state):
                return builder.bitcast(builder.gep(b, [offset(state)]), vector.as_pointer())

            def term(s):
                state = builder.add(here, s)
                action = builder.load(builder.gep(actions, [state]))
                row = builder.mul(builder.add(builder.mul(s, n_actions), action), n_states)
                row = builder.gep(p, [builder.mul(row, n_models)])
                return builder.gep(mass, [state]), builder.load(lanes(state), align=8), row

            def tile(first, size):
                following = [builder.add(first, ir.Constant(first.type, i)) for i in range(size)]
                sums = _sums(builder, vector, n_states, term, [offset(t) for t in following])
                for t, total in zip(following, sums, strict=True):
                    state = builder.add(after, t)
                    builder.store(total, lanes(state), align=8)
                    at = builder.gep(mass, [state])
                    so_far = builder.select(is_first, ir.Constant(vector.element, 0.0), builder.load(at))
                    builder.store(builder.fadd(so_far, _lanes_sum(builder, total)), at)

            size = ir.Constant(m.type, _TILE)
            tiles = builder.sdiv(n_states, size)
            with cgutils.for_range(builder, tiles) as loop:
                tile(builder.mul(loop.index, size), _TILE)
            with cgutils.for_range(builder, n_states, start=builder.mul(tiles, size)) as loop:
                tile(loop.index, 1)
            return context.get_dummy_value()

        return types.void(p, actions, b, mass, k, m), generate

    return carry


def _carry_rows(width, vectors):
    """`carry(p, actions, b, m, k, t)`: `b[k+1,m,t] = Σ_s b[k,m,s] p[m,s,actions[k,s],t]`, next states t … t + n − 1.

    n = width · vectors. Arrays are C-ordered float64, `actions` int64; the states exist.
    """
    vector = ir.VectorType(ir.DoubleType(), width)

    @intrinsic
    def carry(typing_context, p, actions, b, m, k, t):
        def generate(context, builder, signature, arguments):
            arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]) for i in range(3)]
            n_models, n_states, n_actions, _ = cgutils.unpack_tuple(builder, arrays[0].shape)
            p, actions, b = (array.data for array in arrays)
            m, k, t = arguments[3:]
            here = builder.gep(b, [builder.mul(builder.add(builder.mul(k, n_models), m), n_states)])
            after = builder.gep(here, [builder.mul(n_models, n_states)])
            chosen = builder.gep(actions, [builder.mul(k, n_states)])
            offsets = [builder.add(t, ir.Constant(t.type, width * i)) for i in range(vectors)]
            everywhere = ir.Constant(ir.VectorType(_LANE, width), [0] * width)
            empty = ir.Constant(vector, ir.Undefined)

            def term(s):
                at = builder.gep(here, [s])
                weight = builder.insert_element(empty, builder.load(at), ir.Constant(_LANE, 0))
                row = builder.mul(builder.add(builder.mul(m, n_states), s), n_actions)
                row = builder.add(row, builder.load(builder.gep(chosen, [s])))
                row = builder.gep(p, [builder.mul(row, n_states)])
                return at, builder.shuffle_vector(weight, empty, everywhere), row

            for offset, total in zip(offsets, _sums(builder, vector, n_states, term, offsets), strict=True):
                builder.store(total, builder.bitcast(builder.gep(after, [offset]), vector.as_pointer()), align=8)
            return context.get_dummy_value()

        return types.void(p, actions, b, m, k, t), generate

    return carry


def _gather(width):
    """`gather(p, index, at, length, v, first, totals)`, for `width` compressed rows side by side:

    `totals[l] = Σ_k p[at + width·k + l] v[first + index[at + width·k + l]]` over k < length for every lane l, in order
    of k. Arrays are C-ordered; `index` is unsigned, the indices exist.
    """
    vector = ir.VectorType(ir.DoubleType(), width)

    @intrinsic
    def gather(typing_context, p, index, at, length, v, first, totals):
        def generate(context, builder, signature, arguments):
            at, length, first = (arguments[k] for k in (2, 3, 5))

            def pointer(k, offset):
                array = context.make_array(signature.args[k])(context, builder, arguments[k])
                return builder.gep(array.data, [offset])

            p_first, index_first, v_first = pointer(0, at), pointer(1, at), pointer(4, first)
            total = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * width))
            with cgutils.for_range(builder, length) as loop:
                row = builder.mul(loop.index, ir.Constant(at.type, width))
                values = ir.Constant(vector, ir.Undefined)
                for lane in range(width):
                    entry = builder.add(row, ir.Constant(at.type, lane))
                    state = builder.zext(builder.load(builder.gep(index_first, [entry])), at.type)
                    value = builder.load(builder.gep(v_first, [state]))
                    values = builder.insert_element(values, value, ir.Constant(_LANE, lane))
                chances = builder.load(builder.bitcast(builder.gep(p_first, [row]), vector.as_pointer()), align=8)
                builder.store(builder.fadd(builder.load(total), builder.fmul(chances, values)), total)
            target = builder.bitcast(pointer(6, ir.Constant(at.type, 0)), vector.as_pointer())
            builder.store(builder.load(total), target, align=8)
            return context.get_dummy_value()

        return types.void(p, index, at, length, v, first, totals), generate

    return gather


backup_16, backup_8, backup_4, backup_1 = (_backup(width) for width in (16, 8, 4, 1))
copy_8, copy_1 = _copy(8), _copy(1)
carry_lanes_16, carry_lanes_8, carry_lanes_1 = (_carry_lanes(width) for width in (16, 8, 1))
carry_rows_48, carry_rows_8, carry_rows_1 = (_carry_rows(*shape) for shape in ((8, 6), (8, 1), (1, 1)))
gather_16 = _gather(16)
