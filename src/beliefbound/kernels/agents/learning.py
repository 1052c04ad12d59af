"""What Exploit and MCBRL share: counts of what was seen, and sweeps over the models that they hold.

Functions of an agent's `State`, which names its arrays alike: `alpha[s,a,t]` are Dirichlet concentrations,
`successes[s,a]` and `failures[s,a]` Beta parameters of rewards scaled to [0, 1].
"""

from numba import njit

from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.sweep import settle_lanes


@njit(**EXACT_INLINE)
def forget(state):
    """The belief back to the prior, the values back to zero."""
    state.alpha.fill(state.concentration)
    state.successes.fill(state.prior_successes)
    state.failures.fill(state.prior_failures)
    state.even.fill(0.0)
    state.odd.fill(0.0)
    state.vbar.fill(0.0)


@njit(**EXACT_INLINE)
def learn(state, s, a, r, t):
    """Condition the belief on one transition."""
    x = (r - state.low) / state.width
    state.alpha[s, a, t] += 1.0
    state.successes[s, a] += x
    state.failures[s, a] += 1.0 - x


@njit(**EXACT)
def visits(state, s, a):
    """`Σ_t alpha[s,a,t]`: `alpha[s,a]` over this is the expected row of transitions."""
    total = 0.0
    for t in range(state.alpha.shape[2]):
        total += state.alpha[s, a, t]
    return total


@njit(**EXACT_INLINE)
def expected_reward(state, s, a):
    """Of the scaled reward."""
    return state.successes[s, a] / (state.successes[s, a] + state.failures[s, a])


@njit(**EXACT_INLINE)
def settle(state, side, tolerance):
    """`settle_lanes` on the models of the state; how many sweeps were made."""
    return settle_lanes(
        state.p,
        state.r,
        state.w,
        state.available,
        state.discount,
        state.even,
        state.odd,
        side,
        state.q,
        state.mixed,
        state.vbar,
        state.actions,
        state.sweeps,
        tolerance,
    )
