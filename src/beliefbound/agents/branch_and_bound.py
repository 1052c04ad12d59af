"""Stochastic branch and bound in the tree of beliefs (Dimitrakakis, CIMCA 2008; ICAART 2010, arXiv:0912.5029).

A node is a state and a posterior, with estimates of a lower and an upper bound on its Bayes-optimal value. At every
step the tree starts at the present posterior and is expanded `expansions` times: a walk from the root takes the action
of largest upper bound at decision nodes and draws what follows from the predictive at chance nodes, and the leaf it
reaches gets all its successors, each with bounds of its own. Backed up are `L(a) = r + γ Σ_i p_i L_i`, `L = max_a L(a)`
and U likewise, with predictive probabilities in closed form. The action of largest L at the root is played (ties:
lowest). The walk is the published traversal rule as far as we can tell from its description.

Bounds of a leaf are estimated from `n` models of the *leaf's* posterior, drawn when it is made (the published program
adds one at a time), and never the models that a policy was chosen on:

| leaves | from below | from above |
|---|---|---|
| `original` | the expected MDP's optimal policy | `E max`: the mean of the models' own optimal values |
| `mmbi` | MMBI's policy on n other models | QMDP: `max_a` of the mean of the models' own optimal action values |
| `cadp` | CADP's policy, time-indexed, on n other models | QMDP |

All have the right side in the mean: `E L ≤ V* ≤ E U` at a leaf. Backups keep that for U; a maximum over few noisy L is
biased upwards, so L is an estimate and no certificate. U is clipped to be at least L. `depth` decisions, by default
`floor(ln 0.01 / ln γ)`, are planned for and evaluated at a leaf.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.agents.priors import PRIOR, posterior_for
from beliefbound.agents.protocol import DISCOUNT, Machine, Setting
from beliefbound.agents.registry import agent
from beliefbound.errors import ParameterError
from beliefbound.grammar import Choice, Number
from beliefbound.kernels.actions import ActionLists, action_lists
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.held_bounds import (
    Ascent,
    Optimum,
    ascend,
    new_ascent,
    new_optimum,
    optimum_from_above,
    value_below,
)
from beliefbound.kernels.planning.held_models import HeldModels, clear, held_models, settle
from beliefbound.kernels.planning.urn import (
    Urn,
    column_chance,
    count_column,
    decisions_that_matter,
    expected_reward,
    new_urn,
    prepare,
    rewind,
)
from beliefbound.kernels.posterior import Posterior, copy_into, draw, expected, forget, learn
from beliefbound.kernels.random import load, save, uniform
from beliefbound.limits import AGENT_BYTES
from beliefbound.validation import FloatArray, IntArray

LEAVES = ("original", "mmbi", "cadp")
ORIGINAL, MMBI, CADP = range(3)


class Tree(NamedTuple):
    """Node 0 is the root; the successors of the e-th node expanded are nodes `1 + (e·A + a)·columns + column`."""

    state: IntArray  # [node]
    expanded: IntArray  # [node]: as which it was expanded; −1 if it was not
    chance: FloatArray  # [node]: predictive, given the action; 0 where it cannot happen
    lower: FloatArray  # [node]
    upper: FloatArray  # [node]
    reward: FloatArray  # [e,a]
    below: FloatArray  # [e,a]: L(a)
    above: FloatArray  # [e,a]: U(a)
    path: IntArray  # [step]: nodes met


class State(NamedTuple):
    """The belief, models of it, a tree and parameters."""

    posterior: Posterior
    urn: Urn
    models: HeldModels
    mean: HeldModels
    ascent: Ascent
    optimum: Optimum
    tree: Tree
    lists: ActionLists
    stream: np.ndarray  # uint64 [4]
    expansions: int
    leaves: int
    depth: int
    sweeps: int  # of CADP
    tolerance: float


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state.posterior)


@njit(**EXACT)
def evaluate(state, node, s):
    """Bounds of a node for the counts as they are."""
    posterior, models, mean, tree, depth = state.posterior, state.models, state.mean, state.tree, state.depth
    table = state.ascent.actions
    if state.leaves == ORIGINAL:
        n_actions = posterior.n_actions
        for pair in range(mean.available.size):
            i, a = pair // n_actions, pair % n_actions
            mean.r[i, a, 0] = expected(posterior, pair, mean.p[i, a, :, 0])
        clear(mean)
        settle(mean, depth, state.tolerance)
        copy_into(table, mean.actions)
    for half in range(1 if state.leaves == ORIGINAL else 2):
        draw(posterior, state.stream, models.p, models.r)
        if half == 0 and state.leaves == MMBI:
            clear(models)
            settle(models, depth, state.tolerance)
            copy_into(table, models.actions)
        elif half == 0 and state.leaves == CADP:
            ascend(models, state.ascent, s, state.sweeps)
    lower = value_below(models, table, depth, s)
    optimum = state.optimum
    optimum_from_above(models, optimum, depth, state.tolerance)
    upper = 0.0
    if state.leaves == ORIGINAL:
        for m in range(models.w.size):
            best = -np.inf
            for index in range(state.lists.counts[s]):
                best = max(best, optimum.q[s, state.lists.offered[s, index], m])
            upper += models.w[m] * best
    else:
        upper = -np.inf
        for index in range(state.lists.counts[s]):
            upper = max(upper, optimum.mean[s, state.lists.offered[s, index]])
    tree.state[node] = s
    tree.expanded[node] = -1
    tree.lower[node] = lower
    tree.upper[node] = max(lower, upper)


@njit(**EXACT)
def back_up(tree, lists, discount, columns, node):
    """`L(a)`, `U(a)`, L and U of an expanded node."""
    s, e, n_actions = tree.state[node], tree.expanded[node], tree.reward.shape[1]
    lower, upper = -np.inf, -np.inf
    for index in range(lists.counts[s]):
        a = lists.offered[s, index]
        first = 1 + (e * n_actions + a) * columns
        below, above = 0.0, 0.0
        for i in range(first, first + columns):
            if tree.chance[i] > 0.0:
                below += tree.chance[i] * tree.lower[i]
                above += tree.chance[i] * tree.upper[i]
        tree.below[e, a] = tree.reward[e, a] + discount * below
        tree.above[e, a] = tree.reward[e, a] + discount * above
        lower = max(lower, tree.below[e, a])
        upper = max(upper, tree.above[e, a])
    tree.lower[node] = lower
    tree.upper[node] = upper


@njit(**EXACT)
def expand(state, e):
    """Walk to a leaf, give it its successors, and back up."""
    posterior, urn, tree, lists = state.posterior, state.urn, state.tree, state.lists
    n_actions, columns = posterior.n_actions, posterior.reward.shape[0] * posterior.alpha.shape[1]
    node, length = 0, 0
    while tree.expanded[node] >= 0:
        s, at = tree.state[node], tree.expanded[node]
        a = lists.offered[s, 0]
        for index in range(1, lists.counts[s]):
            if tree.above[at, lists.offered[s, index]] > tree.above[at, a]:
                a = lists.offered[s, index]
        tree.path[length] = node
        length += 1
        u, first, column = uniform(state.stream), 1 + (at * n_actions + a) * columns, -1
        for i in range(columns):
            if tree.chance[first + i] > 0.0:
                column = i
                u -= tree.chance[first + i]
                if u < 0.0:
                    break
        count_column(posterior, urn, s * n_actions + a, column)
        node = first + column
    tree.path[length] = node
    s = tree.state[node]
    tree.expanded[node] = e
    outcomes, values = urn.size[0], urn.size[1]
    for index in range(lists.counts[s]):
        a = lists.offered[s, index]
        pair = s * n_actions + a
        tree.reward[e, a] = expected_reward(posterior, urn, pair)
        for column in range(columns):
            child = 1 + (e * n_actions + a) * columns + column
            tree.chance[child] = column_chance(posterior, urn, pair, column)
            if tree.chance[child] > 0.0:
                t = count_column(posterior, urn, pair, column)
                evaluate(state, child, t)
                rewind(posterior, urn, outcomes, values)
    for i in range(length, -1, -1):
        back_up(tree, lists, state.models.discount, columns, tree.path[i])
    rewind(posterior, urn, 0, 0)


@njit(**EXACT_INLINE)
def act(state, s):
    """Expand the tree, and take the action of largest lower bound."""
    prepare(state.posterior, state.urn)
    evaluate(state, 0, s)
    for e in range(state.expansions):
        expand(state, e)
    chosen = state.lists.offered[s, 0]
    for index in range(1, state.lists.counts[s]):
        a = state.lists.offered[s, index]
        if state.tree.below[0, a] > state.tree.below[0, chosen]:
            chosen = a
    return chosen


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief on one transition."""
    learn(state.posterior, s, a, r, t)


