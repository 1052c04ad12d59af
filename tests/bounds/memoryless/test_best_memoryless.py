"""Branch and bound against enumeration of every policy and against HiGHS."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from beliefbound import FiniteBelief, MemorylessPolicy, qmdp
from beliefbound.base.errors import ParameterError
from beliefbound.bounds import best_memoryless, policy_regret
from beliefbound.bounds.memoryless import branch_and_bound as exact
from beliefbound.kernels.planning import branch_and_bound as kernel
from beliefbound.planning.cadp import Ascended, cadp_plan
from support.milp import best_memoryless_milp
from support.oracles import best_memoryless_value, policy_values, random_models


def random_problem(rng, shape, **knobs):
    p, r, w, p0 = random_models(rng, *shape, **knobs)
    return p, r, w, p0, FiniteBelief(p, r, w, reward_signal="unobserved", initial=p0)


@pytest.fixture(scope="module")
def hard():
    """A problem that takes tens of thousands of nodes."""
    *_, belief = random_problem(np.random.default_rng(21), (6, 4, 2), concentration=0.1)
    return belief


def test_it_finds_the_best_of_all_policies():
    rng = np.random.default_rng(1)
    for _ in range(60):
        n_models, n_states, n_actions = (int(x) for x in rng.integers([1, 1, 1], [5, 4, 4]))
        horizon = {1: 4, 2: 3, 3: 2}[n_states] if n_actions < 3 else {1: 4, 2: 2, 3: 1}[n_states]
        p, r, w, p0, belief = random_problem(rng, (n_models, n_states, n_actions), concentration=0.2, sparsity=0.3)
        discount = float(rng.choice([0.5, 0.9, 1.0]))
        best, _ = best_memoryless_value(p, r, w, p0, discount, horizon)
        found = best_memoryless(belief, discount=discount, horizon=horizon)
        assert found.optimal
        assert found.lower.value == pytest.approx(best, abs=1e-9)
        assert found.upper.value == pytest.approx(best, abs=1e-8)
        assert w @ policy_values(p, r, found.policy.actions, discount) @ p0 == pytest.approx(
            found.lower.value, abs=1e-12
        )


@pytest.mark.full
def test_bounds_of_children_equal_opening_them_and_hold_for_every_completion():
    rng = np.random.default_rng(6)
    for _ in range(30):
        p, r, w, p0 = random_models(rng, 3, 2, 2, concentration=0.2, sparsity=0.4)
        p0 = np.eye(2)[0] if rng.random() < 0.5 else p0
        problem = kernel.WeightedModels(p, r, w, np.ones((2, 2), dtype=bool), 0.9, p0)
        solved, child_solved, again = (kernel.new_solved(problem, 3) for _ in range(3))
        scratch, rule = kernel.new_scratch(problem, 3), np.empty((3, 2), dtype=np.int64)
        every = np.array(list(itertools.product(range(2), repeat=6))).reshape(-1, 3, 2)
        value = np.array([w @ policy_values(p, r, pi, 0.9) @ p0 for pi in every])
        fixed = np.full((3, 2), -1, dtype=np.int16)
        while True:
            bound, stage, state = kernel.open_node(problem, fixed, solved, rule, scratch)
            agrees = ((fixed < 0) | (every == fixed)).all(axis=(1, 2))
            assert value[agrees].max() <= bound + 1e-12
            if stage < 0:
                assert bound == pytest.approx(value[agrees].max(), abs=1e-12)
                break
            for action in range(2):
                child = kernel.bound_child(problem, fixed, stage, state, action, solved, child_solved, scratch)
                fixed[stage, state] = action
                opened, _, _ = kernel.open_node(problem, fixed, again, rule, scratch)
                assert child == pytest.approx(opened, abs=1e-12)
                fixed[stage, state] = -1
            fixed[stage, state] = rng.integers(2)


def test_branch_and_bound_agrees_with_highs():
    rng = np.random.default_rng(2)
    branched = 0
    for _ in range(25):
        shape = tuple(int(x) for x in rng.integers([2, 2, 2], [4, 4, 4]))
        *_, belief = random_problem(rng, shape, concentration=0.2)
        horizon = int(rng.integers(2, 5))
        found = best_memoryless(belief, discount=0.95, horizon=horizon)
        check = best_memoryless_milp(belief, discount=0.95, horizon=horizon)
        assert found.optimal
        assert check.optimal
        assert found.lower.value == pytest.approx(check.lower, abs=1e-6)
        assert check.upper >= found.lower.value - 1e-6
        branched += found.nodes > 1
    assert branched > 10


def test_it_improves_on_cadp_where_cadp_is_not_the_best(monkeypatch):
    """From a poor incumbent the search still ends at the best policy."""
    rng = np.random.default_rng(3)
    monkeypatch.setattr(exact, "cadp_plan", lambda task: cadp_plan(task, restarts=False))
    monkeypatch.setattr(exact.CoordinateAscent, "ascend", lambda self, actions, start: unchanged(self, actions))
    for _ in range(20):
        p, r, w, p0, belief = random_problem(rng, (4, 2, 2), concentration=0.1)
        best, _ = best_memoryless_value(p, r, w, p0, 0.9, 3)
        assert best_memoryless(belief, discount=0.9, horizon=3).lower.value == pytest.approx(best, abs=1e-9)


def unchanged(ascent, actions):
    """The policy as it stands, evaluated."""
    rho = ascent.task.policy_value(MemorylessPolicy(actions))
    values = np.empty(ascent.shape)
    return Ascended(actions.copy(), values, rho, "", 0, True, 0.0, ())


def test_limits_give_a_valid_bracket_that_closes(hard):
    full = best_memoryless(hard, discount=0.95, horizon=5)
    assert full.optimal
    assert full.nodes > 20
    last = np.inf
    for nodes in (1, 3, 10, 100):
        part = best_memoryless(hard, discount=0.95, horizon=5, node_limit=nodes)
        assert part.nodes <= nodes
        assert part.lower.value - 1e-12 <= full.lower.value <= part.upper.value + 1e-12
        assert part.upper.value <= last + 1e-12
        last = part.upper.value
    root = best_memoryless(hard, discount=0.95, horizon=5, node_limit=1)
    assert not root.optimal
    assert root.upper.value <= qmdp(hard, discount=0.95, horizon=5).values @ hard.initial + 1e-12


def test_time_ends_the_search_between_two_nodes(hard, clock):
    clock.step = 1.0
    for seconds, nodes in ((0.5, 1), (3.5, 4)):  # the first node is opened whatever the time
        timed = best_memoryless(hard, discount=0.95, horizon=12, time_limit=seconds)
        assert timed.nodes == nodes
        assert timed.lower.value < timed.upper.value


def test_a_gap_ends_the_search_early_and_is_kept(hard):
    full = best_memoryless(hard, discount=0.95, horizon=5)
    loose = best_memoryless(hard, discount=0.95, horizon=5, target_gap=0.05)
    assert loose.optimal
    assert loose.nodes < full.nodes
    assert loose.upper.value - loose.lower.value <= 0.05 * loose.upper.value
    assert loose.lower.value - 1e-12 <= full.lower.value <= loose.upper.value + 1e-12


@pytest.mark.full
def test_a_limited_milp_gives_a_valid_bracket(hard):
    full = best_memoryless(hard, discount=0.95, horizon=5)
    for nodes in (1, 50):
        check = best_memoryless_milp(hard, discount=0.95, horizon=5, node_limit=nodes)
        assert check.lower <= full.lower.value + 1e-9
        assert check.upper >= full.lower.value - 1e-6


@pytest.mark.full
def test_action_sets_and_sparse_models():
    rng = np.random.default_rng(4)
    for _ in range(10):
        p, r, w, p0 = random_models(rng, 3, 3, 3, concentration=0.2)
        available = rng.random((3, 3)) < 0.6
        available[:, 1] |= ~available.any(axis=1)
        knobs = {"reward_signal": "unobserved", "initial": p0, "available": available}
        dense = FiniteBelief(p, r, w, **knobs)
        sparse = FiniteBelief([sp.csr_array(x.reshape(9, 3)) for x in p], r, w, **knobs)
        best, _ = best_memoryless_value(p, r, w, p0, 0.9, 2, available)
        for belief in (dense, sparse):
            assert best_memoryless(belief, discount=0.9, horizon=2).lower.value == pytest.approx(best, abs=1e-9)
            assert best_memoryless_milp(belief, discount=0.9, horizon=2).lower == pytest.approx(best, abs=1e-6)


def test_models_that_agree_need_one_node():
    rng = np.random.default_rng(5)
    p, r, _, p0 = random_models(rng, 1, 4, 3)
    belief = FiniteBelief(np.repeat(p, 3, axis=0), np.repeat(r, 3, axis=0), initial=p0)
    found = best_memoryless(belief, discount=0.9, horizon=6)
    assert found.nodes <= 1
    assert found.optimal


def test_bad_knobs_are_refused(hard):
    for knobs in (
        {"target_gap": -1.0},
        {"target_gap": float("nan")},
        {"time_limit": 0.0},
        {"node_limit": 0},
        {"horizon": 0},
    ):
        with pytest.raises(ParameterError):
            best_memoryless(hard, **{"discount": 0.9, "horizon": 2} | knobs)


def test_its_upper_end_is_no_bound_on_what_learns(hard):
    found = best_memoryless(hard, discount=0.95, horizon=5, node_limit=1)
    assert found.lower.of == "Bayes-optimal value"
    assert found.upper.of == "best memoryless value"
    with pytest.raises(ParameterError, match="upper bound on the Bayes-optimal value"):
        policy_regret(found.policy, hard, found.upper, discount=0.95)
