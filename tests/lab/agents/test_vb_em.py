"""VB-EM: a plain twin, the facts of the coin, and a bound that never falls."""

import numpy as np
import pytest
from scipy import special

from beliefbound import DirichletBelief, KnownRewards
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.vb_em import digamma, plan, soften
from support.em_agents import COMMON, TEXT, check_em_on_a_known_model, follow_em, on_coin, told_of_a_slip
from support.em_twins import VbTwin, gains
from support.environments import CHAIN
from support.every_agent import EveryAgent


class TestVbEm(EveryAgent):
    name = "vb-em"
    mistakes = (("vb-em:rounds=0", "rounds is 0"), ("vb-em:interval=1.5", "interval is '1.5'"))


def test_it_equals_its_twin_step_by_step():
    follow_em(f"vb-em:rounds=3,{TEXT}", VbTwin(CHAIN, rounds=3, **COMMON))


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


def test_a_transition_that_pays_on_arrival_is_told_by_its_reward():
    """Beta(1, 1) becomes Beta(1, 2)."""
    np.testing.assert_allclose(told_of_a_slip("vb-em:rounds=1", plan).rho[0], [0.0, 1.0], atol=1e-12)


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


def test_on_a_known_model_it_is_em():
    check_em_on_a_known_model("vb-em")


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
