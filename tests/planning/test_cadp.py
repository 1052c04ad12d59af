"""CADP and exact swaps against their definitions, enumeration and the exact Bayes-adaptive tree."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefbound import FiniteBelief, MemorylessPolicy, StationaryPolicy, cadp, e_max, evaluate, mmbi
from beliefbound.base.errors import ParameterError, PolicyError
from beliefbound.models.ascent import LanesAscent
from beliefbound.planning import starts
from beliefbound.planning.cadp import CoordinateAscent
from beliefbound.planning.swaps import SwapSearch
from beliefbound.planning.task import FiniteTask
from support.oracles import (
    bayes_adaptive_value,
    best_memoryless_value,
    best_stationary_value,
    optimal_values,
    policy_values,
    random_models,
    stationary_values,
)
from support.tiers import tiers

LAYOUTS = ["lanes", "rows", "csr"]


def belief_of(p, r, w, p0=None, **knobs):
    return FiniteBelief(p, r, w, reward_signal="unobserved", initial=p0, **knobs)


def in_layout(layout, monkeypatch, p, r, w, p0=None, **knobs):
    """The same belief, forced through one of the four implementations of a sweep."""
    monkeypatch.setattr("beliefbound.base.limits.LANES_BYTES", 1 << 30 if layout == "lanes" else 0)
    if layout == "csr":
        m, s, a, _ = p.shape
        p = [sp.csr_array(x.reshape(s * a, s)) for x in p]
    return belief_of(p, r, w, p0, **knobs)


def numpy_sweep(p, r, w, p0, actions, discount, available, rounding):
    """One CADP sweep from its text: occupancies forwards, then improvement backwards."""
    n_models, n_states, _ = r.shape
    horizon, states = len(actions), np.arange(n_states)
    b = np.zeros((horizon, n_models, n_states))
    b[0] = w[:, None] * p0
    for k in range(horizon - 1):
        b[k + 1] = np.einsum("ms,mst->mt", b[k], p[:, states, actions[k]])
    new, v = actions.copy(), np.zeros((n_models, n_states))
    for k in range(horizon - 1, -1, -1):
        q = r + discount * np.einsum("msat,mt->msa", p, v)
        for s in range(n_states):
            mass = b[k, :, s].sum()
            weight, slack = (b[k, :, s], rounding * mass) if mass > 0 else (w, rounding)
            score = np.where(available[s], weight @ q[:, s], -np.inf)
            if score.max() > score[new[k, s]] + slack:
                new[k, s] = score.argmax()
        v = q[:, states, new[k]]
    return new, v, b


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_sweep_equals_its_numpy_twin(layout, monkeypatch):
    rng = np.random.default_rng(1)
    for _ in range(25):
        n_models, n_states, n_actions, horizon = (int(x) for x in rng.integers([1, 1, 1, 1], [7, 7, 4, 9]))
        p, r, w, p0 = random_models(rng, n_models, n_states, n_actions, sparsity=0.5)
        available = rng.random((n_states, n_actions)) < 0.8
        available[:, 0] |= ~available.any(axis=1)
        if rng.random() < 0.5:
            p0 = np.eye(n_states)[0]
        belief = in_layout(layout, monkeypatch, p, r, w, p0, available=available)
        discount = float(rng.choice([0.0, 0.5, 0.95, 1.0]))
        ascent = CoordinateAscent(FiniteTask.of(belief, discount=discount, horizon=horizon))
        actions = np.array([available.argmax(axis=1)] * horizon)
        twin, first = actions.copy(), 0
        for _ in range(4):
            twin, v, b = numpy_sweep(p, r, w, p0, twin, discount, available, ascent.rounding)
            first, rho, values = ascent.sweep(actions, first)
            seen = ascent.stages.occupancies
            if isinstance(ascent.stages, LanesAscent):  # they keep what is mixed with: `w` where no model is
                b = np.where(b.sum(axis=1, keepdims=True) > 0.0, b, w[:, None])
            np.testing.assert_allclose(seen, b, rtol=1e-12, atol=1e-15)
            np.testing.assert_array_equal(actions, twin)
            np.testing.assert_allclose(values, v, rtol=1e-12, atol=1e-12)
            assert rho == pytest.approx(w @ v @ p0, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("layout", ["lanes", "rows"])
@pytest.mark.parametrize(("n_models", "n_states"), [(1, 3), (3, 109), (8, 48), (27, 9), (41, 5)])
def test_occupancies_are_plain_sums_in_the_order_of_states(layout, n_models, n_states, monkeypatch):
    """Bit for bit, whatever the numbers of models and states leave over of a vector: no machine's own rounding."""
    p, r, w, _ = random_models(np.random.default_rng(8), n_models, n_states, 2, sparsity=0.5)
    p0 = np.eye(n_states)[0]
    ascent = CoordinateAscent(FiniteTask.of(in_layout(layout, monkeypatch, p, r, w, p0), discount=0.9, horizon=6))
    assert isinstance(ascent.stages, LanesAscent) == (layout == "lanes")
    actions = np.random.default_rng(9).integers(0, 2, (6, n_states))
    b = w[:, None] * p0
    expected = [b]
    for chosen in actions[:-1]:
        b = sum(b[:, s, None] * p[:, s, chosen[s]] for s in range(n_states))
        expected.append(b)
    ascent.sweep(actions.copy(), 0)
    seen = ascent.stages.occupancies
    met = np.sum(expected, axis=1, keepdims=True) > 0.0
    np.testing.assert_array_equal(np.where(met, seen, 0.0), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ascent_is_monotone_and_never_below_its_start(layout, monkeypatch):
    rng = np.random.default_rng(2)
    for _ in range(40):
        n_models, n_states, n_actions, horizon = (int(x) for x in rng.integers([2, 2, 2, 2], [9, 8, 4, 30]))
        p, r, w, p0 = random_models(rng, n_models, n_states, n_actions, concentration=0.2)
        belief = in_layout(layout, monkeypatch, p, r, w, p0)
        start = rng.integers(0, n_actions, (horizon, n_states))
        found = CoordinateAscent(FiniteTask.of(belief, discount=0.97, horizon=horizon)).ascend(start, "random")
        before = w @ policy_values(p, r, start, 0.97) @ p0
        history = np.array([before, *found.history])
        assert (np.diff(history) >= -1e-12 * history.max()).all()
        assert found.converged
        assert found.rho == pytest.approx(w @ policy_values(p, r, found.actions, 0.97) @ p0, rel=1e-12)
        np.testing.assert_allclose(found.values, policy_values(p, r, found.actions, 0.97), rtol=1e-11)


def test_cadp_is_never_below_mmbi_nor_above_e_max():
    rng = np.random.default_rng(3)
    better = 0
    for _ in range(300):
        n_models, n_states, n_actions, horizon = (int(x) for x in rng.integers([1, 1, 1, 1], [8, 6, 4, 15]))
        p, r, w, p0 = random_models(rng, n_models, n_states, n_actions, concentration=0.2, sparsity=0.3)
        r -= rng.random()
        belief = belief_of(p, r, w, p0)
        plan = cadp(belief, discount=0.95, horizon=horizon)
        baseline = mmbi(belief, discount=0.95, horizon=horizon).value()
        assert plan.value() >= baseline - 1e-11
        assert plan.value() <= e_max(belief, discount=0.95, horizon=horizon).values @ p0 + 1e-9
        np.testing.assert_allclose(plan.model_values, evaluate(plan.policy, belief, discount=0.95), atol=1e-10)
        better += plan.value() > baseline + 1e-9
    assert better > 50  # it is not MMBI under another name


@pytest.mark.parametrize("signal", tiers(["unobserved", "deterministic", "bernoulli"], "unobserved"))
def test_cadp_is_below_enumeration_is_below_the_bayes_adaptive_tree(signal):
    rng = np.random.default_rng(4)
    attained = 0
    for _ in range(60):
        n_models, horizon = int(rng.integers(2, 5)), int(rng.integers(2, 4))
        p, r, w, p0 = random_models(rng, n_models, 2, 2, concentration=0.3)
        plan = cadp(belief_of(p, r, w, p0), discount=0.9, horizon=horizon)
        best, _ = best_memoryless_value(p, r, w, p0, 0.9, horizon)
        bayes = bayes_adaptive_value(p, r, w, p0, 0.9, horizon, signal)
        assert plan.value() <= best + 1e-12
        assert best <= bayes + 1e-12
        attained += plan.value() >= best - 1e-10
    assert attained >= 55


def test_one_model_makes_cadp_backward_induction():
    rng = np.random.default_rng(5)
    p, r, _, p0 = random_models(rng, 1, 6, 3)
    plan = cadp(belief_of(p, r, [1.0], p0), discount=0.9, horizon=12)
    values, policies = optimal_values(p, r, 0.9, 12)
    np.testing.assert_array_equal(plan.policy.actions, policies[0])
    np.testing.assert_allclose(plan.model_values, values, rtol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_states_never_met_are_chosen_by_the_prior(layout, monkeypatch):
    """State 1 is never reached; the better action there under `w` is 1, though the start says 0."""
    p = np.zeros((2, 2, 2, 2))
    p[:, 0, :, 0] = p[:, 1, :, 1] = 1.0
    r = np.array([[[1.0, 0.0], [0.0, 3.0]], [[1.0, 0.0], [1.0, 0.0]]])
    belief = in_layout(layout, monkeypatch, p, r, [0.5, 0.5], np.array([1.0, 0.0]))
    plan = cadp(belief, discount=0.9, horizon=3, start=StationaryPolicy([0, 0]), restarts=False)
    assert plan.policy.actions.tolist() == [[0, 1]] * 3
    assert plan.converged


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ties_keep_the_incumbent_and_otherwise_go_to_the_lowest_action(layout, monkeypatch):
    p = np.ones((2, 1, 4, 1))
    r = np.array([[[0.0, 1.0, 1.0, 1.0]], [[0.0, 1.0, 1.0, 1.0 + 1e-15]]])
    belief = in_layout(layout, monkeypatch, p, r, [0.5, 0.5], np.array([1.0]))
    for start, end in ((0, (1, 3)), (1, (1,)), (2, (2,)), (3, (3,))):
        plan = cadp(belief, discount=1.0, horizon=2, start=StationaryPolicy([start]), restarts=False)
        assert set(plan.policy.actions.ravel().tolist()) <= set(end), start
    assert cadp(belief_of(p, np.zeros_like(r), [0.5, 0.5]), discount=1.0, horizon=2).policy.actions.tolist() == [
        [0],
        [0],
    ]


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_relabelling_states_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    p, r, w, p0 = random_models(rng, 3, 5, 2)
    order = rng.permutation(5)
    plan = cadp(belief_of(p, r, w, p0), discount=0.9, horizon=8)
    other = cadp(belief_of(p[:, order][..., order], r[:, order], w, p0[order]), discount=0.9, horizon=8)
    assert other.value() == pytest.approx(plan.value(), rel=1e-12)
    np.testing.assert_allclose(other.values, plan.values[order], rtol=1e-9)


def test_all_layouts_agree(monkeypatch):
    rng = np.random.default_rng(6)
    p, r, w, p0 = random_models(rng, 5, 7, 3, sparsity=0.4)
    for horizon in (9, None):
        plans = [cadp(in_layout(layout, monkeypatch, p, r, w, p0), discount=0.9, horizon=horizon) for layout in LAYOUTS]
        for plan in plans[1:]:
            np.testing.assert_array_equal(plan.policy.actions, plans[0].policy.actions)
            np.testing.assert_allclose(plan.model_values, plans[0].model_values, rtol=1e-9)


def test_inputs_are_left_alone_and_the_note_names_the_start():
    rng = np.random.default_rng(7)
    p, r, w, p0 = random_models(rng, 3, 3, 2)
    start = MemorylessPolicy(np.ones((4, 3), dtype=np.int64))
    plan = cadp(belief_of(p, r, w), discount=0.9, horizon=4, initial=p0, start=start)
    assert (start.actions == 1).all()
    assert "starts: from " in plan.note
    alone = cadp(belief_of(p, r, w), discount=0.9, horizon=4, initial=p0, start=start, restarts=False)
    assert "best of 1 starts: from the given policy" in alone.note
    assert plan.value(p0) >= alone.value(p0) - 1e-12
    assert cadp(belief_of(p, r, w), discount=0.9, horizon=4, initial=1).horizon == 4


def test_the_number_of_model_starts_is_capped_by_weight_and_by_size(monkeypatch):
    rng = np.random.default_rng(8)
    p, r, w, p0 = random_models(rng, 50, 2, 2)
    w = np.append(w[:-1] / w[:-1].sum(), 0.0)
    belief = belief_of(p, r, w, p0)
    chosen = starts.chosen_models(belief, 5)
    assert len(chosen) == starts.MODEL_STARTS
    assert set(chosen) == set(np.argsort(-w, kind="stable")[: starts.MODEL_STARTS])
    assert starts.chosen_models(belief.reweight([0.0, 1.0, *[0.0] * 48]), 5).tolist() == [1]
    monkeypatch.setattr(starts, "START_WORK", 3 * p.size * 5)
    assert len(starts.chosen_models(belief, 5)) == 3
    monkeypatch.setattr(starts, "START_WORK", 0)
    assert len(starts.chosen_models(belief, 5)) == 1


def test_bad_starts_are_refused():
    p, r, w, p0 = random_models(np.random.default_rng(9), 2, 3, 2)
    belief = belief_of(p, r, w, p0)
    with pytest.raises(PolicyError, match="stages"):
        cadp(belief, discount=0.9, horizon=3, start=MemorylessPolicy(np.zeros((2, 3), dtype=np.int64)))
    with pytest.raises(PolicyError, match="deterministic"):
        cadp(belief, discount=0.9, horizon=3, start=StationaryPolicy(probabilities=np.full((3, 2), 0.5)))
    with pytest.raises(PolicyError, match="first_step"):
        cadp(belief, discount=0.9, start=MemorylessPolicy(np.zeros((2, 3), dtype=np.int64)))
    with pytest.raises(ParameterError, match="initial"):
        cadp(belief, discount=0.9, horizon=3, initial=np.ones(3))
    with pytest.raises(ParameterError, match="horizon"):
        cadp(belief, discount=1.0)
    with pytest.raises(PolicyError, match="states"):
        cadp(belief, discount=0.9, horizon=3, start=StationaryPolicy([0]))


# Stationary policies by exact swaps


@pytest.mark.parametrize("layout", ["rows", "csr"])
def test_the_swap_formula_equals_solving_again(layout, monkeypatch):
    rng = np.random.default_rng(10)
    for _ in range(20):
        p, r, w, p0 = random_models(rng, 3, 5, 3, sparsity=0.3)
        search = SwapSearch(FiniteTask.of(in_layout(layout, monkeypatch, p, r, w, p0), discount=0.95))
        actions = rng.integers(0, 3, 5)
        search.factor(actions)
        rho = w @ stationary_values(p, r, actions, 0.95) @ p0
        assert search.rho() == pytest.approx(rho, rel=1e-11)
        gains = search.gains().copy()
        for s in range(5):
            for a in range(3):
                changed = actions.copy()
                changed[s] = a
                exact = w @ stationary_values(p, r, changed, 0.95) @ p0 - rho
                assert gains[s, a] == pytest.approx(exact, abs=1e-10)
        for s, a in zip(rng.integers(0, 5, 30), rng.integers(0, 3, 30), strict=True):
            search.swap(int(s), int(a))
            actions[s] = a
        np.testing.assert_allclose(search.v, stationary_values(p, r, actions, 0.95), rtol=1e-9)
        for m in range(3):
            inverse = np.linalg.inv(np.eye(5) - 0.95 * p[m, np.arange(5), actions])
            np.testing.assert_allclose(search.n[m].T, inverse, rtol=1e-8, atol=1e-9)


def test_stationary_results_are_local_optima_and_often_the_best():
    rng = np.random.default_rng(11)
    attained = 0
    for _ in range(80):
        n_models, n_states, n_actions = (int(x) for x in rng.integers([2, 2, 2], [6, 5, 4]))
        p, r, w, p0 = random_models(rng, n_models, n_states, n_actions, concentration=0.2)
        belief = belief_of(p, r, w, p0)
        plan = cadp(belief, discount=0.9)
        assert plan.converged
        assert plan.value() == pytest.approx(w @ stationary_values(p, r, plan.policy.actions, 0.9) @ p0, rel=1e-10)
        for s in range(n_states):
            for a in range(n_actions):
                swapped = plan.policy.actions.copy()
                swapped[s] = a
                assert w @ stationary_values(p, r, swapped, 0.9) @ p0 <= plan.value() + 1e-9
        best, _ = best_stationary_value(p, r, w, p0, 0.9)
        assert mmbi(belief, discount=0.9).value() - 1e-9 <= plan.value() <= best + 1e-9
        attained += plan.value() >= best - 1e-9
    assert attained >= 72


def test_stationary_respects_action_sets_and_long_searches_stay_accurate():
    rng = np.random.default_rng(12)
    p, r, w, p0 = random_models(rng, 2, 90, 4, concentration=0.05)
    available = rng.random((90, 4)) < 0.6
    available[:, 3] |= ~available.any(axis=1)
    belief = belief_of(p, r, w, p0, available=available)
    worst = StationaryPolicy(np.where(available, r.mean(axis=0), np.inf).argmin(axis=1))
    plan = cadp(belief, discount=0.99, start=worst, restarts=False)
    assert int(plan.note.split()[-2]) > 50  # past a refactoring
    assert available[np.arange(90), plan.policy.actions].all()
    rho = w @ stationary_values(p, r, plan.policy.actions, 0.99) @ p0
    assert plan.value() == pytest.approx(rho, rel=1e-10)
    for s in range(90):
        for a in np.flatnonzero(available[s]):
            swapped = plan.policy.actions.copy()
            swapped[s] = a
            assert w @ stationary_values(p, r, swapped, 0.99) @ p0 <= rho + 1e-7


def test_too_large_a_stationary_problem_says_so(monkeypatch):
    monkeypatch.setattr("beliefbound.base.limits.INVERSE_BYTES", 100)
    p, r, w, p0 = random_models(np.random.default_rng(13), 2, 3, 2)
    with pytest.raises(ParameterError, match="GiB"):
        cadp(belief_of(p, r, w, p0), discount=0.9)
