"""Chains over rewards, dynamics and rationality: against a grid, calibrated, and the optimum that they keep."""

import numpy as np
import pytest
from scipy.stats import chisquare, gamma

import beliefbound as bb
from beliefbound.planning.inverse.chains import Problem, run_chains
from beliefbound.planning.inverse.hypotheses import log_choices
from beliefbound.planning.inverse.rewards import reward_form

pytestmark = pytest.mark.full


def solved(transitions, rewards, discount):
    belief = bb.FiniteBelief(transitions, rewards, reward_signal="unobserved", normalize=True)
    return bb.optimal_values(belief, discount=discount).q


def demonstrated(rng, p, q, eta, n, visits, counts):
    """`n` steps of somebody with values `q[s,a]`, counted."""
    chances = np.exp(eta * (q - q.max(axis=1, keepdims=True)))
    chances /= chances.sum(axis=1, keepdims=True)
    s = int(rng.integers(len(q)))
    for _ in range(n):
        a = int(rng.choice(q.shape[1], p=chances[s]))
        t = int(rng.choice(len(q), p=p[s, a]))
        visits[s, a] += 1
        counts[s, a, t] += 1
        s = t


def problem(seed, S=4, A=3, n=40, K=1, reward="state", discount=0.9, rational=(2.0, 2.0, 0.0)):
    rng = np.random.default_rng(seed)
    form = reward_form(reward, None, A, np.zeros(S, dtype=bool))
    p = rng.dirichlet(np.full(S, 0.5), size=(S, A))
    visits, counts = np.zeros((K, S, A), dtype=np.int64), np.zeros((S, A, S))
    for k in range(K):
        rewards = form.rewards(rng.random(form.n), S * A).reshape(1, S, A)
        demonstrated(rng, p, solved(p[None], rewards, discount)[0], 5.0, n, visits[k], counts)
    return Problem(discount, counts + 0.5, p, np.arange(S * A), visits, form, rational)


@pytest.mark.parametrize(("K", "reward"), [(1, "state"), (1, "pair"), (2, "state")])
def test_what_a_chain_keeps_is_the_optimum_of_its_draws(K, reward):
    """After thousands of rank-one updates, likelihoods are those of models solved anew."""
    asked = problem(3, S=6, K=K, reward=reward)
    found = run_chains(asked, chains=2, draws=5, steps=4995, seed=1, threads=1).kept()
    for c in range(2):
        for k in range(K):
            rewards = asked.form.rewards(found.w[c, :, k], 18).reshape(-1, 6, 3)
            q = solved(found.p[c].reshape(-1, 6, 3, 6), rewards, 0.9)
            np.testing.assert_allclose(
                found.like[c, :, k], log_choices(q, asked.visits[k], found.eta[c, :, k]), rtol=1e-8, atol=1e-8
            )


def test_threads_change_no_bit_and_seeds_all():
    asked = problem(4)
    one, two, other = (
        run_chains(asked, chains=3, draws=10, steps=2000, seed=seed, threads=threads)
        for seed, threads in ((1, 1), (1, 3), (2, 1))
    )
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(one.w, other.w)
    assert not np.array_equal(one.w[0], one.w[1])


