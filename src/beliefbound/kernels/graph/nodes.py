"""The arrays of a belief graph (`kernels.graph.search`): the problem it is for, and its nodes.

Layout is models first, likelihoods in one block a state: everything about one model at one state is a few cache lines,
and models that are left are met in order, so nodes with few models left are cheap.

A search goes from node to node, each somewhere in hundreds of megabytes, and waits for memory more than it computes. So
what it reads of a node together lies together: numbers in one cache line, outcome rows in the lines of one block. Each
of these fields is an array still, a view with strides.
"""

from typing import Any, NamedTuple

import numpy as np

from beliefbound.kernels.graph.cells import Cells, Corners, new_corners
from beliefbound.kernels.lines import LINE, copied, zeros
from beliefbound.kernels.reference import by_reference

# What `Graph.size` counts: nodes and weights in use; those that are frozen (0 while the graph may grow); table slots
# and child links made since, for `restore` to undo; the deepest stage among frozen nodes;
# and outcome rows of actions opened one by one (`kernels.graph.actions`).
NODES, ENTRIES, FROZEN_NODES, FROZEN_ENTRIES, LOGGED_SLOTS, LOGGED_LINKS, DEEPEST, OPENED = range(8)
CHOSEN, PLACED, NOTED = range(3)  # what `Batch.size` counts: leaves, those with a place, and nodes on the ways to them
MAX_STAGE = 1000  # deepest node of a graph: undiscounted problems end here, discounted ones have long faded
_MOST_LEAVES, _MOST_VISITS = 64, 1 << 16  # of a batch
_NODE = np.dtype(  # a line
    [(name, np.float64) for name in ("upper", "lower", "share")]
    + [("key", np.uint64)]
    + [(name, np.int64) for name in ("state", "stage", "stamp")]
    + [(name, np.int32) for name in ("greedy", "edition")]
)
_ROW = np.dtype(  # half a line
    [(name, np.float64) for name in ("prob", "above", "below")] + [(name, np.int32) for name in ("child", "leaf")]
)


@by_reference
class BeliefMDP(NamedTuple):
    """A finite belief's models as outcome rows, and the leaf values. Stage axes have length 1 when nothing depends on
    it."""

    like: np.ndarray  # flat: the rows of state s are a block [m, rows of s], the blocks in order of s
    arrive: np.ndarray  # [k]
    first: np.ndarray  # [s,a+1]
    reward: np.ndarray  # [m,s,a]
    available: np.ndarray  # [s,a]
    q: np.ndarray  # [stage,m,s,a]: from above, each model solved on its own
    partner: np.ndarray  # int64 [pairing,m]: the other model of the pair, or the number of models; no pairings: QMDP
    cell: np.ndarray  # int64 [pairing,m]: the pair a model is in
    pairs: np.ndarray  # [pairing,cell,stage,s,g,a]: from above, each pair solved on its own (`kernels.graph.pairs`)
    cells: Cells  # from above, each cell of a division of the models solved on its own, if there is one
    scale: np.ndarray  # [m]: the largest of its values: a model matters as much as its weight times that
    v: np.ndarray  # [stage,m,s,policy]: from below, exact values of policies
    number: np.ndarray  # int32 [s,policy]: what each of them is called
    keys: np.ndarray  # uint64 [k]
    discount: float
    horizon: int  # decisions; a huge number when infinite
    mix: float  # the policy maximises (1 − mix) · lower + mix · upper look-ahead
    merged: bool  # without a horizon: whether equal beliefs are one node, at whatever stage they are met
    edition: int  # of the leaf values: nodes of an earlier one are given these when a walk ends at them


