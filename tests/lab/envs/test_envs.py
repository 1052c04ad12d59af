"""Environments: their optimal values by plain value iteration and by known facts; simulation; names; gymnasium."""

import itertools
from collections import deque

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from beliefbound.base.errors import BeliefboundError, ModelError, ObservationError, ParameterError
from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.random import seed_stream, uniform
from beliefbound.lab.envs import (
    DiscreteEnv,
    benchmark_prior,
    environment_from_mdp,
    environments,
    gymnasium_env,
    make_env,
)
from beliefbound.lab.envs.gridworlds import MAZE_FLAGS, MAZE_GOAL, MAZE_START, MAZE_WALLS
from beliefbound.models.convert import from_gymnasium
from beliefbound.models.mdp import MDP
from support.tiers import tiers

NAMES = [
    "chain",
    "double-loop",
    "grid:5",
    "grid:3,slip=0.5",
    "maze",
    "riverswim",
    "riverswim:12",
    "riverswim:form=strehl",
    "six-arms",
    "bandit:4,seed=2",
    "bandit:means=0.3/0.7",
    "optimistic",
    "garnet:50,4,5,seed=3",
    "inventory",
    "inventory:20",
    "replacement",
    "prior-chain:seed=7",
    "prior-double-loop",
    "prior-grid:seed=1",
]


def q_values(mdp, discount, *, tolerance=1e-11):
    """Plain value iteration."""
    p, r = mdp.models.dense()[0], np.where(mdp.available, mdp.rewards, -np.inf)
    v = np.zeros(mdp.n_states)
    while True:
        q = r + discount * p @ v
        if np.abs(q.max(axis=1) - v).max() <= tolerance:
            return q
        v = q.max(axis=1)


def horizon_values(mdp, horizon):
    """Undiscounted optimal values with `horizon` decisions to go."""
    v = np.zeros(mdp.n_states)
    for _ in range(horizon):
        v = (mdp.rewards + mdp.models.dense()[0] @ v).max(axis=1)
    return v


def long_run_average(mdp, policy):
    """Average reward of a policy whose chain has one recurrent class."""
    n = mdp.n_states
    p = mdp.transitions[np.arange(n), policy]
    system = np.vstack([p.T - np.eye(n), np.ones(n)])
    share = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]
    return float(share @ mdp.rewards[np.arange(n), policy])


# -------------------------------------------------------------------------------------------------------- known facts


def test_chain_is_the_papers():
    env = make_env("chain")
    assert env.start.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert env.reward_range == (0.0, 10.0)
    assert env.mdp.rewards == pytest.approx(np.array([[1.6, 0.4]] * 4 + [[3.6, 8.4]]))
    for s in range(5):
        up = min(s + 1, 4)
        row = np.zeros((2, 5))
        row[0, 0], row[0, up], row[1, up], row[1, 0] = 0.8, 0.2, 0.8, 0.2
        np.testing.assert_allclose(env.mdp.transitions[s], row, atol=1e-15)


def test_chain_always_forward_is_optimal_and_has_its_closed_form():
    env = make_env("chain")
    q = q_values(env.mdp, 0.95)
    assert q.argmax(axis=1).tolist() == [1] * 5
    # Values go back to state 0 with probability .2 from everywhere: V_s = c_s + γ(.2 V_0 + .8 V_{s+1}), and from the
    # last state V_4 = 8.4 + γ(.2 V_0 + .8 V_4). With x = .8γ and y = .4 + .2γV_0: V_0 = y(1−x⁴)/(1−x) + x⁴ V_4.
    gamma, x = 0.95, 0.8 * 0.95
    slope, fixed = (1 - x**4) / (1 - x), x**4 / (1 - x)
    v0 = (0.4 * slope + 8.4 * fixed) / (1 - 0.2 * gamma * (slope + fixed))
    assert q[0, 1] == pytest.approx(v0, abs=1e-9)
    # In the long run the last state is occupied with probability .8⁴: .2 · 2 + .8 · 10 · .8⁴ = 3.6768 a step.
    average = long_run_average(env.mdp, [1] * 5)
    assert average == pytest.approx(0.4 + 8 * 0.8**4)
    assert average == pytest.approx(3.677, abs=5e-4)


