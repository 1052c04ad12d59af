"""Planners against definitions, each other and QuantEcon."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefbound import (
    MDP,
    DirichletBelief,
    FiniteBelief,
    backward_induction,
    cadp,
    e_max,
    evaluate,
    expected_mdp_policy,
    from_gymnasium,
    mmbi,
    msbi,
    optimal_values,
    policy_iteration,
    qmdp,
    value_iteration,
)
from beliefbound.base.errors import ParameterError
from support.beliefs import SIGNALS
from support.oracles import (
    bayes_adaptive_value,
    best_memoryless_value,
    policy_values,
    random_models,
    stationary_values,
)
from support.tiers import tiers


def numpy_mmbi(p, r, w, discount, horizon):
    """Algorithm 1, from its text."""
    n_models, n_states, n_actions = r.shape
    v, actions = np.zeros((n_models, n_states)), np.zeros((horizon, n_states), int)
    for k in range(horizon - 1, -1, -1):
        q = r + discount * np.einsum("msat,mt->msa", p, v)
        actions[k] = np.einsum("m,msa->sa", w, q).argmax(axis=1)
        v = q[:, np.arange(n_states), actions[k]]
    return actions, v


def belief_of(p, r, w, **keywords):
    return FiniteBelief(p, r, w, reward_signal="unobserved", **keywords)


@given(
    seed=st.integers(0, 10**6),
    sizes=st.tuples(st.integers(1, 9), st.integers(1, 6), st.integers(1, 4)),
    horizon=st.integers(1, 15),
    discount=st.floats(0.0, 1.0),
)
@settings(max_examples=60)
def test_mmbi_is_algorithm_1_and_its_value_is_its_policys(seed, sizes, horizon, discount):
    p, r, w, _ = random_models(np.random.default_rng(seed), *sizes)
    plan = mmbi(belief_of(p, r, w), discount=discount, horizon=horizon)
    actions, v = numpy_mmbi(p, r, w, discount, horizon)
    assert np.array_equal(plan.policy.actions, actions)
    assert np.allclose(plan.model_values, v, atol=1e-12)
    assert np.allclose(plan.values, w @ v, atol=1e-12)
    assert np.allclose(plan.model_values, policy_values(p, r, plan.policy.actions, discount), atol=1e-12)


@pytest.mark.parametrize("n_models", [2, 29])
def test_values_of_small_problems_are_plain_sums_in_order(n_models):
    """Bit for bit, so that every machine finds the same: no fused multiplication and addition."""
    p, r, w, _ = random_models(np.random.default_rng(5), n_models, 5, 3)
    plan = mmbi(belief_of(p, r, w), discount=0.9, horizon=12)
    v = np.zeros((n_models, 5))
    for chosen in plan.policy.actions[::-1]:
        q = r + 0.9 * sum(p[..., t] * v[:, t, None, None] for t in range(5))
        v = q[:, np.arange(5), chosen]
    np.testing.assert_array_equal(plan.model_values, v)


def test_all_layouts_agree(monkeypatch):
    p, r, w, _ = random_models(np.random.default_rng(0), 7, 12, 3, sparsity=0.6)
    lanes = mmbi(belief_of(p, r, w), discount=0.95, horizon=40)
    sparse = mmbi(belief_of([sp.csr_array(x.reshape(36, 12)) for x in p], r, w), discount=0.95, horizon=40)
    monkeypatch.setattr("beliefbound.base.limits.LANES_BYTES", 0)
    rows = mmbi(belief_of(p, r, w), discount=0.95, horizon=40)
    rows_sparse = mmbi(belief_of([sp.csr_array(x.reshape(36, 12)) for x in p], r, w), discount=0.95, horizon=40)
    for other in (sparse, rows, rows_sparse):
        assert np.array_equal(lanes.policy.actions, other.policy.actions)
        assert np.allclose(lanes.model_values, other.model_values, atol=1e-12)


def test_one_model_or_equal_models_make_mmbi_backward_induction():
    p, r, _, _ = random_models(np.random.default_rng(3), 1, 6, 3)
    optimal = backward_induction(MDP(p[0], r[0]), discount=0.9, horizon=25)
    one = mmbi(belief_of(p, r, None), discount=0.9, horizon=25)
    four = mmbi(belief_of(np.repeat(p, 4, 0), np.repeat(r, 4, 0), [0.1, 0.2, 0.3, 0.4]), discount=0.9, horizon=25)
    for plan in (one, four):
        assert np.array_equal(plan.policy.actions, optimal.policy.actions)
        assert np.allclose(plan.values, optimal.values, atol=1e-12)


@pytest.mark.parametrize("signal", tiers(SIGNALS, "unobserved"))
def test_lower_exact_upper_are_in_order_on_random_problems(signal):
    """MMBI, expected-MDP ≤ best memoryless ≤ Bayes-optimal ≤ QMDP ≤ E max, on 100 problems for each reward signal."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n_models, n_states = (2, 2) if signal == "bernoulli" else (3, 2)
        p, r, w, p0 = random_models(rng, n_models, n_states, 2, equal_rewards=signal == "known")
        if signal == "deterministic":
            r = np.round(2 * r) / 2
        horizon = 3
        belief = FiniteBelief(p, r, w, reward_signal=signal, initial=p0)
        memoryless, _ = best_memoryless_value(p, r, w, p0, 0.9, horizon)
        bayes = bayes_adaptive_value(p, r, w, p0, 0.9, horizon, signal)
        lower = mmbi(belief, discount=0.9, horizon=horizon).value()
        greedy = expected_mdp_policy(belief, discount=0.9, horizon=horizon).value()
        middle = p0 @ qmdp(belief, discount=0.9, horizon=horizon).values
        upper = p0 @ e_max(belief, discount=0.9, horizon=horizon).values
        slack = 1e-12
        assert max(lower, greedy) <= memoryless + slack <= bayes + 2 * slack <= middle + 3 * slack <= upper + 4 * slack


