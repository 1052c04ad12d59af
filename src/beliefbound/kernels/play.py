"""The loop that plays runs: any machine on any table of outcomes.

Run `i` draws its luck from the stream at the address `(seed, ENVIRONMENT, i)`, one uniform for the start and one for
each step, so all agents face the same noise; the agent's own draws come from `(seed, AGENT, cell, i)`. Nothing else is
carried from run to run.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.borrow import borrowed
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.random import seed_stream, uniform

ENVIRONMENT, AGENT = 1, 2


@njit(**EXACT)
def environment_stream(seed, run):
    """The stream of the environment's luck in a run."""
    return seed_stream(np.array([seed, ENVIRONMENT, run], np.uint64))


@njit(**EXACT)
def agent_stream(seed, cell, run):
    """The stream of an agent's own draws in a run."""
    return seed_stream(np.array([seed, AGENT, cell, run], np.uint64))


# Not cached by itself: its machine is an argument. Each agent's `play` is, with this loop compiled in.
@njit(nogil=True, inline="always")
def play_runs(reset, act, observe, state, outcomes, terminal, address, discount, skipped, every, results):
    """Play runs `first`, `first + 1`, …, one for each entry of `total`.

    Args:
      reset, act, observe, state: the machine.
      outcomes, terminal: the environment; a run that enters a terminal state is over, as only zeros would follow.
      address: `(seed, cell, first, steps)`.
      discount: of the utility. Reward number k = 0, 1, … has the weight `discount ** k`.
      skipped: rewards that count as received, as 0, before the first step; `steps − skipped` steps are played.
      every: the curve holds the total after every so many rewards, counting skipped ones.
      results: `total[run]`, `utility[run]`, `curve[run, k]`, `visits[run, s]`; the last two may have no columns.
    """
    state, outcomes = borrowed(state), borrowed(outcomes)
    seed, cell, first, steps = address
    total, utility, curve, visits = borrowed(results)
    (terminal,) = borrowed((terminal,))
    for i in range(len(total)):
        luck = environment_stream(seed, first + i)
        reset(state, agent_stream(seed, cell, first + i))
        s = begin(outcomes, uniform(luck))
        gained, discounted, weight = 0.0, 0.0, 1.0
        for _ in range(skipped):
            weight *= discount
        point = 0
        for k in range(skipped, steps):
            while point < curve.shape[1] and (point + 1) * every <= k:
                curve[i, point] = gained
                point += 1
            if visits.shape[1] > 0:
                visits[i, s] += 1
            a = act(state, s)
            r, t = step(outcomes, s, a, uniform(luck))
            observe(state, s, a, r, t)
            gained += r
            discounted += weight * r
            weight *= discount
            s = t
            if terminal[s]:
                break
        while point < curve.shape[1]:
            curve[i, point] = gained
            point += 1
        total[i], utility[i] = gained, discounted