def test_the_oracle_on_chain_averages_3677_a_step():
    # 200 000 steps of always forward: the mean over 200 batches, 4.5 standard errors (false alarms below 1e-4).
    env = make_env("chain")
    stream, state = seed_stream(np.array([1, 2, 3], dtype=np.uint64)), 0
    rewards = np.empty(200_000)
    for t in range(len(rewards)):
        rewards[t], state = step(env.outcomes, state, 1, uniform(stream))
    batches = rewards.reshape(200, -1).mean(axis=1)
    assert abs(batches.mean() - 3.6768) < 4.5 * batches.std() / np.sqrt(200)


def test_double_loop_pays_400_in_1000_steps():
    mdp = make_env("double-loop").mdp
    assert horizon_values(mdp, 1000)[0] == 400.0
    right = np.zeros(9, dtype=int)
    assert long_run_average(mdp, right) == pytest.approx(0.2)


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_grid_without_slip_is_a_shortest_path(size):
    env = make_env(f"grid:{size},slip=0")
    distance = 2 * (size - 1)
    best = 0.9**distance / (1 - 0.9 ** (distance + 1))
    assert q_values(env.mdp, 0.9)[0].max() == pytest.approx(best)
    assert horizon_values(env.mdp, 10 * (distance + 1))[0] == 10.0


def test_grid_slips_sideways_only():
    env = make_env("grid:5")
    centre = 12
    row = env.mdp.transitions[centre]
    for action, ahead, sides in [(0, 7, (11, 13)), (1, 13, (7, 17)), (2, 17, (11, 13)), (3, 11, (7, 17))]:
        assert row[action, ahead] == pytest.approx(0.8)
        assert [row[action, s] for s in sides] == pytest.approx([0.1, 0.1])
    assert env.mdp.transitions[24, :, 0].tolist() == [1.0] * 4
    assert env.mdp.rewards[24].tolist() == [1.0] * 4
    assert env.mdp.rewards.sum() == 4.0


def maze_steps():
    """Fewest moves from start to goal for each set of flags, by breadth-first search on the drawing."""
    drawing = ["S#F.#.G", ".#..#..", ".......", "##...##", "......F", "F.....#"]
    flags = {(0, 5): 1, (2, 0): 2, (6, 4): 4}
    first = ((0, 0), 0)
    found, queue = {first: 0}, deque([first])
    while queue:
        (x, y), held = queue.popleft()
        if (x, y) == (6, 0):
            continue
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            cell = (x + dx, y + dy)
            if 0 <= cell[0] < 7 and 0 <= cell[1] < 6 and drawing[cell[1]][cell[0]] != "#":
                node = (cell, held | flags.get(cell, 0))
                if node not in found:
                    found[node] = found[(x, y), held] + 1
                    queue.append(node)
    return {held: found[(6, 0), held] for held in range(8)}


def test_maze_is_deardens():
    env = make_env("maze")
    assert env.n_states == 264
    assert len(MAZE_WALLS) == 42 - 33
    assert (MAZE_START, MAZE_GOAL, MAZE_FLAGS) == ((0, 0), (6, 0), ((0, 5), (2, 0), (6, 4)))
    assert env.start[env.mdp.states.index("(0,0) flags 000")] == 1.0
    for held in itertools.product("01", repeat=3):
        goal = env.mdp.states.index(f"(6,0) flags {''.join(held)}")
        assert env.mdp.rewards[goal].tolist() == [held.count("1")] * 4
        assert env.mdp.transitions[goal, :, 0].tolist() == [1.0] * 4
    assert env.mdp.rewards.sum() == 4 * 12  # and nothing elsewhere
    below = env.mdp.states.index("(2,1) flags 100")
    assert env.mdp.transitions[below, 0, env.mdp.states.index("(2,0) flags 110")] == pytest.approx(0.9)
    # East of (2,1) is free, west of it is a wall: going north slips east, or stays.
    assert env.mdp.transitions[below, 0, env.mdp.states.index("(3,1) flags 100")] == pytest.approx(0.05)
    assert env.mdp.transitions[below, 0, below] == pytest.approx(0.05)


@pytest.mark.parametrize("discount", tiers([0.8, 0.95, 0.99], 0.95))
def test_maze_without_slip_is_the_best_round_trip(discount):
    value = q_values(make_env("maze:slip=0").mdp, discount)[0].max()
    best = max(
        bin(held).count("1") * discount**moves / (1 - discount ** (moves + 1)) for held, moves in maze_steps().items()
    )
    assert value == pytest.approx(best, rel=1e-8)


