"""States that differ by nothing but what is paid on leaving them, as one."""

import numpy as np
import pytest

import beliefbound as bb
from beliefbound.bounds.finite import merged
from beliefbound.bounds.finite.joined import Joined, join_states, standing_for, taken_apart
from beliefbound.bounds.finite.outcomes import rows_of
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import problem_of
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import StationaryPolicy

GAMMA = 0.9


def bandit(seed=0, n_models=5, n_arms=3, more=1.0):
    """States: whether the last pull paid."""
    paid = np.random.default_rng(seed).random((n_models, n_arms))
    rewards = np.zeros((n_models, 2, n_arms)) + 0.25 * np.arange(n_arms)
    rewards[:, 1] += more
    p = np.stack([1 - paid, paid], -1)[:, None].repeat(2, 1)
    return bb.FiniteBelief(p, rewards, reward_signal="known", initial=0)


def problem_and_task(belief, discount=GAMMA):
    task = FiniteTask.of(belief, discount=discount)
    policies = policies_of(task)
    return problem_of(task, stages=0, policies=policies), task, policies


def ahead(problem, weights, s, depth, last):
    """`max_a r + γ E …` by a tree of outcomes, `last(weights, s)` at its leaves; weights are not normalised."""
    if depth == 0:
        return last(weights, s)
    n_models, first = len(problem.reward), problem.first
    like = problem.like[n_models * first[s, 0] : n_models * first[s, -1]].reshape(n_models, -1)
    values = []
    for a in np.flatnonzero(problem.available[s]):
        value = float(weights @ problem.reward[:, s, a])
        for k in range(first[s, a], first[s, a + 1]):
            value += problem.discount * ahead(
                problem, weights * like[:, k - first[s, 0]], problem.arrive[k], depth - 1, last
            )
        values.append(value)
    return max(values)


@pytest.mark.parametrize("more", [1.0, -0.5])
def test_values_are_the_same(more):
    problem, task, policies = problem_and_task(bandit(more=more))
    joined = join_states(problem, policies)
    assert len(set(joined.problem.arrive.tolist())) == 1
    assert joined.paid == abs(more)

    def told(weights, s):  # worth `more` more in state 1, as values are
        return float(weights @ problem.q[0, :, s].max(axis=-1))

    for s in (0, 1):
        expected = ahead(problem, np.array(task.weights), s, 3, told)
        assert ahead(joined.problem, np.array(task.weights), s, 3, told) == pytest.approx(expected, rel=1e-12)


def test_the_state_of_smallest_rewards_stands_for_the_other():
    for more, stays in ((1.0, 0), (-0.25, 1)):
        problem, _, _ = problem_and_task(bandit(more=more))
        stands, paid = standing_for(problem)
        assert stands.tolist() == [stays, stays]
        assert paid[stays] == 0.0


def changed(kind):
    belief = bandit()
    p, r = np.array(belief.models.transitions.dense()), np.array(belief.models.rewards)
    if kind == "rows":
        p[0, 1, 0] = p[0, 1, 0][::-1]
    elif kind == "one model":
        r[0, 1] += 0.5
    elif kind == "one action":
        r[:, 1, 0] += 0.5
    return bb.FiniteBelief(p, r, reward_signal="unobserved", initial=0)


@pytest.mark.parametrize("kind", ["rows", "one model", "one action"])
def test_states_that_differ_otherwise_stay_apart(kind):
    problem, _, policies = problem_and_task(changed(kind))
    assert join_states(problem, policies).problem is problem


def test_states_stay_apart_where_every_policy_treats_them_differently_and_else_such_policies_are_left_out():
    alike, unlike = StationaryPolicy(np.array([1, 1])), StationaryPolicy(np.array([0, 1]))
    task = FiniteTask.of(bandit(), discount=GAMMA)

    def joined(*policies):
        problem = problem_of(task, stages=0, policies=policies)
        return join_states(problem, policies), problem

    found, problem = joined(unlike)
    assert found.problem is problem
    assert found.policies == [unlike]
    found, problem = joined(unlike, alike)
    assert len(set(found.problem.arrive.tolist())) == 1
    assert found.policies == [alike]
    assert np.array_equal(found.problem.v, problem.v[..., 1:])
    assert found.problem.number.tolist() == [[0], [0]]


def test_taken_apart_is_as_before():
    problem, task, policies = problem_and_task(bandit())
    again = taken_apart(task, join_states(problem, policies).problem)
    assert np.array_equal(again.arrive, rows_of(task).arrive)
    assert np.array_equal(again.reward, problem.reward)


@pytest.mark.parametrize("start", [0, 1, [0.5, 0.5]])
def test_brackets_agree_with_those_of_states_apart(start, monkeypatch):
    belief = bandit(seed=3)
    together = bb.bracket(belief, discount=GAMMA, initial=start, effort=12, rng=1, threads=1)
    monkeypatch.setattr(merged, "join_states", lambda problem, policies: Joined(problem, list(policies), 0.0, 0.0))
    apart = bb.bracket(belief, discount=GAMMA, initial=start, effort=12, rng=1, threads=1)
    assert together.lower.value <= apart.upper.value
    assert apart.lower.value <= together.upper.value
    assert together.width <= 1.1 * apart.width + 1e-9


@pytest.mark.parametrize("start", [0, [0.5, 0.5]])
def test_the_policy_earns_what_is_proven(start, tmp_path):
    belief = bandit(seed=4, n_models=8)
    found = bb.bracket(belief, discount=GAMMA, initial=start, effort=12, rng=1, threads=1)
    bounds = [bound for bound in found.bounds if bound.exact and bound.policy is not None]
    for bound in bounds:
        assert bb.certify(bound.policy, belief, discount=GAMMA, initial=start).lower.value >= bound.value - 1e-9
    found.policy.save(tmp_path / "policy.npz")
    again = bb.load_policy(tmp_path / "policy.npz")
    state = 0
    again.reset(0)
    found.policy.reset(0)
    for reward, arrive in ((0.0, 1), (1.0, 1), (1.0, 0), (0.0, 1)):
        action = found.policy.act(state)
        assert again.act(state) == action
        for policy in (again, found.policy):
            policy.observe(state, action, reward, arrive)
        state = arrive
