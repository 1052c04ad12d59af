"""Every kind of policy keeps one protocol: it is an agent, walks on its own, and pays the same for every step."""

import pickle
import threading

import numpy as np
import pytest

from beliefbound.base.errors import ObservationError, ParameterError, PolicyError
from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.dirichlet.replanning import Replanning
from beliefbound.bounds.finite import controller as walking
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.relaxation import certifier_of
from beliefbound.lab.agents import Agent, check_agent
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import MemorylessPolicy, Policy, StationaryPolicy
from support.policies import KINDS, ONE_OF_EACH, adaptive, policy_of, walk
from support.tiers import tiers


@pytest.mark.parametrize("kind", tiers(KINDS, *ONE_OF_EACH))
def test_equal_seeds_give_equal_behaviour_and_a_reset_forgets(kind):
    policy = policy_of(kind)
    assert isinstance(policy, Policy)
    assert isinstance(policy, Agent)
    assert (policy.n_states, policy.n_actions or 2) == (3, 2)
    first = walk(policy, 30, seed=5, noise=1, stray=0.2)
    walk(policy, 7, seed=6, noise=2)
    assert walk(policy, 30, seed=5, noise=1, stray=0.2) == first
    assert walk(policy.fresh(), 30, seed=5, noise=1, stray=0.2) == first
    other = walk(policy, 30, seed=6, noise=1, stray=0.2)
    assert (other != first) == ("stochastic" in kind)


@pytest.mark.parametrize("kind", tiers(KINDS, *ONE_OF_EACH))
def test_walkers_of_one_policy_do_not_disturb_each_other(kind):
    """Step by step in turn, and on threads at once."""
    policy = policy_of(kind)
    alone = [walk(policy, 30, seed=5, noise=noise) for noise in range(4)]
    one, two = policy.fresh(), policy.fresh()
    for walker, seed in ((one, 5), (two, 5)):
        walker.reset(seed)
    rng, other = np.random.default_rng(0), np.random.default_rng(1)
    s, t = int(rng.integers(3)), int(other.integers(3))
    for k in range(20):
        a, b = one.act(s), two.act(t)
        assert (a, b) == (alone[0][k], alone[1][k])
        rng.random(), other.random()
        s_after, s_reward = int(rng.integers(3)), float(rng.random() < 0.4)
        t_after, t_reward = int(other.integers(3)), float(other.random() < 0.4)
        one.observe(s, a, s_reward, s_after)
        two.observe(t, b, t_reward, t_after)
        s, t = s_after, t_after
    found = [None] * 4

    def work(i):
        found[i] = walk(policy.fresh(), 30, seed=5, noise=i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == alone


@pytest.mark.parametrize("kind", tiers(KINDS, *ONE_OF_EACH))
def test_bad_ids_are_answered_and_leave_the_walk_where_it_was(kind):
    policy = policy_of(kind)
    policy.reset(1)
    policy.observe(0, 1, 1.0, 2)
    expected = policy.fresh()
    expected.reset(1)
    expected.observe(0, 1, 1.0, 2)
    actions = policy.n_actions or 2
    for state in (-1, 3, 10**30, 0.5, "a", None, [0]):
        with pytest.raises(ObservationError, match="state is"):
            policy.act(state)
        with pytest.raises(ObservationError, match="state is"):
            policy.observe(2, 0, 1.0, state)
    for action in (-1, *((actions, 10**6) if policy.n_actions else ()), 1.7, None):
        with pytest.raises(ObservationError, match="action is"):
            policy.observe(2, action, 1.0, 0)
    if not isinstance(policy, StationaryPolicy | MemorylessPolicy):
        with pytest.raises(ObservationError, match="ended in state 2"):
            policy.act(0)
        with pytest.raises(ObservationError, match="ended in state 2"):
            policy.observe(1, 0, 1.0, 0)
        with pytest.raises(ObservationError, match="reward is 'x'"):
            policy.observe(2, 0, "x", 0)
    for seed in (-1, 2**63, 0.5):
        with pytest.raises(ParameterError, match="seed"):
            policy.reset(seed)
    for _ in range(5):
        a = expected.act(2)
        assert policy.act(2) == a
        policy.observe(2, a, 0.0, 2)
        expected.observe(2, a, 0.0, 2)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "horizon" in kind or "memoryless" in kind])
def test_a_policy_says_when_its_decisions_are_over(kind):
    policy = policy_of(kind)
    walk(policy, policy.horizon, seed=1, noise=3)
    state = 0
    with pytest.raises(PolicyError, match="made its 30 decisions"):
        policy.act(state)
    with pytest.raises(PolicyError, match="horizon is over"):
        policy.observe(0, 0, 1.0, 0)
    policy.reset(2)
    assert policy.act(0) in (0, 1)