def test_riverswim_and_six_arms_have_the_published_optima():
    """Long-run average, 5000 undiscounted steps from the start, and discounted value at γ = .95."""
    for name, gain, total, value in (
        ("riverswim", 0.428622434, [2137.752872], [4.669300161]),
        ("riverswim:form=strehl", 668.807339, [3335007.56, 3337980.04], [7214.76155, 8839.45255]),
        ("six-arms", 6000.0, [29_400_000.0], [19159.663866]),
    ):
        env = make_env(name)
        starts = np.flatnonzero(env.start)
        assert env.start[starts].tolist() == [1 / len(starts)] * len(starts)
        q = q_values(env.mdp, 0.95)
        np.testing.assert_allclose(q.max(axis=1)[starts], value, rtol=1e-8)
        np.testing.assert_allclose(horizon_values(env.mdp, 5000)[starts], total, rtol=1e-8)
        last = horizon_values(env.mdp, 3000) - horizon_values(env.mdp, 2999)
        np.testing.assert_allclose(last[starts], gain, rtol=1e-6)
    river = make_env("riverswim:form=strehl")
    assert river.outcomes.reward[5, 1].tolist() == [0.0, 10_000.0, 0.0]  # carried right, stays, carried left


def test_bandits_pay_one_with_the_chances_of_their_arms():
    env = make_env("bandit:means=0.3/0.7")
    assert env.mdp.rewards.tolist() == [[0.3, 0.7]]
    assert env.reward_range == (0.0, 1.0)
    assert env.prior is None
    drawn = make_env("bandit:5,seed=3")
    assert drawn.n_actions == 5
    np.testing.assert_array_equal(drawn.mdp.rewards, make_env("bandit:arms=5,seed=3").mdp.rewards)
    assert (drawn.mdp.rewards != make_env("bandit:5").mdp.rewards).all()
    assert drawn.prior().mean().rewards.tolist() == [[0.5] * 5]
    many = np.concatenate([make_env(f"bandit:500,seed={k}").mdp.rewards[0] for k in range(8)])
    assert stats.kstest(many, "uniform").pvalue > 1e-3
    outcomes = [step(env.outcomes, 0, a, 0.5) for a in (0, 1)]  # the same uniform is the same event
    assert outcomes == [(0.0, 0), (1.0, 0)]


def test_riverswim_swims_right_when_patient_and_left_when_not():
    env = make_env("riverswim")
    assert env.mdp.transitions[0, 1].tolist() == [0.4, 0.6, 0, 0, 0, 0]
    assert env.mdp.transitions[2, 1].tolist() == [0, 0.05, 0.6, 0.35, 0, 0]
    assert env.mdp.transitions[5, 1].tolist() == [0, 0, 0, 0, 0.4, 0.6]
    assert env.mdp.transitions[3, 0].tolist() == [0, 0, 1, 0, 0, 0]
    assert np.argwhere(env.mdp.rewards).tolist() == [[0, 0], [5, 1]]
    assert env.mdp.rewards[0, 0] / env.mdp.rewards[5, 1] == pytest.approx(5 / 1000)
    assert q_values(env.mdp, 0.95).argmax(axis=1).tolist() == [1] * 6
    assert q_values(env.mdp, 0.2)[0].argmax() == 0
    # Birth–death balance under always right: .6 π_0 = .05 π_1, .35 π_i = .05 π_{i+1}, .35 π_4 = .4 π_5.
    weights = [1.0, 12.0]
    weights += [weights[-1] * 7.0 ** (i + 1) for i in range(3)]
    weights.append(weights[-1] * 0.35 / 0.4)
    assert long_run_average(env.mdp, [1] * 6) == pytest.approx(weights[-1] / sum(weights))


def test_optimistic_task_is_solved_by_staying():
    env = make_env("optimistic")
    q = q_values(env.mdp, 0.95)
    assert q[0, 0] == pytest.approx(0.1 / 0.05)
    assert q[2, 1] == pytest.approx(0.1 / 0.05)
    wait = 0.1 * (0.1 + 0.95 * 2.0) / (1 - 0.95 * 0.9)  # leave the middle with probability δ = .1 a step
    assert q[1].tolist() == pytest.approx([wait, wait])
    assert q[0, 1] == pytest.approx(0.95 * wait)


