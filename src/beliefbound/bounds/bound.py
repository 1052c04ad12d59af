"""`Bound` and `Regret`: numbers that carry their proof.

Either is *exact* when it is a theorem about this belief, rounding included, *estimated* when it rests on samples; then
`value` is the conservative end of a one-sided interval that holds with probability `confidence`.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray, as_flag, shown
from beliefbound.policy import Policy
from beliefbound.policy.results import Entries, Result, array_of

Side = Literal["lower", "upper"]
BAYES = "Bayes-optimal value"
VALUE = "value of the policy"


class Kind(StrEnum):
    """Which algorithm proves a bound: whose value it is, from below; which relaxation, from above. `Bound.method` says
    the same to people, with sizes and names; programs ask for the kind.

    >>> from beliefbound import FiniteBelief, qmdp
    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> qmdp(belief, discount=0.5).kind
    <Kind.QMDP: 'QMDP'>
    """

    GIVEN = "given"  # brought by somebody, proven elsewhere
    POLICY = "policy"  # a policy that somebody asks about, valued exactly or by simulation
    TABLE = "table"  # a memoryless policy, made on other models than those that value it
    MMBI = "MMBI"
    CADP = "CADP"
    EXPECTED_MDP = "expected MDP"  # the optimal policy of the expected MDP
    MODEL_OPTIMUM = "model optimum"  # the optimal policy of one of the models
    ALPHA_VECTORS = "alpha vectors"  # a finite-state controller, by point-based backups
    MIXTURE = "mixture"  # of policies, against the worst prior of a set
    E_MAX = "E max"  # from above: told the model at once
    QMDP = "QMDP"  # from above: told the model after the first action; from below: the policy that is greedy for it
    PAIRS = "pairs"  # from above: told which of two models
    CELLS = "cells"  # from above: told which of a few models
    LOOK_AHEAD = "look-ahead"  # some exact steps, and then QMDP, or the best of a pool of policies
    HISTORIES = "histories"  # search in a graph of histories
    DISTINCT_BELIEFS = "distinct beliefs"  # search in a graph in which equal beliefs are one node
    SCENARIOS = "scenarios"  # an information relaxation on a graph of histories, and the policy that looks ahead on it
    PARTICLES = "particles"  # the same under a belief with counts: relaxations on particles, and re-planning on them
    DRAWN = "drawn"  # sets of models drawn from the belief: their brackets from above, a policy made on one from below
    LINEAR_PROGRAM = "linear program"  # from above: features of beliefs, every constraint checked
    EXTREMES = "extremes"  # what any policy earns on any model
    BRANCH_AND_BOUND = "branch and bound"  # from above, of memoryless policies alone


class RegretEntries(Entries):
    """A `Regret` in a file."""

    value: float
    method: str
    exact: bool
    confidence: float
    estimate: float
    n_samples: int
    asymptotic: bool


class BoundEntries(RegretEntries):
    """A `Bound` in a file; `proof` is its kind (`kind` says what kind of result a file holds)."""

    side: Side
    proof: Kind
    of: str
    values: list[float] | None


class _Proven(Result):
    """What a bound and a regret share: how sure they are."""

    value: float
    method: str
    exact: bool
    confidence: float
    estimate: float | None
    n_samples: int
    asymptotic: bool

    def _check(self, what: str) -> None:
        as_flag(self.exact, "exact")
        for name in ("value", "confidence", "estimate"):
            given = getattr(self, name)
            number = isinstance(given, int | float | np.floating | np.integer)
            if not number and not (given is None and name == "estimate"):
                raise ParameterError(f"the {name} of the {what} is {shown(given)}; give a number")
        if self.value != self.value:
            raise ParameterError(f"the {what} by {self.method} is not a number")
        if self.exact != (self.confidence == 1.0) or not 0.0 <= self.confidence <= 1.0:
            raise ParameterError(
                f"an exact one has confidence 1, an estimated one less; the {what} has {self.confidence}"
            )
        if as_flag(self.asymptotic, "asymptotic") and self.exact:
            raise ParameterError(f"the {what} is exact; what holds with certainty is not asymptotic")
        if self.estimate is None:
            object.__setattr__(self, "estimate", self.value)  # a default that depends on another field

    @property
    def _how(self) -> str:
        return "exact" if self.exact else f"{100 * self.confidence:.4g}% confidence, {self.n_samples} samples"

    @property
    def centre(self) -> float:
        """`estimate`, which is `value` for exact ones."""
        return self.value if self.estimate is None else self.estimate

    def __float__(self) -> float:
        return float(self.value)

    def to_dict(self) -> dict[str, Any]:
        """The numbers and words, ready for JSON."""
        return {
            "value": float(self.value),
            "method": self.method,
            "exact": bool(self.exact),
            "confidence": float(self.confidence),
            "estimate": float(self.centre),
            "n_samples": int(self.n_samples),
            "asymptotic": bool(self.asymptotic),
        }

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("value", f"{self.value:.6g}"), ("holds", "with certainty" if self.exact else self._how)]
        if not self.exact:
            rows.append(("estimate", f"{self.centre:.6g}"))
        return [*rows, ("method", self.method)]

    @staticmethod
    def _read_policy(file: Path) -> Policy:
        from beliefbound.bounds.policy_files import load_policy  # whose policies have bounds themselves

        return load_policy(file)


@dataclass(frozen=True)
class Bound(_Proven):
    """A one-sided bound on the Bayes-optimal value, and how it was proven.

    Attributes:
      value: the bound. For an estimated one, the conservative end of its interval.
      side: `"lower"` or `"upper"`.
      method: how it was proven, in words.
      exact: whether it holds with certainty.
      confidence: probability that `value` is on the right side; 1 for exact bounds.
      estimate: the centre of the interval; equals `value` for exact bounds.
      n_samples: samples behind the estimate; 0 for exact bounds.
      policy: for lower bounds, a policy that attains it, where there is one to hand over.
      values: `[s]`, the same bound from each state by itself, where it comes with them.
      of: what is bounded; other than the Bayes-optimal value only where it says so.
      kind: which algorithm proves it; `Kind.GIVEN` for one that somebody brings.
      asymptotic: whether its confidence is reached only in the limit of many samples.

    `summary`, `to_dict`, `save` and `load` as for every result; there is no picture of one number.

    >>> Bound(1.5, "lower", "MMBI")
    Bound(lower 1.5, exact, MMBI)
    """

    value: float
    side: Side
    method: str
    exact: bool = True
    confidence: float = 1.0
    estimate: float | None = None
    n_samples: int = 0
    policy: Policy | None = field(default=None, repr=False, compare=False)
    values: FloatArray | None = field(default=None, repr=False, compare=False)
    of: str = BAYES
    kind: Kind = Kind.GIVEN
    asymptotic: bool = False

    _kind, _entries, _version = "bound", BoundEntries, 2

    def __post_init__(self) -> None:
        if not isinstance(self.side, str) or self.side not in ("lower", "upper"):
            raise ParameterError(f"side is {shown(self.side)}; a bound is 'lower' or 'upper'")
        if not isinstance(self.kind, Kind):
            raise ParameterError(f"kind is {shown(self.kind)}; give one of `bounds.Kind`, such as Kind.GIVEN")
        self._check(f"{self.side} bound")

    def __repr__(self) -> str:
        of = "" if self.of == BAYES else f" on the {self.of}"
        return f"Bound({self.side} {self.value:.6g}{of}, {self._how}, {self.method})"

    def to_dict(self) -> dict[str, Any]:
        """The numbers and words, ready for JSON."""
        values = None if self.values is None else self.values.tolist()
        return super().to_dict() | {"side": self.side, "proof": str(self.kind), "of": self.of, "values": values}

    def _rows(self) -> list[tuple[str, str]]:
        return [("bounds", f"the {self.of} from {'below' if self.side == 'lower' else 'above'}"), *super()._rows()]

    @classmethod
    def _from_entries(cls, entries: BoundEntries, policy: Policy | None) -> Self:
        given = msgspec.structs.asdict(entries)
        given["kind"], given["policy"] = given.pop("proof"), policy
        given["values"] = None if entries.values is None else array_of(entries.values, (None,), "values")
        return cls(**given)


@dataclass(frozen=True)
class Regret(_Proven):
    """At most so much is missing: how far a policy can be from Bayes-optimal, or what information can be worth.

    Attributes:
      value: at most this, in units of value; never negative. For an estimated one, the conservative end.
      method: how it was proven, in words.
      exact, confidence, estimate, n_samples, asymptotic: as for `Bound`.
      policy: the policy whose regret it is, where there is one to hand over.

    >>> Regret(0.5, "QMDP, minus the policy's exact value")
    Regret(at most 0.5, exact, QMDP, minus the policy's exact value)
    """

    value: float
    method: str
    exact: bool = True
    confidence: float = 1.0
    estimate: float | None = None
    n_samples: int = 0
    policy: Policy | None = field(default=None, repr=False, compare=False)
    asymptotic: bool = False

    _kind, _entries, _version = "regret", RegretEntries, 2

    def __post_init__(self) -> None:
        self._check("regret")
        if self.value < 0.0:
            raise ParameterError(f"the regret by {self.method} is {self.value:.6g}; it is never negative")

    def __repr__(self) -> str:
        return f"Regret(at most {self.value:.6g}, {self._how}, {self.method})"

    @classmethod
    def _from_entries(cls, entries: RegretEntries, policy: Policy | None) -> Self:
        return cls(**msgspec.structs.asdict(entries), policy=policy)


def missing(upper: float, lower: float, *, exact: bool = True) -> float:
    """`upper − lower`; an error where that is below 0, as bounds allow for rounding."""
    if upper < lower:
        raise ParameterError(
            f"the upper bound {upper:.6g} is below the value {lower:.6g}, so they are not of the same belief, start, "
            f"discount and horizon" + ("" if exact else ", or one of them is among those that fail")
        )
    return upper - lower
