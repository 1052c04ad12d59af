"""What agents that hold models drawn from their posterior share: whether there is room for them, and a stream."""

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import ParameterError
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.lab.engine.protocol import Setting


def check_memory(
    setting: Setting, n: int, parameter: str, *, width: int | None = None, fix: str = "take fewer"
) -> None:
    """`n` models, and what their solution takes, fit into memory; `parameter` says in words where n comes from, `width`
    how many numbers a model has for a pair, where these are not the chances of the next states alone."""
    S, A = setting.n_states, setting.n_actions
    needed = 16.0 * S * A * (S if width is None else width) * (n + 1)
    if needed > AGENT_BYTES:
        raise ParameterError(f"{parameter}: {n} models of {S} states and {A} actions need {needed / 1e9:.0f} GB; {fix}")


def no_stream() -> npt.NDArray[np.uint64]:
    """Empty arrays for a random stream, which `reset` fills."""
    return np.zeros(4, np.uint64)
