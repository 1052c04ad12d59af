"""`learn`: the posterior after a log of transitions.

Rows of transitions are `Dirichlet(prior + counts)`; `beliefs.log_priors` has the priors.

States where episodes end are absorbing, with reward 0. What is believed about rewards is decided in
`beliefs.log_rewards`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_flag,
    check_initial,
    check_kind,
    check_positive,
    check_sequence,
    frozen,
)
from beliefbound.beliefs.belief import Belief
from beliefbound.beliefs.capabilities import NEEDED, conditioned, offering, predictive
from beliefbound.beliefs.capabilities import notes as notes_of
from beliefbound.beliefs.capabilities import terminal as terminal_of
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.log_priors import Prior, concentration_of, foretold, suggest_prior
from beliefbound.beliefs.log_rewards import RewardChoice, reward_posterior
from beliefbound.beliefs.masks import terminal_states
from beliefbound.beliefs.rewards import RewardBelief
from beliefbound.logs.files import as_log
from beliefbound.logs.log import Log

_ONLY_TRIED = "each state offers only the actions that were tried there"


@dataclass(frozen=True, eq=False)
class Learnt:
    """A posterior and what it was made of.

    Attributes:
      belief: the posterior.
      name: of the prior, as it was asked for or suggested.
      prior: what was believed about transitions before, in words; `concentration` as numbers `[s,a,t]`, `None` where
        that was a belief of somebody's own.
      foretold: the log probability that the prior gives to every pair's rows, each from all others; `None` likewise.
      rewards: what is believed about rewards, in words; `family` by name.
      notes: what a reader should know.
      log: what it was learnt from; `before`, `initial`: a belief that was given, and where it starts.
    """

    belief: Any
    name: str
    prior: str
    concentration: FloatArray | None
    foretold: float | None
    family: str
    rewards: str
    notes: tuple[str, ...]
    log: Log
    before: Any = None
    initial: Any = None

    @property
    def terminal(self) -> BoolArray:
        """`[s]`: where nothing happens any more."""
        return terminal_of(self.belief)

    @property
    def prior_share(self) -> FloatArray:
        """`[s,a]`: how much of what is expected of a pair is the prior's, from 1 (never tried) towards 0."""
        if self.concentration is None:
            return frozen(np.where(self.terminal[:, None], 0.0, self._fitted_share()))
        before = self.concentration.sum(axis=-1)
        after = before + self.belief.observed
        share = np.where(self.terminal[:, None], 0.0, before / after)
        return frozen(share)

    def _fitted_share(self) -> FloatArray:
        """Of a belief without counts, by how fast it still learns: of counts that sum to `w`, one more observation of
        an outcome of chance `p` moves it by `(1 − p)/(w + 1)`, so `w` is what the belief weighs, `n` of it seen."""
        cells, visits = self.log.cells, self.log.visits
        share = np.where(visits == 0, 1.0, 1.0 / (1.0 + visits))
        for s, a in np.argwhere(visits > 0):
            chances = predictive(self.belief, s, a)
            rows = np.flatnonzero((cells.state == s) & (cells.action == a))
            rarest = rows[np.argmin(chances[cells.next_state[rows]])]
            seen, p = int(cells.next_state[rarest]), float(chances[cells.next_state[rarest]])
            again = self.belief.update(int(s), int(a), float(cells.reward[rarest]), seen)
            moved = float(predictive(again, s, a)[seen]) - p
            if moved > 0.0:
                share[s, a] = np.clip(1.0 - visits[s, a] / max((1.0 - p) / moved - 1.0, 1e-300), 0.0, 1.0)
        return share

    def tried(self) -> Any:
        """The same belief, each state offering only the actions that were tried there; all where none was."""
        return offering(self.belief, tried_pairs(self.log.visits))

    def without_data(self) -> Any:
        """The prior of transitions, with what is believed about rewards now; of a belief that was given, the prior."""
        if self.concentration is None:
            return self.before
        return self.belief._with(self.concentration, self.belief.rewards, np.zeros_like(self.belief.observed))


def tried_pairs(visits: IntArray) -> BoolArray:
    """Pairs `[s,a]` that were tried, and every pair of states where nothing was."""
    pairs: BoolArray = (visits > 0) | (visits.sum(axis=1, keepdims=True) == 0)
    return pairs


