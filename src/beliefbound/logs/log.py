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
_ALIKE = 1e-6  # chances that differ by less are the same, written with few digits


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


class Episodes(NamedTuple):
    """Steps `[i]`, those of an episode together and in order.

    Attributes:
      first: `[e]`, where each episode begins.
      state, action, next_state, reward: what happened.
      propensity: the chance with which the action was taken; `None` where nobody logged it.
    """

    first: IntArray
    state: IntArray
    action: IntArray
    next_state: IntArray
    reward: FloatArray
    propensity: FloatArray | None

    @property
    def lengths(self) -> IntArray:
        """Steps of each episode, `[e]`."""
        return np.diff(np.append(self.first, len(self.state)))

    def chosen(self, which: BoolArray) -> "Episodes":
        """Some of them, by a mark `[e]`.

        >>> two = Episodes(np.array([0, 2]), *(np.arange(3),) * 3, np.zeros(3), None)
        >>> two.chosen(np.array([False, True])).state.tolist()
        [2]
        """
        lengths = self.lengths
        kept = np.repeat(which, lengths)
        return Episodes(
            np.cumsum(lengths[which]) - lengths[which],
            self.state[kept],
            self.action[kept],
            self.next_state[kept],
            self.reward[kept],
            None if self.propensity is None else self.propensity[kept],
        )


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
      episodes: the first million steps in order, for whole episodes; `None` where the log has no column `episode`, rows
        that do not follow each other, or one episode that never ends.
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
    episodes: Episodes | None = field(repr=False)
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
        """The policy that the log was made with; uniform where nothing was tried.

        Where the chances of actions were logged, and are the same whenever a pair was tried, it is these; what is left
        goes evenly to actions that were not tried. Else frequencies: what a logging policy knew beyond the state is
        averaged out, to the memoryless policy with the same choices on average.
        """
        visits = self.visits.astype(np.float64)
        known = self._logged_chances(visits > 0.0)
        if known is not None:
            return StationaryPolicy(probabilities=known)
        visits[visits.sum(axis=1) == 0.0] = 1.0
        return StationaryPolicy(probabilities=visits / visits.sum(axis=1, keepdims=True))

    def _logged_chances(self, tried: BoolArray) -> FloatArray | None:
        """Chances `[s,a]` that the log states; `None` where it does not, or they differ within a pair."""
        steps = self.episodes
        if steps is None or steps.propensity is None:
            return None
        ends = np.full((2, *tried.shape), np.nan)
        for own, extreme in zip(ends, (np.fmin, np.fmax), strict=True):
            extreme.at(own, (steps.state, steps.action), steps.propensity)
        known = np.where(tried, ends[0], 0.0)
        left, open_ = 1.0 - known.sum(axis=1), (~tried).sum(axis=1)
        alike = np.nan_to_num(ends[1] - ends[0]).max() <= _ALIKE and not np.isnan(known).any()
        met = tried.any(axis=1)
        if not alike or (left[met] < -_ALIKE).any() or (np.abs(left[met & (open_ == 0)]) > _ALIKE).any():
            return None
        known += np.where(tried, 0.0, (np.maximum(left, 0.0) / np.maximum(open_, 1))[:, None])
        return np.asarray(known / known.sum(axis=1, keepdims=True))

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
