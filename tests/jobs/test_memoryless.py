"""The memoryless policy of a certificate: the best where that is said, by enumeration; and what is said is true."""

import itertools

import numpy as np
import pytest

from beliefbound import FiniteBelief, MemorylessPolicy, StationaryPolicy, write_models
from beliefbound.bounds.bracket import bracket_of
from beliefbound.bounds.memoryless import every_stationary
from beliefbound.bounds.steps import Limits
from beliefbound.jobs import memoryless
from beliefbound.jobs.bound import BoundOptions, certify_folder
from beliefbound.jobs.memoryless import memoryless_of
from beliefbound.planning.cadp import cadp_plan
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.task import FiniteTask
from support.oracles import random_models


def drawn(seed, *, n_models=4, n_states=3, n_actions=2, **task):
    p, r, _, _ = random_models(np.random.default_rng(seed), n_models, n_states, n_actions)
    return FiniteTask.of(FiniteBelief(p, r, initial=0, reward_signal="unobserved"), discount=0.9, **task)


def value(task, policy):
    return float(task.start @ (task.weights @ task.policy_values(policy)))


def every(task, shape):
    kind = StationaryPolicy if len(shape) == 1 else MemorylessPolicy
    each = itertools.product(range(task.models.n_actions), repeat=int(np.prod(shape)))
    return (kind(np.array(actions).reshape(shape)) for actions in each)


@pytest.mark.parametrize("seed", range(6))
def test_without_a_horizon_it_is_the_best_policy_of_one_action_per_state(seed):
    task = drawn(seed)
    found = memoryless_of(task, bracket_of(task, Limits(effort=1), seed=1).bracket)
    best = max(value(task, policy) for policy in every(task, (3,)))
    assert found.proven
    assert found.most is None
    assert found.plan.value(task.start) == pytest.approx(best, rel=1e-12)
    assert "it is the best policy of one action per state, proven" in found.words()


def test_a_local_search_that_stops_short_is_overtaken():
    """Somewhere the policy that is given is not the best, and from anywhere the same best is found."""
    task = drawn(11)
    best = max(value(task, policy) for policy in every(task, (3,)))
    for given in every(task, (3,)):
        found = every_stationary.best_stationary_of(task, given)
        assert value(task, found) == pytest.approx(best, rel=1e-12)
        assert (found is given) == (value(task, given) >= best - 1e-12 * abs(best))


def test_the_best_is_the_best_at_mixed_scales_too():
    """An action forbidden at −1e9 everywhere, and two ways that differ by two hundredths: exact in fractions."""
    p, r = np.zeros((4, 3, 4)), np.full((4, 3), -1e9)
    p[:, 2] = np.eye(4)
    p[0, 0, 1] = p[0, 1, 3] = p[1, 0, 1] = p[1, 1, 2] = 1.0
    p[2, :2, 1] = p[3, :2, 3] = 1.0
    r[0, :2], r[1, :2], r[2, :2], r[3, :2] = 0.0, (1.0, 0.95), 1.15, 1.02475
    task = FiniteTask.of(FiniteBelief([p, p], r, initial=0), discount=0.99)
    for given in ([1, 0, 0, 0], [0, 0, 0, 0], [2, 2, 2, 2]):
        found = every_stationary.best_stationary_of(task, StationaryPolicy(given))
        assert found is not None
        assert found.actions[:2].tolist() == [0, 1]  # .99 (.95 + .99 · 1.15) / (1 − .99²) = 103.9


def test_states_that_are_never_met_keep_their_action_and_unavailable_actions_are_not_tried():
    p = np.zeros((2, 3, 2, 3))
    p[:, 0, :, 0] = p[:, 1, :, 0] = p[:, 2, :, 2] = 1.0  # from 0 nobody leaves
    r = np.array([[[1.0, 5.0], [0.0, 9.0], [0.0, 9.0]], [[2.0, 5.0], [0.0, 9.0], [0.0, 9.0]]])
    available = np.array([[True, False], [True, True], [True, True]])
    belief = FiniteBelief(p, r, initial=0, reward_signal="unobserved", available=available)
    task = FiniteTask.of(belief, discount=0.5)
    given = StationaryPolicy([0, 1, 0])
    assert every_stationary.best_stationary_of(task, given) is given


@pytest.mark.parametrize("seed", range(4))
def test_with_a_horizon_it_is_the_best_by_branch_and_bound(seed):
    task = drawn(seed, horizon=3)
    found = memoryless_of(task, bracket_of(task, Limits(effort=1), seed=1).bracket)
    best = max(value(task, policy) for policy in every(task, (3, 3)))
    assert found.proven
    assert found.plan.value(task.start) == pytest.approx(best, rel=1e-9)
    assert found.most == pytest.approx(best, rel=1e-9)
    assert found.most >= best - 1e-12
    assert "it is the best memoryless policy, proven" in found.words()


def test_where_the_work_is_not_enough_both_ends_are_told(monkeypatch):
    task = drawn(3, n_models=8, n_states=4, horizon=6)
    found = bracket_of(task, Limits(effort=1), seed=1).bracket
    monkeypatch.setattr(memoryless, "_MOST_NODES", 2)
    monkeypatch.setattr(memoryless, "_NONE", 1)
    some = memoryless_of(task, found)
    assert not some.proven
    assert some.most > some.plan.value(task.start)
    assert f"no memoryless policy earns more than {some.most:.6g}, proven" in some.words()
    assert some.plan.value(task.start) >= cadp_plan(task).value(task.start)
    monkeypatch.setattr(memoryless, "_NONE", 3)
    none = memoryless_of(task, found)
    assert (none.most, none.proven) == (None, False)
    assert "nothing is proven about the best memoryless one" in none.words()


def test_too_many_policies_are_not_valued(monkeypatch):
    task = drawn(1, n_states=6)
    monkeypatch.setattr(every_stationary, "_WORK", 1.0)
    found = memoryless_of(task, bracket_of(task, Limits(effort=1), seed=1).bracket)
    assert (found.most, found.proven) == (None, False)
    assert "the best that a local search found" in found.words()


def test_the_page_and_the_file_say_what_is_proven(tmp_path):
    task = drawn(2)
    write_models(tmp_path / "models", task.belief, discount=0.9)
    found = certify_folder(tmp_path / "models", tmp_path / "out", BoundOptions(effort=1))
    assert found.memoryless.proven
    for name in ("report.html", "memoryless.json"):
        assert "it is the best policy of one action per state, proven" in (tmp_path / "out" / name).read_text()
    assert '"proven": true' in (tmp_path / "out" / "bounds.json").read_text()


@pytest.mark.parametrize(("work", "said"), [(7000.0, "best of"), (6000.0, "best of 1 starts"), (400.0, "MMBI")])
def test_what_is_searched_follows_from_the_size_alone(monkeypatch, work, said):
    """Every start of CADP, that from MMBI alone, or none; never worse than MMBI. 4 models of 6 states: 432 a start."""
    task = drawn(3, n_states=6, n_actions=8)  # 8**6 policies are too many to value each
    monkeypatch.setattr(memoryless, "_CADP_WORK", work)
    monkeypatch.setattr(memoryless, "best_stationary_of", lambda task, policy: None)
    monkeypatch.setattr(memoryless, "sweeps_of", lambda task: 0.0)
    found = memoryless.searched_of(task)
    assert said in found.plan.note
    assert found.plan.value(task.start) >= mmbi_plan(task).value(task.start) - 1e-9
