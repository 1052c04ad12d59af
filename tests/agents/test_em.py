"""EM agents: twins, the facts of the coin, and what never falls."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from beliefbound import DirichletBelief, KnownRewards
from beliefbound.agents import make_agent
from beliefbound.agents.amp_em import match, run_trajectories
from beliefbound.agents.amp_em import plan as plan_amp
from beliefbound.agents.common.em import trajectories_for
from beliefbound.agents.sem import improve_on
from beliefbound.agents.vb_em import digamma, plan, soften
from beliefbound.engine.protocol import setting_of
from beliefbound.engine.registry import AGENTS, parse_agent
from beliefbound.envs import make_env
from beliefbound.errors import ParameterError
from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.play import agent_stream, environment_stream
from beliefbound.kernels.random import uniform
from support.coin import coin
from support.em_twins import AmpTwin, SemTwin, VbTwin, gains, matched

CHAIN = make_env("chain")
COMMON = {"horizon": 6, "interval": 4, "iterations": 3}
TEXT = "horizon=6,interval=4,iterations=3"
TWINS = {
    f"sem:{TEXT}": lambda e: SemTwin(e, **COMMON),
    f"sem:estimate=sampled,n=3,{TEXT},floor=0.1": lambda e: SemTwin(e, n=3, floor=0.1, **COMMON),
    f"vb-em:rounds=3,{TEXT}": lambda e: VbTwin(e, rounds=3, **COMMON),
    f"amp-em:rounds=2,damping=0.4,{TEXT}": lambda e: AmpTwin(e, rounds=2, damping=0.4, **COMMON),
}


@pytest.mark.parametrize("name", TWINS)
def test_em_agents_equal_their_twins_step_by_step(name):
    twin, agent = TWINS[name](CHAIN), make_agent(name, CHAIN)
    luck = environment_stream(7, 3)
    agent.reset(agent_stream(7, 0, 3))
    twin.reset(7, 0, 3)
    s = int(begin(CHAIN.outcomes, uniform(luck)))
    for k in range(40):
        a, b = agent.act(s), twin.act(s)
        np.testing.assert_allclose(agent.machine.state.trajectories.policy, twin.policy, rtol=1e-8, err_msg=f"step {k}")
        assert a == b, f"step {k}"
        r, t = step(CHAIN.outcomes, s, a, uniform(luck))
        agent.observe(s, a, r, t)
        twin.observe(s, a, r, t)
        s = int(t)


def on_coin(name, policy=None, discount=1.0):
    """The state of an agent that believes the coin fair or not, Beta(1, 1), undiscounted unless said."""
    environment, belief = coin()
    setting = replace(setting_of(environment, 0.5, belief), discount=discount)
    machine = AGENTS.find(name).build(setting, **parse_agent(name).values)
    machine.reset(machine.state, agent_stream(1, 0, 0))
    if policy is not None:
        machine.state.trajectories.policy[0] = policy
    return machine.state


def test_em_on_two_models_weighs_actions_by_their_mean_value():
    """One pull: `safe` is worth ½, `coin` .2 or .9. From the uniform policy, π' is ½ to .55."""
    environment, _ = coin()
    values = {"horizon": 2, "interval": 1, "iterations": 1, "floor": 0.0}
    trajectories = trajectories_for(replace(setting_of(environment, 0.5), discount=1.0), values)
    trajectories.policy[:] = 0.5
    p = np.stack([coin(theta)[0].mdp.transitions for theta in (0.2, 0.9)], axis=-1)
    r = np.stack([environment.mdp.rewards] * 2, axis=-1)
    improve_on(trajectories, p, r, 0)
    np.testing.assert_allclose(trajectories.policy[0], [11 / 21, 10 / 21], rtol=1e-14)


def test_variational_chances_are_exponentials_of_mean_logarithms():
    for x in (0.05, 0.2, 1.0, 3.7, 9.99, 500.0):
        assert digamma(x) == pytest.approx(special.digamma(x), rel=1e-13)
    state = on_coin("vb-em")
    soften(state)
    assert state.theta[0, 1] == pytest.approx(np.exp(-1.0), rel=1e-13)  # Beta(1, 1)
    state.posterior.alpha[0, 1] += 1.0
    soften(state)
    assert state.theta[0, 1] == pytest.approx(np.exp(-0.5), rel=1e-13)  # Beta(2, 1)
    assert state.theta[2].tolist() == [1.0, 0.0, 0.0, 0.0]  # known


