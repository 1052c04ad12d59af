"""Alpha vectors: the value of a controller on every model, below the exact value at every belief, and closing on it."""

import itertools

import numpy as np
import pytest

from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import problem_of
from beliefbound.kernels.graph.alpha import Points, back_up_points, best_vector, keep_used, new_vectors, walk
from beliefbound.kernels.graph.heavy import heavy_models, mean_heavy
from beliefbound.kernels.random import seed_stream
from beliefbound.planning.task import FiniteTask
from support import oracles
from support.beliefs import ROUNDING, SIGNALS, random_belief
from support.tiers import tiers


def solved(signal, seed, discount=0.6, rounds=6):
    belief, arrays = random_belief(np.random.default_rng(seed), signal)
    task = FiniteTask.of(belief, discount=discount, initial=0)
    policies = policies_of(task)
    problem = problem_of(task, stages=1, policies=policies)
    vectors = new_vectors(problem, problem.v[0], 4000)
    points = Points(np.zeros(600, np.int32), np.zeros((600, 3)), np.zeros(600, np.int32))
    stream = seed_stream(np.array([seed], np.uint64))
    used = 0
    while used < 600:
        used = walk(problem, vectors, 0, np.array(belief.weights), stream, points, used, 6, 0.3, 0.5)
    history = []
    for _ in range(rounds):
        back_up_points(problem, vectors, points, np.argsort(-points.depth, kind="stable"), 1e-9)
        history.append(best_vector(vectors, 0, np.array(belief.weights))[0])
    return problem, vectors, points, belief, arrays, history


def controller_value(problem, vectors, v):
    """From the definition: what the controller earns on each model."""
    if vectors.action[v] < 0:
        return problem.v[0][:, vectors.state[v], vectors.policy[v]]
    s, a = vectors.state[v], vectors.action[v]
    n_models, base = len(problem.reward), problem.first[s, 0]
    n_rows = problem.first[s, -1] - base
    total = problem.reward[:, s, a].copy()
    for k in range(problem.first[s, a], problem.first[s, a + 1]):
        like = problem.like[base * n_models + np.arange(n_models) * n_rows + k - base]
        total += problem.discount * like * vectors.value[vectors.then[v, k - base]]
        assert vectors.then[v, k - base] < v  # older ones only: no circle
        assert vectors.state[vectors.then[v, k - base]] == problem.arrive[k]
    return total


@pytest.mark.parametrize("signal", tiers(SIGNALS, "deterministic"))
def test_every_vector_is_the_value_of_its_controller(signal):
    problem, vectors, *_ = solved(signal, 1)
    n = int(vectors.size[0])
    assert n > vectors.policy.max() + 1
    for v in range(n):
        assert vectors.value[v] == pytest.approx(controller_value(problem, vectors, v), rel=1e-12)


@pytest.mark.parametrize("signal", tiers(SIGNALS, "deterministic"))
def test_vectors_stay_below_the_exact_value_and_close_on_it(signal):
    _, vectors, _, belief, (P, r, _, _), history = solved(signal, 2)
    assert all(a <= b + ROUNDING for a, b in itertools.pairwise(history))
    exact = oracles.bayes_adaptive_value(P, r, belief.weights, 0, 0.6, 6, signal)
    tail = 0.6**6 * np.abs(r).max() / 0.4
    assert history[-1] <= exact + tail + ROUNDING
    assert history[-1] >= exact - 0.01
    rng = np.random.default_rng(5)
    for weights in rng.dirichlet(np.ones(3), 3):  # vectors are valid where they were not made
        exact = oracles.bayes_adaptive_value(P, r, weights, 1, 0.6, 5, signal)
        assert best_vector(vectors, 1, weights)[0] <= exact + 0.6**5 * np.abs(r).max() / 0.4 + ROUNDING


def test_forgetting_vectors_that_no_point_uses_changes_no_value_at_points():
    _, vectors, points, *_ = solved("bernoulli", 3)
    before = [best_vector(vectors, s, w)[0] for s, w in zip(points.state, points.weight, strict=True)]
    count = vectors.known_count.sum()
    keep_used(vectors, points, 1)
    assert vectors.known_count.sum() < count
    after = [best_vector(vectors, s, w) for s, w in zip(points.state, points.weight, strict=True)]
    assert [value for value, _ in after] == before
    for s, count in enumerate(vectors.known_count):  # and how often each is best is known
        places = [i for (_, i), t in zip(after, points.state, strict=True) if t == s]
        assert (vectors.used[s, :count] == np.bincount(places, minlength=count)).all()


def test_who_is_asked_by_the_models_that_matter_is_next_to_the_best_and_its_value_is_exact():
    problem, vectors, *_ = solved("bernoulli", 5)
    known, count, rng = vectors.known, vectors.known_count, np.random.default_rng(6)
    light = 0
    for _ in range(200):
        s, weights = int(rng.integers(len(count))), rng.dirichlet(np.full(3, 0.05))
        every = weights @ known[s, :, : count[s]]
        value, i = best_vector(vectors, s, weights)
        assert value == pytest.approx(every[i], rel=1e-12)
        assert value >= every.max() - 2 * 3 * 1e-4 * float(weights @ problem.scale)
        light += int(np.argmax(every)) != i
    assert light > 0  # or all were asked by all models


def test_a_model_of_little_weight_matters_where_much_can_be_lost():
    problem, vectors, *_ = solved("bernoulli", 5)
    vectors.known[0, 2, :2] = -1e9, 0.0
    vectors.known[0, :2, :2] = [[1.1, 1.0], [1.1, 1.0]]
    vectors.known_count[0] = 2
    weights = np.array([0.5, 0.5, 1e-6])
    assert best_vector(vectors, 0, weights)[1] == 0
    wide = vectors._replace(scale=np.array([1.1, 1.1, 1e9]))
    assert best_vector(wide, 0, weights) == (pytest.approx(1.0), 1)


def test_models_matter_as_much_as_their_weight_times_the_scale_of_their_values():
    rng, scale, heavy, counts = np.random.default_rng(7), np.array([1.0, 10.0, 0.1, 1e4]), np.zeros(4, np.int64), []
    beliefs = rng.dirichlet(np.full(4, 0.2), 50)
    for weights in beliefs:
        n = heavy_models(weights, scale, heavy)
        assert heavy[:n].tolist() == np.flatnonzero(weights * scale > 1e-4 * (weights @ scale)).tolist()
        counts.append(n)
    assert mean_heavy(beliefs, scale) == pytest.approx(np.mean(counts))
    assert min(counts) < max(counts)