def test_a_chain_has_the_means_of_a_fine_grid():
    """Two rewards, rationality and one unknown row, enumerated; means of 8 chains within 5 of their errors: fewer than
    one false alarm in 10⁵ for eight of them."""
    S, A, discount = 2, 2, 0.8
    visits = np.array([[[1, 6], [2, 7]]])
    known = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.7, 0.3], [0.2, 0.8]]])
    alpha = np.zeros((S, A, S))
    alpha[0, 1] = 1.5, 4.0
    form = reward_form("state", None, A, np.zeros(S, dtype=bool))
    asked = Problem(discount, alpha, known, np.array([1]), visits, form, (2.0, 2.0, 0.0))
    found = run_chains(asked, chains=8, draws=50, steps=100_000, seed=5, threads=None)
    m = 24
    mid = (np.arange(m) + 0.5) / m
    r0, r1, x, u = (y.ravel() for y in np.meshgrid(mid, mid, mid, mid, indexing="ij"))
    eta = gamma.ppf(u, 2.0, scale=2.0)
    p = np.tile(known, (len(x), 1, 1, 1))
    p[:, 0, 1] = np.stack([x, 1.0 - x], axis=1)
    q = solved(p, np.stack([r0, r0, r1, r1], axis=1).reshape(-1, 2, 2), discount)
    weight = np.exp(log_choices(q, visits[0], eta)) * x**0.5 * (1.0 - x) ** 3.0
    weight /= weight.sum()
    w, p01 = found.w[:, :, 0], found.p[:, :, 1, 0]
    quantities = {
        "r0": (w[..., 0], r0), "r1": (w[..., 1], r1), "r0²": (w[..., 0] ** 2, r0**2),
        "apart": (w[..., 1] - w[..., 0], r1 - r0), "product": (w[..., 1] * w[..., 0], r1 * r0), "row": (p01, x),
        "row²": (p01**2, x**2), "log η": (np.log(found.eta[..., 0]), np.log(eta)),
    }  # fmt: skip
    for name, (drawn, on_grid) in quantities.items():
        means = drawn.mean(axis=1)
        error = means.std(ddof=1) / np.sqrt(8.0)
        assert abs(means.mean() - weight @ on_grid) < 5.0 * error + 2e-3, name  # and the grid's own error


@pytest.mark.parametrize(
    ("K", "reward", "steps"), [(1, "state", 6000), (1, "pair", 6000), (1, "features", 6000), (2, "state", 40_000)]
)
def test_ranks_of_the_truth_are_uniform(K, reward, steps):
    """Simulation-based calibration (Talts et al. 2018): truths from the prior, data from them, and the rank of each
    truth among the draws. Chi-square on eight bins, all quantities at once by Bonferroni: one false alarm in 1000."""
    S, A, n, draws, problems, discount = 3, 2, 25, 31, 400, 0.9
    rng = np.random.default_rng([K, steps, len(reward)])
    form = reward_form(rng.normal(size=(S, 2)) if reward == "features" else reward, None, A, np.zeros(S, dtype=bool))
    ranks = {}
    for _ in range(problems):
        p = rng.dirichlet(np.full(S, 0.5), size=(S, A))
        h, scale = (rng.normal(), 2.0 * np.exp(rng.normal())) if K > 1 else (0.0, 2.0)
        if K > 1:
            centre, strength = rng.random(form.n), 2.0 * (1.0 + np.exp(h))
            w = rng.beta(strength * centre, strength * (1.0 - centre), (K, form.n))
        else:
            w = rng.normal(size=(1, form.n)) if reward == "features" else rng.random((1, form.n))
        eta = rng.gamma(2.0, scale, K)
        visits, counts = np.zeros((K, S, A), dtype=np.int64), np.zeros((S, A, S))
        q = solved(np.repeat(p[None], K, axis=0), form.rewards(w, S * A).reshape(K, S, A), discount)
        for k in range(K):
            demonstrated(rng, p, q[k], eta[k], n, visits[k], counts)
        asked = Problem(discount, counts + 0.5, p, np.arange(S * A), visits, form, (2.0, 2.0, 0.0))
        found = run_chains(asked, chains=1, draws=draws, steps=steps, seed=int(rng.integers(2**60)), threads=1).kept()
        like = sum(float(log_choices(q[k], visits[k], eta[k])) for k in range(K))
        truths = {f"w{k}{j}": (w[k, j], found.w[0, :, k, j]) for k in range(K) for j in range(form.n)}
        truths |= {f"eta{k}": (eta[k], found.eta[0, :, k]) for k in range(K)}
        truths |= {"likelihood": (like, found.like[0].sum(axis=-1)), "row": (p[1, 1, 2], found.p[0, :, A + 1, 2])}
        if K > 1:
            truths |= {"scale": (scale, found.scale[0]), "strength": (strength, found.prior[0, :, 0].sum(axis=-1))}
        for name, (truth, drawn) in truths.items():
            ranks.setdefault(name, []).append(int((drawn < truth).sum()))
    for name, each in ranks.items():
        bins = np.bincount(np.array(each) * 8 // (draws + 1), minlength=8)
        assert chisquare(bins).pvalue > 1e-3 / len(ranks), (name, bins)
