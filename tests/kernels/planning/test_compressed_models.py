"""Models in compressed rows: the law of the draws, and the sweep against the same models written out."""

import numpy as np
import pytest
from scipy import stats

from beliefbound.beliefs import BetaRewards, DirichletBelief, KnownRewards
from beliefbound.beliefs.compiled import posterior_of
from beliefbound.kernels.draws import dirichlet_models
from beliefbound.kernels.planning.compressed_models import (
    OFTEN,
    WIDTH,
    CompressedModels,
    compressed_models,
    compresses,
    draw_models,
    look_at_small,
    sweep_compressed,
)
from beliefbound.kernels.planning.compressed_rows import PARTS, SMALL, TINY
from beliefbound.kernels.planning.expected_rows import ExpectedRows
from beliefbound.kernels.planning.held_models import HeldModels, hold
from beliefbound.kernels.random import seed_stream
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.envs import make_env

S, N = 100, 30


def stream(seed):
    return seed_stream(np.array([seed], np.uint64))


def drawn(alpha, seed):
    """`N` models whose rows all have the parameters `alpha[t]`."""
    belief = DirichletBelief(S, 1, rewards=BetaRewards())
    posterior = posterior_of(belief)
    posterior.alpha[:] = alpha
    models = compressed_models(posterior, N, np.ones((S, 1), bool), 0.9)
    draw_models(stream(seed), posterior.alpha, models)
    return models


def written_out(models):
    """The parts of dense rows: `[pair·n + m,part,t]`."""
    n_pairs, (n, n_states) = len(models.mixed), models.even.shape
    parts, entries = np.zeros((n_pairs + 1, n, PARTS, n_states)), 0
    for k, m in np.ndindex(PARTS, n):
        at = models.begin[k, m]
        for pairs, length in zip(models.pair[k, m].reshape(-1, WIDTH), models.length[k, m], strict=True):
            for lane, pair in enumerate(pairs):
                here = slice(at + lane, at + lane + length * WIDTH, WIDTH)
                np.add.at(parts[pair, m, k], models.next_state[here], models.p[here])
                entries += (models.p[here] > 0.0).sum()
            at += length * WIDTH
    assert (parts > 0.0).sum() == entries  # no state has two entries
    assert ((parts > 0.0).sum(axis=2) <= 1).all()
    assert not parts[n_pairs].any()
    return parts[:n_pairs].reshape(n_pairs * n, PARTS, n_states)


@pytest.mark.full
def test_rows_are_draws_of_the_dirichlet():
    """Seen entries are Beta; the others, together and by the largest, as in dense draws. False alarms: 1e-3 each."""
    alpha = np.full(S, 1.0 / S)
    alpha[[3, 8]] += 4.0, 1.0
    alpha[20:30] = 0.0  # cannot happen
    parts = written_out(drawn(alpha, 1))
    rows, masses = parts.sum(axis=1), parts.sum(axis=2)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
    assert (rows[:, 20:30] == 0.0).all()
    assert (masses[:, 1] + masses[:, 2] < SMALL).all()
    assert (masses[:, 2] < TINY).all()
    total, count = alpha.sum(), len(rows)
    for t in (3, 8):
        assert stats.kstest(rows[:, t], stats.beta(alpha[t], total - alpha[t]).cdf).pvalue > 1e-3
    dense = np.empty((count, 1, 1, S))
    dirichlet_models(stream(2), alpha[None, None], dense)
    others = np.flatnonzero(alpha == 1.0 / S)
    assert stats.ks_2samp(rows[:, others].max(axis=1), dense[:, 0, 0, others].max(axis=1)).pvalue > 1e-3
    assert stats.ks_2samp(rows[:, others].sum(axis=1), dense[:, 0, 0, others].sum(axis=1)).pvalue > 1e-3
    mean = alpha / total
    deviation = np.sqrt(mean * (1.0 - mean) / (total + 1.0) / count)
    assert (np.abs(rows.mean(axis=0) - mean) <= 4.5 * deviation).all()  # of 100 entries: 7e-4
    squares = (rows[:, others] ** 2).sum(axis=1)
    expected = len(others) / S * (1.0 / S + 1.0) / (total * (total + 1.0))
    assert abs(squares.mean() - expected) < 4.0 * squares.std() / np.sqrt(count)


