"""Playing runs: the definitions, the addresses of randomness, and mistakes."""

import numpy as np
import pytest

from beliefbound import MDP
from beliefbound.base.errors import ObservationError, ParameterError
from beliefbound.kernels.play import play_loop
from beliefbound.lab.agents import make_agent, play, run_episode
from beliefbound.lab.engine.play import copied_state
from beliefbound.lab.envs import environment_from_mdp, gymnasium_env, make_env
from benchmarks.twins import entered


def cycle():
    """Two states in turn, paying 1 and 2."""
    return environment_from_mdp(MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [2.0]], initial=0), name="cycle")


def test_total_and_utility_of_a_run_worked_out_by_hand():
    environment = cycle()
    agent = make_agent("random", environment)
    common = {"seed": 1, "runs": range(1), "steps": 4, "discount": 0.5, "curve_every": 2, "visits": True}
    standard = play(agent, environment, **common)  # 1, 2, 1, 2
    assert standard.total.tolist() == [6.0]
    assert standard.utility.tolist() == [1 + 2 / 2 + 1 / 4 + 2 / 8]
    assert standard.curve.tolist() == [[3.0, 6.0]]
    assert standard.visits.tolist() == [[2, 2]]
    paper = play(agent, environment, accounting="paper", **common)  # 0, 1, 2, 1
    assert paper.total.tolist() == [4.0]
    assert paper.utility.tolist() == [1 / 2 + 2 / 4 + 1 / 8]
    assert paper.curve.tolist() == [[1.0, 4.0]]
    assert paper.visits.tolist() == [[2, 1]]
    only = play(agent, environment, accounting="paper", seed=1, runs=range(2), steps=1)
    assert only.total.tolist() == only.utility.tolist() == [0.0, 0.0]
    assert only.curve is None
    assert only.visits is None


def leaves(state):
    return [leaf for part in state for leaf in leaves(part)] if isinstance(state, tuple) else [state]


def test_playing_leaves_the_agent_as_it_was():
    environment = make_env("chain")
    agent = make_agent("thompson", environment)
    agent.reset(1)
    before = [np.array(x) for x in leaves(agent.machine.state)]
    play(agent, environment, seed=1, runs=range(2), steps=50)
    for x, y in zip(before, leaves(agent.machine.state), strict=True):
        np.testing.assert_array_equal(x, y)


def test_other_seeds_are_other_runs():
    """Where there is nothing to decide, too."""
    environment = make_env("garnet:6,1,3,seed=1")
    agent = make_agent("random", environment)
    one, other = (play(agent, environment, seed=seed, runs=range(10), steps=100).total for seed in (3, 4))
    assert (other != one).all()


def test_cells_change_the_agents_draws_only():
    environment = make_env("chain")
    agent = make_agent("random", environment)
    one, two = (play(agent, environment, seed=3, runs=range(20), steps=100, cell=cell).total for cell in (0, 1))
    assert (one != two).any()


def test_a_run_ends_in_a_terminal_state():
    p = [[[0.5, 0.5]], [[0.0, 1.0]]]
    environment = environment_from_mdp(MDP(p, [[1.0], [0.0]], initial=0), name="until heads")
    runs = play(make_agent("exploit", environment), environment, seed=1, runs=range(500), steps=100, visits=True)
    assert (runs.visits[:, 1] == 0).all()
    np.testing.assert_array_equal(runs.total, runs.visits[:, 0])
    assert abs(runs.total.mean() - 2.0) < 4 * np.sqrt(2 / 500)  # geometric; false alarms: 6e-5
    episode = run_episode(make_agent("exploit", environment), gymnasium_env(environment), steps=100, seed=1, run=7)
    assert len(episode.actions) == runs.visits[7, 0]


def parts(runs):
    """The arrays of a result."""
    return runs.total, runs.utility, runs.curve, runs.visits


