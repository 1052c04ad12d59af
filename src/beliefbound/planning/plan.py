"""`Plan`: a policy, its exact value on each model, and what that proves."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from beliefbound.base.errors import FileError, PolicyError
from beliefbound.base.io.paths import as_path
from beliefbound.base.validation import FloatArray, frozen
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.models.evaluation import check_fits
from beliefbound.planning.task import FiniteTask, start_of
from beliefbound.policy import StationaryPolicy, TablePolicy
from beliefbound.policy.naming import Names, names_of
from beliefbound.policy.results import Entries, Result, array_of, axis, damaged, literal

_ROUNDING = 1e-9  # of the largest value: how far a plan read back may be from what its policy earns
_LABELLED = 40  # states whose action a picture has space to name


class PlanEntries(Entries):
    """A `Plan` in a file."""

    values: list[float]
    model_values: list[list[float]]
    discount: float
    horizon: int | None
    converged: bool
    residual: float
    guarantee: str
    note: str


@dataclass(frozen=True, eq=False)
class Plan(Result):
    """What a planner returns.

    Attributes:
      policy: `StationaryPolicy` or `MemorylessPolicy`.
      values: `[s]`, expected value of `policy` under the belief from each state.
      model_values: `[m,s]`, its value on each model.
      belief: the finite belief the values refer to.
      discount, horizon: of the problem; `horizon` is `None` when infinite.
      converged: whether the planner reached its stopping rule; `residual` says how far it was.
      residual: the stopping rule's last measure, in units of value; 0 where the method is exact.
      guarantee: what `values` prove, in words.
      note: what happened on the way that a user should know, such as a cycle; empty when nothing did.

    The belief is no part of what `save` writes: `load` is given it, and checks that the policy earns on it what the
    file says.
    """

    policy: TablePolicy
    values: FloatArray
    model_values: FloatArray
    belief: FiniteBelief
    discount: float
    horizon: int | None
    converged: bool
    residual: float
    guarantee: str
    note: str = ""

    _kind, _entries = "plan", PlanEntries

    def __repr__(self) -> str:
        state = "converged" if self.converged else f"not converged, residual {self.residual:.3g}"
        return f"Plan({self.policy!r}, {state})"

    @property
    def names(self) -> Names:
        """Of states and actions, where the belief has any."""
        return names_of(self.belief)

    def value(self, initial: Any = None) -> float:
        """Expected value from a start distribution or state: `initial`, else the belief's own, else uniform."""
        return float(start_of(self.belief, initial) @ self.values)

    def stationary(self) -> "Plan":
        """The first-step policy played for ever (or to the horizon), re-evaluated: it is a different policy.

        >>> from beliefbound.planning.mmbi import mmbi
        >>> belief = FiniteBelief([[[[1.0]]]], [[[1.0]]])
        >>> mmbi(belief, discount=0.5, horizon=2).stationary().values.tolist()
        [1.5]
        """
        if isinstance(self.policy, StationaryPolicy):
            return self
        task = FiniteTask.of(self.belief, discount=self.discount, horizon=self.horizon)
        return plan_for(self.policy.first_step(), task, note=self.note)

    def to_dict(self) -> dict[str, Any]:
        """Values and words, ready for JSON; belief and policy are left out."""
        return {
            "values": self.values.tolist(),
            "model_values": self.model_values.tolist(),
            "discount": float(self.discount),
            "horizon": self.horizon,
            "converged": bool(self.converged),
            "residual": float(self.residual),
            "guarantee": self.guarantee,
            "note": self.note,
        }

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("value from the start", f"{self.value():.6g}"),
            ("values of states", f"{self.values.min():.6g} to {self.values.max():.6g}"),
            ("decisions", "for ever" if self.horizon is None else str(self.horizon)),
            ("discount", f"{self.discount:g}"),
            ("converged", "yes" if self.converged else f"no, residual {self.residual:.3g}"),
            ("guarantee", self.guarantee),
        ]
        return [*rows, ("note", self.note)] if self.note else rows

    @classmethod
    def load(cls, path: Path | str, belief: FiniteBelief | None = None) -> Self:
        """Read what `save` wrote; `belief` is the one that the plan was made for.

        Raises:
          FileError: the file, or that of its policy, is missing, damaged, of another kind or another version; or the
            policy does not earn on `belief` what the file says.
        """
        if belief is None:
            raise PolicyError("a plan is read together with its belief: Plan.load(path, belief)")
        file = as_path(path)
        entries, policy = cls._read(file)
        if policy is None:
            raise FileError(f"{file} is damaged: it names no policy")
        with damaged(file):
            return cls._of(entries, policy, belief)

    @classmethod
    def _of(cls, entries: PlanEntries, policy: Any, belief: FiniteBelief) -> Self:
        check_fits(policy, belief.models)
        task = FiniteTask.of(belief, discount=entries.discount, horizon=entries.horizon, policy=policy)
        model_values = array_of(entries.model_values, belief.rewards.shape[:2], "model_values")
        values = array_of(entries.values, (belief.n_states,), "values")
        earned = task.policy_values(policy)
        # Iterative methods give values, and a policy, that are each within their residual of the optimum.
        allowed = 3.0 * abs(entries.residual) + _ROUNDING * task.largest_value
        pairs = ((values, task.weights @ earned), (model_values, earned))
        if not all(np.abs(said - found).max() <= allowed for said, found in pairs):
            raise PolicyError("its values are not what its policy earns on this belief")
        return cls(
            policy=policy,
            values=values,
            model_values=model_values,
            belief=task.belief,
            discount=task.discount,
            horizon=task.stages_of(policy),
            converged=entries.converged,
            residual=entries.residual,
            guarantee=entries.guarantee,
            note=entries.note,
        )

    def plot(self, ax: Any = None) -> Any:
        """The value of each state, from the worst model to the best, on a matplotlib axis; returns the axis."""
        ax = axis(ax)
        states = np.arange(len(self.values))
        chosen = self.policy.chances(self.belief.n_actions)
        chosen = chosen if chosen.ndim == 2 else chosen[0]  # of a time-indexed policy, the first stage's
        ax.bar(states, self.values, color="tab:blue", alpha=0.7)
        if len(self.model_values) > 1:
            possible = self.model_values[self.belief.weights > 0.0]
            ends = np.stack([self.values - possible.min(axis=0), possible.max(axis=0) - self.values])
            ax.errorbar(states, self.values, yerr=np.maximum(ends, 0.0), fmt="none", ecolor="black", linewidth=1)
        if len(states) <= _LABELLED:
            actions = self.belief.actions or range(self.belief.n_actions)
            for s in states:
                name = literal(str(actions[int(chosen[s].argmax())]))
                ax.annotate(name, (s, 0.0), ha="center", va="bottom", fontsize="small")
            if self.belief.states is not None:
                ax.set_xticks(states, [literal(name) for name in self.belief.states], rotation=30, ha="right")
        ax.set_xlabel("state, and first action" if len(states) <= _LABELLED else "state")
        ax.set_ylabel("expected value")
        return ax


LOWER_BOUND = (
    "exact value of the policy on this finite belief, hence a lower bound on its Bayes-optimal value from every state"
)


def plan_of(
    policy: TablePolicy,
    model_values: FloatArray,
    task: FiniteTask,
    *,
    converged: bool = True,
    residual: float = 0.0,
    guarantee: str = LOWER_BOUND,
    note: str = "",
) -> Plan:
    """The plan of a policy whose values `[m,s]` are known."""
    return Plan(
        policy=policy,
        values=frozen(task.weights @ model_values),
        model_values=frozen(np.ascontiguousarray(model_values)),
        belief=task.belief,
        discount=task.discount,
        horizon=task.stages_of(policy),
        converged=converged,
        residual=residual,
        guarantee=guarantee,
        note=note,
    )


def plan_for(
    policy: TablePolicy, task: FiniteTask, *, converged: bool = True, residual: float = 0.0, note: str = ""
) -> Plan:
    """The plan of a given policy: its exact value on each model of the belief."""
    return plan_of(policy, task.policy_values(policy), task, converged=converged, residual=residual, note=note)
