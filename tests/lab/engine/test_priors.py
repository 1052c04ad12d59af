"""Agents learn from any prior: given, named, restricted, with known rewards, tied."""

import gymnasium
import numpy as np
import pytest

from beliefbound import BetaRewards, DirichletBelief, DirichletRewards, FiniteBelief, KnownRewards
from beliefbound.base.errors import BeliefboundError, ParameterError
from beliefbound.beliefs import NormalRewards
from beliefbound.beliefs.compiled import posterior_of
from beliefbound.kernels.planning.held_models import expected_model
from beliefbound.kernels.play import environment_stream
from beliefbound.kernels.posterior import Posterior, draw, expected, learn
from beliefbound.kernels.random import seed_stream
from beliefbound.lab.agents import CompiledAgent, make_agent, play, priors
from beliefbound.lab.agents.exploit import State, act, expected_prior, observe, observe_tied, reset
from beliefbound.lab.engine.protocol import Machine, setting_of
from beliefbound.lab.envs import DiscreteEnv, make_env

RIVER, CHAIN = make_env("riverswim"), make_env("chain")


def walk(environment, agent, steps=60, seed=3):
    """Transitions of an agent, as arrays."""
    noise = np.random.default_rng(seed)
    agent.reset(seed)
    s, seen = 0, []
    for _ in range(steps):
        a = agent.act(s)
        o = int(np.searchsorted(environment.outcomes.cumulative[s, a], noise.random(), side="right"))
        t, r = int(environment.outcomes.next_state[s, a, o]), float(environment.outcomes.reward[s, a, o])
        agent.observe(s, a, r, t)
        seen.append((s, a, r, t))
        s = t
    return [np.array(x) for x in zip(*seen, strict=True)]


# For environments drawn from one; of rows of their own; whose rows have unknown supports (`kernels/test_sparse_rows`).
ELSEWHERE = ("environment", "inaccurate", "tied", "semi-tied", "sparse-support", "sparse-known-rewards")


@pytest.mark.parametrize("name", [name for name in priors() if name not in ELSEWHERE])
def test_the_agents_posterior_is_the_beliefs(name):
    """Counts and expected MDP after a walk are those of `DirichletBelief.update`."""
    environment = make_env("riverswim")
    agent = make_agent(f"exploit:prior={name}", environment)
    from beliefbound.lab.engine.priors import PRIORS

    belief = PRIORS.find(name).build(environment).update(*walk(environment, agent))
    low, high = environment.reward_range
    state = agent.machine.state
    np.testing.assert_allclose(state.posterior.alpha.reshape(6, 2, 6), belief.concentration, rtol=1e-12)
    np.testing.assert_allclose(state.models.p[..., 0], belief.mean().transitions, rtol=1e-12)
    np.testing.assert_allclose(low + (high - low) * state.models.r[..., 0], belief.mean().rewards, rtol=1e-12)


def test_the_posterior_of_a_log_is_the_prior_of_an_agent():
    learnt = DirichletBelief(5, 2, rewards=BetaRewards(low=0.0, high=10.0)).update(
        *walk(CHAIN, make_agent("random", CHAIN), steps=400)
    )
    told = play(make_agent("mcbrl:n=8", CHAIN, belief=learnt), CHAIN, seed=1, runs=200, steps=100).total
    new = play(make_agent("mcbrl:n=8", CHAIN), CHAIN, seed=1, runs=200, steps=100).total
    assert (told - new).mean() > 4 * (told - new).std() / np.sqrt(200)  # false alarms: 3e-5
    flat = DirichletBelief(5, 2, rewards=BetaRewards(low=0.0, high=10.0))
    same = play(make_agent("mcbrl:n=8", CHAIN, belief=flat), CHAIN, seed=1, runs=200, steps=100).total
    np.testing.assert_array_equal(same, new)


