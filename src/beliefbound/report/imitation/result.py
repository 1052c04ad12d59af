"""What `beliefbound imitate` found (`jobs.imitation`): the data that sentences, pictures and the page are made of."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.bounds.bracket import Bracket
from beliefbound.logs.log import plain
from beliefbound.planning.inverse.result import Demonstrated
from beliefbound.policy import StationaryPolicy
from beliefbound.policy.naming import Names
from beliefbound.report.from_log.headline import above

FORMAT, VERSION = "beliefbound imitation", 1


class Mean(NamedTuple):
    """A mean over draws of chains: Normal, with their effective number; right in the limit of long chains."""

    value: float
    low: float
    high: float
    ess: float


class Rival(NamedTuple):
    """Another policy: what it earns, and what the chosen one earns more, draw by draw."""

    name: str
    value: Mean
    gain: Mean


class Question(NamedTuple):
    """What an answer would raise the value of the best of a pool of policies by, on the draws."""

    state: int
    kind: str  # "do": what would they do there? "like": is its reward above or below the median?
    worth: float


@dataclass(frozen=True, eq=False)
class Imitated:
    """What was found from demonstrations.

    Attributes:
      found: the belief, and how far it can be trusted.
      policy, origin: the chosen policy, and how it was made.
      own: what it earns on the draws that it was chosen on.
      value, loss: what it earns, and what the best for each draw earns more; on draws of other chains than it was
        chosen on.
      rivals: other policies.
      support: `[s]`, the share of draws in which the policy's action is optimal.
      bracket: of policies that may learn, on the draws that the policy was chosen on; `None` where not asked for.
      questions: the best first; `everything`: what knowing all of it would be worth, in the same sense.
      confidence: of each interval.
      grid: rows and columns of a map of the states, where there is one.
    """

    found: Demonstrated
    policy: StationaryPolicy
    origin: str
    own: float
    value: Mean
    loss: Mean
    rivals: tuple[Rival, ...]
    support: FloatArray
    bracket: Bracket | None
    questions: tuple[Question, ...]
    everything: float
    confidence: float
    grid: tuple[int, int] | None

    @property
    def names(self) -> Names:
        """Of states and actions."""
        return Names(self.found.belief.states, self.found.belief.actions)

    def loss_words(self) -> str:
        """The certificate; an estimate where the chains have not met."""
        if not self.found.met:
            return (
                f"the policy loses about {self.loss.value:.4g} of {self.best:.4g} against the best for whatever they "
                f"want, on average over what the demonstrations leave possible; the chains have not met, so that is a "
                f"guess: give more steps"
            )
        return (
            f"the policy loses at most {above(self.loss.high)} against the best for whatever they want, on average "
            f"over what the demonstrations leave possible (about {self.loss.value:.4g} of {self.best:.4g}; "
            f"{100 * self.confidence:.4g}% confidence, in the limit of long chains)"
        )

    @property
    def best(self) -> float:
        """What the best for each draw earns, on average."""
        return self.value.value + self.loss.value

    def want_words(self) -> str:
        """Where rewards seem to be highest."""
        mean, spread = self.found.reward_mean.max(axis=1), self.found.reward_spread
        order = np.argsort(-mean, kind="stable")[:3]
        told = ", ".join(
            f"{self.state(int(s))} ({mean[s]:.2f} ± {spread[s, int(self.found.reward_mean[s].argmax())]:.2f})"
            for s in order
        )
        return f"they seem to want {told}" + (", as far as anything can be said" if self.found.looks_random else "")

    def question_words(self) -> str:
        """The question most worth asking; nothing where none is worth anything."""
        if not self.questions or self.questions[0].worth <= 0.0:
            return "no single answer would change the policy"
        first = self.questions[0]
        return f"ask next: {self.question(first)} (worth about {first.worth:.3g}; knowing all: {self.everything:.3g})"

    def question(self, asked: Question) -> str:
        """A question in words."""
        if asked.kind == "do":
            return f"what would you do in {self.state(asked.state)}?"
        median = float(np.median(self.found.belief.rewards[:, asked.state].max(axis=1)))
        return f"is the reward of {self.state(asked.state)} above {median:.2f}?"

    def state(self, s: int) -> str:
        """A state as a sentence names it."""
        name = plain(self.found.demonstrations.log.state_name(s))
        return name if self.found.belief.states else f"state {name}"

    def to_dict(self) -> dict[str, Any]:
        """The content of `imitation.json`: numbers and words."""
        log, belief = self.found.demonstrations.log, self.found.belief
        actions = self.policy.actions
        assert actions is not None
        return {
            "format": FORMAT,
            "version": VERSION,
            "confidence": self.confidence,
            "policy": {"files": ["policy.json", "policy.csv"], "origin": self.origin},
            "value": self.value._asdict(),
            "loss": self.loss._asdict(),
            "rivals": [{"name": r.name, "value": r.value._asdict(), "gain": r.gain._asdict()} for r in self.rivals],
            "bracket": None
            if self.bracket is None
            else {"lower": self.bracket.lower.value, "upper": self.bracket.upper.value},
            "states": [
                {
                    "name": log.state_name(s),
                    "action": log.action_name(int(actions[s])),
                    "support": float(self.support[s]),
                    "shown": int(self.found.demonstrations.visits[:, s].sum()),
                }
                for s in range(belief.n_states)
            ],
            "questions": [
                {"state": log.state_name(q.state), "kind": q.kind, "words": self.question(q), "worth": q.worth}
                for q in self.questions
            ],
            "everything": self.everything,
            "belief": {"file": "posterior.npz", **self.found.to_dict()},
        }
