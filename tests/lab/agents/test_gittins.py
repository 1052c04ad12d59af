"""Gittins indices against published values, plain calibration and exact bandit values; the agent that plays them."""

import numpy as np
import pytest
from scipy.special import betainc

from beliefbound.base.errors import ParameterError
from beliefbound.kernels.planning.gittins import index_bounds
from beliefbound.kernels.special import beta_cdf
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.envs import make_env
from support.every_agent import EveryAgent

DISCOUNTS = (0.5, 0.9, 0.95, 0.99)
INDICES = {
    (1, 1): (0.5590188, 0.7028892, 0.7614336, 0.8698600),
    (1, 2): (0.3758218, 0.5001288, 0.5601107, 0.7005428),
    (2, 1): (0.7059668, 0.8000563, 0.8381413, 0.9101767),
    (2, 2): (0.5358694, 0.6346330, 0.6810374, 0.7843587),
    (1, 3): (0.2802194, 0.3796283, 0.4334059, 0.5670988),
    (3, 1): (0.7772319, 0.8451958, 0.8735682, 0.9284975),
    (5, 5): (0.5164821, 0.5676321, 0.5957476, 0.6697235),
    (10, 10): (0.5086717, 0.5372564, 0.5544276, 0.6045217),
    (1, 10): (0.0972224, 0.1268745, 0.1471197, 0.2116967),
}


class TestGittins(EveryAgent):
    name = "gittins"
    small = "gittins:depth=50"
    environments = ("bandit", "bandit:means=0.2/0.8")
    one_action = "bandit:1"
    tried_on = ("bandit:3,seed=1", "bandit:means=0/1")
    mistakes = (("gittins", "gittins is for bandits, of one state; this environment has 5"),)


def bounds(a, b, discount, tolerance, depth=4000):
    return index_bounds(float(a), float(b), discount, tolerance, np.zeros(depth + 1))


@pytest.mark.parametrize("arm", INDICES, ids=str)
def test_indices_are_the_published_ones(arm):
    for discount, index in zip(DISCOUNTS, INDICES[arm], strict=True):
        lower, upper = bounds(*arm, discount, 1e-7)
        assert upper - lower <= 1e-7
        assert lower - 5e-8 <= index <= upper + 5e-8  # the table is rounded to seven digits
        loose = bounds(*arm, discount, 1e-3)
        assert loose[0] <= lower + 1e-12
        assert upper - 1e-12 <= loose[1]


def test_a_shallow_look_ahead_still_brackets_the_index():
    for depth in (1, 3, 10, 50):
        lower, upper = bounds(1, 1, 0.95, 1e-9, depth)
        assert lower < 0.7614336 < upper
    assert upper - lower < 1e-2


def test_the_beta_distribution_function():
    for x in (1e-6, 0.2, 0.5, 0.93, 1 - 1e-6):
        for a, b in ((1.0, 1.0), (0.3, 2.5), (40.0, 3.0), (2.0, 1500.0), (700.5, 650.0)):
            assert beta_cdf(x, a, b) == pytest.approx(betainc(a, b, x), abs=1e-12)


def restart_index(a, b, discount, depth):
    """Katehakis & Veinott: continue, or restart from the root; the index is `(1 − γ) V(root)`. Value iteration."""
    wins, plays = np.meshgrid(np.arange(depth + 2), np.arange(depth + 2))
    p = (a + wins) / (a + b + plays)
    v = np.zeros((depth + 2, depth + 2))
    while True:
        go = p[:-1, :-1] * (1 + discount * v[1:, 1:]) + (1 - p[:-1, :-1]) * discount * v[1:, :-1]
        new = np.maximum(go, go[0, 0])
        change = np.abs(new - v[:-1, :-1]).max()
        v[:-1, :-1] = new
        if change < 1e-10:
            return (1 - discount) * v[0, 0]


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 2.5), (3.7, 1.2)])
def test_calibration_agrees_with_restart_in_state(a, b):
    assert restart_index(a, b, 0.7, 60) == pytest.approx(np.mean(bounds(a, b, 0.7, 1e-9)), abs=1e-7)


