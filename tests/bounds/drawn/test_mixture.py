"""A belief that somebody wrote in one file (`support/mixture.py`) is bracketed, certified, measured, played on, saved
and planned with. One state, an arm that pays 0.7 for sure and one of unknown chance, uniform or optimistic."""

from functools import cache

import numpy as np
import pytest

import beliefbound as bb
from beliefbound import BetaRewards, DirichletBelief, FiniteBelief
from beliefbound.base.errors import BeliefError, ParameterError
from beliefbound.beliefs.capabilities import Capability, capabilities_of
from beliefbound.beliefs.check import check_belief
from beliefbound.bounds.bound import Kind
from beliefbound.bounds.check_policy import check_policy
from beliefbound.bounds.drawn.policy import CompletedPolicy
from beliefbound.planning.task import Task
from support.mixture import Mixture
from support.tiers import tiers

SURE = 1e12  # counts of the arm that is known
EXACT = {1: 0.7, 2: 1.3480952381, 3: 1.9724702381, 5: 3.0423384881, 10: 4.9202452977}


def arms(a, b):
    rewards = BetaRewards([[0.7 * SURE, a]], [[0.3 * SURE, b]])
    return DirichletBelief(1, 2, rewards=rewards, initial=0)


BELIEF = Mixture([arms(1.0, 1.0), arms(5.0, 1.0)], [0.5, 0.5])


def exact_value(horizon, discount=0.9):
    """By recursion on what the unknown arm has paid: the parts' Beta posteriors, their weights by their evidence."""
    from scipy.special import betaln

    @cache
    def value(wins, losses, left):
        if not left:
            return 0.0
        logs = np.array([betaln(a + wins, b + losses) - betaln(a, b) for a, b in ((1.0, 1.0), (5.0, 1.0))])
        weights = np.exp(logs) / np.exp(logs).sum()
        p = float(weights @ [(a + wins) / (a + b + wins + losses) for a, b in ((1.0, 1.0), (5.0, 1.0))])
        win, lose = (value(wins + k, losses + 1 - k, left - 1) for k in (1, 0))
        return max(0.7 + discount * value(wins, losses, left - 1), p + discount * (p * win + (1.0 - p) * lose))

    return value(0, 0, horizon)


@pytest.mark.parametrize("horizon", EXACT)
def test_the_exact_value_is_the_published_one(horizon):
    assert exact_value(horizon) == pytest.approx(EXACT[horizon], abs=1e-9)


@pytest.mark.parametrize("seed", tiers(range(6), 0))
@pytest.mark.parametrize("horizon", tiers([3, 10], 10))
def test_ends_hold(seed, horizon):
    """Each bracket fails with a probability of 1 in 10 000: the twelve of them, less than once in 800 runs."""
    found = bb.bracket(BELIEF, discount=0.9, horizon=horizon, effort=30, confidence=0.9999, rng=seed)
    assert found.lower.value <= EXACT[horizon] + 1e-5
    assert found.upper.value >= EXACT[horizon] - 1e-5
    assert found.confidence == 0.9999


@pytest.mark.full
def test_sets_of_models_close_the_bracket_and_its_policy_learns():
    """Better than QMDP from above, and than every memoryless policy from below."""
    found = bb.bracket(BELIEF, discount=0.9, horizon=10, effort=90, rng=1)
    assert found.upper.kind is found.lower.kind is Kind.DRAWN
    assert isinstance(found.policy, CompletedPolicy)
    assert found.lower.value > 0.7 * (1.0 - 0.9**10) / 0.1
    assert found.relative_gap < 0.05
    assert found.lower.value <= EXACT[10] <= found.upper.value
    again = bb.bracket(BELIEF, discount=0.9, horizon=10, effort=found.effort, rng=1)
    assert [x.value for x in again.bounds] == [x.value for x in found.bounds]


def test_brackets_and_their_policies_can_be_saved(tmp_path):
    found = bb.bracket(BELIEF, discount=0.9, horizon=5, effort=20, rng=2)
    found.save(tmp_path / "found.json")
    back = bb.Bracket.load(tmp_path / "found.json")
    assert back == found
    assert back.policy == found.policy
    sample = BELIEF.sample(8, 3)
    check_policy(back.policy.fresh, sample, walks=300)


def test_a_policy_goes_on_after_what_its_models_ruled_out():
    """Made on models that never lead to state 1, it is worth what it earns on one that does."""
    stay, leave = [[1.0, 0.0]] * 2, [[0.5, 0.5]] * 2
    rewards = [[0.3, 0.0], [1.0, 0.0]]

    class Either:
        n_states, n_actions, initial, reward_range = 2, 2, np.array([1.0, 0.0]), (0.0, 1.0)
        available = np.ones((2, 2), dtype=bool)

        def sample(self, n, rng=None):
            left = np.random.default_rng(rng).random(n) < 0.02
            models = [[leave if x else stay, [[0.0, 1.0]] * 2] for x in left]
            return FiniteBelief(models, [rewards] * n, reward_signal="bernoulli", initial=0)

    found = bb.bracket(Either(), discount=0.5, horizon=3, effort=20, rng=1)
    value = 0.3 * 1.75 + 0.02 * (0.5 * 0.5 * 0.7 + 0.25 * 0.75 * 0.7)  # the best action is the first, always
    assert found.lower.value <= value <= found.upper.value
    assert capabilities_of(Either()) == {Capability.DRAW}
    with pytest.raises(BeliefError, match=r"mcbrl needs a belief that can be conditioned: update\("):
        bb.make_agent("mcbrl", bb.make_env("gym:FrozenLake-v1"), belief=_Sized(Either()))


