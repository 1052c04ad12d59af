"""Other libraries' MDPs: conversions keep probabilities, rewards, action sets and the meaning of termination."""

import gymnasium
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefbound.base.errors import BeliefboundError, ModelError
from beliefbound.models.convert import (
    assemble,
    from_gymnasium,
    from_mdptoolbox,
    from_quantecon,
    gymnasium_table,
    to_mdptoolbox,
    to_quantecon,
)
from beliefbound.models.mdp import MDP


def solve(mdp, discount, *, tolerance=1e-12, sweeps=100_000):
    """Plain value iteration on a dense array."""
    p = mdp.models.dense()[0]
    r = np.where(mdp.available, mdp.rewards, -np.inf)
    v = np.zeros(mdp.n_states)
    for _ in range(sweeps):
        new = (r + discount * p @ v).max(axis=1)
        if np.abs(new - v).max() <= tolerance:
            return new
        v = new
    raise AssertionError("did not settle")


def random_mdp(seed, *, partial=True, n_states=6, n_actions=3):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_states, 0.3), size=(n_states, n_actions))
    available = rng.random((n_states, n_actions)) < 0.7 if partial else np.ones((n_states, n_actions), dtype=bool)
    available[:, 0] |= ~available.any(axis=1)
    available[0] = True  # every action exists somewhere
    return MDP(p, rng.normal(size=(n_states, n_actions)), available=available)


def assert_same(one, other):
    assert np.array_equal(one.available, other.available)
    np.testing.assert_allclose(one.models.dense(), other.models.dense(), atol=1e-12)
    np.testing.assert_allclose(one.rewards, other.rewards, atol=1e-12)


# ---------------------------------------------------------------------------------------------- gymnasium: known facts


@pytest.mark.parametrize(("is_slippery", "expected"), [(True, 0.542026), (False, 0.99**5)])
def test_frozen_lake_has_its_known_value(is_slippery, expected):
    mdp = from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=is_slippery))
    assert mdp.n_states == 16
    assert mdp.initial[0] == 1.0
    assert solve(mdp, 0.99)[0] == pytest.approx(expected, abs=1e-6)


def test_cliff_walking_takes_thirteen_steps_though_its_goal_has_ordinary_rows():
    env = gymnasium.make("CliffWalking-v1")
    mdp = from_gymnasium(env)
    assert mdp.n_states == 48
    assert env.unwrapped.P[47][0][0][:2] != (1.0, 47)  # the table itself walks on from the goal
    assert mdp.transitions[47, :, 47].tolist() == [1.0] * 4
    assert solve(mdp, 1.0) @ mdp.initial == pytest.approx(-13.0)


def test_taxi_best_and_worst_fares():
    mdp = from_gymnasium(gymnasium.make("Taxi-v4"))
    assert mdp.n_states == 500
    values = solve(mdp, 1.0)
    starts = mdp.initial > 0
    # 20 on delivery, −1 for every other step; the shortest fare from a start: pick up, move, drop off.
    assert values[starts].mean() == pytest.approx(taxi_by_search(), abs=1e-9)
    assert values[starts].mean() == pytest.approx(7.93, abs=0.005)


def taxi_by_search():
    """Mean best return over the start states, by breadth-first search on the simulator's own geometry."""
    rows = ["R: | : :G", " : | : : ", " : : : : ", " | : | : ", "Y| : |B: "]
    spots = [(0, 0), (0, 4), (4, 0), (4, 3)]

    def neighbours(cell):
        r, c = cell
        if r > 0:
            yield r - 1, c
        if r < 4:
            yield r + 1, c
        if c < 4 and rows[r][2 * c + 1] == ":":
            yield r, c + 1
        if c > 0 and rows[r][2 * c - 1] == ":":
            yield r, c - 1

    def distances(source):
        found, layer, d = {source: 0}, [source], 0
        while layer:
            d += 1
            layer = [n for n in {n for cell in layer for n in neighbours(cell)} if n not in found]
            found.update(dict.fromkeys(layer, d))
        return found

    from_spot = [distances(spot) for spot in spots]
    returns = [
        21 - (from_spot[i][(r, c)] + from_spot[i][spots[j]] + 2)
        for r in range(5)
        for c in range(5)
        for i in range(4)
        for j in range(4)
        if i != j
    ]
    return float(np.mean(returns))


