"""What comes in wrong is refused with what to do instead, before any loop sees it; what is merely unusual is taken."""

import numpy as np
import pytest
import scipy.sparse as sp

from beliefbound import (
    MDP,
    Bound,
    DirichletBelief,
    FiniteBelief,
    MemorylessPolicy,
    StationaryPolicy,
    backward_induction,
    bracket,
    cadp,
    e_max,
    evaluate,
    expected_mdp_policy,
    lower_bound,
    mmbi,
    msbi,
    optimal_values,
    policy_iteration,
    qmdp,
    theory,
    upper_bound,
    value_iteration,
)
from beliefbound.base.errors import BeliefboundError, BeliefError, ModelError, ParameterError
from beliefbound.beliefs.folder import ModelFolder
from beliefbound.bounds import best_memoryless, lookahead_lower, lookahead_upper, pair_bound, policy_regret, relaxation
from support.oracles import random_models

RNG = np.random.default_rng(0)
P, R, W, P0 = random_models(np.random.default_rng(1), 3, 4, 2)
BELIEF = FiniteBelief(P, R, W, reward_signal="unobserved", initial=P0)
MODEL = MDP(P[0], R[0])
POLICY = StationaryPolicy([0, 1, 0, 1])
HIGH = Bound(1000.0, "upper", "more than there is")

KNOWN = {
    "value_iteration": lambda x: value_iteration(x, discount=0.9),
    "modified policy iteration": lambda x: value_iteration(x, discount=0.9, evaluation_sweeps=20),
    "policy_iteration": lambda x: policy_iteration(x, discount=0.9),
    "backward_induction": lambda x: backward_induction(x, discount=0.9, horizon=3),
}
FINITE = {
    "mmbi": lambda x: mmbi(x, discount=0.9),
    "cadp": lambda x: cadp(x, discount=0.9, horizon=3),
    "expected_mdp_policy": lambda x: expected_mdp_policy(x, discount=0.9),
    "best_memoryless": lambda x: best_memoryless(x, discount=0.9, horizon=2),
    "e_max": lambda x: e_max(x, discount=0.9),
    "qmdp": lambda x: qmdp(x, discount=0.9),
    "pair_bound": lambda x: pair_bound(x, discount=0.9),
    "lookahead_lower": lambda x: lookahead_lower(x, depth=1, discount=0.9),
    "lookahead_upper": lambda x: lookahead_upper(x, depth=1, discount=0.9),
    "relaxation": lambda x: relaxation(x, discount=0.9, rng=RNG),
}
ANY = {
    "bracket": lambda x: bracket(x, discount=0.9, rng=RNG),
    "lower_bound": lambda x: lower_bound(POLICY, x, discount=0.9, rng=RNG),
    "upper_bound": lambda x: upper_bound(x, discount=0.9, rng=RNG),
    "msbi": lambda x: msbi(x, discount=0.9, rng=RNG),
}
FOLDER = ModelFolder(BELIEF, None, None, MODEL, P0, 0.9, ())


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("wrong", [BELIEF, DirichletBelief(2, 2), FOLDER, P, None], ids=lambda x: type(x).__name__)
def test_planners_of_one_mdp_refuse_everything_else(name, wrong):
    with pytest.raises(ModelError, match="expected an MDP, got"):
        KNOWN[name](wrong)


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (MODEL, r"FiniteBelief\.from_mdps"),
        (DirichletBelief(2, 2), r"sample it first: belief\.sample\(n, rng\)"),
        (FOLDER, r"pass its belief, \.training"),
        (P, "got ndarray"),
        (None, "got NoneType"),
    ],
    ids=["mdp", "dirichlet", "folder", "array", "none"],
)
def test_planners_and_bounds_of_finite_beliefs_say_what_to_do_with_others(name, wrong, hint):
    with pytest.raises(BeliefError, match=hint):
        FINITE[name](wrong)


@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("wrong", [MODEL, FOLDER, P, None], ids=lambda x: type(x).__name__)
def test_what_takes_any_belief_refuses_what_is_none(name, wrong):
    with pytest.raises(BeliefError, match="expected a belief, got"):
        ANY[name](wrong)


