"""High-confidence policy improvement (Thomas, Theocharous & Ghavamzadeh 2015): a policy chosen from some episodes, and
what it earns at least by others.

Every second episode is held out. From the rest come candidates (`bounds.posterior.safe_candidates`, those of
frequencies) and their mixtures with behaviour; the one that promises most on them is *valued on the episodes held out*,
which had no part in choosing it: importance-weighted returns (`bounds.posterior.weighted`), bounded by betting
(`bounds.statistics.clipped`). Two statements share the error: what the policy earns at least, and how much more than
behaviour, episode by episode.

*Assumed*: episodes are independent of each other and alike; actions were taken with the chances that are stated; no
reward is less than the least of the log, none above its most; where an episode is cut off does not depend on what would
have come. Nothing else: no prior, no Markov property. With chances that were *estimated from the log* nothing of this
is proven.
"""

import math
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.bounds.posterior.candidates import Candidate
from beliefbound.bounds.posterior.safe_candidates import of_frequencies, policy_of
from beliefbound.bounds.posterior.weighted import Weighted
from beliefbound.bounds.statistics.clipped import foreseen, nonnegative_mean_at_least
from beliefbound.logs.log import Episodes, Log
from beliefbound.planning.safe.frequencies import Frequencies
from beliefbound.planning.safe.pessimistic import pessimistic
from beliefbound.planning.safe.spibb import spibb

Chances = Literal["logged", "given", "estimated"]
_LEAST = 20  # episodes, of which half are held out
_STEPS = 50_000  # on which candidates are compared
_SHARES = (1.0, 0.5, 0.25)  # of a candidate in its mixture with behaviour
_FAR = 4.0  # standard deviations
_FEW_ENTRIES, _MOST_ENTRIES = (
    400_000,
    4_000_000,
)  # states² × actions up to which every candidate is made; and two of them
_NOTHING = 1e-3


class HeldOut(NamedTuple):
    """What episodes that were held out say.

    Attributes:
      policy: chosen from the other episodes.
      value: what it earns at least; `least`: what any policy does; `vacuous`: whether the first says no more.
      gain: by how much it is better than behaviour at least; negative: not shown to be better.
      estimate: of its value; `now`: of what the episodes held out paid. Both take the rest of those that were cut off
        to pay the least.
      n_chosen, n_valued: episodes that chose it, that valued it; `n_cut`: of the latter, cut off.
      chances: where behaviour's are from; `estimated`: nothing is proven.
      confidence: of `value` and `gain` together.
    """

    policy: Candidate
    value: float
    least: float
    vacuous: bool
    gain: float
    estimate: float
    now: float
    n_chosen: int
    n_valued: int
    n_cut: int
    chances: Chances
    confidence: float

    @property
    def proven(self) -> bool:
        """Whether behaviour's chances are known."""
        return self.chances != "estimated"


def held_out(
    log: Log,
    data: Frequencies,
    *,
    given: bool,
    start: FloatArray | None,
    discount: float,
    horizon: int | None,
    error: float,
) -> HeldOut | str:
    """What held-out episodes say, or why nothing.

    Args:
      log: with its episodes; `data`: its frequencies, with behaviour.
      given: whether behaviour was given, in place of its frequencies.
      start: `[s]`, where it is not that of the log's episodes: then one state.
    """
    whole, S, A = log.episodes, data.n_states, data.n_actions
    if whole is None:
        return (
            "which steps make an episode is not known: there is no column 'episode', or rows do not follow each other"
        )
    if S * S * A > _MOST_ENTRIES:
        return f"{S:,} states and {A:,} actions are too many for it"
    if start is not None:
        if float(start.max()) < 1.0:
            return "the start is not that of the log's episodes"
        whole = whole.chosen(whole.state[whole.first] == int(start.argmax()))
    if len(whole.first) < _LEAST:
        return f"there are {len(whole.first)} episodes, fewer than {_LEAST}"
    chances: Chances = "logged" if whole.propensity is not None else "given" if given else "estimated"
    if whole.propensity is not None:
        inverse = 1.0 / whole.propensity
        if float(inverse.mean()) > A + _FAR * float(inverse.std()) / math.sqrt(len(inverse)):
            return (
                f"the chances in column 'propensity' are too small to be true: 1/propensity is {inverse.mean():.3g} on "
                f"average, and cannot be more than {A}, the number of actions"
            )
    odd = np.arange(len(whole.first)) % 2 == 1
    ends, rewards = data.terminal, log.reward_range

    def weighted(which: Episodes) -> Weighted:
        known = which.propensity if which.propensity is not None else data.behaviour[which.state, which.action]
        return Weighted.of(which, known, rewards, ends, discount=discount, horizon=horizon)

    test, others = weighted(whole.chosen(odd)), whole.chosen(~odd)
    seen = data.without(test.episodes, by_value=log.values is not None)
    if not given:
        seen = replace(seen, behaviour=frequencies(seen.visits))
    some = max(_LEAST // 2, int((np.cumsum(others.lengths) <= _STEPS).sum()))
    train = weighted(others.chosen(np.arange(len(others.first)) < some))
    n, alpha = len(test.episodes.first), error / 2.0
    policy, promise = "behaviour", -np.inf
    chosen = seen.behaviour
    for name, made in _candidates(seen, discount, horizon).items():
        for share in _SHARES:
            mixed = share * made + (1.0 - share) * seen.behaviour
            bound, _ = foreseen(train.returns(mixed), n, alpha)
            if bound > promise:
                mixture = name if share == 1.0 else f"{name}, in {100 * share:g}% of its choices, else behaviour"
                policy, promise, chosen = mixture, bound, mixed
    own, pilot = test.returns(chosen), train.returns(chosen)
    value = test.least + nonnegative_mean_at_least(own, pilot=pilot, alpha=alpha)
    paired = nonnegative_mean_at_least(own + test.missing(), pilot=pilot + train.missing(), alpha=alpha)
    return HeldOut(
        policy=Candidate(policy, policy_of(chosen)),
        value=value,
        least=test.least,
        vacuous=value <= test.least + _NOTHING * max(abs(x) for x in rewards),
        gain=paired - (test.most - test.least),
        estimate=test.least + float(own.mean()),
        now=float(test.logged().mean()),
        n_chosen=log.n_episodes - n,
        n_valued=n,
        n_cut=test.cut,
        chances=chances,
        confidence=1.0 - error,
    )


def _candidates(data: Frequencies, discount: float, horizon: int | None) -> dict[str, FloatArray]:
    """Policies by name; of a large problem two, which take a second or so."""
    when: dict[str, Any] = {"discount": discount, "horizon": horizon}
    if data.n_states**2 * data.n_actions <= _FEW_ENTRIES:
        return of_frequencies(data, **when)
    return {"SPIBB, at most behaviour below 5 visits": spibb(data, least=5, **when)} | {
        "pessimistic, doubt 1": pessimistic(data, doubt=1.0, **when)
    }


def frequencies(visits: FloatArray) -> FloatArray:
    """Shares `[s,a]` of visits, uniform where there are none."""
    total = visits.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0.0, visits / np.maximum(total, 1e-300), 1.0 / visits.shape[1]))
