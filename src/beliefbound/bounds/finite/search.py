"""The steps of a finite belief. In this order, each step kept only if it helps:

1. the paper's bounds: MMBI from below, `E max` and QMDP from above; then the policies of a pool
   (`bounds.finite.opening`). Exact.
2. models in pairs from above (`bounds.finite.pairs`). Exact.
3. two searches, side by side (`bounds.strands`), each with its own graph of beliefs:
   *among histories*, with scenarios on it (`bounds.finite.scenarios`): exact bounds, and sampled ones;
   *among distinct beliefs*, where there is no horizon (`bounds.finite.merged`), with alpha vectors and cells. Exact.

A step is a round of both. How much of it each gets follows from what they have found: as much work for both while each
holds one end of the bracket, else most of it for the one whose own bracket is narrower.

Error. Exact bounds cost none. Sampling attempt `j` gets the share `δ/(j(j+1))` of the error `δ = 1 − confidence`,
split over its three statements; within an attempt the betting intervals hold at all sample sizes at once, so it may
stop whenever it likes. All bounds of the trace hold together with the confidence asked for.
"""

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.executors.team import Team
from beliefbound.base.validation import FloatArray
from beliefbound.bounds.bound import Kind
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
from beliefbound.bounds.strands import take_round
from beliefbound.kernels.graph.nodes import BeliefMDP
from beliefbound.planning.task import FiniteTask

_BETTER = 0.8  # of the work, for the better search, where there is one
_FAR, _FAR_BEHIND = 1.5, 0.03  # times the width of the other: histories that hold neither end get so much of the work
_NOW = 0.03  # of a round: what each gets at least, however far it is ahead
_HISTORIES = (Kind.HISTORIES, Kind.SCENARIOS)
_BELIEFS = (Kind.DISTINCT_BELIEFS, Kind.CELLS, Kind.ALPHA_VECTORS)
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
    with Team(threads) as team:
        searches: list[Search] = [HistorySearch(certifier, address, record, team, sampled=not record.decide)]
        if task.horizon is None:
            searches.append(MergedSearch(task, problem, policies, extended(address, 3), record, team, losses=losses))
        if record.contest is not None:
            record.contest.stability = partial(_stability, record.contest, searches, record.contest.stability)
        try:
            yield from rounds(searches, record, meter, team)
        finally:
            for search in searches:
                search.end()


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


def rounds(searches: list[Search], record: Record, meter: Meter, team: Team) -> Steps:
    """Rounds of all searches, until one of them has closed the bracket or all have ended."""
    live = searches
    while live:
        shares = _shares(live, record, meter.left)
        given = list(zip(live, shares, strict=True))
        parts = [part for search, work in reversed(given) for part in search.parts(work)]
        meter.add(take_round(parts, team))
        meter.full()
        yield
        if any(search.closed for search in live):
            return
        live = [search for search in live if not search.ended]


def _shares(live: list[Search], record: Record, work: float) -> list[float]:
    """What each search gets of the next `work` operations."""
    if len(live) == 1:
        return [work]
    kinds = [bound.kind for bound in (record.lower, record.upper) if bound is not None]
    holders = {kind in _HISTORIES for kind in kinds if kind in _HISTORIES + _BELIEFS}
    histories, beliefs = live
    share = 0.5
    if len(holders) == 1:
        share = _BETTER if histories.width <= beliefs.width else 1.0 - _BETTER
        share = share if histories.width <= _FAR * beliefs.width else _FAR_BEHIND
    behind = share * (histories.done + beliefs.done + work) - histories.done
    own = float(np.clip(behind, _NOW * work, (1.0 - _NOW) * work))
    return [own, work - own]
