"""What is made of a problem is made once: models solved, plans, outcome rows, pairs, posteriors, ranges of values."""

from collections import Counter

import numpy as np
import pytest

from beliefbound import StationaryPolicy, bracket, certify, plan_log, robust_bracket, write_models
from beliefbound.beliefs import DirichletBelief, FiniteBelief
from beliefbound.bounds.bracket import bracket_of, limits_of
from beliefbound.bounds.dirichlet import rare
from beliefbound.bounds.finite import outcomes, pairs, pool
from beliefbound.bounds.finite.outcomes import outcome_rows, outcomes_of, rows_of
from beliefbound.bounds.finite.problem import models_apart, stage_values, values_of
from beliefbound.bounds.posterior import fresh
from beliefbound.bounds.steps import Meter, Tape
from beliefbound.bounds.warmup import warm_up
from beliefbound.jobs.bound import BoundOptions, certify_folder
from beliefbound.lab.paper.figure1 import figure1
from beliefbound.logs import log_of
from beliefbound.models import ModelSet
from beliefbound.planning import optimal
from beliefbound.planning.optimal import optimal_values, solved_models
from beliefbound.planning.task import FiniteTask, Task, made_once
from support.beliefs import SIGNALS, random_belief
from support.tiers import tiers


class Calls(Counter):
    """How often functions were called, by name; and with what, where that is asked for."""

    def __init__(self, monkeypatch):
        super().__init__()
        self._patch = monkeypatch.setattr

    def count(self, place, name, key=lambda *values, **named: None):
        function = getattr(place, name)

        def counted(*values, **named):
            what = key(*values, **named)
            self[name if what is None else (name, what)] += 1
            return function(*values, **named)

        self._patch(place, name, counted)


def models_asked(models, *rest, **named):
    return models.n_models


@pytest.fixture
def calls(monkeypatch):
    finite, _ = random_belief(np.random.default_rng(1), "bernoulli")
    for belief, horizon in ((finite, None), (finite, 5), (DirichletBelief(2, 2), None)):
        warm_up(Task.of(belief, discount=0.9, horizon=horizon))  # which solves models of its own
    found = Calls(monkeypatch)
    found.count(optimal, "_policy_iteration", models_asked)
    found.count(pool, "mmbi_plan")
    found.count(pool, "cadp_plan")
    found.count(outcomes, "_outcome_steps")
    found.count(pairs, "solve_pair", lambda problem, i, j, n_grid, *rest: (int(i), int(j), int(n_grid)))
    found.count(DirichletBelief, "counted")
    found.count(rare.Extremes, "_for_ever", lambda extremes, reward: (id(extremes), float(reward.sum())))
    return found


def test_a_certificate_makes_everything_once(calls, tmp_path):
    """With a decision graph and what to measure: before, the models were solved twelve times, the pool made five times
    and the pairs solved twice."""
    belief, _ = random_belief(np.random.default_rng(5), "known", n_models=5, n_states=4)
    write_models(tmp_path / "models", belief, discount=0.9)
    certify_folder(tmp_path / "models", tmp_path / "out", BoundOptions(effort=12, controller=8, measure=1, seed=1))
    assert calls["_policy_iteration", 5] == 1
    assert calls["_policy_iteration", 1] == 1  # the expected MDP
    assert (calls["mmbi_plan"], calls["cadp_plan"], calls["_outcome_steps"]) == (1, 1, 1)
    assert {count for key, count in calls.items() if key[0] == "solve_pair"} == {1}


@pytest.mark.full
def test_a_robust_bracket_solves_its_models_once_for_all_priors(calls):
    belief, _ = random_belief(np.random.default_rng(6), "bernoulli", n_models=5, n_states=3)
    found = robust_bracket(belief, discount=0.9, effort=3, rng=1)
    assert found.rounds > 1
    assert calls["_policy_iteration", 5] == 1
    assert calls["_outcome_steps"] == 1
    assert {count for key, count in calls.items() if key[0] == "solve_pair"} == {1}


def test_figure_1_solves_its_models_once(calls, monkeypatch):
    """With a horizon: one induction for values by stage, one for the policies that CADP starts from."""
    calls.count(ModelSet, "induct_best", models_asked)
    figure1(points=7, n_states=4, n_actions=2, certify_every=3, effort=3)
    assert calls["induct_best", 8] == 2
    assert calls["_outcome_steps"] <= 1


def test_a_simulated_certificate_walks_on_the_graph_of_its_bracket(monkeypatch, calls):
    from beliefbound.bounds.finite import simulation

    grown = Calls(monkeypatch)
    grown.count(simulation.Walks, "_searched")

    class Alternates:
        def reset(self, seed):
            self.steps = 0

        def act(self, state):
            return self.steps % 2

        def observe(self, *seen):
            self.steps += 1

    belief, _ = random_belief(np.random.default_rng(7), "bernoulli", n_models=5, n_states=4)
    for horizon in (None, 6):
        found = certify(Alternates(), belief, discount=0.9, horizon=horizon, target_gap=1e-3, samples=64, rng=1)
        assert not found.exact
        assert found.lower.value <= found.upper.value
    assert grown["_searched"] == 0
    assert calls["_policy_iteration", 5] == 2  # the models, and their worst policies