@by_reference
class Batch(NamedTuple):
    """Scratch for a batch of growth (`kernels.graph.growth`): leaves, the nodes on the ways to them, and a way down."""

    size: np.ndarray  # int64 [3]: CHOSEN, …
    parent: np.ndarray  # int64 [leaf]: the node that it is a leaf of
    outcome: np.ndarray  # int64 [leaf]: after which outcome row
    child: np.ndarray  # int64 [leaf]: its node; −1 where it has none
    job: np.ndarray  # int64 [leaf]: the job of giving it values, or its parent new ones; −1 if another has that
    key: np.ndarray  # uint64 [leaf]: of the belief there
    n_weights: np.ndarray  # int64 [leaf]: those that it has; −1 where its parent is renewed instead
    model: np.ndarray  # int32 [leaf,m]
    weight: np.ndarray  # [leaf,m]
    node: np.ndarray  # int64 [visit]: each after those below it
    depth: np.ndarray  # int64 [visit]: steps from the root, the way it was met first
    below: np.ndarray  # int64 [visit]: leaves that come before it
    way: np.ndarray  # int64 [depth]
    row: np.ndarray  # int64 [depth]: the outcome row that is looked at next
    end: np.ndarray  # int64 [depth]: one past the last
    renewed: np.ndarray  # int64 [depth]: the first of its leaves if it is to be renewed, else −1
    factor: np.ndarray  # [depth]: of a contribution to the node's gap, at the root


def new_batch(nodes: int, n_models: int) -> Batch:
    """Scratch for a graph with a capacity of `nodes`."""
    leaves, visits, depth = (min(nodes, most) + 2 for most in (_MOST_LEAVES, _MOST_VISITS, MAX_STAGE))
    return Batch(
        size=np.zeros(3, dtype=np.int64),
        parent=np.zeros(leaves, dtype=np.int64),
        outcome=np.zeros(leaves, dtype=np.int64),
        child=np.zeros(leaves, dtype=np.int64),
        job=np.zeros(leaves, dtype=np.int64),
        key=np.zeros(leaves, dtype=np.uint64),
        n_weights=np.zeros(leaves, dtype=np.int64),
        model=np.zeros((leaves, n_models), dtype=np.int32),
        weight=np.zeros((leaves, n_models)),
        node=np.zeros(visits, dtype=np.int64),
        depth=np.zeros(visits, dtype=np.int64),
        below=np.zeros(visits, dtype=np.int64),
        way=np.zeros(depth, dtype=np.int64),
        row=np.zeros(depth, dtype=np.int64),
        end=np.zeros(depth, dtype=np.int64),
        renewed=np.zeros(depth, dtype=np.int64),
        factor=np.zeros(depth),
    )


@by_reference
class Graph(NamedTuple):
    """Nodes in arrays of fixed capacity; `size` counts what is used."""

    size: np.ndarray  # int64 [8]: NODES, ENTRIES, …
    state: np.ndarray  # int64 [n]
    stage: np.ndarray  # int64 [n]
    key: np.ndarray  # uint64 [n]
    begin: np.ndarray  # int64 [n+1]: entries of node i are begin[i] .. begin[i+1]
    model: np.ndarray  # int32 [entry]
    weight: np.ndarray  # float64 [entry]
    upper: np.ndarray  # [n]
    lower: np.ndarray  # [n]
    reward: np.ndarray  # [n,a]
    prob: np.ndarray  # [n,row]
    above: np.ndarray  # [n,row]: upper value of the child
    below: np.ndarray  # [n,row]: lower value of the child
    child: np.ndarray  # int32 [n,row], −1 where not built
    leaf: np.ndarray  # int32 [n,row]: the policy that `below` is the value of, where there is no child
    opened: np.ndarray  # bool [n,a]: false: its outcomes have one number from above, for their sum
    edition: np.ndarray  # int32 [n]: of its leaf values
    loss: np.ndarray  # [n,a]: upper − (r + γ Σ p above) ≥ 0, set by `freeze_values` and afterwards
    action: np.ndarray  # int32 [n]: what the policy does
    greedy: np.ndarray  # int32 [n]: action of largest upper value
    share: np.ndarray  # [n]: largest contribution of one leaf to the node's gap
    stamp: np.ndarray  # int64 [n]: last scenario that expanded it
    table: np.ndarray  # int32 [2^j]: open addressing by key; a node's number plus one, 0 where there is none
    slots: np.ndarray  # int64 [n]: table slots filled since `freeze_values`
    links: np.ndarray  # int64 [n]: child links made since `freeze_values` in frozen nodes
    sums: np.ndarray  # scratch [row, 1 + A + pool]
    parts: np.ndarray  # scratch [m+1,row+1], zero between uses: what each model adds to a row's chance; its weight
    mass: np.ndarray  # scratch [m], zero between uses: unnormalised weights
    told: np.ndarray  # scratch [a]
    heavy: np.ndarray  # scratch int64 [m]: models that matter
    corners: Corners  # scratch
    batch: Batch  # scratch

    def __reduce__(self) -> tuple[Any, ...]:
        """What is copied, or pickled, lies together again."""
        return _with_records, (tuple(self),)


