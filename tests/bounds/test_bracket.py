"""The bracket: valid, closing, honest about time and confidence, and its policy does what it was certified for."""

import matplotlib
import numpy as np
import pytest

from beliefbound.base.errors import ObservationError, ParameterError
from beliefbound.beliefs import BetaRewards, DirichletBelief, FiniteBelief, KnownRewards
from beliefbound.bounds.basic import qmdp
from beliefbound.bounds.bracket import bracket
from beliefbound.bounds.dirichlet.effort import Effort
from beliefbound.bounds.dirichlet.sampler import Sampler
from beliefbound.bounds.finite import outcomes
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.first_bounds import first_bounds
from beliefbound.bounds.finite.relaxation import certifier_of
from beliefbound.kernels.compiling import paused
from beliefbound.models.model_set import ModelSet
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.task import FiniteTask, Task
from support import oracles
from support.beliefs import ROUNDING, SIGNALS, chain_belief, chain_rewards, random_belief, two_armed


@pytest.mark.parametrize(("steps", "n_models"), [(0, 8), (30, 8), (100, 16)])
def test_the_chain_beliefs_are_bracketed_within_one_percent(steps, n_models):
    belief = chain_belief(steps, steps).sample(n_models, np.random.default_rng(steps + 1))
    found = bracket(
        belief, discount=0.95, horizon=150, target_gap=0.01, effort=1000, rng=np.random.default_rng(2), threads=2
    )
    assert found.relative_gap <= 0.01
    assert found.lower.value >= mmbi(belief, discount=0.95, horizon=150).value() - ROUNDING
    assert found.upper.value <= qmdp(belief, discount=0.95, horizon=150).values @ belief.initial + ROUNDING


def test_models_too_large_for_a_graph_still_get_the_papers_bounds(monkeypatch):
    belief, (P, r, w, p0) = random_belief(np.random.default_rng(3), "bernoulli")
    exact = oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 4, "bernoulli")
    bracket(belief, discount=0.9, horizon=4, effort=1, rng=1)  # compiles on a problem that would not fit either
    monkeypatch.setattr(outcomes, "OUTCOME_BYTES", 0)
    with pytest.warns(UserWarning, match="no search and no sampling.*use fewer models"):
        found = bracket(belief, discount=0.9, horizon=4, target_gap=0.0, effort=10, rng=np.random.default_rng(1))
    assert found.lower.value - ROUNDING <= exact <= found.upper.value + ROUNDING
    assert found.confidence == 1.0
    assert found.upper.method == "QMDP"


def test_every_bound_of_the_trace_encloses_the_exact_value_and_they_tighten():
    rng = np.random.default_rng(3)
    for i in range(40):
        signal = SIGNALS[i % 4]
        belief, (P, r, w, p0) = random_belief(rng, signal, n_models=3, n_states=2)
        exact = oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 4, signal)
        found = bracket(belief, discount=0.9, horizon=4, target_gap=1e-9, effort=1000, rng=rng, threads=1)
        for bound in found.bounds:
            if bound.side == "lower":
                assert bound.value <= exact + ROUNDING
            else:
                assert bound.value >= exact - ROUNDING
        lower, upper = ([getattr(point, side).value for point in found.trace] for side in ("lower", "upper"))
        assert np.all(np.diff(lower) >= 0)
        assert np.all(np.diff(upper) <= 0)
        assert found.confidence == 1.0
        assert found.relative_gap <= 1e-9


def test_a_target_of_zero_goes_on_as_long_as_it_may():
    """One percent is reached on the way; nobody stops there."""
    belief = chain_belief(30, 4).sample(16, np.random.default_rng(5))
    found = bracket(belief, discount=0.95, target_gap=0.0, effort=20, rng=6)
    assert found.lower.value < found.upper.value
    assert sum(point.upper.value - point.lower.value < 0.01 * point.upper.value for point in found.trace) > 1


def test_the_clock_stands_still_while_something_is_compiled(monkeypatch, clock):
    """Compiling that takes for ever costs nothing of the time that was given, whenever it is needed."""
    backup, calls = ModelSet.backup, []

    def slow(*arguments, **values):
        calls.append(1)
        if len(calls) in (1, 3):
            with paused():
                clock.now += 1000.0
        return backup(*arguments, **values)

    monkeypatch.setattr(ModelSet, "backup", slow)
    belief = chain_belief(30, 4).sample(8, np.random.default_rng(5))
    found = bracket(belief, discount=0.95, target_gap=0.01, time_limit=30, rng=6)
    assert found.relative_gap <= 0.01
    assert found.compile_seconds == pytest.approx(2000.0, abs=1e-6)
    assert all(abs(point.seconds) < 1e-6 for point in found.trace)


