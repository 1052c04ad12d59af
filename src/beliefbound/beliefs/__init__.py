"""Beliefs over MDPs: finite sets of weighted models, and product-Dirichlet beliefs with reward beliefs."""

from beliefbound.beliefs.belief import Belief
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.rewards import BetaRewards, DirichletRewards, KnownRewards, MixedRewards, NormalRewards
from beliefbound.beliefs.signals import FiniteValues

__all__ = [
    "Belief",
    "BetaRewards",
    "DirichletBelief",
    "DirichletRewards",
    "FiniteBelief",
    "FiniteValues",
    "KnownRewards",
    "MixedRewards",
    "NormalRewards",
]
