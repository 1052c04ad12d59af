"""`Plan`: a policy, its exact value on each model, and what that proves."""

from dataclasses import dataclass

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.errors import ParameterError
from beliefbound.evaluation import evaluate
from beliefbound.policy import MemorylessPolicy, StationaryPolicy, TablePolicy
from beliefbound.validation import FloatArray, check_initial, frozen


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

    def value(self, initial: FloatArray | None = None) -> float:
        """Expected value from a start distribution: `initial`, else the belief's own, else uniform over states."""
        start = self.belief.initial if initial is None else initial
        return float(self.values.mean() if start is None else start @ self.values)

    def stationary(self) -> "Plan":
        """The first-step policy played for ever (or to the horizon), re-evaluated: it is a different policy.

        >>> from beliefbound.planning.mmbi import mmbi
        >>> belief = FiniteBelief([[[[1.0]]]], [[[1.0]]])
        >>> mmbi(belief, discount=0.5, horizon=2).stationary().values.tolist()
        [1.5]
        """
        if isinstance(self.policy, StationaryPolicy):
            return self
        return plan_for(
            self.policy.first_step(), self.belief, discount=self.discount, horizon=self.horizon, note=self.note
        )


def plan_for(
    policy: TablePolicy,
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int | None,
    converged: bool = True,
    residual: float = 0.0,
    note: str = "",
) -> Plan:
    """The plan of a given policy: its exact value on each model of `belief`."""
    model_values = evaluate(
        policy, belief, discount=discount, horizon=None if isinstance(policy, MemorylessPolicy) else horizon
    )
    return Plan(
        policy=policy,
        values=frozen(belief.weights @ model_values),
        model_values=frozen(model_values),
        belief=belief,
        discount=discount,
        horizon=policy.horizon if isinstance(policy, MemorylessPolicy) else horizon,
        converged=converged,
        residual=residual,
        guarantee=LOWER_BOUND,
        note=note,
    )


LOWER_BOUND = (
    "exact value of the policy on this finite belief, hence a lower bound on its Bayes-optimal value from every state"
)


def uniform_if_none(initial: FloatArray | None, n_states: int) -> FloatArray:
    """The start distribution that ranks policies when none is given: uniform over states."""
    return np.full(n_states, 1.0 / n_states) if initial is None else initial


def start_of(belief: FiniteBelief, initial: FloatArray | int | None) -> FloatArray:
    """Where to start: a distribution or state if one is given, else the belief's own, else uniform."""
    given = belief.initial if initial is None else check_initial(initial, belief.n_states, ParameterError)
    return uniform_if_none(given, belief.n_states)
