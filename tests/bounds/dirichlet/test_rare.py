"""Outcomes so rare that no particle has them: bounds hold all the same, at every scale and on both sides."""

import numpy as np
import pytest
from scipy.special import gammaln

from beliefbound import bracket
from beliefbound.beliefs import BetaRewards, DirichletBelief, KnownRewards
from beliefbound.bounds.dirichlet.arrays import problem_of
from beliefbound.bounds.dirichlet.rare import Extremes, cut
from beliefbound.planning.task import Task
from support import oracles

FULL = pytest.mark.full


def leap(alpha, prize, *, on_arrival=False, base=1.0):
    """State 0 pays `base` and leads to state 1 with a chance that is Beta(alpha, 1); state 1 pays `prize` for ever, or
    once, on arrival. A second action of state 0 pays nothing and stays: for those who fear what comes."""
    concentration = np.zeros((2, 2, 2))
    concentration[0, 0] = 1.0, alpha
    concentration[0, 1, 0] = concentration[1, :, 1] = 1.0
    if on_arrival:
        rewards = np.zeros((2, 2, 2))
        rewards[0, 0] = base, base + prize
    else:
        rewards = np.array([[base, 0.0], [prize, prize]])
    return DirichletBelief(2, 2, concentration=concentration, rewards=KnownRewards(rewards), initial=0)


def leap_value(alpha, prize, discount, *, on_arrival=False, base=1.0):
    """The exact value of always taking the chance: `Pr(still in state 0 after k steps) = Π 1/(1 + α/(1 + i))`."""
    k = np.arange(int(40.0 / (1.0 - discount)))
    stays = np.exp(gammaln(1.0 + k) - gammaln(1.0 + alpha + k) + gammaln(1.0 + alpha))
    leaves = stays * alpha / (1.0 + alpha + k)
    worth = prize if on_arrival else discount * prize / (1.0 - discount)
    return float(base * discount**k @ stays + discount**k @ leaves * worth)


@pytest.mark.parametrize(
    ("alpha", "prize"),
    [
        pytest.param(1e-3, 1e6, marks=FULL),
        (1e-5, 1e6),
        pytest.param(1e-7, 1e6, marks=FULL),
        pytest.param(1e-5, -1e6, marks=FULL),
        (1e-7, -1e6),
    ],
)
def test_a_jackpot_or_a_ruin_that_nobody_sees_is_inside(alpha, prize):
    """Eight seeds at 95%: more than three failures have probability below 0.001 if each fails with 5%. Whoever cannot
    avoid a ruin still knows that waiting is worth 0."""
    exact = max(leap_value(alpha, prize, 0.9), 0.0)
    failures = 0
    for seed in range(8):
        found = bracket(leap(alpha, prize), discount=0.9, effort=2, rng=seed)
        failures += not found.lower.value - 1e-9 <= exact <= found.upper.value + 1e-9
    assert failures <= 3


@pytest.mark.full
def test_what_is_cut_moves_bounds_by_little():
    for prize in (1e6, -1e6):
        found = bracket(leap(1e-7, prize), discount=0.9, effort=6, rng=1)
        exact = leap_value(1e-7, prize, 0.9)
        assert found.lower.value <= exact <= found.upper.value
        assert found.upper.value - exact < 10.0 * 1e-7 * abs(prize) / 0.01 + 0.1
        assert exact - found.lower.value < 10.0 * 1e-7 * abs(prize) / 0.01 + 2.0


@pytest.mark.parametrize(
    ("discount", "scale", "on_arrival"),
    [
        (0.5, 2.0**-40, False),
        (0.99999, 2.0**40, False),
        *(
            pytest.param(discount, scale, True, marks=FULL)
            for discount in (0.5, 0.99, 0.99999)
            for scale in (2.0**-40, 2.0**40)
        ),
    ],
)
def test_scales_discounts_and_rewards_on_arrival(discount, scale, on_arrival):
    exact = scale * leap_value(0.3, 5.0, discount, on_arrival=on_arrival)
    found = bracket(leap(0.3, 5.0 * scale, on_arrival=on_arrival, base=scale), discount=discount, effort=2, rng=2)
    slack = 1e-9 * abs(exact)
    assert found.lower.value - slack <= exact <= found.upper.value + slack
    one = bracket(leap(0.3, 5.0, on_arrival=on_arrival), discount=discount, effort=2, rng=2)
    for bound, scaled in zip(one.bounds, found.bounds, strict=True):
        assert scaled.value == pytest.approx(scale * bound.value, rel=1e-12)