def test_garnet_has_its_shape_and_repeats():
    env, again = make_env("garnet:50,4,5,seed=3"), make_env("garnet:50,4,5,seed=3")
    assert np.array_equal(env.mdp.transitions, again.mdp.transitions)
    assert np.array_equal(env.mdp.rewards, again.mdp.rewards)
    assert ((env.mdp.transitions > 0).sum(axis=2) == 5).all()
    assert not np.array_equal(env.mdp.rewards, make_env("garnet:50,4,5,seed=4").mdp.rewards)
    assert make_env("garnet:1,1,1").n_states == 1
    assert (make_env("garnet:6,2,6").mdp.transitions > 0).all()
    assert make_env("garnet:3000,2,3").mdp.is_sparse


def test_garnet_successors_are_uniform():
    # 40 000 successors over 20 states; chi-square with 19 degrees of freedom, false alarms 1e-4. Successors of
    # one pair are distinct, which only makes the counts more even than independent ones.
    env = make_env("garnet:20,1000,2,seed=1")
    counts = (env.mdp.transitions > 0).sum(axis=(0, 1))
    assert counts.sum() == 40_000
    assert stats.chisquare(counts).pvalue > 1e-4


def test_inventory_is_putermans_example():
    mdp = make_env("inventory").mdp
    expected = [[0, -1, -2, -5], [5, 0, -3], [6, -1], [5]]
    for s, rewards in enumerate(expected):
        assert mdp.rewards[s, : len(rewards)].tolist() == rewards
        assert (mdp.rewards[s, len(rewards) :] == rewards[-1]).all()  # an order that does not fit is cut
    # His solution of the three-period problem: 67/16, 129/16, 194/16, 227/16.
    assert (16 * horizon_values(mdp, 3)).tolist() == [67, 129, 194, 227]


def test_inventory_orders_up_to_a_level():
    env = make_env("inventory:20")
    q = q_values(env.mdp, 0.95)
    assert env.n_states == env.n_actions == 21
    order = q.argmax(axis=1)
    orders = np.flatnonzero(order > 0)
    assert np.array_equal(orders, np.arange(len(orders)))  # an (s, S) policy: order below s …
    assert len(set((orders + order[orders]).tolist())) == 1  # … and always up to S
    assert len(orders) > 0


@pytest.mark.parametrize("states", [2, 10, 30])
def test_replacement_is_a_control_limit(states):
    env = make_env(f"replacement:{states}")
    q = q_values(env.mdp, 0.95)
    choice = q.argmax(axis=1)
    assert (np.diff(choice) >= 0).all()
    assert (np.diff(q.max(axis=1)) <= 1e-9).all()
    if states == 10:
        assert 0 < choice.sum() < 10
        # The best of all control limits, each by a linear solve, from a new machine.
        values = []
        for limit in range(1, 11):
            policy = (np.arange(10) >= limit).astype(int)
            chain = env.mdp.transitions[np.arange(10), policy]
            values.append(np.linalg.solve(np.eye(10) - 0.95 * chain, env.mdp.rewards[np.arange(10), policy])[0])
        assert q[0].max() == pytest.approx(max(values))


@pytest.mark.parametrize("kind", ["chain", "double-loop", "grid"])
def test_benchmark_draws_follow_their_prior(kind):
    concentration, rewards = benchmark_prior(kind)
    draws = [make_env(f"prior-{kind}:seed={seed}").mdp for seed in range(200)]
    for mdp in draws:
        assert ((mdp.transitions > 0) == (concentration > 0)).all()
        assert mdp.rewards == pytest.approx((mdp.transitions * rewards).sum(axis=2))
    # Two successors of concentration 1 each: the chance of the first is uniform. One pair per draw, 200 draws;
    # Kolmogorov–Smirnov at 1e-4.
    s, a = np.argwhere((concentration > 0).sum(axis=2) == 2)[0]
    first = [mdp.transitions[s, a][concentration[s, a] > 0][0] for mdp in draws]
    assert stats.kstest(first, "uniform").pvalue > 1e-4
    with pytest.raises(ParameterError, match="no benchmark prior"):
        benchmark_prior("cycle")


# --------------------------------------------------------------------------------------------------------- simulation


