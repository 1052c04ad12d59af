"""A finite-state controller for the Bayes-adaptive problem, improved by gradient (Duff, thesis of 2002; ICML 2003).

A controller of N nodes acts by `π(a|n,s)` and changes its node by `η(n'|n,s,a,t)` after a step from s to t: all that it
remembers of its history is the node. On a model m its value over H steps is that of a Markov chain on (node, state),

`Q_τ(n,s,a) = r_m(s,a) + γ Σ_t P_m(t|s,a) Σ_n' η(n'|n,s,a,t) V_{τ+1}(n',t)`, `V_τ(n,s) = Σ_a π(a|n,s) Q_τ(n,s,a)`,

and its value for the prior is the mean over models. It is trained before the first step on `models` drawn from the
prior, from node 0 and every state alike. Both tables are softmax of weights, which move along the natural gradient: by
a step times the advantage `E[Q_τ(n,s,a) − V_τ(n,s)]`, mean over models and steps by their chance of being in (n,s), and
for a node chosen after (n,s,a,t) by `E[V_{τ+1}(n',t)]` less its mean under η. The gradient is exact. A step that lowers
the value is taken back and halved, one that raises it is kept and the next is longer, so the value on these models
never falls. At the end the tables are rounded to their likeliest entries where that is no worse. Of several random
`starts` the best is kept; a local optimum is all that is promised.

A controller learns nothing from rewards as they come, only from states. Duff's own methods sample trajectories; their
features, rates and results are not known to us, and all defaults are ours. A gradient costs `models · H · N² S² A`
operations.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.posterior import Posterior, draw
from beliefbound.kernels.random import categorical, load, save, stream_from
from beliefbound.lab.engine.offline import MOST_PLANNING, planned_once
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

LEAST, MOST = 1e-6, 1e6  # lengths of a step: shorter ones change nothing, longer ones make tables of 0 and 1
TABLES = 6  # of the size of η, at work in training


class Models(NamedTuple):
    """What a controller is trained on."""

    p: FloatArray  # [m,s,a,t]
    r: FloatArray  # [m,s,a]
    w: FloatArray  # [m], sum 1
    start: FloatArray  # [s]
    discount: float


class Tables(NamedTuple):
    """A controller."""

    policy: FloatArray  # [n,s,a]
    memory: FloatArray  # [n,s,a,t,n']


class Messages(NamedTuple):
    """Messages of an evaluation, and what it says about the tables: weighted values, and the weights."""

    v: FloatArray  # [H+1,n,s]
    f: FloatArray  # [n,s]
    ahead: FloatArray  # [n,s]: f of the next step
    acting: FloatArray  # [n,s,a]
    being: FloatArray  # [n,s]
    moving: FloatArray  # [n,s,a,t,n']
    passing: FloatArray  # [n,s,a,t]


@njit(**EXACT)
def evaluate(models, tables, messages):
    """The controller's value on the models; fills `messages`."""
    policy, memory, v, discount = tables.policy, tables.memory, messages.v, models.discount
    horizon, (n_nodes, n_states, n_actions) = len(v) - 1, policy.shape
    messages.acting.fill(0.0)
    messages.being.fill(0.0)
    messages.moving.fill(0.0)
    messages.passing.fill(0.0)
    value = 0.0
    for m in range(len(models.p)):
        p, r = models.p[m], models.r[m]
        for n in range(n_nodes):
            for s in range(n_states):
                v[horizon, n, s] = 0.0
                messages.f[n, s] = models.w[m] * models.start[s] if n == 0 else 0.0
        for k in range(horizon - 1, -1, -1):
            for n in range(n_nodes):
                for s in range(n_states):
                    total = 0.0
                    for a in range(n_actions):
                        if policy[n, s, a] > 0.0:
                            total += policy[n, s, a] * worth(p[s, a], r[s, a], memory[n, s, a], v[k + 1], discount)
                    v[k, n, s] = total
        for s in range(n_states):
            value += messages.f[0, s] * v[0, 0, s]
        for k in range(horizon):
            pass_on(p, r, policy, memory, v[k + 1], messages, discount)
    return value


