"""Planning by visits: indices against the supremum that defines them, values against dynamic programming over all
numbers of stays, sums against series."""

from functools import cache

import numpy as np
import pytest
from scipy.special import hyp2f1

from beliefbound import DirichletBelief, DirichletRewards, KnownRewards
from beliefbound.kernels.planning.visits import (
    arrive,
    best_now,
    look_at_all,
    solve,
    stays_for_ever,
    sweep,
    terms_for,
    value_of_visit,
    visits_model,
)


def one_state_that_matters(rng, n_actions, *, discount, stay, rewards=None, **limits):
    """A model of random rows, where state 0 pays about `stay` of the interest on leaving it. Returns `(posterior,
    model)`, its values of other states random."""
    alpha = rng.gamma(1.0, size=(4, n_actions, 4)) * (rng.random((4, n_actions, 4)) < 0.8)
    alpha[0, :, 0] += 0.1
    alpha[:, :, 3] += 0.1
    r = rng.random((4, n_actions, 4))
    model = visits_model(np.ones((4, n_actions), np.bool_), discount, **limits)
    model.v[:] = (0.5 + rng.random(4)) / (1.0 - discount)
    r[0, :, 0] = stay * rng.uniform(0.0, 2.0, n_actions)
    posterior = DirichletBelief(4, n_actions, concentration=alpha, rewards=rewards or KnownRewards(r)).counted()
    look_at_all(posterior, model)
    return posterior, model


def facts(posterior, model, s=0):
    """`(x, A, R, ρ)` of each action of s, from what they are defined by."""
    n_states, n_actions = model.v.size, posterior.n_actions
    found = []
    for a in range(n_actions):
        alpha, paid = posterior.alpha[s * n_actions + a], posterior.paid[:, s * n_actions + a]
        share = posterior.reward[:, s * n_actions + a] if len(paid) > 1 else np.ones(1)
        r = np.broadcast_to(share @ paid / share.sum(), n_states)
        others = np.arange(n_states) != s
        leave = alpha[others] @ (r + model.discount * model.v)[others] / alpha[others].sum()
        found.append((alpha[s], alpha.sum(), leave, r[s]))
    return found


def index_by_definition(x, total, leave, reward, discount):
    """The best of so many n that the rest is nothing."""
    earned, weight, best = 0.0, 1.0, -np.inf
    for k in range(3000):
        q = (x + k) / (total + k)
        earned += weight * ((1.0 - q) * leave + q * reward)
        weight *= discount * q
        best = max(best, earned / (1.0 - weight))
        if weight < 1e-15:
            break
    return best


def value_by_enumeration(arms, discount, depth):
    """`(value, actions)` of a visit that is over after `depth` stays: the best choice at all numbers of stays."""

    @cache
    def of(stays):
        if sum(stays) == depth:
            return 0.0, ()
        worth = []
        for i, (x, total, leave, reward) in enumerate(arms):
            q = (x + stays[i]) / (total + stays[i])
            again = of((*stays[:i], stays[i] + 1, *stays[i + 1 :]))[0] if q > 0.0 else 0.0
            worth.append((1.0 - q) * leave + q * (reward + discount * again))
        return max(worth), tuple(i for i, value in enumerate(worth) if value > max(worth) - 1e-9)

    return of((0,) * len(arms))


def test_the_discounted_number_of_stays_is_its_series():
    """Many counts and few, whatever the discount."""
    for discount in (0.0, 0.5, 0.95, 0.99, 0.9999):
        for x, total in ((1, 2), (0.2, 1), (0.1, 0.7), (0.999, 1), (3, 40), (500.2, 501), (2000, 4000)):
            series, weight = 0.0, 1.0
            for j in range(400_000):
                weight *= (x + j) / (total + j)
                series += weight
                weight *= discount
                if weight < 1e-14:
                    break
            assert stays_for_ever(x, total, discount, terms_for(discount)) == pytest.approx(series, rel=1e-8)
    assert stays_for_ever(1.0, 3.0, 0.9, terms_for(0.9)) == pytest.approx((hyp2f1(1, 1, 3, 0.9) - 1) / 0.9, rel=1e-12)