def door(safe=0.7):
    """Two models. In state 0, action 0 pays `safe` and ends; action 1 knocks: in model 1 the door opens to a reward
    of 1, in model 0 it never does. The expected MDP thinks that knocking again is another chance of one half."""
    p = np.zeros((2, 3, 2, 3))
    p[:, 0, 0, 2] = p[:, 1:, :, 2] = 1.0
    p[0, 0, 1, 0] = p[1, 0, 1, 1] = 1.0
    r = np.zeros((2, 3, 2))
    r[:, 0, 0], r[:, 1] = safe, 1.0
    return FiniteBelief(p, r, initial=0)


def test_the_expected_mdp_knocks_for_ever_and_mmbi_does_not():
    belief = door()
    expected = expected_mdp_policy(belief, discount=0.95)
    assert expected.policy.actions[0] == 1
    assert expected.value() == pytest.approx(0.5 * 0.95)
    assert evaluate(expected.policy, belief.mean(), discount=0.95)[0] == pytest.approx(0.475 / (1 - 0.475))
    assert mmbi(belief, discount=0.95, horizon=50).value() >= 0.7
    assert mmbi(belief, discount=0.95).value() == pytest.approx(0.7)  # no fixed point: the best policy of the cycle
    assert not mmbi(belief, discount=0.95).converged


def test_value_of_the_mean_is_not_the_mean_of_values_and_mmbi_can_beat_the_expected_mdp():
    found = 0
    for seed in range(200):
        p, r, w, p0 = random_models(np.random.default_rng(seed), 3, 4, 2, concentration=0.2)
        belief = belief_of(p, r, w, initial=p0)
        better = mmbi(belief, discount=0.95, horizon=60).value()
        plan = expected_mdp_policy(belief, discount=0.95, horizon=60)
        in_the_mean = p0 @ evaluate(plan.policy, belief.mean(), discount=0.95)
        assert abs(in_the_mean - plan.value()) > 1e-6  # E V differs from V of the mean
        found += better > plan.value() * 1.01
    assert found >= 10


