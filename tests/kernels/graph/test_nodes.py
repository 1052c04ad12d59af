"""Fields of a graph that lie together in memory are arrays like others."""

import copy
import pickle

import numpy as np
import pytest
from numba import typeof

from beliefbound.kernels.graph.jobs import example
from beliefbound.kernels.graph.nodes import new_graph

TOGETHER = ("upper", "lower", "share", "key", "state", "stage", "stamp", "greedy", "edition")
ROWS = ("prob", "above", "below", "child", "leaf")


def filled(nodes):
    graph = new_graph(example()._replace(first=np.array([[0, 3]])), nodes, nodes)
    for value, name in enumerate(TOGETHER + ROWS):
        getattr(graph, name)[:] = 10 * value + np.arange(nodes).reshape(-1, *[1] * (getattr(graph, name).ndim - 1))
    return graph


def test_no_field_lies_on_another_and_a_node_is_one_cache_line():
    graph = filled(7)
    for value, name in enumerate(TOGETHER + ROWS):
        field = getattr(graph, name)
        assert (10 * value + np.arange(7) == field.T).all()
        assert field.strides[0] == 64 if name in TOGETHER else field.strides[-1] == 32
    assert graph.upper.ctypes.data % 64 == graph.prob.ctypes.data % 64 == 0


@pytest.mark.parametrize("again", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_a_copy_is_of_the_same_type_for_compiled_code(again):
    graph = filled(5)
    made = again(graph)
    assert typeof(made) == typeof(graph)
    for name in TOGETHER + ROWS:
        assert (getattr(made, name) == getattr(graph, name)).all()
    made.upper[:] = -1.0
    assert (graph.upper == np.arange(5)).all()


@pytest.mark.parametrize("nodes", [1, 2, 7])
def test_graphs_of_all_sizes_are_of_one_type(nodes):
    assert typeof(new_graph(example(), nodes, nodes)) == typeof(filled(5))