# ------------------------------------------------------------------------------------------------ gymnasium: semantics


def test_duplicates_are_merged_and_rewards_averaged():
    table = {0: {0: [(0.25, 1, 1.0, False), (0.25, 1, 3.0, False), (0.5, 0, 0.0, False)]}, 1: {0: [(1.0, 0, 5, False)]}}
    mdp = from_gymnasium(table)
    assert mdp.transitions.tolist() == [[[0.5, 0.5]], [[1.0, 0.0]]]
    assert mdp.rewards.tolist() == [[1.0], [5.0]]


def test_termination_that_depends_on_the_transition_gets_a_state_of_its_own():
    # From state 0 a coin ends the episode in 1 or leads to 1 without ending it, where 10 is waiting.
    table = {0: {0: [(0.5, 1, 1.0, True), (0.5, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 10.0, True)]}}
    mdp = from_gymnasium(table)
    assert mdp.n_states == 3
    assert mdp.transitions[0, 0].tolist() == [0.0, 0.5, 0.5]
    assert solve(mdp, 0.5).tolist() == [0.5 + 0.5 * 0.5 * 10.0, 10.0, 0.0]


def test_a_start_state_named_by_a_terminated_outcome_stays_alive():
    class Loop:
        P = {0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 1.0, True)]}}  # noqa: RUF012
        initial_state_distrib = (1.0, 0.0)

    mdp = from_gymnasium(Loop())
    assert mdp.n_states == 3
    assert mdp.initial.tolist() == [1.0, 0.0, 0.0]
    assert solve(mdp, 0.9).tolist() == [0.9, 1.0, 0.0]


def test_states_that_no_episode_reaches_do_not_add_a_state():
    class Env:  # state 2 enters the goal 1 without the flag, but nothing leads to 2
        P = {0: {0: [(1.0, 1, 1.0, True)]}, 1: {0: [(1.0, 0, 7.0, False)]}, 2: {0: [(1.0, 1, 0.0, False)]}}  # noqa: RUF012
        initial_state_distrib = (1.0, 0.0, 0.0)

    assert from_gymnasium(Env()).n_states == 3
    assert from_gymnasium(Env.P).n_states == 4  # of a bare table every state outside the goals may be a start
    assert solve(from_gymnasium(Env()), 0.9)[0] == 1.0


def test_simulated_returns_agree_with_the_imported_value():
    # 2000 episodes of the optimal FrozenLake policy; 4.5 standard errors: false alarms below 1e-5.
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=10_000)
    mdp = from_gymnasium(env)
    values = solve(mdp, 0.99)
    policy = (mdp.rewards + 0.99 * mdp.transitions @ values).argmax(axis=1)
    env.action_space.seed(0)
    returns = []
    for episode in range(2000):
        state, _ = env.reset(seed=7 if episode == 0 else None)
        total, weight, over = 0.0, 1.0, False
        while not over:
            state, reward, terminated, truncated, _ = env.step(int(policy[state]))
            total, weight, over = total + weight * reward, weight * 0.99, terminated or truncated
        returns.append(total)
    error = np.std(returns) / np.sqrt(len(returns))
    assert abs(np.mean(returns) - values[0]) < 4.5 * error


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.booleans())
def test_gymnasium_round_trip(seed, terminal):
    mdp = random_mdp(seed)
    if terminal:
        p, r = mdp.transitions.copy(), mdp.rewards.copy()
        p[-1], r[-1] = 0.0, 0.0
        p[-1, :, -1] = 1.0
        mdp = MDP(p, r, available=mdp.available)
    assert_same(from_gymnasium(gymnasium_table(mdp)), mdp)


