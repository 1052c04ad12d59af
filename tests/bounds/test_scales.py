"""The unit of rewards is nobody's business: every plan and bound scales with it, from 1e-12 to 1e12.

Powers of two scale doubles without rounding, so results must be the same to the last bit; a tolerance that is not
relative to the problem shows as a difference.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from beliefbound import (
    MDP,
    DirichletBelief,
    FiniteBelief,
    StationaryPolicy,
    bracket,
    cadp,
    e_max,
    evaluate,
    expected_mdp_policy,
    mmbi,
    plan_log,
    policy_iteration,
    qmdp,
    read_log,
    value_iteration,
)
from beliefbound.beliefs import DirichletRewards
from beliefbound.bounds import best_memoryless, lookahead_lower, lookahead_upper, pair_bound, relaxation
from support.oracles import random_models
from support.tiers import tiers

SCALES = [2.0**-40, 2.0**-20, 2.0**20, 2.0**40]


def results(scale, discount, horizon):
    """Numbers by name, for the same problem with rewards times `scale`."""
    p, r, w, p0 = random_models(np.random.default_rng(4), 4, 3, 2, sparsity=0.3)
    belief = FiniteBelief(p, scale * (r - 0.3), w, reward_signal="unobserved", initial=p0)
    task = {"discount": discount, "horizon": horizon}
    found = {
        "mmbi": mmbi(belief, **task).values,
        "cadp": cadp(belief, **task).values,
        "expected": expected_mdp_policy(belief, **task).values,
        "e_max": e_max(belief, **task).values,
        "qmdp": qmdp(belief, **task).values,
        "pairs": pair_bound(belief, **task).value,
        "lookahead_lower": lookahead_lower(belief, depth=2, **task).value,
        "lookahead_upper": lookahead_upper(belief, depth=2, **task).value,
    }
    relaxed = relaxation(belief, nodes=60, scenarios=64, rng=np.random.default_rng(1), threads=1, **task)
    found |= {"relaxed": [relaxed.lower.value, relaxed.upper.value, relaxed.regret.value]}
    if horizon is not None:
        found["best_memoryless"] = best_memoryless(belief, **task).upper.value
    return found


@pytest.mark.parametrize(
    ("discount", "horizon"), [(0.9, None), pytest.param(0.999, None, marks=pytest.mark.full), (0.9, 5), (1.0, 4)]
)
def test_plans_and_bounds_of_a_belief_scale_with_its_rewards(discount, horizon):
    one = results(1.0, discount, horizon)
    for scale in SCALES:
        for name, value in results(scale, discount, horizon).items():
            np.testing.assert_array_equal(np.asarray(value), scale * np.asarray(one[name]), err_msg=f"{name}, {scale}")


@pytest.mark.parametrize("form", tiers(["dense", "sparse"], "dense"))
@pytest.mark.parametrize("discount", [0.5, 0.999])
def test_plans_of_an_mdp_scale_with_its_rewards(form, discount):
    p, r, _, _ = random_models(np.random.default_rng(5), 1, 30, 3, sparsity=0.8)

    def solved(scale):
        mdp = MDP(p[0] if form == "dense" else sp.csr_array(p[0].reshape(90, 30)), scale * (r[0] - 0.5))
        return {
            "policy iteration": policy_iteration(mdp, discount=discount).values,
            "value iteration": value_iteration(mdp, discount=discount, epsilon=1e-9 * scale).values,
            "modified": value_iteration(mdp, discount=discount, epsilon=1e-9 * scale, evaluation_sweeps=20).values,
            "evaluation": evaluate(StationaryPolicy(np.zeros(30, dtype=int)), mdp, discount=discount),
        }

    one = solved(1.0)
    for scale in SCALES:
        for name, values in solved(scale).items():
            np.testing.assert_array_equal(values, scale * one[name], err_msg=f"{name}, {scale}")


@pytest.mark.parametrize("reward", [1e-300, 1e-12, 1e-6, 1.0, 1e12])
def test_upper_bounds_are_not_below_the_value_of_a_small_reward(reward):
    """A reward every other step for those who go and fetch it; staying pays nothing and is the lower action."""
    go, stay = [0.0, 1.0], [1.0, 0.0]
    p = [[[stay, go], [stay, stay]]] * 2
    r = np.array([[[0.0, 0.0], [reward, reward]]] * 2)
    belief = FiniteBelief(p, r, initial=0)
    exact = 0.5 * reward / 0.75
    plan = policy_iteration(belief.mean(), discount=0.5)
    assert plan.policy.actions[0] == 1
    assert plan.values[0] == pytest.approx(exact, rel=1e-14, abs=0.0)
    for upper in (
        qmdp(belief, discount=0.5).values[0],
        e_max(belief, discount=0.5).values[0],
        pair_bound(belief, discount=0.5).value,
    ):
        assert upper >= exact * (1.0 - 1e-14)
        assert upper <= exact * (1.0 + 1e-8)
    assert mmbi(belief, discount=0.5).value() == pytest.approx(exact, rel=1e-9, abs=0.0)


def test_a_bracket_of_tiny_rewards_encloses_the_value():
    p, r, w, p0 = random_models(np.random.default_rng(6), 3, 2, 2)
    found = [
        bracket(
            FiniteBelief(p, scale * r, w, reward_signal="unobserved", initial=p0),
            discount=0.9,
            target_gap=0.01,
            rng=np.random.default_rng(1),
            threads=1,
        )
        for scale in (1.0, 2.0**-40)
    ]
    assert found[1].relative_gap <= 0.01
    assert found[1].lower.value <= 2.0**-40 * found[0].upper.value
    assert found[1].upper.value >= 2.0**-40 * found[0].lower.value


def test_worthless_problems_are_worth_nothing():
    belief = FiniteBelief([[[[1.0], [1.0]]]] * 2, np.zeros((2, 1, 2)), reward_signal="unobserved")
    assert mmbi(belief, discount=0.9).converged
    found = bracket(belief, discount=0.9, rng=np.random.default_rng(0))
    assert found.lower.value == found.upper.value == 0.0
    sampled = relaxation(belief, discount=0.9, scenarios=64, rng=np.random.default_rng(0), threads=1)
    assert sampled.lower.value == pytest.approx(0.0, abs=1e-280)


def two_arms(scale):
    """One arm pays and the other does not; the first reward tells which: worth 3/2 of what an arm pays."""
    paid = scale * np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    return FiniteBelief([[[[1.0], [1.0]]]] * 2, paid, reward_signal="deterministic", initial=0)


@pytest.mark.parametrize("scale", [2.0**-300, *SCALES, 2.0**300])
def test_small_rewards_tell_models_apart_as_large_ones_do(scale):
    belief = two_arms(scale)
    found = bracket(belief, discount=0.5, effort=50, rng=0)
    assert found.lower.value / scale == pytest.approx(1.5)
    assert found.upper.value / scale == pytest.approx(1.5)
    assert belief.update(0, 0, scale, 0).weights.tolist() == [1.0, 0.0]
    policy = found.policy.fresh()
    policy.reset(0)
    first = policy.act(0)
    policy.observe(0, first, 0.0, 0)
    assert policy.act(0) == 1 - first
    learnt = DirichletBelief(1, 2, rewards=DirichletRewards([0.0, scale])).update(0, 0, scale, 0)
    assert learnt.rewards.counts[0, 0].tolist() == [1.0, 2.0]


@pytest.mark.full
@pytest.mark.parametrize("scale", SCALES)
def test_what_a_log_is_worth_scales_with_its_rewards(tmp_path, scale):
    """A log whose horizon is reached, and one without."""
    knobs = {"n_models": 200, "time_limit": 0, "measure": False, "seed": 1, "discount": 0.9}
    ends = []
    for unit in (1.0, scale):
        file = tmp_path / f"{unit}.csv"
        rows = [f"0,0,{0.0!r},0", f"0,0,{unit!r},0", f"0,1,{0.0!r},0"]
        file.write_text("\n".join(["state,action,reward,next_state", *rows]))
        found = [plan_log(read_log(file), horizon=horizon, **knobs) for horizon in (500, None)]
        ends.append([bound.value / unit for plan in found for bound in (plan.lower, plan.upper)])
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)
