"""The policy of a bracket is the one whose value was bounded: `act` against what was simulated and proven."""

import numpy as np
import pytest

from beliefbound.base.errors import ObservationError, PolicyError
from beliefbound.beliefs import BetaRewards, DirichletBelief, FiniteBelief, KnownRewards
from beliefbound.bounds.bracket import bracket
from beliefbound.bounds.dirichlet.particle_policy import ParticlePolicy
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.relaxation import Certifier, certifier_of
from beliefbound.bounds.policy_files import load_policy
from beliefbound.planning.task import FiniteTask
from support import oracles
from support.beliefs import ROUNDING, SIGNALS, chain_belief, random_belief, two_armed
from support.enumeration import act_after, value_by_enumeration
from support.tiers import tiers


@pytest.mark.parametrize("nodes", tiers([1, 4, 40], 4))
def test_the_policy_of_an_exact_bound_earns_at_least_that_bound(nodes, tmp_path):
    """Without sampling: enumeration of every history, at graphs of several sizes and with every reward signal. It is
    the policy read back from its file that plays."""
    rng = np.random.default_rng(1)
    for i in range(8):
        belief, (P, r, w, p0) = random_belief(rng, SIGNALS[i % 4], n_models=3, n_states=2)
        certifier = certifier_of(FiniteTask.of(belief, discount=0.9, horizon=4), core_nodes=nodes)
        certifier.grow(nodes)
        AdaptivePolicy(certifier).save(tmp_path / "policy.npz")
        value = value_by_enumeration(load_policy(tmp_path / "policy.npz"), belief, 0.9, 4)
        exact = oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 4, belief.reward_signal)
        assert certifier.lower - ROUNDING <= value <= exact + ROUNDING


@pytest.mark.parametrize(("tolerance", "stop"), [(0.0, np.inf), (0.3, np.inf), (0.0, 0.05), (0.02, 0.1)])
def test_the_policy_of_a_sampled_bound_is_the_one_that_was_simulated(tolerance, stop, tmp_path):
    """Enumerated value of `act` against the mean of the kernel's scenarios, leaves and stops included. Where the policy
    settles the scenario counts what is proven there, and the policy earns that or more: four standard errors below
    (false alarm 3e-5 a case), and above no more than settling can add."""
    rng = np.random.default_rng(2)
    for i in range(4):
        belief, _ = random_belief(rng, SIGNALS[i % 4], n_models=3, n_states=2)
        certifier = certifier_of(FiniteTask.of(belief, discount=0.9, horizon=4), core_nodes=3)
        certifier.grow(3)
        certifier.freeze_values()
        certifier.tolerance = tolerance
        costs = certifier.sample(np.arange(4, dtype=np.uint64), 0, 64 * 64, clip=np.inf, stop=stop)
        policy = AdaptivePolicy(certifier, stop=stop)
        value = value_by_enumeration(policy, belief, 0.9, 4)
        policy.save(tmp_path / "policy.npz")
        assert value_by_enumeration(load_policy(tmp_path / "policy.npz"), belief, 0.9, 4) == value
        error = 4 * costs.below.std() / 64 + ROUNDING
        simulated = certifier.upper - costs.below.mean()
        assert value >= simulated - error
        if stop == np.inf and tolerance == 0.0:
            assert value <= simulated + error


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_policy_that_looks_ahead_is_as_long_as_what_it_holds(nodes, tmp_path):
    """A graph of one belief has space for more, which is no part of the policy."""
    belief, _ = random_belief(np.random.default_rng(3), "bernoulli", n_models=3, n_states=2)
    certifier = certifier_of(FiniteTask.of(belief, discount=0.9, initial=0), core_nodes=nodes)
    certifier.grow(nodes)
    certifier.freeze_values()
    policy = AdaptivePolicy(certifier, stop=1.0)
    policy.save(tmp_path / "policy.npz")
    assert load_policy(tmp_path / "policy.npz") == policy
    with np.load(tmp_path / "policy.npz") as file:
        assert len(file["stage"]) == len(file["prob"]) == len(file["begin"]) - 1 == certifier.n_nodes == nodes


def test_a_full_graph_does_not_change_the_policy():
    """Room for one scenario only: the policy's costs are those with room for all."""
    belief, _ = random_belief(np.random.default_rng(3), "bernoulli", n_models=3, n_states=2)
    wide = certifier_of(FiniteTask.of(belief, discount=0.9, horizon=6), core_nodes=3, max_nodes=50)
    tight = Certifier(wide.task, wide.problem, wide.policies, core_nodes=3, max_nodes=50, entries=3 * 20)
    costs = []
    for certifier in (wide, tight):
        certifier.grow(3)
        certifier.freeze_values()
        costs.append(certifier.sample(np.arange(4, dtype=np.uint64), 0, 64, clip=np.inf, stop=np.inf))
    np.testing.assert_array_equal(costs[0].below, costs[1].below)