class _Sized:
    def __init__(self, own):
        self.n_states, self.n_actions, self.initial, self.reward_range = 16, 4, None, own.reward_range
        self.available, self.sample = np.ones((16, 4), dtype=bool), own.sample


class Greedy:
    """The unknown arm as long as it pays; a stranger to this library."""

    def reset(self, seed):
        self.paid, self.tries = 1.0, 2.0

    def act(self, state):
        return int(self.tries < 4.0 or self.paid / self.tries > 0.68)

    def observe(self, state, action, reward, next_state):
        if action == 1:
            self.paid, self.tries = self.paid + reward, self.tries + 1.0


@pytest.mark.full
def test_policies_are_certified():
    """Tables and controllers on fresh models, others by walks in them; 1 in 2500 fails."""
    bound = bb.bracket(BELIEF, discount=0.9, horizon=10, effort=20, confidence=0.9999, rng=1).upper
    knobs = {"discount": 0.9, "horizon": 10, "upper": bound, "confidence": 0.9999, "rng": 3, "samples": 600}
    safe = bb.certify(bb.StationaryPolicy([0]), BELIEF, **knobs)
    assert safe.lower.value <= 0.7 * (1.0 - 0.9**10) / 0.1 <= safe.upper.value + 1e-6
    bold = bb.certify(bb.StationaryPolicy([1]), BELIEF, **knobs)
    assert bold.lower.value <= 2.0 / 3.0 * (1.0 - 0.9**10) / 0.1 <= bold.upper.value
    learns = bb.certify(Greedy(), BELIEF, **knobs)
    assert learns.lower.value <= EXACT[10]
    assert learns.regret.value >= EXACT[10] - learns.upper.value
    assert "walks" in learns.lower.method
    drawn = BELIEF.sample(20_000, 5)
    table = bb.certify(Greedy(), drawn, discount=0.9, horizon=10, upper=bound, samples=2000, rng=1)
    assert abs(table.value - learns.value) < 0.2


@pytest.mark.full
def test_information_has_ends_where_drawing_is_enough():
    found = bb.bracket(BELIEF, discount=0.9, horizon=10, effort=60, rng=1)
    known = BELIEF.sample(100_000, 1).rewards[:, 0].max(axis=1).mean() * (1.0 - 0.9**10) / 0.1
    worth = bb.bounds.evpi(BELIEF, discount=0.9, horizon=10, bounds=found, n_models=4000, rng=1)
    assert worth.low <= known - EXACT[10] <= worth.high
    ranked = bb.value_of_information(BELIEF, tries=5, discount=0.9, horizon=10, bounds=found, n_models=4000, rng=1)
    assert ranked.low[0, 0] == 0.0
    assert (ranked.high <= worth.high + 0.1).all()
    made_known = bb.value_of_information(BELIEF, discount=0.9, horizon=10, bounds=found, n_models=4000, rng=1)
    assert (made_known.low == 0.0).all()


def test_planners_take_its_samples():
    assert bb.msbi(BELIEF, discount=0.9, horizon=5, rng=1).policy.horizon == 5
    assert bb.mmbi(BELIEF.sample(50, 1), discount=0.9).policy.horizon is None
    for planner in (bb.mmbi, bb.cadp, bb.expected_mdp_policy):
        with pytest.raises(BeliefError, match=r"got Mixture; sample it first"):
            planner(BELIEF, discount=0.9, horizon=5)
    low = bb.lower_bound(bb.StationaryPolicy([0]), BELIEF, discount=0.9, rng=1)
    assert low.value <= bb.upper_bound(BELIEF, discount=0.9, rng=1).value


def test_it_keeps_its_word():
    check_belief(BELIEF)
    check_belief(BELIEF.update([0, 0], [1, 1], [1.0, 0.0], [0, 0]))


def test_a_decision_needs_models_that_can_be_listed():
    with pytest.raises(ParameterError, match="a decision is proven for finite beliefs"):
        bb.bracket(BELIEF, discount=0.9, horizon=3, target="decision", effort=3)


@pytest.mark.full
def test_normal_rewards_are_certified_too():
    """Rewards that are any number: a table on fresh models, and no walk of a policy that learns."""
    from beliefbound.beliefs import NormalRewards

    belief = DirichletBelief(2, 2, rewards=NormalRewards())
    task = Task.of(belief, discount=0.8)
    found = bb.certify(bb.StationaryPolicy([0, 1]), belief, discount=0.8, samples=400, rng=1)
    assert found.lower.asymptotic
    assert found.lower.value <= found.best.value
    assert task.belief.reward_range is None
    with pytest.raises(ParameterError, match="are any number"):
        bb.certify(Greedy(), belief, discount=0.8, samples=20, rng=1)
