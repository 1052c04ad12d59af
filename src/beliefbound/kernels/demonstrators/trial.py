"""A change of one demonstrator's rewards or dynamics, tried: the optimum of what would be, beside that of what is."""

from numba import njit

from beliefbound.kernels.demonstrators.laws import log_choices
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.kept_optimum import back_up_pairs, dot, greedy_where_better, improve, invert

kernel = njit(**EXACT)


@out_of_line
@kernel
def copy(x, out):
    """`out[i,j] = x[i,j]`."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]


@out_of_line
@kernel
def begin_trial(walk, k):
    """What is tried for a demonstrator starts from what is."""
    for i in range(walk.q.shape[2]):
        walk.q[1, k, i] = walk.q[0, k, i]
        walk.r[1, k, i] = walk.r[0, k, i]
    for s in range(walk.v.shape[2]):
        walk.v[1, k, s] = walk.v[0, k, s]
        walk.policy[1, k, s] = walk.policy[0, k, s]
    walk.moved[k] = 0


@out_of_line
@kernel
def inverse_to_change(walk, k):
    """Make the other inverse that of the trial, so that it may be changed."""
    if walk.moved[k] == 0:
        copy(walk.inverse[walk.side[k], k], walk.inverse[1 - walk.side[k], k])
        walk.moved[k] = 1


@out_of_line
@kernel
def settle(data, walk, k):
    """The optimum of a trial whose values are those of its policy."""
    r, q, v, policy = walk.r[1, k], walk.q[1, k], walk.v[1, k], walk.policy[1, k]
    back_up_pairs(data.discount, walk.p, r, v, q)
    if greedy_where_better(q, v, policy, walk.wanted) > 0:
        inverse_to_change(walk, k)
        inverse = walk.inverse[1 - walk.side[k], k]
        improve(data.discount, walk.p, r, policy, inverse, v, q, walk.wanted, walk.d, walk.line)


@out_of_line
@kernel
def finish_trial(walk, k):
    """What was tried is what is."""
    for i in range(walk.q.shape[2]):
        walk.q[0, k, i] = walk.q[1, k, i]
        walk.r[0, k, i] = walk.r[1, k, i]
    for s in range(walk.v.shape[2]):
        walk.v[0, k, s] = walk.v[1, k, s]
        walk.policy[0, k, s] = walk.policy[1, k, s]
    if walk.moved[k] == 1:
        walk.side[k] = 1 - walk.side[k]
    walk.moved[k] = 0
    walk.like[0, k] = walk.like[1, k]


@out_of_line
@kernel
def refresh(data, walk, k):
    """Rewards, inverse, values and likelihood of a demonstrator, made anew for its parameters."""
    n_actions = walk.q.shape[2] // walk.v.shape[2]
    begin_trial(walk, k)
    r, v, policy = walk.r[1, k], walk.v[1, k], walk.policy[1, k]
    for i in range(r.size):
        r[i] = 0.0
    for j in range(walk.w.shape[1]):
        for i in range(data.first[j], data.first[j + 1]):
            r[data.pair[i]] += data.times[i] * walk.w[k, j]
    invert(data.discount, walk.p, policy, walk.inverse[1 - walk.side[k], k])
    walk.moved[k] = 1
    for s in range(v.size):
        walk.d[s] = r[s * n_actions + policy[s]]
    for s in range(v.size):
        v[s] = dot(walk.inverse[1 - walk.side[k], k, s], walk.d)
    settle(data, walk, k)
    walk.like[1, k] = log_choices(data.visits[k], walk.q[1, k], walk.eta[k], n_actions)
    finish_trial(walk, k)
