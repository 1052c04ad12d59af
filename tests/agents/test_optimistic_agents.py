"""Optimistic agents: plain twins, the facts that tell a right implementation from a wrong one, and parameters."""

import math

import numpy as np
import pytest

from beliefbound import MDP, BetaRewards, DirichletBelief, KnownRewards
from beliefbound.agents import agent_parameters, canonical_agent, make_agent, play
from beliefbound.agents.ucrl2 import EPISODES, radii
from beliefbound.envs import environment_from_mdp, make_env
from beliefbound.errors import ParameterError
from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.play import agent_stream, environment_stream
from beliefbound.kernels.random import uniform
from support.optimism_twins import IntervalTwin, OptimistTwin


def partial_environment():
    """Three states, some of whose actions are not available."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), size=(3, 3))
    available = np.array([[True, False, True], [True, True, True], [False, True, False]])
    return environment_from_mdp(MDP(p, rng.normal(size=(3, 3)), initial=0, available=available), name="partial")


CHAIN = make_env("chain")
ENVIRONMENTS = {"chain": CHAIN, "riverswim": make_env("riverswim"), "partial": partial_environment()}
TWINS = {
    "beb:beta=1.5": lambda e: OptimistTwin(e, "beb", 1.5),
    "vbrb:rewards=0.7,transitions=1.3": lambda e: OptimistTwin(e, "vbrb", (0.7, 1.3)),
    "bolt:eta=3": lambda e: OptimistTwin(e, "bolt", 3.0, cap=1 / (1 - e.discount)),
    "mbie": lambda e: IntervalTwin(e, 0.3, 0.08),
    "mbie-eb": lambda e: IntervalTwin(e, 0.4, 0.0),
}


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
@pytest.mark.parametrize("name", TWINS)
def test_agents_equal_their_twins_step_by_step(name, environment):
    twin, agent = TWINS[name](environment), make_agent(name, environment)
    luck = environment_stream(7, 3)
    agent.reset(agent_stream(7, 0, 3))
    twin.reset(7, 0, 3)
    s = int(begin(environment.outcomes, uniform(luck)))
    for k in range(40):
        a, b = agent.act(s), twin.act(s)
        np.testing.assert_allclose(agent.machine.state.model.v, twin.v, rtol=1e-9, err_msg=f"step {k}")
        assert a == b, f"step {k}"
        r, t = step(environment.outcomes, s, a, uniform(luck))
        agent.observe(s, a, r, t)
        twin.observe(s, a, r, t)
        s = int(t)


def arms(*rewards):
    """One state, actions of fixed rewards in [0, 1]."""
    mdp = MDP(np.ones((1, len(rewards), 1)), [rewards], initial=0)
    return environment_from_mdp(mdp, name="arms", reward_range=(0.0, 1.0))


def actions_of(name, environment, steps):
    agent = make_agent(name, environment)
    agent.reset(0)
    actions, total = [], 0.0
    for _ in range(steps):
        a = agent.act(0)
        agent.observe(0, a, environment.mdp.rewards[0, a], 0)
        actions.append(a)
        total += environment.mdp.rewards[0, a]
    return actions, total


def test_rmax_tries_each_arm_m_times():
    actions, total = actions_of("rmax:m=3", arms(0.3, 0.7), 10)
    assert actions == [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]
    assert total == pytest.approx(5.8)


def test_mbie_eb_weighs_bonus_against_mean():
    actions, total = actions_of("mbie-eb:beta=1,cap=no", arms(0.3, 0.7), 12)
    assert actions == [0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1]
    assert total == pytest.approx(7.6)


def test_a_cap_makes_arms_equal_until_their_bonus_is_small():
    """`.3 + 1/√n ≥ 1` for n ≤ 2: the first arm is worth the cap, as is the one not tried, and ties go to the lowest."""
    assert actions_of("mbie-eb:beta=1", arms(0.3, 0.7), 4)[0] == [0, 0, 0, 1]


def test_mbie_has_the_radii_of_the_analysis():
    agent = make_agent("mbie:radii=theory,delta=0.05", CHAIN)
    agent.reset(0)
    for _ in range(10):
        agent.observe(2, 1, 10.0, 3)
    model = agent.machine.state.model
    assert model.width[2, 1] == pytest.approx(1.131099, abs=1e-6)
    assert model.r[2, 1] == pytest.approx(1 + math.sqrt(math.log(40) / 20))
    assert model.r[2, 0] == pytest.approx(20.0)
    large = make_agent("mbie:radii=theory", make_env("garnet:300,1,2"))
    assert large.machine.state.transition_width == pytest.approx(math.sqrt(2 * (300 * math.log(2) - math.log(0.05))))


def test_rmax_freezes_a_pair_when_it_is_known_and_solves_then_only():
    agent = make_agent("rmax:m=2", CHAIN)
    agent.reset(0)
    agent.act(0)
    model = agent.machine.state.model
    for r, t in ((0.0, 1), (10.0, 0)):
        agent.observe(0, 1, r, t)
    assert model.r[0, 1] == pytest.approx(0.5)
    assert model.p[0, 1].tolist() == [0.5, 0.5, 0.0, 0.0, 0.0]
    agent.act(0)
    values = model.v.copy()
    agent.observe(0, 1, 10.0, 3)
    agent.act(0)
    np.testing.assert_array_equal(model.v, values)
    assert model.p[0, 1, 3] == 0.0


def test_ucrl2_has_the_published_radii():
    assert radii(6, 2, 1, 0, 0.05) == pytest.approx((4.648468, 19.185678), abs=1e-6)
    assert radii(6, 2, 1000, 100, 0.05) == pytest.approx((0.676649, 3.079516), abs=1e-6)


def test_episodes_of_ucrl2_double_the_visits_of_the_action_they_follow():
    """One state, one action: episodes begin at steps 1, 2, 3, 5, 9, …"""
    agent = make_agent("ucrl2", arms(0.5))
    agent.reset(0)
    began = []
    for k in range(1, 40):
        before = agent.machine.state.clock[EPISODES]
        agent.act(0)
        if agent.machine.state.clock[EPISODES] > before:
            began.append(k)
        agent.observe(0, 0, 0.5, 0)
    assert began == [1, 2, 3, 5, 9, 17, 33]


def test_ucrl2_reads_its_radii_into_the_model():
    agent = make_agent("ucrl2:scale=0.5", ENVIRONMENTS["riverswim"])
    agent.reset(0)
    for _ in range(999):
        agent.observe(0, 0, 0.005, 0)
    agent.act(0)
    model = agent.machine.state.model
    reward, transition = radii(6, 2, 1000, 999, 0.05)
    assert model.r[0, 0] == pytest.approx(0.005 + reward / 2)
    assert model.width[0, 0] == pytest.approx(transition / 2)
    assert model.width[1, 0] == 2.0  # never tried: anywhere
    assert model.r[1, 0] == pytest.approx(radii(6, 2, 1000, 0, 0.05)[0] / 2)
    capped = make_agent("ucrl2:cap=yes", ENVIRONMENTS["riverswim"])
    capped.reset(0)
    capped.act(0)
    assert capped.machine.state.model.r.max() == 1.0


def exploring(threshold):
    """State 0 known with m = 10: action 0 escapes with chance .1, action 1 stays and pays more."""
    agent = make_agent(f"e3:m=10,horizon=2,threshold={threshold}", make_env("garnet:2,2,1"))
    agent.reset(0)
    for k in range(10):
        agent.observe(0, 0, 0.0, int(k == 0))
        agent.observe(0, 1, 0.5, 0)
    return agent.act(0), agent.machine.state


def test_e3_explores_when_escape_is_likelier_than_the_threshold():
    action, state = exploring(0.18)
    assert state.explore.v[0] == pytest.approx(0.19)  # .1 + .9 · .1
    assert action == 0
    assert state.left[0] == 1
    action, state = exploring(0.2)
    assert state.explore.v[0] == pytest.approx(0.19)
    assert action == 1


def test_e3_wanders_in_balance_and_then_plans():
    agent = make_agent("e3:m=2,horizon=3", CHAIN)
    agent.reset(0)
    actions = []
    for _ in range(4):
        a = agent.act(0)
        agent.observe(0, a, 0.0, 0)
        actions.append(a)
    assert actions == [0, 1, 0, 1]
    state = agent.machine.state
    assert state.known.tolist() == [True, False, False, False, False]
    assert state.left[0] == 0
    agent.act(0)  # nothing leads out of what is known: exploit
    assert state.explore.v[0] == 0.0
    assert state.left[0] == 2
    agent.act(1)  # an unknown state ends the plan
    assert state.left[0] == 0


def coin():
    """D, W, L, H: `coin` goes to W or L with equal chance, `safe` to H; W pays 1, L 0, H ½ and return to D."""
    p = np.zeros((4, 2, 4))
    p[0, 0, [1, 2]], p[0, 1, 3], p[1:, :, 0] = 0.5, 1.0, 1.0
    rewards = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.5, 0.5]])
    belief = DirichletBelief(4, 2, concentration=2.0 * p, rewards=KnownRewards(rewards))
    return environment_from_mdp(MDP(p, rewards, initial=0), name="coin"), belief


def value_on_coin(name):
    environment, belief = coin()
    agent = make_agent(f"{name},tolerance=1e-12,sweeps=100000,cap=no", environment, belief=belief, discount=0.95)
    agent.reset(0)
    return agent.act(0), float(agent.machine.state.model.v[0])


def test_bonuses_on_the_coin():
    """A cycle takes two steps: `V = (bonus of the pull + γ reward) / (1 − γ²)`; only the coin is uncertain."""
    scale = 1 - 0.95**2
    assert value_on_coin("vbrb:rewards=0,transitions=1") == (0, pytest.approx((1 / math.sqrt(6) + 0.475) / scale))
    assert value_on_coin("vbrb:rewards=9,transitions=0") == (0, pytest.approx(0.475 / scale))  # rewards are known
    assert value_on_coin("bolt:eta=2") == (0, pytest.approx(0.95 * 0.75 / scale))  # (1 + 2) / (2 + 2)
    assert value_on_coin("bolt:eta=0") == (0, pytest.approx(0.475 / scale))
    assert value_on_coin("beb:beta=3") == (
        0,
        pytest.approx((1 + 0.475 + 0.95) / scale),
    )  # every row has α0 = 2: bonus 1


def test_bayesian_bonuses_read_the_posterior():
    agent = make_agent("vbrb:rewards=1,transitions=0,concentration=1", make_env("bandit:means=0.2/0.8"))
    agent.reset(0)
    for reward in (1.0, 0.0, 1.0):
        agent.observe(0, 1, reward, 0)
    model = agent.machine.state.model  # Beta(3, 2): mean .6, variance 6 / 150
    assert model.r[0, 1] == pytest.approx(0.6 + math.sqrt(0.04))
    assert model.r[0, 0] == pytest.approx(0.5 + math.sqrt(1 / 12))


@pytest.mark.parametrize("name", ["beb", "vbrb", "bolt"])
def test_tied_rows_learn_from_each_other(name):
    """Two states whose only action shares one row: a step in either narrows both."""
    arrive = np.array([[[1, 0]], [[0, 1]]])  # outcome 0 changes the state, outcome 1 keeps it
    belief = DirichletBelief.tied(np.zeros((2, 1), int), arrive, [[1.0, 1.0]], rewards=BetaRewards(), initial=0)
    p = np.full((2, 1, 2), 0.5)
    environment = environment_from_mdp(MDP(p, [[0.0], [1.0]], initial=0), name="two")
    agent = make_agent(name, environment, belief=belief)
    agent.reset(0)
    before = agent.machine.state.model.r[1, 0]
    agent.observe(0, 0, 0.0, 1)
    model = agent.machine.state.model
    np.testing.assert_allclose(model.p[:, 0], [[1 / 3, 2 / 3], [2 / 3, 1 / 3]])
    assert model.r[1, 0] < before or name == "bolt"
    assert model.width[0, 0] == model.width[1, 0]


def test_optimists_reach_riverswims_prize():
    """Swimming right is worth .43 a step, staying left .005: exploring pays (5000 steps: 2138 at best)."""
    environment = make_env("riverswim")
    for name in ("mbie-eb", "rmax", "beb", "ucrl2:scale=0.05"):
        total = play(make_agent(name, environment), environment, seed=1, runs=10, steps=5000).total
        assert total.mean() > 1200, name
    myopic = play(make_agent("interval-estimation", environment), environment, seed=1, runs=10, steps=5000).total
    assert myopic.mean() < 100


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rmax:m=0", "m is 0; give a whole number from 1"),
        ("mbie:delta=0.1", "delta has no effect with radii=simple"),
        ("mbie:radii=theory,rewards=1", "rewards has no effect with radii=theory"),
        ("mbie:radii=theory,delta=0", "delta is 0.0; give a number above 0"),
        ("mbie-eb:beta=-1", "beta is -1.0"),
        ("beb:beta=inf", "beta is inf"),
        ("vbrb:rewards=nan", "rewards is nan"),
        ("bolt:eta=-1", "eta is -1.0"),
        ("ucrl2:delta=2", "delta is 2.0"),
        ("ucrl2:discount=0.9", "ucrl2 has no 'discount'"),
        ("e3:threshold=2", "threshold is 2.0"),
        ("e3:discount=0.99999999", "plans of so many steps for 5 states need"),
        ("rmax:prior=flat", "rmax has no 'prior'"),
    ],
)
def test_bad_parameters_are_answered(name, message):
    with pytest.raises(ParameterError, match=message):
        make_agent(name, CHAIN)


def test_models_too_large_are_refused():
    for name in ("rmax", "mbie", "ucrl2", "e3"):
        with pytest.raises(ParameterError, match="needs .* GB"):
            make_agent(name, make_env("riverswim:20000"))


def test_an_agent_without_a_prior_says_so():
    with pytest.raises(ParameterError, match="mbie learns no model|can use no belief"):
        make_agent("mbie", CHAIN, belief=DirichletBelief(5, 2))


def test_published_settings_are_presets():
    assert canonical_agent("rmax:preset=six-arms") == "rmax:m=6"
    assert canonical_agent("mbie:preset=riverswim") == "mbie:transitions=0.0"
    assert canonical_agent("mbie-eb:preset=six-arms") == "mbie-eb:beta=0.8"
    assert "beta=2.5" in agent_parameters("beb")
