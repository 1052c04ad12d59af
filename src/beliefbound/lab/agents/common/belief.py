"""What agents share that hold nothing but their posterior and a random stream: how they begin and how they learn."""

from numba import njit

from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.posterior import forget, learn
from beliefbound.kernels.random import load, save


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior, with another stream."""
    save(state.stream, load(stream))
    forget(state.posterior)


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief of a state on one transition."""
    learn(state.posterior, s, a, r, t)
