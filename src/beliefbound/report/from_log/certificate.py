"""The content of `certificate.json`: what was found from a log, as numbers and words.

format        "beliefbound certificate"
version       5
lower         the policy is worth at least this, on average over the posterior
upper         no policy, not even one that learns, is worth more
confidence    with which everything in the file holds together; except `priors`, every interval on its own, `measure`,
              all of its intervals together, and `credible`, `prior_free` and `held_out`, each on its own
credible      what the process that made the log pays the policy at least, with the probability `confidence`: value
              (null: nothing can be said), method; prior and least: that which says least of all that the log does not
              refute, and what it says
prior_free    what the process that made the log pays the policy at least, whatever that process is, with `confidence`:
              value (null: nothing can be said); null where rewards take too many values
held_out      an independent check by episodes that had no part in choosing (HCPI): policy, another one than `policy`,
              in file; value: what it earns at least (null: nothing can be said), gain: how much more than what is done
              now (below 0: not shown to be better), both with `confidence`, whatever the process is, if proven; not
              where chances of behaviour are estimated, in place of logged or given; estimate, now (what the episodes
              paid); chosen_on, valued_on, cut_off: episodes; or missing: why there is none
safety        for the objective safe: level, models, kept (nothing qualified: keep doing what you do), changed (states
              in which the policy does something else), candidates: name, probability_worse, gain; null for others
by_prior      whether it is mostly the prior that speaks; `warnings` say how
discount      of the problem
horizon       decisions; null: for ever
policy        file, origin, kind, gap (upper − lower) and actions: one per state, of the first stage: its name or
              number; where it is drawn, {action: chance}
objective     what was asked to be large, of the policy: name, value, low, high, method; attainable: the same of knowing
              each model, whose high no policy's exceeds
initial       {state: probability} of the start
bounds        every bound, as `Bound.to_dict` gives it
bracket       of policies that learn: lower, upper; null where it was not computed
robust        of `objective`, on models drawn from the posterior for it and about no others: priors, models, lower (what
              the mixture in robust.policy.npz secures), upper (what nobody exceeds), confidence, policy (the chosen
              one's objective on the same models); null for objectives that are no such game
comparisons   name, value, gain and probability of being worse, each with low, high, method, asymptotic (the
              interval is right only in the limit of many models)
risk          quantiles and cvar of the policy's value over models
states        name, action (as in `policy`), lower, upper (Student's, asymptotic), visits, prior_share (of what is done
              there), terminal
priors        the policy and perfect knowledge under other priors: `credible` as above; `evidence`: by how many powers
              of ten its leave-one-pair-out likelihood is below that of the best of them
prior_share   of the policy's steps, the part about which the prior speaks
untried_share of the policy's steps, the part that was never tried
measure       pairs by the rise that measuring them would bring; empty where it was not computed
checks        of the posterior against the log: name, found, p
log           what was read; posterior: prior, rewards, file
notes         what a reader should know
interrupted   whether somebody ended the work before its time
job           where `beliefbound plan` wrote it: how it was made (`jobs.from_log.command.PlanJob`)
"""

from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.bounds.posterior.risk import LEVELS, Estimate
from beliefbound.report.from_log.headline import by_prior
from beliefbound.report.from_log.result import LogPlan

FORMAT, VERSION = "beliefbound certificate", 5
_PAIRS = 200  # measurements that the certificate lists


