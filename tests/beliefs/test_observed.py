"""What a belief has seen, and what its value rests on where it has seen nothing."""

import gymnasium
import numpy as np
import pytest

from beliefbound import DirichletBelief, KnownRewards, bracket, from_gymnasium, policy_iteration

ENDS = [5, 7, 11, 12, 15]  # holes and the goal of the 4×4 lake


@pytest.fixture(scope="module")
def log():
    """2000 episodes of random walking on the frozen lake: what anybody would have."""
    env = gymnasium.make("FrozenLake-v1", is_slippery=True)
    rng, rows = np.random.default_rng(1), []
    for episode in range(2000):
        s, _ = env.reset(seed=episode)
        over = False
        while not over:
            a = int(rng.integers(4))
            t, reward, ended, cut, _ = env.step(a)
            rows.append((int(s), a, float(reward), int(t)))
            s, over = t, ended or cut
    return [np.array(column) for column in zip(*rows, strict=True)]


def test_the_frozen_lake_from_a_log_is_worth_what_it_is_when_its_ends_are_named(log):
    truth = policy_iteration(from_gymnasium(gymnasium.make("FrozenLake-v1")), discount=0.95).values[0]
    belief = DirichletBelief(16, 4, terminal=ENDS, initial=0).update(*log)
    found = bracket(belief, discount=0.95, effort=10, rng=0)
    assert found.lower.value - 0.1 <= truth <= found.upper.value + 0.1
    assert found.upper.value < 0.5
    assert found.notes == ()


def test_without_them_the_bracket_says_what_it_rests_on(log):
    belief = DirichletBelief(16, 4, initial=0).update(*log)
    found = bracket(belief, discount=0.95, effort=10, rng=0)
    assert found.lower.value > 1.0  # rewards for ever where nobody has ever been: right for this belief
    assert "20 of 64 pairs of state and action were never observed" in found.summary()
    assert "terminal=[5, 7, 11, 12, 15]" in found.summary()


def test_observations_are_counted_pair_by_pair():
    belief = DirichletBelief(3, 2, terminal=2).update([0, 0, 1], [1, 1, 0], [0.0, 1.0, 0.5], [1, 2, 0])
    assert belief.observed.tolist() == [[0, 2], [1, 0], [0, 0]]
    assert belief.update(0, 0, 1.0, 0).observed.sum() == 4
    assert belief.notes() == (
        "2 of 4 pairs of state and action were never observed: there the value rests on what was believed before",
    )
    assert "that of the prior" in DirichletBelief(3, 2).notes()[0]


def test_what_is_seen_at_one_pair_is_seen_at_all_that_share_its_row():
    belief = DirichletBelief.tied([[0], [0]], [[[0, 1]], [[1, 0]]], [[1.0, 1.0]], rewards=KnownRewards(0.0))
    assert belief.update(0, 0, None, 0).observed.tolist() == [[1], [1]]
