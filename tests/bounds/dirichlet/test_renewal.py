"""Particles that are renewed from the posterior: drawn and solved right, and still an upper bound."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import betaincinv, betaln

from beliefbound.beliefs import BetaRewards, DirichletBelief, KnownRewards
from beliefbound.bounds.dirichlet import chains
from beliefbound.bounds.dirichlet.arrays import problem_of
from beliefbound.bounds.dirichlet.effort import Effort, chain_lengths
from beliefbound.bounds.dirichlet.fresh_models import FreshModels
from beliefbound.bounds.dirichlet.prepared import above_of, below_of
from beliefbound.bounds.dirichlet.sampler import Sampler
from beliefbound.kernels.particles.changed import new_changed, solve_again
from beliefbound.kernels.particles.renewal import first_to_ring, moment_ratio
from beliefbound.kernels.particles.rows import clear, n_columns, new_rows, particles_at
from beliefbound.kernels.particles.solving import optimal, values_of
from beliefbound.models.mdp import MDP
from beliefbound.planning.optimal import policy_iteration
from beliefbound.planning.task import Task
from support import oracles

CONCENTRATION = np.array(
    [[[0.3, 0.7, 1.0], [0.0, 2.0, 0.4]], [[1.0, 1.0, 1.0], [0.2, 0.2, 0.2]], [[3.0, 0.5, 0.1]] * 2]
)
BETA = BetaRewards(np.full((3, 2), 0.7), np.full((3, 2), 1.5), low=-1.0, high=3.0)
KNOWN = KnownRewards([[0.3, -1.0], [0.0, 2.0], [1.0, 0.5]])


def drawn(rewards, n, *, horizon=None, counts=None):
    """`(problem, slots, rows)` with `n` particles."""
    belief = DirichletBelief(3, 2, concentration=CONCENTRATION, rewards=rewards)
    task = Task.of(belief, discount=0.9, horizon=horizon)
    problem = problem_of(task, np.array([5], dtype=np.uint64), horizon=horizon)
    rows, slots = new_rows(problem, 20, n), np.empty(6, dtype=np.int64)
    if counts is None:
        counts = np.zeros((6, n_columns(problem)), dtype=np.int64)
    assert particles_at(problem, rows, counts, slots)
    return problem, slots, rows


@pytest.mark.parametrize("rewards", [KNOWN, BETA])
def test_particles_have_the_moments_of_the_posterior(rewards):
    """Means of 40,000 draws within five standard errors of the closed form."""
    columns = 6 if rewards is BETA else 3
    counts = np.zeros((6, columns), dtype=np.int64)
    counts[0, :3], counts[3, 2], counts[5, columns - 1] = (2, 0, 1), 4, 3
    problem, slots, rows = drawn(rewards, 40_000, counts=counts)
    draws = rows.draws[slots]
    alpha = CONCENTRATION.reshape(6, 3) + counts.reshape(6, -1, 3).sum(axis=1)
    mean = alpha / alpha.sum(axis=1, keepdims=True)
    error = np.sqrt(mean * (1 - mean) / (alpha.sum(axis=1, keepdims=True) + 1) / 40_000)
    assert (np.abs(draws[:, :3].mean(axis=2) - mean) <= 5 * error + 1e-15).all()
    assert draws[:, :3].sum(axis=1) == pytest.approx(1.0)
    if rewards is BETA:
        won, lost = 0.7 + counts[:, :3].sum(axis=1), 1.5 + counts[:, 3:].sum(axis=1)
        expected = -1.0 + 4.0 * won / (won + lost)
        deviation = 4.0 * np.sqrt(won * lost / (won + lost + 1)) / (won + lost)
        assert (np.abs(problem.unit * draws[:, 3].mean(axis=1) - expected) <= 5 * deviation / 200).all()
    else:
        assert (problem.unit * draws[:, 3] == np.array(KNOWN.mean()).reshape(6, 1)).all()


def test_draws_are_a_function_of_pair_and_counts():
    problem, slots, rows = drawn(KNOWN, 50)
    before = rows.draws[slots].copy()
    counts = np.zeros((6, 3), dtype=np.int64)
    counts[2, 1] = 1
    after = np.empty(6, dtype=np.int64)
    assert particles_at(problem, rows, counts, after)
    assert (after != slots).tolist() == [False, False, True, False, False, False]
    clear(rows)
    assert particles_at(problem, rows, np.zeros_like(counts), after)
    assert (rows.draws[after] == before).all()
    assert not all(particles_at(problem, rows, counts + i, after) for i in range(5))


@pytest.mark.parametrize("n", [1, 7, 300])
@pytest.mark.parametrize("rewards", [KNOWN, BETA])
def test_particles_are_solved_exactly(rewards, n):
    problem, slots, rows = drawn(rewards, n)
    draws = rows.draws[slots]
    P = np.moveaxis(draws[:, :3].reshape(3, 2, 3, n), -1, 0)
    r = np.moveaxis(draws[:, 3].reshape(3, 2, n), -1, 0)
    q, policy = np.empty((1, 6, n)), np.ones((3, n), dtype=np.int64)
    optimal(0.9, rows.draws, slots, -1, policy, q)
    for m in {0, n // 2, n - 1}:
        exact = policy_iteration(MDP(P[m], r[m]), discount=0.9).values
        assert q[0, :, m].reshape(3, 2).max(axis=1) == pytest.approx(exact, rel=1e-9)
        assert policy[:, m].tolist() == q[0, :, m].reshape(3, 2).argmax(axis=1).tolist()
    stages = np.empty((3, 6, n))
    optimal(0.9, rows.draws, slots, 6, policy, stages)
    for i in range(3):
        exact, _ = oracles.optimal_values(P, r, 0.9, 6 - i)
        assert pytest.approx(exact, rel=1e-12) == stages[i].reshape(3, 2, n).max(axis=1).T
    actions, values = np.array([1, 0, 1]), np.empty((3, n))
    values_of(0.9, rows.draws, slots, -1, actions, values)
    assert pytest.approx(oracles.stationary_values(P, r, actions, 0.9), rel=1e-9) == values.T
    values_of(0.9, rows.draws, slots, 4, actions, values)
    repeated = oracles.policy_values(P, r, np.tile(actions, (4, 1)), 0.9)
    assert pytest.approx(repeated, rel=1e-12) == values.T


@pytest.mark.parametrize("n", [1, 70, 300])
@pytest.mark.parametrize("rewards", [KNOWN, BETA])
def test_particles_with_a_few_new_rows_are_solved_as_if_all_were_new(rewards, n):
    """One row after another is observed; values are those of solving every model from scratch, and never below."""
    problem, before, rows = drawn(rewards, n)
    columns, policy = n_columns(problem), np.zeros((3, n), dtype=np.int64)
    old, fresh = np.empty((1, 6, n)), np.empty((1, 6, n))
    optimal(0.9, rows.draws, before, -1, policy, old)
    counts, slots, changed = np.zeros((6, columns), dtype=np.int64), np.empty(6, dtype=np.int64), new_changed(3, 6, n)
    for pair, column in ((0, 1), (3, 2), (5, 0), (0, 1), (1, 1)):
        counts[pair, column] += 1
        assert particles_at(problem, rows, counts, slots)
        again = np.empty((6, n))
        solve_again(0.9, rows.draws, before, slots, old[0], changed, again)
        optimal(0.9, rows.draws, slots, -1, policy, fresh)
        assert again == pytest.approx(fresh[0], rel=1e-9, abs=1e-9)
        best = again.reshape(3, 2, n).max(axis=1)
        backed_up = rows.draws[slots, 3] + 0.9 * np.einsum("ptm,tm->pm", rows.draws[slots, :3], best)
        assert (again >= backed_up - 1e-15).all()
        old[0], before = again, slots.copy()


@pytest.mark.parametrize("mirrored", [False, True])
def test_what_rings_first_has_its_chance_and_differs_little_where_chances_do(mirrored):
    """40,000 clocks: frequencies within five standard errors; two laws that overlap by .9 agree in at least .8."""
    one, other = np.array([0.5, 0.0, 0.3, 0.2]), np.array([0.4, 0.1, 0.3, 0.2])
    clocks = np.random.default_rng(1).integers(0, 2**64, 40_000, dtype=np.uint64)
    first = np.array([[first_to_ring(p, x, mirrored) for p in (one, other)] for x in clocks])
    for i, p in enumerate((one, other)):
        share = np.bincount(first[:, i], minlength=4) / len(clocks)
        assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / len(clocks))).all()
    assert np.mean(first[:, 0] == first[:, 1]) > 0.8


def test_the_effective_number_of_particles_is_that_of_the_moments():
    """The ratio telescopes to `(E L)² / E L²`, whose terms are Beta functions for a row of two."""
    a, b = 0.3, 1.1
    seen, total = [0, 0], 0.0
    for outcome in (0, 0, 1, 0, 1):
        total += moment_ratio((a, b)[outcome], a + b, seen[outcome], sum(seen))
        seen[outcome] += 1
    first = betaln(a + 3, b + 2) - betaln(a, b)
    second = betaln(a + 6, b + 4) - betaln(a, b)
    assert total == pytest.approx(2 * first - second, rel=1e-12)


def composite(draw, counts, s, stage, old):
    """What a policy that sees counts only earns in the composite problem, renewed at every step, on sets of one model:
    an array over samples. `draw(pair, counts)` are chances `[sample,t]` of the two next states."""
    horizon, r, discount = 4, np.array([[0.4, 0.0], [0.0, 1.0]]), 0.9
    if stage == horizon:
        return 0.0
    models = [draw(pair, counts[2 * pair : 2 * pair + 2]) for pair in range(4)]

    def optimal_q(rows, a):
        v = np.zeros((len(rows[0]), 2))
        for _ in range(horizon - stage):
            q = np.stack([r[p // 2, p % 2] + discount * (rows[p] * v).sum(axis=1) for p in range(4)], axis=1)
            v = q.reshape(-1, 2, 2).max(axis=2)
        return q[:, 2 * s + a]

    a = (counts[1] + counts[4] + s) % 2  # any function of the history
    pair = 2 * s + a
    earned = r[s, a] + (0.0 if old is None else optimal_q(old, a) - optimal_q(models, a))
    for t in range(2):
        after = (*counts[: 2 * pair + t], counts[2 * pair + t] + 1, *counts[2 * pair + t + 1 :])
        earned = earned + discount * models[pair][:, t] * composite(draw, after, t, stage + 1, models)
    return earned


@pytest.mark.parametrize("independent", [True, False])
def test_rows_that_were_not_seen_may_be_kept_at_a_renewal(independent):
    """A policy that sees the history only has its true value on average (five standard errors of 10,000 samples); not
    so if a row that was seen is drawn from its posterior by the random numbers that it was drawn by before."""
    rng, alpha, kept = np.random.default_rng(3), np.array([[0.3, 0.5], [1.0, 0.4], [0.6, 0.6], [0.2, 0.8]]), {}

    uniforms = rng.random((4, 10_000))

    def draw(pair, counts):
        if (pair, counts) not in kept:
            u = rng.random(10_000) if independent else uniforms[pair]
            p = betaincinv(*(alpha[pair] + counts), u)
            kept[pair, counts] = np.column_stack([p, 1.0 - p])
        return kept[pair, counts]

    def expected(pair, counts):
        return (alpha[pair] + counts)[None] / (alpha[pair] + counts).sum()

    samples = composite(draw, (0,) * 8, 0, 0, None)
    exact = true_value(expected, (0,) * 8, 0, 0)
    error = samples.std() / np.sqrt(len(samples))
    assert (abs(samples.mean() - exact) <= 5.0 * error) == independent


def true_value(expected, counts, s, stage):
    """Of the same policy, by its tree of histories."""
    r, a = np.array([[0.4, 0.0], [0.0, 1.0]]), (counts[1] + counts[4] + s) % 2
    pair, value = 2 * s + a, r[s, a]
    if stage == 4:
        return 0.0
    p = expected(pair, np.array(counts[2 * pair : 2 * pair + 2]))[0]
    for t in range(2):
        after = (*counts[: 2 * pair + t], counts[2 * pair + t] + 1, *counts[2 * pair + t + 1 :])
        value += 0.9 * p[t] * true_value(expected, after, t, stage + 1)
    return value


def test_a_set_shares_the_rows_that_nothing_was_learnt_of(monkeypatch):
    """In a chain, two sets have the draws of a pair in common exactly where its counts are the same."""
    monkeypatch.setattr(chains, "_LEAST", 0.9)
    rewards, _ = CASES["known"]
    belief = DirichletBelief(2, 2, concentration=0.3, rewards=rewards, initial=0)
    sampler = Sampler(Task(belief, np.eye(2)[0], 0.9, None), 5, 1)
    sampler.effort = Effort((), 20, 400, 50)
    sampler.relax(1)
    search = sampler.chains[0].search
    counts = {}
    for i in range(int(search.size[1])):
        seen, x = np.zeros((4, 2), dtype=int), int(search.start[i])
        while search.node[x]["parent"] >= 0:
            parent, row = int(search.node[x]["parent"]), int(search.node[x]["row"])
            seen[2 * int(search.node[parent]["state"]) + row // 2, row % 2] += 1
            x = parent
        counts[i] = seen
    assert len(counts) > 5
    for i, j in combinations(counts, 2):
        same = (counts[i] == counts[j]).all(axis=1)
        assert ((search.slots[i] == search.slots[j]) == same).all()


CASES = {
    "known": (KnownRewards([[0.4, 0.0], [0.0, 1.0]]), 6),
    "beta": (BetaRewards(np.array([[1.0, 0.5], [1.0, 0.5]]), np.array([[1.0, 0.5], [2.0, 0.5]])), 4),
}


def relaxed(belief, horizon, n, count):
    """`E max` minus the drop of chains of `n` particles: mean and standard error."""
    sampler = Sampler(Task(belief, np.eye(2)[0], 0.9, horizon), 5, 2)
    sampler.effort = Effort((), n, 4000, 500)
    models = FreshModels(sampler.task, above_of(sampler.task), (5, 2))
    models.sample(200, [models.scratch()])
    sampler.relax(count // 7 * 7)
    known, drops = np.concatenate(models.values), np.reshape(sampler.drops, (-1, 7))  # by rounds
    assert drops.min() >= 0.0
    error = np.hypot(known.std() / np.sqrt(len(known)), drops.mean(axis=1).std() / np.sqrt(len(drops)))
    return known.mean() - sampler.mean_drop, error


@pytest.mark.full
@pytest.mark.parametrize("kind", ["known", "beta"])
def test_renewed_particles_bound_the_exact_value_from_above(kind, monkeypatch):
    """Few particles, so that they are renewed at almost every step: the mean over chains is not below the exact
    Bayes-optimal value (four standard errors), and lower than with sets that are never renewed."""
    rewards, horizon = CASES[kind]
    belief = DirichletBelief(2, 2, concentration=0.3, rewards=rewards, initial=0)
    exact = oracles.dirichlet_value(belief, 0, 0.9, horizon)
    found = {}
    for least in (0.6, 0.0):
        monkeypatch.setattr(chains, "_LEAST", max(least, 1e-30))
        found[least], error = relaxed(belief, horizon, 6, 2000)
        assert found[least] >= exact - 4.0 * error
    assert exact < found[0.6] < found[0.0]


def test_a_search_without_room_is_looser_and_still_valid(monkeypatch):
    rewards, horizon = CASES["known"]
    belief = DirichletBelief(2, 2, concentration=0.3, rewards=rewards, initial=0)
    exact = oracles.dirichlet_value(belief, 0, 0.9, horizon)
    estimates = []
    for size in (1 << 28, 1):
        monkeypatch.setattr(chains, "PARTICLE_BYTES", size)
        monkeypatch.setattr(chains, "_LEAST", 0.9)
        value, error = relaxed(belief, horizon, 20, 300)
        assert value >= exact - 4.0 * error
        estimates.append(value)
    assert estimates[0] <= estimates[1]


def test_levels_of_chains_add_up_to_the_longest():
    """A chain gives, times the chains of a round for each of its kind, what its search has proven more after four times
    as many histories; searches that go on find what they find at once."""
    task = Task(DirichletBelief(5, 2, initial=0), np.eye(5)[0], 0.95, None)
    lengths = chain_lengths(1024)
    assert lengths == (64, 256, 1024)
    kinds = chains.kinds_in_round(3)
    chain = chains.Chain(task, above_of(task).problem, 5, 1, Effort((), 32, 1024, 500))
    added = []
    for i in range(14):
        level = kinds[i % 7]
        drops = [0.0, *(chain.run(i, lengths=(n,)).value for n in lengths)]
        assert sorted(drops) == drops
        added.append(drops[level + 1] - drops[level])
        assert chain.run(i, lengths=lengths).value == pytest.approx(added[-1] * 7 / kinds.count(level), abs=1e-9)
    assert any(x > 0.0 for x, level in zip(added, kinds * 2, strict=True) if level == 1)


@pytest.mark.full
def test_the_chain_prior_is_bracketed_within_a_few_percent():
    """A fixed effort of a few seconds on the Dirichlet(1/5) prior of Chain, rewards known."""
    forward = np.array([0.0, 0.0, 0.0, 0.0, 10.0])
    rewards = KnownRewards(np.column_stack([0.8 * 2 + 0.2 * forward, 0.2 * 2 + 0.8 * forward]))
    task = Task(DirichletBelief(5, 2, rewards=rewards), np.eye(5)[0], 0.95, None)
    sampler = Sampler(task, 1, 2, 2)
    assert sampler.effort.particles == 256
    sampler.relax(62)
    sampler.simulate(60)
    models = FreshModels(task, above_of(task), (1, 2))
    models.sample(200, [models.scratch()])
    assert 62.5 < np.mean(models.values) - sampler.mean_drop < 64.8
    assert 61.0 < np.mean(sampler.values) < 63.3
    assert np.std(sampler.values) < 5.5  # the control variate at work: 13 without
    assert min(sampler.values) >= sampler.floor
    assert sampler.floor == sampler.policy.floor  # its control variate takes much away early


def test_trajectories_have_the_floor_that_is_near_where_they_have_no_use_for_room():
    """Then they are the same trajectories, bit by bit, and none is below."""
    task = Task.of(DirichletBelief(3, 2, initial=0), discount=0.9)
    far, near = Sampler(task, 3, 1, 1), Sampler(task, 3, 1, 1)
    far._settle = lambda: None
    for sampler in (far, near):
        sampler.simulate(40)
    assert near.floor == near.policy.near_floor > near.policy.floor == far.floor
    assert min(near.values) >= near.floor
    assert near.values[:3] == far.values[:3]
    assert near.lower(0.01).value > far.lower(0.01).value


@pytest.mark.full
@pytest.mark.parametrize("n", [32, 512])
def test_chains_of_one_set_stay_above_the_exact_value(n):
    """Two states, horizon 4, four standard errors: a set that is never renewed is easier to learn than the belief."""
    belief = DirichletBelief(2, 2, concentration=0.5, rewards=KnownRewards([[0.0, 1.0], [2.0, 0.5]]), initial=0)
    exact = oracles.dirichlet_value(belief, 0, 0.9, 4)
    task = Task(belief, np.eye(2)[0], 0.9, 4)
    sampler = Sampler(task, 5, 2)
    sampler.effort = Effort((), n, 2 * n, 1, 2 * n)
    assert sampler.kinds_of_chains == [0]
    sampler.relax(200)
    models = FreshModels(task, above_of(task), (5, 2))
    models.sample(100, [models.scratch()])
    known, drops = np.concatenate(models.values), np.array(sampler.drops)
    assert drops.min() >= 0.0
    error = np.hypot(known.std() / len(known) ** 0.5, drops.std() / len(drops) ** 0.5)
    assert known.mean() - sampler.mean_drop >= exact - 4.0 * error
    assert drops.mean() > 0.0


@pytest.mark.parametrize("shift", [0.0, -5.0])
@pytest.mark.parametrize(("side", "horizon"), [("upper", None), ("lower", None), ("upper", 6), ("lower", 6)])
def test_large_models_are_swept_to_the_side_that_is_wanted(shift, side, horizon):
    """The same draws, solved and swept; with rare outcomes cut, and with rewards of both signs."""
    concentration = CONCENTRATION.copy()
    concentration[0, 0, 2] = 1e-7
    rewards = KnownRewards(np.array(KNOWN.mean()) + shift)
    belief = DirichletBelief(3, 2, concentration=concentration, rewards=rewards)
    task = Task.of(belief, discount=0.9, horizon=horizon)
    ranged = above_of(task) if side == "upper" else below_of(task)
    assert (ranged.problem.keep < 1.0).any()
    policy = None if side == "upper" else np.array([1, 0, 1])
    solved, swept = (FreshModels(task, ranged, (7, 1), policy) for _ in range(2))
    swept.sweeps = 200 if horizon is None else horizon
    solved.n = swept.n = 1
    for own in (solved, swept):
        own.sample(20, [own.scratch()])
    above = np.concatenate(swept.values) - np.concatenate(solved.values)
    slack = 1e-4 * (solved.high - solved.low) if horizon is None else 0.0
    if side == "lower":
        above = -above
    assert (above >= -1e-9).all()
    assert (above <= slack + 1e-9).all()


def test_mirrored_clocks_seldom_ring_alike():
    """Of two outcomes as likely as one another: by independent clocks in half of all cases."""
    p, clocks = np.array([0.5, 0.5]), np.random.default_rng(1).integers(0, 2**64, 10_000, dtype=np.uint64)
    same = [first_to_ring(p, x, False) == first_to_ring(p, x, True) for x in clocks]
    assert np.mean(same) < 0.05
