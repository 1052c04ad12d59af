"""What a relaxation remembers of a history, beside what the agent knows: the place it is in.

Places `table · S + s` are those of the tables of `kernels.particles.opened`. After them, if there are any, come places
of first visits and of what is told after them (`kernels.particles.levels`): of each state, of how often each of its
actions has stayed in the visit, and of the table that waits at the end of the way.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from beliefbound.base.validation import BoolArray, IntArray
from beliefbound.kernels.particles.alike import WAITS, classes_of
from beliefbound.kernels.particles.opened import Order, everything_open, n_tables
from beliefbound.kernels.particles.rows import BAMDP
from beliefbound.kernels.reference import by_reference

MOST_PLACES = 6000
_AGAIN = 3  # tries of a visit of the second way that are followed, at most


@by_reference
class Memory(NamedTuple):
    """Places, and how they follow from each other."""

    order: Order  # of tables
    state: np.ndarray  # int64 [place]
    follows: np.ndarray  # int32 [place,a,t]: the place after an action that leads to t; −1 where it cannot
    charge: np.ndarray  # [place,a,t]: what an action is charged there; empty where nothing is
    mean: np.ndarray  # [place,a]: the mean of it
    begins: np.ndarray  # int64 [s]: where a history begins
    free: int  # places of tables
    # Of the others; empty, or of none, where there are none.
    expected: np.ndarray  # [place − free,a,t]: chances, where they are charged for
    paid: np.ndarray  # [pair,t]: reward on arrival
    # In turns there are first visits, and then a model is solved among the states from which they are reached.
    visits: np.ndarray  # int64 [turn,2]: places of first visits, from and to
    inside: np.ndarray  # int64 [turn,s]: the place of a state where the model is solved, else −1
    ending: np.ndarray  # int64 [turn,s]: the place with whose value it ends there, else −1


def solves(memory: Memory) -> int:
    """How many times a model is solved for all places: about."""
    return n_tables(memory.order) + len(memory.visits)


def memory_of(problem: BAMDP, order: Order) -> Memory:
    """Of tables alone."""
    tables, n_states, n_actions = n_tables(order), problem.n_states, problem.posterior.n_actions
    opened = np.arange(tables)[:, None] // order.stride % (order.most + 1)
    first = (order.place == opened) & (opened < order.most)  # [table,pair]: would be a first try
    after = np.arange(tables)[:, None] + np.where(first, order.adds, 0)
    follows = (after[:, :, None] * n_states + np.arange(n_states)).astype(np.int32)
    charge, mean = np.empty((0, 0, 0)), np.empty((0, 0))
    if order.charge.size:
        charge = np.where(first[:, :, None], order.charge, 0.0).reshape(-1, n_actions, n_states)
        mean = np.where(first, order.mean, 0.0).reshape(-1, n_actions)
    return Memory(
        order=order,
        state=np.tile(np.arange(n_states), tables),
        follows=follows.reshape(-1, n_actions, n_states),
        charge=charge,
        mean=mean,
        begins=np.arange(n_states),
        free=tables * n_states,
        expected=np.empty((0, 0, 0)),
        paid=np.empty((0, 0)),
        visits=np.empty((0, 2), dtype=np.int64),
        inside=np.empty((0, 0), dtype=np.int64),
        ending=np.empty((0, 0), dtype=np.int64),
    )


def with_first_visits(
    problem: BAMDP, starts: BoolArray, likely: BoolArray, followed: int, crossings: int
) -> Memory | None:
    """First visits of two ways, without charges as yet. None where that is not offered: with shared rows, with a
    horizon, where outcomes were cut, or where there would be more than `MOST_PLACES`. Of actions that are
    `likely[pair]` in a visit, fewer tries than `followed` are; of others one. `crossings`: levels whose first visits
    are learnt from on the second way, too."""
    posterior = problem.posterior
    if posterior.tied or problem.horizon >= 0 or (problem.keep < 1.0).any() or problem.credit.any():
        return None
    classes = classes_of(problem)
    takes = problem.available & (classes != WAITS if classes.size else True)  # nobody waits for nothing
    possible = (posterior.alpha > 0.0) & takes[:, None]
    reach = _levels(np.asarray(possible.reshape(problem.n_states, -1, problem.n_states).any(axis=1)), starts)
    if reach.max() == 0:
        return None
    plan = _Plan(problem, possible, reach, likely, followed, crossings)
    return plan.memory(starts) if plan.lay_out(starts) else None


def _levels(leads: BoolArray, starts: BoolArray) -> IntArray:
    """`[s]`: the least number of steps from the starts; 0 of what cannot be reached."""
    reach, found, step = np.where(starts, 0, -1), starts.copy(), 0
    while True:
        step, new = step + 1, leads[found].any(axis=0) & ~found
        if not new.any():
            return np.maximum(reach, 0)
        reach[new], found = step, found | new


Crossed = tuple[int, ...]  # of each level of the second way: which state the first one visited, `_NOT_YET` or `_TOLD`
_NOT_YET, _TOLD = -1, -2
Place = tuple[str, int, Crossed | int, tuple[int, ...]]


class _Plan:
    """Places being laid out, those that follow before those that they follow from:

    `("free", s, crossed, ())`: told all but the states not visited on the levels of the second way, to be visited yet
    `("again", s, crossed, stays)`: the first visit of one of these
    `("told", s, level, ())`: told all levels up to this one
    `("visit", s, crossed, stays)`: a first visit of the first way, which has crossed these so far
    """

    def __init__(
        self, problem: BAMDP, possible: BoolArray, reach: IntArray, likely: BoolArray, followed: int, crossings: int
    ) -> None:
        self.problem, self.possible, self.reach, self.top = problem, possible, reach, int(reach.max())
        self.n_states, self.n_actions = problem.n_states, problem.posterior.n_actions
        own = np.arange(len(possible)) // self.n_actions
        stays = possible[np.arange(len(possible)), own] & (possible.sum(axis=1) > 1)
        self.likely, self.can_stay, self.followed = likely, stays, followed
        self.lines = sorted({round((i + 1) * (self.top + 1) / (crossings + 1)) for i in range(crossings)})
        self.all_told: Crossed = (_TOLD,) * len(self.lines)
        self.none = (0,) * self.n_actions
        self.place: dict[Place, int] = {("free", s, self.all_told, ()): s for s in range(self.n_states)}
        self.turns: list[tuple[list[Place], list[Place], list[Place]]] = []  # first visits; inside, ending

    def stays(self, s: int, followed: int) -> list[tuple[int, ...]]:
        """Numbers of stays of each action of a state that are followed, the most first."""
        pairs = np.arange(s * self.n_actions, (s + 1) * self.n_actions)
        caps = np.where(self.can_stay[pairs], np.where(self.likely[pairs], followed - 1, 1), 0)
        found = [k for k in product(*(range(cap + 1) for cap in caps.tolist())) if sum(k) < followed]
        return sorted(found, key=lambda k: -sum(k))

    def line(self, s: int) -> int:
        """Of the second way, the level of a state: its number; −1 where it is none."""
        return self.lines.index(int(self.reach[s])) if int(self.reach[s]) in self.lines else -1

    def crossing(self, crossed: Crossed, s: int) -> Crossed:
        """After the first way has visited a state."""
        i = self.line(s)
        return crossed if i < 0 or crossed[i] != _NOT_YET else (*crossed[:i], s, *crossed[i + 1 :])

    def told(self, crossed: Crossed, s: int) -> Crossed:
        """After the second way has visited a state."""
        i = self.line(s)
        return crossed if i < 0 else (*crossed[:i], _TOLD, *crossed[i + 1 :])

    def second(self, s: int, crossed: Crossed) -> Place:
        """Where the second way is in a state."""
        i = self.line(s)
        to_visit = i >= 0 and crossed[i] not in (_TOLD, s)
        return ("again", s, crossed, self.none) if to_visit else ("free", s, crossed, ())

    def outcomes(self, s: int) -> Iterator[tuple[int, int]]:
        """Actions and next states."""
        for a in range(self.n_actions):
            yield from ((a, int(t)) for t in np.flatnonzero(self.possible[s * self.n_actions + a]))

    def after(self, place: Place, a: int, t: int) -> Place:
        """The place after an outcome."""
        kind, s, memory, k = place
        longer = tuple(n + (b == a) for b, n in enumerate(k))
        if t == s and (kind, s, memory, longer) in self.place:
            return kind, s, memory, longer
        if isinstance(memory, int):
            inside = self.reach[t] <= memory
            return ("told", t, memory, ()) if inside else ("visit", t, self.all_told, self.none)
        if kind != "visit":
            return self.second(t, self.told(memory, s) if kind == "again" else memory)
        crossed, level = self.crossing(memory, s), int(self.reach[s])
        if self.reach[t] == level + 1:
            return "visit", t, crossed, self.none
        return ("told", t, level, ()) if level < self.top else self.second(t, crossed)

    def ways(self, starts: BoolArray) -> set[tuple[int, Crossed]]:
        """First visits of the first way that there can be."""
        found = {(int(s), (_NOT_YET,) * len(self.lines)) for s in np.flatnonzero(starts)}
        found |= {(int(s), self.all_told) for s in np.flatnonzero(self.reach > 0)}
        waiting = list(found)
        while waiting:
            s, crossed = waiting.pop()
            ahead = {t for _, t in self.outcomes(s) if self.reach[t] == self.reach[s] + 1}
            new = {(t, self.crossing(crossed, s)) for t in ahead} - found
            found |= new
            waiting += new
        return found

    def lay_out(self, starts: BoolArray) -> bool:
        """Whether there are not too many."""
        ways = sorted(self.ways(starts))
        ends = {self.crossing(crossed, s) for s, crossed in ways if self.reach[s] == self.top}
        for crossed in list(ends):
            for keep in product((False, True), repeat=len(crossed)):
                ends.add(tuple(c if kept else _TOLD for c, kept in zip(crossed, keep, strict=True)))
        for crossed in sorted(ends - {self.all_told}, key=lambda c: (-c.count(_TOLD), c)):
            where = [self.second(s, crossed) for s in range(self.n_states)]
            again = [x for x in where if x[0] == "again"]
            inside = [x for x in where if x[0] == "free"]
            visits = [(*x[:3], k) for x in again for k in self.stays(x[1], min(self.followed, _AGAIN))]
            if not self._turn(visits, inside, again):
                return False
        for level in range(self.top, -1, -1):
            here = [x for x in ways if self.reach[x[0]] == level]
            visits = [("visit", s, crossed, k) for s, crossed in here for k in self.stays(s, self.followed)]
            new, old = (np.flatnonzero(x).tolist() for x in (self.reach == level, self.reach < level))
            ending: list[Place] = [("visit", s, self.all_told, self.none) for s in new if level]
            if not self._turn(visits, [("told", s, level - 1, ()) for s in old], ending):
                return False
        return True

    def _turn(self, visits: list[Place], inside: list[Place], ending: list[Place]) -> bool:
        for place in (*visits, *inside):
            self.place[place] = len(self.place)
        self.turns.append((visits, inside, ending))
        return len(self.place) <= MOST_PLACES

    def memory(self, starts: BoolArray) -> Memory:
        """All places."""
        n, alpha = len(self.place), self.problem.posterior.alpha
        follows = np.full((n, self.n_actions, self.n_states), -1, dtype=np.int32)
        expected = np.zeros((n - self.n_states, self.n_actions, self.n_states))
        for place, here in self.place.items():
            kind, s, _, k = place
            for a, t in self.outcomes(s):
                follows[here, a, t] = self.place[self.after(place, a, t)]
                if kind in ("visit", "again"):
                    row = alpha[s * self.n_actions + a]
                    expected[here - self.n_states, a, t] = (row[t] + k[a] * (t == s)) / (row.sum() + k[a])
        inside, ending = np.full((2, len(self.turns), self.n_states), -1, dtype=np.int64)
        visits = np.zeros((len(self.turns), 2), dtype=np.int64)
        for i, turn in enumerate(self.turns):
            visits[i] = (self.place[turn[0][0]], self.place[turn[0][-1]] + 1) if turn[0] else (0, 0)
            for out, places in zip((inside, ending), turn[1:], strict=True):
                out[i, [x[1] for x in places]] = [self.place[x] for x in places]
        fresh = ("visit", 0, (_NOT_YET,) * len(self.lines), self.none)
        begins = [self.place[(fresh[0], s, *fresh[2:])] if starts[s] else s for s in range(self.n_states)]
        return memory_of(self.problem, everything_open(len(alpha)))._replace(
            state=np.array([place[1] for place in self.place]),
            follows=follows,
            charge=np.zeros(follows.shape),
            mean=np.zeros(follows.shape[:2]),
            begins=np.array(begins),
            expected=expected,
            paid=np.array(np.broadcast_to(self.problem.posterior.paid.mean(axis=0), alpha.shape)),
            inside=inside,
            ending=ending,
            visits=visits,
        )