@pytest.mark.full
@pytest.mark.parametrize("name", ["prior-double-loop:seed=3", "prior-grid:seed=2"])
def test_agents_can_be_told_the_prior_that_an_environment_was_drawn_from(name):
    environment = make_env(name)
    told = play(make_agent("thompson:prior=environment", environment), environment, seed=1, runs=60, steps=400).total
    flat = play(make_agent("thompson", environment), environment, seed=1, runs=60, steps=400).total
    assert (told - flat).mean() > 4 * (told - flat).std() / np.sqrt(60)


def test_impossible_transitions_stay_impossible():
    agent = make_agent("mcbrl:n=3,prior=support", RIVER)
    agent.reset(1)
    agent.act(0)
    agent.observe(0, 0, 0.0, 5)  # cannot happen: it teaches nothing
    state = agent.machine.state
    assert state.posterior.alpha[0, 5] == 0.0
    assert not state.models.p[0, 0, 1:].any()
    np.testing.assert_allclose(state.models.p.sum(axis=2), 1.0)


def tied_belief(environment, shared):
    """One row of two outcomes for every pair of the chain: the move intended, or the other. Flat, rewards known."""
    S, A = environment.n_states, environment.n_actions
    pairs = np.arange(S * A)
    forward = np.minimum(pairs // A + 1, S - 1)
    intended = np.where(pairs % A == 1, forward, 0)
    other = np.where(pairs % A == 1, 0, forward)
    arrive = np.stack([intended, other], axis=1)
    outcome = np.full((S * A, S), -1)
    outcome[pairs, intended], outcome[pairs, other] = 0, 1
    alpha = np.ones((1 if shared else S * A, 2))
    return Posterior(
        alpha=alpha.copy(),
        reward=np.ones((1, S * A)),
        prior_alpha=alpha.copy(),
        prior_reward=np.ones((1, S * A)),
        row=np.zeros(S * A, np.int64) if shared else pairs,
        arrive=arrive,
        outcome=outcome,
        paid=np.array(environment.mdp.rewards / 10.0).reshape(1, S * A, 1),
        scratch=np.zeros(2),
        tied=True,
        fractional=False,
        n_actions=A,
        low=0.0,
        width=10.0,
    )


@pytest.mark.full
def test_what_is_seen_of_one_pair_is_learnt_for_all_that_share_its_parameters():
    posterior = tied_belief(CHAIN, shared=True)
    learn(posterior, 0, 1, 0.0, 1)
    learn(posterior, 3, 0, 2.0, 0)
    learn(posterior, 2, 1, 2.0, 0)  # a slip
    learn(posterior, 2, 1, 2.0, 4)  # no such outcome
    assert posterior.alpha.tolist() == [[3.0, 2.0]]
    row = np.zeros(5)
    for s, a in ((4, 1), (1, 0), (2, 1)):
        assert expected(posterior, 2 * s + a, row) == posterior.paid[0, 2 * s + a, 0]
        move, slip = (min(s + 1, 4), 0) if a else (0, min(s + 1, 4))
        assert row[move] == pytest.approx(0.6)
        assert row[slip] == pytest.approx(0.4)
    p, r = np.empty((5, 2, 5, 4000)), np.empty((5, 2, 4000))
    draw(posterior, environment_stream(1, 1), p, r)
    np.testing.assert_array_equal(p[0, 1, 1], p[3, 0, 0])  # one parameter
    np.testing.assert_allclose(p.sum(axis=2), 1.0)
    assert abs(p[0, 1, 1].mean() - 0.6) < 4 * np.sqrt(0.04 / 4000)  # Beta(3, 2): variance .04; false alarms: 6e-5


def drawn(belief, n=20_000):
    """Models of a belief: `p[s,a,t,m]`, `r[s,a,m]`."""
    S, A = belief.n_states, belief.n_actions
    p, r = np.zeros((S, A, S, n)), np.zeros((S, A, n))
    draw(posterior_of(belief), seed_stream(np.array([7], np.uint64)), p, r)
    return p, r


def follows(x, mean, variance):
    """Both to within six standard errors, and one draw says nothing of the next."""
    n = len(x)
    assert abs(x.mean() - mean) < 6 * np.sqrt(variance / n)
    assert abs(x.var() - variance) < 6 * np.sqrt(((x - mean) ** 4).mean() / n)
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 6 / np.sqrt(n)


@pytest.mark.full
def test_chances_of_several_reward_values_are_drawn_for_every_model():
    values, counts = np.array([0.0, 2.0, 10.0]), np.array([0.5, 1.0, 2.5])
    _, r = drawn(DirichletBelief(2, 1, rewards=DirichletRewards(values, counts)))
    mean = counts @ values / 4.0
    for s in range(2):
        follows(r[s, 0], mean, (counts @ values**2 / 4.0 - mean**2) / 5.0)  # Dirichlet of sum 4
    assert abs(np.corrcoef(r[0, 0], r[1, 0])[0, 1]) < 6 / np.sqrt(r.shape[2])


@pytest.mark.full
def test_rows_with_more_outcomes_than_there_are_pairs_are_drawn_one_model_after_another():
    belief = DirichletBelief.tied(
        [[0], [1]], [[[0, 1, -1, -1]], [[-1, -1, 0, 1]]], [[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 3.0, 1.0]]
    )
    p, _ = drawn(belief)
    np.testing.assert_allclose(p.sum(axis=2), 1.0)
    follows(p[0, 0, 0], 1 / 3, 1 / 18)  # Beta(1, 2)
    follows(p[1, 0, 0], 3 / 4, 3 / 80)  # Beta(3, 1)


@pytest.mark.full
def test_exploit_renews_every_row_that_shares_parameters():
    setting = setting_of(CHAIN, 0.95)
    agents = []
    for shared in (True, False):
        posterior = tied_belief(CHAIN, shared)
        models = expected_model(setting.available, 0.95)
        state = State(posterior, models, *expected_prior(posterior, (5, 2)), 1)
        learns = observe_tied if posterior.tied else observe
        agents.append(CompiledAgent("tied", setting, Machine(state, reset, act, learns)))
    tied, untied = agents
    walk(CHAIN, tied)
    state, row = tied.machine.state, np.zeros(5)
    for pair in range(10):
        r = expected(state.posterior, pair, row)
        np.testing.assert_array_equal(state.models.p[pair // 2, pair % 2, :, 0], row)
        assert state.models.r[pair // 2, pair % 2, 0] == r
    totals = [play(agent, CHAIN, seed=1, runs=100, steps=200).total for agent in agents]
    gain = totals[0] - totals[1]
    assert gain.mean() > 4 * gain.std() / 10  # knowing that slips are alike earns more; false alarms: 3e-5


@pytest.mark.full
@pytest.mark.parametrize(("name", "rows"), [("tied", 1), ("semi-tied", 2)])
def test_tied_priors_count_moves_and_slips(name, rows):
    """Every move reveals whether it slipped: by hand, in the belief and in the agent."""
    from beliefbound.lab.engine.priors import PRIORS

    belief = PRIORS.find(name).build(CHAIN)
    agent = make_agent(f"exploit:prior={name}", CHAIN)
    s, a, r, t = walk(CHAIN, agent, steps=80)
    moved = np.where(a == 1, t == np.minimum(s + 1, 4), t == 0)
    np.testing.assert_array_equal(agent.machine.state.posterior.alpha, belief.update(s, a, r, t).concentration)
    for k in range(rows):
        here = np.full(80, True) if rows == 1 else a == k
        counts = [1.0 + moved[here].sum(), 1.0 + (~moved[here]).sum()]
        np.testing.assert_array_equal(agent.machine.state.posterior.alpha[k], counts)
    np.testing.assert_array_equal(agent.machine.state.posterior.paid[0, 2 * 4 + 1], [1.0, 0.2])  # on arrival


@pytest.mark.full
def test_structure_is_worth_having_and_every_model_based_agent_can_have_it():
    """The more is shared, the less there is to learn (1000 runs each would say so of every step, 40 do of the ends)."""
    totals = {
        prior: play(make_agent(f"mcbrl:n=4,prior={prior}", CHAIN), CHAIN, seed=2, runs=40, steps=200).total
        for prior in ("known-rewards", "semi-tied", "tied")
    }
    for less, more in (("known-rewards", "semi-tied"), ("known-rewards", "tied")):
        gain = totals[more] - totals[less]
        assert gain.mean() > 4 * gain.std() / np.sqrt(40)  # false alarms: 3e-5


@pytest.mark.full
def test_tied_priors_say_where_they_do_not_fit():
    with pytest.raises(ParameterError, match=r"prior=tied does not fit .*grid.* both lead to state"):
        make_agent("exploit:prior=tied", make_env("grid:3"))
    known = make_agent("exploit:prior=tied", make_env("double-loop"))  # deterministic: nothing to learn
    known.reset(1)
    np.testing.assert_array_equal(known.machine.state.models.p[..., 0], make_env("double-loop").mdp.transitions)


def test_known_rewards_take_a_concentration():
    state = make_agent("exploit:prior=known-rewards,concentration=2", RIVER).machine.state
    assert (state.posterior.alpha == 2.0).all()


def test_beliefs_that_cannot_be_used_are_refused():
    flat = DirichletBelief(5, 2, rewards=BetaRewards(low=0.0, high=10.0))
    for name in ("random", "oracle", "qlearning"):
        with pytest.raises(ParameterError, match=f"{name} learns no model .* can use no belief"):
            make_agent(name, CHAIN, belief=flat)
    for belief, message in (
        (DirichletBelief(5, 2), r"rewards do not cover .* 0 to 10; pass BetaRewards\(..., low=0, high=10\)"),
        (DirichletBelief(4, 2), "does not fit"),
        (FiniteBelief([[[[1.0]]]], [[[0.0]]]), "does not fit"),
        ("flat", "the belief is 'flat', which has no n_states; give a belief"),
    ):
        with pytest.raises(BeliefboundError, match=message):
            make_agent("mcbrl", CHAIN, belief=belief)
    with pytest.raises(BeliefboundError, match="the agent boss needs a belief that can count: "):
        make_agent("boss", CHAIN, belief=DirichletBelief(5, 2, rewards=NormalRewards()))
    for text in ("mcbrl:prior=support", "mcbrl:successes=2"):
        with pytest.raises(ParameterError, match="are two priors; keep one"):
            make_agent(text, CHAIN, belief=flat)
    with pytest.raises(
        ParameterError, match="concentration has no effect with prior=support; drop it or take prior=flat"
    ):
        make_agent("exploit:prior=support,concentration=1", CHAIN)
    with pytest.raises(ParameterError, match="no prior 'suport'; did you mean 'support'"):
        make_agent("exploit:prior=suport", CHAIN)
    with pytest.raises(ParameterError, match="was not drawn from a prior"):
        make_agent("exploit:prior=environment", CHAIN)
    with pytest.raises(ParameterError, match="GB; take a smaller environment"):
        make_agent("exploit", make_env("chain:50000"))
    box = DiscreteEnv(gymnasium.make("FrozenLake-v1"), reward_range=(0.0, 1.0))
    with pytest.raises(ParameterError, match="a black box does not show"):
        make_agent("exploit:prior=support", box, discount=0.9)
    make_agent("exploit", box, discount=0.9, belief=DirichletBelief(16, 4))


def test_rewards_that_are_random_on_a_transition_are_not_known():
    from beliefbound.lab.envs import from_outcomes

    coin = from_outcomes("coin", np.full((1, 1, 2), 0.5), np.zeros((1, 1, 2), int), np.array([[[0.0, 1.0]]]))
    with pytest.raises(ParameterError, match="several rewards for state 0, action 0, next state 0"):
        make_agent("exploit:prior=known-rewards", coin)


def test_known_rewards_are_not_learnt():
    agent = make_agent("exploit", RIVER, belief=DirichletBelief(6, 2, rewards=KnownRewards(RIVER.mdp.rewards)))
    agent.reset(1)
    before = agent.machine.state.models.r.copy()
    agent.observe(0, 0, 1.0, 0)
    np.testing.assert_array_equal(agent.machine.state.models.r, before)
