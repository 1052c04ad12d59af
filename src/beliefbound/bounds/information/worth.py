"""`Worth`: an interval for what information is worth."""

from dataclasses import dataclass
from typing import Any, Self

import msgspec

from beliefbound.base.errors import ContradictionError, ParameterError
from beliefbound.base.validation import as_flag
from beliefbound.policy import Policy
from beliefbound.policy.results import Entries, Result


class WorthEntries(Entries):
    """A `Worth` in a file."""

    low: float
    high: float
    of: str
    method: str
    exact: bool
    confidence: float
    asymptotic: bool


@dataclass(frozen=True)
class Worth(Result):
    """What information is worth lies in `[low, high]`, in units of value.

    Attributes:
      low, high: the ends; `low` is never negative.
      of: what is known then, such as `EVPI` or `EVPPI of (0, 1)`.
      method: how it was found, in words.
      exact: whether it holds with certainty.
      confidence: probability with which it holds; 1 where it is exact.
      asymptotic: whether that is reached only in the limit of many samples.

    >>> Worth(0.5, 0.75, "EVPI", "E max − bracket")
    Worth(EVPI in [0.5, 0.75], exact)
    """

    low: float
    high: float
    of: str
    method: str
    exact: bool = True
    confidence: float = 1.0
    asymptotic: bool = False

    _kind, _entries, _version = "worth", WorthEntries, 2

    def __post_init__(self) -> None:
        as_flag(self.exact, "exact")
        if not 0.0 <= self.low <= self.high:
            raise ParameterError(f"the {self.of} lies in [{self.low}, {self.high}], which is no interval above 0")
        if self.exact != (self.confidence == 1.0) or not 0.0 <= self.confidence <= 1.0:
            raise ParameterError(f"an exact worth has confidence 1, any other less; it is {self.confidence}")

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"{100 * self.confidence:.4g}% confidence"
        how += ", asymptotic" if self.asymptotic else ""
        return f"Worth({self.of} in [{self.low:.6g}, {self.high:.6g}], {how})"

    def to_dict(self) -> dict[str, Any]:
        """The numbers and words, ready for JSON."""
        return {
            "low": float(self.low),
            "high": float(self.high),
            "of": self.of,
            "method": self.method,
            "exact": bool(self.exact),
            "confidence": float(self.confidence),
            "asymptotic": bool(self.asymptotic),
        }

    def _rows(self) -> list[tuple[str, str]]:
        return [(self.of, f"between {self.low:.6g} and {self.high:.6g}"), ("method", self.method)]

    @classmethod
    def _from_entries(cls, entries: WorthEntries, policy: Policy | None) -> Self:
        return cls(**msgspec.structs.asdict(entries))


def between(
    low: float, high: float, of: str, method: str, *, confidence: float = 1.0, asymptotic: bool = False
) -> Worth:
    """An interval above 0. Ends that cross are an error where they are proven; where they are sampled one of them has
    failed, and the interval holds both."""
    low, high = (max(0.0, float(x)) for x in (low, high))
    if low > high and confidence == 1.0:
        raise ContradictionError(f"the {of} is at least {low:.12g} and at most {high:.12g}, which is a defect")
    ends, exact = (min(low, high), max(low, high)), confidence == 1.0
    return Worth(*ends, of, method, exact=exact, confidence=confidence, asymptotic=asymptotic)
