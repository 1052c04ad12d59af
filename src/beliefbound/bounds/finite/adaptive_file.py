"""An adaptive policy as an archive of arrays, of the kind `adaptive` (see `policy.files` for the header).

Sizes: n nodes (beliefs), s states, a actions, k outcome rows, w the most rows of a state, i policies of the pool.

    state [n], action [n]         a node's state, and its action once the policy has committed
    after [n,w]                   after an outcome: a node; −1: impossible; −2 − i: policy i of the pool, for ever
    roots                         nodes of the start states
    first [s,a+1], arrive [k]     outcomes of (s,a) are the rows first[s,a] … first[s,a+1] − 1; arrive is the next state
    seen [k]                      the reward that is seen; NaN where none is
    available [s,a]               the actions a state offers
    pool [line,s], pool_first [i+1]   actions of the pool's policies, one line or one line per stage
    horizon                       decisions; −1 for ever

A policy that looks ahead has as well, with m models and e entries (a model's weight in a node's belief):

    tolerance, stop, depth        when it commits
    stage, key, upper, lower [n]; prob, above, below [n,w]; loss [n,a]; choice [n]: its action while it looks ahead
    begin [n+1], model [e], weight [e]   the belief of node x is the entries begin[x] … begin[x+1] − 1
    like, reward, q, v, partner, cell, pairs, keys, discount, problem_horizon, mix: as in `kernels.graph.nodes`

Every array is checked before it is used: a file may advise badly, but it cannot lead outside its own arrays.
"""

from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.io.arrays import Array, Shapes
from beliefbound.bounds.finite.controller import Controller, FrozenSearch, frozen_graph, kept_fields
from beliefbound.bounds.finite.problem import FOREVER, pool_numbers, scale_of_models
from beliefbound.kernels.graph.cells import no_cells
from beliefbound.kernels.graph.controller import COMMIT
from beliefbound.kernels.graph.nodes import BeliefMDP

KIND = "adaptive"
_LARGEST = 1 << 62
_TABLES = ("like", "reward", "q", "v", "partner", "cell", "pairs", "keys", "discount", "mix")


def arrays_of(controller: Controller, lookahead: FrozenSearch | None) -> dict[str, Array]:
    """Everything that a policy is, by name."""
    arrays: dict[str, Any] = controller._asdict() | {"horizon": _whole(controller.horizon)}
    if lookahead is not None:
        problem, graph = lookahead.problem, lookahead.graph
        arrays |= {name: getattr(problem, name) for name in _TABLES}
        kept = kept_fields(graph)
        arrays |= {"choice": kept.pop("action"), "tolerance": lookahead.tolerance, "stop": lookahead.stop}
        arrays |= {name: field for name, field in kept.items() if name != "state"}
        arrays |= {"depth": np.int64(len(lookahead.powers) - 1), "problem_horizon": np.int64(problem.horizon)}
    return {name: np.asarray(array) for name, array in arrays.items()}


def read_adaptive(path: Path, arrays: dict[str, Array]) -> tuple[Controller, FrozenSearch | None]:
    """The frozen data of an adaptive policy; a `FileError` names the file and its fault."""
    file = Shapes(path, arrays)
    controller = read_controller(file)
    lookahead = _lookahead(file, controller) if "stop" in file.arrays else None
    file.done()
    return controller, lookahead


def read_outcomes(file: Shapes) -> tuple[Array, Array, Array, Array]:
    """`(available, first, arrive, seen)`: the actions of states and what may follow them."""
    available = file.take("available", "?", "state action")
    n_states, n_actions = available.shape
    if not available.size or not available.any(axis=1).all():
        raise file.wrong("available", "has a state without actions")
    first = file.take("first", "i8", "state edge")
    arrive = file.ids("arrive", "i8", "outcome", 0, n_states)
    if first.shape[1] != n_actions + 1 or (np.diff(first, axis=1) < 0).any() or (first[1:, 0] != first[:-1, -1]).any():
        raise file.wrong("first", "does not number outcome rows one after the other")
    if first[0, 0] != 0 or first[-1, -1] != len(arrive):
        raise file.wrong("first", f"does not number the {len(arrive)} outcome rows")
    if ((np.diff(first, axis=1) > 0) != available).any():
        raise file.wrong("first", "has outcomes of actions that are not available, or none of some that are")
    seen = file.arrays.get("seen")
    if seen is None or seen.dtype != np.float64 or seen.shape != arrive.shape or np.isinf(seen).any():
        raise file.wrong("seen", f"is not one reward, or NaN, for each of {len(arrive)} outcome rows")
    del file.arrays["seen"]
    return available, first, arrive, seen


