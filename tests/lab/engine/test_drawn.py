"""Agents on beliefs that count nothing: drawn from, and conditioned step by step."""

import numpy as np
import pytest

import beliefbound as bb
from beliefbound import BetaRewards, DirichletBelief
from beliefbound.base.errors import BeliefError, ParameterError
from beliefbound.lab.agents import check_agent, make_agent, play, prior
from support.mixture import Mixture
from support.tiers import tiers

CHAIN = bb.make_env("chain")
FLAT = DirichletBelief(5, 2, rewards=BetaRewards(low=0.0, high=10.0))
NAMES = ("mcbrl:n=4", "mcbrl:n=3,schedule=posterior", "mcbrl:n=2,schedule=doubling", "thompson", "exploit", "psrl")
SAMPLERS = ("thompson", "psrl", "psrl:episodes=dynamic")
NAMES = (*NAMES, "psrl:episodes=fixed,tau=5", "psrl:episodes=dynamic", "hypotheses:n=6")


class Hidden:
    """A belief whose counts nobody sees."""

    def __init__(self, own):
        self.own = own

    def __getattr__(self, name):
        if name == "counted":
            raise AttributeError(name)
        return getattr(self.own, name)

    def update(self, *step):
        return Hidden(self.own.update(*step))


def mixture(environment):
    """Two guesses about an environment of any size."""
    low, high = environment.reward_range
    S, A = environment.n_states, environment.n_actions
    rewards = BetaRewards(low=low, high=high)
    return Mixture([DirichletBelief(S, A, concentration=x, rewards=rewards) for x in (0.2, 1.0)], [0.5, 0.5])


def test_exploit_is_the_compiled_one():
    """The expected MDP is the same, so is every action; the compiled agent is told counts, the other draws none."""
    told = play(make_agent("exploit", CHAIN, belief=FLAT), CHAIN, seed=1, runs=3, steps=150).total
    drawn = play(make_agent("exploit", CHAIN, belief=Hidden(FLAT)), CHAIN, seed=1, runs=3, steps=150).total
    np.testing.assert_array_equal(told, drawn)


@pytest.mark.parametrize("name", ["mcbrl:n=8", *(pytest.param(name, marks=pytest.mark.full) for name in SAMPLERS)])
def test_the_others_earn_as_much_as_the_compiled_ones(name):
    """In law the same agent: means of 30 runs within five standard errors; 1 in a million fails."""
    one, other = (
        play(make_agent(name, CHAIN, belief=belief), CHAIN, seed=2, runs=30, steps=80).total
        for belief in (FLAT, Hidden(FLAT))
    )
    error = np.sqrt((one.var() + other.var()) / 30)
    assert abs(one.mean() - other.mean()) < 5.0 * error


@pytest.mark.parametrize("name", tiers(NAMES, "mcbrl:n=4", "exploit"))
def test_they_keep_the_protocol_on_a_mixture(name):
    check_agent(lambda environment: make_agent(name, environment, belief=mixture(environment)), steps=20)


def test_a_prior_by_name_may_be_any_belief():
    prior("two-guesses", summary="a mixture of two concentrations")(mixture)
    agent = make_agent("thompson:prior=two-guesses", CHAIN)
    assert play(agent, CHAIN, seed=1, runs=1, steps=20).total.shape == (1,)
    assert "DrawnMcbrl('thompson', 5 states" in repr(agent)


def test_others_refuse_and_name_what_is_missing():
    belief = mixture(CHAIN)
    for name in ("bamcp", "mcbrl-cadp", "bracket"):
        with pytest.raises(
            BeliefError, match=rf"the agent {name} needs a belief that can count: .* thompson do with less"
        ):
            make_agent(name, CHAIN, belief=belief)
    with pytest.raises(ParameterError, match="learns no model of the environment, so it can use no belief"):
        make_agent("qlearning", CHAIN, belief=belief)
    with pytest.raises(ParameterError, match="the belief is 3, which has no n_states; give a belief"):
        make_agent("mcbrl", CHAIN, belief=3)
    narrow = DirichletBelief(3, 2, available=[[False, True]] * 3, rewards=BetaRewards(low=-1.0, high=2.0))
    with pytest.raises(ParameterError, match="has none of the actions that state 0"):
        make_agent("mcbrl", _left_only(), belief=Hidden(narrow))


def _left_only():
    from beliefbound.lab.envs import environment_from_mdp

    p = np.full((3, 2, 3), 1.0 / 3.0)
    mdp = bb.MDP(p, np.full((3, 2), 0.5), initial=0, available=[[True, False], [True, True], [True, True]])
    return environment_from_mdp(mdp, name="left only")


def test_finite_beliefs_and_normal_rewards_play_too():
    from beliefbound.beliefs import NormalRewards

    models = FLAT.sample(20, 1)
    for belief in (models, DirichletBelief(5, 2, rewards=NormalRewards())):
        assert play(make_agent("mcbrl:n=2", CHAIN, belief=belief), CHAIN, seed=1, runs=1, steps=20).total.shape == (1,)