def test_an_exported_table_runs_frozen_lake_again():
    mdp = from_gymnasium(gymnasium.make("FrozenLake-v1"))
    table = gymnasium_table(mdp)
    assert table[14][2][-1][3] is True  # the goal, entered
    assert_same(from_gymnasium(table), mdp)


def test_large_tables_become_sparse(monkeypatch):
    table = gymnasium.make("Taxi-v4")
    dense = from_gymnasium(table)
    monkeypatch.setattr("beliefbound.models.convert.assemble.SPARSE_BYTES", 1 << 20)
    sparse = from_gymnasium(table)
    assert sparse.is_sparse
    assert not dense.is_sparse
    assert_same(sparse, dense)
    assert gymnasium_table(sparse) == gymnasium_table(dense)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (gymnasium.make("CartPole-v1"), "CartPoleEnv has no transition table P"),
        ({}, "no outcomes"),
        ({0: {0: [(1.0, 0, 0.0)]}}, r"P\[0\]\[0\]\[0\] is \(1.0, 0, 0.0\); expected"),
        ({0: {0: [(0.7, 0, 0.0, False)]}}, r"transitions\[state 0, action 0\] sums to 0.7"),
        ({0: {0: [(1.0, 1, 0.0, False)]}}, r"P\[1\] has no action"),
        ({0: {0: [(1.0, 10**12, 0.0, True)]}}, "not state 1"),
        ({0: {0: [(1.0, -1, 0.0, False)]}}, "next states of P"),
        ({0: {0: [(1.0, 0, float("nan"), False)]}}, r"rewards\[state 0, action 0\] is nan"),
        ({0: {0: [(1.5, 0, 0.0, False), (-0.5, 1, 0.0, True)]}, 1: {0: []}}, r"P\[0\]\[0\]\[1\] has probability -0.5"),
    ],
)
def test_bad_tables_are_named(source, message):
    with pytest.raises(ModelError, match=message):
        from_gymnasium(source)


# --------------------------------------------------------------------------------------------------------- mdptoolbox


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_mdptoolbox_round_trip(seed, sparse):
    mdp = random_mdp(seed)
    transitions, rewards = to_mdptoolbox(mdp.to_sparse() if sparse else mdp)
    assert_same(from_mdptoolbox(transitions, rewards), mdp)


def test_mdptoolbox_reward_shapes_agree():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=(3, 4))
    r = rng.normal(size=(3, 4, 4))
    expected = np.einsum("ast,ast->sa", p, r)
    assert from_mdptoolbox(p, r).rewards == pytest.approx(expected)
    blocks, rewards = [sp.csr_matrix(x) for x in p], [sp.csr_matrix(x) for x in r]
    assert from_mdptoolbox(blocks, rewards).rewards == pytest.approx(expected)
    assert from_mdptoolbox(blocks, r).rewards == pytest.approx(expected)
    assert from_mdptoolbox(p, rewards).rewards == pytest.approx(expected)
    assert from_mdptoolbox(p, r[0, :, 0]).rewards.tolist() == np.repeat(r[0, :, :1], 3, axis=1).tolist()
    objects = np.empty(3, dtype=object)
    objects[:] = blocks
    assert_same(from_mdptoolbox(objects, expected), from_mdptoolbox(p, r))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")  # from pymdptoolbox's own checks
@pytest.mark.parametrize("sparse", [False, True])
def test_mdptoolbox_solves_what_we_export(sparse):
    mdptoolbox = pytest.importorskip("mdptoolbox.mdp")
    mdp = random_mdp(3)
    transitions, rewards = to_mdptoolbox(mdp.to_sparse() if sparse else mdp)
    solver = mdptoolbox.PolicyIteration(transitions, rewards, 0.9)
    solver.run()
    values = solve(mdp, 0.9)
    np.testing.assert_allclose(solver.V, values, atol=1e-6)
    best = np.where(mdp.available, mdp.rewards + 0.9 * mdp.transitions @ values, -np.inf).argmax(axis=1)
    assert list(solver.policy) == best.tolist()


