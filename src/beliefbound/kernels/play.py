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

from beliefbound.kernels.actions import natural
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.outcomes import Outcomes, begin, step
from beliefbound.kernels.random import add_word, begin_address, end_address, uniform
from beliefbound.kernels.reference import by_reference

ENVIRONMENT, AGENT = np.int64(1), np.int64(2)  # no literals, for which `add_word` would be compiled anew
PLAY, RESET, ACT, OBSERVE = range(4)  # the first two begin a run


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
    own: np.ndarray  # uint64 [4] scratch: the agent's stream
    noise: np.ndarray  # uint64 [4] scratch: the environment's


@njit(**EXACT)
def environment_stream(seed, run):
    """The stream of the environment's randomness in a run."""
    stream = np.empty(4, np.uint64)
    begin_noise(stream, seed, run)
    return stream


@njit(**EXACT)
def agent_stream(seed, cell, run):
    """The stream of an agent's own draws in a run."""
    stream = np.empty(4, np.uint64)
    begin_own(stream, seed, cell, run)
    return stream


@out_of_line
@njit(**EXACT)
def begin_noise(stream, seed, run):
    """`environment_stream`, in place."""
    begin_address(stream)
    add_word(stream, seed)
    add_word(stream, ENVIRONMENT)
    add_word(stream, run)
    end_address(stream)


@out_of_line
@njit(**EXACT)
def begin_own(stream, seed, cell, run):
    """`agent_stream`, in place."""
    begin_address(stream)
    add_word(stream, seed)
    add_word(stream, AGENT)
    add_word(stream, cell)
    add_word(stream, run)
    end_address(stream)


@out_of_line
@njit(**EXACT)
def end_run(setup, i, point, gained, discounted):
    """Write down what run i came to: from `point` on its curve is level."""
    while point < setup.curve.shape[1]:
        setup.curve[i, point] = gained
        point += 1
    setup.total[i], setup.utility[i] = gained, discounted


def _play(state, asked, outcomes, setup):
    """Play runs `first`, `first + 1`, …, one for each entry of `total`; or do what is asked, and return an action.

    `play_loop` compiles copies of it, whose globals are the functions of a machine. Where something else than playing
    is asked for, nothing is looked at beyond one run of one step. Each of the three functions stands here once, since
    it is compiled wherever it stands.
    """
    kind = asked.kind
    curve, every = setup.curve, setup.every
    for i in range(setup.total.size):
        s, stream = asked.s, asked.stream
        if kind == PLAY:
            stream = setup.own
            begin_own(stream, setup.seed, setup.cell, setup.first + i)
        if kind <= RESET:
            reset(state, stream)  # noqa: F821
            if kind == RESET:
                return 0
            begin_noise(setup.noise, setup.seed, setup.first + i)
            s = begin(outcomes, uniform(setup.noise))
        gained, discounted, weight = 0.0, 0.0, 1.0
        for _ in range(setup.skipped):
            weight *= setup.discount
        point = 0
        s = natural(s)
        for k in range(setup.skipped, setup.steps):
            while point < curve.shape[1] and (point + 1) * every <= k:
                curve[i, point] = gained
                point += 1
            if setup.visits.shape[1] > 0:
                setup.visits[i, s] += 1
            if kind == OBSERVE:
                a, r, t = asked.a, asked.r, asked.t
            else:
                a = act(state, s)  # noqa: F821
                if kind == ACT:
                    return a
                if not 0 <= a < outcomes.cumulative.shape[1]:
                    raise IndexError("an action outside the range")
                r, t = step(outcomes, s, a, uniform(setup.noise))
            a, t = natural(a), natural(t)
            observe(state, s, a, r, t)  # noqa: F821
            if kind == OBSERVE:
                return 0
            gained += r
            discounted += weight * r
            weight *= setup.discount
            s = t
            if setup.terminal[s]:
                break
        end_run(setup, i, point, gained, discounted)
    return 0


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
    machine = {"reset": _inlined(reset), "act": _inlined(act), "observe": _inlined(observe)}
    function = FunctionType(code, {**globals(), **machine}, "play")
    function.__module__ = home.__module__
    function.__qualname__ = "_".join(["play", *(each.py_func.__name__ for each in (reset, act, observe))])
    try:
        return njit(**EXACT)(function)
    except RuntimeError:  # typed in by hand: there is no file to keep it beside
        return njit(**{**EXACT, "cache": False})(function)


def streams() -> tuple[np.ndarray, np.ndarray]:
    """Scratch for the two streams of a run."""
    return np.zeros(4, np.uint64), np.zeros(4, np.uint64)


def _nowhere() -> tuple[Outcomes, RunSetup]:
    """The arguments of the loop after `asked`, of the types that `lab.engine.play` gives, for one run of one step."""
    table, states = np.ones((1, 1, 1)), np.zeros((1, 1, 1), np.int64)
    outcomes = Outcomes(table, states, table, np.ones(1))
    for array in outcomes:
        array.setflags(write=False)
    results = np.zeros(1), np.zeros(1), np.zeros((1, 0)), np.zeros((1, 0), np.int64)
    return outcomes, RunSetup(0, 0, 0, 1, 1.0, 0, 1, np.zeros(1, np.bool_), *results, *streams())


NOWHERE = _nowhere()
