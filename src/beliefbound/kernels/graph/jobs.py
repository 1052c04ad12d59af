"""What a bracket of a finite belief compiles first, listed so that another process can (`kernels.beside`).

Types are those of the smallest problem there is: all problems have the same.
"""

from collections.abc import Iterator

import numpy as np
from numba import float64, int64, typeof, uint64

from beliefbound.kernels.beside import Job
from beliefbound.kernels.graph.actions import close_actions, open_action
from beliefbound.kernels.graph.alpha import (
    Points,
    add_vector,
    back_up_points,
    best_vector,
    keep_used,
    look_below,
    new_vectors,
    walk,
)
from beliefbound.kernels.graph.cells import no_cells, told_cell
from beliefbound.kernels.graph.controller import compile_controller
from beliefbound.kernels.graph.crew import new_crew
from beliefbound.kernels.graph.growth import GrowthLimits, grow, help_growing
from beliefbound.kernels.graph.nodes import BeliefMDP, new_graph
from beliefbound.kernels.graph.pairs import least_of_pairings
from beliefbound.kernels.graph.search import (
    backup,
    expand,
    freeze_values,
    link,
    make_child,
    make_consistent,
    measure,
    meet,
    place_child,
    renew,
    set_leaves,
    settle,
)
from beliefbound.kernels.graph.ways import build, followed, measure_leaves, spread


def jobs() -> Iterator[Job]:
    """The kernels of the search, callees first. Who needs them asks for `expand` when some of these are compiled: what
    it does not call comes before the last of its callees, so that both have something to compile."""
    problem = example()
    here = typeof(problem), typeof(new_graph(problem, 1, 1))
    floats, whole, small = (typeof(np.zeros(1, kind)) for kind in (np.float64, np.int64, np.int32))
    yield told_cell, (*here, int64, int64)
    yield open_action, (*here, int64, int64)
    for function in (close_actions, least_of_pairings, set_leaves):
        yield function, (*here, int64)
    yield meet, (*here, int64, int64, small, floats)
    yield place_child, (*here, int64, int64, uint64, small, floats)
    for function in (backup, settle, measure, link, expand, renew):
        yield function, (*here, int64)
    yield make_child, (*here, int64, int64)
    crew = typeof(new_crew())
    yield grow, (*here, floats, whole, typeof(GrowthLimits(1, 0.0, 0.0, 0.0, 0, 0, 0)), crew)
    yield help_growing, (*here, crew)
    yield followed, (*here, whole, int64, whole)
    yield spread, (*here, floats, whole, whole, floats)
    yield measure_leaves, (*here, whole, floats, whole, floats)
    yield build, (*here, whole, whole, float64, crew)
    vectors, states = typeof(new_vectors(problem, problem.v[0], 1)), np.zeros(1, np.int32)
    points, stream = typeof(Points(states, np.zeros((1, 1)), states)), typeof(np.zeros(1, np.uint64))
    yield best_vector, (vectors, int64, floats)
    yield look_below, (here[0], vectors, int64, int64, floats, floats, whole)
    yield add_vector, (here[0], vectors, int64, int64, whole)
    yield walk, (here[0], vectors, int64, floats, stream, points, int64, int64, float64, float64)
    yield back_up_points, (here[0], vectors, points, whole, float64)
    yield keep_used, (vectors, points, int64)
    yield make_consistent, (*here, whole, typeof(np.zeros(1, np.uint8)), float64)
    yield freeze_values, here
    yield compile_controller, (*here, int64, int64, small, typeof(np.zeros((1, 1), np.int32)))


def example() -> BeliefMDP:
    """One model, one state, one action."""
    return BeliefMDP(
        like=np.ones(1),
        arrive=np.zeros(1, np.int64),
        first=np.array([[0, 1]]),
        reward=np.zeros((1, 1, 1)),
        available=np.ones((1, 1), np.bool_),
        q=np.zeros((1, 1, 1, 1)),
        partner=np.zeros((0, 1), np.int64),
        cell=np.zeros((0, 1), np.int64),
        pairs=np.zeros((0, 0, 1, 1, 1, 1)),
        cells=no_cells(),
        scale=np.zeros(1),
        v=np.zeros((1, 1, 1, 1)),
        number=np.zeros((1, 1), np.int32),
        keys=np.zeros(1, np.uint64),
        discount=0.5,
        horizon=1,
        mix=0.5,
        merged=False,
        edition=0,
    )
