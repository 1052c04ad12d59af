"""Information relaxation under a Dirichlet belief, on particles that are renewed as they are used up.

A finite set of particles is learnt sooner than the belief it was drawn from, so `E[V* of the set] > V*`, and the
excess falls slowly with their number. Here a set serves for a few observations; then fresh particles of the exact
posterior take its place. With `b` the weights of the old particles at a history `h` where they are renewed,

    Q⁻_a = Σ_m b_m Q*_m(s,a) over the old ones,    Q⁺_a = mean of Q*_m(s,a) over the fresh ones,

the *composite problem* goes on with the fresh particles after action `a` at `h`, and pays `Q⁻_a − Q⁺_a` in addition.

*Its optimal value is at least `V*` in expectation.* Whether `h` is a place of renewal depends on the history, never on
the particles, so for a fixed policy everything is linear in the old set as an (unnormalised) measure: in expectation
over it, the history has its true probability, and `Pr(h) Q⁻_a` and `Pr(h) Q⁺_a` cancel if the fresh set is independent
of how likely `h` was on the sets before. By induction over renewals every policy that sees the history only has its
true value, and the best one chosen with the sets known has at least that.

*What must be fresh.* How likely `h` was depends on the rows that were seen on the way, as they were drawn then. Draws
of a row are a function of what has been counted of it (`kernels.particles.rows`), and counts only grow: a row that was
seen since the last renewal is drawn anew, independently, and its old draws are met nowhere after `h`; a row that was
not keeps its draws, which were part of no likelihood. So a fresh set is independent of how likely `h` was and has the
law of the posterior, though it shares with the old one all rows that nothing was learnt of: a renewal draws a few rows.

*The information relaxation of the composite problem is a shortest path*, as in `kernels.graph.information_relaxation`,
with `W` = QMDP of the particles in use (at a renewal, of the old ones). All losses are non-negative, for certain: at a
renewal

    loss(h,a) = (max_b Q⁻_b − Q⁻_a) + (Q⁺_a − r⁺_a − γ E⁺[W | h,a]),

where both brackets are non-negative. The noise of one set against the next, `Q⁻_a − Q⁺_a`, appears nowhere: what counts
is only how much a set loses to its own QMDP. A search that is capped, or out of space, returns the smallest cost in
its queue, which is valid and only looser.

*Actions that a best policy does without* at a history are left out (`kernels.particles.alike`): some Bayes-optimal
policy takes none of them, and to it all that is said above applies. `W` is a maximum over the actions that are left, of
which both brackets stay non-negative: `Q⁻_a` of such an action is at most that maximum, and `Q⁺_a` allows for all
actions later on. So nobody is told which of three fresh actions is the lucky one, and a search has one branch for all
three.

*What is told in advance* are clocks. In the `v`-th try of a row its outcome `c`, of chance `p_c` at the history, rings
after `E/p_c`, where `E` is exponential and a function of the scenario, the row, `v` and `c`; what rings first happens,
which is `c` with probability `p_c`. A history meets no clock twice, so a policy that sees the history only has its
value. Chances of different histories are alike, and so is then what rings first: waiting, or trying things in another
order, shows hardly anything else, and the relaxation gains little by knowing the clocks. With one quantile a stage
instead, of which each history takes its own inverse, it is worth half a percent more on Chain.

*Mirrored clocks*, by one minus the same uniform numbers, have the same law. What is lucky in one scenario is not in the
other, so that the mean of both spreads by half of what one does (their costs are correlated by −.4 to −.6 on the
benchmarks' chains and double loops).

The search stops where it needs fresh particles and goes on when it has them (`bounds.dirichlet.sampler` fetches them
between the calls): drawing and solving models is much code, and compiled once.

Particles are renewed where `n (E L)² / E L²`, the number that still count by the moments of the likelihood `L` of the
counts since the last renewal, falls below a threshold; with a horizon also after a fixed number of stages, so that few
stages of `Q*` are kept.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.graph.information_relaxation import pop, push
from beliefbound.kernels.options import FAST
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.particles.alike import classes_of, needless
from beliefbound.kernels.particles.memory import Memory
from beliefbound.kernels.particles.rows import BAMDP, chances, dot, n_columns, next_state, tally
from beliefbound.kernels.posterior import arrival_of, row_of
from beliefbound.kernels.random import GOLDEN, mix, seed_stream
from beliefbound.kernels.reference import by_reference
from beliefbound.kernels.sums import sum_of

DONE, RENEW, MORE = 0, 1, 2  # what a search ended with
ROOT = np.int64(-1)  # the parent of a root; a number of Python would be compiled for on its own
_RIVALS = 3.0  # times the loss of the action that seems best: what others may seem to lose and be looked at beside it
_NORMALISED = 16  # steps on the way to weights, which would only underflow if all these outcomes had chances of 1e-19
ONWARDS = np.int64(-1)  # in place of a node: from where the search ended
# `Search.size`: in use; expanded in this scenario; the node that waits for particles; whether clocks are mirrored
NODES, SETS, QUEUE, EXPANDED, WAITING, MIRRORED = range(6)

NODE = np.dtype(
    [
        ("state", np.int64),
        ("stage", np.int64),
        ("parent", np.int64),  # −1 at a root
        ("row", np.int64),  # outcome row of the parent that leads here, a · columns + column
        ("set", np.int64),  # the particles in use
        ("place", np.int64),  # what the relaxation remembers (`kernels.particles.memory`): at least the state
        ("stamp", np.int64),  # last scenario that expanded it
        ("key", np.uint64),
        ("base", np.uint64),  # what the keys of its children start from
        ("upper", np.float64),  # W
        ("left", np.float64),  # log of the effective number of particles
        ("alive", np.float64),  # chance that no outcome on the way was one that was cut
        ("cost", np.float64),  # when it was expanded
    ]
)


@by_reference
class Search(NamedTuple):
    """Histories met by a search, the particle sets they live on, and scratch."""

    size: np.ndarray  # int64 [NODES, SETS, QUEUE, EXPANDED, WAITING, MIRRORED]
    node: np.ndarray  # NODE [n]
    weight: np.ndarray  # [i,m], of the first i nodes
    own: np.ndarray  # scratch [m]: of another
    loss: np.ndarray  # [n,a]; no more than it, of an action that was not looked at
    open: np.ndarray  # bool [n,a]: was looked at
    prob: np.ndarray  # [n,row]
    above: np.ndarray  # [n,row]: W of the child
    child: np.ndarray  # int32 [n,row], −1 where not built
    table: np.ndarray  # int32 [2^j]: open addressing by key
    words: np.ndarray  # uint64 [pair,column]: what an outcome adds to a key
    classes: np.ndarray  # int64 [pair]: of actions that are alike (`kernels.particles.alike`); empty where none are
    follows: np.ndarray  # int32 [place,a,t], as in `kernels.particles.memory`; empty where nothing is remembered
    charge: np.ndarray  # [place,a,t]; empty where nothing is charged
    mean: np.ndarray  # [place,a]
    begins: np.ndarray  # int64 [s]: the place of a start
    start: np.ndarray  # int64 [set]: the node where its particles were drawn
    slots: np.ndarray  # int64 [set,pair]: rows of its particles
    q: np.ndarray  # [set,stage,pair,m]: optimal values; of one set that remembers, [0,0,place · A + a,m]
    keys: np.ndarray  # [queue]: costs
    items: np.ndarray  # int64 [queue]: node · rows + row; −1 − (node · actions + a) of an action not looked at
    counts: np.ndarray  # int64 [pair,column]: of the node that waits; else scratch
    old: np.ndarray  # [a]: Q⁻ of the node that waits
    likely: np.ndarray  # scratch [m]
    ever: np.ndarray  # scratch int64 [j + k]: outcomes of a row and rewards of a pair that were counted,
    since: np.ndarray  # scratch int64 [j + k]: and those since the last renewal


def new_search(
    problem: BAMDP,
    nodes: int,
    sets: int,
    stages: int,
    n: int,
    max_nodes: int,
    kept: int = 0,
    memory: Memory | None = None,
) -> Search:
    """For `nodes` histories on `sets` particle sets of `n` models that keep `stages` stages; at most `max_nodes` are
    expanded in one scenario. Where there is one set, the weights of so many nodes may be `kept`, not of all, and there
    may be a `memory`."""
    posterior, columns = problem.posterior, n_columns(problem)
    n_actions, pairs = posterior.n_actions, posterior.reward.shape[1]
    rows = n_actions * columns
    bits = max(4, int(np.ceil(np.log2(2 * nodes))))
    words = np.array([seed_stream(np.array([i], dtype=np.uint64))[0] for i in range(pairs * columns)], dtype=np.uint64)
    words = words.reshape(pairs, columns)
    if posterior.tied and len(posterior.reward) == 1:
        words = words[
            np.unique(posterior.row, return_inverse=True)[1]
        ]  # counted at one pair or another: the same history
    return Search(
        size=np.zeros(6, dtype=np.int64),
        node=np.empty(nodes, dtype=NODE),
        weight=np.empty((kept or nodes, n)),
        own=np.empty(n),
        loss=np.empty((nodes, n_actions)),
        open=np.empty((nodes, n_actions), dtype=np.bool_),
        prob=np.empty((nodes, rows)),
        above=np.empty((nodes, rows)),
        child=np.empty((nodes, rows), dtype=np.int32),
        table=np.full(1 << bits, -1, dtype=np.int32),
        words=words,
        classes=classes_of(problem),
        follows=memory.follows if memory else np.empty((0, 0, 0), dtype=np.int32),
        charge=memory.charge if memory else np.empty((0, 0, 0)),
        mean=memory.mean if memory else np.empty((0, 0)),
        begins=memory.begins if memory else np.arange(problem.n_states),
        start=np.empty(sets, dtype=np.int64),
        slots=np.empty((sets, pairs), dtype=np.int64),
        q=np.empty((sets, stages, len(memory.state) * n_actions if memory else pairs, n)),
        keys=np.empty((max_nodes + 1) * n_actions + 2),
        items=np.empty((max_nodes + 1) * n_actions + 2, dtype=np.int64),
        counts=np.empty((pairs, columns), dtype=np.int64),
        old=np.empty(n_actions),
        likely=np.empty(n),
        ever=np.empty(sum(posterior.reward.shape[:1] + posterior.alpha.shape[1:]), dtype=np.int64),
        since=np.empty(sum(posterior.reward.shape[:1] + posterior.alpha.shape[1:]), dtype=np.int64),
    )


@out_of_line
@njit(**FAST)
def count(search, x, stop):
    """Counts of what was seen between node `stop` (or `ROOT`) and node `x`, to `search.counts`."""
    columns, n_actions = search.counts.shape[1], search.loss.shape[1]
    search.counts.fill(0)
    while x != stop and search.node[x].parent >= 0:
        parent, row = search.node[x].parent, search.node[x].row
        search.counts[search.node[parent].state * n_actions + row // columns, row % columns] += 1
        x = parent


@njit(**FAST)
def moment_ratio(before, total, since, since_total):
    """`log (E L p)² / E (L p)² − log (E L)² / E L²` for a component p of a Dirichlet row: parameters `before` of
    `total` at the last renewal, `since` of `since_total` counted after it."""
    first = (before + since) / (total + since_total)
    twice = before + 2.0 * since
    both = total + 2.0 * since_total
    return np.log(first * first * both * (both + 1.0) / (twice * (twice + 1.0)))


@out_of_line
@njit(**FAST)
def log_size_change(problem, search, x, pair, column):
    """By how much an outcome at node `x` changes the logarithm of the effective number of particles."""
    posterior = problem.posterior
    n_values, n_outcomes = posterior.reward.shape[0], posterior.alpha.shape[1]
    count(search, x, ROOT)
    ever, reward_ever = search.ever[:n_outcomes], search.ever[n_outcomes:]
    since, reward_since = search.since[:n_outcomes], search.since[n_outcomes:]
    tally(posterior, search.counts, pair, ever, reward_ever)
    count(search, x, search.start[search.node[x].set])
    tally(posterior, search.counts, pair, since, reward_since)
    row, j, k = row_of(posterior, pair), column % n_outcomes, column // n_outcomes
    total, new = 0.0, 0.0
    for i in range(n_outcomes):
        total += posterior.alpha[row, i] + (ever[i] - since[i])
        new += since[i]
    change = moment_ratio(posterior.alpha[row, j] + (ever[j] - since[j]), total, float(since[j]), new)
    if n_values > 1:
        total, new = 0.0, 0.0
        for i in range(n_values):
            total += posterior.reward[i, pair] + (reward_ever[i] - reward_since[i])
            new += reward_since[i]
        before = posterior.reward[k, pair] + (reward_ever[k] - reward_since[k])
        change += moment_ratio(before, total, float(reward_since[k]), new)
    return change


@njit(**FAST)
def scale(x, factor):
    """`x[m] *= factor`."""
    for m in range(x.size):
        x[m] *= factor


@out_of_line
@njit(**FAST)
def multiply(problem, row, pair, column, x):
    """`x[m] *= Pr_m(column | pair)`, of `chances` without their sum."""
    posterior = problem.posterior
    n_outcomes = posterior.alpha.shape[1]
    p = row[arrival_of(posterior, pair, column % n_outcomes)]
    if posterior.reward.shape[0] == 1:
        for m in range(x.size):
            x[m] *= p[m]
    else:
        other = row[problem.n_states + 1 + column // n_outcomes]
        for m in range(x.size):
            x[m] *= p[m] * other[m]


@njit(**FAST)
def weigh(problem, search, draws, x):
    """Weights of the particles at node `x`: kept, or found on the way from the nearest node above whose are. On the way
    they are normalised now and then, so that none of what counts underflows."""
    if x < search.weight.shape[0]:
        return search.weight[x]
    own, columns, slots = search.own, search.counts.shape[1], search.slots[search.node[x].set]
    own.fill(1.0)
    steps = 0
    while x >= search.weight.shape[0]:
        parent, row = search.node[x].parent, search.node[x].row
        pair = search.node[parent].state * problem.posterior.n_actions + row // columns
        multiply(problem, draws[slots[pair]], pair, row % columns, own)
        steps += 1
        if steps % _NORMALISED == 0:
            scale(own, 1.0 / sum_of(own))
        x = parent
    for m in range(own.size):
        own[m] *= search.weight[x, m]
    scale(own, 1.0 / sum_of(own))
    return own


@out_of_line
@njit(**FAST)
def look_at(problem, search, draws, x, a, weights):
    """Probabilities and values of every outcome of an action at node `x`, and its loss: measured from `W`, or, where
    the node waited for fresh particles, from their own `Q⁺_a`, after what the old ones say of the action."""
    columns, n_states, n_actions = search.counts.shape[1], problem.n_states, problem.posterior.n_actions
    pair, slots, likely = search.node[x].state * n_actions + a, search.slots[search.node[x].set], search.likely
    first, place = search.q[search.node[x].set, 0], search.node[x].place
    after = search.q[search.node[x].set, later(search, x) if problem.horizon >= 0 else 0]
    some, total, charge = search.classes.size > 0, 0.0, 0.0
    if some:
        count(search, x, ROOT)
    if search.charge.size > 0:
        charge = -search.mean[place, a]
        for t in range(n_states):
            if search.charge[place, a, t] != 0.0:
                charge += search.charge[place, a, t] * dot(weights, draws[slots[pair], t])
    for column in range(columns):
        t = next_state(problem.posterior, pair, column)
        if t < 0:
            continue
        p = chances(problem, draws[slots[pair]], weights, pair, column, likely)
        if p > 0.0:
            value, there = -np.inf, n_actions * place_after(search, place, a, t)
            if some:
                search.counts[pair, column] += 1
            for b in range(n_actions):
                if not (some and needless(search.classes, search.counts, t * n_actions + b, n_actions)):
                    value = max(value, dot(likely, after[there + b]))
            if some:
                search.counts[pair, column] -= 1
            search.prob[x, a * columns + column] = p
            search.above[x, a * columns + column] = value / p
            total += value
    gain = dot(weights, draws[slots[pair], n_states]) + problem.discount * total - charge
    search.open[x, a] = True
    if search.size[WAITING] > 0:
        old = max(0.0, search.node[x].upper - search.old[a])
        search.loss[x, a] = old + max(0.0, dot(weights, first[pair]) - gain)
    else:
        search.loss[x, a] = max(0.0, search.node[x].upper - gain)


@njit(**FAST)
def place_after(search, place, a, t):
    """Where an action that leads to `t` leaves a place."""
    return np.int64(search.follows[place, a, t]) if search.follows.size > 0 else np.int64(t)


@njit(**FAST)
def later(search, x):
    """With a horizon: the stage of a set's `q` for what follows node `x`."""
    return search.node[x].stage + 1 - search.node[search.start[search.node[x].set]].stage