@pytest.mark.parametrize("wrong", [DirichletBelief(4, 2), FOLDER, P, None, 3], ids=lambda x: type(x).__name__)
def test_policies_are_evaluated_on_models_only(wrong):
    with pytest.raises(ModelError, match="expected an MDP or a FiniteBelief"):
        evaluate(POLICY, wrong, discount=0.9)
    with pytest.raises(ModelError, match="expected an MDP or a FiniteBelief"):
        optimal_values(wrong, discount=0.9)
    with pytest.raises(BeliefboundError, match="expected a StationaryPolicy or MemorylessPolicy"):
        evaluate(wrong, BELIEF, discount=0.9)


HORIZONS = {
    "mmbi": lambda h: mmbi(BELIEF, discount=0.9, horizon=h),
    "cadp": lambda h: cadp(BELIEF, discount=0.9, horizon=h),
    "expected": lambda h: expected_mdp_policy(BELIEF, discount=0.9, horizon=h),
    "best_memoryless": lambda h: best_memoryless(BELIEF, discount=0.9, horizon=h),
    "backward_induction": lambda h: backward_induction(MODEL, discount=0.9, horizon=h),
    "evaluate": lambda h: evaluate(POLICY, MODEL, discount=0.9, horizon=h),
    "optimal_values": lambda h: optimal_values(BELIEF, discount=0.9, horizon=h),
    "qmdp": lambda h: qmdp(BELIEF, discount=0.9, horizon=h),
    "pair_bound": lambda h: pair_bound(BELIEF, discount=0.9, horizon=h),
    "lookahead": lambda h: lookahead_upper(BELIEF, depth=1, discount=0.9, horizon=h),
    "relaxation": lambda h: relaxation(BELIEF, discount=0.9, horizon=h, rng=RNG),
    "bracket": lambda h: bracket(BELIEF, discount=0.9, horizon=h, rng=RNG),
    "bracket, dirichlet": lambda h: bracket(DirichletBelief(2, 2), discount=0.9, horizon=h, rng=RNG),
    "lower_bound": lambda h: lower_bound(POLICY, BELIEF, discount=0.9, horizon=h),
    "msbi": lambda h: msbi(DirichletBelief(2, 2), discount=0.9, horizon=h, rng=RNG),
}


@pytest.mark.parametrize("name", HORIZONS)
@pytest.mark.parametrize("horizon", [10**12, 10**300, 0, -1, 2.5, "3", float("nan")])
def test_horizons_that_would_never_end_or_make_no_sense_are_refused(name, horizon):
    with pytest.raises(ParameterError, match="horizon is"):
        HORIZONS[name](horizon)


def test_a_truncation_that_would_never_end_is_refused():
    with pytest.raises(ParameterError, match="horizon is"):
        mmbi(BELIEF, discount=1.0 - 1e-12, epsilon=1e-9)
    with pytest.raises(ParameterError, match="leaves are too many"):
        lookahead_upper(BELIEF, depth=200, discount=0.9)


@pytest.mark.parametrize("threads", [-1, 0, 1.5, "two"])
def test_numbers_of_threads_are_checked(threads):
    with pytest.raises(ParameterError, match="threads is"):
        bracket(BELIEF, discount=0.9, rng=RNG, threads=threads)
    with pytest.raises(ParameterError, match="threads is"):
        relaxation(BELIEF, discount=0.9, rng=RNG, threads=threads)


@pytest.mark.parametrize("gap", [-0.1, float("nan"), "wide", None])
def test_gaps_are_shares(gap):
    with pytest.raises(ParameterError, match="target_gap is"):
        best_memoryless(BELIEF, discount=0.9, horizon=2, target_gap=gap)
    if gap is not None:
        with pytest.raises(ParameterError, match="target_gap is"):
            bracket(BELIEF, discount=0.9, rng=RNG, target_gap=gap)


def test_a_seed_will_do_for_a_generator():
    dirichlet = DirichletBelief(2, 2)
    for call in (
        lambda rng: msbi(dirichlet, discount=0.9, horizon=5, rng=rng).value(),
        lambda rng: upper_bound(dirichlet, discount=0.9, rng=rng).value,
        lambda rng: relaxation(BELIEF, discount=0.9, scenarios=64, rng=rng).lower.value,
    ):
        assert call(7) == call(np.random.default_rng(7))
    with pytest.raises(ParameterError, match="rng"):
        bracket(BELIEF, discount=0.9, rng="seven")


