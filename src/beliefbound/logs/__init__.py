"""Logs of transitions: read in blocks, checked row by row, kept as counts."""

from beliefbound.logs.files import read_log
from beliefbound.logs.log import Log
from beliefbound.logs.rollouts import log_of, read_minari, roll_out

__all__ = ["Log", "log_of", "read_log", "read_minari", "roll_out"]
