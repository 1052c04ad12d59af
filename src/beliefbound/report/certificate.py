"""What `beliefbound bound` found, in sentences and as a page.

*The certified policy* attains the lower bound, and the certificate is about it; it mostly learns as it acts.
*The memoryless policy* is a table to read and to use anywhere, with a value and a gap of its own: the upper bound minus
its exact value.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from beliefbound.beliefs import FiniteBelief
from beliefbound.beliefs.folder import ModelFolder
from beliefbound.bounds.bound import Bound, Kind, Regret
from beliefbound.bounds.bracket import Bracket
from beliefbound.bounds.finite.decision_graph import DecisionGraph
from beliefbound.bounds.information.result import Information
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.bounds.sensitivity import Sensitivity
from beliefbound.planning.plan import Plan
from beliefbound.policy.naming import names_of, printable
from beliefbound.report.beside import sensitivity_sections, sensitivity_words, start_sections, start_words
from beliefbound.report.decision import decision_sections, write_decision
from beliefbound.report.decision_graph import graph_sections
from beliefbound.report.figures import figure, save
from beliefbound.report.information import information_sections, information_words
from beliefbound.report.page import REPORT, Page, Picture, Section, Table, write_page
from beliefbound.report.using import using_section

_SHOWN = 40  # states whose actions the page lists


class Memoryless(NamedTuple):
    """The memoryless policy of a certificate.

    Attributes:
      plan: the policy, and its exact value.
      gap: how far it can be from Bayes-optimal.
      most: no memoryless policy is worth more; `None` where that was not searched for.
      proven: whether it is the best one, but for rounding.
    """

    plan: Plan
    gap: Regret
    most: float | None
    proven: bool

    def words(self) -> str:
        """What is true of it, and where it is."""
        return (
            f"The memoryless policy earns exactly {self.plan.value():.6g} on the training models, within "
            f"{self.gap.value:.6g} of Bayes-optimal, {_holds(self.gap.confidence)}; {self._best}; it is in "
            "memoryless.json and memoryless.csv."
        )

    @property
    def _best(self) -> str:
        staged = self.plan.policy.horizon is not None
        if self.proven:
            each = "memoryless policy" if staged else "policy of one action per state"
            return f"it is the best {each}, proven"
        if self.most is None:
            return "it is the best that a local search found, and nothing is proven about the best memoryless one"
        return f"it is the best that was found, and no memoryless policy earns more than {self.most:.6g}, proven"


@dataclass(frozen=True, eq=False)
class Certificate:
    """What was found, and where it was written.

    Attributes:
      folder: what was read; `models` from where, and `name` its name.
      bracket: the bracket; `bracket.policy` is the certified policy, in the file `policy`.
      memoryless: the memoryless policy, in the files `memoryless.json` and `memoryless.csv`.
      checks: its value on the folder's other models.
      interrupted: whether somebody ended the search before its time.
      machine: the kind of machine that made it.
      place: the folder with the files.
      graph: a decision graph of few nodes, in the files `controller.json` and `controller.npz`; where it was asked for.
      information: what to measure next, in the file `information.json`; where it was asked for.
      starts: a bracket from each start state, whose first actions are in `decisions.csv`; where it was asked for.
      sensitivity, moving: policies as the weights of one model, or two, move; where that was asked for.
    """

    folder: ModelFolder
    models: str
    name: str
    bracket: Bracket
    memoryless: Memoryless
    checks: dict[str, float]
    interrupted: bool
    machine: str
    place: Path
    graph: DecisionGraph | None = None
    information: Information | None = None
    starts: dict[int, Bracket] | None = None
    sensitivity: Sensitivity | None = None
    moving: list[int] | None = None

    @property
    def plan(self) -> Plan:
        """The memoryless policy's plan."""
        return self.memoryless.plan

    @property
    def policy(self) -> Path:
        """The file of the certified policy: an archive where it learns, a table where it is one."""
        return self.place / ("policy.npz" if AnyPolicy(self.bracket.policy).as_table() is None else "policy.json")

    @property
    def report(self) -> Path:
        """The page."""
        return self.place / REPORT

    def kind_words(self) -> str:
        """What kind of policy the certified one is."""
        if self.policy.suffix == ".npz":
            return "learns"
        return f"a table: one action per {'state' if self.bracket.policy.horizon is None else 'stage and state'}"

    def decision_words(self) -> list[str]:
        """What is proven about the first action, and how far weights may move before it is not."""
        decision, belief = self.bracket.decision, self.folder.training
        if decision is None:
            return []
        words = [decision.describe() + "."]
        if decision.stability is not None:
            narrow = int(np.argmin(decision.stability[:, 1] - decision.stability[:, 0]))
            (low, high), now = decision.stability[narrow], belief.weights[narrow]
            name = printable(names_of(belief).model(narrow))
            words.append(
                "It stays proven while any one model's weight moves within its interval and the others keep their "
                f"proportions; the narrowest is that of {name}, {low:.4g} to {high:.4g} (now {now:.4g})."
            )
        return words

    def policy_words(self) -> list[str]:
        """What is true of each of the two policies, and where it is."""
        certified = f"The certified policy ({self.kind_words()}) is in {self.policy.name}: it is within "
        certified += f"{self.bracket.regret.value:.6g} of Bayes-optimal, {_holds(self.bracket.regret.confidence)}."
        words = [certified, self.memoryless.words()]
        if self.graph is not None:
            words.append(f"{self.graph.words(self.bracket.upper.value)} They are in controller.json.")
        words += [f"On the {name} the memoryless policy earns {value:.6g}." for name, value in self.checks.items()]
        return words

    def information_words(self) -> list[str]:
        """What to measure next, where that was asked for."""
        return [] if self.information is None else information_words(self.information)

    def beside_words(self) -> list[str]:
        """First actions by start, and which policy as weights move, where that was asked for."""
        words = [] if self.starts is None else start_words(self.starts, names_of(self.folder.training))
        return words + ([] if self.sensitivity is None else sensitivity_words(self.sensitivity))

    def made_words(self) -> str:
        """How to make it again."""
        found = self.bracket
        how = f"seed {found.seed}, effort {found.effort}, version {found.version}, on {self.machine}"
        return f"`beliefbound verify bounds.json {self.models}` makes the same certificate again: {how}."


