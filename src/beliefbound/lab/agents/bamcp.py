"""BAMCP, Bayes-adaptive Monte Carlo planning (Guez, Silver & Dayan, NIPS 2012; JAIR 2013).

At every step a tree of histories is searched by `simulations` simulations from the present state. Each of them runs in
*one* model of the posterior, drawn at the root. In the tree it takes the action of largest `Q + c sqrt(ln(N+1) / n)`, N
visits of the node and n of the action, untried actions first. A history gets a node of its own once its last action has
been tried before, so at most one a simulation; outside the tree actions are those of the roll-out policy. Discounted
returns are averaged in `Q`, and the action of largest `Q` at the root is played. Ties, in the tree, at the root and of
the roll-out policy, are broken uniformly, as in the authors' program. With `c > 0` the root's `Q` converges to the
Bayes-adaptive value of `depth` decisions as simulations grow; after finitely many it is no bound.

*Roll-outs* play a random action with probability `epsilon`, else the greedy one of a Q-learner of step size `rate`,
which starts at 0 and is fed real transitions only. *Depth*: tree and roll-out together make `depth` decisions, by
default `floor(ln 0.01 / ln γ)`. Rewards are scaled to [0, 1], so `c = 3` is 3 times the range of rewards. Defaults are
those of the authors' program; the number of simulations they tuned to the time allowed. The tree is not kept.

Models are drawn lazily, and not even that: counting the outcomes that are drawn from predictive distributions is the
same law (`kernels.planning.urn`). Rewards that must be learnt are part of a history, so that the search knows what
they will teach; what is averaged are expected rewards given the history, which have the same mean and vary less.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.actions import ActionLists, action_lists, best_offered
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.urn import (
    Urn,
    count_outcome,
    count_value,
    decisions_that_matter,
    new_urn,
    outcome_at,
    prepare,
    reward_after,
    rewind,
    value_at,
    within_support,
    write_outcome,
)
from beliefbound.kernels.posterior import Posterior, arrival_of, forget, learn, row_of
from beliefbound.kernels.random import draw_u64, draw_uniform, load, save
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

SIZE = 0
HALF = np.uint64(2**32 - 1)
PARTS = 12  # best actions whose number divides it are drawn without a branch


class Tree(NamedTuple):
    """Nodes are histories; the children of an action are a list."""

    size: IntArray  # [1]
    visits: IntArray  # [node]
    tries: IntArray  # [node,a]
    value: FloatArray  # [node,a]: mean return
    first: IntArray  # [node,a]: the youngest child, −1 if there is none
    sibling: IntArray  # [node]: the next older child, −1 if there is none
    column: IntArray  # [node]: what was seen on the way here
    logs: FloatArray  # [n]: ln(n + 1)
    score: FloatArray  # [a] scratch
    path_node: IntArray  # [step]
    path_action: IntArray  # [step]
    path_reward: FloatArray  # [step]


class Parameters(NamedTuple):
    """The parameters."""

    simulations: int
    depth: int
    c: float
    epsilon: float
    rate: float
    discount: float


class State(NamedTuple):
    """The belief, the roll-out's Q-learner, the tree and parameters."""

    posterior: Posterior
    urn: Urn
    tree: Tree
    q: FloatArray  # [s,a] of the Q-learner
    rolled: IntArray  # [s,A+PARTS]: actions on offer; then the Q-learner's best, each as often, −1 where impossible
    greedy: IntArray  # [s,a]: the Q-learner's best actions
    alike: IntArray  # [s]: how many these are
    lists: ActionLists
    stream: np.ndarray  # uint64 [4]
    parameters: Parameters


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state.posterior)
    state.q.fill(0.0)
    for s in range(state.q.shape[0]):
        list_best(state, s)


