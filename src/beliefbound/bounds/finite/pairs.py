"""Upper values by pairs of models (`kernels.graph.pairs`): which models to pair, and the bound itself.

Any pairing gives a bound, and so does the least of several. A good one pairs models that call for different actions
and are hard to tell apart: the agent that is told only the pair then loses most. What each pair loses (each of a
sample, where there are too many) is computed on a coarse grid; the first pairing makes the total large, the next one
does so without the pairs of the first, and so on. Effort is bounded: large problems get coarser grids and fewer
pairings, and in the end QMDP, which tells each model by itself.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from beliefbound.base.limits import PAIR_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.basic import qmdp_of
from beliefbound.bounds.bound import Bound, Kind
from beliefbound.bounds.finite.problem import allowance_of, problem_of, scale_of, search_depth
from beliefbound.bounds.steps import Meter, Stepwise, finish
from beliefbound.kernels.graph.nodes import BeliefMDP
from beliefbound.kernels.graph.pairs import solve_pair
from beliefbound.planning.task import FiniteTask, made_once_for_models

_SIZES = ((4, 33), (4, 17), (2, 17), (1, 17), (1, 9), (1, 5), (1, 3))  # pairings, grid points
_COARSE = 5  # grid points that tell a good pair from a bad one
_SWEEPS = 400  # of one pair without a horizon; valid after any number
EPSILON = 1e-6  # of the scale of values: when sweeps stop earlier
_WORK = 50_000_000  # outcomes met at grid points, for choosing and for solving: under a second
_STEP = 2.0  # operations at an outcome; sweeps mostly end before their limit
_CALL = 50_000  # operations, in time, of anything called from Python
_MATCHING = 2000  # of one pair of models, when they are matched
_PASSES = 20  # over the exchanges of a matching
_MOST_MODELS = 512  # beyond, choosing among all pairs takes longer than what pairs gain


def pair_bound(
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
) -> Bound:
    """The value of an agent that is told which pair of models holds the true one, and learns the rest.

    Exact and never above QMDP; on Chain it takes more than half of the way from there to
    the Bayes-optimal value. Beyond the limits of this module it *is* QMDP. Refuses continuous reward signals.

    >>> stay, rewards = [[[[1.0], [1.0]]]] * 2, [[[1.0, 0.0]], [[0.0, 3.0]]]
    >>> belief = FiniteBelief(stay, rewards, reward_signal="unobserved")
    >>> pair_bound(belief, discount=0.5)  # two models that nothing tells apart: QMDP says 3.5
    Bound(upper 3, exact, the model revealed up to a pair, best of 1 pairing)
    """
    task = FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial)
    problem = with_pairs(problem_of(task, stages=search_depth(task), policies=()), task)
    paired = bound_of(problem, task)
    told = qmdp_of(task)
    return paired if paired.value <= told.value else told


def bound_of(problem: BeliefMDP, task: FiniteTask) -> Bound:
    """The bound of a problem whose pairs are solved."""
    n, value = len(problem.partner), float(task.start @ read_pairs(problem, task.weights))
    method = f"the model revealed up to a pair, best of {n} pairing{'s' if n > 1 else ''}" if n else "QMDP"
    kind = Kind.PAIRS if n else Kind.QMDP
    return Bound(allowance_of(task, problem).upper(value), "upper", method, kind=kind)


def with_pairs(problem: BeliefMDP, task: FiniteTask) -> BeliefMDP:
    """The problem of a task with its models paired and the pairs solved; as it is, with QMDP for upper values, where
    that is beyond the limits."""
    return finish(pair_steps(problem, task, Meter()))[0]


def pair_steps(problem: BeliefMDP, task: FiniteTask, meter: Meter) -> Stepwise[tuple[BeliefMDP, FloatArray | None]]:
    """The same, step by step; and what each pair loses, `[m,m]`, where pairs were solved."""
    n_models, n_stages = task.models.n_models, len(problem.q)
    each = _pair_work(problem)
    n_pairings, n_grid = _size(problem, (n_models + 1) // 2 * each)
    if n_pairings == 0:
        return problem, None
    epsilon = EPSILON * scale_of(problem, task.weights, task.start)
    n_states, n_actions = problem.available.shape
    losses = yield from gain_steps(problem, task, meter)
    gain, solved = losses.copy(), _solved_pairs(task)
    partner = np.full((n_pairings, n_models), n_models)
    cell = np.empty_like(partner)
    pairs = np.empty((n_pairings, (n_models + 1) // 2, n_stages, n_states, n_grid, n_actions))
    for k in range(n_pairings):
        for c, pair in enumerate(matching(gain)):
            cell[k, pair] = c
            if len(pair) == 2:
                partner[k, pair] = pair[::-1]
                gain[pair[0], pair[1]] = gain[pair[1], pair[0]] = 0.0
            pairs[k, c] = solved(problem, pair[0], pair[-1], n_grid, epsilon).table
            meter.add(_CALL + _STEP * n_grid * each)
            if meter.full():
                yield
        meter.add(_MATCHING * n_models**2)
    return problem._replace(partner=partner, cell=cell, pairs=pairs), losses


def gain_steps(problem: BeliefMDP, task: FiniteTask, meter: Meter) -> Stepwise[FloatArray]:
    """`[m,m]`: what an agent that is told only the pair loses against one that is told the model, on a coarse grid."""
    weights, start, each = task.weights, task.start, _pair_work(problem)
    epsilon, solved = EPSILON * scale_of(problem, weights, start), _solved_pairs(task)
    candidates, grid = _candidates(len(weights), _WORK // (_COARSE * each)), np.linspace(0.0, 1.0, _COARSE)
    gain = np.zeros((len(weights), len(weights)))
    for i, j in candidates[(weights[candidates] > 0.0).all(axis=1)]:
        values = start @ solved(problem, int(i), int(j), _COARSE, epsilon, tables=False).values
        both = weights[i] + weights[j]
        told = weights[i] * values[0] + weights[j] * values[-1]
        gain[i, j] = gain[j, i] = told - both * np.interp(weights[j] / both, grid, values)
        meter.add(_CALL + _STEP * _COARSE * each)
        if meter.full():
            yield
    return gain


class _Pair(NamedTuple):
    """A pair on a grid: `values[s,g]` at the first stage, and `table[stage,s,g,a]` of every action where asked for."""

    values: FloatArray
    table: FloatArray


class _SolvedPairs:
    """Pairs of a set of models, each solved once on a grid, whatever the weights of the models are."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int, int, float, bool], _Pair] = {}
        self._q: FloatArray | None = None  # what the pairs were solved from
        self._nbytes = 0

    def __call__(
        self, problem: BeliefMDP, i: int, j: int, n_grid: int, epsilon: float, *, tables: bool = True
    ) -> _Pair:
        if self._q is None or self._q.shape != problem.q.shape or not np.may_share_memory(self._q, problem.q):
            self._found, self._q, self._nbytes = {}, problem.q, 0
        key = (i, j, n_grid, epsilon, tables)
        if key not in self._found:
            n_states, n_actions = problem.available.shape
            table = np.empty((len(problem.q) if tables else 0, n_states, n_grid, n_actions))
            pair = _Pair(solve_pair(problem, i, j, n_grid, _SWEEPS, epsilon, table), table)
            if self._nbytes + table.nbytes > PAIR_BYTES:
                return pair
            self._found[key] = pair
            self._nbytes += table.nbytes
        return self._found[key]


