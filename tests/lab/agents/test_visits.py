"""Visits: a plain twin, what it does where nothing can stay, what it does not see, and what changes nothing."""

import numpy as np
import pytest

from beliefbound import MDP, BetaRewards, DirichletBelief, KnownRewards, policy_iteration
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.envs import environment_from_mdp, make_env
from support.coin import coin
from support.environments import ENVIRONMENTS
from support.every_agent import EveryAgent
from support.following import follow
from support.visits_twin import VisitsTwin


class TestVisits(EveryAgent):
    name = "visits"
    variants = ("visits:sweeps=1,tolerance=0", "visits:prior=sparse-support")
    mistakes = (("visits:sweeps=0", "sweeps is 0"), ("visits:tolerance=2", "tolerance is 2"))
    chooses = False


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_it_equals_its_twin_step_by_step(environment):
    twin = VisitsTwin(environment, discount=0.9)
    agent = make_agent("visits", environment, discount=0.9)

    def watch(k):
        np.testing.assert_allclose(agent.machine.state.model.v, twin.v, rtol=1e-9, err_msg=f"step {k}")

    follow(agent, environment, 100, twin=twin, watch=watch)


def test_it_equals_its_twin_under_the_prior_that_the_environment_was_drawn_from():
    """Rewards are paid on arrival, few next states are possible, and staying is what happens when a move fails."""
    environment = make_env("prior-grid:seed=4")
    belief = environment.prior()
    twin = VisitsTwin(
        environment, discount=0.95, concentration=belief.concentration, paid=np.array(belief.rewards.rewards)
    )
    agent = make_agent("visits:prior=environment", environment)

    def watch(k):
        np.testing.assert_allclose(agent.machine.state.model.v, twin.v, rtol=1e-9, err_msg=f"step {k}")

    follow(agent, environment, 60, twin=twin, watch=watch)


def leaving():
    """A random environment and belief in which no state can follow itself."""
    rng = np.random.default_rng(2)
    possible = np.broadcast_to(~np.eye(6, dtype=bool)[:, None], (6, 3, 6))
    p = rng.gamma(0.5, size=(6, 3, 6)) * possible
    rewards = rng.random((6, 3))
    environment = environment_from_mdp(MDP(p / p.sum(axis=2, keepdims=True), rewards, initial=0), name="leaving")
    belief = DirichletBelief(6, 3, concentration=rng.gamma(1.0, size=p.shape) * possible, rewards=KnownRewards(rewards))
    return environment, belief


def test_where_nothing_can_stay_it_is_greedy_on_the_expected_mdp():
    """Solved independently at every step."""
    environment, belief = leaving()
    agent = make_agent("visits:sweeps=10000,tolerance=0", environment, discount=0.9, belief=belief)
    counts = np.array(belief.concentration)
    agent.reset(0)
    rng, s = np.random.default_rng(1), 0
    for _ in range(200):
        mdp = MDP(counts / counts.sum(axis=2, keepdims=True), environment.mdp.rewards)
        a, best = agent.act(s), policy_iteration(mdp, discount=0.9)
        assert a == best.policy.actions[s]
        model = agent.machine.state.model
        low, high = environment.reward_range
        np.testing.assert_allclose(model.v * (high - low) + low / (1 - 0.9), best.values, rtol=1e-9)
        t = int(rng.choice(6, p=environment.mdp.transitions[s, a]))
        agent.observe(s, a, float(environment.mdp.rewards[s, a]), t)
        counts[s, a, t] += 1
        s = t


def test_what_is_learnt_across_visits_is_not_seen():
    """The coin, slightly worse than what is safe, would be worth trying; nobody stays in D, so it is not tried."""
    for tails, action in ((0.9, 0), (1.0, 0), (1.1, 1)):
        environment, belief = coin(tails=tails)
        agent = make_agent("visits:sweeps=1000,tolerance=0", environment, discount=0.95, belief=belief)
        agent.reset(0)
        assert agent.act(0) == action