def read_controller(file: Shapes, parts: int = 1) -> Controller:
    """The controller of a file; one that has several parts has a root for each of them and each start state."""
    available, first, arrive, seen = read_outcomes(file)
    n_states, n_actions = available.shape
    pool_first = file.take("pool_first", "i8", "policy_edge")
    pool = file.ids("pool", "i8", "line state", 0, n_actions)
    if len(pool_first) < 2 or pool_first[0] != 0 or pool_first[-1] != len(pool) or (np.diff(pool_first) < 1).any():
        raise file.wrong("pool_first", "does not divide the lines of the pool")
    if not available[np.arange(n_states), pool].all():
        raise file.wrong("pool", "takes actions that are not available")
    state = file.ids("state", "i8", "node", 0, n_states)
    action = file.ids("action", "i4", "node", 0, n_actions)
    if not len(state) or not available[state, action].all():
        raise file.wrong("action", "takes actions that are not available")
    after = file.ids("after", "i4", "node row", COMMIT - (len(pool_first) - 2), len(state))
    roots = file.ids("roots", "i8", "start", 0, len(state))
    _check_links(file, first, arrive, state, after)
    starts = state[roots].reshape(parts, -1) if len(roots) % parts == 0 else np.empty((1, 0))
    if not starts.size or len(set(starts[0])) != starts.shape[1] or (starts != starts[0]).any():
        raise file.wrong("roots", "does not hold one node for each start state")
    horizon = int(file.number("horizon", "i8", -1, _LARGEST))
    if horizon == 0:
        raise file.wrong("horizon", "is 0; a policy has at least one decision")
    left = None if horizon < 0 else horizon
    return Controller(state, action, after, roots, first, arrive, seen, available, pool, pool_first, left)


def _check_links(file: Shapes, first: Array, arrive: Array, state: Array, after: Array) -> None:
    """Every outcome of a node leads to a node of the state in which it arrives; there are no others."""
    rows = first[:, -1] - first[:, 0]
    if after.shape[1] != rows.max():
        raise file.wrong("after", f"has {after.shape[1]} outcomes a node; the most any state has is {rows.max()}")
    column = np.arange(after.shape[1])
    outside = column[None, :] >= rows[state][:, None]
    if (after[outside] != -1).any():
        raise file.wrong("after", "has outcomes that the node's state does not have")
    nodes, columns = np.nonzero(after >= 0)
    if (state[after[nodes, columns]] != arrive[first[state[nodes], 0] + columns]).any():
        raise file.wrong("after", "leads to nodes of other states than the outcomes do")


