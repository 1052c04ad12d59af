"""Sets of priors over finitely many models, and games against whoever picks from them.

    all      every prior
    cvar:a   density at most 1/a:  w_m ≤ w⁰_m / a       (the conditional value at risk at level a)
    l1:r     within r in L1:       Σ_m |w_m − w⁰_m| ≤ r

`w⁰` are the weights of the belief. `worst` minimises `w·x` over a set in closed form, so a lower bound owes nothing to
the tolerances of a solver; `play` solves the game between value vectors and priors by linear programming (HiGHS), whose
prior may lie outside by its tolerances: `inside` moves it towards `w⁰`, which is in every set, until it is a member in
exact arithmetic. An upper bound at that prior is one on the value of the set.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray, shown
from beliefbound.models.enclosing import rounding_of

KINDS = ("all", "cvar", "l1")
_SPARES = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9)  # of the way to the centre: what rounding may take


class PriorSet(NamedTuple):
    """A set around `centre[m]`; `level` is `a` or `r`."""

    kind: str
    level: float
    centre: FloatArray

    def __str__(self) -> str:
        return "all" if self.kind == "all" else f"{self.kind}:{self.level:g}"

    @property
    def words(self) -> str:
        """The set in words."""
        if self.kind == "all":
            return "all priors"
        if self.kind == "cvar":
            return f"priors of density at most {1 / self.level:.4g} (CVaR at level {self.level:g})"
        return f"priors within {self.level:g} in L1"

    def contains(self, prior: FloatArray) -> bool:
        """Whether a prior `[m]` is in the set, in exact arithmetic; weights count as shares of their sum.

        >>> prior_set("l1:0.2", np.array([0.5, 0.5])).contains(np.array([0.6, 0.4]))
        True
        """
        given, centre = _shares(prior), _shares(self.centre)
        if (np.asarray(prior) < 0.0).any():
            return False
        if self.kind == "cvar":
            return all(w * Fraction(self.level) <= c for w, c in zip(given, centre, strict=True))
        distance = sum(abs(w - c) for w, c in zip(given, centre, strict=True))
        return self.kind == "all" or distance <= Fraction(self.level)

    def inside(self, prior: FloatArray) -> FloatArray:
        """The prior itself where it is in the set, else one that is, on the way from there to the centre."""
        prior = np.clip(prior, 0.0, None)
        if self.kind == "cvar":
            prior = np.where(self.centre > 0.0, prior, 0.0)
        prior, centre = prior / prior.sum(), self.centre / self.centre.sum()
        away = prior - centre
        for spare in (0.0, *_SPARES):
            if self.contains(prior):
                return prior
            share = 1.0
            if self.kind == "cvar":
                over = away > 0.0
                share = float(((centre / self.level - centre)[over] / away[over]).min(initial=1.0))
            elif self.kind == "l1":
                share = self.level / max(float(np.abs(away).sum()), self.level)
            prior = centre + max(0.0, share * (1.0 - spare)) * away
            prior = np.clip(prior, 0.0, None)
            prior = prior / prior.sum()
        return self.centre.copy()

    def worst(self, x: FloatArray) -> tuple[float, FloatArray]:
        """`(min w·x, w)` over the set."""
        if self.kind == "all":
            w = np.zeros(len(x))
            w[int(np.argmin(x))] = 1.0
        elif self.kind == "cvar":
            order = np.argsort(x, kind="stable")
            cap = self.centre[order] / self.level
            before = np.concatenate([[0.0], np.cumsum(cap)[:-1]])
            w = np.zeros(len(x))
            w[order] = np.clip(1.0 - before, 0.0, cap)
        else:
            w, order = self.centre.copy(), np.argsort(-x, kind="stable")
            least = int(np.argmin(x))
            moved = min(0.5 * self.level, 1.0 - float(w[least]))
            for m in order:
                if m != least and moved > 0.0:
                    taken = min(moved, float(w[m]))
                    w[m], w[least], moved = w[m] - taken, w[least] + taken, moved - taken
        return float(w @ x), w

    def least(self, x: FloatArray) -> float:
        """`min w·x` over the set, rounded down."""
        value, w = self.worst(x)
        return value - rounding_of(4 * len(x)) * float((w + self.centre) @ np.abs(x))

    def play(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`(chances [i], prior [m])`: the mixture of value vectors `[i,m]` that is best against the worst prior, and
        the prior of the set that is worst for the best of them."""
        from scipy.optimize import linprog

        n, m = values.shape
        unit = float(np.abs(values).max()) or 1.0
        extra = 2 * m if self.kind == "l1" else 0  # w = centre + up − down
        cost = np.zeros(m + extra + 1)
        cost[-1] = 1.0
        below = np.zeros((n + (extra > 0), m + extra + 1))
        below[:n, :m], below[:n, -1] = values / unit, -1.0
        limit = np.zeros(len(below))
        equal, target = [np.concatenate([np.ones(m), np.zeros(extra + 1)])], [1.0]
        bounds: list[tuple[float | None, float | None]] = [(0.0, None)] * m
        if self.kind == "cvar":
            bounds = [(0.0, float(cap)) for cap in self.centre / self.level]
        if extra:
            below[-1, m:-1], limit[-1] = 1.0, self.level
            for i in range(m):
                row = np.zeros(m + extra + 1)
                row[[i, m + i, 2 * m + i]] = 1.0, -1.0, 1.0
                equal.append(row)
                target.append(float(self.centre[i]))
        bounds += [(0.0, None)] * extra + [(None, None)]
        found: Any = linprog(
            cost, A_ub=below, b_ub=limit, A_eq=np.array(equal), b_eq=np.array(target), bounds=bounds, method="highs"
        )
        if found.x is None:
            raise ParameterError(f"the game against {self.words} could not be solved: {found.message}")
        chances = np.clip(-found.ineqlin.marginals[:n], 0.0, None)
        prior = np.clip(found.x[:m], 0.0, None)
        return chances / chances.sum(), self.inside(prior)


def _shares(weights: FloatArray) -> list[Fraction]:
    """Weights as exact shares of their sum."""
    given = [Fraction(float(w)) for w in weights]
    total = sum(given)
    return [w / total for w in given]


def prior_set(text: Any, centre: FloatArray) -> PriorSet:
    """A set from its name: `all`, `cvar:0.2`, `l1:0.1`.

    >>> prior_set("cvar:0.5", np.array([0.5, 0.5])).worst(np.array([1.0, 3.0]))[0]
    1.0
    """
    kind, _, number = text.partition(":") if isinstance(text, str) else ("", "", "")
    try:
        level = float(number) if number else 1.0
    except ValueError:
        level = math.nan
    wrong = kind not in KINDS or (kind == "all") == bool(number) or not level > 0.0
    if wrong or level > (2.0 if kind == "l1" else 1.0):
        raise ParameterError(
            f"priors is {shown(text)}; give 'all', 'cvar:a' with 0 < a <= 1, or 'l1:r' with 0 < r <= 2"
        )
    return PriorSet(kind, level, centre)
