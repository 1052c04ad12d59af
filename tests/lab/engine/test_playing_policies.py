"""Policies in the place of agents: they play, from memory or from a file, and earn what their value says."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from beliefbound import MDP, bracket, evaluate, mmbi
from beliefbound.base.errors import ObservationError, PolicyError
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.relaxation import certifier_of
from beliefbound.lab.agents import play, run_episode
from beliefbound.lab.engine.policies import saved_policy
from beliefbound.lab.envs import gymnasium_env, make_env
from beliefbound.lab.envs.environment import environment_from_mdp
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import MemorylessPolicy, StationaryPolicy
from support.beliefs import chain_belief
from support.policies import KINDS, ONE_OF_EACH, policy_of
from support.tiers import tiers


class ByHand:
    """A policy stepped in plain Python, each run from the seed of run 0."""

    def __init__(self, policy, seed):
        self.policy, self.seed = policy, seed

    def reset(self, seed):
        self.policy.reset(self.seed)

    def act(self, state):
        return self.policy.act(state)

    def observe(self, *transition):
        self.policy.observe(*transition)


def tables(n_states, n_actions, stages):
    rng = np.random.default_rng(3)
    return [
        StationaryPolicy(rng.integers(0, n_actions, n_states)),
        StationaryPolicy(probabilities=rng.dirichlet(np.ones(n_actions), n_states)),
        MemorylessPolicy(rng.integers(0, n_actions, (stages, n_states))),
        MemorylessPolicy(probabilities=rng.dirichlet(np.ones(n_actions), (stages, n_states))),
    ]


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("accounting", ["standard", "paper"])
def test_a_table_is_played_compiled_as_it_is_stepped_by_hand(kind, accounting):
    environment = make_env("chain")
    policy = tables(5, 2, 60)[kind]
    common = {"seed": 5, "runs": range(1), "steps": 60, "curve_every": 7, "visits": True, "accounting": accounting}
    compiled, stepped = play(policy, environment, **common), play(ByHand(policy.fresh(), 5), environment, **common)
    for name in ("total", "utility", "curve", "visits"):
        np.testing.assert_allclose(getattr(compiled, name), getattr(stepped, name), rtol=1e-13)


@pytest.mark.parametrize("kind", range(4))
def test_a_table_earns_its_value_in_play(kind):
    """Mean utility of 4000 runs against the exact value, four standard errors (false alarm 6e-5 a case)."""
    environment = make_env("chain")
    policy = tables(5, 2, 40)[kind]
    exact = evaluate(policy, environment.mdp, discount=0.9, horizon=40 if policy.horizon is None else None)[0]
    earned = play(policy, environment, seed=2, runs=range(4000), steps=40, discount=0.9).utility
    assert abs(earned.mean() - exact) < 4 * earned.std() / np.sqrt(4000)


def test_an_adaptive_policy_earns_what_is_certified_in_models_drawn_from_the_belief():
    """`Σ_m w_m` of the mean utility in model m, at least the exact lower bound and at most the upper one, but for four
    standard errors (3e-5 each)."""
    belief = chain_belief(30, 4).sample(4, np.random.default_rng(5))
    certifier = certifier_of(FiniteTask.of(belief, discount=0.8, horizon=10), core_nodes=2000)
    certifier.grow(2000)
    policy = AdaptivePolicy(certifier)
    worlds = [
        environment_from_mdp(MDP(belief.transitions[m], belief.rewards[m], initial=0), name=f"model {m}")
        for m in range(4)
    ]
    runs = [play(policy, world, seed=3, runs=range(300), steps=10, discount=0.8).utility for world in worlds]
    value = np.mean([x.mean() for x in runs])
    error = 4 * np.sqrt(sum(x.var() / 300 for x in runs)) / 4
    assert certifier.lower - error <= value <= certifier.upper + error
    assert value > mmbi(belief, discount=0.8, horizon=10).value() - error


def world():
    """Three states, two actions, rewards 0 and 1: what `support.policies` walks in, as an environment."""
    p = np.full((3, 2, 3), 1 / 3)
    return environment_from_mdp(MDP(p, [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], initial=0), name="three states")


@pytest.mark.parametrize("kind", tiers(KINDS, *ONE_OF_EACH))
def test_every_kind_plays_from_memory_from_a_file_and_on_threads(kind, tmp_path):
    policy, environment = policy_of(kind), world()
    policy.save(tmp_path / "policy")
    policy.reset(1)
    policy.observe(0, 1, 1.0, 2)
    before = policy.act(2) if "stochastic" not in kind else None

    def results(one, runs=range(8)):
        return play(one, environment, seed=4, runs=runs, steps=20).total.tolist()

    alone = results(policy)
    if before is not None:
        assert policy.act(2) == before  # playing leaves the policy as it was
    assert results(saved_policy(tmp_path / "policy", environment)) == alone
    with ThreadPoolExecutor(4) as pool:
        blocks = list(pool.map(lambda first: results(policy, range(first, first + 2)), range(0, 8, 2)))
    assert [total for block in blocks for total in block] == alone


def test_a_policy_steps_through_a_gymnasium_environment():
    environment = make_env("chain")
    episode = run_episode(StationaryPolicy([1] * 5), gymnasium_env(environment), steps=30, seed=1)
    assert episode.actions.tolist() == [1] * 30
    total = play(StationaryPolicy([1] * 5), environment, seed=1, runs=range(1), steps=30).total[0]
    assert episode.rewards.sum() == total


def test_a_policy_is_refused_where_it_does_not_fit(tmp_path):
    chain, common = make_env("chain"), {"seed": 1, "runs": range(2), "steps": 10}
    for policy, fault in (
        (StationaryPolicy([1] * 4), "policy has 4 states, the model has 5"),
        (StationaryPolicy([2] * 5), "ids run from 0 to 1"),
        (StationaryPolicy(probabilities=np.full((5, 3), 1 / 3)), "policy has 3 actions, the model has 2"),
        (MemorylessPolicy(np.ones((9, 5), dtype=int)), "has 9 decisions, and 10 are to be made"),
        (policy_of("settled"), "has 3 states and 2 actions, chain has 5 and 2"),
        (policy_of("particles"), "has 3 states and 2 actions"),
    ):
        with pytest.raises(PolicyError, match=fault):
            play(policy, chain, **common)
        policy.save(tmp_path / "policy")
        if "decisions" not in fault:
            with pytest.raises(PolicyError, match=fault):
                saved_policy(tmp_path / "policy", chain)
    available = [[True, True], [False, True]]
    partial = environment_from_mdp(
        MDP(np.full((2, 2, 2), 0.5), [[0.0, 1.0]] * 2, initial=0, available=available), name="partial"
    )
    with pytest.raises(PolicyError, match="takes action 0 in state 1, which does not offer it"):
        play(StationaryPolicy([0, 0]), partial, **common)


def test_a_world_outside_the_belief_is_said_to_be():
    p = np.zeros((3, 2, 3))
    p[:, :, 0] = 1.0
    elsewhere = environment_from_mdp(MDP(p, np.full((3, 2), 0.5), initial=0), name="elsewhere")
    with pytest.raises(ObservationError, match="reward 0.5.*impossible in every model"):
        play(policy_of("settled"), elsewhere, seed=1, runs=range(1), steps=5)


def test_the_policy_of_a_bracket_has_a_type_and_plays():
    belief = chain_belief(30, 4).sample(3, np.random.default_rng(5))
    found = bracket(belief, discount=0.8, horizon=8, target_gap=1e-3, effort=100, rng=np.random.default_rng(6))
    truth = environment_from_mdp(MDP(belief.transitions[0], belief.rewards[0], initial=0), name="model 0")
    assert found.policy is found.lower.policy
    assert play(found.policy, truth, seed=1, runs=range(3), steps=8).total.shape == (3,)
