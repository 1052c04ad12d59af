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
| `pairs` | as `mmbi` | the models two by two, which of the two to be learnt (`kernels.planning.held_pairs`) |

All have the right side in the mean: `E L ≤ V* ≤ E U` at a leaf. Backups keep that for U; a maximum over few noisy L is
biased upwards, so L is an estimate and no certificate. U is clipped to be at least L. `depth` decisions, by default
`floor(ln 0.01 / ln γ)`, are planned for and evaluated at a leaf.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Choice, Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.actions import ActionLists, action_lists
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.held_bounds import (
    Optimum,
    PolicyOccupancies,
    ascend,
    new_occupancies,
    new_optimum,
    optimum_from_above,
    value_below,
)
from beliefbound.kernels.planning.held_models import HeldModels, clear, expect_all, held_models, mmbi_sweeps
from beliefbound.kernels.planning.held_pairs import Pairs, new_pairs, value_of_pairs
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
from beliefbound.kernels.posterior import Posterior, copy_into, draw
from beliefbound.kernels.random import uniform
from beliefbound.lab.agents.common.belief import observe, reset
from beliefbound.lab.engine.offline import MOST_A_STEP
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

LEAVES = ("original", "mmbi", "cadp", "pairs")
ORIGINAL, MMBI, CADP, PAIRS = range(4)
DRAWN = 20  # operations that it takes to draw what a sweep takes one for


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
    first: FloatArray  # [2]: bounds of the root before it was expanded
    path: IntArray  # [step]: nodes met


class Parameters(NamedTuple):
    """The parameters."""

    expansions: int
    leaves: int
    depth: int
    sweeps: int  # of CADP
    tolerance: float


class State(NamedTuple):
    """The belief, models of it, a tree and parameters."""

    posterior: Posterior
    urn: Urn
    models: HeldModels
    mean: HeldModels
    ascent: PolicyOccupancies
    optimum: Optimum
    pairs: Pairs
    tree: Tree
    lists: ActionLists
    stream: np.ndarray  # uint64 [4]
    parameters: Parameters


@out_of_line
@njit(**EXACT)
def choose_policy(state, s):
    """Choose the policy of a leaf, to `ascent.actions`, and draw the models that it is valued on."""
    posterior, models, mean, ascent, parameters = (
        state.posterior,
        state.models,
        state.mean,
        state.ascent,
        state.parameters,
    )
    if parameters.leaves == ORIGINAL:
        expect_all(posterior, mean)
        clear(mean)
        mmbi_sweeps(mean, parameters.depth, parameters.tolerance)
        copy_into(ascent.actions[0], mean.actions)
    for half in range(1 if parameters.leaves == ORIGINAL else 2):
        draw(posterior, state.stream, models.p, models.r)
        if half == 0 and (parameters.leaves == MMBI or parameters.leaves == PAIRS):
            clear(models)
            mmbi_sweeps(models, parameters.depth, parameters.tolerance)
            copy_into(ascent.actions[0], models.actions)
        elif half == 0 and parameters.leaves == CADP:
            ascend(models, ascent, s, parameters.sweeps)


@njit(**EXACT)
def value_above(lists, optimum, w, leaves, s):
    """`E max`, or QMDP."""
    told, qmdp = 0.0, -np.inf
    for index in range(lists.counts[s]):
        qmdp = max(qmdp, optimum.mean[s, lists.offered[s, index]])
    for m in range(w.size):
        best = -np.inf
        for index in range(lists.counts[s]):
            best = max(best, optimum.q[s, lists.offered[s, index], m])
        told += w[m] * best
    return told if leaves == ORIGINAL else qmdp


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
def choose(tree, lists, stream, node, columns):
    """`(a, column)`: the action of largest upper bound at an expanded node, and what follows, drawn."""
    s, e = tree.state[node], tree.expanded[node]
    a = lists.offered[s, 0]
    for index in range(1, lists.counts[s]):
        if tree.above[e, lists.offered[s, index]] > tree.above[e, a]:
            a = lists.offered[s, index]
    u, first, column = uniform(stream), 1 + (e * tree.reward.shape[1] + a) * columns, -1
    for i in range(columns):
        if tree.chance[first + i] > 0.0:
            column = i
            u -= tree.chance[first + i]
            if u < 0.0:
                break
    return a, column


@out_of_line
@njit(**EXACT)
def add_leaf(state, node, s):
    """A node in state `s`, with bounds from models of the counts as they are."""
    models, optimum, tree, parameters = state.models, state.optimum, state.tree, state.parameters
    choose_policy(state, s)
    lower = value_below(models, state.ascent.actions, parameters.depth, s)
    optimum_from_above(models, optimum, parameters.depth, parameters.tolerance)
    upper = value_above(state.lists, optimum, models.w, parameters.leaves, s)
    if parameters.leaves == PAIRS:
        upper = value_of_pairs(models, optimum, state.pairs, parameters.depth, parameters.tolerance, s)
    tree.state[node] = s
    tree.expanded[node] = -1
    tree.lower[node] = lower
    tree.upper[node] = max(lower, upper)