def best_rows(bounds: tuple[Bound, ...]) -> tuple[list[str], list[list[str]]]:
    """Header and formatted cells of the best bound of each kind, in order of value: the two sides meet in the
    middle."""
    best: dict[tuple[str, Kind], Bound] = {}
    for bound in bounds:
        kind = (bound.side, bound.kind)
        sign = 1.0 if bound.side == "lower" else -1.0
        if kind not in best or sign * bound.value > sign * best[kind].value:
            best[kind] = bound
    rows = [
        [
            bound.method,
            bound.side,
            f"{bound.value:.6g}",
            "" if bound.exact else f"{bound.estimate:.6g}",
            "proven" if bound.exact else f"{100 * bound.confidence:.4g}%",
        ]
        for bound in sorted(best.values(), key=lambda bound: (bound.side, bound.value))
    ]
    return ["how", "side", "bound", "estimate", "holds"], rows


def write_certificate(result: Certificate, place: Path) -> None:
    """Write the pictures, of the bracket, the decision, the graph and the ranking, and `report.html`."""
    with figure() as (drawn, axes):
        result.bracket.plot(axes)
        picture = save(drawn, place / "bracket")[1]
    folder, found = result.folder, result.bracket
    decision = write_decision(found, place)
    belief = folder.training
    header, rows = best_rows(found.bounds)
    ends = {f"{found.lower.value:.6g}", f"{found.upper.value:.6g}"}
    table = Table(
        header,
        rows,
        "The best bound of each kind; all of them are in bounds.json. An estimated one is the conservative end of an "
        "interval that holds with the probability given.",
        frozenset(i for i, row in enumerate(rows) if row[2] in ends),
    )
    early = " The search was interrupted: more time would have brought a narrower one." if result.interrupted else ""
    summary = [line.strip() for line in found.summary().splitlines()[1:]]
    page = Page(
        title=f"What {result.name} is worth",
        lead=(
            f"Acting Bayes-optimally is worth between {found.lower.value:.6g} and {found.upper.value:.6g}: "
            f"a bracket {100 * found.relative_gap:.2g}% wide, {_holds(found.confidence)}.{early}"
        ),
        facts=[
            ("models", str(belief.n_models)),
            ("states", str(belief.n_states)),
            ("actions", str(belief.n_actions)),
            ("discount", f"{folder.discount:g}"),
            ("rewards", belief.reward_signal),
        ],
        sections=[
            Section(
                "The bracket closing",
                pictures=[Picture(picture, "Lower and upper bound over time; dots are sampled bounds.")],
            ),
            *decision_sections(found, belief, result.decision_words(), decision),
            *start_sections(result.starts, folder.initial, names_of(belief)),
            Section("What is proven and what is estimated", summary, [table]),
            Section(
                "Two policies to use",
                [*result.policy_words(), f"The memoryless policy is the {result.plan.note}."],
                _policy_tables(result.plan, folder.training),
            ),
            using_section(result.policy.name, names_of(belief), folder.initial),
            Section("How to check it", [result.made_words()]),
            *graph_sections(result.graph, found.upper.value, place),
            *information_sections(result.information, place),
            *sensitivity_sections(result.sensitivity, result.moving, place),
            *([Section("What was assumed in reading the folder", folder.notes)] if folder.notes else []),
        ],
    )
    write_page(page, place / REPORT)


def _policy_tables(plan: Plan, belief: FiniteBelief) -> list[Table]:
    """What the memoryless policy does in each state, where one action each is all there is to say."""
    policy = plan.policy
    if policy.horizon is not None:
        return []
    states = belief.states or tuple(map(str, range(belief.n_states)))
    actions = belief.actions or tuple(map(str, range(belief.n_actions)))
    rows = [[state, actions[a]] for state, a in zip(states, policy.actions, strict=True)]
    more = f" The first {_SHOWN} of {len(rows)} states; all are in memoryless.csv." if len(rows) > _SHOWN else ""
    return [Table(["state", "action"], rows[:_SHOWN], "What the memoryless policy does." + more)]


def _holds(confidence: float) -> str:
    return "proven" if confidence == 1.0 else f"with {100 * confidence:.4g}% confidence"