def test_starts_are_states_or_distributions_everywhere():
    vertex = np.eye(4)[2]
    for call in (
        lambda x: mmbi(BELIEF, discount=0.9).value(x),
        lambda x: cadp(BELIEF, discount=0.9, horizon=3, initial=x).value(x),
        lambda x: best_memoryless(BELIEF, discount=0.9, horizon=2, initial=x).lower.value,
        lambda x: lower_bound(POLICY, BELIEF, discount=0.9, initial=x).value,
        lambda x: upper_bound(BELIEF, discount=0.9, initial=x).value,
        lambda x: e_max(BELIEF, discount=0.9, initial=x).value,
        lambda x: qmdp(BELIEF, discount=0.9, initial=x).value,
        lambda x: pair_bound(BELIEF, discount=0.9, initial=x).value,
        lambda x: lookahead_lower(BELIEF, depth=1, discount=0.9, initial=x).value,
        lambda x: lookahead_upper(BELIEF, depth=1, discount=0.9, initial=x).value,
        lambda x: (
            policy_regret(POLICY, BELIEF, upper_bound(BELIEF, discount=0.9, initial=x), discount=0.9, initial=x).value
        ),
        lambda x: relaxation(BELIEF, discount=0.9, initial=x, scenarios=64, rng=0).upper.value,
    ):
        assert call(2) == call(vertex) == call(vertex.tolist()) == call(vertex.astype(np.float32))
        for wrong in (4, -1, 1.5, np.ones(4), np.ones(3) / 3, "home", [0.5, 0.5, np.nan, 0.0]):
            with pytest.raises(BeliefboundError, match="initial"):
                call(wrong)


def test_lists_and_float32_are_taken_where_arrays_are():
    lists = FiniteBelief(P.tolist(), R.tolist(), W.tolist(), reward_signal="unobserved", initial=P0.tolist())
    assert mmbi(lists, discount=0.9).value() == mmbi(BELIEF, discount=0.9).value()
    p = np.eye(4, dtype=np.float32)[np.zeros((4, 2), dtype=int)]
    half = MDP(p, R[0].astype(np.float32))
    assert half.rewards.dtype == np.float64
    assert policy_iteration(half, discount=0.5).values.shape == (4,)
    sparse = MDP(sp.csr_array(p.reshape(8, 4)), R[0].astype(np.float32))
    assert np.array_equal(policy_iteration(sparse, discount=0.5).policy.actions, R[0].astype(np.float32).argmax(axis=1))
    assert evaluate(MemorylessPolicy([[0, 0, 0, 0]]), half, discount=1.0).shape == (4,)


def test_an_empty_pool_bounds_nothing():
    with pytest.raises(ParameterError, match="policies is empty"):
        lookahead_lower(BELIEF, depth=1, discount=0.9, policies=[])
    with pytest.raises(BeliefboundError, match="StationaryPolicy or MemorylessPolicy"):
        lookahead_lower(BELIEF, depth=1, discount=0.9, policies=[3])
    with pytest.raises(BeliefboundError, match="the policy has 1 states"):
        lookahead_lower(BELIEF, depth=1, discount=0.9, policies=[StationaryPolicy([0])])


def test_rewards_that_overflow_are_refused():
    huge = FiniteBelief(P, 1e307 * R, W, reward_signal="unobserved")
    with pytest.raises(ParameterError, match="overflow"):
        mmbi(huge, discount=0.999)
    with pytest.raises(ParameterError, match="overflow"):
        theory.truncation_stages(1.0, discount=0.999, r_max=1e307)
    with pytest.raises(ParameterError, match="give a larger one"):
        theory.lemma2_models(1e-200, discount=0.9, r_max=1.0)
    with pytest.raises(ParameterError, match="n_actions is 0"):
        theory.uniform_models(0.5, n_states=2, n_actions=0, horizon=3, discount=0.9, r_max=1.0)
    with pytest.raises(ParameterError, match="distance is"):
        theory.theorem1_regret("far", discount=0.9, r_max=1.0)
