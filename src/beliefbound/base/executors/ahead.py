"""Numbered samples, made ahead of being asked for by threads that would wait else.

A sample is a function of its number (`base.executors.elsewhere`), and whoever asks takes them in order. So which thread
makes one, and when, changes no bit, and nobody waits at the end of a step for the longest sample of it: others go on
with what is likely to be asked for next, as many of each kind as were asked for last time. What is left over in the end
is thrown away.

>>> class Squares:
...     def scratch(self): return None
...     def one(self, number, scratch): return number * number
>>> squares = Squares()
>>> with Ahead(2) as ahead:
...     [ahead.map(squares, range(i, i + 3), lambda: [None, None]) for i in (0, 3)]
[[0, 1, 4], [9, 16, 25]]
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Condition
from types import TracebackType
from typing import Any

from beliefbound.base.executors.elsewhere import Numbered, map_numbered, sampled_elsewhere


class Ahead:
    """So many threads, the caller's among them, and what they have made. `patient`: the caller rather waits for what
    it has asked for than to begin something ahead, which may take long."""

    def __init__(self, threads: int) -> None:
        self.threads, self.patient = threads, False
        self._kinds: dict[int, _Kind] = {}
        self._free: dict[int, tuple[Sequence[Any], list[Any]]] = {}  # scratch, by the list that it came in
        self._changed, self._helping, self._ended = Condition(), 0, False
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> "Ahead":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing more is begun; what is being made is not waited for."""
        with self._changed:
            self._ended = True
            self._kinds, self._free = {}, {}
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def map(self, what: Numbered, numbers: range, scratch: Callable[[], Sequence[Any]]) -> list[Any]:
        """The samples of these numbers, which follow those of the last call; as `map_numbered`."""
        if self.threads == 1 or sampled_elsewhere():
            return map_numbered(what, numbers, scratch)
        with self._changed:
            kind = self._kinds.setdefault(id(what), _Kind(what, scratch(), numbers.start))
            self._free.setdefault(id(kind.scratch), (kind.scratch, list(kind.scratch)))
            kind.wanted, kind.lead = numbers.stop, len(numbers)
        self._call_helpers()
        while True:
            task = self._begin(kind)
            if task is None:
                break
            self._make(*task)
        with self._changed:
            found = [kind.made.pop(i) for i in numbers]
        for failed in (failed for _, failed in found if failed is not None):
            raise failed
        return [sample for sample, _ in found]

    def forget(self, *what: Numbered) -> None:
        """Nothing more of these will be asked for."""
        with self._changed:
            for one in what:
                self._kinds.pop(id(one), None)

    def _call_helpers(self) -> None:
        """As many as there are threads; each makes samples until there is nothing to begin."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="ahead")
        with self._changed:
            missing = self.threads - 1 - self._helping
            self._helping += missing
        for _ in range(missing):
            self._pool.submit(self._help)

    def _help(self) -> None:
        while True:
            task = self._begin()
            if task is None:
                return
            self._make(*task)

    def _begin(self, until: "_Kind | None" = None) -> "tuple[_Kind, int, Any] | None":
        """The next sample, and scratch for it: what is asked for first, then what is least ahead. Nothing where there
        is nothing to begin; for the caller, who waits `until` all of a kind is made, once it is."""
        with self._changed:
            while True:
                if until is not None and until.complete():
                    return None
                most = 0.0 if until is not None and self.patient else 1.0
                able = [x for x in self._kinds.values() if x.behind() < most and self._free[id(x.scratch)][1]]
                if able and not self._ended:
                    kind = min(able, key=_Kind.behind)
                    number, kind.begun = kind.begun, kind.begun + 1
                    return kind, number, self._free[id(kind.scratch)][1].pop()
                if until is None:
                    self._helping -= 1
                    return None
                self._changed.wait()

    def _make(self, kind: "_Kind", number: int, own: Any) -> None:
        made: tuple[Any, BaseException | None]
        try:
            made = kind.what.one(number, own), None
        except BaseException as failed:
            made = None, failed
        with self._changed:
            kind.made[number] = made
            with suppress(KeyError):  # all has ended meanwhile
                self._free[id(kind.scratch)][1].append(own)
            self._changed.notify_all()


class _Kind:
    """Samples of one kind: made, and not yet taken."""

    def __init__(self, what: Numbered, scratch: Sequence[Any], first: int) -> None:
        self.what, self.scratch = what, scratch
        self.begun = self.wanted = first
        self.lead, self.made = 0, dict[int, tuple[Any, BaseException | None]]()

    def behind(self) -> float:
        """Below 0: not all that was asked for is begun. Else what is begun ahead, of as much as was asked for last."""
        return (self.begun - self.wanted) / max(1, self.lead)

    def complete(self) -> bool:
        """Whether all that was asked for is made."""
        return all(i in self.made for i in range(self.wanted - self.lead, self.wanted))