@out_of_line
@njit(**FAST)
def expand(problem, search, draws, x):
    """The losses of node `x`. For ever, an action loses no less than somebody who is told the model after it: the one
    that loses least so is looked at, and those that may be its rivals; others when they are wanted."""
    n_actions, s, weights = problem.posterior.n_actions, search.node[x].state, weigh(problem, search, draws, x)
    here, some = n_actions * search.node[x].place, search.classes.size > 0
    q = search.q[search.node[x].set, 0, here : here + n_actions]
    at_once = problem.horizon >= 0 or search.size[WAITING] > 0
    if some:
        count(search, x, ROOT)
    search.node[x].stamp = -1
    for row in range(search.prob.shape[1]):
        search.child[x, row], search.prob[x, row] = -1, 0.0
    seems = -1
    for a in range(n_actions):
        pair = s * n_actions + a
        search.open[x, a], search.loss[x, a] = False, np.inf
        if problem.available[pair] and not (some and needless(search.classes, search.counts, pair, n_actions)):
            search.loss[x, a] = 0.0 if at_once else max(0.0, search.node[x].upper - dot(weights, q[a]))
            if seems < 0 or search.loss[x, a] < search.loss[x, seems]:
                seems = a
    if seems >= 0:
        look_at(problem, search, draws, x, seems, weights)
        for a in range(n_actions):
            rival = at_once or search.loss[x, a] <= _RIVALS * search.loss[x, seems]
            if rival and search.loss[x, a] < np.inf and not search.open[x, a]:
                look_at(problem, search, draws, x, a, weights)


