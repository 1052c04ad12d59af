"""Models in compressed rows have the law of the belief, rewards included."""

import numpy as np
import pytest

from beliefbound import DirichletBelief, KnownRewards
from beliefbound.beliefs import MixedRewards, NormalRewards
from beliefbound.beliefs.model_source import ModelSource
from beliefbound.beliefs.rewards import DirichletRewards
from beliefbound.planning.optimal import optimal_values

S, N = 96, 3000


def seen(rewards, **options):
    """Two actions; the first of state 0 was tried ten times, 96 states."""
    prior = DirichletBelief(S, 2, rewards=rewards, initial=0, **options)
    return prior.update([0] * 10, [0] * 10, [1.0] * 10, [3, 3, 3, 3, 3, 3, 3, 5, 5, 9])


@pytest.mark.full
def test_rows_have_the_moments_of_their_dirichlet():
    """Of 3000 draws, means of all 96 entries of three rows, and of the sum of their squares: within five standard
    errors of the closed forms."""
    belief = seen(KnownRewards(1.0))
    source = ModelSource(belief)
    assert source.compressed
    p = source.sample(N, np.random.default_rng(1)).models.dense()
    assert p.sum(axis=-1) == pytest.approx(1.0, abs=1e-9)
    assert (p > 0.0).sum() < 0.5 * p.size
    for s, a in ((0, 0), (0, 1), (95, 1)):
        alpha = belief.concentration[s, a]
        mean = alpha / alpha.sum()
        spread = np.sqrt(mean * (1.0 - mean) / (alpha.sum() + 1.0))
        assert (np.abs(p[:, s, a].mean(axis=0) - mean) < 5.0 * spread / np.sqrt(N)).all()
        square, total = (p[:, s, a] ** 2).sum(axis=1), alpha.sum()
        exact = (alpha * (alpha + 1.0)).sum() / (total * (total + 1.0))
        assert abs(square.mean() - exact) < 4.5 * square.std() / np.sqrt(N)
    both = (p[:, 0, 0, 3] * p[:, 0, 0, 5]).mean()  # E p_i p_j = α_i α_j / (α (α + 1))
    alpha = belief.concentration[0, 0]
    assert both == pytest.approx(alpha[3] * alpha[5] / (alpha.sum() * (alpha.sum() + 1.0)), rel=0.05)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["known", "arrival", "values", "mixed", "normal"])
def test_rewards_are_those_of_the_rows(kind):
    """The mean over models is the expected MDP's; where rewards are known, each model's are the products of its row."""
    paid = np.random.default_rng(2).random((S, 2, S))
    paid[0, 0] = 1.0
    holes = np.where(np.arange(2)[:, None] == 1, np.nan, paid)
    beliefs = {
        "known": KnownRewards(paid[..., 0]),
        "arrival": KnownRewards(paid),
        "values": DirichletRewards([0.0, 1.0, 5.0]),
        "mixed": MixedRewards(holes, DirichletRewards([0.0, 1.0])),
        "normal": NormalRewards(1.0, strength=2.0, shape=3.0, rate=0.5),
    }
    belief = seen(beliefs[kind], terminal=[7], available=[[True, s != 4] for s in range(S)])
    source = ModelSource(belief)
    assert source.compressed
    sample = source.sample(400, np.random.default_rng(3))
    rewards, error = sample.rewards.mean(axis=0), sample.rewards.std(axis=0) / 20.0
    assert (np.abs(rewards - belief.mean().rewards) <= 5.0 * error + 1e-9).all()
    assert not sample.rewards[:, 7].any()
    assert not sample.rewards[:, 4, 1].any()
    assert not sample.models.dense()[:, 4, 1].any()
    if kind == "arrival":
        exact = np.einsum("msat,sat->msa", sample.models.dense(), paid)
        assert sample.rewards[:, 0] == pytest.approx(exact[:, 0])


def test_other_rows_are_dense():
    assert not ModelSource(DirichletBelief(63, 1)).compressed
    assert not ModelSource(DirichletBelief(S, 1, concentration=0.5)).compressed
    belief = DirichletBelief(4, 1)
    both = [x.sample(3, np.random.default_rng(1)).models.dense() for x in (belief, ModelSource(belief))]
    assert (both[0] == both[1]).all()


def test_a_guess_changes_no_value():
    sample = DirichletBelief(6, 3).sample(20, 1)
    plain = optimal_values(sample, discount=0.95)
    guessed = optimal_values(sample, discount=0.95, guess=np.array([2, 1, 0, 2, 1, 0]))
    assert guessed.values == pytest.approx(plain.values, rel=1e-9)
    assert (guessed.actions == plain.actions).all()