def _records(nodes: int, rows: int) -> dict[str, Any]:
    """Space for the fields that lie together, by name."""
    made = dict[str, Any]()
    for kind, shape in ((_NODE, (nodes,)), (_ROW, (nodes, rows))):
        size = int(np.prod(shape)) * kind.itemsize
        memory = np.empty(size + LINE, dtype=np.uint8)
        begin = -memory.ctypes.data % LINE
        block = memory[begin : begin + size].view(kind).reshape(shape)
        made |= {name: block[name] for name in kind.names or ()}
    return made


def _with_records(fields: tuple[Any, ...]) -> Graph:
    """A graph of these fields, with those in records that lie together."""
    graph = Graph._make(fields)
    records = _records(*graph.child.shape)
    for name, field in records.items():
        field[:] = getattr(graph, name)
    return graph._replace(**records)


def new_graph(problem: BeliefMDP, nodes: int, entries: int) -> Graph:
    """An empty graph with capacity for `nodes` nodes, two at the least, and `entries` weights."""
    nodes = max(nodes, 2)  # one record has no strides, which is another type: everything would be compiled again
    rows = int((problem.first[:, -1] - problem.first[:, 0]).max())
    n_actions = problem.available.shape[1]
    bits = max(4, int(np.ceil(np.log2(2 * nodes))))
    return Graph(
        size=copied(np.zeros(8, dtype=np.int64)),
        begin=np.zeros(nodes + 1, dtype=np.int64),
        model=np.empty(entries, dtype=np.int32),
        weight=np.empty(entries),
        reward=np.empty((nodes, n_actions)),
        opened=np.empty((nodes, n_actions), dtype=np.bool_),
        loss=np.empty((nodes, n_actions)),
        action=np.empty(nodes, dtype=np.int32),
        table=np.zeros(1 << bits, dtype=np.int32),
        slots=np.empty(nodes, dtype=np.int64),
        links=np.empty(nodes, dtype=np.int64),
        sums=zeros(rows, 1 + n_actions + problem.v.shape[-1]),
        parts=zeros(problem.reward.shape[0] + 1, rows + 1),
        mass=zeros(problem.reward.shape[0]),
        told=zeros(n_actions),
        heavy=copied(np.zeros(problem.reward.shape[0], dtype=np.int64)),
        corners=new_corners(problem.cells.models.shape[1]),
        batch=new_batch(nodes, problem.reward.shape[0]),
        **_records(nodes, rows),
    )


def for_another_thread(graph: Graph) -> Graph:
    """The same nodes, with counts and scratch of another thread's own."""
    scratch = ("sums", "parts", "mass", "told", "heavy")
    own: dict[str, Any] = {name: copied(np.zeros_like(getattr(graph, name))) for name in scratch}
    return graph._replace(size=copied(graph.size), corners=new_corners(len(graph.corners.weight)), **own)
