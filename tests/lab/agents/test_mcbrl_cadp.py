"""MCBRL that plans with CADP: its plans are those of `cadp`."""

import numpy as np
import pytest

from beliefbound import FiniteBelief, cadp, mmbi
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.mcbrl import PLANS
from support.environments import CHAIN
from support.every_agent import EveryAgent
from support.following import walk
from support.structured_priors import PRIORS, check_structured_prior


class TestMcbrlCadp(EveryAgent):
    name = "mcbrl-cadp"
    mistakes = (
        ("mcbrl-cadp:depth=0", "depth is 0"),
        ("mcbrl-cadp:n=100000,depth=100000", "need .* GB"),
        ("mcbrl-cadp:warm=no", "mcbrl-cadp has no 'warm'"),
    )


def held(state):
    """The models that an agent holds, as a finite belief; rewards scaled."""
    return FiniteBelief(
        np.moveaxis(state.core.models.p, -1, 0),
        np.moveaxis(state.core.models.r, -1, 0),
        reward_signal="unobserved",
        normalize=True,
    )


def test_plans_of_mcbrl_cadp_are_those_of_cadp():
    agent = make_agent("mcbrl-cadp:n=5,depth=12,sweeps=50,discount=0.9,schedule=constant,interval=3", CHAIN)
    agent.reset(3)
    checked = 0
    for s in walk(agent, CHAIN, 30):
        plans = agent.machine.state.core.clock[PLANS]
        first = agent.act(s)  # asked twice: time goes on, and nothing else
        state = agent.machine.state
        if state.core.clock[PLANS] > plans:
            models = held(state)
            start = mmbi(models, discount=0.9, horizon=12).policy
            plan = cadp(models, discount=0.9, horizon=12, initial=s, start=start, restarts=False)
            np.testing.assert_array_equal(state.ascent.actions, plan.policy.actions)
            assert first == plan.policy.actions[0, s]
            checked += 1
    assert checked == 10


def test_mcbrl_cadp_follows_its_plan_stage_by_stage_and_plans_when_it_ends():
    agent = make_agent("mcbrl-cadp:n=3,depth=4", CHAIN)
    agent.reset(1)
    state = agent.machine.state
    for k in range(1, 14):
        a = agent.act(2)
        assert a == state.ascent.actions[(k - 1) % 4, 2]
        assert state.core.clock[PLANS] == 1 + (k - 1) // 4


@pytest.mark.parametrize("prior", PRIORS)
def test_structured_priors_are_learnt_from(prior):
    check_structured_prior("mcbrl-cadp:n=2", prior)
