"""`Frequencies`: a log as one MDP of frequencies, beside how often each pair was tried and who acted.

One state is added, the last one: *the worst*. It pays the least reward of the log in every step for ever (0 if that is
less and episodes end), and what was never tried leads there. So pessimism of any degree is a weight on it, and planners
need not know about what was not seen.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.logs.log import Episodes, Log


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Counts of a log, and its behaviour.

    Attributes:
      state, action, next_state, reward, times: distinct outcomes of pairs `[i]`, and how often each was seen.
      behaviour: `[s,a]`, chances of the actions of whoever made the log.
      available: `[s,a]`, what is offered.
      terminal: `[s]`, where nothing happens any more.
    """

    state: IntArray
    action: IntArray
    next_state: IntArray
    reward: FloatArray
    times: FloatArray
    behaviour: FloatArray
    available: BoolArray
    terminal: BoolArray

    @classmethod
    def of(cls, log: Log, behaviour: FloatArray, available: BoolArray, terminal: BoolArray) -> "Frequencies":
        """Those of a log, steps from terminal states left out."""
        c = log.cells
        kept = ~terminal[c.state]
        s, a, t = (x[kept] for x in (c.state, c.action, c.next_state))
        return cls(s, a, t, c.reward[kept], c.times[kept].astype(np.float64), behaviour, available, terminal)

    def without(self, steps: Episodes, *, by_value: bool) -> "Frequencies":
        """The same but for these steps, all of which were counted; `by_value`: rewards are told apart, else outcomes
        have their mean."""
        kept = ~self.terminal[steps.state]
        s = np.concatenate([self.state, steps.state[kept]])
        a = np.concatenate([self.action, steps.action[kept]])
        t = np.concatenate([self.next_state, steps.next_state[kept]])
        r = np.concatenate([self.reward, steps.reward[kept]])
        times = np.concatenate([self.times, np.full(int(kept.sum()), -1.0)])
        outcome = (s * self.n_actions + a) * self.n_states + t
        order = np.lexsort((r, outcome))
        new = np.diff(outcome[order], prepend=-1) != 0
        if by_value:
            new |= np.diff(r[order], prepend=np.nan) != 0.0
        first = np.flatnonzero(new)
        left = np.add.reduceat(times[order], first)
        some, at = left > 0.0, order[first]
        paid = r[at] if by_value else np.add.reduceat((times * r)[order], first) / np.where(some, left, 1.0)
        at = at[some]
        return replace(self, state=s[at], action=a[at], next_state=t[at], reward=paid[some], times=left[some])

    @property
    def n_states(self) -> int:
        return len(self.terminal)

    @property
    def n_actions(self) -> int:
        return int(self.behaviour.shape[1])

    @cached_property
    def visits(self) -> FloatArray:
        """How often each pair was tried, `[s,a]`."""
        total = np.zeros(self.behaviour.shape)
        np.add.at(total, (self.state, self.action), self.times)
        return total

    @cached_property
    def tried(self) -> BoolArray:
        """Pairs that were tried, `[s,a]`, and every pair of terminal states."""
        return (self.visits > 0.0) | self.terminal[:, None]

    @property
    def least(self) -> float:
        """What the worst pays in every step."""
        lowest = float(self.reward.min())
        return min(lowest, 0.0) if self.terminal.any() else lowest

    def model(self, doubt: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Transitions `[s+1,a,s+1]` and rewards `[s+1,a]` of the frequencies, of which each pair of `n` visits leads to
        the worst with the chance `doubt/(n + doubt)`."""
        S, A = self.behaviour.shape
        rows, paid = np.zeros((S + 1, A, S + 1)), np.zeros((S + 1, A))
        total = self.visits + doubt
        share = self.times / np.maximum(total[self.state, self.action], 1e-300)
        np.add.at(rows, (self.state, self.action, self.next_state), share)
        np.add.at(paid, (self.state, self.action), share * self.reward)
        open_ = ~self.terminal
        lost = np.where(self.visits > 0.0, doubt / np.maximum(total, 1e-300), 1.0) * open_[:, None]
        rows[:S, :, S] = lost
        paid[:S] += lost * self.least
        rows[np.flatnonzero(self.terminal), :, np.flatnonzero(self.terminal)] = 1.0
        rows[S, :, S], paid[S] = 1.0, self.least
        return rows, paid
