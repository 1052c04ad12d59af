"""Rows of unknown support in the compiled posterior: the same numbers as the belief, and the law of its draws."""

import numpy as np
import pytest
from numba import njit

import beliefbound as bb
from beliefbound.beliefs import SparseDirichletBelief
from beliefbound.kernels.planning.urn import count_outcome, new_urn, outcome_at, prepare, rewind, within_support
from beliefbound.kernels.posterior import draw_row, draw_transitions, expected_rows, forget, learn
from beliefbound.kernels.random import stream_from, uniform
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.envs import make_env

pytestmark = pytest.mark.full
learning = njit(lambda posterior, s, a, r, t: learn(posterior, s, a, r, t))
drawing = njit(lambda posterior, stream, row, theta: draw_row(posterior, stream, row, theta))


@njit
def simulated(posterior, urn, stream, row, path):
    """Outcomes of one row drawn from the predictive, each counted."""
    for i in range(path.size):
        path[i] = outcome_at(posterior, urn, row, uniform(stream))
        count_outcome(posterior, urn, row, path[i])


@njit
def simulated_within_supports(posterior, urn, stream, row, path):
    """The same, with a size drawn when the row is met."""
    for i in range(path.size):
        path[i] = outcome_at(posterior, urn, row, within_support(posterior, urn, row, uniform(stream)))
        count_outcome(posterior, urn, row, path[i])


preparing = njit(lambda posterior, urn: prepare(posterior, urn))
rewinding = njit(lambda posterior, urn: rewind(posterior, urn, 0, 0))


def a_belief(sizes=None, alpha=0.5):
    support = np.ones((5, 2, 5), bool)
    support[1, 0, 3] = support[2, 1, :2] = False
    return SparseDirichletBelief(
        5, 2, concentration=alpha, sizes=sizes, support=support, terminal=[4], rewards=bb.BetaRewards()
    )


def rows_of(posterior):
    return expected_rows(posterior, 5)[0]


@pytest.mark.parametrize(("alpha", "sizes"), [(0.5, None), (0.05, [3.0, 0.0, 1.0, 0.5, 2.0]), (3.0, [1.0, 1, 1, 1, 1])])
def test_it_learns_as_the_belief_does(alpha, sizes):
    """300 steps of a random walk: expected rows, sizes, and what is a row that was never tried."""
    belief, rng = a_belief(sizes, alpha), np.random.default_rng(1)
    posterior, s = belief.in_arrays(), 0
    first = [np.array(x) for x in posterior[:-1] if isinstance(x, np.ndarray)]
    for step in range(300):
        a = int(rng.integers(2))
        t = int(rng.choice(5, p=belief.predictive(s, a)))
        learning(posterior, s, a, 1.0, t)
        belief = belief.update(s, a, 1.0, t)
        s = t if t != 4 else int(rng.integers(4))
        if step % 50 == 0 or step == 299:
            expected = belief.mean().transitions.reshape(10, 5)
            np.testing.assert_allclose(rows_of(posterior), expected, rtol=1e-10, atol=1e-250)
            sizes_now = np.exp(belief._log_sizes).reshape(10, 5)[:8]
            np.testing.assert_allclose(posterior.sizes[:8], sizes_now, rtol=1e-10, atol=1e-280)
    again = belief.in_arrays()
    np.testing.assert_allclose(again.alpha, posterior.alpha, rtol=1e-10, atol=1e-250)
    forget(posterior)
    for before, now in zip(first, (x for x in posterior[:-1] if isinstance(x, np.ndarray)), strict=True):
        np.testing.assert_array_equal(before, now)


def test_published_numbers():
    """n = 5, α = ½, sizes halving, learnt one by one."""
    posterior = SparseDirichletBelief(5, 1, rewards=bb.KnownRewards(np.zeros((5, 1)))).in_arrays()
    for t in (0, 2, 0, 0):
        learning(posterior, 0, 0, 0.0, t)
    expected = [0.6530453799, 0.0223593429, 0.2798765914, 0.0223593429, 0.0223593429]
    np.testing.assert_allclose(rows_of(posterior)[0], expected, atol=5e-11)
    np.testing.assert_allclose(
        posterior.sizes[0], [0, 0.4882688649, 0.2976114986, 0.1464806595, 0.0676389770], atol=5e-11
    )
    for _ in range(10):
        learning(posterior, 1, 0, 0.0, 0)
    np.testing.assert_allclose(rows_of(posterior)[1], [0.9898300849] + [0.0025424788] * 4, atol=5e-11)