@njit(**EXACT)
def worth(p, r, memory, v, discount):
    """`r + γ Σ_t p[t] Σ_n' memory[t,n'] v[n',t]`."""
    total = 0.0
    for t in range(p.size):
        if p[t] > 0.0:
            mixed = 0.0
            for n in range(len(v)):
                mixed += memory[t, n] * v[n, t]
            total += p[t] * mixed
    return r + discount * total


@njit(**EXACT)
def pass_on(p, r, policy, memory, v, messages, discount):
    """One step forward: `f`, and what the tables would gain."""
    n_nodes, n_states, n_actions = policy.shape
    f, ahead = messages.f, messages.ahead
    for n in range(n_nodes):
        for s in range(n_states):
            ahead[n, s] = 0.0
    for n in range(n_nodes):
        for s in range(n_states):
            if f[n, s] <= 0.0:
                continue
            messages.being[n, s] += f[n, s]
            for a in range(n_actions):
                q = worth(p[s, a], r[s, a], memory[n, s, a], v, discount)
                messages.acting[n, s, a] += f[n, s] * q
                weight = discount * f[n, s] * policy[n, s, a]
                if weight <= 0.0:
                    continue
                for t in range(n_states):
                    passed = weight * p[s, a, t]
                    if passed > 0.0:
                        messages.passing[n, s, a, t] += passed
                        for i in range(n_nodes):
                            messages.moving[n, s, a, t, i] += passed * v[i, t]
                            ahead[i, t] += passed * memory[n, s, a, t, i]
    for n in range(n_nodes):
        for s in range(n_states):
            f[n, s] = ahead[n, s]


def advantages(gained: FloatArray, weight: FloatArray, chance: FloatArray) -> FloatArray:
    """Mean gain of each entry beyond that of the table: the natural gradient in softmax weights."""
    mean = gained / np.where(weight > 0.0, weight, 1.0)[..., None]
    found: FloatArray = mean - (chance * mean).sum(axis=-1, keepdims=True)
    return found


def softmax(weights: FloatArray) -> FloatArray:
    """Chances along the last axis."""
    raised = np.exp(weights - weights.max(axis=-1, keepdims=True))
    chances: FloatArray = raised / raised.sum(axis=-1, keepdims=True)
    return chances


def train(
    models: Models, available: BoolArray, *, nodes: int, horizon: int, iterations: int, starts: int, rng: Any
) -> tuple[Tables, float]:
    """The best controller of several ascents, and its value on the models."""
    (n_states, n_actions), best = available.shape, None
    messages = Messages(
        v=np.zeros((horizon + 1, nodes, n_states)),
        f=np.zeros((nodes, n_states)),
        ahead=np.zeros((nodes, n_states)),
        acting=np.zeros((nodes, n_states, n_actions)),
        being=np.zeros((nodes, n_states)),
        moving=np.zeros((nodes, n_states, n_actions, n_states, nodes)),
        passing=np.zeros((nodes, n_states, n_actions, n_states)),
    )
    for _ in range(starts):
        acts = np.where(available, rng.normal(size=messages.acting.shape), -np.inf)
        moves = rng.normal(size=messages.moving.shape)
        found = _ascend(models, acts, moves, messages, iterations)
        if best is None or found[1] > best[1]:
            best = found
    assert best is not None
    return best


