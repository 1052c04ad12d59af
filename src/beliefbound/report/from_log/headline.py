"""How good, for sure: the sentences that stand first, wherever the result is told.

*Which number leads.* The mean over the posterior, with its bounds, is what the certificate is about. But somebody who
deploys the policy meets one process: what that pays is below the mean half of the time. So first comes what it pays at
least with the stated probability, if the prior is right; and beside it the least that any other prior says which the
log does not refute. Where it is the prior that speaks, that is said before any number, and the least number is first.
"""

import math

from beliefbound.report.from_log.plan import LogPlan


def by_prior(found: LogPlan) -> bool:
    """Whether it is mostly the prior that speaks."""
    return bool(found.reliance.warnings)


def warned(found: LogPlan) -> str:
    """The weightiest warning about the prior; nothing where there is none."""
    return found.reliance.warnings[0].removeprefix("WARNING: ") if found.reliance.warnings else ""


def sure_words(found: LogPlan, digits: int = 4) -> str:
    """What the process that made the log pays the policy at least, and with which probability."""
    own, least = found.credible.low, found.reliance.least
    chance = f"with {100 * found.confidence:.4g}% probability"
    if not math.isfinite(own):
        return f"what the process that made the log pays is not bounded {chance}: {found.credible.method}"
    name = found.learnt.name
    if least.prior == name or not math.isfinite(least.credible) or least.credible >= own:
        return f"in the process that made the log it earns at least {own:.{digits}g}, {chance}, if the prior is right"
    other = f"if the prior {least.prior} is right, which the log does not refute"
    if by_prior(found):
        return (
            f"in the process that made the log it earns at least {least.credible:.{digits}g}, {chance}, {other}; at "
            f"least {own:.{digits}g} under the prior {name}"
        )
    return (
        f"in the process that made the log it earns at least {own:.{digits}g}, {chance}, if the prior {name} is right; "
        f"at least {least.credible:.{digits}g} {other}"
    )


def mean_words(found: LogPlan, digits: int = 6) -> str:
    """Bounds on the mean over the posterior."""
    return (
        f"on average over what the log leaves possible it is worth at least {found.lower.value:.{digits}g}; no policy "
        f"is worth more than {found.upper.value:.{digits}g}; {100 * found.confidence:.4g}% confidence"
    )
