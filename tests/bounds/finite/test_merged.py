"""Exact bounds without a horizon: vectors, cells, and a search in which equal beliefs are one node."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from beliefbound.base.executors.team import ALONE
from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.bracket import bracket
from beliefbound.bounds.finite.cells import cell_steps, divide, sizes
from beliefbound.bounds.finite.merged import MergedSearch
from beliefbound.bounds.finite.pairs import gain_steps, with_pairs
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import problem_of
from beliefbound.bounds.finite.search import rounds
from beliefbound.bounds.policy_files import load_policy
from beliefbound.bounds.record import Record
from beliefbound.bounds.steps import Limits, Meter, finish, take
from beliefbound.planning.task import FiniteTask
from support import oracles
from support.beliefs import ROUNDING, SIGNALS, random_belief
from support.enumeration import value_by_enumeration
from support.tiers import tiers


def searched(belief, discount, effort, target=0.0):
    """The record of a search among distinct beliefs."""
    task = FiniteTask.of(belief, discount=discount)
    policies = policies_of(task)
    problem = with_pairs(problem_of(task, stages=1, policies=policies), task)
    record = Record(0.95)
    search = MergedSearch(task, problem, policies, np.arange(4, dtype=np.uint64), record, ALONE)
    take(rounds([search], record, Meter(), ALONE), record, Limits(target, effort))
    return record


@pytest.mark.parametrize("signal", tiers(SIGNALS, "deterministic"))
def test_bounds_enclose_the_exact_value_and_policies_earn_theirs(signal, tmp_path):
    rng = np.random.default_rng(4)
    for i in range(2):
        belief, (P, r, w, p0) = random_belief(rng, signal)
        discount, stages = 0.5, 5
        log = searched(belief, discount, 40, target=1e-3)
        tail = discount**stages * np.abs(r).max() / (1.0 - discount)
        exact = oracles.bayes_adaptive_value(P, r, w, p0, discount, stages, signal)
        for bound in log.bounds:
            assert bound.exact
            assert bound.value <= exact + tail + ROUNDING if bound.side == "lower" else bound.value >= exact - ROUNDING
        assert log.upper.value - log.lower.value <= 2e-3 * abs(exact)
        log.lower.policy.save(tmp_path / f"{i}.npz")
        earned = value_by_enumeration(load_policy(tmp_path / f"{i}.npz"), belief, discount, 4)
        assert earned >= log.lower.value - 2.0 * discount**4 * np.abs(r).max() / (1.0 - discount)


def hidden_goal(goals, length, discount):
    """A line of cells; one of `goals` pays 1 and sends back to the start. The exact value by sweeps over the subsets of
    goals that are left, and the belief."""
    n_models = len(goals)
    P, r = np.zeros((n_models, length, 2, length)), np.zeros((n_models, length, 2))
    for m, goal in enumerate(goals):
        for s, a in itertools.product(range(length), range(2)):
            t = 0 if s == goal else min(max(s + (1 if a else -1), 0), length - 1)
            P[m, s, a, t], r[m, s, a] = 1.0, float(s == goal)
    subsets = [frozenset(c) for k in range(1, n_models + 1) for c in itertools.combinations(goals, k)]
    value = {(s, left): 0.0 for s in range(length) for left in subsets}
    for _ in range(400):
        for s, left in list(value):
            options = []
            for a in range(2):
                step = min(max(s + (1 if a else -1), 0), length - 1)
                other, total = left - {s}, 0.0
                if s in left:
                    total += (1.0 + discount * value[0, frozenset({s})]) / len(left)
                if other:
                    total += len(other) / len(left) * discount * value[step, other]
                options.append(total)
            value[s, left] = max(options)
    belief = FiniteBelief(P, r, reward_signal="unobserved", initial=0)
    return belief, value[0, frozenset(goals)]


def test_a_search_for_a_hidden_goal_is_solved():
    """Beliefs are the goals that are left: finitely many, so the search ends, with the value."""
    belief, exact = hidden_goal((2, 3, 5, 6), 7, 0.9)
    log = searched(belief, 0.9, 40, target=1e-9)
    assert log.lower.value == pytest.approx(exact, rel=1e-8)
    assert log.upper.value == pytest.approx(exact, rel=1e-8)
    found = bracket(belief, discount=0.9, target_gap=1e-9, effort=60, rng=1)
    assert found.confidence == 1.0
    assert found.lower.value == pytest.approx(exact, rel=1e-8)


def test_cells_fill_with_the_models_that_lose_most_and_bound_from_above():
    gain = np.zeros((5, 5))
    gain[0, 3] = gain[3, 0] = 2.0
    gain[1, 4] = gain[4, 1] = 1.0
    gain[2, 3] = gain[3, 2] = 0.5
    assert divide(gain, 2).tolist() == [[0, 3], [1, 4], [2, -1]]
    assert divide(gain, 3).tolist() == [[0, 2, 3], [1, 4, -1]]
    rng = np.random.default_rng(5)
    belief, (P, r, w, p0) = random_belief(rng, "bernoulli", n_models=4)
    task = FiniteTask.of(belief, discount=0.9, horizon=3)
    problem = problem_of(task, stages=3, policies=())
    gain, exact = (
        finish(gain_steps(problem, task, Meter())),
        oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 3, "bernoulli"),
    )
    for size in sizes(problem, 4):
        _, bound = finish(cell_steps(problem, gain, task.weights, task.start, size, Meter()))
        assert bound >= exact - ROUNDING


def test_models_are_exchanged_between_cells_until_no_exchange_loses_more():
    rng = np.random.default_rng(6)
    for n_models, k in ((6, 2), (7, 3), (8, 4)):
        gain = rng.random((n_models, n_models))
        gain = np.triu(gain, 1) + np.triu(gain, 1).T
        cells = divide(gain, k)
        assert sorted(cells[cells >= 0]) == list(range(n_models))

        def within(place, gain=gain):
            return float(gain[place[:, None] == place].sum())

        place = np.empty(n_models, dtype=int)
        for c, cell in enumerate(cells):
            place[cell[cell >= 0]] = c
        for m in range(n_models):
            for n in range(m):
                other = place.copy()
                other[[m, n]] = other[[n, m]]
                assert within(other) <= within(place) + 1e-9


def test_grids_that_do_not_fit_are_coarser_or_left_out_and_the_rest_comes_in_order_of_work():
    def found(n_models, rows):
        first = np.array([[0, 0, rows // 2, rows // 2], [rows // 2, rows, rows, rows]])
        problem = SimpleNamespace(arrive=np.zeros(rows), first=first, q=np.zeros(1), available=np.ones((2, 3)))
        chosen = sizes(problem, n_models)
        assert [size.work for size in chosen] == sorted(size.work for size in chosen)
        return [(size.models, size.resolution) for size in chosen]

    assert found(36, 24) == [(3, 24), (4, 16), (8, 7), (6, 12)]
    assert found(36, 1000) == [(3, 24), (8, 5), (4, 16), (6, 9)]
    assert found(36, 200_000) == []
    assert found(4, 24) == [(3, 24), (4, 16)]
