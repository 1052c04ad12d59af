"""`learn`: the posterior after a log of transitions.

Rows of transitions are `Dirichlet(prior + counts)`; `beliefs.log_priors` has the priors.

States where episodes end are absorbing, with reward 0. What is believed about rewards is decided in
`beliefs.log_rewards`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_flag,
    check_kind,
    check_sequence,
    frozen,
)
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.log_priors import Prior, concentration_of, foretold, suggest_prior
from beliefbound.beliefs.log_rewards import RewardChoice, reward_posterior
from beliefbound.beliefs.masks import terminal_states
from beliefbound.beliefs.rewards import RewardBelief
from beliefbound.logs.log import Log


@dataclass(frozen=True, eq=False)
class Learnt:
    """A posterior and what it was made of.

    Attributes:
      belief: the posterior.
      name: of the prior, as it was asked for or suggested.
      prior: what was believed about transitions before, in words; `concentration` as numbers `[s,a,t]`.
      foretold: the log probability that the prior gives to every pair's rows, each from all others.
      rewards: what is believed about rewards, in words; `family` by name.
      notes: what a reader should know.
    """

    belief: DirichletBelief
    name: str
    prior: str
    concentration: FloatArray
    foretold: float
    family: str
    rewards: str
    notes: tuple[str, ...]

    @property
    def prior_share(self) -> FloatArray:
        """`[s,a]`: how much of what is expected of a pair is the prior's, from 1 (never tried) towards 0."""
        before = self.concentration.sum(axis=-1)
        after = before + self.belief.observed
        share = np.where(self.belief.terminal[:, None], 0.0, before / after)
        return frozen(share)

    def tried(self) -> DirichletBelief:
        """The same belief, each state offering only the actions that were tried there; all where none was."""
        belief = self.belief
        offered = belief.available & tried_pairs(belief.observed)
        if (offered == belief.available).all():
            return belief
        narrow = DirichletBelief(
            belief.n_states,
            belief.n_actions,
            concentration=belief.concentration,
            rewards=belief.rewards,
            terminal=belief.terminal,
            available=offered,
            initial=belief.initial,
        )
        return narrow._with(narrow.concentration, narrow.rewards, belief.observed)


def tried_pairs(visits: IntArray) -> BoolArray:
    """Pairs `[s,a]` that were tried, and every pair of states where nothing was."""
    pairs: BoolArray = (visits > 0) | (visits.sum(axis=1, keepdims=True) == 0)
    return pairs


def learn(
    log: Log,
    *,
    prior: Prior | float = "suggest",
    rewards: RewardChoice | RewardBelief = "suggest",
    known: Any = None,
    terminal: Sequence[int] | Sequence[str] | None = None,
    only_tried: bool = False,
    initial: Any = None,
) -> Learnt:
    """The posterior after a log, and what was chosen on the way.

    Args:
      log: from `read_log`, `roll_out` or `read_minari`.
      prior: about transitions: `suggest`, `uniform`, `jeffreys`, `sparse`, `empirical`, `local`, or a concentration.
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
    check_kind(log, Log, "log", BeliefError, fix="give a log, such as read_log(path)")
    ends = log.terminal | terminal_states(_ids(terminal, log), log.n_states)
    visits = log.visits
    acted = ends & (visits.sum(axis=1) > 0)
    if acted.any():
        s = int(np.argmax(acted))
        raise BeliefError(
            f"terminal names state {log.state_name(s)[:60]!r}, but {int(visits[s].sum()):,} rows of the log start in "
            f"it; leave it out"
        )
    notes: list[str] = []
    if isinstance(prior, str) and prior == "suggest":
        prior, reason = suggest_prior(log, ends)
        notes += [reason] if reason else []
    concentration, words, more = concentration_of(log, prior, ends)
    notes += more
    available = None
    if as_flag(only_tried, "only_tried"):
        available = tried_pairs(visits)
        notes.append("each state offers only the actions that were tried there")
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
        prior if isinstance(prior, str) else f"concentration {float(prior):g}",
        words,
        frozen(np.array(blank.concentration)),
        foretold(log, prior, ends),
        believed.family,
        believed.words,
        (*notes, *counted.notes()),
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
