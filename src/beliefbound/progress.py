"""What the command line shows while an experiment runs: a bar over the runs, then what is made of them."""

from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_COMPILING = "compiling, once"


class RunDisplay:
    """A bar over all runs, those already there included, with rate and time left; then stages by name, without one."""

    def __init__(self, total: int, done: int, console: Console | None = None) -> None:
        self._total = total
        self._bars = Progress(
            TextColumn("{task.description:<22}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
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
        self._bars.console.print(text, highlight=False, soft_wrap=True)

    def _count(self, done: int) -> str:
        return f"{done}/{self._total}"