@made_once_for_models
def _solved_pairs(task: FiniteTask) -> _SolvedPairs:
    return _SolvedPairs()


def _pair_work(problem: BeliefMDP) -> int:
    """Outcomes met at one grid point of one pair."""
    return len(problem.arrive) * (len(problem.q) if len(problem.q) > 1 else _SWEEPS)


def matching(gain: FloatArray) -> list[list[int]]:
    """Pairs `i < j` of large total gain `[m,m]`, and one model by itself if their number is odd: the largest gain
    first, then exchanges between two pairs while they help."""
    left, order = set(range(len(gain))), []
    for k in np.argsort(-gain, axis=None, kind="stable"):
        i, j = divmod(int(k), len(gain))
        if i < j and {i, j} <= left:
            left -= {i, j}
            order.append([i, j])
    better, passes = True, 0
    while better and passes < _PASSES:
        better, passes = False, passes + 1
        for one, two in combinations(order, 2):
            (i, j), (k, m) = one, two
            now = gain[i, j] + gain[k, m] + 1e-12 * abs(gain[i, j])
            straight, crossed = gain[i, k] + gain[j, m], gain[i, m] + gain[j, k]
            if max(straight, crossed) > now:
                one[:], two[:] = ((i, k), (j, m)) if straight >= crossed else ((i, m), (j, k))
                better = True
    return [sorted(pair) for pair in order] + [[m] for m in left]


def _size(problem: BeliefMDP, work: int) -> tuple[int, int]:
    """Pairings and grid points that the limits allow, given the work for one pairing and one point; `(0, 0)` if none
    do."""
    n_models = problem.q.shape[1]
    if 1 < n_models <= _MOST_MODELS:
        for n_pairings, n_grid in _SIZES:
            if n_pairings * n_grid * work <= _WORK and n_pairings * n_grid * problem.q.nbytes <= 2 * PAIR_BYTES:
                return min(n_pairings, n_models - 1), n_grid
    return 0, 0


def _candidates(n_models: int, most: int) -> IntArray:
    """`[c,2]`: all pairs, or `most` of them, drawn once and for all."""
    pairs = np.stack(np.triu_indices(n_models, 1), axis=1)
    if len(pairs) > most:
        pairs = np.random.default_rng(0).permutation(pairs)[:most]
    return np.ascontiguousarray(pairs)


def read_pairs(problem: BeliefMDP, weights: FloatArray) -> FloatArray:
    """`W(b,s)` at stage 0, `[s]`: the least over pairings of the best action's value."""
    least: FloatArray = np.min([q.max(axis=-1) for q in _by_pairing(problem, weights)], axis=0)
    return least


def pair_values(problem: BeliefMDP, weights: FloatArray) -> FloatArray:
    """An upper bound for every first action at stage 0, `[s,a]`; −∞ where unavailable."""
    least: FloatArray = np.min(_by_pairing(problem, weights), axis=0)
    return least


def _by_pairing(problem: BeliefMDP, weights: FloatArray) -> list[FloatArray]:
    """`[s,a]` at stage 0, for each pairing; by QMDP where there are none."""
    if len(problem.partner) == 0:
        return [np.where(problem.available, np.tensordot(weights, problem.q[0], axes=1), -np.inf)]
    n_models, last = len(weights), problem.pairs.shape[4] - 1
    b, found = np.append(weights, 0.0), []
    for pairing, partner in enumerate(problem.partner):
        q = np.where(problem.available, 0.0, -np.inf)
        for m in np.flatnonzero(np.arange(n_models) < partner):
            both = b[m] + b[partner[m]]
            if both > 0.0:
                x, y = b[partner[m]] / both * last, b[m] / both * last
                g = min(int(x), last - 1)
                left, right = max(y - (last - 1 - g), 0.0), x - g
                table = problem.pairs[pairing, problem.cell[pairing, m], 0]
                q += both * (left * table[:, g] + right * table[:, g + 1])
        found.append(q)
    return found
