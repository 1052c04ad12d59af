"""The files of a plan. `certificate.json` (`report.from_log.certificate`) is written last: a folder without it holds no
result.
"""

from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.io.atomic import write_text
from beliefbound.base.io.csv_table import csv_text
from beliefbound.beliefs.files import can_save, save_belief
from beliefbound.jobs.made import write_json
from beliefbound.logs.log import Log
from beliefbound.policy import TablePolicy
from beliefbound.report.from_log.certificate import certificate
from beliefbound.report.from_log.headline import checked_words, mean_words, sure_words, warned
from beliefbound.report.from_log.page import page_of
from beliefbound.report.from_log.pictures import pictures
from beliefbound.report.from_log.result import LogPlan
from beliefbound.report.page import REPORT, write_page

CERTIFICATE, _POSTERIOR, _ROBUST, _CHECKED = "certificate.json", "posterior.npz", "robust.json", "checked.policy.json"
SOMETIMES = frozenset(  # files that not every plan has
    {_POSTERIOR, _ROBUST, "robust.policy.npz", _CHECKED}
    | {f"figures/{name}.{end}" for name in ("bracket", "measuring") for end in ("png", "svg")}
)


def write_files(found: LogPlan, job: dict[str, Any], place: Path) -> None:
    """Write everything but pictures and the page; `job`: how it was made."""
    log = found.log
    names: dict[str, Any] = {"state_names": log.states, "action_names": log.actions}
    found.policy.save(place / "policy.json", note=policy_words(found), **names)
    write_text(place / "policy.csv", csv_text(policy_table(found.policy, log)))
    posterior = _POSTERIOR if can_save(found.learnt.belief) else None
    if posterior is not None:
        save_belief(place / posterior, found.learnt.belief, states=log.states, actions=log.actions)
    if found.robust is not None:
        found.robust.bracket.save(place / _ROBUST)
    checked = None if isinstance(found.held_out, str) else _CHECKED
    if not isinstance(found.held_out, str):
        found.held_out.policy.policy.save(place / _CHECKED, note=_upper(checked_words(found)), **names)
    told = certificate(found, posterior=posterior, robust=_ROBUST, checked=checked)
    write_json(place / CERTIFICATE, {**told, "job": job})


def write_pages(found: LogPlan, made: str, place: Path) -> None:
    """Write the pictures and the page; `made`: how it was made, in words."""
    write_page(page_of(found, pictures(found, place / "figures"), made), place / REPORT)


def policy_words(found: LogPlan) -> str:
    """What is true of the policy, in a sentence."""
    doubt = f"Read with care: {warned(found)}. " if warned(found) else ""
    return f"From {Path(found.log.source).name}. {doubt}{_upper(sure_words(found, 6))}. {_upper(mean_words(found))}."


def _upper(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def policy_table(policy: TablePolicy, log: Log) -> dict[str, Any]:
    """One row per stage, state and action taken."""
    chances = policy.chances(log.n_actions)
    stages = chances if chances.ndim == 3 else chances[None]
    k, s, a = np.nonzero(stages > 0.0)
    columns: dict[str, Any] = {} if policy.horizon is None else {"stage": k}
    columns |= {"idstate": s, "state": [log.state_name(int(i)) for i in s]}
    columns |= {"idaction": a, "action": [log.action_name(int(i)) for i in a]}
    if not policy.is_deterministic:
        columns["probability"] = stages[k, s, a]
    return columns
