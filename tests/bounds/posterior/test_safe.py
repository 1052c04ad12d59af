"""`safe:LEVEL`: posteriors that doubt, and choices that do no harm."""

import numpy as np
import pytest

from beliefbound import StationaryPolicy
from beliefbound.beliefs.from_log import learn
from beliefbound.bounds.posterior.doubtful import Doubtful
from beliefbound.bounds.posterior.safe import choose_safe
from beliefbound.logs import log_of
from beliefbound.planning.safe.bounded import value_of
from beliefbound.planning.safe.frequencies import Frequencies
from beliefbound.planning.task import Task
from benchmarks.improvement_worlds import DISCOUNT, behaviour_at, gridworld, logged, random_mdp


def small_log():
    rng = np.random.default_rng(0)
    s, a, t = rng.integers(0, 3, 40), rng.integers(0, 2, 40), rng.integers(0, 4, 40)
    done = t == 3
    return log_of(s, a, rng.choice([-1.0, 2.0], 40), t, terminated=done, n_states=4, n_actions=2)


def test_drawn_models_are_rows_and_policies_are_valued_as_on_a_dense_model():
    """Against the plain solve on transitions written out, one model after the other."""
    log = small_log()
    data = Frequencies.of(log, np.full((4, 2), 0.5), np.ones((4, 2), dtype=bool), log.terminal)
    rng = np.random.default_rng(1)
    models = Doubtful.drawn(data, 1.5, 6, rng)
    policy, start = rng.dirichlet(np.ones(2), 4), rng.dirichlet(np.ones(4))
    found = models.values(policy, start, 0.9, None)
    staged = models.values(np.broadcast_to(policy, (400, 4, 2)), start, 0.9, None)
    s, a, t, r = (x[models.order] for x in (data.state, data.action, data.next_state, data.reward))
    for m in range(6):
        rows, paid = np.zeros((5, 2, 5)), np.zeros((5, 2))
        np.add.at(rows, (s, a, t), models.seen[m])
        np.add.at(paid, (s, a), models.seen[m] * r)
        rows[:4, :, 4] = models.lost[m]
        paid[:4] += models.lost[m] * data.least
        rows[3, :, 3], rows[4, :, 4], paid[4] = 1.0, 1.0, data.least
        np.testing.assert_allclose(rows.sum(axis=2), 1.0, atol=1e-12)
        values = value_of(np.vstack([policy, [[0.5, 0.5]]]), rows, paid, 0.9)[:4]
        assert found[m] == pytest.approx(start @ values, abs=1e-9)
        assert staged[m] == pytest.approx(found[m], abs=1e-9)


def test_doubt_has_the_chance_it_says():
    """A pair of n visits leads to the worst with doubt/(n + doubt) on average, and the bootstrap has the frequencies;
    of 4000 draws the means are within five standard errors (one false alarm in a million)."""
    log = small_log()
    data = Frequencies.of(log, np.full((4, 2), 0.5), np.ones((4, 2), dtype=bool), log.terminal)
    models = Doubtful.drawn(data, 2.0, 4000, np.random.default_rng(2))
    expected = np.where(log.terminal[:, None], 0.0, 2.0 / (data.visits + 2.0))
    error = 5.0 * models.lost.std(axis=0) / np.sqrt(4000.0) + 1e-12
    assert (np.abs(models.lost.mean(axis=0) - expected) <= error).all()


def chosen(world, share, n, seed):
    """The true share of the way from behaviour to optimal, and what was chosen."""
    rng = np.random.default_rng(seed)
    true = world(rng)
    behaviour = behaviour_at(true, share, rng)
    log = logged(true, behaviour, n, rng)
    learnt = learn(log)
    data = Frequencies.of(log, behaviour, learnt.belief.available, learnt.terminal)
    task = Task.of(learnt.tried(), discount=DISCOUNT)
    choice, safety = choose_safe(task, data, 0.05, rng, behaviour=StationaryPolicy(probabilities=behaviour))
    now, best = true.value(behaviour), true.value(true.optimum())
    return (true.value(choice.chosen.policy.chances(4)) - now) / (best - now), safety


def test_behaviour_is_at_its_share_and_logs_end_at_the_goal():
    rng = np.random.default_rng(3)
    true = gridworld()
    np.testing.assert_allclose(true.rows.sum(axis=2), 1.0, atol=1e-12)
    even = np.full((25, 4), 0.25)
    low, high = true.value(even), true.value(true.optimum())
    policy = behaviour_at(true, 0.5, rng)
    reached = (true.value(policy) - low) / (high - low)
    assert 0.45 < reached <= 0.5
    log = logged(true, policy, 30, rng)
    assert log.n_episodes == 30
    assert log.terminal[true.goal]
    assert log.starts[0] == 30


@pytest.mark.full
def test_the_goal_of_a_random_mdp_is_where_it_is_hardest_to_reach():
    true = random_mdp(np.random.default_rng(4), states=12)
    assert ((true.rows > 0.0).sum(axis=2)[np.arange(12) != true.goal] == 4).all()
    own = true.value(true.optimum())
    assert 0.0 < own < 1.0
    assert true.goal != 0


@pytest.mark.full
@pytest.mark.parametrize(("world", "share", "n", "least"), [
    (gridworld, 0.1, 10, 0.6), (gridworld, 0.9, 10, 0.4), (gridworld, 0.9, 200, 0.7), (random_mdp, 0.9, 50, 0.4),
])  # fmt: skip
def test_fixed_worlds_are_improved_and_not_harmed(world, share, n, least):
    """A small fixed set of docs/improvement.md: hardly a log is made worse than behaviour."""
    gains = np.array([chosen(world, share, n, (78, seed))[0] for seed in range(12 if world is gridworld else 6)])
    assert (gains < -1e-9).mean() <= 0.05
    assert gains.mean() >= least


def test_nothing_qualifies_where_nothing_is_clear():
    """Two actions that paid 0 and 1 twice each: behaviour is kept."""
    log = log_of([0] * 8, [0, 1] * 4, [0.0, 0.0, 1.0, 1.0] * 2, [0] * 8, n_states=1, n_actions=2)
    data = Frequencies.of(log, np.full((1, 2), 0.5), np.ones((1, 2), dtype=bool), log.terminal)
    task = Task.of(learn(log).tried(), discount=0.9)
    behaviour = StationaryPolicy(probabilities=[[0.5, 0.5]])
    choice, safety = choose_safe(task, data, 0.05, np.random.default_rng(0), behaviour=behaviour)
    assert safety.kept
    assert choice.chosen.policy == behaviour
    assert not safety.changed.any()