@njit(**FAST)
def find(search, key, place, stage):
    """`(node or −1, slot of the table)`."""
    mask = np.uint64(search.table.size - 1)
    slot = mix(key + np.uint64(place)) & mask
    while True:
        x = search.table[slot]
        if x < 0:
            return -1, np.int64(slot)
        if search.node[x].key == key and search.node[x].place == place and search.node[x].stage == stage:
            return np.int64(x), np.int64(slot)
        slot = (slot + np.uint64(1)) & mask


@njit(**FAST)
def begin(problem, search, draws, states):
    """Forget everything but the first particles, set 0; node `i` is the start in `states[i]`."""
    search.size.fill(0)
    search.size[NODES], search.size[SETS] = states.size, 1
    search.table.fill(-1)
    search.start[0] = 0
    n, n_actions = search.own.size, problem.posterior.n_actions
    for i in range(states.size):
        x = search.node[i]
        x.state, x.stage, x.parent, x.row, x.set = states[i], 0, -1, -1, 0
        x.key, x.place = mix(np.uint64(i + 1)), search.begins[states[i]]
        x.base = x.key
        x.left, x.alive = np.log(n), 1.0
        search.weight[i].fill(1.0 / n)
        x.upper = -np.inf
        search.counts.fill(0)
        for a in range(n_actions):
            pair = states[i] * n_actions + a
            if search.classes.size == 0 or not needless(search.classes, search.counts, pair, n_actions):
                x.upper = max(x.upper, dot(search.weight[i], search.q[0, 0, x.place * n_actions + a]))
        expand(problem, search, draws, i)


