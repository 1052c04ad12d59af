"""What is shown, on standard error, while something takes long: a bar over runs or points, or a closing bracket."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_COMPILING = "compiling, once"


class RunDisplay:
    """A bar over all runs, those already there included, with rate and time left; then stages by name, without one."""

    def __init__(self, total: int, done: int, console: "Console | None" = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._total = total
        self._bars = Progress(
            TextColumn("{task.description:<22}", markup=False),  # names may look like markup
            BarColumn(),
            TextColumn("{task.fields[count]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console or Console(stderr=True),
        )
        self._runs = self._bars.add_task(_COMPILING, total=total, completed=done, count=self._count(done))
        self._stage: Any = None

    def __enter__(self) -> "RunDisplay":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            if self._stage is not None:
                self._bars.remove_task(self._stage)
            self._bars.update(
                self._runs, description="done", completed=self._total, count=self._count(self._total), visible=True
            )
        self.close()

    def close(self) -> None:
        """Leave the display as it is."""
        self._bars.stop()

    def block(self, cell: Any, runs: int) -> None:
        """A block of runs is done."""
        task = next(task for task in self._bars.tasks if task.id == self._runs)
        rate = f"  {task.speed:,.0f} runs/s" if task.speed else ""
        self._bars.update(
            self._runs,
            advance=runs,
            description=f"{cell.agent} {cell.environment}",
            count=self._count(int(task.completed) + runs) + rate,
        )

    def stage(self, text: str) -> None:
        """Something begins that has no known length: in place of the bar over runs, which is full, its name."""
        if self._stage is None:
            self._bars.update(self._runs, visible=False)
            self._stage = self._bars.add_task(text, total=None, count="")
        self._bars.update(self._stage, description=text)

    def say(self, text: str) -> None:
        """A line above the bar, at once."""
        _print(self._bars.console, text)

    def _count(self, done: int) -> str:
        return f"{done}/{self._total}"


class TurnDisplay:
    """A line that says whose turn it is, how many of its runs are done, and for how long; it is gone at the end."""

    def __init__(self, console: "Console | None" = None) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._line = Progress(*columns, console=console or Console(stderr=True), transient=True)
        self._task = self._line.add_task("")
        self._text, self._done = "", 0

    def __enter__(self) -> "TurnDisplay":
        self._line.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.stop()

    def turn(self, text: str) -> None:
        """Somebody's turn begins: a line that stays, and one that moves."""
        self.say(text)
        self._text, self._done = text, 0
        self._line.reset(self._task, description=text)

    def block(self, cell: Any, runs: int) -> None:
        """A block of runs is done."""
        self._done += runs
        self.doing(f"{self._text}, {self._done} done")

    def doing(self, text: str) -> None:
        """What the line that moves says."""
        self._line.update(self._task, description=text)

    def say(self, text: str) -> None:
        """A line that stays, at once."""
        _print(self._line.console, text)


def _print(console: "Console", text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False, emoji=False)


@contextmanager
def closing_display(
    *, show: bool = True, watch: Callable[[Any], object] | None = None
) -> Iterator[Callable[[Any], object] | None]:
    """A line that shows a bracket as it closes: the caller tells the function given of every new point,
    or in words of what is being done.

    With `watch`, that is told too; without `show`, only that.
    """
    if not show:
        yield watch
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task(f"{_COMPILING}; then first bounds …")

        def tell(point: Any) -> None:
            if isinstance(point, str):
                display.update(task, description=point)
                return
            low, high = point.lower.value, point.upper.value
            later = f"; {_COMPILING} …" if point.seconds == 0.0 else ""
            display.update(task, description=f"[{low:.6g}, {high:.6g}]  width {max(0.0, high - low):.3g}{later}")
            if watch is not None:
                watch(point)

        yield tell


@contextmanager
def point_display(what: str, progress: "bool | Callable[[int, int], object]") -> Iterator[Callable[[int, int], object]]:
    """Who is told of `(points done, points)`: the function given, a bar called `what` (`True`), or nobody."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda done, points: None
    else:
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as display:
            task = display.add_task(what, total=None)
            yield lambda done, points: display.update(task, completed=done, total=points)