@njit(**EXACT)
def list_best(state, s):
    """Note which actions are best for the Q-learner in a state."""
    q, lists, count = state.q, state.lists, 0
    best = best_offered(lists, q, s)
    for i in range(lists.counts[s]):
        a = lists.offered[s, i]
        if q[s, a] == q[s, best]:
            state.greedy[s, count] = a
            count += 1
    state.alike[s] = count
    n_actions, rolled = q.shape[1], state.rolled
    parts = rolled.shape[1] - n_actions
    for k in range(parts):
        rolled[s, n_actions + k] = state.greedy[s, k * count // parts] if parts % count == 0 else -1


@njit(**EXACT_INLINE)
def new_node(tree, column):
    """A node without children, nothing tried; its number."""
    node = tree.size[SIZE]
    tree.size[SIZE] = node + 1
    tree.visits[node] = 0
    tree.sibling[node] = -1
    tree.column[node] = column
    for a in range(tree.tries.shape[1]):
        tree.tries[node, a] = 0
        tree.value[node, a] = 0.0
        tree.first[node, a] = -1
    return node


@njit(**EXACT_INLINE)
def child_of(tree, node, a, column):
    """The child of a node after an action and what was seen; −1 if there is none."""
    child = tree.first[node, a]
    while child >= 0 and tree.column[child] != column:
        child = tree.sibling[child]
    return child


@njit(**EXACT)
def one_alike(score, best, alike, lists, s, words):
    """`(action, words)`: one of the `alike` actions on offer whose `score[a]` is `best`, each alike."""
    u, words = draw_uniform(words)
    left, chosen = np.int64(u * alike), -1
    for i in range(lists.counts[s]):
        a = lists.offered[s, i]
        if score[a] == best:
            chosen = a
            left -= 1
            if left < 0:
                break
    return chosen, words


@njit(**EXACT_INLINE)
def most_promising(tree, lists, node, s, c, words):
    """`(action, words)`: an untried action, else one of largest `Q + c sqrt(ln(N+1) / n)`."""
    chosen, best, alike, log = -1, -np.inf, 0, tree.logs[tree.visits[node]]
    for i in range(lists.counts[s]):
        a = lists.offered[s, i]
        n = tree.tries[node, a]
        score = tree.value[node, a] + c * math.sqrt(log / n) if n > 0 else np.inf
        tree.score[a] = score
        if score > best:
            chosen, best, alike = a, score, 1
        elif score == best:
            alike += 1
    if alike > 1:
        return one_alike(tree.score, best, alike, lists, s, words)
    return chosen, words


@njit(**EXACT_INLINE)
def best_tried(tree, lists, s, words):
    """`(action, words)`: a tried action of largest mean return at the root, which is in state `s`."""
    chosen, alike = -1, 0
    for i in range(lists.counts[s]):
        a = lists.offered[s, i]
        tree.score[a] = tree.value[0, a] if tree.tries[0, a] > 0 else -np.inf
        if chosen < 0 or tree.score[a] > tree.score[chosen]:
            chosen, alike = a, 1
        elif tree.score[a] == tree.score[chosen]:
            alike += 1
    if alike > 1:
        return one_alike(tree.score, tree.score[chosen], alike, lists, s, words)
    return chosen, words


@njit(**EXACT)
def act(state, root):
    """`simulations` simulations from a state; the best action that was tried."""
    posterior, urn, tree, lists = state.posterior, state.urn, state.tree, state.lists
    rolled, greedy, alike = state.rolled, state.greedy, state.alike
    simulations, depth, c, epsilon, _, discount = state.parameters
    n_actions, n_outcomes, n_values = posterior.n_actions, posterior.alpha.shape[1], posterior.reward.shape[0]
    prepare(posterior, urn)
    tree.size[SIZE] = 0
    new_node(tree, -1)
    words = load(state.stream)
    per_random, per_best = 1.0 / max(epsilon, 1e-300), 1.0 / max(1.0 - epsilon, 1e-300)
    all_offered, parts = lists.counts.min() == n_actions, rolled.shape[1] - n_actions
    for _ in range(simulations):
        s, node, length, inside = root, 0, 0, True
        while inside and length < depth:
            a, words = most_promising(tree, lists, node, s, c, words)
            pair = s * n_actions + a
            row = row_of(posterior, pair)
            u, words = draw_uniform(words)
            j = outcome_at(posterior, urn, row, within_support(posterior, urn, row, u))
            tree.path_node[length] = node
            tree.path_action[length] = a
            tree.path_reward[length] = reward_after(posterior, urn, pair, j)
            length += 1
            count_outcome(posterior, urn, row, j)
            column = j
            if n_values > 1:
                u, words = draw_uniform(words)
                k = value_at(posterior, pair, u)
                count_value(posterior, urn, pair, k)
                column = k * n_outcomes + j
            s = arrival_of(posterior, pair, j)
            inside = tree.tries[node, a] > 0
            if inside:
                child = child_of(tree, node, a, column)
                if child < 0:
                    child = new_node(tree, column)
                    tree.sibling[child] = tree.first[node, a]
                    tree.first[node, a] = child
                node = child
        gained, weight = 0.0, 1.0
        for i in range(length, depth):
            z, words = draw_u64(words)  # one half of it chooses the action, the other the outcome
            u = np.float64(z & HALF) * 2.0**-32
            share = min(u * per_random, 1.0)  # 1: a best action; below: that share of those on offer
            part = max(u - epsilon, 0.0) * per_best * parts
            if all_offered:  # where to look does not wait for the state
                a = rolled[s, np.uint64(share * n_actions + part)]
            else:
                a = rolled[s, np.int64(share * lists.counts[s]) if share < 1.0 else n_actions + np.int64(part)]
            if a < 0:
                a = greedy[s, np.int64((u - epsilon) * per_best * alike[s])]
            pair = s * n_actions + a
            row = row_of(posterior, pair)
            u = np.float64(z >> np.uint64(32)) * 2.0**-32
            j = outcome_at(posterior, urn, row, within_support(posterior, urn, row, u))
            gained += weight * reward_after(posterior, urn, pair, j)
            weight *= discount
            write_outcome(posterior, urn, i, row, j)
            s = arrival_of(posterior, pair, j)
        urn.size[0] = depth
        for i in range(length - 1, -1, -1):
            node, a = tree.path_node[i], tree.path_action[i]
            gained = tree.path_reward[i] + discount * gained
            tree.visits[node] += 1
            tree.tries[node, a] += 1
            tree.value[node, a] += (gained - tree.value[node, a]) / tree.tries[node, a]
        rewind(posterior, urn, 0, 0)
    best, words = best_tried(tree, lists, root, words)
    save(state.stream, words)
    return best


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief on one transition, and let the Q-learner learn."""
    posterior, q = state.posterior, state.q
    learn(posterior, s, a, r, t)
    target = (r - posterior.low) / posterior.width + state.parameters.discount * q[t, best_offered(state.lists, q, t)]
    q[s, a] += state.parameters.rate * (target - q[s, a])
    list_best(state, s)


@agent(
    "bamcp",
    summary="Monte Carlo tree search over histories, one sampled model a simulation (Guez, Silver & Dayan 2012)",
    parameters=(
        Number("simulations", 1000, 1, 10**8, "a step", whole=True, always=True),
        Number("c", 3.0, 0.0, 1e6, "of exploration in the tree, in ranges of rewards"),
        Number("epsilon", 0.5, 0.0, 1.0, "share of random actions in roll-outs"),
        Number("rate", 0.2, 0.0, 1.0, "step size of the Q-learner that roll-outs follow"),
        Number("depth", None, 1, 10**5, "decisions of a simulation", whole=True, auto="ln 0.01 / ln discount"),
        *PRIOR,
        DISCOUNT,
    ),
)
def bamcp(
    setting: Setting,
    *,
    simulations: int,
    c: float,
    epsilon: float,
    rate: float,
    depth: int | None,
    **values: Any,
) -> Machine:
    """The machine; memory is that of a node a simulation."""
    S, A = setting.n_states, setting.n_actions
    nodes = simulations + 1
    if 8 * nodes * (3 * A + 4) > AGENT_BYTES:
        raise ParameterError(f"{simulations} simulations need {8e-9 * nodes * (3 * A + 4):.0f} GB; take fewer")
    posterior, lists = posterior_for(setting, values), action_lists(setting.available)
    depth = min(decisions_that_matter(setting.discount), 10**5) if depth is None else depth
    state = State(
        posterior=posterior,
        urn=new_urn(posterior, depth),
        tree=Tree(
            size=np.zeros(1, np.int64),
            visits=np.zeros(nodes, np.int64),
            tries=np.zeros((nodes, A), np.int64),
            value=np.zeros((nodes, A)),
            first=np.full((nodes, A), -1, np.int64),
            sibling=np.full(nodes, -1, np.int64),
            column=np.zeros(nodes, np.int64),
            logs=np.log(np.arange(nodes) + 1.0),
            score=np.zeros(A),
            path_node=np.zeros(depth, np.int64),
            path_action=np.zeros(depth, np.int64),
            path_reward=np.zeros(depth),
        ),
        q=np.zeros((S, A)),
        rolled=np.concatenate([lists.offered, np.full((S, PARTS), -1)], axis=1),
        greedy=np.zeros((S, A), np.int64),
        alike=np.zeros(S, np.int64),
        lists=lists,
        stream=np.zeros(4, np.uint64),
        parameters=Parameters(simulations, depth, float(c), float(epsilon), float(rate), setting.discount),
    )
    return Machine(state, reset, act, observe)