@pytest.mark.parametrize("belief", ["finite", "dirichlet"])
def test_somebody_may_ask_to_stop(belief):
    """At the first bounds, with much left to do; what was found is returned, after the first step."""
    first = 1 if belief == "finite" else 0
    if belief == "finite":
        belief = chain_belief(30, 4).sample(8, np.random.default_rng(5))
    else:
        belief = DirichletBelief(2, 2, initial=0)
    seen = []
    found = bracket(belief, discount=0.9, effort=1000, rng=0, watch=seen.append, stop=lambda: bool(seen))
    assert len(found.trace) == len(seen) == 1 + first
    assert found.effort == 1
    assert found.lower.value <= found.upper.value


@pytest.mark.full
def test_the_policy_of_a_sampled_bracket_earns_what_the_bracket_says():
    """Simulated in models drawn from the belief, through `act` alone; four standard errors."""
    belief, _ = random_belief(np.random.default_rng(7), "bernoulli", n_models=3, n_states=2)
    found = bracket(belief, discount=0.8, horizon=8, target_gap=1e-3, effort=100, rng=np.random.default_rng(8))
    rng = np.random.default_rng(9)
    totals = []
    for _ in range(1500):
        m = rng.choice(3, p=belief.weights)
        s, total = int(rng.choice(2, p=belief.initial)), 0.0
        found.policy.reset(0)
        for k in range(8):
            a = found.policy.act(s)
            reward = float(rng.random() < belief.rewards[m, s, a])
            t = int(rng.choice(2, p=belief.transitions[m, s, a]))
            found.policy.observe(s, a, reward, t)
            total += 0.8**k * reward
            s = t
        totals.append(total)
    error = 4 * np.std(totals) / np.sqrt(len(totals))
    assert found.lower.value - error <= np.mean(totals) <= found.upper.value + error


def test_histories_that_cannot_have_happened_are_refused():
    P = np.array([[[[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]], [[[0.6, 0.4], [0.1, 0.9]], [[1.0, 0.0]] * 2]])
    belief = FiniteBelief(P, [[0.0, 0.1], [1.0, 1.0]], initial=0)
    policy = AdaptivePolicy(certifier_of(FiniteTask.of(belief, discount=0.9, horizon=None), core_nodes=10))
    with pytest.raises(ObservationError, match="starts in state 1"):
        policy.act(1)
    policy.observe(0, 1, None, 1)
    assert policy.act(1) in (0, 1)
    with pytest.raises(ObservationError, match="impossible"):
        policy.observe(1, 0, None, 1)
    with pytest.raises(ObservationError, match="ended in state 1"):
        policy.observe(0, 0, None, 0)
    assert policy.act(1) in (0, 1)


def test_the_picture_and_the_summary_say_what_is_proven():
    matplotlib.use("Agg")
    belief = chain_belief(30, 10).sample(8, np.random.default_rng(11))
    found = bracket(belief, discount=0.95, target_gap=0.02, effort=100, rng=np.random.default_rng(12))
    axis = found.plot()
    assert len(axis.lines) >= 2
    assert repr(found).startswith(f"Bracket([{found.lower.value:.6g}, {found.upper.value:.6g}], ")
    lines = found.summary().splitlines()
    for line, bound in zip(lines[1:], (found.lower, found.upper, found.regret), strict=True):
        assert ("proven" in line) == bound.exact
        assert ("holds with probability" in line) == (not bound.exact)


def test_a_bracket_that_closes_at_once_has_a_picture():
    matplotlib.use("Agg")
    found = bracket(FiniteBelief([[[[1.0]]]], [[[1.0]]]), discount=0.5, rng=0)
    assert len(found.trace) == 1
    lower, upper = found.plot().lines[:2]
    assert (lower.get_marker(), upper.get_marker()) == ("^", "v")
    assert [*lower.get_ydata(), *upper.get_ydata()] == pytest.approx([2.0, 2.0])


def test_bad_knobs_are_named():
    belief = FiniteBelief([[[[1.0]]]], [[[1.0]]])
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="target_gap"):
        bracket(belief, discount=0.5, target_gap=-1.0, rng=rng)
    with pytest.raises(ParameterError, match="time_limit"):
        bracket(belief, discount=0.5, time_limit=0.0, rng=rng)
    with pytest.raises(ParameterError, match="discount"):
        bracket(belief, discount=1.0, rng=rng)


def test_continuous_rewards_get_the_bounds_that_hold_for_them():
    belief = FiniteBelief([[[[1.0]] * 2]] * 2, [[[1.0, 0.0]], [[0.0, 2.0]]], reward_signal="continuous")
    found = bracket(belief, discount=0.5, rng=np.random.default_rng(0))
    assert {bound.method for bound in found.bounds} >= {"MMBI", "E max", "QMDP"}
    assert found.lower.value <= found.upper.value


