"""Proven numbers where rewards are of sizes from 1 to 1e9, against exact rational arithmetic (`soak.exact`)."""

from fractions import Fraction

import numpy as np
import pytest

import beliefbound as bb
from beliefbound.base.errors import ContradictionError, ParameterError
from beliefbound.bounds import policy_regret
from beliefbound.bounds.basic import e_max, qmdp
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.record import Record
from beliefbound.kernels.particles.solving import optimal
from beliefbound.models.evaluation import evaluate
from beliefbound.planning.optimal import optimal_values, policy_iteration
from soak import exact, scales
from support.tiers import tiers


def forbidden():
    """Four states: going round is worth 103.9 at .99, staying 101.45; the third action is forbidden at -1e9."""
    P, r = np.zeros((4, 3, 4)), np.full((4, 3), -1e9)
    P[:, 2] = np.eye(4)
    P[0, 0, 1] = P[0, 1, 3] = P[1, 0, 1] = P[1, 1, 2] = 1.0
    P[2, :2, 1] = P[3, :2, 3] = 1.0
    r[0, :2], r[1, 0], r[1, 1], r[2, :2], r[3, :2] = 0.0, 1.0, 0.95, 1.15, 1.02475
    return P, r


def test_a_forbidden_action_costs_no_digits():
    P, r = forbidden()
    belief = bb.FiniteBelief([P, P], r, initial=0)
    truth = exact.optimal(exact.rational(P), exact.rational(r), Fraction(0.99))[0][0]
    found = bb.bracket(belief, discount=0.99, effort=5, rng=1)
    for bound in (e_max(belief, discount=0.99), qmdp(belief, discount=0.99), found.upper):
        assert truth <= Fraction(bound.value) <= truth * (1 + Fraction(1, 10**10))
    assert truth * (1 - Fraction(1, 10**8)) <= Fraction(found.lower.value) <= truth
    lost = bb.certify(bb.StationaryPolicy([1, 0, 0, 0]), belief, discount=0.99, upper=found.upper)
    assert lost.regret.value == pytest.approx(float(truth) - 101.45025)
    assert policy_regret(bb.StationaryPolicy([1, 0, 0, 0]), belief, found.upper, discount=0.99).value >= 2.45


@pytest.mark.parametrize("seed", tiers(range(40), *range(8)))
def test_values_hold_where_rewards_differ_in_scale(seed):
    for instance in range(10 * seed, 10 * seed + 10):
        assert scales.false_values(instance) == []


@pytest.mark.parametrize("seed", tiers(range(24), *range(6)))
def test_bounds_hold_where_rewards_differ_in_scale(seed):
    wrong, gap = scales.false_bounds(seed)
    assert wrong == []
    assert gap <= 0.5 or gap == -1.0


def test_values_are_tight_where_rewards_differ_in_scale():
    """A state worth -1e9 for ever next to states worth about 1: these keep nine digits, at .99999 as well."""
    for discount in (0.95, 0.99999):
        P, r = np.zeros((4, 2, 4)), np.array([[1.0, 0.0], [0.5, 2.0], [-1e9, -1e9], [1e9, 1e9]])
        P[0, :, 1] = P[1, 0, 0] = P[1, 1, 2] = P[2, :, 2] = P[3, :, 0] = 1.0
        for mdp in (bb.MDP(P, r), bb.MDP(P, r).to_sparse()):
            solved = optimal_values(mdp, discount=discount)
            truth, _ = exact.optimal(exact.rational(P), exact.rational(r), Fraction(discount))
            for s, value in enumerate(truth):
                assert value <= Fraction(float(solved.above[0, s])) <= value + abs(value) / 10**8
                assert abs(Fraction(float(solved.values[0, s])) - value) <= abs(value) / 10**9
            plan = policy_iteration(mdp, discount=discount)
            assert f"within {plan.residual:.3g}" in plan.guarantee
            earned = evaluate(plan.policy, mdp, discount=discount)
            np.testing.assert_allclose(earned, [float(value) for value in truth], rtol=1e-9)


