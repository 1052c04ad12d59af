"""Bayesian sparse sampling (Wang, Lizotte, Bowling & Schuurmans, ICML 2005).

At every step a tree of histories is grown by `samples` descents from the present state. At a decision node a descent
draws one model from the *node's* posterior and takes that model's optimal action (Thompson sampling inside the tree: it
looks where an action may be best). At an outcome node it draws what follows from the predictive of that posterior; a
child that is there is entered, else one is added and the descent ends. A new node is worth what the expected MDP of its
posterior earns in the decisions that are left of `depth`. Backed up are

    Q(h,a) = r + γ Σ_i n_i V(h_i) / Σ_i n_i   for actions that were tried, n_i descents through child i,

the new node's own estimate for actions that were not (else the root could miss the only good one), and
`V(h) = max_a Q(h,a)`. The action of largest Q at the root is played (ties: lowest).

The paper's experiments are bandits, and its depth is the bandit's horizon. Ours: `depth` is by default
`floor(ln 0.01 / ln γ)`; models are solved by value iteration, warm from the model before, to `tolerance`. Rewards that
must be learnt are part of a history; expected rewards are in closed form. With ever more samples Q at the root
converges to the Bayes-adaptive value where Thompson sampling tries every action that matters for ever.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.actions import ActionLists, action_lists
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.held_models import HeldModels, clear, expect_all, held_models, mmbi_sweeps
from beliefbound.kernels.planning.urn import (
    Urn,
    column_at,
    count_column,
    decisions_that_matter,
    expected_reward,
    new_urn,
    prepare,
    rewind,
)
from beliefbound.kernels.posterior import Posterior, draw, forget
from beliefbound.kernels.random import load, save
from beliefbound.lab.agents.common.belief import observe
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


class Tree(NamedTuple):
    """Nodes are histories; the children of an action are a list."""

    size: IntArray  # [1]
    value: FloatArray  # [node]
    visits: IntArray  # [node]: descents that entered it
    tries: IntArray  # [node,a]
    q: FloatArray  # [node,a]: at first by the expected MDP
    reward: FloatArray  # [node,a]: expected, once tried
    first: IntArray  # [node,a]: the youngest child, −1 if there is none
    sibling: IntArray  # [node]: the next older child, −1 if there is none
    column: IntArray  # [node]: what was seen on the way here
    path: IntArray  # [step]: nodes met
    states: IntArray  # [step]: states they are in
    taken: IntArray  # [step]: actions taken there


class Parameters(NamedTuple):
    """The parameters."""

    samples: int
    depth: int
    sweeps: int
    tolerance: float


class State(NamedTuple):
    """The belief, a model of it, its expected MDP, the tree and parameters."""

    posterior: Posterior
    urn: Urn
    model: HeldModels
    mean: HeldModels
    tree: Tree
    lists: ActionLists
    stream: np.ndarray  # uint64 [4]
    parameters: Parameters


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state.posterior)
    clear(state.model)


@out_of_line
@njit(**EXACT)
def add_node(state, column, s, left):
    """A node worth what the expected MDP of the counts as they are earns in `left` decisions; its number."""
    mean, tree, lists = state.mean, state.tree, state.lists
    node = tree.size[0]
    tree.size[0] = node + 1
    tree.visits[node] = 0
    tree.sibling[node] = -1
    tree.column[node] = column
    tree.value[node] = -np.inf
    expect_all(state.posterior, mean)
    clear(mean)
    mmbi_sweeps(mean, left, 0.0)
    for index in range(lists.counts[s]):
        a = lists.offered[s, index]
        tree.tries[node, a] = 0
        tree.first[node, a] = -1
        tree.q[node, a] = mean.mixed[s, a] if left > 0 else 0.0
        tree.value[node] = max(tree.value[node], tree.q[node, a])
    return node


@njit(**EXACT)
def back_up(tree, lists, discount, node, s, a):
    """`Q(h,a)` and `V(h)`."""
    total, count, child = 0.0, 0, tree.first[node, a]
    while child >= 0:
        total += tree.visits[child] * tree.value[child]
        count += tree.visits[child]
        child = tree.sibling[child]
    tree.q[node, a] = tree.reward[node, a] + discount * total / count
    best = -np.inf
    for index in range(lists.counts[s]):
        best = max(best, tree.q[node, lists.offered[s, index]])
    tree.value[node] = best


@njit(**EXACT)
def act(state, root):
    """The root, then descents; the best action."""
    posterior, urn, model, tree, lists, parameters = (
        state.posterior,
        state.urn,
        state.model,
        state.tree,
        state.lists,
        state.parameters,
    )
    n_actions = posterior.n_actions
    prepare(posterior, urn)
    tree.size[0] = 0
    add_node(state, -1, root, parameters.depth)
    for _ in range(parameters.samples):
        node, s, length, column, entered = 0, root, 0, -1, True
        while entered and length < parameters.depth:
            draw(posterior, state.stream, model.p, model.r)
            mmbi_sweeps(model, parameters.sweeps, parameters.tolerance)
            a = model.actions[s]
            pair = s * n_actions + a
            tree.reward[node, a] = expected_reward(posterior, urn, pair)
            tree.tries[node, a] += 1
            tree.path[length] = node
            tree.states[length] = s
            tree.taken[length] = a
            length += 1
            column = column_at(posterior, urn, pair, state.stream)
            s = count_column(posterior, urn, pair, column)
            child = tree.first[node, a]
            while child >= 0 and tree.column[child] != column:
                child = tree.sibling[child]
            entered = child >= 0
            if entered:
                tree.visits[child] += 1
                node = child
        if not entered:
            child = add_node(state, column, s, parameters.depth - length)
            last, a = tree.path[length - 1], tree.taken[length - 1]
            tree.visits[child] = 1
            tree.sibling[child] = tree.first[last, a]
            tree.first[last, a] = child
        for i in range(length - 1, -1, -1):
            back_up(tree, lists, state.mean.discount, tree.path[i], tree.states[i], tree.taken[i])
        rewind(posterior, urn, 0, 0)
    best = lists.offered[root, 0]
    for index in range(1, lists.counts[root]):
        if tree.q[0, lists.offered[root, index]] > tree.q[0, best]:
            best = lists.offered[root, index]
    return best


@agent(
    "sparse-sampling",
    summary="a tree of histories grown by Thompson sampling, the expected MDP at its leaves (Wang et al. 2005)",
    parameters=(
        Number("samples", 32, 1, 10**7, "descents a step", whole=True, always=True),
        Number("depth", None, 1, 10**5, "decisions planned for", whole=True, auto="ln 0.01 / ln discount"),
        Number("sweeps", 1000, 1, 10**6, "most sweeps of value iteration on a model", whole=True),
        Number("tolerance", 1e-3, 0.0, 1e6, "change of the values that ends them"),
        *PRIOR,
        DISCOUNT,
    ),
)
def sparse_sampling(setting: Setting, *, samples: int, depth: int | None, **values: Any) -> Machine:
    """The machine; memory is that of a node a sample."""
    A, nodes = setting.n_actions, samples + 1
    if 8 * nodes * (4 * A + 4) > AGENT_BYTES:
        raise ParameterError(f"{samples} samples need {8e-9 * nodes * (4 * A + 4):.0f} GB; take fewer")
    posterior = posterior_for(setting, values)
    depth = min(decisions_that_matter(setting.discount), 10**5) if depth is None else depth
    state = State(
        posterior=posterior,
        urn=new_urn(posterior, depth),
        model=held_models(1, setting.available, setting.discount),
        mean=held_models(1, setting.available, setting.discount),
        tree=Tree(
            size=np.zeros(1, np.int64),
            value=np.zeros(nodes),
            visits=np.zeros(nodes, np.int64),
            tries=np.zeros((nodes, A), np.int64),
            q=np.zeros((nodes, A)),
            reward=np.zeros((nodes, A)),
            first=np.full((nodes, A), -1, np.int64),
            sibling=np.full(nodes, -1, np.int64),
            column=np.zeros(nodes, np.int64),
            path=np.zeros(depth, np.int64),
            states=np.zeros(depth, np.int64),
            taken=np.zeros(depth, np.int64),
        ),
        lists=action_lists(setting.available),
        stream=np.zeros(4, np.uint64),
        parameters=Parameters(samples, depth, values["sweeps"], float(values["tolerance"])),
    )
    return Machine(state, reset, act, observe)