@njit(**EXACT)
def act(state, root):
    """Bounds of the root, then expansions of the tree; the action of largest lower bound."""
    posterior, urn, tree, lists = state.posterior, state.urn, state.tree, state.lists
    n_actions, columns = posterior.n_actions, posterior.reward.shape[0] * posterior.alpha.shape[1]
    prepare(posterior, urn)
    add_leaf(state, 0, root)
    tree.first[0] = tree.lower[0]
    tree.first[1] = tree.upper[0]
    for e in range(state.parameters.expansions):
        node, length = 0, 0
        while tree.expanded[node] >= 0:
            tree.path[length] = node
            length += 1
            a, column = choose(tree, lists, state.stream, node, columns)
            count_column(posterior, urn, tree.state[node] * n_actions + a, column)
            node = 1 + (tree.expanded[node] * n_actions + a) * columns + column
        s, outcomes, values = tree.state[node], urn.size[0], urn.size[1]
        for i in range(n_actions * columns):
            a, column, child = i // columns, i % columns, 1 + e * n_actions * columns + i
            tree.chance[child] = 0.0
            if state.models.available[s, a]:
                pair = s * n_actions + a
                tree.reward[e, a] = expected_reward(posterior, urn, pair)
                tree.chance[child] = column_chance(posterior, urn, pair, column)
                if tree.chance[child] > 0.0:
                    add_leaf(state, child, count_column(posterior, urn, pair, column))
                    rewind(posterior, urn, outcomes, values)
        tree.expanded[node] = e
        tree.path[length] = node
        for i in range(length, -1, -1):
            back_up(tree, lists, state.models.discount, columns, tree.path[i])
        rewind(posterior, urn, 0, 0)
    best = lists.offered[root, 0]
    for index in range(1, lists.counts[root]):
        if tree.below[0, lists.offered[root, index]] > tree.below[0, best]:
            best = lists.offered[root, index]
    return best


def pairs_for(posterior: Posterior, n: int) -> Pairs:
    """Empty arrays for pairs of models of a posterior; refuses where what a step shows of rewards is not known."""
    if n < 2:
        raise ParameterError(f"n is {n}: leaves=pairs needs two models at least")
    paid, n_pairs = posterior.paid, posterior.reward.shape[1]
    if paid.shape[0] > 2 or (paid.shape[0] == 2 and paid.shape[2] > 1):
        raise ParameterError(
            "leaves=pairs needs rewards that are known, or Bernoulli whatever the arrival; take another"
        )
    if paid.shape[2] > 1:
        paid = np.zeros((1, n_pairs, 1))  # known: the arrival says it
    return new_pairs(paid[:, :, 0].copy(), n_pairs // posterior.n_actions, posterior.n_actions)


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
    pairs = pairs_for(posterior, n) if leaves == "pairs" else new_pairs(np.zeros((1, 0)), 1, 1)
    needed = 8 * (5 * nodes + S * A * S * (n + 1) + lines * S * (n + 2) + 2 * pairs.chance.size)
    if needed > AGENT_BYTES:
        raise ParameterError(f"a tree of {nodes} nodes and {n} models need {1e-9 * needed:.0f} GB; take fewer")
    work = float(nodes) * n * (S * A * S * (depth + DRAWN) + depth * pairs.chance.size / 2)
    if work > MOST_A_STEP:
        raise ParameterError(
            f"expansions is {expansions}, n {n}: bounds of {nodes - 1} leaves at every step are {work:.1g} operations; "
            "take fewer, a smaller depth, or a smaller environment"
        )
    state = State(
        posterior=posterior,
        urn=new_urn(posterior, expansions + 1),
        models=held_models(n, setting.available, setting.discount),
        mean=held_models(1, setting.available, setting.discount),
        ascent=new_occupancies(lines, S, n),
        optimum=new_optimum(S, A, n),
        pairs=pairs,
        tree=Tree(
            state=np.zeros(nodes, np.int64),
            expanded=np.full(nodes, -1, np.int64),
            chance=np.zeros(nodes),
            lower=np.zeros(nodes),
            upper=np.zeros(nodes),
            reward=np.zeros((expansions, A)),
            below=np.zeros((expansions, A)),
            above=np.zeros((expansions, A)),
            first=np.zeros(2),
            path=np.zeros(expansions + 1, np.int64),
        ),
        lists=action_lists(setting.available),
        stream=np.zeros(4, np.uint64),
        parameters=Parameters(expansions, LEAVES.index(leaves), depth, values["sweeps"], float(values["tolerance"])),
    )
    return Machine(state, reset, act, observe)
