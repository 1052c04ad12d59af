"""What a plan for many similar tasks found, and its page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from beliefbound.beliefs.population import Population
from beliefbound.bounds.certified import Certified
from beliefbound.logs.log import Log, plain
from beliefbound.policy import TablePolicy
from beliefbound.policy.naming import Names
from beliefbound.report.page import Page, Section, Table
from beliefbound.report.using import using_section

_SHOWN = 12  # pairs in a table


@dataclass(frozen=True, eq=False)
class TasksPlan:
    """A policy for the next task of a population.

    Attributes:
      population: what the logs of earlier tasks show.
      policy, name: the policy, and how it was made; `candidates`: what each was worth on tasks that chose among them.
      certificate: what it earns on average over tasks of the population, and how far below the best it may be.
      per_task: `[task]`, what it is expected to earn in each earlier task, by the mean of that task's posterior.
    """

    population: Population
    policy: TablePolicy
    name: str
    candidates: dict[str, float]
    certificate: Certified
    per_task: Sequence[float]

    @property
    def log(self) -> Log:
        """All logs as one."""
        assert self.population.log is not None
        return self.population.log

    def differences(self) -> list[list[str]]:
        """Pairs that differ most between tasks: state, action, how far transitions and rewards differ, and
        how many tasks have tried them."""
        found, tried = self.population, (self.population.counts.sum(axis=3) > 0.0).sum(axis=0)
        shares = np.stack([found.between, found.between_rewards])
        known = np.argwhere(~np.isnan(shares[0]))
        worst = sorted(known.tolist(), key=lambda pair: -float(shares[:, pair[0], pair[1]].max()))[:_SHOWN]
        return [
            [plain(self.log.state_name(s)), plain(self.log.action_name(a))]
            + [f"{shares[k, s, a]:.2f}" for k in range(2)]
            + [str(int(tried[s, a]))]
            for s, a in worst
        ]

    def lines(self) -> list[str]:
        """What was found, in sentences."""
        c, n = self.certificate, len(self.population.tasks)
        return [
            f"from {n} tasks, {self.log.n_states} states, {self.log.n_actions} actions",
            f"policy: {self.name}, one for every new task, without learning in it",
            f"average over tasks of the population: {c.value:.4g}, at least {c.lower.value:.4g}; no policy, not even "
            f"one that learns, is worth more than {c.best.value:.4g} (confidence {100 * c.confidence:.0f}% in all)",
        ]


def page_of(found: TasksPlan, made: str) -> Page:
    """The report."""
    notes = [f"Note: {note}." for note in found.population.notes()]
    header = ["state", "action", "transitions", "rewards", "tasks that tried it"]
    rows = found.differences()
    certificate: Any = found.certificate
    numbers = Table(
        ["", "value"],
        [
            ["the policy, on average over tasks", f"{certificate.value:.6g}"],
            ["at least", f"{certificate.lower.value:.6g}"],
            ["the best that any policy can do, at most", f"{certificate.best.value:.6g}"],
            ["so at most this far below the best", f"{certificate.regret.value:.6g}"],
        ],
        caption=f"{certificate.lower.method}; {certificate.best.method}",
    )
    chosen = Table(["policy", "mean over tasks"], [[name, f"{x:.4g}"] for name, x in found.candidates.items()])
    sites = Table(
        ["task", "steps", "the policy there"],
        [
            [plain(task), str(int(counts.sum())), f"{value:.4g}"]
            for task, counts, value in zip(found.population.tasks, found.population.counts, found.per_task, strict=True)
        ],
        caption="By the mean of what is believed of each task after its own log: an estimate, not a bound.",
    )
    return Page(
        "A policy for the next of many similar tasks",
        " ".join(f"{line[:1].upper()}{line[1:]}." for line in found.lines()),
        [
            Section("What is certain", notes, tables=[numbers]),
            Section("Which policies were compared", tables=[chosen]),
            Section(
                "What differs between tasks",
                [
                    "The standard deviation between tasks of where a step leads, and of what it pays as a share of the "
                    "range of rewards: 0 where all tasks behave alike, up to 1."
                    if rows
                    else "No pair of state and action was tried in two tasks: nothing says what differs."
                ],
                tables=[Table(header, rows)] if rows else [],
            ),
            Section("The tasks that were seen", tables=[sites]),
            using_section("policy.json", Names(states=found.log.states, actions=found.log.actions), found.log.initial),
            Section("How it was made", [made]),
        ],
        facts=[("tasks", str(len(found.population.tasks))), ("steps", f"{int(found.population.counts.sum()):,}")],
    )
