"""Mixtures: weights by the evidence, the exact value of a bandit, brackets, agents, files, mistakes."""

from functools import cache

import numpy as np
import pytest

import beliefbound as bb
from beliefbound.base.errors import BeliefError, ObservationError
from beliefbound.beliefs import MixtureBelief, SparseDirichletBelief, belief_of, check_belief, entries_of
from beliefbound.beliefs.rewards import MixedRewards
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.envs import make_env

EXACT = {1: 0.7, 2: 1.3480952381, 3: 1.9724702381, 5: 3.0423384881, 10: 4.9202452977}


def arms(a, b):
    """One state, an arm that is known to pay 0.7, and one that pays 1 with a chance `Beta(a, b)`."""
    learnt = bb.DirichletRewards([1.0, 0.0], [[[a, b], [a, b]]])
    return bb.DirichletBelief(1, 2, rewards=MixedRewards([[0.7, np.nan]], learnt), initial=0)


BANDIT = MixtureBelief([arms(1.0, 1.0), arms(5.0, 1.0)])


@pytest.mark.parametrize("horizon", EXACT)
def test_the_exact_value_of_a_bandit(horizon):
    """By recursion on the belief itself: what it expects, and what it believes after a win and a loss."""

    @cache
    def value(wins, losses, left):
        if not left:
            return 0.0
        belief = BANDIT
        if wins + losses:
            n = wins + losses
            belief = BANDIT.update([0] * n, [1] * n, [1.0] * wins + [0.0] * losses, [0] * n)
        p = belief.mean().rewards[0, 1]
        win, lose = value(wins + 1, losses, left - 1), value(wins, losses + 1, left - 1)
        return max(0.7 + 0.9 * value(wins, losses, left - 1), p + 0.9 * (p * win + (1.0 - p) * lose))

    assert value(0, 0, horizon) == pytest.approx(EXACT[horizon], abs=1e-9)


def test_weights_follow_the_evidence_and_never_vanish():
    """A thousand steps for one part, then more for the other: logarithms remember what doubles would have lost."""
    one, other = (
        bb.DirichletBelief(2, 1, concentration=[[x], [x[::-1]]], rewards=bb.KnownRewards(0.0))
        for x in ([9000.0, 1000.0], [1000.0, 9000.0])
    )
    belief = MixtureBelief([one, other], [0.25, 0.75])
    steps = [np.zeros(1500, int), np.zeros(1500, int), None, np.repeat([0, 1], [750, 750])]
    there = [x if x is None else x[:750] for x in steps]
    after = belief.update(*there)
    assert after.log_weights[1] < -800.0  # e^-746 is 0 in doubles
    logs = np.log([0.25, 0.75]) + [part.log_marginal_likelihood(*steps) for part in (one, other)]
    whole = belief.update(*steps)
    np.testing.assert_allclose(whole.weights, np.exp(logs - np.logaddexp.reduce(logs)))
    np.testing.assert_allclose(
        after.update(*[x if x is None else x[750:] for x in steps]).weights, whole.weights, rtol=1e-6
    )
    assert belief.log_marginal_likelihood(*steps) == pytest.approx(np.logaddexp.reduce(logs))


@pytest.mark.full
@pytest.mark.parametrize(
    "belief",
    [
        BANDIT,
        MixtureBelief([SparseDirichletBelief(3, 2, terminal=[2]), bb.DirichletBelief(3, 2, terminal=[2])], [0.3, 0.7]),
        MixtureBelief(
            [
                bb.DirichletBelief(2, 1, concentration=c, rewards=bb.KnownRewards([[[0.0, 1.0]], [[2.0, 0.0]]]))
                for c in (0.3, 3.0)
            ]
        ),
        MixtureBelief([BANDIT, arms(2.0, 2.0)]),
    ],
    ids=["values", "sparse or not, terminal", "known on arrival", "nested"],
)
def test_it_keeps_the_word_of_a_belief(belief):
    check_belief(belief)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_its_brackets_hold(seed):
    """Each fails with a probability of 1 in 10 000."""
    found = bb.bracket(BANDIT, discount=0.9, horizon=5, effort=25, confidence=0.9999, rng=seed)
    assert found.lower.value <= EXACT[5] + 1e-9
    assert found.upper.value >= EXACT[5] - 1e-9
    certificate = bb.certify(
        bb.mmbi(BANDIT.sample(200, seed), discount=0.9, horizon=5).policy,
        BANDIT,
        discount=0.9,
        horizon=5,
        samples=60,
        rng=seed,
    )
    assert certificate.lower.value <= EXACT[5] + 1e-9


@pytest.mark.full
def test_agents_that_draw_play_on_it():
    environment = make_env("chain")
    parts = [bb.DirichletBelief(5, 2, concentration=x, rewards=bb.BetaRewards(low=0.0, high=10.0)) for x in (0.2, 1.0)]
    agent = make_agent("thompson", environment, belief=MixtureBelief(parts))
    assert play(agent, environment, seed=1, runs=1, steps=40).total.shape == (1,)


def test_a_part_that_is_ruled_out_keeps_no_weight():
    support = np.array([[[True, False]], [[False, True]]])
    still, any_ = (bb.DirichletBelief(2, 1, support=x, rewards=bb.KnownRewards(0.0)) for x in (support, None))
    after = MixtureBelief([still, any_]).update(0, 0, None, 1)
    assert after.weights.tolist() == [0.0, 1.0]
    assert after.update(1, 0, None, 1).weights.tolist() == [0.0, 1.0]
    with pytest.raises(ObservationError, match="outside the belief's support"):
        MixtureBelief([still]).update(0, 0, None, 1)
    back = belief_of(entries_of(after))
    np.testing.assert_array_equal(back.log_weights, after.log_weights)
    assert MixtureBelief([still, any_]).allowed().possible.all()


def test_mistakes_are_answered():
    flat = bb.DirichletBelief(2, 1)
    for parts, weights, message in (
        ([], None, "needs a part"),
        ([3], None, "part 0 is 3, which has no n_states"),
        ([flat, bb.DirichletBelief(3, 1)], None, "part 1 has 3 states and 1 actions"),
        ([flat, bb.DirichletBelief(2, 1, terminal=[0])], None, "part 1 has other terminal states"),
        ([flat, bb.DirichletBelief(2, 1, initial=0)], None, "part 1 starts elsewhere"),
        ([flat, flat], [1.0], "one per part"),
        ([flat, flat], [0.5, 0.6], "weights"),
        ([flat, bb.DirichletBelief(2, 1, rewards=bb.KnownRewards(0.0))], None, "show different things"),
        ([flat, bb.DirichletBelief(2, 1, rewards=bb.BetaRewards(high=2.0))], None, "different ranges"),
        ([bb.DirichletBelief(2, 1, rewards=bb.KnownRewards(x)) for x in (0.0, 1.0)], None, "know different rewards"),
    ):
        with pytest.raises(BeliefError, match=message):
            MixtureBelief(parts, weights)
    with pytest.raises(BeliefError, match="has no log_marginal_likelihood"):
        MixtureBelief([flat.sample(3, 1)]).update(0, 0, 0.0, 0)