@agent(
    "branch-and-bound",
    summary="a tree of beliefs, expanded where its upper bound leads (Dimitrakakis 2010)",
    parameters=(
        Number("expansions", 2, 1, 10**6, "of the tree at a step", whole=True, always=True),
        Choice("leaves", "original", LEAVES, "what bounds a leaf"),
        Number("n", 8, 1, 2**20, "models drawn at a leaf", whole=True),
        Number("depth", None, 1, 10**5, "decisions planned for at a leaf", whole=True, auto="ln 0.01 / ln discount"),
        Number("sweeps", 4, 1, 10**4, "most sweeps of CADP", whole=True, needs=("leaves", ("cadp",))),
        Number("tolerance", 1e-3, 0.0, 1e6, "change of the values that ends planning"),
        *PRIOR,
        DISCOUNT,
    ),
)
def branch_and_bound(
    setting: Setting, *, expansions: int, leaves: str, n: int, depth: int | None, **values: Any
) -> Machine:
    """The machine; memory is that of the tree and of n models."""
    S, A = setting.n_states, setting.n_actions
    posterior = posterior_for(setting, values)
    nodes = 1 + expansions * A * posterior.reward.shape[0] * posterior.alpha.shape[1]
    depth = min(decisions_that_matter(setting.discount), 10**5) if depth is None else depth
    lines = depth if leaves == "cadp" else 1
    needed = 8 * (5 * nodes + S * A * S * (n + 1) + lines * S * (n + 2))
    if needed > AGENT_BYTES:
        raise ParameterError(f"a tree of {nodes} nodes and {n} models need {1e-9 * needed:.0f} GB; take fewer")
    state = State(
        posterior=posterior,
        urn=new_urn(posterior, expansions + 1),
        models=held_models(n, setting.available, setting.discount),
        mean=held_models(1, setting.available, setting.discount),
        ascent=new_ascent(lines, S, n),
        optimum=new_optimum(S, A, n),
        tree=Tree(
            state=np.zeros(nodes, np.int64),
            expanded=np.full(nodes, -1, np.int64),
            chance=np.zeros(nodes),
            lower=np.zeros(nodes),
            upper=np.zeros(nodes),
            reward=np.zeros((expansions, A)),
            below=np.zeros((expansions, A)),
            above=np.zeros((expansions, A)),
            path=np.zeros(expansions + 1, np.int64),
        ),
        lists=action_lists(setting.available),
        stream=np.zeros(4, np.uint64),
        expansions=expansions,
        leaves=LEAVES.index(leaves),
        depth=depth,
        sweeps=values["sweeps"],
        tolerance=float(values["tolerance"]),
    )
    return Machine(state, reset, act, observe)
