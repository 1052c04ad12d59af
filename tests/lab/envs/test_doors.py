"""Where environments come in: tables of one's own, model folders, gymnasium's registry. Nothing wrong gets through."""

import dataclasses

import gymnasium
import numpy as np
import pytest

from beliefbound import MDP, Environment, FiniteBelief, from_gymnasium, write_models
from beliefbound.base.errors import BeliefboundError, ModelError, ParameterError
from beliefbound.kernels.outcomes import Outcomes
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.envs import make_env

CHAIN = make_env("chain")


def changed(**tables):
    return Environment("mine", CHAIN.mdp, CHAIN.outcomes._replace(**tables), (0.0, 10.0), 0.95)


def falling(cumulative):
    table = cumulative.copy()
    table[2, 1] = [1.0, 0.5]
    return table


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"cumulative": CHAIN.outcomes.cumulative[:3]}, r"cumulative has shape \(3, 2, 2\); expected \(5, 2, outcomes"),
        ({"cumulative": CHAIN.outcomes.cumulative[0]}, "cumulative has shape"),
        ({"reward": CHAIN.outcomes.reward[:, :, :1]}, "reward has shape"),
        ({"next_state": CHAIN.outcomes.next_state[:, :1]}, "next_state has shape"),
        ({"next_state": CHAIN.outcomes.next_state + 4}, r"next_state\[.*\] is \d; ids run from 0 to 4"),
        ({"next_state": CHAIN.outcomes.next_state - 1}, r"next_state\[.*\] is -1"),
        ({"next_state": CHAIN.outcomes.next_state + 0.5}, "whole numbers"),
        ({"cumulative": CHAIN.outcomes.cumulative * 0.9}, "cumulative is not a distribution function"),
        ({"cumulative": falling(CHAIN.outcomes.cumulative)}, "cumulative is not a distribution function"),
        ({"cumulative": CHAIN.outcomes.cumulative * np.nan}, "cumulative is not a distribution function"),
        ({"cumulative": CHAIN.outcomes.cumulative - 2}, "cumulative is not a distribution function"),
        ({"cumulative": "abc"}, "not a rectangular array"),
        ({"start": CHAIN.outcomes.start[:2]}, "start has shape"),
        ({"start": CHAIN.outcomes.start * 0.5}, "start is not a distribution function"),
        ({"reward": CHAIN.outcomes.reward + np.inf}, "finite number"),
        ({"reward": CHAIN.outcomes.reward * 100}, "widen the range"),
    ],
)
def test_tables_that_compiled_code_could_not_follow_are_refused(tables, message):
    with pytest.raises(BeliefboundError, match=message):
        changed(**tables)


def test_tables_in_any_layout_are_taken():
    outcomes = Outcomes(*(np.asfortranarray(table) for table in CHAIN.outcomes))
    mine = Environment("mine", CHAIN.mdp, outcomes, (0, 10), 0.95)
    runs = [play(make_agent("exploit", each), each, seed=1, runs=3, steps=50).total for each in (mine, CHAIN)]
    np.testing.assert_array_equal(*runs)
    with pytest.raises(ModelError, match="start distribution"):
        Environment("mine", MDP([[[1.0]]], [[0.0]]), outcomes, (0, 10), 0.95)
    with pytest.raises(ModelError, match="outcomes are tuple"):
        Environment("mine", CHAIN.mdp, tuple(outcomes), (0, 10), 0.95)
    with pytest.raises(ParameterError, match="discount"):
        dataclasses.replace(CHAIN, discount=2.0)


def test_huge_action_ids_of_a_table_are_refused_at_once():
    with pytest.raises(ModelError, match="action 1000000000 .* number the actions 0, 1, 2"):
        from_gymnasium({0: {10**9: [(1.0, 0, 0.0, False)]}})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 3, 2))
    rewards = np.random.default_rng(1).random((4, 3, 2)).round(2)
    for signal, kept in (("deterministic", "plain"), ("bernoulli", "coins")):
        belief = FiniteBelief(p, rewards, reward_signal=signal, reward_range=None, initial=1)
        test = FiniteBelief(p[::-1], rewards[::-1], reward_signal=signal, initial=1)
        write_models(kept, belief, discount=0.8, test=test, true=MDP(p[2], rewards[2]))
    return p, rewards


def test_models_of_a_folder_are_environments(folder):
    p, rewards = folder
    for name, number in (
        ("folder:plain,model=1", 1),
        ("folder:plain,model=1,file=test", 2),
        ("folder:plain", 2),
        ("folder:path=coins,model=3", 3),
    ):
        environment = make_env(name)
        np.testing.assert_allclose(environment.mdp.transitions, p[number], atol=1e-12)
        np.testing.assert_allclose(environment.mdp.rewards, rewards[number], atol=1e-12)
        assert environment.discount == 0.8
        assert environment.start.tolist() == [0.0, 1.0, 0.0]
        assert make_env(environment.name).name == environment.name
    assert make_env("folder:path=plain,model=true").name == "folder:plain"
    assert set(np.unique(make_env("folder:coins,model=3").outcomes.reward)) == {0.0, 1.0}  # one of two values is paid
    average = make_env("folder:plain,model=average")
    np.testing.assert_allclose(average.mdp.transitions, p.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder", "path is missing; the form is 'folder:PATH,model=true,file=training'"),
        ("folder:nowhere", "nowhere"),
        ("folder:plain,model=4", "model is '4'; give true, average or a number from 0 to 3"),
        ("folder:plain,model=-1", "model is '-1'"),
        ("folder:plain,model=²", "model is '²'"),
        ("folder:plain,file=tset", "did you mean 'test'"),
        ("gym", "id is missing"),
        ("gym:", "nothing follows the colon"),
        ("gym:NoSuch-v1", "gymnasium cannot make it"),
        ("gym:os:NoSuch-v1", "names a module"),
        ("gym:CartPole-v1", "no transition table P"),
        ("gym:FrozenLake-v1,speed=3", "gymnasium cannot make it: .*speed"),
        ("gym:FrozenLake-v1,render_mode=human", "render_mode has no meaning here"),
        ("gym:FrozenLake-v1,a b=3", "gym has no 'a b'"),
    ],
)
def test_folders_and_ids_that_do_not_work_say_why(folder, name, message):
    with pytest.raises(BeliefboundError, match=message):
        make_env(name)


def test_gymnasiums_tables_are_environments():
    environment = make_env("gym:FrozenLake-v1,map_name=8x8,is_slippery=False")
    assert environment.name == "gym:FrozenLake-v1,is_slippery=False,map_name=8x8"
    assert make_env(environment.name).name == environment.name
    assert environment.n_states == 64
    assert environment.terminal.sum() == 11  # ten holes and the goal
    runs = play(make_agent("oracle", environment), environment, seed=1, runs=5, steps=50)
    assert runs.total.tolist() == [1.0] * 5  # nothing slips
    theirs = from_gymnasium(gymnasium.make("CliffWalking-v1"))
    np.testing.assert_array_equal(make_env("gym:CliffWalking-v1").mdp.rewards, theirs.rewards)