def test_a_belief_too_large_for_search_keeps_the_bounds_it_has(monkeypatch):
    belief = chain_belief(30, 1).sample(8, np.random.default_rng(2))
    bracket(belief, discount=0.95, horizon=20, effort=1, rng=3)  # compiles on a problem that would not fit either
    monkeypatch.setattr("beliefbound.bounds.finite.outcomes.OUTCOME_BYTES", 1000)
    with pytest.warns(UserWarning, match="outcome rows"):
        found = bracket(belief, discount=0.95, horizon=20, target_gap=0.0, rng=np.random.default_rng(3))
    assert found.confidence == 1.0
    assert found.lower.value < found.upper.value


def beta_bandit_value(successes, failures, horizon, discount):
    """The Bayes-optimal value of a Bernoulli bandit with Beta beliefs, by recursion over counts."""
    if horizon == 0:
        return 0.0
    best = -np.inf
    for arm in range(len(successes)):
        p = successes[arm] / (successes[arm] + failures[arm])
        won = ((*successes[:arm], successes[arm] + 1, *successes[arm + 1 :]), failures)
        lost = (successes, (*failures[:arm], failures[arm] + 1, *failures[arm + 1 :]))
        later = p * beta_bandit_value(*won, horizon - 1, discount)
        later += (1 - p) * beta_bandit_value(*lost, horizon - 1, discount)
        best = max(best, p + discount * later)
    return best


@pytest.mark.full
def test_a_beta_bandit_is_bracketed():
    """A belief that is not finite, with an exact answer: rewards are all there is to learn."""
    exact = beta_bandit_value((1, 1), (1, 2), 6, 0.9)
    belief = two_armed(BetaRewards([[1.0, 1.0]], [[1.0, 2.0]]))
    found = bracket(belief, discount=0.9, horizon=6, effort=12, confidence=0.999, rng=3)
    assert found.lower.value <= exact <= found.upper.value
    assert found.relative_gap < 0.15
    found.policy.observe(0, 0, 1.0, 0)
    assert found.policy.act(0) == 0


def test_more_particles_tighten_the_upper_bound_of_a_dirichlet_belief():
    belief = chain_belief(0, 0)
    drops = []
    for n in (32, 256):
        sampler = Sampler(Task.of(belief, discount=0.95, horizon=150), 4, 2)
        sampler.effort = Effort((), n, 1000, 500)
        sampler.relax(30)
        drops.append(np.mean(sampler.drops))
    assert drops[0] < drops[1]


@pytest.mark.parametrize("rewards", [KnownRewards(chain_rewards()), BetaRewards(1.0, 1.0)])
def test_simulations_and_particle_sets_do_not_depend_on_the_number_of_threads(rewards):
    """Equal numbers of trajectories and sets of a Dirichlet belief, bit by bit."""
    belief = DirichletBelief(5, 2, rewards=rewards, initial=0)
    found = []
    for threads in (1, 2, 3):
        sampler = Sampler(Task(belief, np.eye(5)[0], 0.9, 30), 5, threads)
        sampler.simulate(6)
        sampler.relax(4)
        found.append((sampler.values, sampler.drops))
    assert found[0] == found[1] == found[2]
    assert len(set(found[0][0])) > 1


@pytest.mark.parametrize("horizon", [None, 4])
def test_first_bounds_enclose_the_exact_value_and_are_shown_before_anything_is_compiled(horizon):
    rng = np.random.default_rng(12)
    for signal in ("known", "bernoulli"):
        belief, (P, r, w, p0) = random_belief(rng, signal)
        task = FiniteTask.of(belief, discount=0.5, horizon=horizon, initial=p0)
        lower, upper = first_bounds(task)
        assert lower.value == pytest.approx(task.policy_value(lower.policy), abs=1e-5)
        assert lower.value <= task.policy_value(lower.policy) + 1e-12
        told = qmdp(belief, discount=0.5, horizon=horizon, initial=p0).value
        assert told - 1e-12 <= upper.value <= told + 1e-5
    points = []
    found = bracket(belief, discount=0.5, horizon=horizon, initial=p0, effort=2, rng=1, watch=points.append)
    assert points[0].seconds == 0.0
    assert points[0].lower.value == lower.value
    assert found.bounds[:2] == (lower, upper)


def test_no_first_bounds_for_what_takes_longer_than_a_moment():
    P = np.full((2, 150, 1, 150), 1 / 150)
    belief = FiniteBelief(P, np.ones((2, 150, 1)), reward_signal="known")
    assert first_bounds(FiniteTask.of(belief, discount=0.9)) == []
