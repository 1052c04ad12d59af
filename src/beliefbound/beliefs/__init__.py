"""Beliefs over MDPs: finite sets of weighted models, and product-Dirichlet beliefs with reward beliefs."""

from typing import Any, Protocol

import numpy as np

from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.rewards import BetaRewards, KnownRewards, NormalRewards
from beliefbound.mdp import MDP
from beliefbound.validation import FloatArray


class Belief(Protocol):
    """What every planner and bound asks of a belief."""

    @property
    def n_states(self) -> int: ...
    @property
    def n_actions(self) -> int: ...
    @property
    def initial(self) -> FloatArray | None: ...
    def mean(self) -> MDP:
        """The expected MDP."""

    def sample(self, n: int, rng: np.random.Generator) -> FiniteBelief:
        """`n` independent models, equally weighted."""

    def update(self, state: Any, action: Any, reward: Any, next_state: Any) -> "Belief":
        """The posterior after one transition, or after several given as arrays."""


__all__ = ["Belief", "BetaRewards", "DirichletBelief", "FiniteBelief", "KnownRewards", "NormalRewards"]
