"""Finite-state controllers: exact values and gradients, enumeration on the coin, training."""

import itertools

import numpy as np
import pytest

from beliefbound.kernels.play import agent_stream
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.agents.controller import Messages, Models, Tables, advantages, evaluate, softmax, train
from support.coin import coin
from support.environments import CHAIN
from support.every_agent import EveryAgent
from support.planned_twins import ControllerTwin


class TestController(EveryAgent):
    name = "controller"
    mistakes = (
        ("controller:nodes=0", "nodes is 0"),
        ("controller:models=0", "models is 0"),
        ("controller:nodes=1000", "nodes is 1000: .* take fewer nodes"),
        ("controller:starts=0", "starts is 0"),
    )


def room(nodes, states, actions, horizon):
    shapes = [(horizon + 1, nodes, states), (nodes, states), (nodes, states), (nodes, states, actions), (nodes, states)]
    shapes += [(nodes, states, actions, states, nodes), (nodes, states, actions, states)]
    return Messages(*map(np.zeros, shapes))


def coin_models():
    """Two models that stand for Beta(1, 1): Gauss–Legendre, exact for what is cubic in θ, as two pulls are."""
    thetas = 0.5 + np.array([-1.0, 1.0]) / np.sqrt(12.0)
    environments = [coin(theta)[0] for theta in thetas]
    p = np.stack([e.mdp.transitions for e in environments])
    r = np.stack([e.mdp.rewards for e in environments])
    return Models(p, r, np.full(2, 0.5), np.eye(4)[0], 1.0)


def plain_value(models, tables, horizon):
    """A controller's value by the plain recursion over (node, state), model by model."""
    total = 0.0
    for p, r, w in zip(models.p, models.r, models.w, strict=True):
        v = np.zeros(tables.policy.shape[:2])
        for _ in range(horizon):
            q = r + models.discount * np.einsum("sat,nsatk,kt->nsa", p, tables.memory, v)
            v = (tables.policy * q).sum(axis=2)
        total += w * models.start @ v[0]
    return total


def random_tables(rng, nodes, states, actions):
    return Tables(
        softmax(rng.normal(size=(nodes, states, actions))),
        softmax(rng.normal(size=(nodes, states, actions, states, nodes))),
    )


def random_models(rng, n=3, states=3, actions=2):
    p, r = rng.dirichlet(np.ones(states), size=(n, states, actions)), rng.random((n, states, actions))
    return Models(p, r, rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(states)), 0.9)


def test_a_controllers_value_is_that_of_its_chain():
    rng = np.random.default_rng(1)
    models, tables = random_models(rng), random_tables(rng, 2, 3, 2)
    assert evaluate(models, tables, room(2, 3, 2, 9)) == pytest.approx(plain_value(models, tables, 9), rel=1e-12)


def test_the_gradient_is_exact():
    """Weighted advantages are the derivatives of the value in the softmax weights."""
    rng = np.random.default_rng(2)
    models = random_models(rng)
    weights = [rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3, 2, 3, 2))]
    tables, ascent = Tables(*map(softmax, weights)), room(2, 3, 2, 6)
    evaluate(models, tables, ascent)
    exact = (
        advantages(ascent.acting, ascent.being, tables.policy) * tables.policy * ascent.being[..., None],
        advantages(ascent.moving, ascent.passing, tables.memory) * tables.memory * ascent.passing[..., None],
    )
    for which in (0, 1):
        for _ in range(6):
            at = tuple(rng.integers(weights[which].shape))
            ends = []
            for h in (1e-5, -1e-5):
                moved = [w.copy() for w in weights]
                moved[which][at] += h
                ends.append(plain_value(models, Tables(*map(softmax, moved)), 6))
            assert exact[which][at] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


def test_without_memory_every_policy_of_the_coin_is_worth_one():
    rng = np.random.default_rng(3)
    ascent = room(1, 4, 2, 4)
    for _ in range(4):
        tables = random_tables(rng, 1, 4, 2)
        assert evaluate(coin_models(), tables, ascent) == pytest.approx(1.0, abs=1e-12)
        assert advantages(ascent.acting, ascent.being, tables.policy)[0, 0] == pytest.approx([0.0, 0.0], abs=1e-12)


