"""Every agent on one environment, on the same noise, beside what was published."""

from beliefbound.lab.league.season import League, league

__all__ = ["League", "league"]
