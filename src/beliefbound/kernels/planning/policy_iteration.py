"""Policy iteration on many models side by side, each on its own: the family that agents and particles share.

Models are lanes of rows `p[pair,t + 1,m]`, `pair = s·A + a`: chances of the next states, last the expected reward. An
evaluation eliminates in `I − γP`, `S³/3` multiply-adds a model; an improvement is one backup, `S²A`. Nothing is
allocated: whoever solves brings the arrays. `ModelSet` (`models`) factors its systems by LAPACK or solves them by
BiCGSTAB instead, with an enclosure of what is left: its models are not lanes and may be large or sparse, and its values
are for proofs at any scale, where these are lifted (`lift`) or belong to an agent.
"""

from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.out_of_line import out_of_line

MOST_POLICIES = 1000  # policy iteration ends long before; rounding may make it go in circles
GAIN = 1e-11  # of the values: what counts as an improvement, and as a tie
_NOISE = 1e-15  # of the largest of a model
_TERMS = 80  # of a sum, besides those for its states: rounding of rows and of what is done with it
_NARROW, _TILE = 8, 64  # models that make no loop worth the name; numbers that do
_SWEEPS = 2  # from the mean of other models' values, for a policy to start from


@out_of_line
@njit(**FAST)
def back_up(discount, p, v, q):
    """`q[pair,m] = r + γ Σ_t P v[t,m]`."""
    n_next = v.shape[0]
    for pair in range(q.shape[0]):
        out, reward = q[pair], p[pair, n_next]
        for m in range(out.size):
            out[m] = 0.0
        for t in range(n_next):
            chance, later = p[pair, t], v[t]
            for m in range(out.size):
                out[m] += chance[m] * later[m]
        for m in range(out.size):
            out[m] = reward[m] + discount * out[m]


@njit(**FAST)
def choose(chosen, a, value, out):
    """`out[m] = value[m]` where `chosen[m] == a`."""
    for m in range(out.size):
        out[m] = value[m] if chosen[m] == a else out[m]


@njit(**FAST)
def subtract_tiled(out, factor, x, tile):
    """`out[t·n + m] −= factor[m] · x[t·n + m]` for a few models `m < n`: their factors are laid out in a row, again and
    again, so that it is one loop over both. `tile` is scratch, a multiple of `n`."""
    n = factor.size
    for begin in range(0, tile.size, n):
        for m in range(n):
            tile[begin + m] = factor[m]
    for begin in range(0, out.size, tile.size):
        part, other = out[begin : begin + tile.size], x[begin : begin + tile.size]
        for i in range(part.size):
            part[i] -= tile[i] * other[i]


