"""What states, actions and models are called in tables, summaries, pictures and files.

Beliefs that come from files know names. Results keep them as `Names`, and what prints asks for one: the name where
there is one, else the kind and the number.
"""

import inspect
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import check_names
from beliefbound.policy import Policy


class NamesEntries(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """`Names` in a file."""

    states: list[str] | None = None
    actions: list[str] | None = None
    models: list[str] | None = None


class Names(NamedTuple):
    """Names of states, actions and models; `None` where they have none.

    >>> names = Names(states=("dry", "wet"))
    >>> names.pair(1, 0), names.model(3)
    ('wet, action 0', 'model 3')
    """

    states: tuple[str, ...] | None = None
    actions: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None

    def state(self, s: int) -> str:
        """A state."""
        return f"state {s}" if self.states is None else self.states[s]

    def action(self, a: int) -> str:
        """An action."""
        return f"action {a}" if self.actions is None else self.actions[a]

    def model(self, m: int) -> str:
        """A model."""
        return f"model {m}" if self.models is None else self.models[m]

    def the_model(self, m: int) -> str:
        """A model within a sentence: `model wet`, `model 3`."""
        return f"model {m if self.models is None else self.models[m]}"

    def pair(self, s: int, a: int) -> str:
        """A state and an action."""
        return f"{self.state(s)}, {self.action(a)}"

    def to_dict(self) -> dict[str, list[str]]:
        """Those that there are, ready for JSON."""
        return {kind: list(held) for kind, held in self._asdict().items() if held is not None}

    def save(self, policy: Policy, file: Path) -> None:
        """Write a policy with the names that its kind of file can hold."""
        given: dict[str, Any] = {"state_names": self.states, "action_names": self.actions}
        known = inspect.signature(policy.save).parameters
        policy.save(file, **{key: held for key, held in given.items() if held is not None and key in known})

    @classmethod
    def from_entries(
        cls, entries: NamesEntries, *, states: int | None = None, actions: int | None = None, models: int | None = None
    ) -> "Names":
        """What `to_dict` gave, for so many of each; where that is not known, however many there are."""
        return cls(
            _checked("state", entries.states, states),
            _checked("action", entries.actions, actions),
            _checked("model", entries.models, models),
        )


def printable(text: str) -> str:
    """What a terminal, a line of a table or a picture may show: control characters, line ends too, become dots.

    >>> printable("wet\\nyear")
    'wet·year'
    """
    return "".join(letter if letter.isprintable() else "·" for letter in text)


def names_of(belief: Any) -> Names:
    """The names that a belief knows."""
    return Names(*(getattr(belief, kind, None) for kind in ("states", "actions", "model_names")))


def _checked(kind: str, held: list[str] | None, count: int | None) -> tuple[str, ...] | None:
    return None if held is None else check_names(held, len(held) if count is None else count, kind, ParameterError)
