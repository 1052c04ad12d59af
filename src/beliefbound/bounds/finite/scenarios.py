"""A growing graph of histories, and the bounds by scenarios on it (`bounds.finite.relaxation`), step by step.

The graph doubles, by the work that went into it. After each doubling its values are frozen and a pilot says what
sampling would give: the distance that would be left with no noise. Where that is less than the bracket, fresh scenarios
follow, until their noise is small beside that distance or they have had their share of the work. A larger graph makes
both sides better and needs scenarios of its own.

The policy's costs vary more than the relaxation's, and take far less work: after the first scenarios, which are run for
both, those that follow are for both or for the policy alone, whichever narrows the bracket faster.
"""

from functools import partial

import numpy as np

from beliefbound.base.executors.team import Team
from beliefbound.bounds.bound import Kind
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.first_actions import grow
from beliefbound.bounds.finite.merged import note_ends
from beliefbound.bounds.finite.relaxation import (
    BLOCK,
    FEW_NODES,
    MANY_NODES,
    Address,
    Certifier,
    Costs,
    extended,
    limits,
    read_costs,
)
from beliefbound.bounds.record import Record
from beliefbound.bounds.steps import CALL, STEP_WORK, Steps, Stepwise
from beliefbound.bounds.strands import Parts, Strand

_FIRST = 2.0 * STEP_WORK  # operations of growth before the first pilot
_FACTOR = 2.0  # from one to the next
_SAMPLING = 0.8  # of the work of growth: what scenarios on a graph may take
_NOISY = 8.0  # times that, while noise is larger than the distance that is left without it
_PILOT = BLOCK  # scenarios that predict what sampling would give; they are not part of any bound
_PIECE = BLOCK // 4  # scenarios run at once where they are long
_PILOT_SHARE = 0.1  # of that: what a pilot may take
_NOISE = 0.1  # of the distance that is left without it: sampling ends
_READ = 1.25  # times the scenarios, and intervals are computed again
_SCENARIO, _READING = 3000.0, 3000.0  # operations of a scenario besides its nodes; of its place in the intervals


