"""`Bound` and `Bracket`: numbers that carry their proof.

A bound is *exact* when it is a theorem about this belief (up to rounding), *estimated* when it rests on samples; then
`value` is the conservative end of a one-sided interval that holds with probability `confidence`.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from beliefbound.errors import ParameterError
from beliefbound.policy import Policy
from beliefbound.validation import as_flag, shown

Side = Literal["lower", "upper"]


@dataclass(frozen=True)
class Bound:
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

    def __post_init__(self) -> None:
        if not isinstance(self.side, str) or self.side not in ("lower", "upper"):
            raise ParameterError(f"side is {shown(self.side)}; a bound is 'lower' or 'upper'")
        exact = as_flag(self.exact, "exact")
        for name in ("value", "confidence", "estimate"):
            given = getattr(self, name)
            if not (
                isinstance(given, int | float | np.floating | np.integer) or (given is None and name == "estimate")
            ):
                raise ParameterError(f"the {name} of a bound is {shown(given)}; give a number")
        if self.value != self.value:
            raise ParameterError(f"the {self.side} bound by {self.method} is not a number")
        if exact != (self.confidence == 1.0):
            raise ParameterError(f"an exact bound has confidence 1, an estimated one less; got {self.confidence}")
        if self.estimate is None:
            object.__setattr__(self, "estimate", self.value)

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"{100 * self.confidence:.4g}% confidence, {self.n_samples} samples"
        return f"Bound({self.side} {self.value:.6g}, {how}, {self.method})"

    def __float__(self) -> float:
        return float(self.value)
