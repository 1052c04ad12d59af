"""`sensitivity`: which of several policies to choose as the weights of models move; exact for finite beliefs.

With `V[k,m]` the value of policy `k` on model `m`, its expected value under weights `w` is `Σ_m w_m V[k,m]`, a plane
over the weights: no grid point is sampled.

*Two-way.* The weights of two models move, `w_i` and `w_j` with `w_i + w_j ≤ 1`, and all others share the rest in their
proportions: which policy has the highest expected value, for every pair of weights.

*Acceptability.* How probable it is that a policy is the best of them in the model that is true: the weights of the
models in which it is; where several are the best they share. The curve of a model has its weight from 0 to 1, the
others in their proportions. The policy of the highest expected value, the *frontier*, need not be the one that is most
probably the best. Health economists draw the same over a willingness to pay.

Policies whose values on models are simulated have no place here. Values that differ by rounding are the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError, PolicyError
from beliefbound.base.grammar import nearest
from beliefbound.base.validation import FloatArray, IntArray, check_count, check_ids, check_kind, frozen, shown
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.bounds.policy_files import read_policy
from beliefbound.planning.task import FiniteTask
from beliefbound.policy.naming import Names, names_of
from beliefbound.policy.results import axis, html_table, literal

_SAME = 1e-9  # of the largest value: what differs by less is the same


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Policies under weights that move.

    Attributes:
      policies: what they are called, `[k]`.
      values: `[k,m]`, the exact value of each on each model, from the start.
      weights: `[m]`, as the belief has them.
      names: of the models, where they have any.

    >>> found = Sensitivity(("a", "b"), np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([0.2, 0.8]))
    >>> found.best().item(), found.acceptability().tolist()
    (1, [0.2, 0.8])
    """

    policies: tuple[str, ...]
    values: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    names: Names = field(default=Names(), repr=False)

    def expected(self, weights: FloatArray | None = None) -> FloatArray:
        """Expected values `[…,k]` under weights `[…,m]`; default: the belief's."""
        return np.asarray(self.weights if weights is None else weights) @ self.values.T

    def acceptability(self, weights: FloatArray | None = None) -> FloatArray:
        """How probable it is that each policy is the best in the true model, `[…,k]`; they sum to 1."""
        best = self.values >= self.values.max(axis=0) - self._same
        chances: FloatArray = np.asarray(self.weights if weights is None else weights) @ (best / best.sum(axis=0)).T
        return chances

    def best(self, weights: FloatArray | None = None) -> IntArray:
        """Which policy has the highest expected value; the first of several."""
        expected = self.expected(weights)
        first: IntArray = (expected >= expected.max(axis=-1, keepdims=True) - self._same).argmax(axis=-1)
        return first

    def moved(self, weights: Mapping[int, FloatArray]) -> FloatArray:
        """Weights `[…,m]` where those of some models are given and all others share the rest in their proportions, or
        equally where they have none."""
        given = {self._model(m): np.asarray(each, dtype=np.float64) for m, each in weights.items()}
        rest = self.weights.copy()
        rest[[*given]] = 0.0
        if not rest.any():
            rest[[m for m in range(len(rest)) if m not in given]] = 1.0
        left = 1.0 - sum(given.values())
        found = np.multiply.outer(left, rest / rest.sum() if rest.any() else rest)
        for m, each in given.items():
            found[..., m] = each
        return found

    def one_way(self, model: int | str, points: int = 101) -> dict[str, Any]:
        """Columns of a table: `weight` of the model from 0 to 1, `best`, and for each policy its `expected …` value and
        how `acceptable …` it is."""
        weight = np.linspace(0.0, 1.0, check_count(points, "points", least=2))
        weights = self.moved({self._model(model): weight})
        columns: dict[str, Any] = {"weight": weight, "best": [self.policies[k] for k in self.best(weights)]}
        for name, table in (("expected", self.expected(weights)), ("acceptable", self.acceptability(weights))):
            columns |= {f"{name} {policy}": table[:, k] for k, policy in enumerate(self.policies)}
        return columns

    def two_way(self, first: int | str, second: int | str, points: int = 51) -> dict[str, Any]:
        """Columns of a table: `first` and `second`, the weights of two models, the `best` policy, its `value`, and how
        far it is `ahead` of the next one."""
        i, j = self._model(first), self._model(second)
        if i == j or len(self.weights) < 3:
            raise ParameterError("two weights move freely only where they are of two of three models or more")
        x, y = np.meshgrid(*2 * [np.linspace(0.0, 1.0, check_count(points, "points", least=2))], indexing="ij")
        kept = x + y <= 1.0 + 1e-12
        x, y = x[kept], np.minimum(y[kept], 1.0 - x[kept])
        weights = self.moved({i: x, j: y})
        ordered, best = np.sort(self.expected(weights), axis=1), self.best(weights)
        ahead = ordered[:, -1] - ordered[:, -2] if len(self.policies) > 1 else np.full(len(x), np.inf)
        called = [self.policies[k] for k in best]
        return {"first": x, "second": y, "best": called, "value": ordered[:, -1], "ahead": ahead}

    def plot(self, model: int | str | None = None, ax: Any = None) -> Any:
        """Acceptability curves as the weight of a model moves, default: the heaviest; the frontier is dotted. On a
        matplotlib axis, returned."""
        m = int(np.argmax(self.weights)) if model is None else self._model(model)
        ax, columns = axis(ax, figsize=(6.4, 4.0)), self.one_way(m)
        for k, policy in enumerate(self.policies):
            ax.plot(columns["weight"], columns[f"acceptable {policy}"], label=literal(policy, 40), color=f"C{k % 10}")
        frontier = [columns[f"acceptable {policy}"][t] for t, policy in enumerate(columns["best"])]
        ax.plot(columns["weight"], frontier, ":", color="black", label="frontier: highest expected value")
        ax.axvline(float(self.weights[m]), color="black", linewidth=0.6)
        ax.set_xlabel(f"weight of {literal(self.names.the_model(m))} (line: now)")
        ax.set_ylabel("probability of being the best")
        ax.set_ylim(-0.02, 1.02)
        ax.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        return ax

    def plot_two_way(self, first: int | str, second: int | str, ax: Any = None) -> Any:
        """Which policy is best, by the weights of two models; the cross is where they are now. On a matplotlib axis,
        returned."""
        i, j = self._model(first), self._model(second)
        ax, columns = axis(ax, figsize=(5.4, 5.0)), self.two_way(i, j, 61)
        best = np.array(columns["best"])
        for k, policy in enumerate(self.policies):
            here = best == policy
            if here.any():
                at = columns["first"][here], columns["second"][here]
                ax.scatter(*at, s=14, marker="s", color=f"C{k % 10}", label=literal(policy, 40))
        ax.plot(self.weights[i], self.weights[j], "x", color="black", markersize=9, label="now")
        ax.set_xlabel(f"weight of {literal(self.names.the_model(i))}")
        ax.set_ylabel(f"weight of {literal(self.names.the_model(j))}")
        ax.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        return ax

    def summary(self) -> str:
        """Expected value and acceptability of each policy, in lines."""
        return "\n".join(f"{name}  {text}" for name, text in self._rows())

    def _repr_html_(self) -> str:
        return html_table("policies under weights that move", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        ends = zip(self.policies, self.expected(), self.acceptability(), strict=True)
        return [(name, f"{value:.6g} expected, the best with probability {chance:.3g}") for name, value, chance in ends]

    @property
    def _same(self) -> float:
        return _SAME * float(np.abs(self.values).max(initial=0.0))

    def _model(self, model: int | str) -> int:
        return model_id(model, self.names, len(self.weights))


def model_id(model: int | str, names: Names, count: int) -> int:
    """The number of a model that is given by its name, or its number."""
    if isinstance(model, str) and names.models is not None and model in names.models:
        return names.models.index(model)
    if isinstance(model, str) and not model.isdecimal():
        raise ParameterError(f"there is no model {model!r}; {nearest(model, names.models or ())}".rstrip("; "))
    return int(check_ids(int(model), count, "model", ParameterError))


def sensitivity(
    policies: Mapping[str, Any],
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int | None = None,
    initial: Any = None,
) -> Sensitivity:
    """Compare policies as the weights of models move.

    Args:
      policies: by name: tables, certified policies of `bracket`, decision graphs, or their files; all whose value is
        exact.
      belief: the models.
      discount, horizon, initial: as for `bracket`.

    Two actions, each the best in one of two models; the first model would have to weigh less than a quarter for the
    second action to have the higher expected value:

    >>> from beliefbound import StationaryPolicy
    >>> belief = FiniteBelief([[[[1.0], [1.0]]]] * 2, [[[3.0, 0.0]], [[0.0, 1.0]]], reward_signal="unobserved")
    >>> rules = {"treat": StationaryPolicy([0]), "wait": StationaryPolicy([1])}
    >>> found = sensitivity(rules, belief, discount=0.0)
    >>> found.expected().tolist(), found.acceptability().tolist()
    ([1.5, 0.5], [0.5, 0.5])
    >>> found.one_way(0, points=5)["best"]
    ['wait', 'treat', 'treat', 'treat', 'treat']
    """
    if not isinstance(policies, Mapping) or not policies:
        raise ParameterError(f"policies is {shown(policies)}; give some by name, such as {{'treat': policy}}")
    check_kind(belief, FiniteBelief, "belief", ParameterError, fix="give a FiniteBelief")
    task = FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial)
    return sensitivity_of(task, policies)


def sensitivity_of(task: FiniteTask, policies: Mapping[str, Any]) -> Sensitivity:
    """`sensitivity` for a task."""
    values = []
    for name, policy in policies.items():
        known = AnyPolicy(read_policy(Path(policy), task) if isinstance(policy, str | Path) else policy)
        known.check(task)
        found = known.enclosed_on(task)
        if found is None:
            raise PolicyError(f"the value of {name!r} on each model is not exact; give a table or a decision graph")
        values.append(found[0])
    return Sensitivity(tuple(map(str, policies)), frozen(np.array(values)), frozen(task.weights), names_of(task.belief))
