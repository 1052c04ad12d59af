"""The page of a plan: which policy, how good for sure, what next."""

from pathlib import Path

import numpy as np

from beliefbound.bounds.posterior.risk import LEVELS, Estimate
from beliefbound.report.from_log.headline import (
    above,
    below,
    checked_words,
    estimate_words,
    free_words,
    mean_words,
    next_words,
    policy_shown,
    sure_words,
    warned,
)
from beliefbound.report.from_log.result import LogPlan, UnderPrior
from beliefbound.report.page import Page, Picture, Section, Table
from beliefbound.report.using import using_section

_NAME = 200  # letters of a name that the page shows
_ROWS = 300  # of a table; all of them are in the files
_PAIRS = 40


def page_of(found: LogPlan, drawn: dict[str, Picture], made: str = "") -> Page:
    """Everything that was found, as a page; `made`: how to make it again, in words."""
    log, task = found.log, found.task
    early = " The work was interrupted: more time would have narrowed it." if found.interrupted else ""
    doubt = f"Read with care: {warned(found)}. " if warned(found) else ""
    told = " ".join(_sentence(words(found)) for words in (estimate_words, free_words, sure_words))
    return Page(
        title=f"A policy from {Path(log.source).name[:_NAME]}",
        lead=f"{doubt}{told}{early}",
        facts=[
            ("rows", f"{log.n_rows:,}"),
            ("states", str(log.n_states)),
            ("actions", str(log.n_actions)),
            ("pairs never tried", str(int(log.unseen.sum()))),
            ("rests on the prior", f"{100 * found.reliance.share:.1f}% of its steps"),
            ("never tried", f"{100 * found.reliance.untried:.1f}% of its steps"),
            ("discount", f"{task.discount:g}"),
            ("decisions", "for ever" if task.horizon is None else str(task.horizon)),
        ],
        sections=[
            _short_answers(found),
            _warned(found),
            _which(found, drawn),
            _certain(found, drawn),
            _next(found, drawn),
            using_section("policy.json", found.names, found.task.start),
            *([Section("How to check it", [made])] if made else []),
            _data(found, drawn),
        ],
    )


def _short_answers(found: LogPlan) -> Section:
    """The three questions that somebody with a log has."""
    top = _sentence(next_words(found) or "nothing is left to measure")
    return Section(
        "In short",
        [
            f"Which policy? {_sentence(policy_shown(found))}",
            f"How good, for sure? {_sentence(free_words(found))} {_sentence(sure_words(found))} "
            f"{_sentence(mean_words(found, 4))}",
            f"What next? {top}",
        ],
    )


def _warned(found: LogPlan) -> Section:
    notes = [f"{note[:1].upper()}{note[1:1000]}" for note in found.notes()]
    return Section("What to know first", notes or ["Nothing stood out: every check passed and every pair was tried."])


def _which(found: LogPlan, drawn: dict[str, Picture]) -> Section:
    chosen, log = found.choice.chosen, found.log
    share, visits = found.learnt.prior_share, log.visits
    order = np.argsort(-found.reliance.visits.sum(axis=1), kind="stable")
    actions = found.first_actions
    terminal = found.learnt.terminal
    rows = [
        [
            _short(log.state_name(int(s))),
            "(ends)" if terminal[s] else _short(found.first_action(int(s))),
            f"{found.state_lower[s]:.4g}",
            f"{found.state_upper[s]:.4g}",
            f"{visits[s, actions[s]]:,}",
            f"{100 * share[s, actions[s]]:.0f}%",
            f"{100 * found.reliance.visits[s].sum():.1f}%",
        ]
        for s in order[:_ROWS]
    ]
    more = "" if len(order) <= _ROWS else f" The first {_ROWS} of {len(order)} states; all are in policy.csv."
    staged = "" if found.policy.horizon is None else " The first stage; later ones are in policy.csv."
    table = Table(
        ["state", "action", "lower", "upper", "times tried", "prior's share", "of its steps"],
        rows,
        f"What the policy does, bounds on the mean value from each state (Student's, asymptotic, all together), and "
        f"what they rest on.{staged}{more}",
    )
    text = [
        f"It comes from: {chosen.name}, one of {len(found.choice.pool)} memoryless policies, chosen for "
        f"{found.objective.words} on {found.choice.n_select} models of the posterior. It is in policy.json (for "
        f"load_policy) and policy.csv."
    ]
    if found.safety is not None:
        return Section("Which policy", [*text, *_safe_text(found)], [table, _safe_table(found)], [drawn["policy"]])
    return Section("Which policy", text, [table], [drawn["policy"]])


