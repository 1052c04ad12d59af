"""How good, for sure: the sentences that stand first, wherever the result is told.

*Which number leads.* The estimate, beside that of behaviour. But somebody who deploys the policy meets one process:
what that pays is below the mean half of the time. So two statements follow, each true of what it says: what it pays at
least whatever the process is, and what with the stated probability if the prior is right; beside the latter the least
that any other prior says which the log does not refute. Where it is the prior that speaks, that is said before any
number, and the least number is first.
"""

import math

import numpy as np

from beliefbound.logs.log import plain
from beliefbound.report.from_log.result import LogPlan

_SHOWN = 6  # states whose action is told in a sentence
_ROUNDING = 1e-9  # of the last digit: numbers that have no more digits stay as they are


def below(x: float, digits: int = 4) -> str:
    """A number of so many digits that is not above `x`: what is at least `x` is at least this.

    >>> below(2.99999), below(-2.99999), above(2.00001), below(102.6)
    ('2.999', '-3', '2.001', '102.6')
    """
    if x == 0.0 or not math.isfinite(x):
        return f"{x:g}"
    unit = 10.0 ** (math.floor(math.log10(abs(x))) - digits + 1)
    return f"{math.floor(x / unit + _ROUNDING) * unit:.{digits}g}"


def above(x: float, digits: int = 4) -> str:
    """A number of so many digits that is not below `x`."""
    text = below(-x, digits)
    return text[1:] if text.startswith("-") else text if x == 0.0 else f"-{text}"


def by_prior(found: LogPlan) -> bool:
    """Whether it is mostly the prior that speaks."""
    return bool(found.reliance.warnings)


def warned(found: LogPlan) -> str:
    """The weightiest warning about the prior; nothing where there is none."""
    return found.reliance.warnings[0].removeprefix("WARNING: ") if found.reliance.warnings else ""


def estimate_words(found: LogPlan, digits: int = 4) -> str:
    """The estimate, and what is done now."""
    now = next((c for c in found.comparisons if c.other.name == "behaviour"), None)
    own = f"the policy is estimated to earn {found.lower.estimate:.{digits}g}"
    if found.safety is not None and found.safety.kept:
        level = f"{100 * found.objective.level:g}%"
        return (
            f"keep doing what you do, which is estimated to earn {found.lower.estimate:.{digits}g}: every policy "
            f"that was found gains nothing, or the chance that it is worse is above {level}"
        )
    if now is None:
        return own
    beside = f"{own}, what is done now {now.value.value:.{digits}g}"
    if found.safety is None:
        return beside
    worse = float(found.safety.worse[found.safety.names.index(found.choice.chosen.name)])
    return (
        f"{beside}; it changes {int(found.safety.changed.sum())} of {int((~found.learnt.terminal).sum())} states; the "
        f"chance that it is worse than what is done now is {above(100.0 * worse, 2)}%, if rare actions are doubted"
    )


def free_words(found: LogPlan, digits: int = 4) -> str:
    """What it earns at least whatever the process is."""
    free, chance = found.prior_free, f"with {100 * found.confidence:.4g}% confidence"
    if free is None:
        return "whatever the process is, nothing was computed: rewards take too many values to tell outcomes apart"
    if free.vacuous:
        return (
            f"whatever the process is, nothing can be said {chance} but the least possible, {below(free.least, digits)}"
        )
    return f"whatever the process is, it earns at least {below(free.value, digits)} {chance}"


def checked_words(found: LogPlan, digits: int = 4) -> str:
    """What episodes say that had no part in choosing a policy."""
    held = found.held_out
    if isinstance(held, str):
        return f"no check by held-out episodes: {held}"
    which = f"a policy that {held.n_chosen:,} episodes chose ({held.policy.name})"
    chance = f"by {held.n_valued:,} others, {100 * held.confidence:.4g}% confidence"
    if not held.proven:
        return (
            f"check by held-out episodes, not proven, since behaviour's chances are estimated from the log (log them "
            f"in a column propensity, or give --behaviour): {which} is estimated to earn {held.estimate:.{digits}g}, "
            f"what is done now {held.now:.{digits}g}"
        )
    if held.vacuous:
        return f"check by held-out episodes, whatever the process is: nothing can be said of {which}, {chance}"
    better = (
        f"and at least {below(held.gain, digits)} more than what is done now"
        if held.gain > 0.0
        else "but that it is better than what is done now is not shown"
    )
    return (
        f"check by held-out episodes, whatever the process is: {which} earns at least {below(held.value, digits)}, "
        f"{better}, {chance}"
    )


def sure_words(found: LogPlan, digits: int = 4) -> str:
    """What the process that made the log pays the policy at least, and with which probability."""
    own, least, name = found.credible.low, found.reliance.least, found.learnt.name
    chance = f"with {100 * found.confidence:.4g}% probability"
    if not math.isfinite(own):
        return f"what the process that made the log pays is not bounded {chance}: {found.credible.method}"
    earns = "in the process that made the log it earns at least"
    first = f"{earns} {below(own, digits)} {chance}, if the prior ({name}) is right"
    if least.prior == name or not math.isfinite(least.credible) or least.credible >= own:
        return first
    worst = below(least.credible, digits)
    if by_prior(found):
        return (
            f"{earns} {worst} {chance}, if the prior {least.prior} is right, the least favourable that the log does "
            f"not refute; at least {below(own, digits)} under {name}"
        )
    return f"{first}; at least {worst} under {least.prior}, the least favourable prior that the log does not refute"


def mean_words(found: LogPlan, digits: int = 6) -> str:
    """Bounds on the mean over the posterior; the estimate beside them where the proven interval is wide."""
    near = f" (about {found.lower.estimate:.4g}, not proven)" if found.hints else ""
    return (
        f"on average over what the log leaves possible it is worth at least {below(found.lower.value, digits)}{near}; "
        f"no policy is worth more than {above(found.upper.value, digits)}; {100 * found.confidence:.4g}% confidence"
    )


def policy_shown(found: LogPlan) -> str:
    """What the policy does in the states that it meets most."""
    log, ends = found.log, found.learnt.terminal
    met = found.reliance.visits.sum(axis=1)
    open_ = [int(s) for s in np.argsort(-met, kind="stable") if not ends[s]]
    state, action = ("" if log.states else "state "), ("" if log.actions else "action ")
    told = ", ".join(
        f"{state}{plain(log.state_name(s))}: {action}{plain(found.first_action(s))}" for s in open_[:_SHOWN]
    )
    more = f", and so on: {len(open_)} states in policy.csv" if len(open_) > _SHOWN else ""
    return f"{told}{more}"


def next_words(found: LogPlan) -> str:
    """The pair most worth measuring; nothing where there is none."""
    pairs = found.to_measure()
    if not pairs:
        return ""
    s, a = pairs[0]
    where = f"state {plain(found.log.state_name(s))}, action {plain(found.log.action_name(a))}"
    return f"measure next: {where}, {found.measuring_words(s, a)}"