def _lookahead(file: Shapes, controller: Controller) -> FrozenSearch:
    n_states, n_actions = controller.available.shape
    n_outcomes, n_policies = len(controller.arrive), len(controller.pool_first) - 1
    tolerance, stop = file.number("tolerance", "f8", 0.0, np.inf), file.number("stop", "f8", 0.0, np.inf)
    discount, mix = file.number("discount", "f8", 0.0, 1.0), file.number("mix", "f8", 0.0, 1.0)
    depth = int(file.number("depth", "i8", 1, 1 << 20))
    horizon = int(file.number("problem_horizon", "i8", 1, _LARGEST))
    if horizon != (FOREVER if controller.horizon is None else controller.horizon):
        raise file.wrong("problem_horizon", f"is {horizon}, which is not the policy's horizon")
    reward = file.take("reward", "f8", "model state action")
    n_models = len(reward)
    like = file.take("like", "f8", "likelihood")
    if n_models == 0 or len(like) != n_models * n_outcomes or (like.min() < 0.0 or like.max() > 1.0 + 1e-9):
        raise file.wrong("like", f"is not one probability for each of {n_models} models and {n_outcomes} outcome rows")
    q, v = file.take("q", "f8", "q_stage model state action"), file.take("v", "f8", "v_stage model state policy")
    if not len(q) or not len(v) or v.shape[-1] != n_policies:
        raise file.wrong("v", f"has values of {v.shape[-1]} policies; the pool has {n_policies}")
    partner = file.ids("partner", "i8", "pairing model", 0, n_models + 1)
    pairs = file.take("pairs", "f8", "pairing cell pair_stage pair_state grid pair_action")
    cell = file.ids("cell", "i8", "pairing model", 0, max(1, pairs.shape[1]))
    if len(partner) and (pairs.shape[3:] != (n_states, pairs.shape[4], n_actions) or min(pairs.shape[1:5]) < 1):
        raise file.wrong("pairs", f"has shape {pairs.shape}, which is not [pairing, cell, stage, state, grid, action]")
    if len(partner) and pairs.shape[4] < 2:
        raise file.wrong("pairs", "has a grid of one point")
    first, arrive, available = controller.first, controller.arrive, controller.available
    keys = file.take("keys", "u8", "outcome")
    told = (q, partner, cell, pairs, no_cells(), scale_of_models(q, v))
    names = pool_numbers(n_states, n_policies)
    numbers = (keys, discount, horizon, mix)
    problem = BeliefMDP(like, arrive, first, reward, available, *told, v, names, *numbers, merged=False, edition=0)
    kept = _nodes(file, n_models, depth, n_actions) | {"state": controller.state}
    if not available[controller.state, kept["action"]].all():
        raise file.wrong("choice", "takes actions that are not available")
    nodes, columns = np.nonzero(controller.after >= 0)
    if (kept["stage"][controller.after[nodes, columns]] != kept["stage"][nodes] + 1).any():
        raise file.wrong("stage", "does not rise by one from a node to the next")
    if ((kept["prob"] > 0.0) != (controller.after != -1)).any():
        raise file.wrong("prob", "is above 0 at other outcomes than are possible")
    powers = np.power(discount, np.arange(depth + 1))
    return FrozenSearch(problem, frozen_graph(problem, kept), powers, tolerance, stop)


def _nodes(file: Shapes, n_models: int, depth: int, n_actions: int) -> dict[str, Array]:
    """The fields of the graph's nodes."""
    kept = {"stage": file.ids("stage", "i8", "node", 0, depth + 1), "key": file.take("key", "u8", "node")}
    kept |= {name: file.take(name, "f8", "node") for name in ("upper", "lower")}
    kept |= {name: file.take(name, "f8", "node row") for name in ("prob", "above", "below")}
    kept["loss"] = file.take("loss", "f8", "node action", finite=False)
    kept["action"] = file.ids("choice", "i4", "node", 0, n_actions)
    kept["begin"] = begin = file.take("begin", "i8", "node_edge")
    kept["model"] = file.ids("model", "i4", "entry", 0, n_models)
    kept["weight"] = weight = file.take("weight", "f8", "entry")
    if len(begin) != len(kept["stage"]) + 1 or begin[0] != 0 or begin[-1] != len(weight) or (np.diff(begin) < 1).any():
        raise file.wrong("begin", "does not divide the entries among the nodes")
    held = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    if (np.diff(kept["model"])[held[1:] == held[:-1]] < 1).any():
        raise file.wrong("model", "does not hold each model of a belief once, in order")
    if weight.min() <= 0.0 or np.abs(np.bincount(held, weights=weight) - 1.0).max() > 1e-6:
        raise file.wrong("weight", "does not hold beliefs that sum to 1")
    return kept


def _whole(horizon: int | None) -> Any:
    return np.int64(-1 if horizon is None else horizon)