def test_tables_keep_the_rules_for_agents():
    """`check_agent`, with calls out of turn and impossible transitions; three environments."""

    def first_offered(environment):
        return environment.mdp.available.argmax(axis=1)

    check_agent(lambda environment: StationaryPolicy(first_offered(environment)))
    check_agent(lambda environment: MemorylessPolicy(np.tile(first_offered(environment), (60, 1))))
    check_agent(
        lambda environment: StationaryPolicy(
            probabilities=environment.mdp.available / environment.mdp.available.sum(axis=1, keepdims=True)
        )
    )


def test_a_stochastic_policy_draws_its_chances():
    policy = StationaryPolicy(probabilities=[[0.2, 0.5, 0.3]])
    with pytest.raises(PolicyError, match=r"call reset\(seed\) first"):
        policy.act(0)
    policy.reset(9)
    counts = np.bincount([policy.act(0) for _ in range(6000)], minlength=3) / 6000
    assert np.abs(counts - [0.2, 0.5, 0.3]).max() < 4 * 0.5 / np.sqrt(6000)  # false alarms: 2e-4


@pytest.mark.parametrize("kind", ["settled", "looks ahead"])
def test_a_step_of_an_adaptive_policy_costs_the_same_at_step_10_000_as_at_step_1(kind, monkeypatch):
    """Counted in beliefs built: at most one a step; and in what the walk keeps, which does not grow."""
    built = []
    make_child = walking.make_child

    def counted(*arguments):
        built.append(1)
        return make_child(*arguments)

    monkeypatch.setattr(walking, "make_child", counted)
    policy, _ = adaptive("unobserved", stop=np.inf if kind == "looks ahead" else -1.0, tolerance=0.0)
    rng, s, sizes = np.random.default_rng(2), 0, []
    policy.reset(0)
    for k in range(10_000):
        before = len(built)
        a = policy.act(s)
        t = int(rng.integers(3))
        policy.observe(s, a, None, t)
        assert len(built) - before <= 1
        if k in (1, 9_999):
            sizes.append(len(pickle.dumps((policy._walk, policy._outside))))
        s = t
    assert (len(built) > 10) == (kind == "looks ahead")
    assert sizes[1] <= sizes[0] + 200


def test_a_step_of_a_particle_policy_costs_the_same_at_step_10_000_as_at_step_1(monkeypatch):
    """Counted in looks ahead: at most one a step; and in what the walk keeps, which does not grow."""
    looks, look = [], Replanning._look
    monkeypatch.setattr(Replanning, "_look", lambda self, *rest: looks.append(1) or look(self, *rest))
    policy = policy_of("particles")
    rng, s, sizes = np.random.default_rng(2), 0, []
    policy.reset(0)
    for k in range(10_000):
        before = len(looks)
        a = policy.act(s)
        t = int(rng.integers(3))
        policy.observe(s, a, None, t)
        assert len(looks) - before <= 1
        if k in (1, 9_999):
            sizes.append(len(pickle.dumps(policy._walk)))
        s = t
    assert looks
    assert sizes[1] <= sizes[0] + 200


def test_the_posterior_is_right_after_an_action_that_was_not_advised():
    """Two models tell which arm is good; the arm pulled against the advice reveals it all the same."""
    rewards = [[[0.0, 0.6, 1.0]], [[1.0, 0.6, 0.0]]]
    belief = FiniteBelief([[[[1.0]] * 3]] * 2, rewards, reward_signal="deterministic", initial=0)
    certifier = certifier_of(FiniteTask.of(belief, discount=0.1, horizon=None), core_nodes=20)
    certifier.grow(20)
    policy = AdaptivePolicy(certifier)
    for arm, reward, best in ((0, 0.0, 2), (0, 1.0, 0), (2, 0.0, 0), (2, 1.0, 2)):
        policy.reset(0)
        assert policy.act(0) == 1
        policy.observe(0, arm, reward, 0)
        assert policy.act(0) == best


def test_a_policy_taken_during_the_search_does_not_disturb_it():
    """Freezing a policy leaves the graph open: growing on gives what growing without a pause gives."""
    policy, one = adaptive("bernoulli", nodes=50, seed=4)
    _, two = adaptive("bernoulli", nodes=50, seed=4)
    one.reopen()
    two.reopen()
    early = policy.fresh()
    for certifier in (one, two):
        certifier.core_nodes = 400
        certifier.grow(400)
        certifier.freeze_values()
    assert (one.lower, one.upper, one.n_nodes) == (two.lower, two.upper, two.n_nodes)
    assert early == policy.fresh()
    assert early != AdaptivePolicy(one)
