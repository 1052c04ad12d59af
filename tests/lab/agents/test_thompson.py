"""Thompson sampling: MCBRL with one model."""

import numpy as np
import pytest

from beliefbound import MDP, policy_iteration
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.agents.mcbrl import SWEEPS
from support.environments import CHAIN, ENVIRONMENTS
from support.every_agent import EveryAgent
from support.planning_steps import planning_steps, values_held


class TestThompson(EveryAgent):
    name = "thompson"


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_one_model_makes_mcbrl_thompson_sampling_bit_for_bit(environment):
    for options in ("", ",schedule=constant,interval=7", ",schedule=posterior"):
        a = play(make_agent(f"mcbrl:n=1{options}", environment), environment, seed=4, runs=range(20), steps=300)
        name = f"thompson:{options[1:]}" if options else "thompson"
        b = play(make_agent(name, environment), environment, seed=4, runs=range(20), steps=300)
        np.testing.assert_array_equal(a.total, b.total)
        np.testing.assert_array_equal(a.utility, b.utility)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("thompson:schedule=doubling,interval=3", [1, 4, 10, 22, 46, 94]),
        ("thompson:schedule=constant,interval=1", [1, 2, 3, 4, 5]),
    ],
)
def test_schedules_plan_at_the_documented_steps(name, expected):
    assert planning_steps(name, expected[-1]) == expected


def test_the_solve_preset_sweeps_until_values_settle():
    agent = make_agent("thompson:preset=solve", CHAIN)
    agent.reset(0)
    agent.act(0)
    state = agent.machine.state
    assert 100 < state.clock[SWEEPS] < 1000
    mdp = MDP(state.models.p[..., 0], state.models.r[..., 0])
    np.testing.assert_allclose(values_held(state)[:, 0], policy_iteration(mdp, discount=0.95).values, atol=2e-5)