@out_of_line
@njit(**FAST)
def value_of(discount, p, policy, v, system):
    """The value `v[s,m]` for ever of `policy[s,m]`: elimination in `I − γP`, which needs no pivots.

    `system[s,s + 1,m]` is scratch. Cost: `S³/3` multiply-adds a model.
    """
    n_states, n = v.shape
    n_actions, width, flat = p.shape[0] // n_states, (n_states + 1) * n, system.reshape(system.size)
    tile = v.reshape(v.size)[: _TILE // n * n]  # scratch until values are there
    for s in range(n_states):
        for t in range(n_states + 1):
            out, first = system[s, t], p[s * n_actions, t]
            for m in range(out.size):
                out[m] = first[m]
            for a in range(1, n_actions):
                choose(policy[s], a, p[s * n_actions + a, t], out)
            if t < n_states:
                one = 1.0 if t == s else 0.0
                for m in range(out.size):
                    out[m] = one - discount * out[m]
    for k in range(n_states):
        pivot = system[k, k]
        for m in range(pivot.size):
            pivot[m] = 1.0 / pivot[m]
        for t in range(k + 1, n_states + 1):
            out = system[k, t]
            for m in range(pivot.size):
                out[m] *= pivot[m]
        left, begin = flat[k * width : (k + 1) * width], (k + 1) * n
        for s in range(k + 1, n_states):
            factor = system[s, k]
            if n < _NARROW and (n_states - k) * n > 2 * _TILE:
                subtract_tiled(flat[s * width : (s + 1) * width][begin:], factor, left[begin:], tile)
                continue
            for t in range(k + 1, n_states + 1):
                out, above = system[s, t], system[k, t]
                for m in range(pivot.size):
                    out[m] -= factor[m] * above[m]
    for s in range(n_states - 1, -1, -1):
        out, right = v[s], system[s, n_states]
        for m in range(out.size):
            out[m] = right[m]
        for t in range(s + 1, n_states):
            factor, later = system[s, t], v[t]
            for m in range(out.size):
                out[m] -= factor[m] * later[m]


@out_of_line
@njit(**FAST)
def best_of(q, v):
    """`v[s,m] = max_a q[s·A + a,m]`."""
    n_actions = q.shape[0] // v.shape[0]
    for s in range(v.shape[0]):
        out, first = v[s], q[s * n_actions]
        for m in range(out.size):
            out[m] = first[m]
        for a in range(1, n_actions):
            other = q[s * n_actions + a]
            for m in range(out.size):
                out[m] = max(out[m], other[m])


@out_of_line
@njit(**FAST)
def improved(q, v, policy):
    """Whether `policy[s,m]`, of value `v[s,m]`, was not greedy for `q[s·A + a,m]`. It is afterwards; `v` has grown."""
    n_actions = q.shape[0] // policy.shape[0]
    changes = 0
    for s in range(policy.shape[0]):
        best, chosen = v[s], policy[s]
        for a in range(n_actions):
            value = q[s * n_actions + a]
            for m in range(chosen.size):
                better = value[m] > best[m] + GAIN * (1.0 + abs(best[m]))
                best[m] = value[m] if better else best[m]
                chosen[m] = a if better else chosen[m]
                changes += better
    return changes > 0


@out_of_line
@njit(**FAST)
def improves(q, v, policy, size, rises):
    """As `improved`, for rewards of any scale: an action is better that is so by more than rounding of its model's
    values. `size[m]` is scratch; `rises[m]`, how often a model's policy was changed."""
    n_states, n = policy.shape
    n_actions = q.shape[0] // n_states
    largest(v, size)
    rises.fill(0.0)
    for s in range(n_states):
        best, chosen = v[s], policy[s]
        for a in range(n_actions):
            value = q[s * n_actions + a]
            for m in range(n):
                better = value[m] > best[m] + GAIN * abs(best[m]) + _NOISE * size[m]
                best[m] = value[m] if better else best[m]
                chosen[m] = a if better else chosen[m]
                rises[m] += 1.0 if better else 0.0
    return rises.max() > 0.0


@njit(**FAST)
def largest(v, size):
    """`size[m] = max_s |v[s,m]|`."""
    size.fill(0.0)
    for s in range(v.shape[0]):
        value = v[s]
        for m in range(size.size):
            size[m] = max(size[m], abs(value[m]))


@njit(**FAST)
def rounding_of(n_states):
    """What a backup is off by at most, of the largest value that it meets."""
    return (n_states + _TERMS) * 2.0**-53


@out_of_line
@njit(**FAST)
def shortfall(discount, v, q, size, out):
    """`out[m]`: with so much added, `q[s·A + a,m]` from the values `v[s,m]` of a policy is no less than the optimal
    values. `size[m]` is scratch."""
    n_states = v.shape[0]
    n_actions, rounding = q.shape[0] // n_states, rounding_of(n_states)
    largest(v, size)
    out.fill(0.0)
    for s in range(n_states):
        value = v[s]
        for a in range(n_actions):
            other = q[s * n_actions + a]
            for m in range(out.size):
                out[m] = max(out[m], other[m] - value[m])
    for m in range(out.size):
        out[m] = (out[m] + 3.0 * rounding * (size[m] + out[m])) / (1.0 - discount)


@njit(**FAST)
def lift(discount, v, q, size, more):
    """Raise `q[s·A + a,m]` from the values `v[s,m]` of a policy to no less than the optimal values; `size[m]` and
    `more[m]` are scratch."""
    shortfall(discount, v, q, size, more)
    for i in range(q.shape[0]):
        value = q[i]
        for m in range(more.size):
            value[m] += more[m]


@out_of_line
@njit(**FAST)
def start_alike(discount, p, v, q, policy):
    """A policy to start from: greedy after a few sweeps from the mean of the values `v[s,m]` of other models."""
    n = v.shape[1]
    for s in range(v.shape[0]):
        mean = v[s].sum() / n
        for m in range(n):
            v[s, m] = mean
    for _ in range(_SWEEPS):
        back_up(discount, p, v, q)
        best_of(q, v)
    back_up(discount, p, v, q)
    v.fill(-1e300)
    improved(q, v, policy)
