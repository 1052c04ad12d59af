"""Beliefs about rewards: one class each behind the protocol of `beliefs.rewards.belief`."""

from beliefbound.beliefs.rewards.belief import RewardBelief, RewardColumns, RewardSample
from beliefbound.beliefs.rewards.beta import BetaRewards
from beliefbound.beliefs.rewards.known import KnownRewards
from beliefbound.beliefs.rewards.mixed import MixedRewards
from beliefbound.beliefs.rewards.multinomial import DirichletRewards
from beliefbound.beliefs.rewards.normal import NormalRewards

__all__ = [
    "BetaRewards",
    "DirichletRewards",
    "KnownRewards",
    "MixedRewards",
    "NormalRewards",
    "RewardBelief",
    "RewardColumns",
    "RewardSample",
]
