"""Policies: what every one of them can do, and those that look at the current state only."""

from beliefbound.policy.protocol import Policy
from beliefbound.policy.tables import MemorylessPolicy, StationaryPolicy, TablePolicy

__all__ = ["MemorylessPolicy", "Policy", "StationaryPolicy", "TablePolicy"]
