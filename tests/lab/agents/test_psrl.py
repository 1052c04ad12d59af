"""PSRL and TSDE: a plain twin, when episodes begin, and how often it tries what it does not know."""

import numpy as np
import pytest

from beliefbound import MDP
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.psrl import EPISODES
from beliefbound.lab.envs import environment_from_mdp
from support.environments import ENVIRONMENTS
from support.every_agent import EveryAgent
from support.following import follow
from support.sampling_agents import (
    check_share_of_coin,
    check_tied_rows_come_from_one_draw,
    check_what_is_ruled_out_stays_out,
    check_who_knows_the_model_plays_optimally,
)
from support.sampling_twins import PsrlTwin


class TestPsrl(EveryAgent):
    name = "psrl"
    variants = ("psrl:episodes=dynamic", "psrl:episodes=fixed,tau=5", "psrl:episodes=fixed,tau=1")
    mistakes = (
        ("psrl:tau=5", "tau has no effect with episodes=doubling"),
        ("psrl:episodes=sometimes", "give one of doubling, dynamic, fixed"),
    )


@pytest.mark.parametrize("environment", ["chain", "partial"])
@pytest.mark.parametrize("episodes", ["doubling", "dynamic"])
def test_it_equals_its_twin_step_by_step(episodes, environment):
    place, twin = ENVIRONMENTS[environment], PsrlTwin(ENVIRONMENTS[environment], dynamic=episodes == "dynamic")
    agent = make_agent(f"psrl:episodes={episodes}", place)
    follow(agent, place, 120, twin=twin)
    assert agent.machine.state.clock[EPISODES] == len(twin.lengths) > 10


def test_psrl_begins_episodes_when_a_count_has_doubled():
    """One state, one action: at steps 1, 2, 3, 5, 9, …; TSDE's last a step longer each; or every τ steps."""
    single = environment_from_mdp(MDP(np.ones((1, 1, 1)), [[0.5]], initial=0), name="one", reward_range=(0.0, 1.0))
    for name, expected in (
        ("psrl", [1, 2, 3, 5, 9, 17]),
        ("psrl:episodes=dynamic", [1, 2, 4, 7, 11, 16]),
        ("psrl:episodes=fixed,tau=7", [1, 8, 15]),
    ):
        agent = make_agent(name, single)
        began, counted = [], []
        follow(agent, single, 20, watch=lambda k, a=agent, c=counted: c.append(int(a.machine.state.clock[EPISODES])))
        began = [k + 1 for k, count in enumerate(counted) if k == 0 or count > counted[k - 1]]
        assert began == expected


@pytest.mark.parametrize(("name", "chance"), [("psrl", 1 / 2), ("psrl:episodes=fixed,tau=4", 1 / 2)])
def test_the_coin_is_tried_as_often_as_a_sample_likes_it(name, chance):
    check_share_of_coin(name, chance)


def test_after_one_head_the_coin_is_liked_with_probability_three_quarters():
    """P(θ > ½) under Beta(2, 1)."""
    check_share_of_coin("psrl", 0.75, seen=[1])


def test_tied_rows_of_one_model_come_from_one_draw():
    check_tied_rows_come_from_one_draw("psrl")


def test_what_the_belief_rules_out_stays_out():
    check_what_is_ruled_out_stays_out("psrl")


@pytest.mark.parametrize("name", ["psrl", "psrl:episodes=dynamic", "psrl:episodes=fixed,tau=300"])
def test_who_knows_the_model_plays_optimally(name):
    check_who_knows_the_model_plays_optimally(name)