@pytest.mark.parametrize("name", NAMES)
def test_simulated_frequencies_are_the_mdps_rows(name):
    # 4000 draws for up to 8 pairs; chi-square per pair at 1e-6, so false alarms below 2e-4 in all.
    env = make_env(name)
    rng = np.random.default_rng(5)
    pairs = list(itertools.product(range(env.n_states), range(env.n_actions)))
    for s, a in [pairs[i] for i in rng.choice(len(pairs), size=min(8, len(pairs)), replace=False)]:
        counts, total = np.zeros(env.n_states), 0.0
        for u in rng.random(4000):
            reward, t = step(env.outcomes, s, a, u)
            assert env.reward_range[0] <= reward <= env.reward_range[1]
            counts[t] += 1
            total += reward
        row = env.mdp.transitions[s, a]
        assert not counts[row == 0.0].any()
        often = row * 4000 >= 5
        seen = np.append(counts[often], counts[~often].sum())
        hoped = np.append(row[often], row[~often].sum()) * 4000
        if (hoped > 0).sum() > 1:
            assert stats.chisquare(seen[hoped > 0], hoped[hoped > 0]).pvalue > 1e-6
        spread = env.reward_range[1] - env.reward_range[0]
        assert abs(total / 4000 - env.mdp.rewards[s, a]) <= 5 * spread / np.sqrt(4000)


@pytest.mark.parametrize("name", NAMES)
def test_the_mdp_is_the_expectation_of_the_outcomes(name):
    env = make_env(name)
    p = np.diff(env.outcomes.cumulative, axis=2, prepend=0.0)
    assert (p >= 0).all()
    assert (env.outcomes.cumulative[:, :, -1] == 1.0).all()
    np.testing.assert_allclose((p * env.outcomes.reward).sum(axis=2), env.mdp.rewards, atol=1e-12)
    transitions = np.zeros_like(env.mdp.transitions)
    s, a, _ = np.indices(p.shape)
    np.add.at(transitions, (s, a, env.outcomes.next_state), p)
    np.testing.assert_allclose(transitions, env.mdp.transitions, atol=1e-12)
    assert not env.outcomes.reward.flags.writeable


def test_the_same_uniform_is_the_same_event_for_both_chain_actions():
    env = make_env("chain")
    for u in np.random.default_rng(0).random(200):
        slips = u >= 0.8
        for s in range(5):
            back, forward = (2.0, 0), (10.0 if s == 4 else 0.0, min(s + 1, 4))
            assert step(env.outcomes, s, 0, u) == (forward if slips else back)
            assert step(env.outcomes, s, 1, u) == (back if slips else forward)


def test_edges_of_the_uniform_never_reach_impossible_outcomes():
    nearly = np.nextafter(1.0, 0.0)
    for name in NAMES:
        env = make_env(name)
        for s, a, u in itertools.product(range(min(env.n_states, 20)), range(env.n_actions), (0.0, nearly)):
            _, t = step(env.outcomes, s, a, u)
            assert env.mdp.transitions[s, a, t] > 0.0


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.booleans())
def test_any_mdp_becomes_an_environment(seed, sparse):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(5), size=(5, 3)) * (rng.random((5, 3, 5)) < 0.5)
    p[..., 0] += p.sum(axis=2) == 0.0
    available = rng.random((5, 3)) < 0.7
    available[:, 1] = True
    mdp = MDP(p, rng.normal(size=(5, 3)), available=available, initial=rng.dirichlet(np.ones(5)), normalize=True)
    env = environment_from_mdp(mdp.to_sparse() if sparse else mdp)
    chance = np.diff(env.outcomes.cumulative, axis=2, prepend=0.0)
    transitions = np.zeros((5, 3, 5))
    s, a, _ = np.indices(chance.shape)
    np.add.at(transitions, (s, a, env.outcomes.next_state), chance)
    np.testing.assert_allclose(transitions[available], mdp.transitions[available], atol=1e-12)
    assert env.reward_range == (mdp.rewards[available].min(), mdp.rewards[available].max())
    assert begin(env.outcomes, 0.0) == int(np.argmax(mdp.initial > 0))