def two_arm_values(horizon, discount, choose=None):
    """Exact value of two Beta(1,1) arms over a horizon, by layers over (wins 1, losses 1, wins 2, losses 2).

    The best arm is played, or the one that `choose(w1, l1, w2, l2)` names.
    """
    value = {}
    for n in range(horizon, -1, -1):
        layer = {}
        for w1 in range(n + 1):
            for l1 in range(n + 1 - w1):
                for w2 in range(n + 1 - w1 - l1):
                    l2 = n - w1 - l1 - w2
                    if n == horizon:
                        layer[w1, l1, w2] = 0.0
                        continue
                    p, q = (w1 + 1) / (w1 + l1 + 2), (w2 + 1) / (w2 + l2 + 2)
                    first = p * (1 + discount * value[w1 + 1, l1, w2]) + (1 - p) * discount * value[w1, l1 + 1, w2]
                    second = q * (1 + discount * value[w1, l1, w2 + 1]) + (1 - q) * discount * value[w1, l1, w2]
                    if choose is None:
                        layer[w1, l1, w2] = max(first, second)
                    else:
                        layer[w1, l1, w2] = second if choose(w1, l1, w2, l2) else first
        value = layer
    return value[0, 0, 0]


@pytest.mark.parametrize(
    ("horizon", "value"),
    [
        (1, 0.5),
        (2, 1.0833333),
        (3, 1.6666667),
        (4, 2.2777778),
        (5, 2.8888889),
        (10, 6.02178571),
        (20, 12.43126491),
        (50, 31.99671188),
    ],
)
def test_the_oracle_of_two_arms_is_the_known_one(horizon, value):
    assert two_arm_values(horizon, 1.0) == pytest.approx(value, abs=5e-8)


def test_the_index_policy_is_bayes_optimal_for_discounted_bandits():
    """Over 24 steps it is within what later steps can bring of the optimum, and a greedy policy is not."""
    kept = {(w, k): np.mean(bounds(w + 1, k + 1, 0.7, 1e-9)) for w in range(25) for k in range(25 - w)}
    best = two_arm_values(24, 0.7)
    played = two_arm_values(24, 0.7, lambda w1, l1, w2, l2: kept[w2, l2] > kept[w1, l1])
    greedy = two_arm_values(24, 0.7, lambda w1, l1, w2, l2: (w2 + 1) / (w2 + l2 + 2) > (w1 + 1) / (w1 + l1 + 2))
    later = 0.7**24 / 0.3
    assert best - later <= played <= best
    assert greedy < best - 2 * later


def test_the_agent_plays_the_largest_index():
    environment = make_env("bandit:means=0.4/0.6/0.5")
    agent = make_agent("gittins:discount=0.9", environment)
    agent.reset(1)
    assert agent.act(0) == 0
    agent.observe(0, 0, 0.0, 0)
    assert agent.machine.state.indices[0] == pytest.approx([0.5001288, 0.7028892, 0.7028892], abs=1e-6)
    assert agent.act(0) == 1
    agent.observe(0, 1, 1.0, 0)
    assert agent.machine.state.indices[0, 1] == pytest.approx(0.8000563, abs=1e-6)
    assert agent.act(0) == 1
    agent.reset(2)
    assert agent.machine.state.indices[0] == pytest.approx([0.7028892] * 3, abs=1e-6)


def test_rewards_in_between_count_as_successes_so_often():
    agent = make_agent("gittins:discount=0.5,tolerance=0.01", make_env("bandit:1"))
    agent.reset(3)
    for _ in range(2000):
        agent.observe(0, 0, 0.25, 0)
    won, lost = agent.machine.state.counts[0]
    assert won + lost == 2000
    assert abs(won - 500) < 4 * np.sqrt(2000 * 0.25 * 0.75)  # false alarms: 6e-5


def test_the_better_arm_is_found():
    environment = make_env("bandit:means=0.2/0.8")
    total = play(make_agent("gittins", environment), environment, seed=1, runs=range(40), steps=300).total
    assert total.mean() > 0.75 * 300


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gittins:tolerance=0", "tolerance is 0.0"),
        ("gittins:successes=0", "successes is 0.0; give a number above 0"),
        ("gittins:depth=0", "depth is 0"),
    ],
)
def test_mistakes_are_answered_where_there_is_one_state(name, message):
    with pytest.raises(ParameterError, match=message):
        make_agent(name, make_env("bandit"))
