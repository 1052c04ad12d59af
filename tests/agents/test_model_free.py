"""Delayed Q-learning, interval estimation and IEQL+: updates worked out by hand."""

import numpy as np
import pytest

from beliefbound import MDP
from beliefbound.agents import make_agent, play
from beliefbound.agents.interval_estimation import upper_end
from beliefbound.envs import environment_from_mdp, make_env
from beliefbound.errors import ParameterError

CHAIN = make_env("chain")


def test_delayed_q_lowers_its_value_until_an_attempt_fails():
    single = environment_from_mdp(MDP(np.ones((1, 1, 1)), [[0.0]], initial=0), name="nothing", reward_range=(0.0, 1.0))
    agent = make_agent("delayed-q:m=1,accuracy=0.1,discount=0.5", single)
    agent.reset(0)
    state = agent.machine.state
    values = [float(state.q[0, 0])]
    for _ in range(6):
        agent.observe(0, 0, 0.0, 0)
        values.append(float(state.q[0, 0]))
    assert values == pytest.approx([2, 1.1, 0.65, 0.425, 0.3125, 0.3125, 0.3125])
    assert not state.learning[0, 0]


def test_delayed_q_takes_up_learning_again_after_a_success_elsewhere():
    agent = make_agent("delayed-q:m=2,accuracy=0.1,discount=0.5", CHAIN)
    agent.reset(0)
    state = agent.machine.state
    agent.observe(0, 0, 10.0, 1)
    assert state.q[0, 0] == 2.0  # one target of two
    agent.observe(0, 0, 10.0, 1)  # targets 1 + .5 · 2 = 2: no success, and none since
    assert state.q[0, 0] == 2.0
    assert not state.learning[0, 0]
    for _ in range(2):
        agent.observe(1, 0, 0.0, 1)  # targets .5 · 2: a success
    assert state.q[1, 0] == pytest.approx(1.1)
    agent.observe(0, 0, 0.0, 1)  # this one only wakes it up
    assert state.learning[0, 0]
    assert state.samples[0, 0] == 0


def test_an_attempt_that_fails_keeps_learning_if_something_has_changed_meanwhile():
    agent = make_agent("delayed-q:m=1,accuracy=0.1,discount=0.5", CHAIN)
    agent.reset(0)
    agent.observe(1, 0, 0.0, 1)  # a success at time 1
    agent.observe(0, 0, 10.0, 2)  # fails at time 2; its previous attempt, at 0, was before the success
    state = agent.machine.state
    assert state.learning[0, 0]
    agent.observe(0, 0, 10.0, 2)  # fails again, with no success since
    assert not state.learning[0, 0]


def test_interval_estimation_has_the_score_interval():
    assert upper_end(0.3, 10, 1.96) == pytest.approx(0.603227, abs=1e-6)
    assert upper_end(0.0, 10, 1.96) == pytest.approx(0.277540, abs=1e-6)
    agent = make_agent("interval-estimation", make_env("bandit:means=0.3/0.5"))
    agent.reset(0)
    assert agent.act(0) == 0
    for k in range(10):
        agent.observe(0, 0, float(k < 3), 0)
    assert agent.machine.state.upper[0].tolist() == pytest.approx([0.603227, 1.0], abs=1e-6)
    assert agent.act(0) == 1


def test_ieql_propagates_values_and_bonuses():
    agent = make_agent("ieql:z=2,sigma=1,step=0.5,power=0,discount=0.5", CHAIN)
    agent.reset(0)
    state = agent.machine.state
    assert (state.q == 0.0).all()
    assert (state.bonus == 2.0).all()
    agent.observe(0, 0, 10.0, 1)  # Q: ½(1 + 0 − 0); bonus: 2 + ½(½·2 + ½·2 − 2)
    assert (state.q[0, 0], state.bonus[0, 0]) == (0.5, 2.0)
    agent.observe(0, 0, 0.0, 0)  # greedy in 0 is action 0, 2.5 against 2
    assert state.q[0, 0] == 0.5 + 0.5 * (0.5 * 0.5 - 0.5)
    assert state.bonus[0, 0] == pytest.approx(2.0 + 0.5 * (0.5 * 2 / np.sqrt(2) + 0.5 * 2 - 2.0))
    assert state.hope[0, 0] == state.q[0, 0] + state.bonus[0, 0]
    assert agent.act(0) == int(state.hope[0, 1] > state.hope[0, 0])


def test_the_deviation_of_ieql_is_that_of_bounded_returns():
    agent = make_agent("ieql:z=2,discount=0.75", CHAIN)
    agent.reset(0)
    assert agent.machine.state.hope[0, 0] == 4.0  # 1 / (1 − .75)


def test_exploring_by_intervals_finds_more_than_chance_on_chain():
    for name in ("ieql", "delayed-q"):
        total = play(make_agent(name, CHAIN), CHAIN, seed=1, runs=50, steps=1000).total
        assert total.mean() > 1900, name
    random = play(make_agent("random", CHAIN), CHAIN, seed=1, runs=50, steps=1000).total
    assert random.mean() < 1500


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("delayed-q:m=0", "m is 0"),
        ("delayed-q:accuracy=0", "accuracy is 0.0; give a number above 0"),
        ("interval-estimation:z=-1", "z is -1.0"),
        ("ieql:sigma=-1", "sigma is -1.0"),
        ("ieql:step=0", "step is 0.0; give a number above 0"),
    ],
)
def test_bad_parameters_are_answered(name, message):
    with pytest.raises(ParameterError, match=message):
        make_agent(name, CHAIN)