def test_environment_from_mdp_checks_what_it_is_told():
    mdp = MDP([[[1.0]]], [[2.0]])
    assert environment_from_mdp(mdp).reward_range == (2.0, 3.0)
    assert environment_from_mdp(mdp, reward_range=(0, 4)).reward_range == (0.0, 4.0)
    with pytest.raises(ModelError, match=r"rewards run from 2\.0 to 2\.0; widen"):
        environment_from_mdp(mdp, reward_range=(0.0, 1.0))
    with pytest.raises(ParameterError, match="low < high"):
        environment_from_mdp(mdp, reward_range=(2.0, 2.0))
    with pytest.raises(ParameterError, match="two numbers"):
        environment_from_mdp(mdp, reward_range=3.0)
    with pytest.raises(ModelError, match="initial state"):
        environment_from_mdp(mdp, start=4)


# -------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", NAMES)
def test_names_are_canonical(name):
    env = make_env(name)
    assert make_env(env.name).name == env.name
    assert env.mdp.initial is not None


def test_spellings_of_one_environment_agree():
    names = ["garnet:50,4,5,seed=3", "garnet:50,4,5,3", "garnet:seed=3,branching=5,states=50,actions=4"]
    assert {make_env(name).name for name in names} == {"garnet:50,4,5,seed=3"}
    assert make_env("grid:5").name == make_env("grid").name == "grid"
    assert make_env(" grid : 7 , slip = 0.3 ").name == "grid:7,slip=0.3"
    assert make_env("garnet:branching=2").name == "garnet:20,4,2"


def test_every_listed_form_can_be_made():
    listed = environments()
    by_path = {"folder", "gym"}
    assert {name.partition(":")[0] for name in listed} >= {name.partition(":")[0] for name in NAMES} | by_path
    for form, summary in listed.items():
        head = form.partition(":")[0]
        assert summary
        assert head in by_path or make_env(form).name == head  # all defaults


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gird:5", "no environment 'gird'; did you mean 'grid'"),
        ("Chain", "did you mean 'chain'"),
        ("zzz", "Known: bandit, "),
        ("", "no environment ''"),
        ("grid:", "nothing follows the colon"),
        ("grid:1", "size is 1; give a whole number from 2 to"),
        ("grid:-3", "size is -3"),
        ("grid:five", "size is 'five'; give a whole number"),
        ("grid:5.5", "size is '5.5'; give a whole number"),
        ("grid:100000000", "size is 100000000"),
        ("grid:5,slip=1.5", "slip is 1.5; give a number from 0 to 1"),
        ("grid:5,slip=nan", "slip is nan"),
        ("grid:5,slp=0.1", "grid has no 'slp'; did you mean 'slip'"),
        ("grid:5,size=6", "size is given twice"),
        ("grid:size=5,0.2", "'0.2' comes after a key=value"),
        ("grid:5,,", "slip is ''"),
        ("double-loop:3", "'3' is one value too many"),
        ("garnet:5,2,6", "branching is 6 but there are 5 states"),
        ("garnet:1000000,100,100", "10,000,000,000 outcomes is more than"),
        ("garnet:50,4,5,seed=-1", "seed is -1"),
        ("inventory:900", "outcomes is more than"),
        ("riverswim:1", "length is 1"),
        ("riverswim:2,form=strehl", "length is 2; the form strehl starts in state 1 or 2"),
        ("riverswim:form=osbnd", "did you mean 'osband'"),
        ("bandit:0", "arms is 0; give a whole number from 1"),
        ("bandit:means=0.3/x", "give probabilities with slashes between"),
        ("bandit:means=0.3/1.5", "give probabilities with slashes between"),
        ("bandit:means=nan", "give probabilities with slashes between"),
        ("bandit:3,means=0.3/0.7", "arms has no effect with means=0.3/0.7; drop it or take means=drawn"),
        ("bandit:means=0.3/0.7,seed=2", "seed has no effect with means=0.3/0.7"),
        ("../../etc", "no environment"),
        (5, "give a name"),
    ],
)
def test_bad_names_say_what_is_wrong(name, message):
    with pytest.raises(ParameterError) as caught:
        make_env(name)
    assert message in str(caught.value)


# ---------------------------------------------------------------------------------------------------------- gymnasium


@pytest.mark.parametrize("name", NAMES)
def test_every_environment_passes_gymnasiums_checker(name):
    check_env(gymnasium_env(make_env(name), max_steps=100), skip_render_check=True)


