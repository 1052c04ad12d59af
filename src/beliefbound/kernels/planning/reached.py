"""Sweeps over models held (`held_models`) that look only at the next states that some model allows.

Where a prior knows which successors a pair may have, most of `p[s,a,t,m]` is 0 in every model. `find_reached` lists
for every pair the next states t with `p[s,a,t,m] > 0` for some m; the sweeps take `Σ_t` over those, in order. What is
left out are sums with `0 · v`, so the results are those of the dense sweeps, bit for bit, for values that are finite.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.held_bounds import begin_above, best_of_each
from beliefbound.kernels.planning.simd import _lanes_sum
from beliefbound.kernels.planning.sweep import backup_lanes, choose_lanes
from beliefbound.kernels.reference import by_reference


@by_reference
class Reached(NamedTuple):
    """The next states of every pair that some model held allows."""

    states: np.ndarray  # int64 [s,a,k], rising
    many: np.ndarray  # int64 [s,a]
    least: np.ndarray  # int64 [1]: the smallest of them


def new_reached(n_states: int, n_actions: int) -> Reached:
    """Empty lists."""
    pairs = n_states, n_actions
    return Reached(np.zeros((*pairs, n_states), np.int64), np.zeros(pairs, np.int64), np.zeros(1, np.int64))


@njit(**EXACT)
def find_reached(p, reached):
    """List what `p[s,a,t,m]` allows."""
    n_states, n_actions, _, n = p.shape
    for s in range(n_states):
        for a in range(n_actions):
            k = 0
            for t in range(n_states):
                for m in range(n):
                    if p[s, a, t, m] > 0.0:
                        reached.states[s, a, k] = t
                        k += 1
                        break
            reached.many[s, a] = k
    reached.least[0] = reached.many.min()


def _backup(width):
    """`backup(p, r, w, discount, v, q, mixed, states, many, m)`: as `simd.backup_…` for models m … m + width − 1, of
    equal weights in every state, over the next states listed."""
    vector = ir.VectorType(ir.DoubleType(), width)

    @intrinsic
    def backup(typing_context, p, r, w, discount, v, q, mixed, states, many, m):
        def generate(context, builder, signature, arguments):
            arrays = [
                None if k in (3, 9) else context.make_array(signature.args[k])(context, builder, arguments[k])
                for k in range(10)
            ]
            p, r, w, _, v, q, mixed, states, many, _ = (array and array.data for array in arrays)
            discount, m = arguments[3], arguments[9]
            n_states, n_actions, _, n_models = cgutils.unpack_tuple(builder, arrays[0].shape)

            def lanes(array, row):
                at = builder.gep(array, [builder.add(builder.mul(row, n_models), m)])
                return builder.bitcast(at, vector.as_pointer())

            factor = ir.Constant(vector, ir.Undefined)
            for lane in range(width):
                factor = builder.insert_element(factor, discount, ir.Constant(ir.IntType(32), lane))
            total = cgutils.alloca_once(builder, vector)
            weights = builder.load(lanes(w, ir.Constant(m.type, 0)), align=8)
            with cgutils.for_range(builder, builder.mul(n_states, n_actions)) as pairs:
                pair = pairs.index
                first = builder.mul(pair, n_states)
                builder.store(ir.Constant(vector, [0.0] * width), total)
                with cgutils.for_range(builder, builder.load(builder.gep(many, [pair]))) as loop:
                    t = builder.load(builder.gep(states, [builder.add(first, loop.index)]))
                    chance = builder.load(lanes(p, builder.add(first, t)), align=8)
                    product = builder.fmul(chance, builder.load(lanes(v, t), align=8))
                    builder.store(builder.fadd(builder.load(total), product), total)
                reward = builder.load(lanes(r, pair), align=8)
                value = builder.fadd(reward, builder.fmul(factor, builder.load(total)))
                builder.store(value, lanes(q, pair), align=8)
                at = builder.gep(mixed, [pair])
                share = _lanes_sum(builder, builder.fmul(weights, value))
                builder.store(builder.fadd(builder.load(at), share), at)
            return context.get_dummy_value()

        return types.void(p, r, w, discount, v, q, mixed, states, many, m), generate

    return backup


_backup_16, _backup_8, _backup_4, _backup_1 = (_backup(width) for width in (16, 8, 4, 1))


@njit(inline="always", **EXACT)
def backup_reached(models, reached, v, q, mixed):
    """`q[s,a,m]` from `v[t,m]`, and `mixed[s,a] = Σ_m w[m] q[s,a,m]`, as `sweep.backup_lanes`."""
    p, r, w, discount, states, many = models.p, models.r, models.w, models.discount, reached.states, reached.many
    n_states, n_actions, n = r.shape
    if reached.least[0] == n_states:  # a list of everything only takes time
        backup_lanes(p, r, w, 0, discount, v, q, mixed)
        return
    for s in range(n_states):
        for a in range(n_actions):
            mixed[s, a] = 0.0
    m = 0
    while m + 16 <= n:
        _backup_16(p, r, w, discount, v, q, mixed, states, many, m)
        m += 16
    if m + 8 <= n:
        _backup_8(p, r, w, discount, v, q, mixed, states, many, m)
        m += 8
    if m + 4 <= n:
        _backup_4(p, r, w, discount, v, q, mixed, states, many, m)
        m += 4
    while m < n:
        _backup_1(p, r, w, discount, v, q, mixed, states, many, m)
        m += 1


@njit(**EXACT_INLINE)
def mmbi_sweeps_reached(models, reached, sweeps, tolerance):
    """`held_models.mmbi_sweeps`."""
    v, out = (models.even, models.odd) if models.side[0] == 0 else (models.odd, models.even)
    made = 0
    while made < sweeps:
        made += 1
        backup_reached(models, reached, v, models.q, models.mixed)
        if choose_lanes(models.q, models.mixed, models.available, models.vbar, models.actions, out) < tolerance:
            break
        v, out = out, v
    models.side[0] = (models.side[0] + made) % 2
    return made


@njit(**EXACT)
def optimum_reached(models, reached, optimum, sweeps, tolerance):
    """`held_bounds.optimum_from_above`."""
    v, out, q = optimum.v, optimum.out, optimum.q
    begin_above(models, v)
    for _ in range(sweeps):
        backup_reached(models, reached, v, q, optimum.mean)
        fall = best_of_each(q, models.available, v, out)
        v, out = out, v
        if fall <= tolerance:
            break