def test_ties_go_to_the_lowest_action():
    same = np.full((2, 3, 4, 3), 1 / 3)
    plan = mmbi(belief_of(same, np.ones((2, 3, 4)), None), discount=0.9, horizon=5)
    assert (plan.policy.actions == 0).all()
    assert (policy_iteration(MDP(same[0], np.ones((3, 4))), discount=0.9).policy.actions == 0).all()


# -- infinite horizon -----------------------------------------------------------------------------------------


def test_truncation_costs_at_most_epsilon():
    p, r, w, _ = random_models(np.random.default_rng(5), 4, 5, 2)
    belief = belief_of(p, r, w)
    for epsilon in (1.0, 0.1, 0.001):
        plan = mmbi(belief, discount=0.9, epsilon=epsilon)
        tail = mmbi(belief, discount=0.9, horizon=plan.horizon + 400)
        # Playing on after the truncation can only add, and adds at most epsilon.
        extended = np.concatenate([plan.policy.actions, np.zeros((400, 5), int)])
        gained = w @ policy_values(p, r, extended, 0.9) - plan.values
        assert (gained >= 0).all()
        assert (gained <= epsilon).all()
        assert np.abs(tail.values - plan.values).max() <= epsilon + 1e-9 or plan.horizon < 3


def test_a_settled_fixed_point_is_greedy_for_its_own_values():
    settled = 0
    for seed in range(30):
        p, r, w, _ = random_models(np.random.default_rng(seed), 3, 4, 3)
        plan = mmbi(belief_of(p, r, w), discount=0.9)
        truth = stationary_values(p, r, plan.policy.actions, 0.9)
        assert np.allclose(plan.model_values, truth, atol=1e-10)
        if plan.converged:
            q = np.einsum("m,msa->sa", w, r + 0.9 * np.einsum("msat,mt->msa", p, truth))
            chosen = np.take_along_axis(q, plan.policy.actions[:, None], 1)[:, 0]
            assert (chosen >= q.max(axis=1) - 1e-8).all()
            settled += 1
        else:
            assert "cycles" in plan.note
    assert settled >= 20


def test_a_cycle_is_detected_and_its_best_policy_returned():
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        p = rng.permuted(np.broadcast_to(np.eye(3), (2, 2, 3, 3)), axis=2)
        p = np.moveaxis(np.eye(3)[rng.integers(3, size=(2, 3, 2))], 0, 0)
        r = rng.integers(-3, 4, size=(2, 3, 2)).astype(float)
        plan = mmbi(belief_of(p, r, None), discount=0.9)
        if not plan.converged:
            break
    else:
        pytest.fail("no cycling instance among the seeds")
    assert "cycles through" in plan.note
    # The greedy policies really do repeat: run the recursion long enough to be on the cycle.
    long, _ = numpy_mmbi(p, r, np.full(2, 0.5), 0.9, 600)
    on_cycle = {tuple(a) for a in long[:200]}
    assert len(on_cycle) > 1
    best = max(stationary_values(p, r, np.array(a), 0.9).mean() for a in on_cycle)
    assert plan.values.mean() == pytest.approx(best, abs=1e-9)


def test_stationary_re_evaluates():
    p, r, w, _ = random_models(np.random.default_rng(8), 3, 4, 2)
    plan = mmbi(belief_of(p, r, w), discount=0.9, horizon=12)
    first = plan.stationary()
    repeated = np.repeat(plan.policy.actions[:1], 12, axis=0)
    assert np.allclose(first.model_values, policy_values(p, r, repeated, 0.9), atol=1e-12)
    assert first.stationary() is first