@pytest.mark.full
def test_few_exchangeable_states_share_everything():
    """Where the sticks run out of states the split is exact: two states of concentration 1/2 are Beta(1/2, 1/2)."""
    alpha = np.zeros(S)
    alpha[[5, 9]] = 1.0 / S
    models = compressed_models(posterior_of(DirichletBelief(S, 1)), N, np.ones((S, 1), bool), 0.9)
    models.drawn.common[:] = 0.5
    alpha[[5, 9]] = 0.5
    draw_models(stream(3), np.tile(alpha, (S, 1)), models)
    rows = written_out(models).sum(axis=1)
    np.testing.assert_allclose(rows[:, 5] + rows[:, 9], 1.0, atol=1e-12)
    assert stats.kstest(rows[:, 5], stats.beta(0.5, 0.5).cdf).pvalue > 1e-3


@pytest.mark.full
def test_sweeps_are_those_of_the_models_written_out():
    rng = np.random.default_rng(4)
    posterior = posterior_of(DirichletBelief(90, 3, rewards=BetaRewards()))
    available = rng.random((90, 3)) < 0.8
    available[:, 1] = True
    models = compressed_models(posterior, 5, available, 0.9)
    draw_models(stream(5), posterior.alpha, models)
    models.r[:] = rng.random(models.r.shape)
    p = written_out(models).reshape(90, 3, 5, PARTS, 90)
    values, v, out = np.zeros((5, 90)), models.even, models.odd
    small = tiny = values  # as they were at the last look
    for k in range(24):
        if k % 2 == 0:
            look_at_small(models, v)
            small = values
            tiny = values if k % (2 * OFTEN) == 0 else tiny
        sweep_compressed(models, v, out)
        q = models.r + 0.9 * np.einsum("samkt,kmt->sam", p, np.array([values, small, tiny]))
        mixed = np.where(available, q.mean(axis=2), -np.inf)
        actions = mixed.argmax(axis=1)
        values = q[np.arange(90), actions].T
        np.testing.assert_array_equal(models.actions, actions)
        np.testing.assert_allclose(out, values, atol=1e-12)
        np.testing.assert_allclose(models.vbar, mixed.max(axis=1), atol=1e-12)
        v, out = out, v


@pytest.mark.parametrize(
    ("belief", "answer"),
    [
        (DirichletBelief(264, 4, rewards=BetaRewards()), True),
        (DirichletBelief(25, 4, rewards=BetaRewards()), False),
        (DirichletBelief(264, 1, concentration=1.0, rewards=BetaRewards()), False),
        (DirichletBelief(100, 1, rewards=KnownRewards(np.zeros((100, 1, 100)))), False),
        (DirichletBelief(100, 1, rewards=KnownRewards(0.0)), True),
    ],
    ids=["large", "small", "spread", "on arrival", "known"],
)
def test_what_is_compressed(belief, answer):
    posterior = posterior_of(belief)
    assert compresses(posterior) is answer
    available = np.ones((belief.n_states, belief.n_actions), bool)
    assert isinstance(hold(posterior, 2, available, 0.9), CompressedModels if answer else HeldModels)


@pytest.mark.full
def test_agents_play_large_problems():
    environment = make_env("grid:10")
    totals = []
    for name in ("thompson", "mcbrl:n=1"):
        agent = make_agent(name, environment)
        assert isinstance(agent.machine.state.models, CompressedModels)
        runs = play(agent, environment, seed=1, runs=4, steps=300, visits=True)
        totals.append(runs.visits)
    np.testing.assert_array_equal(*totals)
    assert (totals[0] > 0).sum() > 20  # it explores


@pytest.mark.full
def test_the_expected_mdp_is_the_same_in_compressed_rows():
    """Exploit on a large grid: its rows written out are the posterior mean, its sweeps value iteration on them."""
    environment = make_env("grid:10")
    agent = make_agent("exploit", environment)
    state, rng = agent.machine.state, np.random.default_rng(6)
    assert isinstance(state.models, ExpectedRows)
    agent.reset(1)
    s, values = 0, np.zeros(100)
    for _ in range(40):
        alpha = state.posterior.alpha
        rows = np.repeat(state.models.rest[:, None], 100, axis=1)
        for pair, seen in enumerate(state.models.seen):
            rows[pair, state.models.next_state[pair, :seen]] += state.models.p[pair, :seen]
        np.testing.assert_allclose(rows, alpha / alpha.sum(axis=1, keepdims=True), atol=1e-14)
        successes, failures = state.posterior.reward
        q = (successes / (successes + failures) + 0.95 * rows @ values).reshape(100, 4)
        action, values = agent.act(s), q.max(axis=1)
        np.testing.assert_allclose(state.models.vbar, values, atol=1e-11)
        assert q[s, action] >= values[s] - 1e-11
        t = int(rng.choice(100, p=environment.mdp.transitions[s, action]))
        agent.observe(s, action, float(environment.mdp.rewards[s, action]), t)
        s = t
