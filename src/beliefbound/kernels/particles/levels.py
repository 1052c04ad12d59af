"""Somebody who learns on the first visits of new ground, and is told the model when the way turns back.

*Levels* are least numbers of steps from the starts. A history *goes on* while every transition stays where it is or
leads to the next level. Then each state it enters was never entered before, and of the rows of the states ahead nothing
is known. What is learnt while such a state is visited is how often each of its actions has stayed, `k`. So let somebody
who is told the model pay for every try of a pair `x` there

    c = Σ_t g_t (p_m(t|x) − E[p(t|x) | k stays])

with `g` fixed before any model is drawn, by state, `k` and action. For whoever sees the history only, that is zero on
average at every such history: the row is independent of all else, and its posterior is that of `k` stays. On average
over sets of particles it is, too, for any policy of that kind (weights are likelihoods, and those of a row are its
own). So relaxations with these charges stay upper bounds, as with those for first tries (`kernels.particles.opened`).
With `g_t` about what follows `t` is worth, he gains next to nothing by knowing the row.

*When the way turns back*, that is when a transition leads to another state of no higher level, or a visit takes longer
than is followed, he is told all levels up to the highest that was reached – a superset of what has been visited – for
nothing, and goes on among them as he likes; states of the next level are new ground still, and cost. When it turns back
from the last level, there may be a *second way*: he is told everything but, on some levels, the states that the first
way has not visited. When he first visits one of these, it is as on the first way; then he is told that level, too.

So there are *places* (`kernels.particles.memory`) which follow from each other as outcomes show: a place knows its
state, in a first visit the stays of each of its actions, and which states the first way has visited on the levels of
the second. `Q_m(place, a) = r_m + γ Σ_t p_m(t) max_b Q_m(what follows, b) − c`. On every model the value of a place is
no less than what may follow from it brings on average, so that losses of `kernels.particles.renewal` are not negative,
for certain, with `W` of the place of a history. Actions that certainly wait for nothing are left out: nobody needs them
(`kernels.particles.alike`), but somebody who is told something for turning back would.

They are solved in turns, what follows first: first visits, from the most stays to none; then, as a model of its own
that ends where these begin, the states from which they are reached. All is lifted or raised by rounding, so that each
value is no less than its own backup.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.particles.rows import NEVER
from beliefbound.kernels.particles.solving import keep, solve_for_ever
from beliefbound.kernels.planning.policy_iteration import best_of, rounding_of


@out_of_line
@njit(**FAST)
def ends_beyond(inside, ending, p, value, out):
    """Rows `out[pair,t + 1,m]` of a model among the states that are `inside[s] ≥ 0`: those of `p`, but states that are
    `ending[s] ≥ 0` end it with the `value[place,m]` of that place."""
    n_states = p.shape[1] - 1
    n_actions = p.shape[0] // n_states
    for pair in range(p.shape[0]):
        s = pair // n_actions
        if inside[s] >= 0:
            out[pair] = p[pair]
        else:
            out[pair] = 0.0
            if ending[s] >= 0:
                out[pair, n_states] = value[ending[s]]


@out_of_line
@njit(**FAST)
def charge_for(discount, memory, place, a, pair, value):
    """Charge an action of a first visit by what follows each outcome on average, over models of `value[place,m]`."""
    least, mean, expected = np.inf, 0.0, memory.expected[place - memory.free, a]
    for t in range(memory.follows.shape[2]):
        if memory.follows[place, a, t] >= 0:
            after = value[memory.follows[place, a, t]]
            memory.charge[place, a, t] = memory.paid[pair, t] + discount * after.sum() / after.size
            least = min(least, memory.charge[place, a, t])
    for t in range(memory.follows.shape[2]):
        if memory.follows[place, a, t] >= 0:
            memory.charge[place, a, t] -= least
            mean += memory.charge[place, a, t] * expected[t]
    memory.mean[place, a] = mean


@out_of_line
@njit(**FAST)
def first_visits(discount, memory, begin, end, p, value, q, fit):
    """`q[(place − free) · A + a,m]` and `value[place,m]` of the first visits from `begin` to `end`, where what follows
    has its value; `fit`: charges are made on the way."""
    n_states = p.shape[1] - 1
    n_actions = p.shape[0] // n_states
    for place in range(begin, end):
        best = value[place]
        for a in range(n_actions):
            pair, out = memory.state[place] * n_actions + a, q[(place - memory.free) * n_actions + a]
            if fit:
                charge_for(discount, memory, place, a, pair, value)
            size, taken = 0.0, memory.follows[place, a].max() >= 0
            for m in range(out.size):
                out[m] = p[pair, n_states, m] + memory.mean[place, a] if taken else NEVER
            for t in range(n_states):
                if memory.follows[place, a, t] >= 0:
                    after, chance, charge = value[memory.follows[place, a, t]], p[pair, t], memory.charge[place, a, t]
                    for m in range(out.size):
                        out[m] += chance[m] * (discount * after[m] - charge)
                        size = max(size, abs(after[m]))
                    size = max(size, abs(charge))
            for m in range(out.size):
                out[m] += 8.0 * rounding_of(n_states) * (size + abs(p[pair, n_states, m]))
                best[m] = out[m] if a == 0 else max(best[m], out[m])


@out_of_line
@njit(**FAST)
def solve_levels(discount, memory, p, value, rows, scratch, first, out, fit):
    """Beyond the tables, whose places have their `value[place,m]`: all others of models `p[pair,t + 1,m]`, to
    `out[(place − free) · A + a, first + m]`. `rows` and `scratch` are those of `solving.solve_for_ever`."""
    n_states, n_actions = p.shape[1] - 1, p.shape[0] // (p.shape[1] - 1)
    q = np.empty((out.shape[0], p.shape[2]))
    for turn in range(memory.visits.shape[0]):
        first_visits(discount, memory, memory.visits[turn, 0], memory.visits[turn, 1], p, value, q, fit)
        inside = memory.inside[turn]
        if inside.max() < 0:
            continue
        ends_beyond(inside, memory.ending[turn], p, value, rows)
        solve_for_ever(discount, rows, scratch)
        best_of(scratch.q, scratch.v)
        for s in range(n_states):
            if inside[s] >= 0:
                value[inside[s]] = scratch.v[s]
                row = (inside[s] - memory.free) * n_actions
                q[row : row + n_actions] = scratch.q[s * n_actions : (s + 1) * n_actions]
    keep(q, first, out)