# -- known MDPs -----------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.95, 0.999])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_all_solvers_agree_with_quantecon(discount, form):
    DiscreteDP = pytest.importorskip("quantecon.markov").DiscreteDP

    p, r, _, _ = random_models(np.random.default_rng(4), 1, 30, 4, sparsity=0.8)
    mdp = MDP(p[0], r[0])
    mdp = mdp if form == "dense" else mdp.to_sparse()
    truth = DiscreteDP(r[0], p[0], discount).solve(method="policy_iteration")
    exact = policy_iteration(mdp, discount=discount)
    assert np.allclose(exact.values, truth.v, rtol=1e-9)
    assert np.array_equal(exact.policy.actions, truth.sigma)
    for extra in (0, 20):
        plan = value_iteration(mdp, discount=discount, epsilon=1e-5, evaluation_sweeps=extra)
        assert plan.converged
        assert np.abs(plan.values - truth.v).max() <= 0.5e-5 * (1 + 1e-6)
        value = evaluate(plan.policy, mdp, discount=discount)
        assert (value >= truth.v - 1e-5).all()


@pytest.mark.parametrize(
    ("name", "options", "discount", "horizon", "value"),
    [
        ("FrozenLake-v1", {}, 0.99, None, 0.542026),
        ("CliffWalking-v1", {}, 1.0, 200, -13.0),
        ("Taxi-v4", {}, 1.0, 200, 7.93),
    ],
)
def test_gymnasium_tables_solve_to_their_known_values(name, options, discount, horizon, value):
    import gymnasium

    mdp = from_gymnasium(gymnasium.make(name, **options))
    if horizon is None:
        found = policy_iteration(mdp, discount=discount)
        assert np.allclose(value_iteration(mdp, discount=discount, epsilon=1e-8).values, found.values, atol=1e-8)
    else:
        found = backward_induction(mdp, discount=discount, horizon=horizon)
    assert mdp.initial @ found.values == pytest.approx(value, abs=5e-3 if horizon else 1e-6)


@pytest.mark.parametrize("discount", [0.0, 0.9, 0.99, 0.999])
@pytest.mark.parametrize("shift", [0.0, -0.7])
def test_whenever_they_stop_values_and_policy_are_as_close_as_they_say(discount, shift):
    p, r, _, _ = random_models(np.random.default_rng(4), 1, 30, 4, sparsity=0.8)
    mdp = MDP(p[0], r[0] + shift)
    truth = policy_iteration(mdp, discount=discount).values
    for sweeps in (1, 2, 3, 10, 21, 22, 23, 100):
        for extra in (0, 20):
            plan = value_iteration(mdp, discount=discount, epsilon=1e-12, evaluation_sweeps=extra, max_sweeps=sweeps)
            assert np.abs(plan.values - truth).max() <= plan.residual
            assert plan.guarantee.startswith(f"within {plan.residual:.3g} of the optimal value")
            value = evaluate(plan.policy, mdp, discount=discount)
            assert (truth - value).max() <= 2.0 * plan.residual
            assert plan.converged or "not converged" in repr(plan)
    assert not value_iteration(mdp, discount=0.99, epsilon=1e-12, max_sweeps=3).converged


def test_an_accuracy_beyond_rounding_ends_and_is_not_claimed():
    p, r, _, _ = random_models(np.random.default_rng(4), 1, 6, 2)
    plan = value_iteration(MDP(p[0], 1e12 * r[0]), discount=0.9, epsilon=1e-9)
    assert not plan.converged
    assert 1e-9 < plan.residual < 1e3
    truth = policy_iteration(MDP(p[0], 1e12 * r[0]), discount=0.9).values
    assert np.abs(plan.values - truth).max() <= plan.residual


