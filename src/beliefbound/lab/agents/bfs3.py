"""BFS3, Bayesian forward search sparse sampling (Asmuth & Littman, UAI 2011).

The belief MDP, whose states are pairs of a state and a posterior, is searched by forward search sparse sampling (Walsh,
Goschin & Littman 2010). At every step each action is tried `width` times: a next state is drawn from the predictive
distribution, and from there `rollouts` roll-outs of `depth` decisions are made in a tree whose nodes have bounds
`L ≤ V ≤ U`, at first `[0, 1/(1−γ)]` for rewards scaled to [0, 1]. A roll-out that meets a node for the first time draws
`width` successors of each of its actions from the predictive of the node's own posterior. It takes the action of
largest U (ties: lowest) and goes on at the successor of largest `count · (U − L − tail)`; on its way back

    U(a) = r + γ Σ_i count_i U_i / width,   U = max_a U(a),   L likewise.

`tail = γ^k/(1−γ)`, k decisions before the depth is reached, is what no roll-out can close; were it counted, roll-outs
would go where they have been before.

The action of largest `r + γ mean U` is played. The bounds hold for the tree that was sampled, not for the belief MDP: a
node has `width` successors where nature has all of them.

Defaults for width and depth are those of the BAMCP authors' program, which says that it is their interpretation of the
paper; how many roll-outs was tuned to the time allowed. Trees are not kept. A roll-out ends where nothing is left to
close. Rewards that must be learnt are part of what a successor is, and expected rewards are in closed form.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.actions import ActionLists, action_lists
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.urn import Urn, column_at, count_column, expected_reward, new_urn, prepare, rewind
from beliefbound.kernels.posterior import Posterior
from beliefbound.lab.agents.common.belief import observe, reset
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

CLOSED = 1e-9  # of the largest value: a gap that counts as none


class Tree(NamedTuple):
    """Node 0 is the root; the successors of the e-th node expanded are nodes `1 + (e·A + a)·width + i`."""

    size: IntArray  # [1]: nodes expanded
    expanded: IntArray  # [node]: as which it was expanded; −1 if it was not
    column: IntArray  # [node]: what was seen on the way here
    drawn: IntArray  # [node]: how often
    upper: FloatArray  # [node]
    lower: FloatArray  # [node]
    reward: FloatArray  # [e,a]: expected
    distinct: IntArray  # [e,a]: different successors
    above: FloatArray  # [e,a]: U(a)
    below: FloatArray  # [e,a]: L(a)
    path: IntArray  # [step]: nodes met
    states: IntArray  # [step]: states they are in
    taken: IntArray  # [step]: actions taken there


class Parameters(NamedTuple):
    """The parameters."""

    width: int
    depth: int
    rollouts: int
    discount: float
    most: float  # value possible


class State(NamedTuple):
    """The belief, a tree, what actions are worth and parameters."""

    posterior: Posterior
    urn: Urn
    tree: Tree
    upper: FloatArray  # [a]: mean `r + γ U` at the last step; −∞ where not on offer
    lower: FloatArray  # [a]
    lists: ActionLists
    stream: np.ndarray  # uint64 [4]
    parameters: Parameters


@njit(**EXACT)
def expand(state, node, s):
    """Draw the successors of a node from the predictive of the counts as they are."""
    posterior, urn, tree, lists, parameters = state.posterior, state.urn, state.tree, state.lists, state.parameters
    e, n_actions, width = tree.size[0], posterior.n_actions, parameters.width
    tree.size[0] = e + 1
    tree.expanded[node] = e
    for index in range(lists.counts[s]):
        a = lists.offered[s, index]
        pair = s * n_actions + a
        first, distinct = 1 + (e * n_actions + a) * width, 0
        for _ in range(width):
            column = column_at(posterior, urn, pair, state.stream)
            i = 0
            while i < distinct and tree.column[first + i] != column:
                i += 1
            if i == distinct:
                distinct += 1
                tree.column[first + i] = column
                tree.drawn[first + i] = 0
                tree.expanded[first + i] = -1
                tree.upper[first + i] = parameters.most
                tree.lower[first + i] = 0.0
            tree.drawn[first + i] += 1
        tree.distinct[e, a] = distinct
        tree.reward[e, a] = expected_reward(posterior, urn, pair)
        back_up(tree, parameters, e, a)


@njit(**EXACT_INLINE)
def back_up(tree, parameters, e, a):
    """`U(a)` and `L(a)` from the successors."""
    first = 1 + (e * tree.reward.shape[1] + a) * parameters.width
    upper, lower = 0.0, 0.0
    for i in range(first, first + tree.distinct[e, a]):
        upper += tree.drawn[i] * tree.upper[i]
        lower += tree.drawn[i] * tree.lower[i]
    tree.above[e, a] = tree.reward[e, a] + parameters.discount * upper / parameters.width
    tree.below[e, a] = tree.reward[e, a] + parameters.discount * lower / parameters.width


@njit(**EXACT)
def roll_out(state, root):
    """One roll-out from the root, in state `root`; false when there was nothing left to close."""
    posterior, urn, tree, lists, parameters = state.posterior, state.urn, state.tree, state.lists, state.parameters
    node, s, length = 0, root, 0
    tail = parameters.most * parameters.discount**parameters.depth
    outcomes, values = urn.size[0], urn.size[1]
    while length < parameters.depth and tree.upper[node] - tree.lower[node] > tail + CLOSED * parameters.most:
        if tree.expanded[node] < 0:
            expand(state, node, s)
        e = tree.expanded[node]
        a = lists.offered[s, 0]
        for index in range(1, lists.counts[s]):
            if tree.above[e, lists.offered[s, index]] > tree.above[e, a]:
                a = lists.offered[s, index]
        tree.path[length] = node
        tree.taken[length] = a
        tree.states[length] = s
        length += 1
        tail /= max(parameters.discount, 1e-300)
        chosen, widest = -1, -np.inf
        first = 1 + (e * posterior.n_actions + a) * parameters.width
        for i in range(first, first + tree.distinct[e, a]):
            gap = tree.drawn[i] * (tree.upper[i] - tree.lower[i] - tail)
            if gap > widest:
                chosen, widest = i, gap
        s = count_column(posterior, urn, s * posterior.n_actions + a, tree.column[chosen])
        node = chosen
    for step in range(length - 1, -1, -1):
        node, s = tree.path[step], tree.states[step]
        e = tree.expanded[node]
        back_up(tree, parameters, e, tree.taken[step])
        upper, lower = -np.inf, -np.inf
        for index in range(lists.counts[s]):
            upper = max(upper, tree.above[e, lists.offered[s, index]])
            lower = max(lower, tree.below[e, lists.offered[s, index]])
        tree.upper[node] = upper
        tree.lower[node] = lower
    rewind(posterior, urn, outcomes, values)
    return length > 0


@njit(**EXACT)
def act(state, s):
    """Bounds of every action in a state, and the one of largest upper bound."""
    posterior, urn, tree, above, below, lists, stream, parameters = state
    prepare(posterior, urn)
    for a in range(above.size):
        above[a] = -np.inf
        below[a] = -np.inf
    for index in range(lists.counts[s]):
        a = lists.offered[s, index]
        pair = s * posterior.n_actions + a
        upper, lower = 0.0, 0.0
        for _ in range(parameters.width):
            t = count_column(posterior, urn, pair, column_at(posterior, urn, pair, stream))
            tree.size[0] = 0
            tree.expanded[0] = -1
            tree.upper[0] = parameters.most
            tree.lower[0] = 0.0
            for _ in range(parameters.rollouts):
                if not roll_out(state, t):
                    break
            upper += tree.upper[0]
            lower += tree.lower[0]
            rewind(posterior, urn, 0, 0)
        reward = expected_reward(posterior, urn, pair)
        above[a] = reward + parameters.discount * upper / parameters.width
        below[a] = reward + parameters.discount * lower / parameters.width
    return np.argmax(above)


@agent(
    "bfs3",
    summary="forward search sparse sampling in the belief MDP (Asmuth & Littman 2011)",
    parameters=(
        Number("rollouts", 10, 1, 10**6, "from each sampled next state", whole=True, always=True),
        Number("width", 10, 1, 10**4, "successors that are drawn of an action", whole=True),
        Number("depth", 40, 1, 10**4, "decisions of a roll-out", whole=True),
        *PRIOR,
        DISCOUNT,
    ),
)
def bfs3(setting: Setting, *, rollouts: int, width: int, depth: int, **values: Any) -> Machine:
    """The machine; memory is that of one tree."""
    A = setting.n_actions
    expansions = rollouts * depth
    nodes = 1 + expansions * A * width
    if 8 * (5 * nodes + 4 * expansions * A) > AGENT_BYTES:
        raise ParameterError(
            f"rollouts={rollouts}, width={width}, depth={depth}: a tree of {nodes} nodes needs {40e-9 * nodes:.0f} GB; "
            "take fewer or shorter roll-outs"
        )
    posterior = posterior_for(setting, values)
    state = State(
        posterior=posterior,
        urn=new_urn(posterior, depth + 1),
        tree=Tree(
            size=np.zeros(1, np.int64),
            expanded=np.full(nodes, -1, np.int64),
            column=np.zeros(nodes, np.int64),
            drawn=np.zeros(nodes, np.int64),
            upper=np.zeros(nodes),
            lower=np.zeros(nodes),
            reward=np.zeros((expansions, A)),
            distinct=np.zeros((expansions, A), np.int64),
            above=np.zeros((expansions, A)),
            below=np.zeros((expansions, A)),
            path=np.zeros(depth, np.int64),
            states=np.zeros(depth, np.int64),
            taken=np.zeros(depth, np.int64),
        ),
        upper=np.zeros(A),
        lower=np.zeros(A),
        lists=action_lists(setting.available),
        stream=np.zeros(4, np.uint64),
        parameters=Parameters(width, depth, rollouts, float(setting.discount), 1.0 / (1.0 - setting.discount)),
    )
    return Machine(state, reset, act, observe)