def certificate(
    found: LogPlan,
    *,
    policy: str = "policy.json",
    posterior: str | None,
    robust: str | None,
    checked: str | None = None,
) -> dict[str, Any]:
    """The content of `certificate.json`, beside which the policy, the posterior, the robust bracket and the policy of
    held-out episodes are in files of these names; `None`: in none."""
    log, learnt, task = found.log, found.learnt, found.task
    start = np.flatnonzero(task.start)
    chosen = found.choice.chosen
    return {
        "format": FORMAT,
        "version": VERSION,
        "lower": found.lower.value,
        "upper": found.upper.value,
        "confidence": found.confidence,
        "credible": {
            "value": _finite(found.credible.low),
            "method": found.credible.method,
            "prior": found.reliance.least.prior,
            "least": _finite(min(found.credible.low, found.reliance.least.credible)),
        },
        "prior_free": None
        if found.prior_free is None
        else {"value": None if found.prior_free.vacuous else found.prior_free.value},
        "held_out": _held_out(found, checked),
        "safety": _safety(found),
        "by_prior": by_prior(found),
        "warnings": [warning.removeprefix("WARNING: ") for warning in found.reliance.warnings],
        "discount": task.discount,
        "horizon": task.horizon,
        "policy": {
            "file": policy,
            "origin": chosen.name,
            "kind": "stationary" if chosen.policy.horizon is None else "memoryless",
            "gap": max(0.0, found.upper.value - found.lower.value),
            "actions": [_taken(found, own, log.actions is not None) for own in found.first_chances],
        },
        "objective": {"name": str(found.objective), "meaning": found.objective.words, **_estimate(found.certified)}
        | {"attainable": _estimate(found.attainable)},
        "initial": {log.state_name(int(s)): float(task.start[s]) for s in start},
        "bounds": [
            bound.to_dict() for bound in (found.lower, found.upper, *(found.bracket.bounds if found.bracket else ()))
        ],
        "bracket": None
        if found.bracket is None
        else {
            "lower": found.bracket.lower.value,
            "upper": found.bracket.upper.value,
            "confidence": found.bracket.confidence,
            "trace": [[p.seconds, p.lower.value, p.upper.value] for p in found.bracket.trace],
        },
        "robust": None
        if found.robust is None
        else {
            "priors": found.robust.bracket.priors,
            "models": found.robust.n,
            "lower": found.robust.bracket.lower.value,
            "upper": found.robust.bracket.upper.value,
            "confidence": found.robust.bracket.confidence,
            "policy": found.robust.chosen,
            "file": robust,
        },
        "comparisons": [
            {
                "name": c.other.name,
                "value": _estimate(c.value),
                "gain": _estimate(c.gain),
                "probability_worse": _estimate(c.worse),
            }
            for c in found.comparisons
        ],
        "risk": {
            "quantiles": [{"level": p, **_estimate(q)} for p, q in zip(LEVELS, found.quantiles, strict=True)],
            "cvar": {"level": 0.1, **_estimate(found.cvar)},
        },
        "states": _states(found),
        "priors": [{key: _finite(x) for key, x in row._asdict().items()} for row in found.reliance.table],
        "prior_share": found.reliance.share,
        "untried_share": found.reliance.untried,
        "measure": _measurements(found),
        "checks": [{"name": c.name, "found": c.found, "p": c.p} for c in found.checks],
        "log": {
            "source": Path(log.source).name,
            "rows": log.n_rows,
            "episodes": log.n_episodes,
            "terminated": log.n_terminated,
            "truncated": log.n_truncated,
            "states": log.n_states,
            "actions": log.n_actions,
            "unseen_pairs": int(log.unseen.sum()),
            "reward_range": list(log.reward_range),
        },
        "posterior": {
            "file": posterior,
            "prior": learnt.prior,
            "rewards": learnt.rewards,
        },
        "notes": list(found.notes()),
        "interrupted": found.interrupted,
    }


def _held_out(found: LogPlan, file: str | None) -> dict[str, Any]:
    held = found.held_out
    if isinstance(held, str):
        return {"missing": held}
    return {
        "policy": held.policy.name,
        "file": file,
        "proven": held.proven,
        "chances": held.chances,
        "value": None if held.vacuous else held.value,
        "gain": held.gain,
        "estimate": held.estimate,
        "now": held.now,
        "chosen_on": held.n_chosen,
        "valued_on": held.n_valued,
        "cut_off": held.n_cut,
    }


def _safety(found: LogPlan) -> dict[str, Any] | None:
    safety = found.safety
    if safety is None:
        return None
    columns = zip(safety.names, safety.worse.tolist(), safety.gain.tolist(), strict=True)
    return {
        "level": safety.level,
        "models": safety.n,
        "kept": safety.kept,
        "changed": [found.log.state_name(int(s)) for s in np.flatnonzero(safety.changed)],
        "candidates": [{"name": name, "probability_worse": worse, "gain": gain} for name, worse, gain in columns],
    }


def _estimate(x: Estimate) -> dict[str, Any]:
    """Ends that are not finite are null."""
    return {
        "value": x.value,
        "low": _finite(x.low),
        "high": _finite(x.high),
        "method": x.method,
        "asymptotic": x.asymptotic,
    }


def _finite(x: Any) -> Any:
    return None if isinstance(x, float) and not np.isfinite(x) else x


def _taken(found: LogPlan, chances: FloatArray, named: bool) -> Any:
    """The action that is taken with chances `[a]`, by name or number, or those between which it is drawn."""
    taken = np.flatnonzero(chances > 0.0).tolist()
    if len(taken) == 1:
        return found.log.action_name(taken[0]) if named else taken[0]
    return {found.log.action_name(a): float(chances[a]) for a in taken}


def _states(found: LogPlan) -> list[dict[str, Any]]:
    log, chances, visits = found.log, found.first_chances, found.log.visits
    return [
        {
            "name": log.state_name(s),
            "action": _taken(found, chances[s], True),
            "lower": float(found.state_lower[s]),
            "upper": float(found.state_upper[s]),
            "visits": int(visits[s].sum()),
            "prior_share": float(chances[s] @ found.learnt.prior_share[s]),
            "terminal": bool(found.learnt.terminal[s]),
        }
        for s in range(log.n_states)
    ]


def _measurements(found: LogPlan) -> list[dict[str, Any]]:
    info = found.information
    if info is None:
        return []
    return [
        {
            "state": found.log.state_name(pair.state),
            "action": found.log.action_name(pair.action),
            "low": pair.low,
            "high": pair.high,
        }
        for pair in info.ranking()[:_PAIRS]
    ]