@pytest.mark.parametrize("stay", [0.0, 1.0, 2.0])
def test_indices_are_the_suprema_that_define_them(stay):
    """Whether stays pay nothing, about as much as the interest on leaving, or more."""
    rng = np.random.default_rng(4)
    kinds = set()
    for _ in range(30):
        discount = rng.choice([0.5, 0.9, 0.97])
        posterior, model = one_state_that_matters(rng, 3, discount=discount, stay=stay)
        assert arrive(model, 0, model.v[1:].sum()) == 3
        for i, (x, total, leave, reward) in enumerate(facts(posterior, model)):
            assert model.leave[i] == pytest.approx(leave, rel=1e-12)
            assert model.indices[i] == pytest.approx(index_by_definition(x, total, leave, reward, discount), rel=1e-9)
            kinds.add(bool(model.excess[i] > 0.0))
    assert len(kinds) == (1 if stay == 0.0 else 2)


@pytest.mark.parametrize(("n_actions", "depth"), [(2, 60), (3, 32)])
def test_the_value_of_a_visit_is_that_of_the_best_choice_at_all_numbers_of_stays(n_actions, depth):
    rng, discount, mixed = np.random.default_rng(5), 0.5, 0
    for stay in (0.0, 0.6, 0.8, 1.5):
        for _ in range(4):
            posterior, model = one_state_that_matters(
                rng, n_actions, discount=discount, stay=stay, left=0.0, most=10**4
            )
            others = model.v[1:].sum()
            value, actions = value_by_enumeration(tuple(facts(posterior, model)), discount, depth)
            assert value_of_visit(model, 0, others) == pytest.approx(value, abs=4.0 * discount**depth + 1e-12)
            assert best_now(model, 0) in actions
            arrive(model, 0, others)
            mixed += len(set(model.excess > 0.0)) == 2
    assert mixed >= 3


def test_what_is_left_of_a_visit_counts_as_no_less_than_it_is():
    rng = np.random.default_rng(6)
    for stay in (0.0, 1.0):
        posterior, model = one_state_that_matters(rng, 3, discount=0.95, stay=stay)
        exact = visits_model(np.ones((4, 3), np.bool_), 0.95, left=0.0, most=10**5)
        exact.v[:] = model.v
        look_at_all(posterior, exact)
        others = model.v[1:].sum()
        value = value_of_visit(exact, 0, others)
        assert value - 1e-12 <= value_of_visit(model, 0, others) <= value + 1e-3 * exact.indices.max()


def test_rewards_of_several_values_count_as_expected():
    """Paid on arrival, with a prior on each pair's values."""
    rng = np.random.default_rng(7)
    rewards = DirichletRewards([0.0, 0.3, 1.0], [0.4, 1.1, 0.5])
    posterior, model = one_state_that_matters(rng, 2, discount=0.9, stay=1.0, rewards=rewards)
    arrive(model, 0, model.v[1:].sum())
    for i, (_, _, leave, reward) in enumerate(facts(posterior, model)):
        assert model.leave[i] == pytest.approx(leave, rel=1e-12)
        assert model.reward[i] == pytest.approx(reward, rel=1e-12)


def test_who_cannot_leave_has_the_worth_of_staying():
    concentration = np.array([[[2.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    rewards = KnownRewards(np.array([[0.3, 0.0], [0.5, 0.5]]))
    posterior = DirichletBelief(2, 2, concentration=concentration, rewards=rewards).counted()
    model = visits_model(np.ones((2, 2), np.bool_), 0.9)
    look_at_all(posterior, model)
    solve(model, 1000, 0.0)
    assert model.v[1] == pytest.approx(5.0, rel=1e-12)
    arrive(model, 0, model.v[1])
    assert model.indices[0] == pytest.approx(3.0, rel=1e-12)
    assert best_now(model, 0) == 1


def test_sweeps_contract_by_the_discount():
    rng = np.random.default_rng(8)
    _, model = one_state_that_matters(rng, 3, discount=0.8, stay=1.0, left=0.0, most=10**4)
    solve(model, 1000, 0.0)
    fixed = model.v.copy()
    for backwards in (True, False):
        model.v[:] = fixed + rng.normal(size=4)
        before = np.abs(model.v - fixed).max()
        sweep(model, backwards)
        assert np.abs(model.v - fixed).max() <= 0.8 * before + 1e-12