@out_of_line
@njit(**FAST)
def child_of(problem, search, draws, parent, row, most_sets, least):
    """`(node after an outcome, what it needs)`, found or built; −1 when there is no space.

    A node that needs fresh particles has its counts and old values left in the search, and waits for `renewed`.
    """
    known = search.child[parent, row]
    if known >= 0:
        return np.int64(known), DONE
    columns = search.counts.shape[1]
    pair = search.node[parent].state * problem.posterior.n_actions + row // columns
    t, stage = next_state(problem.posterior, pair, row % columns), search.node[parent].stage + 1
    key = search.node[parent].base + search.words[pair, row % columns]
    place = place_after(search, search.node[parent].place, row // columns, t)
    x, slot = find(search, key, place, stage)
    if x >= 0:
        search.child[parent, row] = x
        return x, DONE
    x = search.size[NODES]
    if x == search.node.size:
        return np.int64(-1), DONE
    node, drawn = search.node[x], search.node[parent].set
    node.state, node.stage, node.parent, node.row, node.set = t, stage, parent, row, drawn
    node.place = place
    node.key, node.base = key, key
    node.upper = search.above[parent, row]
    node.alive = search.node[parent].alive * problem.keep[pair]
    node.left = search.node[parent].left
    if least > 0.0:  # where sets are renewed at all
        node.left += log_size_change(problem, search, parent, pair, row % columns)
    if x < search.weight.shape[0]:
        weights = search.weight[x]
        total = chances(problem, draws[search.slots[drawn, pair]], search.weight[parent], pair, row % columns, weights)
        for m in range(weights.size):
            weights[m] /= total
    used = stage - search.node[search.start[drawn]].stage
    needed = node.left < least or (problem.horizon >= 0 and used + 1 >= search.q.shape[1])
    if needed:
        if search.size[SETS] >= most_sets:
            return np.int64(-1), DONE
        q = search.q[drawn, 0 if problem.horizon < 0 else used]
        for a in range(problem.posterior.n_actions):
            search.old[a] = dot(search.weight[x], q[t * problem.posterior.n_actions + a])
        count(search, x, ROOT)
        search.start[search.size[SETS]] = x
        search.size[SETS] += 1
    search.size[NODES] = x + 1
    search.table[slot] = x
    search.child[parent, row] = x
    if needed:
        return x, RENEW
    expand(problem, search, draws, x)
    return x, DONE


@out_of_line
@njit(**FAST)
def renewed(problem, search, draws, x):
    """Node `x` with the particles that have been drawn for it: the newest set."""
    search.node[x].set = search.size[SETS] - 1
    search.node[x].base = mix(search.node[x].key)
    search.node[x].left = np.log(search.weight.shape[1])
    search.weight[x].fill(1.0 / search.weight.shape[1])
    expand(problem, search, draws, x)


@out_of_line
@njit(**FAST)
def tries(posterior, counts, pair):
    """How often the row of a pair has been tried, at any pair that shares it, by `counts[pair,column]`."""
    if not posterior.tied:
        return counts[pair].sum()
    total = 0
    for other in range(posterior.row.size):
        if posterior.row[other] == posterior.row[pair]:
            total += counts[other].sum()
    return total


@out_of_line
@njit(**FAST)
def first_to_ring(p, clocks, mirrored):
    """The column with the chance `p[column]`, not all 0, whose clock rings first. `mirrored`: by one minus its uniform
    number."""
    first, chosen = np.inf, 0
    for column in range(p.size):
        if p[column] > 0.0:
            word = mix(clocks + GOLDEN * np.uint64(column + 1))
            if mirrored:
                word = ~word
            time = -np.log((np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53) / p[column]
            if time < first:
                first, chosen = time, column
    return np.int64(chosen)


@out_of_line
@njit(**FAST)
def cheapest(problem, search, draws, x, scenario, depth, max_nodes, most_sets, least, stamp):
    """Least cost over all sequences of `depth` actions by the clocks of a `scenario`, or a lower bound on it where
    there is no space: `(cost, DONE)`.

    Or `(cost so far, RENEW)`: node `size[WAITING]` waits for particles; the search goes on when called again with it.
    Or `(cost so far, MORE)`: `max_nodes` are expanded; it goes on when called again with `ONWARDS` and more of them.
    """
    n_actions, width, cost = problem.posterior.n_actions, search.prob.shape[1], 0.0
    if x == ONWARDS:
        cost = search.keys[0]
    elif search.size[WAITING] > 0:
        renewed(problem, search, draws, x)
        search.size[WAITING] = 0
        cost = search.keys[search.keys.size - 1]
    else:
        search.size[QUEUE], search.size[EXPANDED] = 0, 0
    while True:
        if x >= 0 and search.node[x].stamp != stamp:
            search.node[x].stamp, search.node[x].cost = stamp, cost
            search.size[EXPANDED] += 1
            for a in range(n_actions):
                if search.loss[x, a] < np.inf:
                    put(problem, search, x, a, scenario)
        full = search.size[EXPANDED] >= max_nodes
        if full and search.items[0] >= 0:
            return search.keys[0], MORE
        search.size[QUEUE], cost, item = pop(search.keys, search.items, search.size[QUEUE])
        if item < 0:
            parent, a = (-1 - item) // n_actions, (-1 - item) % n_actions
            look_at(problem, search, draws, parent, a, weigh(problem, search, draws, parent))
            put(problem, search, parent, a, scenario)
            x = ONWARDS
            continue
        parent, row = item // width, item % width
        if search.node[parent].stage + 1 >= depth:
            return cost, DONE
        x, need = child_of(problem, search, draws, parent, row, most_sets, least)
        if need == RENEW:
            search.size[WAITING] = x
            search.keys[search.keys.size - 1] = cost
            return cost, RENEW
        if x < 0:
            return cost, DONE


@njit(**FAST)
def put(problem, search, x, a, scenario):
    """An action of node `x` into the queue: with the outcome that rings first where it was looked at."""
    posterior, columns, width = problem.posterior, search.counts.shape[1], search.prob.shape[1]
    pair, item = search.node[x].state * posterior.n_actions + a, -1 - (x * posterior.n_actions + a)
    if search.open[x, a]:
        count(search, x, ROOT)
        clocks = mix(scenario + GOLDEN * np.uint64(row_of(posterior, pair) + 1))
        clocks = mix(clocks + GOLDEN * np.uint64(tries(posterior, search.counts, pair) + 1))
        p = search.prob[x, a * columns : (a + 1) * columns]
        item = x * width + a * columns + first_to_ring(p, clocks, search.size[MIRRORED] > 0)
    key = search.node[x].cost + problem.discount ** search.node[x].stage * search.node[x].alive * search.loss[x, a]
    search.size[QUEUE] = push(search.keys, search.items, search.size[QUEUE], key, item)
