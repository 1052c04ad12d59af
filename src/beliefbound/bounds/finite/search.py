"""The steps of a finite belief. In this order, each step kept only if it helps:

1. the paper's bounds: MMBI from below, `E max` and QMDP from above; then the policies of a pool
   (`bounds.finite.opening`). Exact.
2. models in pairs from above (`bounds.finite.pairs`). Exact.
3. two searches, step by step, each with its own graph of beliefs:
   *among histories*, with scenarios on it (`bounds.finite.scenarios`): exact bounds, and sampled ones;
   *among distinct beliefs*, where there is no horizon (`bounds.finite.merged`), with alpha vectors and cells. Exact.

Which search gets the next step follows from what they have found: as much work for both while each holds one end of the
bracket, else most of it for the one whose own bracket is narrower.

Error. Exact bounds cost none. Sampling attempt `j` gets the share `δ/(j(j+1))` of the error `δ = 1 − confidence`,
split over its three statements; within an attempt the betting intervals hold at all sample sizes at once, so it may
stop whenever it likes. All bounds of the trace hold together with the confidence asked for.
"""

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray
from beliefbound.bounds.decision import Contest, widest
from beliefbound.bounds.finite.first_actions import stability
from beliefbound.bounds.finite.merged import MergedSearch
from beliefbound.bounds.finite.opening import Opening, opening
from beliefbound.bounds.finite.pairs import bound_of, pair_steps
from beliefbound.bounds.finite.problem import problem_steps
from beliefbound.bounds.finite.relaxation import Certifier, extended
from beliefbound.bounds.finite.scenarios import HistorySearch
from beliefbound.bounds.record import Record
from beliefbound.bounds.steps import Meter, Steps, Stepwise
from beliefbound.kernels.graph.nodes import BeliefMDP
from beliefbound.planning.task import FiniteTask

_MOST = 4.0  # times the work of the other search: what the better one may be ahead
_NODES = 1_000_000  # beliefs in the graph of histories

Search = HistorySearch | MergedSearch


def finite_steps(task: FiniteTask, rng: np.random.Generator, threads: int | None, record: Record) -> Steps:
    """The steps of a finite belief."""
    address = rng.integers(0, 2**64, size=4, dtype=np.uint64)
    meter = Meter()
    opened = yield from opening(task, meter, record)
    if not task.belief.signal.finite or (record.closed and not record.decide):
        return
    try:
        problem, losses = yield from _problem(task, opened, meter, record)
    except ParameterError as too_large:
        warnings.warn(f"no search and no sampling: {too_large}", stacklevel=3)
        return
    policies = opened.policies
    certifier = Certifier(task, problem, policies, core_nodes=_NODES, begun=False)
    yield from certifier.beginning(meter)
    record.graph = certifier
    searches: list[Search] = [HistorySearch(certifier, address, threads, record, meter, sampled=not record.decide)]
    if task.horizon is None:
        searches.append(MergedSearch(task, problem, policies, extended(address, 3), record, meter, losses=losses))
    if record.contest is not None:
        record.contest.stability = partial(_stability, record.contest, searches, record.contest.stability)
    yield from _alternate(searches, record)


def _problem(
    task: FiniteTask, opened: Opening, meter: Meter, record: Record
) -> Stepwise[tuple[BeliefMDP, FloatArray | None]]:
    """Outcome rows and leaf values for the searches."""
    policies, values = opened.policies, opened.values
    problem = yield from problem_steps(
        task, meter, stages=opened.stages, policies=policies, apart=opened.apart, values=values
    )
    problem, losses = yield from pair_steps(problem, task, meter)
    meter.full()
    record.add(bound_of(problem, task))
    yield
    return problem, losses


def _stability(contest: Contest, searches: list[Search], before: Callable[[], FloatArray | None]) -> FloatArray | None:
    """By the searches, if they have come so far, and by what there was before: the union of what each proves."""
    vectors = [search.vectors for search in searches if isinstance(search, MergedSearch)]
    return widest([before(), stability(contest, searches, vectors)])


def _alternate(searches: list[Search], record: Record) -> Steps:
    """Steps of both searches, until one of them has closed the bracket or both have ended."""
    steps = {id(search): search.steps() for search in searches}
    holds: dict[str, int] = {}  # side: which search found the bound
    live = list(searches)
    while live:
        search = _next(live, holds)
        lower, upper = record.lower, record.upper
        try:
            next(steps[id(search)])
        except StopIteration:
            if search.closed:
                return
            live.remove(search)
            continue
        yield
        if record.lower is not lower:
            holds["lower"] = id(search)
        if record.upper is not upper:
            holds["upper"] = id(search)


def _next(live: list[Search], holds: dict[str, int]) -> Search:
    """Whose step is next."""
    first = min(live, key=lambda search: search.meter.done)
    best = min(live, key=lambda search: search.width)
    if len(set(holds.values())) == 1 and best is not first and best.meter.done < _MOST * first.meter.done:
        return best
    return first