def _safe_text(found: LogPlan) -> list[str]:
    assert found.safety is not None
    if found.safety.kept:
        return ["Nothing qualified: keep doing what you do. The files hold what the log shows of it."]
    return [
        f"Of those that are worse than behaviour with a probability of at most {100 * found.safety.level:g}%, it gains "
        "most. In states where it does as behaviour does, and in states that the log never met, keep doing what you do."
    ]


def _safe_table(found: LogPlan) -> Table:
    """How candidates fared against behaviour."""
    safety = found.safety
    assert safety is not None
    rows = [
        [name, f"{100 * worse:.1f}%", f"{gain:.4g}", "yes" if worse <= safety.level and gain > 0.0 else "no"]
        for name, worse, gain in zip(safety.names, safety.worse, safety.gain, strict=True)
    ]
    return Table(
        ["candidate", "worse than behaviour", "mean gain", "qualifies"],
        rows,
        f"Against behaviour, on {safety.n} models each of two posteriors that doubt what was rarely tried: how likely "
        f"it is worse (much doubt; at most {100 * safety.level:g}% qualifies), and its mean gain (little doubt; the "
        f"largest is chosen).",
    )


def _certain(found: LogPlan, drawn: dict[str, Picture]) -> Section:
    value = f"{found.objective.words[0].upper()}{found.objective.words[1:]}"
    text = [
        f"{_sentence(free_words(found))} This needs no prior: it holds for every policy at once if steps are "
        f"independent draws of fixed chances and rewards take no other values than the log shows.",
        f"{_sentence(checked_words(found))}{_checked_by(found)}",
        f"{_sentence(sure_words(found))} {found.credible.method[:1].upper()}{found.credible.method[1:]}: if the "
        f"prior is right, the true process is exchangeable with the models sampled from the posterior.",
        f"{value} is {_told(found.certified)}.",
        f"Lower: {found.lower.method}. Upper: {found.upper.method}.",
    ]
    if found.bracket is not None:
        least = max(found.bracket.lower.value, found.lower.value)
        text.append(
            f"The best policy that learns as it acts is worth between {below(least)} and {above(found.upper.value)}."
        )
    if found.objective.kind != "mean" and np.isfinite(found.attainable.high):
        text.append(f"No policy's, not even one's that learns, is above {found.attainable.high:.4g}: what knowing each "
                    f"model gives ({found.attainable.method}).")  # fmt: skip
    if found.robust is not None:
        text.append(f"{robust_words(found)} It is in robust.policy.npz.")
    against = Table(
        ["compared with", "its value", "gain over it", "from", "to", "chance to be worse", "at most"],
        [
            [
                c.other.name,
                _cells(c.value)[0],
                *_cells(c.gain),
                f"{100 * c.worse.value:.1f}%",
                f"{100 * c.worse.high:.1f}%",
            ]
            for c in found.comparisons
        ],
        "On the same models: gains are paired. Behaviour is the policy that made the log, as given, else as "
        "frequencies per state.",
    )
    risk = Table(
        ["share of models", "value", "from", "to"],
        [
            *([f"{100 * p:g}% are below", *_cells(q)] for p, q in zip(LEVELS, found.quantiles, strict=True)),
            ["mean of the worst 10%", *_cells(found.cvar)],
        ],
        "How the policy's value varies with the model, and intervals for it.",
    )
    figures = [drawn["values"], drawn["states"], *([drawn["bracket"]] if "bracket" in drawn else [])]
    return Section("How good, for sure", text, [against, risk], figures)


def _checked_by(found: LogPlan) -> str:
    """What the check by held-out episodes rests on."""
    held = found.held_out
    if isinstance(held, str):
        return ""
    cut = f" {held.n_cut:,} of them were cut off; the rest of these is taken to pay the least." if held.n_cut else ""
    return (
        f" This is high-confidence policy improvement (HCPI) by importance-weighted returns: it needs no prior and no "
        f"Markov property, only independent episodes, rewards within those of the log, and behaviour's chances, which "
        f"are {held.chances}. Its policy is not the one above, which all episodes chose; it is in checked.policy.json."
        f"{cut}"
    )


