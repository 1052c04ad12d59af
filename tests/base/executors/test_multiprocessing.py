"""Beliefs, models and policies travel to other processes."""

import multiprocessing

import numpy as np
import pytest

from beliefbound import DirichletBelief, FiniteBelief, MemorylessPolicy, StationaryPolicy, bracket


def described(thing):
    """What another process finds in what it was sent."""
    if isinstance(thing, FiniteBelief | DirichletBelief):
        return thing.mean().transitions.tobytes(), thing.mean().rewards.tobytes()
    if hasattr(thing, "transitions"):
        return thing.transitions.tobytes(), thing.rewards.tobytes()
    thing.reset(1)
    return thing, thing.act(0)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_pool_of_processes_takes_them(method):
    dirichlet = DirichletBelief(3, 2, initial=0).update(0, 1, 0.5, 2)
    finite = dirichlet.sample(4, 0)
    found = bracket(finite, discount=0.9, target_gap=0.05, effort=100, rng=0)
    learning = bracket(dirichlet, discount=0.9, target_gap=0.5, effort=10, rng=0).policy
    tables = [StationaryPolicy([0, 1, 0]), MemorylessPolicy(probabilities=np.full((2, 3, 2), 0.5))]
    sent = [finite, dirichlet, finite.mean(), found.policy, learning, *tables]
    with multiprocessing.get_context(method).Pool(1) as pool:
        there = pool.map_async(described, sent).get(timeout=600)
    assert there == [described(thing) for thing in sent]