class HistorySearch:
    """The graph of histories and its scenarios: one strand (`bounds.strands`)."""

    def __init__(
        self, certifier: Certifier, address: Address, record: Record, team: Team, *, sampled: bool = True
    ) -> None:
        self.certifier, self.address, self.record, self.team = certifier, address, record, team
        self.strand, self.sampled = Strand(self._steps()), sampled
        self.closed, self._hope, self._sampled, self._attempt = False, np.inf, np.inf, 0
        self._policy: AdaptivePolicy | None = None  # of the scenarios on the graph as it is
        rows = np.diff(certifier.problem.first[:, [0, -1]], axis=1)
        self._node = certifier.node_work * len(certifier.belief.weights) * float(rows.mean())

    @property
    def width(self) -> float:
        """Between what it has proven itself; or what sampling promises: between what it gave and what it would give
        without noise."""
        return min(float(np.sqrt(self._hope * self._sampled)), self.certifier.upper - self.certifier.lower)

    @property
    def done(self) -> float:
        """Operations so far."""
        return self.strand.done

    @property
    def ended(self) -> bool:
        """Whether the bracket is closed, or nothing more is to be had."""
        return not self.strand.live

    def parts(self, work: float) -> Parts:
        """What it does of the next `work` operations: all of it."""
        return [(self.strand, work)]

    def end(self) -> None:
        """Nothing more is done."""
        self.strand.end()

    def _steps(self) -> Steps:
        certifier, strand, growing, goal = self.certifier, self.strand, True, max(_FIRST, 100.0 * self._node)
        while True:
            while growing and certifier.work < goal:
                before = certifier.work
                left = min(strand.left, goal - before)
                growing = grow(certifier, self.record, certifier.rounding, left, self.team)
                strand.add(CALL + certifier.work - before)
                if strand.full():
                    strand.find(self.note)
                    yield
            certifier.freeze_values()
            strand.add(30.0 * certifier.n_nodes * certifier.graph.child.shape[1])
            self.closed = certifier.upper - certifier.lower <= certifier.rounding
            strand.find(self.note)
            if self.closed or not self.sampled or strand.full():
                yield
            if self.closed:
                return
            if self.sampled:
                yield from self._scenarios()
                if strand.waiting:  # what was found is to be the record's before the graph changes
                    yield
            if not growing:
                return
            if self._policy is not None and self.record.policy is self._policy:
                self._policy.detach()  # before the graph changes: it was proven for the graph as it is
            self._policy = None
            certifier.reopen()
            goal *= _FACTOR

    def note(self) -> None:
        """Record the bounds that the search has proven so far, where they are better than what there was."""
        note_ends(self.certifier, Kind.HISTORIES, self.record)

    def _scenarios(self) -> Stepwise[None]:
        """A pilot and, if that promises something, scenarios on the frozen graph."""
        certifier, record, meter = self.certifier, self.record, self.strand
        budget = _SAMPLING * certifier.work
        affordable = _PILOT_SHARE * budget / (_PILOT * self._node)
        if affordable < FEW_NODES:
            return
        certifier.max_nodes = int(min(affordable, MANY_NODES))
        self._attempt += 1
        pieces = []
        for first in range(0, _PILOT, _PIECE):
            pieces.append(self._sample(0, first, _PIECE, np.inf, np.inf, relax=True))
            if meter.full():
                yield
        pilot = _joined(pieces)
        clip, stop = limits(certifier, pilot)
        self._hope = float(pilot.between.mean())
        if self._hope >= record.width:
            self._sampled = self._hope
            return
        alpha, self._policy = record.next_alpha(), AdaptivePolicy(certifier, stop=stop)
        parts: list[Costs] = []
        done, relax, read, began, noise = {True: 0, False: 0}, True, 0.0, meter.done, np.inf
        while True:
            each = self._each(pilot, relax)
            batch = int(meter.left / each) // BLOCK * BLOCK or _PIECE
            parts.append(self._sample(1 if relax else 2, done[relax], batch, clip, stop, relax=relax))
            done[relax] += batch
            total = sum(len(part.below) for part in parts)
            spent = meter.done - began >= budget * (_NOISY if noise > self._hope else 1.0)
            if total < _READ * read and not spent:
                if meter.full():
                    yield
                continue
            read = total
            costs = _joined(parts)
            parts = [costs]
            found = read_costs(certifier, costs, pilot, alpha=alpha, clip=clip, stop=stop)
            meter.add(_READING * total)
            meter.find(partial(record.add, found.lower, found.upper, policy=self._policy, regret=found.regret))
            self._sampled = found.upper.value - found.lower.value
            if meter.full():
                yield
            if spent:
                return
            above, below = found.upper.value - found.upper.centre, found.lower.centre - found.lower.value
            noise = above + below
            if noise < _NOISE * max(self._hope, certifier.rounding):
                return  # what is left is the gap of the graph itself
            slope = below / len(costs.below)
            both = (slope + above / len(costs.above)) / self._each(pilot, relax=True)
            relax = both > slope / self._each(pilot, relax=False)

    def _sample(self, part: int, first: int, count: int, clip: float, stop: float, *, relax: bool) -> Costs:
        address = extended(self.address, self._attempt, part)
        costs = self.certifier.sample(address, first, count, clip=clip, stop=stop, team=self.team, relax=relax)
        self.strand.add(CALL + count * self._each(costs, relax))
        return costs

    def _each(self, costs: Costs, relax: bool) -> float:
        """Operations of a scenario, as these were: for both sides, or for the policy alone."""
        nodes = float(costs.built.mean()) + (float(costs.nodes.mean()) if relax else 0.0)
        return _SCENARIO + 4.0 * self.certifier.depth + nodes * self._node


def _joined(parts: list[Costs]) -> Costs:
    return Costs(*(np.concatenate(part) for part in zip(*parts, strict=True)))