def test_the_cut_problem_is_a_bound_of_the_whole_in_expectation():
    """Both cut problems, as beliefs with a state of their own for what was cut, valued exactly by the tree."""
    alpha = np.array(
        [[[0.5, 0.5, 1e-6], [1.0, 1e-6, 1.0]], [[1e-6, 1.0, 1.0], [0.7, 0.3, 1e-6]], [[1.0, 1.0, 1e-6]] * 2]
    )
    rewards = np.array([[0.3, -1.0], [0.0, 2.0], [1.0, 0.5]])
    belief = DirichletBelief(3, 2, concentration=alpha, rewards=KnownRewards(rewards), initial=0)
    exact = oracles.dirichlet_value(belief, 0, 0.9, 4)
    task = Task.of(belief, discount=0.9, horizon=4)
    for side, sign in (("upper", 1.0), ("lower", -1.0)):
        problem = cut(problem_of(task, np.zeros(1, np.uint64), horizon=4), side, 4)
        assert (problem.posterior.alpha[alpha.reshape(6, 3) == 1e-6] == 0.0).all()
        assert (problem.keep < 1.0).all()
        rest = DirichletBelief(
            3, 2, concentration=problem.posterior.alpha.reshape(3, 2, 3), rewards=KnownRewards(rewards), initial=0
        )
        value = _leaking_value(rest, problem, 4)
        assert sign * (value - exact) >= 0.0
        assert abs(value - exact) < 1e-3


def _leaking_value(belief, problem, left, state=0):
    """Backwards induction over histories of a belief whose rows keep a share of their chance."""
    if left == 0:
        return 0.0
    best = -np.inf
    for a in range(belief.n_actions):
        pair = state * belief.n_actions + a
        total = problem.unit * problem.credit[pair] + belief.rewards.mean()[state, a]
        for t, p in enumerate(belief.predictive(state, a)):
            if p > 0.0:
                after = belief.update(state, a, None, t)
                total += 0.9 * problem.keep[pair] * p * _leaking_value(after, problem, left - 1, t)
        best = max(best, total)
    return best


@pytest.mark.parametrize("horizon", [None, 7])
def test_no_model_and_no_policy_is_outside_the_extremes(horizon):
    rng = np.random.default_rng(3)
    concentration = rng.random((4, 2, 4)) * (rng.random((4, 2, 4)) < 0.6)
    concentration[..., 0] += 0.1
    belief = DirichletBelief(4, 2, concentration=concentration, rewards=BetaRewards(1.0, 1.0, low=-1.0, high=2.0))
    task = Task.of(belief, discount=0.9, horizon=horizon)
    problem = problem_of(task, np.zeros(1, np.uint64), horizon=horizon)
    extremes = Extremes(problem, horizon)
    left = -1 if horizon is None else horizon
    low, high = (problem.unit * x for x in (extremes.low(left), extremes.high(left)))
    lasts = 1.0 / 0.1 if horizon is None else (1 - 0.9**7) / 0.1
    assert low == pytest.approx(-lasts)  # every reward may be the least, whatever follows
    assert high == pytest.approx(2.0 * lasts)
    known = DirichletBelief(4, 2, concentration=concentration, rewards=KnownRewards(rng.random((4, 2))))
    problem = problem_of(Task.of(known, discount=0.9, horizon=horizon), np.zeros(1, np.uint64), horizon=horizon)
    extremes = Extremes(problem, horizon)
    sample = known.sample(200, 1)
    p, r = np.array(sample.transitions), np.array(sample.rewards)
    for actions in np.ndindex(2, 2, 2, 2):
        steps = np.tile(np.array(actions), (200 if horizon is None else horizon, 1))
        values = oracles.policy_values(p, r, steps, 0.9)
        assert (values >= problem.unit * extremes.low(left) - 1e-6).all()
        assert (values <= problem.unit * extremes.high(left) + 1e-6).all()


def test_effort_and_seed_say_which_bracket_it_is_whatever_the_threads():
    belief = DirichletBelief(3, 2, concentration=0.4, rewards=BetaRewards(1.0, 1.0), initial=0)
    one, two, again = (bracket(belief, discount=0.9, effort=5, rng=7, threads=n) for n in (1, 2, 1))
    assert one.bounds == two.bounds == again.bounds
    assert one.policy == two.policy
    assert bracket(belief, discount=0.9, effort=5, rng=8).upper.value != one.upper.value
    assert {"lower", "upper"} == {x.side for x in one.bounds}
    assert one.upper.value < one.bounds[1].value


@pytest.mark.full
def test_student_only_on_request_and_then_it_says_so():
    belief = DirichletBelief(2, 2, rewards=KnownRewards([[0.0, 0.5], [1.0, 0.0]]), initial=0)
    betting = bracket(belief, discount=0.9, effort=4, rng=1)
    student = bracket(belief, discount=0.9, effort=4, rng=1, interval="t")
    assert "asymptotic" not in repr(betting)
    assert not betting.to_dict()["asymptotic"]
    assert "asymptotic" in repr(student)
    assert student.to_dict()["asymptotic"]
    assert student.width < betting.width


@pytest.mark.full
def test_a_policy_that_meets_what_was_cut_goes_on():
    found = bracket(leap(1e-7, 50.0), discount=0.9, effort=20, rng=3)
    policies = [bound.policy for bound in found.bounds if "re-planning" in bound.method]
    assert policies
    policy = policies[-1].fresh()
    assert policy.act(0) == 0
    policy.observe(0, 0, None, 1)
    assert policy.act(1) in (0, 1)
    policy.observe(1, 0, None, 1)
    policy.reset()
    assert policy.act(0) == 0