def test_a_truncated_plan_says_what_it_proves_about_ever_after():
    p, r, w, _ = random_models(np.random.default_rng(9), 3, 4, 2)
    good = mmbi(belief_of(p, r, w), discount=0.9, epsilon=0.5)
    assert "rewards are not negative, so it is a lower bound" in good.guarantee
    bad = mmbi(belief_of(p, r - 2.0, w), discount=0.9, epsilon=0.5)
    upper = e_max(belief_of(p, r - 2.0, w), discount=0.9).values
    assert (bad.values > upper).any()  # not a lower bound at all
    assert "subtract it for a lower bound" in bad.guarantee
    tail = float(bad.guarantee.split("cost up to ")[1].split(",")[0])
    assert tail == pytest.approx(0.9**bad.horizon * -(r - 2.0).min() / 0.1, rel=0.01)
    assert (bad.values - 1.01 * tail <= upper).all()


def test_each_model_is_solved_on_its_own():
    p, r, w, _ = random_models(np.random.default_rng(6), 5, 6, 3)
    solved = optimal_values(belief_of(p, r, w), discount=0.9)
    for m in range(5):
        assert np.allclose(solved.values[m], policy_iteration(MDP(p[m], r[m]), discount=0.9).values, atol=1e-10)
    assert np.allclose(solved.q.max(-1), solved.values, atol=1e-10)


@pytest.mark.full
@pytest.mark.parametrize("discount", [0.9999, 1.0 - 1e-6, 1.0 - 1e-8])
def test_a_discount_close_to_one_ends_in_few_steps(discount):
    """Where a linear solve loses digits, differences of that size are not chased for ever."""
    p, r, w, p0 = random_models(np.random.default_rng(0), 8, 5, 2)
    belief = belief_of(p, r, w, initial=p0)
    plan = cadp(belief, discount=discount)
    assert plan.converged
    assert int(plan.note.split()[-2]) < 20
    upper = p0 @ e_max(belief, discount=discount).values
    assert plan.value() <= upper * (1.0 + 1e-6)
    mdp = MDP(p[0], r[0])
    best = policy_iteration(mdp, discount=discount)
    truth = stationary_values(p[:1], r[:1], best.policy.actions, discount)[0]
    assert np.allclose(best.values, truth, rtol=1e-6)


# -- MSBI -----------------------------------------------------------------------------------------------------


def test_msbi_values_come_from_fresh_models():
    belief = DirichletBelief(3, 2, concentration=0.3)
    in_sample, fresh = [], []
    for seed in range(30):
        plan = msbi(belief, discount=0.9, n_models=3, n_evaluate=300, horizon=30, rng=seed)
        assert plan.model_values.shape == (300, 3)
        in_sample.append(float(plan.note.split(": ")[1]))
        fresh.append(plan.value())
    assert np.mean(in_sample) > np.mean(fresh) + 0.1  # the in-sample value is optimistic


def test_msbi_takes_lemma_2s_number_of_models_and_refuses_absurd_ones():
    belief = DirichletBelief(2, 2)
    plan = msbi(belief, discount=0.5, epsilon=1.5, n_evaluate=10, rng=0)
    assert "value on the 64 models" in plan.note  # (3 · 1 / (1.5 · 0.5))³
    with pytest.raises(ParameterError, match="pass n_models"):
        msbi(belief, discount=0.99, epsilon=0.01, rng=0)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"discount": -0.1, "horizon": 3}, "discount is -0.1"),
        ({"discount": 1.0}, "discount is 1 and there is no horizon"),
        ({"discount": 0.9, "horizon": 2.5}, "horizon is 2.5; give a whole number"),
        ({"discount": 0.9, "epsilon": 0.0}, "epsilon is 0.0; it must be a finite number above 0"),
        ({"discount": 0.9, "epsilon": 0.1, "horizon": 3}, "a horizon or epsilon, not both"),
        ({"discount": "x", "horizon": 3}, "discount is 'x'"),
    ],
)
def test_bad_knobs_are_named(keywords, message):
    p, r, w, _ = random_models(np.random.default_rng(6), 2, 2, 2)
    with pytest.raises(ParameterError, match=message):
        mmbi(belief_of(p, r, w), **keywords)
