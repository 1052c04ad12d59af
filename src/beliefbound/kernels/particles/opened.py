"""Somebody who is told the model, but opens the alike actions of each state in order.

Of actions that are alike some Bayes-optimal policy takes the first (`kernels.particles.alike`). So of a class `0 … k−1`
it opens 0 first, then 1, and so on: what it has tried of the class is the first `d` of them, and what it may take is
these and action `d`. A policy that obeys this and is told the model, but does not pass by the actions that turn out
badly for nothing, is worth less than `V*_m`, which takes the best of them at once: on the benchmarks' chain 54.6 in
place of 72.6.

With `o` how many of each class are opened – `k − 1` stands for all, as then everything may be taken – let `V_m(o,s)` be
the optimal value of the model `m` under this rule, and `Q_m(o,s,a) = r + γ Σ_t p_m(t|s,a) V_m(o',t)`, where `o'` counts
`a` if it was new. Whoever sees the history only and takes the first of those that are alike obeys the rule on every
model. So `Q_m(o(h),s,·)` may stand for `Q*_m` in the shortest path of `kernels.particles.renewal`: with `W(h) = max_b
Σ_m b_m Q_m(o(h),s,b)` over the actions that such a policy may take at `h`, `loss(h,a) = W(h) − r − γ E[W | h,a]` is
not negative, since `W` of the next history is at most the mean of `V_m(o',t)` over what is left of the particles there.
Which particles a set has does not matter, nor that they are not alike themselves: the rule is about labels, and so are
policies.

*What was never tried is paid for.* Until a pair is tried its row has its prior law, independent of all that was seen.
So a charge for its first try, linear in the row, `c = Σ_t g_t (p_m(t|s,a) − E p(t|s,a))` with `g` fixed before any
model is drawn, is zero on average over models for whoever sees the history only. On a set of particles it is not, but
it is on average over sets, for any policy of that kind: the problem of a set with charges is worth no less than `V*`,
in expectation, as is that without. Somebody who is told the model pays more for what is good: charges of about what a
row's goodness is worth leave little of what knowing it gains. They are subtracted from `Q_m` where a pair is opened,
and from what the step brings in the search: losses stay non-negative, for certain. Pairs that are alike to none may be
opened, too, as classes of one; then `o` says whether each of these was tried. `bounds.dirichlet.charges` chooses.

From `o` only larger ones follow. Tables are solved from the last one, where everything is open; in each an action that
opens something ends it, with a value that is known, and is a row without next states; one that may not be taken is a
copy of the first of its class, which always may. Values are lifted (`kernels.particles.solving`) table by table, those
that end a table after rounding, so that each is no less than the optimal one.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.particles.alike import classes_of
from beliefbound.kernels.particles.levels import solve_levels
from beliefbound.kernels.particles.rows import BAMDP
from beliefbound.kernels.particles.solving import gather, keep, solve_for_ever
from beliefbound.kernels.planning.policy_iteration import best_of, rounding_of, start_alike
from beliefbound.kernels.reference import by_reference

MOST_TABLES = 256


@by_reference
class Order(NamedTuple):
    """Classes of alike actions that are opened in order, for each pair; one that is alone is open at once."""

    first: np.ndarray  # int64 [pair]: the first of its class
    place: np.ndarray  # int64 [pair]: in its class
    most: np.ndarray  # int64 [pair]: of its class `k − 1`, which stands for all
    stride: np.ndarray  # int64 [pair]: of its class, in the number of a table
    adds: np.ndarray  # int64 [pair]: to the number of the table, when it is opened
    charge: np.ndarray  # [table,pair,t]: g, of a first try; empty where nothing is charged
    mean: np.ndarray  # [table,pair]: Σ_t g_t E p(t)


def everything_open(pairs: int) -> Order:
    """Of one table: `Q*`."""
    place, most, adds = np.zeros((3, pairs), dtype=np.int64)
    ones = np.ones(pairs, dtype=np.int64)
    return Order(np.arange(pairs), place, most, ones, adds, np.empty((0, 0, 0)), np.empty((0, 0)))


def order_of(problem: BAMDP) -> Order:
    """Of the classes of `alike.classes_of` all in which there is something to find out; none where tables would be too
    many, or with a horizon."""
    posterior, classes = problem.posterior, classes_of(problem)
    order = everything_open(len(problem.available))
    row = posterior.row if posterior.tied else order.first
    learnt = ((posterior.alpha > 0.0).sum(axis=1)[row] > 1) | (len(posterior.reward) > 1)
    tables = 1
    for kin in np.unique(classes[classes >= 0]) if problem.horizon < 0 else ():
        members = np.flatnonzero(classes == kin)
        if len(members) > 1 and learnt[kin]:
            order.first[members], order.place[members] = kin, np.arange(len(members))
            order.most[members], order.stride[members] = len(members) - 1, tables
            order.adds[members[:-1]] = tables
            tables *= len(members)
            if tables > MOST_TABLES:
                return everything_open(len(problem.available))
    return order


def n_tables(order: Order) -> int:
    """How many tables there are."""
    return 1 + int((order.stride * order.most)[order.place == 0].sum())


@njit(**FAST)
def arrange(discount, order, table, p, later, out):
    """Rows `out[pair,t + 1,m]` of a table, of the models' own `p`, where those after it have `later[table,pair,m]`."""
    n_next = p.shape[1] - 1
    n_actions = p.shape[0] // n_next
    for pair in range(p.shape[0]):
        opened = (table // order.stride[pair]) % (order.most[pair] + 1)
        if order.place[pair] > opened and opened < order.most[pair]:
            out[pair] = out[order.first[pair]]
        elif order.place[pair] < opened or opened == order.most[pair]:
            out[pair] = p[pair]
        else:
            out[pair] = 0.0
            value, after = out[pair, n_next], later[table + order.adds[pair]]
            charged = order.charge.size > 0
            for m in range(value.size):
                mean, size, charge = 0.0, abs(p[pair, n_next, m]), 0.0
                for t in range(n_next):
                    if p[pair, t, m] > 0.0:
                        best = after[t * n_actions, m]
                        for a in range(1, n_actions):
                            best = max(best, after[t * n_actions + a, m])
                        mean += p[pair, t, m] * best
                        size = max(size, abs(best))
                        if charged:
                            charge += p[pair, t, m] * order.charge[table, pair, t]
                            size = max(size, abs(order.charge[table, pair, t]))
                if charged:
                    charge -= order.mean[table, pair]
                value[m] = p[pair, n_next, m] + discount * mean - charge + 4.0 * rounding_of(n_next) * size


@out_of_line
@njit(**FAST)
def solve_in_order(discount, memory, models, beyond, fit):
    """Optimal `q[table,pair,m]` for ever, and `beyond[(place − free) · A + a,m]` at the other places of a memory;
    `policy[s,m]`, where the search starts in the last table, is left as found there. Arrays are those of
    `solving.solve`. `fit`: first visits are charged for what follows them in these models, which are solved at once."""
    draws, slots, policy, q, order = models.draws, models.slots, models.policy, models.q, memory.order
    p, v, here, own = models.scratch.p, models.scratch.v, models.scratch.q, models.scratch.policy
    rows, later = np.empty_like(p), np.empty((q.shape[0], slots.size, p.shape[2]))
    n, n_states, size = policy.shape[1], policy.shape[0], p.shape[2]
    value = np.empty((memory.state.size if beyond.size > 0 else 0, size))
    for batch in range((n + size - 1) // size):
        first = min(batch * size, n - size)
        gather(draws, slots, first, p)
        for table in range(q.shape[0] - 1, -1, -1):
            arrange(discount, order, table, p, later, rows)
            if table == q.shape[0] - 1:
                if batch == 0:
                    for s in range(own.shape[0]):
                        for i in range(size):
                            own[s, i] = policy[s, first + i]
                else:
                    start_alike(discount, rows, v, here, own)
            solve_for_ever(discount, rows, models.scratch)
            later[table] = here
            keep(here, first, q[table])
            if beyond.size > 0:
                best_of(here, value[table * n_states : (table + 1) * n_states])
        if beyond.size > 0:
            solve_levels(discount, memory, p, value, rows, models.scratch, first, beyond, fit)