def test_mdptoolbox_large_problems_stay_sparse(monkeypatch):
    mdp = random_mdp(1)
    monkeypatch.setattr("beliefbound.models.convert.mdptoolbox.SPARSE_BYTES", 8)
    back = from_mdptoolbox(*to_mdptoolbox(mdp.to_sparse()))
    assert back.is_sparse
    assert_same(back, mdp)


@pytest.mark.parametrize(
    ("transitions", "rewards", "message"),
    [
        (np.eye(2), [0.0, 0.0], "transitions have shape"),
        (np.ones((1, 2, 3)), [0.0, 0.0], "action 0"),
        (np.eye(2)[None], [0.0, 0.0, 0.0], r"rewards have shape \(3,\); expected \[state, action\] = \(2, 1\)"),
        (sp.eye_array(2), [0.0, 0.0], "one per action"),
        (0.5 * np.eye(2)[None], [0.0, 0.0], r"transitions\[state 0, action 0\] sums to 0.5"),
        (np.eye(2)[None], [[-np.inf], [0.0]], "no action"),
    ],
)
def test_bad_mdptoolbox_input_is_named(transitions, rewards, message):
    with pytest.raises(ModelError, match=message):
        from_mdptoolbox(transitions, rewards)


# ---------------------------------------------------------------------------------------------------------- quantecon


@pytest.mark.full
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_quantecon_round_trip_and_solution(seed, sparse):
    pytest.importorskip("quantecon")
    mdp = random_mdp(seed)
    ddp = to_quantecon(mdp.to_sparse() if sparse else mdp, discount=0.9)
    assert_same(from_quantecon(ddp), mdp)
    solution = ddp.solve(method="policy_iteration")
    np.testing.assert_allclose(solution.v, solve(mdp, 0.9), atol=1e-9)


@pytest.mark.full
def test_quantecon_pairs_in_any_order_with_infinite_penalties():
    quantecon = pytest.importorskip("quantecon")
    mdp = random_mdp(2)
    states, actions = (x.ravel() for x in np.indices((6, 3)))
    order = np.random.default_rng(0).permutation(18)
    states, actions = states[order], actions[order]
    q = np.where(mdp.available[..., None], mdp.transitions, np.eye(6)[:, None, :])[states, actions]
    r = np.where(mdp.available, mdp.rewards, -np.inf)[states, actions]
    for matrix in (q, sp.csr_matrix(q)):
        assert_same(from_quantecon(quantecon.markov.DiscreteDP(r, matrix, 0.9, states, actions)), mdp)


@pytest.mark.full
def test_quantecon_large_problems_stay_sparse(monkeypatch):
    pytest.importorskip("quantecon")
    mdp = random_mdp(4)
    monkeypatch.setattr("beliefbound.models.convert.quantecon.SPARSE_BYTES", 8)
    back = from_quantecon(to_quantecon(mdp.to_sparse(), discount=0.5))
    assert back.is_sparse
    assert_same(back, mdp)


def test_quantecon_missing_or_wrong_is_said(monkeypatch):
    with pytest.raises(ModelError, match="expected a quantecon"):
        from_quantecon(object())
    monkeypatch.setitem(__import__("sys").modules, "quantecon.markov", None)
    with pytest.raises(BeliefboundError, match="pip install quantecon"):
        to_quantecon(random_mdp(0), discount=0.9)


def test_absorbing_states_need_every_available_action_to_stay_for_nothing():
    eye = np.repeat(np.eye(4)[:, None, :], 2, axis=1)
    p = eye.copy()
    p[2, 1] = [1.0, 0.0, 0.0, 0.0]
    rewards = [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    mdp = MDP(p, rewards, available=[[1, 1], [1, 1], [1, 1], [1, 0]])
    assert assemble.absorbing(mdp).tolist() == [True, False, False, True]
    assert assemble.absorbing(mdp.to_sparse()).tolist() == [True, False, False, True]
