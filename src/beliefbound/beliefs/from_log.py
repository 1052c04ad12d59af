"""`learn`: the posterior after a log of transitions.

Rows of transitions are `Dirichlet(prior + counts)`. Priors, of one observation's weight unless they say otherwise:

* `uniform`: `1/|S|` on every next state.
* `jeffreys`: `1/2` on every next state, the weight of `|S|/2` observations.
* `sparse`: equal parts on the next states that were seen after the same state, under any action; elsewhere it is
  believed *impossible*, which data not yet seen may refute. After states never acted in, every state is possible.
* `empirical`: the same concentration `c` everywhere, fitted to the log (empirical Bayes). With the marginal likelihood
  `log L(c) = Σ_{s,a} log Γ(c|S|)/Γ(c|S| + n_{sa}) + Σ_{s,a,t} log Γ(c + n_{sat})/Γ(c)` and a weight `w = c|S|` that is
  Exponential(1) beforehand, `w` is its posterior mean. So a log in which nothing ever varied gives a small weight, the
  smaller the more was repeated, and never none.
* a number: that concentration.
* `suggest`: `uniform`, unless the log refutes it: where the marginal likelihood with the weight integrated out is more
  than a thousand times that of weight 1, `empirical`.

States where episodes end are absorbing, with reward 0. What is believed about rewards is decided in
`beliefs.log_rewards`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy.special as special

from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.log_rewards import RewardChoice, reward_posterior
from beliefbound.beliefs.masks import terminal_states
from beliefbound.beliefs.rewards import RewardBelief
from beliefbound.errors import BeliefError
from beliefbound.logs.log import Log
from beliefbound.validation import (
    BoolArray,
    FloatArray,
    as_flag,
    check_kind,
    check_positive,
    check_sequence,
    frozen,
    shown,
)

Prior = Literal["suggest", "uniform", "jeffreys", "sparse", "empirical"]
PRIORS: tuple[Prior, ...] = get_args(Prior)[1:]
_LOG_WEIGHTS = np.linspace(math.log(1e-8), math.log(1e5), 2000)
_CLEAR = 1000.0  # a Bayes factor that refutes a prior


@dataclass(frozen=True, eq=False)
class Learnt:
    """A posterior and what it was made of.

    Attributes:
      belief: the posterior.
      name: of the prior, as it was asked for or suggested.
      prior: what was believed about transitions before, in words; `concentration` as numbers `[s,a,t]`.
      rewards: what is believed about rewards, in words; `family` by name.
      notes: what a reader should know.
    """

    belief: DirichletBelief
    name: str
    prior: str
    concentration: FloatArray
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
      prior: about transitions: `suggest`, `uniform`, `jeffreys`, `sparse`, `empirical`, or a concentration.
      rewards: `suggest`, `known`, `values`, `beta` or `normal` (`beliefs.log_rewards` has what they mean), or a reward
        belief of your own, which is updated.
      known: rewards that are known beforehand, `[s,a]` or `[s,a,t]`, NaN where they are to be learnt.
      terminal: more states where episodes end, by id or name, than the log itself marks.
      only_tried: offer in each state only the actions that were tried there.
      initial: start distribution or state; default: as episodes of the log begin.

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
        available = (visits > 0) | (visits.sum(axis=1, keepdims=True) == 0)
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
        initial=log.initial if initial is None else initial,
    )
    counted = blank._with(
        blank.concentration + log.transition_counts() * ~ends[:, None, None], blank.rewards, blank.observed + visits
    )
    return Learnt(
        counted,
        prior if isinstance(prior, str) else f"concentration {float(prior):g}",
        words,
        frozen(np.array(blank.concentration)),
        believed.family,
        believed.words,
        (*notes, *counted.notes()),
    )


def concentration_of(log: Log, prior: Prior | float, ends: BoolArray) -> tuple[FloatArray, str, list[str]]:
    """Concentrations `[s,a,t]` of a prior, what it is in words, and what should be known about it."""
    S = log.n_states
    shape, notes = (S, log.n_actions, S), []
    if not isinstance(prior, str):
        value = check_positive(prior, "prior")
        return np.full(shape, value), f"concentration {value:g} on every next state", []
    if prior not in PRIORS:
        choices = f"suggest, {', '.join(PRIORS)}"
        raise BeliefError(f"prior is {shown(prior)}; choose one of {choices}, or a concentration above 0")
    if prior == "uniform":
        return np.full(shape, 1.0 / S), f"uniform: concentration 1/{S} on every next state", []
    if prior == "jeffreys":
        return np.full(shape, 0.5), "Jeffreys: concentration 1/2 on every next state", []
    counts = log.transition_counts()
    if prior == "empirical":
        weight = fitted_weight(counts[~ends])[0]
        words = f"empirical Bayes: equal parts, of weight {weight:.3g} in all, on every next state"
        return np.full(shape, weight / S), words, []
    possible = (counts.sum(axis=1) > 0)[:, None, :]
    possible = np.where(possible.any(axis=-1, keepdims=True), possible, True)
    alpha = np.broadcast_to(possible / possible.sum(axis=-1, keepdims=True), shape)
    notes.append(
        "transitions to states that were never seen to follow a state are believed impossible (prior sparse): where "
        "data are few this is overconfident; compare the other priors"
    )
    return np.array(alpha), "sparse: equal parts, of weight 1, on the next states seen after each state", notes


def suggest_prior(log: Log, ends: BoolArray) -> tuple[Prior, str]:
    """`uniform` or `empirical`, and why where the log refutes the first.

    >>> from beliefbound.logs import log_of
    >>> cycle = np.arange(400) % 8
    >>> suggest_prior(log_of(cycle, 0 * cycle, 1.0 * cycle, (cycle + 1) % 8), np.zeros(8, bool))[0]
    'empirical'
    """
    weight, factor = fitted_weight(log.transition_counts()[~ends])
    if factor <= math.log(_CLEAR):
        return "uniform", ""
    less = "less" if weight < 1.0 else "more"
    return "empirical", (
        f"transitions vary {less} than the uniform prior, of one observation's weight, expects: the log is "
        f"10^{factor / math.log(10.0):.0f} times likelier where the weight is learnt ({weight:.2g}), so prior "
        f"'empirical' is taken; the other priors are in the table of priors"
    )


def fitted_weight(counts: Any) -> tuple[float, float]:
    """`(weight, log Bayes factor)` of the symmetric Dirichlet with counts `[…,t]`: the posterior mean of its weight,
    Exponential(1) beforehand, and how much likelier the counts are than with weight 1.

    >>> weight, factor = fitted_weight(np.array([[9, 0], [0, 9], [9, 0], [8, 1]]))
    >>> round(weight, 2), round(factor, 2)
    (0.43, 0.61)
    """
    rows = np.asarray(counts, dtype=np.int64).reshape(-1, np.shape(counts)[-1])
    totals, often = np.unique(rows.sum(axis=1), return_counts=True)
    seen, times = np.unique(rows[rows > 0], return_counts=True)

    def evidence(w: Any) -> Any:
        c = w / rows.shape[1]
        by_row = often @ (special.gammaln(w) - special.gammaln(w + totals[:, None]))
        return by_row + times @ (special.gammaln(c + seen[:, None]) - special.gammaln(c))

    w = np.exp(_LOG_WEIGHTS)
    terms = evidence(w) - w + _LOG_WEIGHTS  # the last: as the grid is one of logarithms
    total = special.logsumexp(terms) + math.log(_LOG_WEIGHTS[1] - _LOG_WEIGHTS[0])
    mean = float(np.exp(terms - special.logsumexp(terms)) @ w)
    return mean, float(total - evidence(np.ones(1))[0])


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
