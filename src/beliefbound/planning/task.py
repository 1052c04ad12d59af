"""`Task`: what is to be solved. A belief, where it starts, how rewards are discounted, and for how many decisions.

Made once at the door (`Task.of` checks everything), then handed on whole. Internal: public functions take the pieces by
name.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from beliefbound.beliefs import Belief
from beliefbound.errors import BeliefError
from beliefbound.policy import MemorylessPolicy, TablePolicy
from beliefbound.validation import FloatArray, check_count, check_discount, check_initial, frozen


@dataclass(frozen=True, eq=False)
class Task:
    """A belief, a start distribution `[s]`, a discount, and a number of decisions (`None`: for ever)."""

    belief: Belief
    start: FloatArray
    discount: float
    horizon: int | None

    @classmethod
    def of(cls, belief: Belief, *, discount: float, horizon: int | None = None, initial: Any = None) -> "Task":
        """Check and complete: `initial` is a distribution or a state; default: the belief's own, else uniform.

        >>> from beliefbound.beliefs import DirichletBelief
        >>> Task.of(DirichletBelief(2, 1), discount=0.5).start.tolist()
        [0.5, 0.5]
        """
        discount = check_discount(discount, horizon)
        if horizon is not None:
            horizon = check_count(horizon, "horizon")
        start = check_initial(initial, belief.n_states, BeliefError)
        start = belief.initial if start is None else start
        if start is None:
            start = frozen(np.full(belief.n_states, 1.0 / belief.n_states))
        return cls(belief, start, discount, horizon)

    @property
    def effective_horizon(self) -> float:
        """`Σ_k γ^k` over the decisions: what one unit of reward a step is worth."""
        if self.horizon is None:
            return 1.0 / (1.0 - self.discount)
        if self.discount == 1.0:
            return float(self.horizon)
        return (1.0 - self.discount**self.horizon) / (1.0 - self.discount)

    def stages_of(self, policy: TablePolicy) -> int | None:
        """Decisions a policy is valued for: a time-indexed policy has its own horizon, any other the task's."""
        return policy.horizon if isinstance(policy, MemorylessPolicy) else self.horizon