def test_what_is_learnt_within_a_visit_is():
    """A door that opens half of the time, and one that opens always or never, the former with the chance .505: it is
    tried first and, when it has stayed shut, left alone; its value allows for that."""
    p = np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    environment = environment_from_mdp(MDP(p, [[0.0, 0.0], [1.0, 1.0]], initial=0), name="doors")
    counts = np.array([[[1e6, 1e6], [0.00495, 0.00505]], [[0.0, 1.0], [0.0, 1.0]]])
    belief = DirichletBelief(2, 2, concentration=counts, rewards=KnownRewards(environment.mdp.rewards))
    agent = make_agent("visits:sweeps=1000,tolerance=0", environment, discount=0.9, belief=belief)
    agent.reset(0)
    assert agent.act(0) == 1
    prize = 0.9 / (1 - 0.9)
    sure = 0.5 * prize / (1 - 0.9 * 0.5)
    assert agent.machine.state.model.v[0] == pytest.approx(0.505 * prize + 0.495 * 0.9 * sure, rel=1e-3)
    agent.observe(0, 1, 0.0, 0)
    assert agent.act(0) == 0


def scaled(environment, factor, shift):
    mdp = environment.mdp
    rewards = factor * np.array(mdp.rewards) + shift
    return environment_from_mdp(MDP(mdp.transitions, rewards, initial=0, available=mdp.available), name="scaled")


@pytest.mark.parametrize(("factor", "shift"), [(8.0, 0.0), (0.25, -2.0), (1e6, 3.0)])
def test_units_of_rewards_change_no_action(factor, shift):
    environment = environment_from_mdp(make_env("garnet:7,3,4,seed=2").mdp, name="garnet")
    first = follow(make_agent("visits", environment, discount=0.9), environment, 300)
    other = scaled(environment, factor, shift)
    assert [x[:2] for x in follow(make_agent("visits", other, discount=0.9), other, 300)] == [x[:2] for x in first]


def test_numbers_of_states_change_no_value():
    rng = np.random.default_rng(9)
    alpha, rewards, order = rng.gamma(0.7, size=(6, 2, 6)), rng.random((6, 2)), rng.permutation(6)
    values = []
    for places in (np.arange(6), order):
        a, r = alpha[places][:, :, places], rewards[places]
        environment = environment_from_mdp(
            MDP(a / a.sum(axis=2, keepdims=True), r, initial=0), name="any", reward_range=(0.0, 1.0)
        )
        belief = DirichletBelief(6, 2, concentration=a, rewards=KnownRewards(r))
        agent = make_agent("visits:sweeps=1000,tolerance=0", environment, discount=0.9, belief=belief)
        agent.reset(0)
        agent.act(0)
        values.append(agent.machine.state.model.v.copy())
    np.testing.assert_allclose(values[1], values[0][order], rtol=1e-12)


def test_tied_rows_learn_from_each_other():
    """Two states whose only action shares one row; outcome 1 stays in the first, outcome 0 leads there from the
    second."""
    arrive = np.array([[[1, 0]], [[0, 1]]])
    belief = DirichletBelief.tied(np.zeros((2, 1), int), arrive, [[1.0, 1.0]], rewards=BetaRewards(), initial=0)
    environment = environment_from_mdp(MDP(np.full((2, 1, 2), 0.5), [[0.0], [1.0]], initial=0), name="two")
    agent = make_agent("visits", environment, belief=belief)
    agent.reset(0)
    agent.observe(0, 0, 0.0, 1)
    model = agent.machine.state.model
    np.testing.assert_array_equal(model.stay, [1.0, 1.0])
    np.testing.assert_array_equal(model.total, [3.0, 3.0])


def test_who_knows_which_pairs_behave_alike_earns_more():
    environment = make_env("chain")
    told = play(make_agent("visits:prior=tied", environment), environment, seed=1, runs=50, steps=500).total.mean()
    assert told > play(make_agent("visits", environment), environment, seed=1, runs=50, steps=500).total.mean()


def test_it_is_ahead_of_certainty_equivalence_on_grids():
    """Where a failed move stays. Over 2000 grids the difference was 0.36 with a standard error of 0.07; over 100, whose
    seeds are fixed, it is above 0 in seven of eight cases."""

    def earned(name):
        total = 0.0
        for seed in range(100):
            environment = make_env(f"prior-grid:seed={seed}")
            agent = make_agent(f"{name},prior=environment", environment)
            total += play(agent, environment, seed=1, runs=range(seed, seed + 1), steps=250).utility[0]
        return total

    assert earned("visits:tolerance=0.01") > earned("dither:epsilon=0,sweeps=20")