def test_two_nodes_find_the_best_controller_that_enumeration_finds():
    """All that matters: the action at D and the node after each toss; 13/12, the Bayes-optimal value."""
    models, best = coin_models(), -np.inf
    for acts in itertools.product((0, 1), repeat=2):
        for moves in itertools.product((0, 1), repeat=6):
            policy, memory = np.zeros((2, 4, 2)), np.zeros((2, 4, 2, 4, 2))
            policy[:, 1:, 0] = 1.0
            for n in (0, 1):
                policy[n, 0, acts[n]] = 1.0
                memory[n, :, :, :, n] = 1.0
                memory[n, 0] = 0.0
                memory[n, 0, :, 0, n] = 1.0
                for i, t in enumerate((1, 2, 3)):
                    memory[n, 0, :, t, moves[3 * n + i]] = 1.0
            best = max(best, plain_value(models, Tables(policy, memory), 4))
    assert best == pytest.approx(13 / 12, abs=1e-12)
    tables, value = train(
        models,
        np.ones((4, 2), bool),
        nodes=2,
        horizon=4,
        iterations=60,
        starts=4,
        rng=np.random.default_rng(1),
    )
    assert value == pytest.approx(13 / 12, abs=1e-9)
    assert plain_value(models, tables, 4) == pytest.approx(value, abs=1e-12)


def test_training_never_lowers_the_value():
    models, values = random_models(np.random.default_rng(4)), []
    for iterations in (0, 1, 2, 5, 20):
        rng = np.random.default_rng(7)
        knobs = {"nodes": 2, "horizon": 10, "iterations": iterations, "starts": 1, "rng": rng}
        values.append(train(models, np.ones((3, 2), bool), **knobs)[1])
    assert (np.diff(values) >= -1e-12).all()
    assert values[-1] > values[0]


def test_one_slip_for_all_makes_a_controller_that_earns_what_the_oracle_does():
    totals = [
        play(make_agent(name, CHAIN), CHAIN, seed=1, runs=40, steps=300).total
        for name in ("oracle", "controller:nodes=2,models=16,prior=tied")
    ]
    assert totals[1].mean() > 0.97 * totals[0].mean()


def test_a_controller_is_trained_once_and_never_takes_what_is_not_offered():
    name = "controller:nodes=2,models=4,iterations=5,starts=1"
    one, same = (make_agent(name, CHAIN).machine.state for _ in range(2))
    assert one.tables.policy is same.tables.policy
    assert one.node is not same.node
    np.testing.assert_allclose(one.tables.policy.sum(axis=-1), 1.0)
    np.testing.assert_allclose(one.tables.memory.sum(axis=-1), 1.0)
    other = make_agent(f"{name},seed=2", CHAIN).machine.state
    assert not np.array_equal(other.tables.policy, one.tables.policy)


def with_tables(tables):
    """A controller for Chain of these tables."""
    agent = make_agent("controller:nodes=1,models=1,iterations=0,starts=1", CHAIN)
    agent.machine = agent.machine._replace(state=agent.machine.state._replace(tables=tables))
    return agent


def test_a_controller_plays_as_its_twin_does():
    agent = with_tables(random_tables(np.random.default_rng(6), 3, 5, 2))
    twin, rng = ControllerTwin(agent.machine.state), np.random.default_rng(1)
    agent.reset(agent_stream(4, 0, 2))
    twin.reset(4, 0, 2)
    for k in range(200):
        s, t = (int(x) for x in rng.integers(5, size=2))
        a = agent.act(s)
        assert a == twin.act(s), f"step {k}"
        agent.observe(s, a, 0.0, t)
        twin.observe(s, a, 0.0, t)
        assert agent.machine.state.node[0] == twin.node, f"step {k}"


def test_a_controller_follows_its_tables():
    policy, memory = np.zeros((2, 5, 2)), np.zeros((2, 5, 2, 5, 2))
    policy[0, :, 1] = policy[1, :, 0] = memory[0, ..., 0] = memory[1, ..., 1] = 1.0
    memory[0, 0, 1, 3] = [0.0, 1.0]  # forward from 0 to 3: remember
    agent = with_tables(Tables(policy, memory))
    agent.reset(1)
    assert [agent.act(s) for s in range(5)] == [1] * 5
    agent.observe(0, 1, 0.0, 2)
    assert agent.act(2) == 1
    agent.observe(0, 1, 0.0, 3)
    assert agent.act(3) == 0
    agent.reset(1)
    assert agent.act(3) == 1