def test_the_policy_of_a_bracket_earns_between_its_bounds_in_models_drawn_from_the_belief():
    """Through `act` alone, Chain with eight models. Above `lower` and below `upper` but for four standard errors of the
    simulation (3e-5 each) and the bracket's own error (1e-3)."""
    belief = chain_belief(30, 4).sample(8, np.random.default_rng(5))
    found = bracket(
        belief, discount=0.8, horizon=12, target_gap=1e-4, effort=20, confidence=0.999, rng=np.random.default_rng(6)
    )
    rng, totals = np.random.default_rng(7), []
    for _ in range(400):
        m = rng.choice(8, p=belief.weights)
        s, total = 0, 0.0
        found.policy.reset(0)
        for k in range(12):
            a = found.policy.act(s)
            t = int(rng.choice(5, p=belief.transitions[m, s, a]))
            total += 0.8**k * belief.rewards[m, s, a]
            found.policy.observe(s, a, None, t)
            s = t
        totals.append(total)
    error = 4 * np.std(totals) / np.sqrt(len(totals))
    assert found.lower.value - error <= np.mean(totals) <= found.upper.value + error


def test_acting_ends_with_the_horizon():
    belief = FiniteBelief([[[[1.0]] * 2]] * 2, [[[1.0, 0.0]], [[0.0, 2.0]]], reward_signal="deterministic", initial=0)
    policy = AdaptivePolicy(certifier_of(FiniteTask.of(belief, discount=0.9, horizon=2), core_nodes=4))
    policy.observe(0, 0, 1.0, 0)
    assert policy.act(0) == 0
    policy.observe(0, 0, 1.0, 0)
    with pytest.raises(PolicyError, match="2 decisions and its horizon is over"):
        policy.act(0)
    with pytest.raises(PolicyError, match="horizon is over"):
        policy.observe(0, 0, 1.0, 0)


def dirichlet_value_of_act(policy, belief, horizon, discount):
    """The value of `act` under a Dirichlet belief with Bernoulli or known rewards: every history, exactly."""

    def value(posterior, s, history):
        if len(history) == horizon:
            return 0.0
        a = act_after(policy, history, s)
        mean = posterior.mean()
        seen = [(None, 1.0)]
        if isinstance(posterior.rewards, BetaRewards):
            chance = float(posterior.rewards.mean()[s, a])
            seen = [(1.0, chance), (0.0, 1.0 - chance)]
        total = float(posterior.rewards.mean()[s, a])
        for reward, chance in seen:
            for t in np.flatnonzero(mean.transitions[s, a]):
                p = chance * mean.transitions[s, a, t]
                after = posterior.update(s, a, reward, t)
                total += discount * p * value(after, int(t), [*history, (s, a, reward, int(t))])
        return total

    return value(belief, 0, [])


@pytest.mark.parametrize("kind", tiers(["beta", "known"], "known"))
def test_what_is_simulated_under_a_dirichlet_belief_is_what_acts(kind):
    """Few particles, so that the policy is far from optimal: the enumerated value of `act` against the simulated mean,
    four standard errors (false alarm 6e-5 a case)."""
    if kind == "beta":
        belief, horizon = two_armed(BetaRewards([[1.0, 1.0]], [[1.0, 2.0]])), 5
    else:
        belief = DirichletBelief(2, 2, concentration=0.5, rewards=KnownRewards([[0.4, 0.0], [0.0, 1.0]]), initial=0)
        horizon = 4
    policy = ParticlePolicy(belief, np.eye(belief.n_states)[0], 0.9, horizon, 5, ((0.8, 20), (0.0, 10)))
    expected = dirichlet_value_of_act(policy, belief, horizon, 0.9)
    work = policy.workspace()
    values = [policy.simulate(np.random.default_rng((6, i)), work)[0] for i in range(1500)]
    assert np.mean(values) == pytest.approx(expected, abs=4 * np.std(values) / np.sqrt(1500) + ROUNDING)


def test_a_particle_policy_is_a_function_of_the_history():
    levels = ((0.5, 2048), (0.15, 512), (0.0, 128))
    policy = ParticlePolicy(chain_belief(0, 0), np.eye(5)[0], 0.9, None, 3, levels)
    rng, s, history = np.random.default_rng(1), 0, []
    for _ in range(30):
        a = policy.act(s)
        assert policy.act(s) == a
        t = int(rng.integers(5))
        policy.observe(s, a, None, t)
        history.append((s, a, None, t))
        s = t
    again = ParticlePolicy(chain_belief(0, 0), np.eye(5)[0], 0.9, None, 3, levels)
    assert [act_after(again, history[:i], history[i][0]) for i in range(30)] == [step[1] for step in history]
    with pytest.raises(ObservationError, match=f"ended in state {s}"):
        policy.observe((s + 1) % 5, 0, None, 1)


def test_rewards_that_are_not_bernoulli_are_refused():
    policy = ParticlePolicy(two_armed(BetaRewards([[1.0, 1.0]], [[1.0, 2.0]])), np.ones(1), 0.9, 4, 5, ((0.0, 64),))
    with pytest.raises(ObservationError, match="outside the belief's support"):
        policy.observe(0, 0, 0.3, 0)
    with pytest.raises(ObservationError, match="no reward"):
        policy.observe(0, 0, None, 0)