def test_a_surprise_after_very_many_tries():
    """Chances that vanish in doubles leave something to divide by."""
    n = 200
    posterior = SparseDirichletBelief(n, 1, concentration=5.0, rewards=bb.KnownRewards(np.zeros((n, 1)))).in_arrays()
    for _ in range(20_000):
        learning(posterior, 0, 0, 0.0, 0)
    for t in range(1, n):
        learning(posterior, 0, 0, 0.0, t)
        assert np.isfinite(posterior.alpha[0]).all()
    assert posterior.seen[0].tolist() == [n, 20_000 + n - 1]


def test_drawn_rows_have_the_law_of_the_belief():
    """Sizes of supports and means of 20 000 rows, and models; false alarms below 1e-4 altogether."""
    belief = a_belief().update([0] * 4, [0] * 4, [1.0] * 4, [0, 0, 0, 2])
    posterior, stream = belief.in_arrays(), stream_from(np.random.default_rng(3))
    theta, n = np.zeros(5), 20_000
    rows = np.array([(drawing(posterior, stream, 0, theta), theta.copy())[1] for _ in range(n)])
    chance = belief.sizes_of(0, 0)
    share = np.bincount((rows > 0.0).sum(axis=1), minlength=6)[1:] / n
    assert (np.abs(share - chance) <= 4.5 * np.sqrt(chance * (1 - chance) / n) + 1e-12).all()
    assert (rows[:, [0, 2]] > 0.0).all()
    assert (np.abs(rows.mean(axis=0) - belief.predictive(0, 0)) <= 4.5 * rows.std(axis=0) / np.sqrt(n)).all()
    p = np.zeros((5, 2, 5, 4000))
    draw_transitions(posterior, stream, p, np.zeros((5, 2, 4000)))
    bound = 4.5 * p.std(axis=3) / np.sqrt(4000) + 1e-12
    assert (np.abs(p.mean(axis=3) - belief.mean().transitions) <= bound).all()


@pytest.mark.parametrize("simulated", [simulated, simulated_within_supports])
def test_simulations_that_count_are_simulations_in_one_drawn_model(simulated):
    """Paths of three outcomes by the urn have the chances that the belief's evidence gives them; then all is as before,
    bit for bit. 40 000 paths, 125 of them possible; false alarms below 1e-4 altogether."""
    belief = a_belief().update([0, 0], [0, 0], [1.0, 0.0], [1, 2])
    posterior, stream, n = belief.in_arrays(), stream_from(np.random.default_rng(5)), 40_000
    urn, path = new_urn(posterior, 3), np.zeros(3, np.int64)
    preparing(posterior, urn)
    before = [np.array(x) for x in posterior[:-1] if isinstance(x, np.ndarray)]
    seen = np.zeros((5, 5, 5))
    for _ in range(n):
        simulated(posterior, urn, stream, 0, path)
        assert urn.total[0] == pytest.approx(posterior.alpha[0].sum())
        rewinding(posterior, urn)
        seen[tuple(path)] += 1.0 / n
    for old, now in zip(before, (x for x in posterior[:-1] if isinstance(x, np.ndarray)), strict=True):
        np.testing.assert_array_equal(old, now)
    known = SparseDirichletBelief(
        5, 2, support=belief.counts.concentration > 0.0, terminal=[4], rewards=bb.KnownRewards(np.zeros((5, 2)))
    ).update([0, 0], [0, 0], None, [1, 2])
    for t in np.ndindex(5, 5, 5):
        chance = np.exp(known.log_marginal_likelihood([0] * 3, [0] * 3, None, list(t)))
        assert abs(seen[t] - chance) <= 5.0 * np.sqrt(chance * (1 - chance) / n) + 1e-9


@pytest.mark.parametrize(
    "name", ["exploit", "mcbrl:n=4", "bamcp:simulations=20", "sboss", "beb", "branch-and-bound:expansions=5"]
)
def test_agents_of_every_family_of_kernels_take_it(name):
    environment = make_env("chain")
    given = "," if ":" in name else ":"
    agent = make_agent(f"{name}{given}prior=sparse-support", environment)
    assert "Compiled" in type(agent).__name__
    played = play(agent, environment, seed=1, runs=2, steps=30)
    assert (played.total >= 0.0).all()


def test_agents_that_need_dirichlet_rows_say_so():
    for name in ("beetle", "amp-em", "vb-em"):
        with pytest.raises(bb.BeliefboundError, match="Dirichlet rows needs a belief that can count"):
            make_agent(f"{name}:prior=sparse-support", make_env("chain"))