def test_an_agent_of_ones_own_is_played_by_the_same_rules():
    class Forward:
        def reset(self, seed):
            self.seed = seed

        def act(self, state):
            return 1

        def observe(self, state, action, reward, next_state):
            pass

    environment = make_env("chain")
    for accounting in ("standard", "paper"):
        common = {"seed": 5, "runs": range(2, 8), "steps": 60, "curve_every": 7, "visits": True}
        ours = play(make_agent("oracle", environment), environment, accounting=accounting, **common)
        own = play(Forward(), environment, accounting=accounting, **common)
        for x, y in zip(parts(ours), parts(own), strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"steps": 2.5}, "steps is 2.5"),
        ({"seed": -1}, "seed is -1"),
        ({"runs": range(-1, 3)}, "runs is range"),
        ({"runs": range(0, 6, 2)}, "consecutive"),
        ({"runs": 0}, "runs is 0"),
        ({"runs": 2.5}, "runs is 2.5"),
        ({"runs": 10**12}, "GB; play fewer at a time"),
        ({"steps": 10**13}, "steps is 10000000000000; it may be at most"),
        ({"accounting": "papr"}, "accounting is 'papr'"),
        ({"curve_every": 0}, "curve_every is 0"),
        ({"discount": 1.5}, "discount is 1.5"),
        ({"cell": -1}, "cell is -1"),
    ],
)
def test_bad_arguments_are_answered(change, message):
    environment = make_env("chain")
    arguments = {"seed": 1, "runs": range(3), "steps": 10} | change
    with pytest.raises(ParameterError, match=message):
        play(make_agent("random", environment), environment, **arguments)


def test_an_agent_is_refused_where_it_does_not_fit():
    agent = make_agent("random", make_env("chain"))
    with pytest.raises(ParameterError, match="was not made for"):
        play(agent, make_env("riverswim"), seed=1, runs=range(1), steps=1)
    narrow = environment_from_mdp(make_env("chain").mdp, reward_range=(-20.0, 20.0))
    with pytest.raises(ParameterError, match="expects rewards in"):
        play(agent, narrow, seed=1, runs=range(1), steps=1)


def test_no_runs_are_no_results():
    environment = make_env("chain")
    runs = play(make_agent("exploit", environment), environment, seed=1, runs=range(5, 5), steps=10, visits=True)
    assert runs.total.shape == (0,)
    assert runs.visits.shape == (0, 5)


class Fixed:
    """Always the same answer, whatever it is."""

    def __init__(self, answer):
        self.answer = answer

    def reset(self, seed):
        pass

    def act(self, state):
        return self.answer

    def observe(self, state, action, reward, next_state):
        pass


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (10**6, "the agent Fixed chose action 1000000 in state 0; actions run from 0 to 1"),
        (2, "chose action 2 in state 0"),
        (-1, "chose action -1 in state 0"),
        (1.7, "chose 1.7 in state 0; an action is a whole number"),
        (None, "chose None"),
        (True, "chose True"),
        ("1", "chose '1'"),
    ],
)
def test_actions_of_ones_own_agent_are_checked_before_they_are_played(answer, message):
    with pytest.raises(ObservationError, match=message):
        play(Fixed(answer), make_env("chain"), seed=1, runs=1, steps=5)
    assert play(Fixed(np.int32(1)), make_env("chain"), seed=1, runs=1, steps=5).total.shape == (1,)


def test_an_action_that_a_state_does_not_offer_is_refused():
    environment = environment_from_mdp(MDP([[[1.0], [0.0]]], [[1.0, 0.0]], available=[[True, False]], initial=0))
    with pytest.raises(ObservationError, match="chose action 1 in state 0, which does not offer it"):
        play(Fixed(1), environment, seed=1, runs=1, steps=5)


def test_a_compiled_agent_that_leaves_the_range_is_refused():
    environment = make_env("chain")
    agent = make_agent("oracle", environment)
    agent.machine.state.lists.offered[0, 0] = 10**6
    with pytest.raises(ObservationError, match="the agent oracle chose an action outside the range of 2 actions"):
        play(agent, environment, seed=1, runs=1, steps=5)


def test_a_number_of_runs_is_a_range():
    environment = make_env("chain")
    agent = make_agent("random", environment)
    many, ranged = (play(agent, environment, seed=1, runs=runs, steps=20).total for runs in (7, range(7)))
    np.testing.assert_array_equal(many, ranged)


def test_an_agent_that_is_stepped_and_played_is_compiled_once():
    environment = make_env("chain")
    agent = make_agent("random", environment)
    agent.reset(1)
    agent.observe(0, agent.act(0), 0.0, 1)
    loop = play_loop(agent.machine.reset, agent.machine.act, agent.machine.observe)
    stepped = len(loop.signatures)
    play(agent, environment, seed=1, runs=1, steps=3)
    assert len(loop.signatures) == stepped


def test_the_benchmark_of_compiled_agents_enters_the_same_loop():
    chain = make_env("chain")
    agent = make_agent("exploit", chain)
    seconds, total = entered(agent, chain, 200, copied_state(agent.machine.state))
    assert seconds > 0.0
    assert total == play(agent, chain, seed=1, runs=1, steps=200).total[0]