def learn(
    log: Log,
    *,
    prior: Prior | float | Belief = "suggest",
    rewards: RewardChoice | RewardBelief = "suggest",
    known: Any = None,
    terminal: Sequence[int] | Sequence[str] | None = None,
    only_tried: bool = False,
    initial: Any = None,
) -> Learnt:
    """The posterior after a log, and what was chosen on the way.

    Args:
      log: from `read_log`, `roll_out` or `read_minari`; or a table that `read_log` takes as it is.
      prior: about transitions: `suggest`, `uniform`, `jeffreys`, `sparse`, `empirical`, `local`, or a concentration;
        or about everything: a belief that can be conditioned, such as one of a class of your own.
      rewards: `suggest`, `known`, `values`, `beta` or `normal` (`beliefs.log_rewards` has what they mean), or a reward
        belief of your own, which is updated.
      known: rewards that are known beforehand, `[s,a]` or `[s,a,t]`, NaN where they are to be learnt.
      terminal: more states where episodes end, by id or name, than the log itself marks.
      only_tried: offer in each state only the actions that were tried there: others are believed not to exist.
      initial: start distribution, or a state by number or name; default: as episodes of the log begin.

    >>> from beliefbound.logs import log_of
    >>> log = log_of([0, 1, 0, 1], [0, 0, 0, 0], [0.0, 1.0, 0.0, 1.0], [1, 0, 1, 0])
    >>> learn(log, prior="sparse").belief.mean().transitions.tolist()
    [[[0.0, 1.0]], [[1.0, 0.0]]]
    """
    log = as_log(log)
    check_kind(log, Log, "log", BeliefError, fix="give a log, such as read_log(path)")
    if isinstance(initial, Mapping):
        initial = check_initial(initial, log.n_states, BeliefError, log.states)
    ends = log.terminal | terminal_states(_ids(terminal, log), log.n_states)
    visits = log.visits
    acted = ends & (visits.sum(axis=1) > 0)
    if acted.any():
        s = int(np.argmax(acted))
        raise BeliefError(
            f"terminal names state {log.state_name(s)[:60]!r}, but {int(visits[s].sum()):,} rows of the log start in "
            f"it; leave it out"
        )
    if not isinstance(prior, str | int | float) and all(hasattr(prior, name) for name in NEEDED):
        if not (isinstance(rewards, str) and rewards == "suggest") or known is not None:
            raise BeliefError("the prior is a belief, which has rewards of its own; give neither rewards nor known")
        return _conditioned(log, prior, ends, initial, only_tried=as_flag(only_tried, "only_tried"))
    notes: list[str] = []
    if isinstance(prior, str) and prior == "suggest":
        prior, reason = suggest_prior(log, ends)
        notes += [reason] if reason else []
    weight = prior if isinstance(prior, str) else check_positive(prior, "prior")
    concentration, words, more = concentration_of(log, weight, ends)
    notes += more
    available = None
    if as_flag(only_tried, "only_tried"):
        available = tried_pairs(visits)
        notes.append(_ONLY_TRIED)
    believed = reward_posterior(log, rewards, known, ends)
    notes += believed.notes
    blank = DirichletBelief(
        log.n_states,
        log.n_actions,
        concentration=concentration,
        rewards=believed.belief,
        terminal=ends,
        available=available,
        initial=log.initial if initial is None else state_id(log, initial) if isinstance(initial, str) else initial,
    )
    counted = blank._with(
        blank.concentration + log.transition_counts() * ~ends[:, None, None], blank.rewards, blank.observed + visits
    )
    return Learnt(
        counted,
        weight if isinstance(weight, str) else f"concentration {float(weight):g}",
        words,
        frozen(np.array(blank.concentration)),
        foretold(log, weight, ends),
        believed.family,
        believed.words,
        (*notes, *counted.notes()),
        log,
    )


def _conditioned(log: Log, prior: Any, ends: BoolArray, initial: Any, *, only_tried: bool) -> Learnt:
    """A belief of any kind, conditioned on the log."""
    if (prior.n_states, prior.n_actions) != (log.n_states, log.n_actions):
        raise BeliefError(
            f"{prior!r} has {prior.n_states} states and {prior.n_actions} actions, {log.source} has {log.n_states} and "
            f"{log.n_actions}"
        )
    _check_ends(log, prior, ends)
    if log.values is None:
        raise BeliefError(f"{log.source} has too many different rewards to condition a belief on each; round them")
    cells = log.cells
    columns = (np.repeat(x, cells.times) for x in (cells.state, cells.action, cells.reward, cells.next_state))
    after = conditioned(prior, *columns, what="learning from a log")
    said = list(notes_of(after))
    if only_tried:
        after, said = offering(after, tried_pairs(log.visits)), [*said, _ONLY_TRIED]
    name = type(prior).__name__
    start = check_initial(log.initial if initial is None else initial, log.n_states, BeliefError)
    words = f"{name}, as given"
    return Learnt(after, name, repr(prior), None, None, name, words, tuple(said), log, prior, start)


def _check_ends(log: Log, prior: Any, ends: BoolArray) -> None:
    """Where episodes of the log end, nothing happens any more in models of the belief."""
    model = prior.sample(1, 0)
    for s in np.flatnonzero(ends & ~terminal_of(prior)):
        for a in np.flatnonzero(prior.available[s]):
            arrivals, chances = model.models.transitions.entries(int(s), int(a))
            if chances[0][arrivals != s].any() or model.rewards[0, s, a] != 0.0:
                raise BeliefError(
                    f"episodes of {log.source} end in state {log.state_name(int(s))[:60]!r}, where {prior!r} goes on; "
                    "make the state absorbing in all of its models, with reward 0"
                )


def _ids(terminal: Any, log: Log) -> Any:
    """Ids of states given by id or by name."""
    if terminal is None or isinstance(terminal, np.ndarray):
        return terminal
    listed = check_sequence(terminal, "terminal", BeliefError, fix="give ids or names of states, in a list")
    found = [state_id(log, given) if isinstance(given, str) else given for given in listed]
    return found or None


def state_id(log: Log, name: str) -> int:
    """The state of a name, or of a number where states have none."""
    return _named(name, log.states, log.n_states, "state", log.source)


def action_id(log: Log, name: str) -> int:
    """The action of a name, or of a number where actions have none."""
    return _named(name, log.actions, log.n_actions, "action", log.source)


def _named(name: str, names: tuple[str, ...] | None, count: int, kind: str, source: str) -> int:
    if names is not None and name in names:
        return names.index(name)
    if name.isdecimal() and int(name) < count:
        return int(name)
    listed = ", ".join(each[:40] for each in (names or tuple(map(str, range(min(8, count)))))[:8])
    more = ", …" if count > 8 else ""
    raise BeliefError(f"there is no {kind} {name[:60]!r} in {source}; its {kind}s are {listed}{more}")