def robust_words(found: LogPlan) -> str:
    """What is known of the objective on the models drawn for it."""
    assert found.robust is not None
    drawn, ends = found.robust, found.robust.bracket
    return (
        f"On {drawn.n} models drawn from the posterior, and about no others, {found.objective.words} can be between "
        f"{ends.lower.value:.4g}, which a mixture of policies secures, and {ends.upper.value:.4g}, which nobody "
        f"exceeds; the chosen policy has {drawn.chosen:.4g} there."
    )


def _next(found: LogPlan, drawn: dict[str, Picture]) -> Section:
    log, share, visits = found.log, found.learnt.prior_share, found.log.visits
    info, met = found.information, found.reliance.visits
    low, high = (np.zeros_like(met),) * 2 if info is None else (info.low, info.high)
    rows = []
    for s, a in found.to_measure()[:_PAIRS]:
        rise = ["", ""] if info is None else [f"{low[s, a]:.3g}", f"{high[s, a]:.3g}"]
        rows.append(
            [
                _short(log.state_name(s)),
                _short(log.action_name(a)),
                *rise,
                f"{visits[s, a]:,}",
                f"{100 * share[s, a]:.0f}%",
                f"{100 * met[s, a]:.1f}%",
            ]
        )
    table = Table(
        ["state", "action", "worth at least", "at most", "times tried", "prior's share", "of the policy's steps"],
        rows,
        "Pairs of state and action, the most valuable to measure first.",
    )
    if info is None:
        text = ["The rise in value from measuring single pairs was not computed; pairs are ordered by how much of the "
                "policy's way leads through them by the prior alone."]  # fmt: skip
    else:
        text = [
            f"Knowing everything (EVPI) is worth {info.evpi.low:.4g} to {info.evpi.high:.4g}; knowing one pair before "
            f"acting (EVPPI) what the table says, all intervals together with {100 * info.confidence:.4g}% confidence."
        ]
    return Section("What to measure next", text, [table], [drawn["measuring"]] if "measuring" in drawn else [])


def _data(found: LogPlan, drawn: dict[str, Picture]) -> Section:
    priors = Table(
        ["prior", "the policy's value", "from", "to", "true value above", "knowing the model", "at most", "likelihood"],
        [[row.prior, *map(_number, row[2:8]), _evidence(row)] for row in found.reliance.table],
        f"The same policy under other priors; intervals, and what the true value is above, are "
        f"{100 * found.confidence:.4g}% each. Likelihood: leave-one-pair-out, of the rows of every pair "
        f"given all others, against the best of these priors; one below 1/1000 is refuted. Where others "
        f"disagree, the prior speaks.",
    )
    checks = Table(
        ["check", "p-value", "found"],
        [[c.name, f"{c.p:.2g}", c.found[:_NAME]] for c in found.checks],
        "The log against data that the posterior expects; small p-values are reasons to doubt.",
    )
    read = Table(["what was read", ""], [[name, text[:_NAME]] for name, text in found.log.rows()])
    text = [
        f"Transitions: {found.learnt.prior}. Rewards: {found.learnt.rewards}. On "
        f"{100 * found.reliance.share:.1f}% of the policy's (discounted) steps what is expected comes from the prior."
    ]
    return Section("What it rests on", text, [priors, checks, read], [drawn["coverage"]])


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[:_NAME]}…"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _number(x: float) -> str:
    return f"{x:.4g}" if np.isfinite(x) else ""


def _cells(x: Estimate) -> list[str]:
    return [_number(value) for value in (x.value, x.low, x.high)]


def _evidence(row: UnderPrior) -> str:
    if row.evidence is None:
        return ""
    return "best" if row.evidence == 0.0 else f"10^{row.evidence:.1f}" if np.isfinite(row.evidence) else "impossible"


def _told(x: Estimate) -> str:
    ends = f"at least {x.low:.4g}" if not np.isfinite(x.high) else f"between {x.low:.4g} and {x.high:.4g}"
    return f"{ends} (estimated {x.value:.4g}; {x.method})"