def variational_bound(state, s):
    """`log v_0(s) − KL(Dirichlet(α + ρ) ‖ Dirichlet(α))`, from the definitions."""
    alpha = state.posterior.alpha
    soften(state)
    p, r, policy = state.trajectories.p[0], state.trajectories.r[0], state.trajectories.policy
    horizon = len(state.trajectories.f)
    value = gains(policy, [p] * horizon, [r] * horizon, s, state.trajectories.discount)[0]
    apart = 0.0
    for a, b in zip(alpha + state.rho, alpha, strict=True):
        a, b = a[b > 0], b[b > 0]
        apart += special.gammaln(a.sum()) - special.gammaln(a).sum() - special.gammaln(b.sum())
        apart += special.gammaln(b).sum() + (a - b) @ (special.digamma(a) - special.digamma(a.sum()))
    return np.log(value) - apart


def test_one_pull_is_exact_for_variational_bayes():
    """Always `coin`: paid only after W, so the reward-weighted belief is Beta(2, 1), and the value ½."""
    state = on_coin("vb-em:horizon=2,iterations=1,rounds=200,floor=0", policy=[1.0, 0.0])
    plan(state, 0)
    np.testing.assert_allclose(state.rho[0], [0.0, 1.0, 0.0, 0.0], atol=1e-12)
    assert variational_bound(state, 0) == pytest.approx(np.log(0.5), abs=1e-12)


def test_one_pull_is_exact_for_message_passing():
    state = on_coin("amp-em:horizon=2,iterations=1,damping=1,floor=0", policy=[1.0, 0.0])
    assert run_trajectories(state, 0) == pytest.approx(0.5, abs=1e-14)
    plan_amp(state, 0)
    np.testing.assert_allclose(state.sites[0, 0], [0.0, 1.0, 0.0, 0.0], atol=1e-12)  # Beta(1, 1) to Beta(2, 1)
    assert run_trajectories(state, 0) == pytest.approx(0.5, abs=1e-14)  # the cavity of the only pull is the prior


def test_a_transition_that_pays_on_arrival_is_told_by_its_reward():
    """Chain with one slip, a step forward from 0: paid only where it slipped, so Beta(1, 1) becomes Beta(1, 2)."""
    for name, think in (("vb-em:rounds=1", plan), ("amp-em:damping=1", plan_amp)):
        agent = make_agent(f"{name},horizon=1,iterations=1,floor=0,prior=tied", CHAIN)
        agent.reset(1)
        state = agent.machine.state
        state.trajectories.policy[0] = [0.0, 1.0]
        think(state, 0)
        said = state.rho if name.startswith("vb") else state.sites[0]
        np.testing.assert_allclose(said[0], [0.0, 1.0], atol=1e-12)


def test_sites_have_the_moments_of_the_mixture():
    rng = np.random.default_rng(5)
    for _ in range(5):
        c, w, site = rng.gamma(1.0, size=4), 0.2 * rng.dirichlet(np.ones(4)), np.zeros(4)
        match(c, w, site, 1.0)
        np.testing.assert_allclose(site, matched(c, w), rtol=1e-9)
    site = np.array([3.0, 1.0])
    match(np.array([2.0, 5.0]), np.zeros(2), site, 0.25)  # nothing said: the site fades
    np.testing.assert_allclose(site, [2.25, 0.75])


def test_the_value_never_falls_under_em():
    rng = np.random.default_rng(2)
    p, r = rng.dirichlet(np.ones(4), size=(5, 4, 3)), rng.random((5, 4, 3))
    environment = make_env("garnet:4,3,2")
    planning = {"horizon": 12, "interval": 1, "iterations": 1, "floor": 0.0}
    trajectories = trajectories_for(replace(setting_of(environment, 0.9), available=np.ones((4, 3), bool)), planning)
    trajectories.policy[:] = rng.dirichlet(np.ones(3), size=4)
    models_last = [np.ascontiguousarray(np.moveaxis(x, 0, -1)) for x in (p, r)]
    values = []
    for _ in range(60):
        each = [gains(trajectories.policy, [x] * 12, [y] * 12, 1, 0.9)[0] for x, y in zip(p, r, strict=True)]
        values.append(np.mean(each))
        improve_on(trajectories, *models_last, 1)
    assert (np.diff(values) >= -1e-12).all()
    assert values[-1] > 1.05 * values[0]