def _ascend(
    models: Models, acts: FloatArray, moves: FloatArray, messages: Messages, iterations: int
) -> tuple[Tables, float]:
    """From weights of softmax tables to a local optimum, or as far as `iterations` lead."""
    tables, step = Tables(softmax(acts), softmax(moves)), 1.0
    value = evaluate(models, tables, messages)
    for _ in range(iterations):
        up = (
            advantages(messages.acting, messages.being, tables.policy),
            advantages(messages.moving, messages.passing, tables.memory),
        )
        while step >= LEAST:
            tried = Tables(softmax(acts + step * up[0]), softmax(moves + step * up[1]))
            reached = evaluate(models, tried, messages)
            if reached >= value:
                break
            step /= 2
        else:
            break
        acts, moves, tables, value = acts + step * up[0], moves + step * up[1], tried, reached
        step = min(2 * step, MOST)
    rounded = Tables(*(np.eye(table.shape[-1])[table.argmax(axis=-1)] for table in tables))
    reached = evaluate(models, rounded, messages)
    return (rounded, float(reached)) if reached >= value else (tables, float(value))


def plan(
    posterior: Posterior,
    available: BoolArray,
    discount: float,
    nodes: int,
    models: int,
    horizon: int,
    iterations: int,
    starts: int,
    seed: int,
) -> Tables:
    """A controller trained on models drawn from the prior."""
    S, A = available.shape
    rng = np.random.default_rng(seed)
    p, r = np.zeros((S, A, S, models)), np.zeros((S, A, models))
    draw(posterior, stream_from(rng), p, r)
    drawn = Models(
        np.ascontiguousarray(np.moveaxis(p, -1, 0)),
        np.ascontiguousarray(np.moveaxis(r, -1, 0)),
        np.full(models, 1.0 / models),
        np.full(S, 1.0 / S),
        discount,
    )
    return train(drawn, available, nodes=nodes, horizon=horizon, iterations=iterations, starts=starts, rng=rng)[0]


class State(NamedTuple):
    """The controller and the node that it is in."""

    tables: Tables
    node: IntArray  # [1]
    stream: np.ndarray  # uint64 [4]


@njit(**EXACT)
def reset(state, stream):
    """To node 0."""
    save(state.stream, load(stream))
    state.node[0] = 0


@njit(**EXACT_INLINE)
def act(state, s):
    """An action of the node."""
    return categorical(state.stream, state.tables.policy[state.node[0], s])


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """The next node."""
    state.node[0] = categorical(state.stream, state.tables.memory[state.node[0], s, a, t])


@agent(
    "controller",
    summary="a finite-state controller trained on models of the prior, by exact gradients (after Duff 2002)",
    parameters=(
        Number("nodes", 3, 1, 1000, "of the controller", whole=True),
        Number("models", 32, 1, 10**5, "of the prior, to train on", whole=True),
        Number("horizon", 50, 1, 10**5, "steps that count in training", whole=True),
        Number("iterations", 60, 0, 10**6, "steps along the gradient, at most", whole=True),
        Number("starts", 2, 1, 10**5, "random tables to start from", whole=True),
        Number("seed", 1, 0, 2**31, "of the models and the starts", whole=True),
        *PRIOR,
        DISCOUNT,
    ),
)
def controller(setting: Setting, *, nodes: int, models: int, horizon: int, **values: Any) -> Machine:
    """The machine; training is done here, once for a prior and its parameters."""
    S, A = setting.n_states, setting.n_actions
    needed = 8 * (TABLES * nodes**2 * S * S * A + 2 * models * S * S * A + horizon * nodes * S)
    work = float(models) * horizon * nodes**2 * S * S * A * (values["iterations"] + 1) * values["starts"]
    if needed > AGENT_BYTES or work > MOST_PLANNING:
        raise ParameterError(
            f"nodes is {nodes}: training a controller of so many for {S} states and {A} actions needs "
            f"{needed / 1e9:.1f} GB and {work:.1g} operations; take fewer nodes, models or steps"
        )
    planning = (values[name] for name in ("iterations", "starts", "seed"))
    tables = planned_once(
        plan, posterior_for(setting, values), setting.available, setting.discount, nodes, models, horizon, *planning
    )
    return Machine(State(tables, np.zeros(1, np.int64), np.zeros(4, np.uint64)), reset, act, observe)