def test_a_plan_from_a_log_compiles_its_posterior_once_and_samples_it_once(calls, monkeypatch):
    """`E max` of the posterior was sampled three times, and what values can be was found five times."""
    rng, rows, s = np.random.default_rng(3), [], 0
    for _ in range(120):
        a = int(rng.integers(2))
        t = int(rng.choice(3, p=[[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]][a]))
        rows.append((s, a, float(rng.random() < 0.4), t))
        s = t
    drawn, source = Counter(), fresh.ModelSource.sample
    monkeypatch.setattr(
        fresh.ModelSource, "sample", lambda self, n, rng: drawn.update({id(self.belief): n}) or source(self, n, rng)
    )
    found = plan_log(log_of(*map(list, zip(*rows, strict=True))), discount=0.9, n_models=1000, effort=6)
    assert found.information is not None
    assert calls["counted"] == 1
    extremes = [key for key in calls if key[0] == "_for_ever"]
    assert {calls[key] for key in extremes} == {1}
    assert len(extremes) <= 6  # the least and the most: of the whole, and of it without rare outcomes for either side
    assert drawn[id(found.learnt.belief)] == 64 + 1000 + 1000  # policies are made on some, chosen, and valued
    assert calls["_policy_iteration", 1000] == 1
    assert found.reliance.table[0].value == pytest.approx(found.fresh.values[0].mean())


@pytest.mark.parametrize("horizon", tiers([None, 6], 6))
@pytest.mark.parametrize("signal", tiers(SIGNALS, "bernoulli"))
def test_what_was_made_before_changes_no_bound(signal, horizon):
    """A bracket on a task of which everything was made already, by a search under other weights, is that of a new
    task, bit for bit; so is one of as many steps."""
    belief, _ = random_belief(np.random.default_rng(8), signal, n_models=5, n_states=3)
    weights = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
    task = FiniteTask.of(belief, discount=0.9, horizon=horizon)
    limits = limits_of(target_gap=0.0, time_limit=None, effort=9, stop=None)
    bracket_of(task, limits, seed=1)
    used = bracket_of(task.reweighted(weights), limits, seed=2).bracket
    new = bracket(belief.reweight(weights), discount=0.9, horizon=horizon, effort=9, rng=2)
    assert [bound.to_dict() for bound in used.bounds] == [bound.to_dict() for bound in new.bounds]
    assert used.policy == new.policy


def test_parts_are_those_that_would_be_made_anew():
    belief, _ = random_belief(np.random.default_rng(9), "bernoulli", n_models=4, n_states=3)
    for horizon in (None, 5):
        task = FiniteTask.of(belief, discount=0.9, horizon=horizon)
        other = task.reweighted(np.eye(4)[2])
        solved = optimal_values(belief, discount=0.9, horizon=horizon)
        assert np.array_equal(solved_models(other).values, solved.values)
        assert solved_models(task) is solved_models(other)
        plain, made = outcome_rows(belief), outcomes_of(task)
        assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(plain, made, strict=True))
        assert rows_of(task) is rows_of(other)
        policy = StationaryPolicy([0, 1, 0])
        stages = 0 if horizon is None else horizon
        direct = stage_values(policy, task.models, 0.9, horizon, stages)
        for most in range(stages + 1):  # a few stages first, more of them later
            assert np.array_equal(values_of(other, policy, most), direct[: most + 1])
            assert np.array_equal(models_apart(task, most), models_apart(other, stages)[: most + 1])


def test_a_task_for_another_horizon_shares_nothing():
    belief, _ = random_belief(np.random.default_rng(9), "bernoulli", n_models=4, n_states=3)
    task = FiniteTask.of(belief, discount=0.9, horizon=5)
    assert solved_models(task) is not solved_models(task.lasting(6))
    assert solved_models(task.lasting(6)).values.max() > solved_models(task).values.max()


def test_a_part_that_fails_is_made_again_and_one_of_nothing_is_kept():
    made = []

    @made_once
    def part(task):
        made.append(1)
        if len(made) == 1:
            raise ValueError("not yet")

    task = Task.of(FiniteBelief([[[[1.0]]]], [[[1.0]]]), discount=0.5)
    with pytest.raises(ValueError, match="not yet"):
        part(task)
    assert part(task) is None
    assert part(task) is None
    assert len(made) == 2


def test_work_is_divided_as_before_where_nothing_is_left_to_do():
    """A tape played back fills the same steps, whatever the meter had counted before."""

    def work(meter):
        for k in range(300):
            meter.add(7e5 * (k % 5))
            if meter.full():
                yield
        meter.add(3e6)

    for begun in (0.0, 2e7, 9e9):
        plain, taped, again = Meter(), Meter(), Meter()
        for meter in (plain, taped, again):
            meter.add(begun)
            meter.full()
        tape = Tape(taped)
        steps = [sum(1 for _ in each) for each in (work(plain), work(tape), tape.again(again))]
        assert len(set(steps)) == 1
        assert plain.done == taped.done == again.done
        assert plain.left == taped.left == again.left