@pytest.mark.parametrize("prior", ["flat", "known-rewards"])
def test_the_variational_bound_never_falls(prior):
    """With rewards on arrival too, where the paid transition counts."""
    agent = make_agent(f"vb-em:horizon=8,iterations=1,rounds=1,floor=0,prior={prior}", CHAIN)
    agent.reset(3)
    rng = np.random.default_rng(1)
    for _ in range(30):
        a, s = rng.integers(2), int(rng.integers(5))
        t = (0 if a == 0 else min(s + 1, 4)) if rng.random() < 0.8 else int(rng.integers(5))
        agent.observe(s, int(a), 2.0, int(t))
    state, bounds = agent.machine.state, []
    for _ in range(40):
        bounds.append(variational_bound(state, 0))
        plan(state, 0)
    assert (np.diff(bounds) >= -1e-10).all()
    assert bounds[-1] > bounds[0] + 0.1


def test_message_passing_on_a_known_model_is_em():
    """Certain transitions: there is nothing to say about them."""
    transitions = np.zeros((3, 2, 3))
    transitions[:, 0, 0] = transitions[[0, 1, 2], 1, [1, 2, 2]] = 1.0
    rewards = np.array([[0.1, 0.0], [0.0, 0.0], [0.0, 1.0]])
    belief = DirichletBelief(3, 2, concentration=transitions, rewards=KnownRewards(rewards))
    environment = make_env("garnet:3,2,2")
    policies = []
    for name in ("sem", "amp-em", "vb-em"):
        agent = make_agent(f"{name}:horizon=8,iterations=5", environment, belief=belief)
        agent.reset(1)
        agent.act(0)
        policies.append(agent.machine.state.trajectories.policy.copy())
    np.testing.assert_allclose(policies[1], policies[0], rtol=1e-12)
    np.testing.assert_allclose(policies[2], policies[0], rtol=1e-12)
    assert policies[0][0, 1] > 0.5


def test_tied_rows_gather_what_all_their_pairs_say():
    """One slip for all of Chain: one row of counts, from every pair."""
    agent = make_agent("vb-em:horizon=4,iterations=1,rounds=1,prior=tied", CHAIN)
    agent.reset(1)
    agent.act(0)
    state = agent.machine.state
    full = make_agent("vb-em:horizon=4,iterations=1,rounds=1", CHAIN, belief=untied())
    full.reset(1)
    full.act(0)
    rho = full.machine.state.rho.reshape(5, 2, 5)
    s = np.arange(5)
    forward, back = np.minimum(s + 1, 4), 0
    moved = rho[s, 0, back].sum() + rho[s, 1, forward].sum()
    slipped = rho[s, 1, back].sum() + rho[s, 0, forward].sum()
    np.testing.assert_allclose(state.rho[0], [moved, slipped], rtol=1e-12)


def untied():
    """Chain with a Beta(1, 1) of its own for each pair, the rewards of the tied prior."""
    allowed = np.zeros((5, 2, 5))
    s = np.arange(5)
    allowed[:, :, 0] = 1.0
    allowed[s, :, np.minimum(s + 1, 4)] = 1.0
    paid = np.zeros((5, 2, 5))
    paid[:, :, 0], paid[4, :, 4] = 2.0, 10.0
    return DirichletBelief(5, 2, concentration=allowed, rewards=KnownRewards(paid))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sem:n=4", "n has no effect with estimate=point"),
        ("sem:estimate=mode", "give one of point, sampled"),
        ("sem:horizon=0", "horizon is 0"),
        ("vb-em:rounds=0", "rounds is 0"),
        ("amp-em:damping=0", "damping is 0.0; give a number above 0"),
        ("amp-em:floor=2", "floor is 2.0"),
        ("vb-em:interval=1.5", "interval is '1.5'"),
    ],
)
def test_bad_parameters_are_answered(name, message):
    with pytest.raises(ParameterError, match=message):
        make_agent(name, CHAIN)


def test_what_does_not_fit_in_memory_is_refused():
    wide = make_env("garnet:300,3,2")
    with pytest.raises(ParameterError, match="need .* GB; take a shorter one"):
        make_agent("amp-em:horizon=5000", wide)
    with pytest.raises(ParameterError, match="n is 100000: .* GB; take fewer"):
        make_agent("sem:estimate=sampled,n=100000", wide)