def test_stepping_by_hand_is_batch_play_on_the_same_stream():
    env = make_env("maze")
    words = seed_stream(np.array([9, 9], dtype=np.uint64))
    actions = np.random.default_rng(0).integers(0, 4, size=300)
    stream = words.copy()
    state = begin(env.outcomes, uniform(stream))
    batch = []
    for a in actions:
        reward, state = step(env.outcomes, state, a, uniform(stream))
        batch.append((state, reward))
    by_hand = gymnasium_env(env)
    by_hand.reset(options={"stream": words})
    assert [by_hand.step(a)[:2] for a in actions] == batch
    assert np.array_equal(words, seed_stream(np.array([9, 9], dtype=np.uint64)))  # the caller's stream is not touched
    with pytest.raises(ParameterError, match="uint64"):
        by_hand.reset(options={"stream": [1, 2, 3]})


def test_gymnasium_seeds_repeat_and_use_one_uniform_a_step():
    env = make_env("chain")
    wrapped = gymnasium_env(env)
    wrapped.reset(seed=11)
    played = [wrapped.step(t % 2)[:2] for t in range(50)]
    rng = gymnasium.utils.seeding.np_random(11)[0]
    state = begin(env.outcomes, rng.random())
    for t in range(50):
        reward, state = step(env.outcomes, state, t % 2, rng.random())
        assert played[t] == (state, reward)


def test_episodes_end_where_nothing_more_can_happen():
    env = gymnasium_env(environment_from_mdp(from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=False))))
    assert env.reset(seed=0)[0] == 0
    path = [env.step(a) for a in (1, 1, 2, 1, 2, 2)]
    assert [x[0] for x in path] == [4, 8, 9, 13, 14, 15]
    assert [x[2] for x in path] == [False] * 5 + [True]
    assert path[-1][1] == 1.0
    short = gymnasium_env(make_env("chain"), max_steps=2)
    short.reset(seed=0)
    assert [short.step(0)[3] for _ in range(2)] == [False, True]
    with pytest.raises(ParameterError, match="max_steps"):
        gymnasium_env(make_env("chain"), max_steps=0)


def test_wrong_actions_are_refused():
    mdp = MDP([[[1.0], [0.0]]], [[1.0, 0.0]], available=[[True, False]])
    env = gymnasium_env(environment_from_mdp(mdp))
    with pytest.raises(ObservationError, match="reset"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ObservationError, match="does not offer action 1"):
        env.step(1)
    with pytest.raises(ObservationError, match="ids run from 0 to 1"):
        env.step(2)


class Offset(gymnasium.Env):
    """Counts up to 3; observations start at 10, actions at −1."""

    observation_space = gymnasium.spaces.Discrete(4, start=10)
    action_space = gymnasium.spaces.Discrete(3, start=-1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 11
        return self.at, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.at = min(13, max(10, self.at + action))
        return np.int64(self.at), np.float32(action), self.at == 13, False, {}


def test_any_discrete_gymnasium_environment_can_be_played():
    env = DiscreteEnv(Offset(), reward_range=(-1.0, 1.0))
    assert (env.n_states, env.n_actions, env.reset(seed=1)) == (4, 3, 1)
    assert env.step(2) == (1.0, 2, False, False)
    assert env.step(0) == (-1.0, 1, False, False)
    assert env.step(2)[1:] == (2, False, False)
    assert env.step(2)[1:] == (3, True, False)
    with pytest.raises(ObservationError, match="ids run from 0 to 2"):
        env.step(3)
    env.close()


def test_a_wrapped_environment_of_ours_comes_back():
    ours = make_env("double-loop")
    env = DiscreteEnv(gymnasium_env(ours), reward_range=ours.reward_range)
    assert env.reset(seed=0) == 0
    assert sum(env.step(1).reward for _ in range(1000)) == 400.0


def test_environments_that_cannot_be_played_say_why():
    with pytest.raises(ModelError, match=r"observation space of .* is Box"):
        DiscreteEnv(gymnasium.make("CartPole-v1"))
    with pytest.raises(ModelError, match=r"observation space of .* is Tuple"):
        DiscreteEnv(gymnasium.make("Blackjack-v1"))
    with pytest.raises(BeliefboundError, match="missing"):
        DiscreteEnv(object())
    with pytest.raises(ParameterError, match="two numbers"):
        DiscreteEnv(Offset(), reward_range=(1.0,))
    narrow = DiscreteEnv(Offset(), reward_range=(0.0, 1.0))
    narrow.reset()
    with pytest.raises(ObservationError, match=r"reward -1.0 is outside the declared range \[0.0, 1.0\]"):
        narrow.step(0)
