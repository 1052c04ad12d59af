"""Whatever acts can be asked what it is worth, and answers as far as it knows."""

import numpy as np
import pytest

from beliefbound import StationaryPolicy, certify, upper_bound
from beliefbound.base.errors import PolicyError
from beliefbound.bounds.dirichlet.particle_policy import ParticlePolicy
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.planning.task import FiniteTask, Task
from support.beliefs import chain_belief, random_belief
from support.policies import KINDS, policy_of
from support.tiers import tiers

LEVELS = ((0.5, 64), (0.0, 32))


class Stranger:
    """Alternates; knows nothing about this library."""

    def reset(self, seed):
        self.steps = 0

    def act(self, state):
        return self.steps % 2

    def observe(self, state, action, reward, next_state):
        self.steps += 1


class Candid(Stranger):
    """Always the first action, and says what that is worth on every model."""

    def act(self, state):
        return 0

    def values_on(self, task):
        return task.policy_values(StationaryPolicy([0] * task.models.n_states)) @ task.start


class Tabled(Stranger):
    def act(self, state):
        return 1

    def as_table(self):
        return StationaryPolicy([1, 1])


@pytest.mark.parametrize("kind", tiers(KINDS, "memoryless stochastic", "settled, horizon", "particles"))
def test_what_a_policy_says_of_itself_is_what_it_earns(kind):
    """Its values on every model are those that a simulation of the same policy encloses; 1 in 50 000 fails."""
    policy = policy_of(kind)
    belief = random_belief(np.random.default_rng(1), "bernoulli", n_models=4, n_states=3)[0]
    task = FiniteTask.of(belief, discount=0.9, horizon=policy.horizon)
    known = AnyPolicy(policy)
    values = known.values_on(task)
    if kind.split(",")[0] in ("particles", "looks ahead", "alpha vectors"):  # these vectors meet no belief twice
        assert values is None
        return
    assert values.shape == (4,)
    own, walks = float(task.weights @ values), Stranger()
    walks.reset, walks.act, walks.observe = policy.reset, policy.act, policy.observe
    upper = upper_bound(belief, discount=0.9, horizon=policy.horizon)
    given = {"discount": 0.9, "horizon": policy.horizon, "upper": upper, "samples": 128, "rng": 1}
    walked = certify(walks, belief, confidence=1.0 - 2e-5, **given)
    assert not walked.exact
    assert walked.lower.value <= own <= walked.upper.value
    assert certify(policy, belief, **given).value == pytest.approx(own, rel=1e-12)


def test_one_answer_is_enough():
    belief = random_belief(np.random.default_rng(3), "bernoulli")[0]
    task = FiniteTask.of(belief, discount=0.9)
    for policy, action in ((Candid(), 0), (Tabled(), 1)):
        table = AnyPolicy(StationaryPolicy([action] * 2))
        assert np.array_equal(AnyPolicy(policy).values_on(task), table.values_on(task))
        assert certify(policy, belief, discount=0.9, target_gap=0.5, rng=1).exact
    assert AnyPolicy(Tabled()).as_controller(task) is not None
    assert AnyPolicy(Candid()).as_controller(task) is None
    silent = AnyPolicy(Stranger())
    answers = silent.as_table(), silent.as_controller(task), silent.values_on(task), silent.saved
    assert answers == (None, None, None, None)
    assert silent.fresh() is silent
    assert AnyPolicy(StationaryPolicy(probabilities=[[0.5, 0.5]] * 2)).as_controller(task) is None


def test_what_cannot_act_is_refused():
    for thing in (None, 3, random_belief):
        with pytest.raises(PolicyError, match="give an object with reset, act and observe, or a file"):
            AnyPolicy(thing)


def test_a_particle_policy_has_compiled_walks_for_its_own_task_only():
    """Under another belief it is stepped: what it would earn under its own says nothing there."""
    own, other = chain_belief(10, 1), chain_belief(30, 2)
    start = np.eye(5)[0]
    policy = ParticlePolicy(own, start, 0.9, None, 3, LEVELS)
    asked = AnyPolicy(policy)
    assert asked.walks_on(Task.of(own, discount=0.9, initial=0), seed=1, threads=1) is not None
    for task in (
        Task.of(other, discount=0.9, initial=0),
        Task.of(own, discount=0.8, initial=0),
        Task.of(own, discount=0.9, initial=1),
        Task.of(own, discount=0.9, horizon=9, initial=0),
    ):
        assert asked.walks_on(task, seed=1, threads=1) is None
    mine = certify(policy, own, discount=0.9, initial=0, samples=16, rng=1)
    theirs = certify(policy, other, discount=0.9, initial=0, samples=16, rng=1)
    assert mine.lower != theirs.lower
