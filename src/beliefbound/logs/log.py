"""`Log`: what a file of transitions says, as counts.

**Where episodes end.** A *terminated* step pays its reward and nothing follows; a *truncated* one was merely the last
that was logged, and teaches as much as any other. Let `C` be the states that terminated steps lead to. If no step
starts in a state of `C`, and none leads there without ending, each of them is terminal: absorbing, with reward 0.
Otherwise termination belongs to the transition and not to the state reached: one state is added, the last one, and
terminated steps lead there instead.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from beliefbound.base.validation import BoolArray, FloatArray, IntArray, frozen
from beliefbound.policy import StationaryPolicy
from beliefbound.policy.naming import printable
from beliefbound.policy.results import html_table

ENDED = "(terminated)"
_SHOWN = 8


def plain(name: str) -> str:
    """A name as a terminal may show it: short, and without control characters."""
    return printable(name[:40])


class Cells(NamedTuple):
    """Distinct transitions, `[i]` each; where rewards are kept value by value, distinct with their reward."""

    state: IntArray
    action: IntArray
    next_state: IntArray
    reward: FloatArray  # the value; where only moments are kept, the mean
    times: IntArray
    squares: FloatArray  # sum of squared rewards
    least: FloatArray
    most: FloatArray
    place: FloatArray  # mean row
    place_squares: FloatArray  # mean squared row


@dataclass(frozen=True, eq=False)
class Log:
    """Transitions that were logged, counted.

    Attributes:
      n_states, n_actions: sizes, an added terminal state among them.
      cells: distinct transitions with their counts.
      values: every reward that occurs `[k]`, where they are few; `None`: rewards are kept as moments.
      terminal: `[s]`, where episodes end.
      starts: `[s]`, how many episodes begin in each state.
      states, actions: names; `None` where ids are numbers.
      n_rows, n_episodes, n_terminated, n_truncated: how much was read.
      ended: whether a state was added for terminated steps.
      notes: what a reader should know, suspicious rows among it.
      source: where it came from.
    """

    n_states: int
    n_actions: int
    cells: Cells = field(repr=False)
    values: FloatArray | None = field(repr=False)
    terminal: BoolArray = field(repr=False)
    starts: IntArray = field(repr=False)
    states: tuple[str, ...] | None = field(repr=False)
    actions: tuple[str, ...] | None = field(repr=False)
    n_rows: int
    n_episodes: int
    n_terminated: int
    n_truncated: int
    ended: bool
    notes: tuple[str, ...]
    source: str

    def transition_counts(self) -> IntArray:
        """How often each transition was seen, `[s,a,t]`."""
        counts = np.zeros((self.n_states, self.n_actions, self.n_states), dtype=np.int64)
        np.add.at(counts, (self.cells.state, self.cells.action, self.cells.next_state), self.cells.times)
        return counts

    @property
    def visits(self) -> IntArray:
        """How often each pair was tried, `[s,a]`."""
        counts = np.zeros((self.n_states, self.n_actions), dtype=np.int64)
        np.add.at(counts, (self.cells.state, self.cells.action), self.cells.times)
        return counts

    @property
    def unseen(self) -> BoolArray:
        """Pairs that were never tried, `[s,a]`, terminal states apart."""
        missing: BoolArray = (self.visits == 0) & ~self.terminal[:, None]
        return missing

    @property
    def reward_range(self) -> tuple[float, float]:
        """Least and largest reward."""
        return float(self.cells.least.min()), float(self.cells.most.max())

    @property
    def initial(self) -> FloatArray:
        """Share of episodes that begin in each state, `[s]`."""
        return frozen(self.starts / self.starts.sum())

    def behaviour(self) -> StationaryPolicy:
        """The policy that the log was made with, as frequencies; uniform where nothing was tried.

        What a logging policy knew beyond the state is averaged out: it is the memoryless policy with the same choices
        on average.
        """
        visits = self.visits.astype(np.float64)
        visits[visits.sum(axis=1) == 0.0] = 1.0
        return StationaryPolicy(probabilities=visits / visits.sum(axis=1, keepdims=True))

    def state_name(self, s: int) -> str:
        """The name of a state, or its number."""
        return str(s) if self.states is None else self.states[s]

    def action_name(self, a: int) -> str:
        """The name of an action, or its number."""
        return str(a) if self.actions is None else self.actions[a]

    def rows(self) -> list[tuple[str, str]]:
        """What was read, as labels and values."""
        unseen, low_high = self.unseen, self.reward_range
        total = int((~self.terminal).sum()) * self.n_actions
        kept = "as moments" if self.values is None else f"{len(self.values)} values"
        ends = np.flatnonzero(self.terminal)
        names = ", ".join(plain(self.state_name(int(s))) for s in ends[:_SHOWN]) + (", …" if len(ends) > _SHOWN else "")
        return [
            ("rows", f"{self.n_rows:,}"),
            ("episodes", f"{self.n_episodes:,}, {self.n_terminated:,} terminated, {self.n_truncated:,} truncated"),
            ("states", str(self.n_states)),
            ("actions", str(self.n_actions)),
            ("terminal states", f"{len(ends)}" + (f": {names}" if len(ends) else "")),
            ("distinct transitions", f"{len(np.unique(self._triples())):,}"),
            ("pairs never tried", f"{int(unseen.sum()):,} of {total:,}"),
            ("rewards", f"{low_high[0]:g} to {low_high[1]:g}, {kept}"),
        ]

    def _triples(self) -> IntArray:
        c = self.cells
        return (c.state * self.n_actions + c.action) * self.n_states + c.next_state

    def summary(self) -> str:
        """What was read, in a few lines."""
        lines = [f"Log({self.source})", *(f"  {name:<21} {text}" for name, text in self.rows())]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return f"Log({self.n_rows:,} rows, {self.n_states} states, {self.n_actions} actions)"

    def _repr_html_(self) -> str:
        return html_table(repr(self), [*self.rows(), *(("note", note) for note in self.notes)])
