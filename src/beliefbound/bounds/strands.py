"""Strands: pieces of work that go on side by side, with the same result on any number of threads.

A *round* gives every strand a number of operations, which follows from the problem, the seed and what was committed
before. Until it ends strands see of each other only what was committed; what they find they put aside. Then it is
committed, strand by strand, in their order. So it does not matter which strand is faster, nor whether they run on
threads of their own or one after the other. A strand that needs its findings committed before it can go on ends its
part of the round early.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from beliefbound.base.executors.team import Team
from beliefbound.bounds.steps import Meter, Steps


class Strand(Meter):
    """A sequence of steps with work of its own: `done` in all, and `left` of this round."""

    def __init__(self, steps: Steps | None = None) -> None:
        super().__init__()
        self._steps, self._until = steps, 0.0
        self._found: list[Callable[[], object]] = []

    @property
    def live(self) -> bool:
        """Whether there is more to do."""
        return self._steps is not None

    def begin(self, steps: Steps) -> None:
        """Another sequence, once the one before has ended."""
        self._steps = steps

    @property
    def left(self) -> float:
        """Operations until its part of the round is done; not below 0."""
        return max(0.0, self._until - self.done)

    def full(self) -> bool:
        """Whether its part of the round is done: it is to be yielded."""
        return self.left <= 0.0

    def find(self, commit: Callable[[], object]) -> None:
        """Put aside what is to be done when the round ends."""
        self._found.append(commit)

    @property
    def waiting(self) -> bool:
        """Whether anything is put aside."""
        return bool(self._found)

    def advance(self, operations: float) -> None:
        """Its part of a round."""
        self._until = self.done + operations
        if self._steps is not None and next(self._steps, _END) is _END:
            self._steps = None

    def end(self) -> None:
        """Nothing more is done. Whoever owns it is then held by nobody else: its steps hold it."""
        self._steps, self._found = None, []

    def commit(self) -> None:
        """What it has put aside, in order."""
        found, self._found = self._found, []
        for commit in found:
            commit()


_END = object()
Parts = Sequence[tuple[Strand, float]]


def take_round(parts: Parts, team: Team) -> float:
    """One round: strands and the operations of each. The longest are begun first, so that in the end nobody waits long
    for what cannot be divided. Returns the operations that were done."""
    before = done_of(strand for strand, _ in parts)
    ordered = sorted(parts, key=lambda part: -part[1])
    team.run([partial(strand.advance, operations) for strand, operations in ordered])
    for strand, _ in parts:
        strand.commit()
    return done_of(strand for strand, _ in parts) - before


def done_of(strands: Iterable[Strand]) -> float:
    """Operations of several strands."""
    return sum(strand.done for strand in strands)
