"""The loop that plays runs: any machine on any table of outcomes.

A *machine* is an agent as compiled code sees it: a NamedTuple of arrays and numbers, `state`, and three compiled
functions. `reset(state, stream)` forgets everything and takes a random stream, `act(state, s)` chooses an action and
`observe(state, s, a, r, t)` learns from what followed. `play_loop` compiles the three into the loop, once. A person who
steps an agent by hand enters the same compiled loop, which does one of the three and returns (`Request`): functions of
their own would be compiled a second time. The state is passed by reference (`kernels.reference`).

Run `i` draws its random numbers from the stream at the address `(seed, ENVIRONMENT, i)`, one uniform for the start and
one for each step, so all agents face the same noise; the agent's own draws come from `(seed, AGENT, cell, i)`. Nothing
else is carried from run to run.
"""

from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT
from beliefbound.kernels.outcomes import Outcomes, begin, step
from beliefbound.kernels.random import seed_stream, uniform
from beliefbound.kernels.reference import by_reference

ENVIRONMENT, AGENT = 1, 2
PLAY, RESET, ACT, OBSERVE = range(4)


@by_reference
class Request(NamedTuple):
    """What the loop is asked for: to `PLAY` runs, or one of the machine's functions and its arguments."""

    kind: int = PLAY
    stream: np.ndarray = np.zeros(4, np.uint64)
    s: int = 0
    a: int = 0
    r: float = 0.0
    t: int = 0


@by_reference
class RunSetup(NamedTuple):
    """Which runs are played and how, and where results go: one entry a run. The last two may have no columns."""

    seed: int
    cell: int
    first: int  # number of the first run
    steps: int  # rewards in a run
    discount: float  # of the utility: reward number k = 0, 1, … has the weight `discount ** k`
    skipped: int  # rewards that count as received, as 0, before the first step; `steps − skipped` steps are played
    every: int  # the curve holds the total after every so many rewards, counting skipped ones
    terminal: np.ndarray  # bool [s]: a run that enters such a state is over, as only zeros would follow
    total: np.ndarray  # [run]
    utility: np.ndarray  # [run]
    curve: np.ndarray  # [run,k]
    visits: np.ndarray  # int64 [run,s]


@njit(**EXACT)
def environment_stream(seed, run):
    """The stream of the environment's randomness in a run."""
    return seed_stream(np.array([seed, ENVIRONMENT, run], np.uint64))


@njit(**EXACT)
def agent_stream(seed, cell, run):
    """The stream of an agent's own draws in a run."""
    return seed_stream(np.array([seed, AGENT, cell, run], np.uint64))


# Not cached by itself: its machine is an argument. What `play_loop` makes of it is.
@njit(nogil=True, inline="always")
def play_runs(reset, act, observe, state, asked, outcomes, setup):
    """Play runs `first`, `first + 1`, …, one for each entry of `total`; or do what is asked, and return an action.

    Where something else than playing is asked for, nothing is looked at beyond one run of one step.
    """
    kind = asked.kind
    if kind == OBSERVE:
        observe(state, asked.s, asked.a, asked.r, asked.t)
        return 0
    curve, every = setup.curve, setup.every
    for i in range(setup.total.size):
        if kind != ACT:
            reset(state, asked.stream if kind == RESET else agent_stream(setup.seed, setup.cell, setup.first + i))
            if kind == RESET:
                return 0
        noise = environment_stream(setup.seed, setup.first + i)
        s = begin(outcomes, uniform(noise)) if kind == PLAY else asked.s
        gained, discounted, weight = 0.0, 0.0, 1.0
        for _ in range(setup.skipped):
            weight *= setup.discount
        point = 0
        for k in range(setup.skipped, setup.steps):
            while point < curve.shape[1] and (point + 1) * every <= k:
                curve[i, point] = gained
                point += 1
            if setup.visits.shape[1] > 0:
                setup.visits[i, s] += 1
            a = act(state, s)
            if kind == ACT:
                return a
            if not 0 <= a < outcomes.cumulative.shape[1]:
                raise IndexError("an action outside the range")
            r, t = step(outcomes, s, a, uniform(noise))
            observe(state, s, a, r, t)
            gained += r
            discounted += weight * r
            weight *= setup.discount
            s = t
            if setup.terminal[s]:
                break
        while point < curve.shape[1]:
            curve[i, point] = gained
            point += 1
        setup.total[i], setup.utility[i] = gained, discounted
    return 0


def _play(state, asked, outcomes, setup):
    """`play_runs` of the machine whose functions are this function's globals."""
    return play_runs(reset, act, observe, state, asked, outcomes, setup)  # noqa: F821


def _inlined(function: Any) -> Any:
    """The function as a part of the loop, which is then compiled as one.

    A function that rounds or divides in another way than the loop does stays a call, so that it does the same in both.
    """
    options = function.targetoptions
    if any(options.get(name) != EXACT[name] for name in ("fastmath", "error_model")):
        return function
    return njit(inline="always", **EXACT)(function.py_func)


@cache
def play_loop(reset: Any, act: Any, observe: Any) -> Any:
    """`play(state, asked, outcomes, setup)` of a machine, compiled.

    It is a copy of `_play` that stands, for numba, in the file of `act`: so its machine code is kept on disk beside the
    agent's own, and compiled again when that file or a kernel changes. (numba cannot keep a closure over functions: in
    each process they count as others.)
    """
    home = act.py_func
    code = _play.__code__.replace(co_filename=home.__code__.co_filename)
    names = {"play_runs": play_runs, "reset": _inlined(reset), "act": _inlined(act), "observe": _inlined(observe)}
    function = FunctionType(code, names, "play")
    function.__module__ = home.__module__
    function.__qualname__ = "_".join(["play", *(each.py_func.__name__ for each in (reset, act, observe))])
    try:
        return njit(**EXACT)(function)
    except RuntimeError:  # typed in by hand: there is no file to keep it beside
        return njit(**{**EXACT, "cache": False})(function)


def _nowhere() -> tuple[Outcomes, RunSetup]:
    """The arguments of the loop after `asked`, of the types that `lab.engine.play` gives, for one run of one step."""
    table, states = np.ones((1, 1, 1)), np.zeros((1, 1, 1), np.int64)
    outcomes = Outcomes(table, states, table, np.ones(1))
    for array in outcomes:
        array.setflags(write=False)
    results = np.zeros(1), np.zeros(1), np.zeros((1, 0)), np.zeros((1, 0), np.int64)
    return outcomes, RunSetup(0, 0, 0, 1, 1.0, 0, 1, np.zeros(1, np.bool_), *results)


NOWHERE = _nowhere()
