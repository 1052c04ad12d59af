"""MCBRL: a plain twin, its schedules, its parameters, and the paper's Table 1."""

import numpy as np
import pytest

from beliefbound import DirichletBelief, DirichletRewards
from beliefbound.kernels.planning.held_models import HeldModels, PlainModels
from beliefbound.lab.agents import canonical_agent, make_agent
from beliefbound.lab.agents.mcbrl import SWEEPS
from support.agent_twins import McbrlTwin
from support.environments import CHAIN, ENVIRONMENTS
from support.every_agent import EveryAgent, allocations
from support.following import follow
from support.planning_steps import planning_steps, values_held
from support.table1 import check_published


class TestMcbrl(EveryAgent):
    name = "mcbrl"
    variants = ("mcbrl:n=5,schedule=posterior", "mcbrl:n=9,warm=no,schedule=doubling")
    mistakes = (
        ("mcbrl:", "nothing follows the colon"),
        ("mcbrl:16,sometimes", "schedule is 'sometimes'; give one of constant, linear"),
        ("mcbrl:n=16,linear", "'linear' comes after a key=value"),
        ("mcbrl:sweps=3", "no 'sweps'; did you mean 'sweeps'"),
        ("mcbrl:n=0", "n is 0; give a whole number from 1"),
        ("mcbrl:n=2.5", "n is '2.5'; give a whole number"),
        ("mcbrl:n=2,n=3", "n is given twice"),
        ("mcbrl:schedule=linaer", "did you mean 'linear'"),
        ("mcbrl:interval=0", "interval is 0"),
        ("mcbrl:schedule=posterior,interval=5", "interval has no effect with schedule=posterior"),
        ("mcbrl:threshold=0.1", "threshold has no effect with schedule=linear"),
        ("mcbrl:concentration=0", "concentration is 0.0; give a number above 0"),
        ("mcbrl:tolerance=nan", "tolerance is nan"),
        ("mcbrl:discount=1", "discount is 1.0"),
        ("mcbrl:preset=papr", "did you mean 'paper'"),
    )


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
@pytest.mark.parametrize("n", [1, 3, 8, 16, 29])
def test_mcbrl_equals_its_twin_step_by_step(environment, n):
    twin = McbrlTwin(environment, n, discount=0.95)
    agent = make_agent(f"mcbrl:n={n}", environment, discount=0.95)
    follow_values(agent, twin, environment, steps=150, seed=n)
    assert agent.machine.state.clock[SWEEPS] == twin.total_sweeps


def follow_values(agent, twin, environment, *, steps, seed):
    """Actions and values of every step."""

    def watch(k):
        np.testing.assert_allclose(values_held(agent.machine.state), twin.v.T, rtol=1e-12, atol=1e-12)

    follow(agent, environment, steps, seed=seed, twin=twin, alike=twin.indifferent, watch=watch)


def test_every_mcbrl_parameter_means_what_it_says():
    twin = McbrlTwin(CHAIN, 5, discount=0.8, interval=4, increment=3, sweeps=3, tolerance=0.02, warm=False)
    twin.concentration = 0.7
    name = "mcbrl:n=5,interval=4,increment=3,sweeps=3,tolerance=0.02,warm=no,discount=0.8,concentration=0.7"
    follow_values(make_agent(name, CHAIN), twin, CHAIN, steps=200, seed=1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mcbrl:preset=paper,n=2", [1, 12, 24, 37, 51, 66, 82]),
        ("mcbrl:n=2,interval=5,increment=0", [1, 6, 11, 16, 21]),
        ("mcbrl:n=2,schedule=constant,interval=20", [1, 21, 41, 61, 81]),
    ],
)
def test_schedules_plan_at_the_documented_steps(name, expected):
    assert planning_steps(name, expected[-1]) == expected


@pytest.mark.full
def test_posterior_schedule_plans_when_an_expected_row_has_moved():
    """Against the definition, computed afresh from the counts at every step."""
    due, planned = [1], [None]

    def expected(state):
        alpha, (successes, failures) = state.posterior.alpha.reshape(5, 2, 5), state.posterior.reward.reshape(2, 5, 2)
        return alpha / alpha.sum(axis=-1, keepdims=True), successes / (successes + failures)

    prior = (np.full((5, 2, 5), 0.2), np.full((5, 2), 0.5))
    planned[0] = prior

    def watch(state, k, s, a):
        p, r = expected(state)
        moved = np.abs(p - planned[0][0]).sum(axis=-1) + np.abs(r - planned[0][1])
        if moved[s, a] >= 0.4:
            due.append(k + 1)
            planned[0] = (p, r)

    found = planning_steps("mcbrl:n=2,schedule=posterior,threshold=0.4", 200, watch=watch)
    assert found == [k for k in due if k <= 200]
    assert 5 < len(found) < 100


def test_the_solve_preset_is_many_sweeps():
    assert canonical_agent("mcbrl:preset=solve,n=4") == "mcbrl:n=4,sweeps=1000,tolerance=1e-06"


def test_models_are_plain_where_rows_and_rewards_are():
    """Of no other posterior: what draws plain models looks at counts of own rows, and at successes."""
    values = DirichletBelief(5, 2, rewards=DirichletRewards([0.0, 2.0, 10.0]))
    for prior, belief, kind in (
        ("flat", None, PlainModels),
        ("known-rewards", None, HeldModels),  # on arrival
        ("semi-tied", None, HeldModels),
        ("sparse-support", None, HeldModels),
        ("flat", values, HeldModels),
    ):
        agent = make_agent("mcbrl:n=4" + f",prior={prior}" * (belief is None), CHAIN, belief=belief)
        assert type(agent.machine.state.models) is kind, prior


@pytest.mark.full
def test_drawing_rewards_of_several_values_allocates_nothing():
    belief = DirichletBelief(5, 2, rewards=DirichletRewards([0.0, 2.0, 10.0]))
    agent = make_agent("mcbrl:n=4", CHAIN, belief=belief)
    assert allocations(agent, CHAIN, 40) == allocations(agent, CHAIN, 80) > 0


@pytest.mark.parametrize(
    ("n", "total", "error", "utility"),
    [
        (1, 3166, 3.6, 28.50),
        pytest.param(8, 3358, 4.1, 29.65, marks=pytest.mark.full),
        pytest.param(16, 3376, 4.1, 29.95, marks=pytest.mark.full),
    ],
)
def test_the_papers_table_1(n, total, error, utility):
    check_published(f"mcbrl:n={n}", total, error, utility)
