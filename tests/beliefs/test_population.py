"""Populations of tasks: limits in closed form, the sampler by a grid and by calibration, the belief, mistakes."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

import beliefbound as bb
from beliefbound.base.errors import BeliefboundError, ObservationError
from beliefbound.beliefs import PopulationBelief, belief_of, check_belief, entries_of, learn_population
from beliefbound.kernels.hierarchy import of_strength, sample_row
from beliefbound.kernels.random import stream_from
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.envs import make_env
from beliefbound.lab.paper.transfer import random_log
from beliefbound.logs import log_of

pytestmark = pytest.mark.full
TASKS = np.array([[6, 1, 0], [2, 5, 0], [4, 4, 0], [9, 0, 1]])


def a_row(counts, b, prior=(1.0, 2.0)):
    columns = [counts[counts[:, j] > 0, j].astype(float) for j in range(counts.shape[1])]
    begin = np.append(0, np.cumsum([len(x) for x in columns]))
    return np.concatenate(columns), begin, counts.sum(axis=1).astype(float), np.asarray(b), np.array(prior)


def chain(row, n, seed=1, warmup=200, thin=2):
    strengths, shares = np.empty(n), np.empty((n, len(row[3])))
    sample_row(stream_from(np.random.default_rng(seed)), row, warmup, thin, strengths, shares)
    return strengths, shares


def log_evidence(counts, alpha):
    """Of the Dirichlet-multinomial, task by task, each sequence in one order."""
    each = gammaln(alpha.sum()) - gammaln(alpha.sum() + counts.sum(axis=1))
    return float((each + (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=1)).sum())


def test_the_evidence_is_the_product_of_dirichlet_multinomials():
    row, beta = a_row(TASKS, np.full(3, 0.5)), np.array([0.5, 0.3, 0.2])
    for x in (-2.0, 0.0, 3.0):
        prior = stats.norm(1.0, 2.0).logpdf(x) - stats.norm(1.0, 2.0).logpdf(1.0)
        assert of_strength(x, row, beta) == pytest.approx(log_evidence(TASKS, np.exp(x) * beta) + prior, rel=1e-10)


def test_the_sampler_finds_the_posterior_of_a_grid():
    """Two outcomes, `(log κ, β)` on a grid of 150 × 150: means within 4.5 standard errors of 4000 effective draws."""
    counts, b = TASKS[:, :2], np.array([0.7, 0.7])
    x = np.linspace(-9.0, 11.0, 150)
    beta = (np.arange(150) + 0.5) / 150
    logs = np.array([[log_evidence(counts, np.exp(u) * np.array([v, 1 - v])) for v in beta] for u in x])
    logs += stats.norm(1.0, 2.0).logpdf(x)[:, None] + stats.beta(0.7, 0.7).logpdf(beta)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    strengths, shares = chain(a_row(counts, b), 20_000)
    for mine, grid in (
        (np.log(strengths), np.broadcast_to(x[:, None], weights.shape)),
        (shares[:, 0], np.broadcast_to(beta, weights.shape)),
        (1 / (1 + strengths), np.broadcast_to(1 / (1 + np.exp(x))[:, None], weights.shape)),
    ):
        mean = (weights * grid).sum()
        deviation = np.sqrt((weights * (grid - mean) ** 2).sum())
        assert abs(mine.mean() - mean) <= 4.5 * deviation / np.sqrt(4000) + 2e-3


def test_calibration():
    """Ranks of the true `log κ` and β among 63 draws, of 512 populations of five tasks each, are uniform: χ² with 15
    degrees of freedom, false alarms 1 in 1000 for each of the two."""
    rng, b, n = np.random.default_rng(7), np.array([0.5, 0.5, 1.0]), 63
    ranks = np.empty((512, 2), int)
    for i in range(len(ranks)):
        x, beta = rng.normal(1.0, 2.0), rng.dirichlet(b)
        theta = [rng.dirichlet(np.maximum(np.exp(x) * beta, 1e-200)) for _ in range(5)]
        counts = np.array([rng.multinomial(12, row) for row in theta])
        strengths, shares = chain(a_row(counts, b), n, seed=(7, i), warmup=100, thin=10)
        ranks[i] = (np.log(strengths) < x).sum(), (shares[:, 0] < beta[0]).sum()
    for k in range(2):
        seen = np.bincount(ranks[:, k] // 4, minlength=16)
        assert stats.chisquare(seen).pvalue > 1e-3


def site(k, n=40, seed=0):
    rng = np.random.default_rng((seed, k))
    s, a = rng.integers(0, 2, (2, n))
    t = np.where(rng.random(n) < 0.2 + 0.6 * (a == k % 2), 1, 0)
    return log_of(s, a, 1.0 * (t == 1), t)


def test_alike_tasks_are_one_and_unlike_ones_say_little():
    """κ → ∞: pooled counts. κ → 0: of each task one count, where it leads. Both in closed form; 8000 draws."""
    logs = [log_of([0] * 4, [0] * 4, [0.0] * 4, t) for t in ([0, 0, 0, 1], [0, 1, 1, 1], [2, 2, 0, 0])]
    pooled = learn_population(logs, strength=(18.0, 0.01), draws=8000, concentration=0.5, rng=1)
    expected = (0.5 + np.array([6, 4, 2])) / (1.5 + 12)
    np.testing.assert_allclose(pooled.belief.predictive(0, 0), expected, atol=0.01)
    sure = [log_of([0] * 4, [0] * 4, [0.0] * 4, [t] * 4) for t in (0, 0, 1, 2)]
    alone = learn_population(sure, strength=(-18.0, 0.01), draws=8000, concentration=0.5, rng=1)
    np.testing.assert_allclose(alone.belief.predictive(0, 0), (0.5 + np.array([2, 1, 1])) / (1.5 + 4), atol=0.01)
    after = alone.belief.update(0, 0, 0.0, 2).predictive(0, 0)
    assert after[2] > 0.999  # a task of such a population does always the same


def test_without_tasks_it_is_the_prior():
    """`log κ ~ Normal(1, 2)`, rows uniform on average: 20 000 draws of one pair, false alarms below 1e-4."""
    found = learn_population([], n_states=3, n_actions=1, draws=20_000, rng=2)
    x = np.log(found.strength[0, 0])
    assert abs(x.mean() - 1.0) <= 4.5 * 2.0 / np.sqrt(5000)
    assert abs(x.std() - 2.0) <= 0.1
    np.testing.assert_allclose(found.belief.predictive(0, 0), 1 / 3, atol=0.02)
    assert np.isnan(found.between).all()


def test_what_differs_between_tasks_is_seen():
    """Action 0 leads elsewhere in every other task, action 1 nearly so; where all tasks are alike nothing differs."""
    unlike = learn_population([site(k) for k in range(8)], draws=120, rng=1)
    rng = np.random.default_rng(3)
    same = []
    for _ in range(8):
        s, a = rng.integers(0, 2, (2, 60))
        t = (rng.random(60) < np.where(a == 0, 0.8, 0.2)).astype(int)
        same.append(log_of(s, a, 1.0 * t, t))
    alike = learn_population(same, draws=120, rng=1)
    assert unlike.between.min() > alike.between.max()
    assert unlike.rhat < 1.1
    assert unlike.ess > 20


def test_the_belief_keeps_its_word():
    belief = learn_population([site(k) for k in range(4)], draws=16, rng=1, initial=0).belief
    check_belief(belief)
    later = belief.update([0, 0, 1], [0, 1, 1], [1.0, 0.0, 1.0], [1, 0, 1])
    check_belief(later)
    back = belief_of(entries_of(later))
    np.testing.assert_allclose(back.rows.logs, later.rows.logs)


def test_its_brackets_and_certificates():
    population = learn_population([site(k) for k in range(6)], draws=32, rng=1, initial=0)
    found = bb.bracket(population.belief, discount=0.9, horizon=6, effort=20, rng=1)
    assert found.lower.value <= found.upper.value
    policy = bb.mmbi(population.belief.sample(200, 2), discount=0.9, horizon=6).policy
    certificate = bb.certify(policy, population.belief, discount=0.9, horizon=6, upper=found.upper, samples=60, rng=3)
    assert certificate.lower.value <= found.upper.value


def exact(belief, s, horizon, discount):
    """The Bayes-optimal value by the tree of all that may be seen: next states, and rewards of 0 or 1."""
    if horizon == 0:
        return 0.0
    values = []
    for a in range(belief.n_actions):
        paid, total = float(belief.mean().rewards[s, a]), 0.0
        for t, chance in enumerate(belief.predictive(s, a)):
            for reward, share in ((1.0, paid), (0.0, 1.0 - paid)):
                if horizon > 1 and chance * share > 0.0:
                    later = exact(belief.update(s, a, reward, t), t, horizon - 1, discount)
                    total += chance * share * later
        values.append(paid + discount * total)
    return max(values)


def test_its_brackets_hold_on_the_exact_tree():
    rng = np.random.default_rng(1)
    for seed in range(3):
        weight = rng.gamma(1.0, 1.0, (2, 2, 3, 2)) * np.array([0.5, 2.0, 8.0])[:, None]
        belief = PopulationBelief(weight, rng.gamma(1.0, 1.0, (2, 2, 3, 2)), initial=0)
        value = exact(belief, 0, 3, 0.9)
        found = bb.bracket(belief, discount=0.9, horizon=3, effort=20, rng=seed, confidence=0.9999)
        assert found.lower.value <= value + 1e-9
        assert found.upper.value >= value - 1e-9
        assert found.width < 0.5 * value


def test_agents_start_from_it():
    """On a chain with Thompson sampling and MCBRL, and what they have learnt there is theirs."""
    chain = make_env("chain")
    logs = [random_log(chain, 200, k) for k in range(3)]
    belief = learn_population(logs, reward_range=chain.reward_range, draws=16, rng=1).belief
    for name in ("thompson", "mcbrl:n=4", "exploit"):
        played = play(make_agent(name, chain, belief=belief), chain, seed=1, runs=1, steps=60)
        assert played.total[0] > 0.0


def test_seeds_are_addresses():
    one, same = (learn_population([site(1), site(2)], draws=8, rng=5) for _ in range(2))
    np.testing.assert_array_equal(one.strength, same.strength)


def test_mistakes_are_answered():
    for call, message in (
        (lambda: learn_population([]), "give n_states and n_actions"),
        (lambda: learn_population(3), "give a list of logs"),
        (lambda: learn_population([site(1)], draws=2), "draws is 2"),
        (lambda: learn_population([site(1)], reward_range=(0.0, 0.5)), "outside of reward_range, 0 to 0.5"),
        (lambda: learn_population([site(1)], strength=(1.0, 0.0)), "deviation"),
        (
            lambda: learn_population([site(1), log_of(["a"] * 2, ["b"] * 2, [0.0] * 2, ["a"] * 2)]),
            "numbers in .* names in",
        ),
        (lambda: PopulationBelief(np.ones((2, 1, 3, 3)), np.ones((2, 1, 3, 2))), "weight has shape"),
        (lambda: PopulationBelief(np.zeros((2, 1, 3, 2)), np.ones((2, 1, 3, 2))), "without a positive entry"),
        (lambda: PopulationBelief(np.ones((2, 1, 3, 2)), np.zeros((2, 1, 3, 2))), "not positive"),
    ):
        with pytest.raises(BeliefboundError, match=message):
            call()
    belief = learn_population([site(1), site(2)], draws=8, rng=1).belief
    with pytest.raises(ObservationError, match="lie between 0 and 1"):
        belief.update(0, 0, 3.0, 1)
    with pytest.raises(ObservationError, match="no reward was given"):
        belief.update(0, 0, None, 1)
