"""Certificates are the same bit by bit on any number of threads: bounds, traces, policies, decisions."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import beliefbound
from beliefbound.base.errors import ExecutorError
from beliefbound.base.executors import ThreadExecutor
from beliefbound.base.executors.elsewhere import sampling_on
from beliefbound.beliefs import DirichletBelief, MixtureBelief
from beliefbound.bounds.bound import Kind
from beliefbound.bounds.bracket import bracket
from beliefbound.bounds.certified import certify
from beliefbound.planning.inverse.posterior import from_demonstrations
from beliefbound.policy import StationaryPolicy
from support.beliefs import random_belief
from support.tiers import tiers

CHAIN = DirichletBelief(5, 2, concentration=0.2, initial=0)


def same_on_threads(belief, threads=(1, 3), **knobs):
    """The brackets on so many threads, which are checked to be one; the first of them."""
    found = [bracket(belief, rng=3, threads=n, **knobs) for n in threads]
    for other in found[1:]:
        assert [(b.value, b.method) for b in other.bounds] == [(b.value, b.method) for b in found[0].bounds]
        assert [p[1:] for p in other.trace] == [p[1:] for p in found[0].trace]
        assert other.policy == found[0].policy
        assert other.effort == found[0].effort
        assert repr(other.decision) == repr(found[0].decision)
    return found[0]


def test_two_searches_side_by_side():
    """Far enough for cells, vectors and scenarios."""
    found = same_on_threads(CHAIN.sample(16, np.random.default_rng(2)), discount=0.95, effort=24)
    assert {Kind.CELLS, Kind.ALPHA_VECTORS, Kind.SCENARIOS} <= {bound.kind for bound in found.bounds}


def test_a_search_with_a_horizon_and_one_for_a_decision():
    belief = CHAIN.sample(6, np.random.default_rng(4))
    same_on_threads(belief, discount=0.95, horizon=25, effort=8)
    same_on_threads(belief, discount=0.95, target="decision", effort=8)


@pytest.mark.parametrize("signal", tiers(["bernoulli", "deterministic"], "deterministic"))
def test_small_ones_which_end(signal):
    belief, _ = random_belief(np.random.default_rng(7), signal)
    same_on_threads(belief, discount=0.8, effort=8)


@pytest.mark.full
@pytest.mark.parametrize("n_models", [3, 40])
def test_long_ones(n_models):
    same_on_threads(CHAIN.sample(n_models, np.random.default_rng(5)), threads=(1, 2, 3), discount=0.97, effort=45)


@pytest.mark.full
def test_counts():
    same_on_threads(CHAIN, (1, 2, 3), discount=0.95, effort=40)


@pytest.mark.full
def test_a_belief_that_only_draws():
    mixture = MixtureBelief([CHAIN, DirichletBelief(5, 2, concentration=2.0, initial=0)], [0.5, 0.5])
    same_on_threads(mixture, discount=0.9, effort=12)


def elsewhere(executor):
    with sampling_on(executor):
        return bracket(CHAIN, discount=0.95, effort=8, rng=3)


def test_samples_by_an_executor_are_the_same():
    """What travels to a worker is pickled, and made again there."""
    here, there = bracket(CHAIN, discount=0.95, effort=8, rng=3, threads=1), elsewhere(ThreadExecutor(2))
    assert [(b.value, b.method) for b in there.bounds] == [(b.value, b.method) for b in here.bounds]
    assert there.policy == here.policy


class Wandering:
    """A policy that draws its actions, and can be told where it starts only by its seed."""

    def reset(self, seed):
        self.rng = np.random.default_rng(seed)

    def act(self, state):
        return int(self.rng.random() < 0.2)

    def observe(self, state, action, reward, next_state):
        pass


def ends(found):
    return found.lower.value, found.upper.value, found.best.value, found.regret.value


def certified_anywhere(policy, belief, **knobs):
    """The certificate of a policy on threads, which is checked to be that of an executor."""
    here = [certify(policy, belief, rng=3, threads=n, **knobs) for n in (1, 3)]
    with sampling_on(ThreadExecutor(2)):
        there = certify(policy, belief, rng=3, **knobs)
    assert ends(here[0]) == ends(here[1]) == ends(there)
    return there


def test_walks_of_a_certificate_by_an_executor_are_the_same():
    """The frozen graph travels too."""
    belief = CHAIN.sample(4, np.random.default_rng(4))
    found = certified_anywhere(Wandering(), belief, discount=0.8, effort=3, samples=40)
    assert not found.exact


@pytest.mark.full
def test_certificates_under_counts_by_an_executor_are_the_same():
    learning = bracket(CHAIN, discount=0.8, effort=4, rng=1).policy
    for policy in (learning, Wandering(), StationaryPolicy([0] * 5)):
        certified_anywhere(policy, CHAIN, discount=0.8, samples=20)


@pytest.mark.full
def test_chains_of_demonstrators_by_an_executor_are_the_same():
    seen = {"state": [0, 1, 1, 0, 1], "action": [1, 1, 1, 0, 1], "next_state": [1, 1, 0, 1, 1]}
    knobs = {"discount": 0.8, "draws": 16, "chains": 4, "steps": 100, "rng": 5}
    here = [from_demonstrations(seen, threads=n, **knobs) for n in (1, 3)]
    with sampling_on(ThreadExecutor(2)):
        there = from_demonstrations(seen, **knobs)
    for other in (here[1], there):
        assert (other.rewards == here[0].rewards).all()
        assert (other.belief.models.dense() == here[0].belief.models.dense()).all()
        assert (other.rationality == here[0].rationality).all()


def test_what_cannot_be_sent_is_said():
    class Local(Wandering):
        pass

    with sampling_on(ThreadExecutor(1)), pytest.raises(ExecutorError, match="cannot be sent to workers"):
        certify(Local(), CHAIN.sample(2, np.random.default_rng(4)), discount=0.5, effort=1, samples=4, rng=3)


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: extra `ray`")
def test_samples_on_ray_are_the_same_whoever_dies(tmp_path):
    """In a process of its own, which Ray's threads end with. The first block of all kills its worker."""
    script = tmp_path / "there.py"
    script.write_text(SCRIPT)
    paths = [str(Path(beliefbound.__file__).parents[1]), str(Path(__file__).parents[1])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    found = subprocess.run(
        [sys.executable, script, tmp_path / "died"], capture_output=True, text=True, timeout=600, env=env, check=False
    )
    assert found.returncode == 0, found.stderr
    here = bracket(CHAIN, discount=0.95, effort=8, rng=3, threads=1)
    assert (tmp_path / "died").exists()
    assert found.stdout.splitlines()[-1].split() == [repr(b.value) for b in here.bounds]


SCRIPT = """
import os, sys
from functools import partial
from pathlib import Path
import beliefbound as bb
from beliefbound.base.executors import opened
from beliefbound.base.executors.elsewhere import sampling_on

def mortal(function, place, block):
    if not place.exists():
        place.write_text("once")
        os.kill(os.getpid(), 9)
    return function(block)

class Mortal:
    def __init__(self, executor):
        self.executor = executor
    def map(self, function, blocks, *, stop=None):
        return self.executor.map(partial(mortal, function, Path(sys.argv[1])), blocks, stop=stop)

if __name__ == "__main__":
    belief = bb.DirichletBelief(5, 2, concentration=0.2, initial=0)
    with opened("ray", threads=2) as executor, sampling_on(Mortal(executor)):
        found = bb.bracket(belief, discount=0.95, effort=8, rng=3)
    print(*[repr(b.value) for b in found.bounds])
"""