def test_a_model_that_is_ruled_out_takes_no_digits_from_the_other():
    """The second action from state 0 tells which model it is. In one of them, which it then is not, the third action
    leads to a state worth -1e9: between grid points of a pair, that must not be met."""
    P, r = np.zeros((2, 4, 3, 4)), np.zeros((4, 3))
    for m, targets in enumerate(
        ([[0, 2, 1], [2, 3, 2], [3, 0, 3], [1, 1, 0]], [[0, 0, 2], [2, 3, 2], [0, 0, 2], [1, 1, 3]])
    ):
        for s, row in enumerate(targets):
            P[m, s, range(3), row] = 1.0
    cost = -0.9612710062355687
    r[:] = [[0.0, cost, 0.0], [-1e9] * 3, [cost, 1.0, 1.02475], [cost, cost, 0.95]]
    belief = bb.FiniteBelief(P, r, [0.34822485661170305, 0.651775143388297], reward_signal="known", initial=0)
    stored = [exact.rational(np.asarray(x)) for x in (belief.transitions, belief.rewards, belief.weights)]
    _, truth = exact.belief_mdp(*stored, 0, Fraction(0.5), "known")
    for effort in (1, 8):
        decision = bb.bracket(belief, discount=0.5, effort=effort, rng=1).decision
        for a, low, high in zip(decision.actions, decision.lower, decision.upper, strict=True):
            assert Fraction(float(low)) <= truth[a] <= Fraction(float(high))
        assert decision.upper[1] <= float(truth[1]) + 1e-9


def test_particles_are_solved_from_above_whatever_the_scale():
    rng = np.random.default_rng(3)
    for _ in range(40):
        P, r = exact.mixed_scales(rng)
        n_states, n_actions = r.shape
        discount = float(rng.choice(exact.DISCOUNTS))
        draws = np.concatenate([P, r[..., None]], axis=-1).reshape(n_states * n_actions, n_states + 1, 1)
        q, own = np.empty((1, n_states * n_actions, 1)), np.zeros((n_states, 1), dtype=np.int64)
        optimal(discount, np.ascontiguousarray(draws), np.arange(n_states * n_actions), -1, own, q)
        truth, _ = exact.optimal(exact.rational(P), exact.rational(r), Fraction(discount))
        above = q[0].reshape(n_states, n_actions).max(axis=1)
        largest = max(map(abs, truth))
        for s, value in enumerate(truth):
            assert value <= Fraction(float(above[s])) <= value + largest / 10**6


def record():
    return Record(0.95)


def sampled(value, side):
    return Bound(value, side, "samples", exact=False, confidence=0.99, n_samples=10, policy=bb.StationaryPolicy([0]))


def test_crossed_ends_are_an_error():
    both = record()
    both.add(Bound(1.0, "lower", "x"))
    with pytest.raises(ContradictionError, match="both claim to be proven"):
        both.add(Bound(0.5, "upper", "y"))
    alone = record()
    alone.add(sampled(1.0, "lower"))
    with pytest.raises(ContradictionError, match="by chance; try another seed"):
        alone.add(sampled(0.5, "upper"))


def test_a_sampled_end_gives_way_to_a_proven_one():
    found = record()
    found.add(Bound(0.0, "lower", "x"), Bound(3.0, "upper", "y"))
    found.add(sampled(1.0, "lower"))
    assert found.lower.value == 1.0
    found.add(Bound(0.5, "upper", "z"))
    assert (found.lower.value, found.upper.value, found.refuted) == (0.0, 0.5, True)


def test_an_upper_bound_of_another_problem_is_refused():
    P, r = forbidden()
    belief = bb.FiniteBelief([P, P], r, initial=0)
    with pytest.raises(ParameterError, match="not of the same belief"):
        policy_regret(bb.StationaryPolicy([0, 1, 0, 0]), belief, Bound(103.9, "upper", "guess"), discount=0.99)
