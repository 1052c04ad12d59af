"""`Plan`: a policy, its exact value on each model, and what that proves."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.planning.task import FiniteTask, start_of
from beliefbound.policy import StationaryPolicy, TablePolicy
from beliefbound.validation import FloatArray, frozen


@dataclass(frozen=True, eq=False)
class Plan:
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

    def __repr__(self) -> str:
        state = "converged" if self.converged else f"not converged, residual {self.residual:.3g}"
        return f"Plan({self.policy!r}, {state})"

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
