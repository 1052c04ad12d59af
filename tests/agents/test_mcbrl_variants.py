"""MCBRL's relatives: planning with CADP, looking ahead, following the bracket's policy, hypotheses drawn once."""

import contextlib

import numpy as np
import pytest

from beliefbound import (
    MDP,
    BetaRewards,
    DirichletBelief,
    DirichletRewards,
    FiniteBelief,
    KnownRewards,
    cadp,
    mmbi,
    policy_iteration,
)
from beliefbound.agents import make_agent
from beliefbound.agents.hypotheses import best_action, planned, reweigh
from beliefbound.agents.mcbrl import DUE, PLANS, STEP
from beliefbound.agents.mcbrl_lookahead import look_ahead
from beliefbound.bounds.dirichlet.particle_policy import ParticlePolicy
from beliefbound.engine.protocol import seed_of, stream_of
from beliefbound.envs import make_env
from beliefbound.errors import BeliefboundError, ObservationError
from beliefbound.kernels.graph.alpha import look_below
from support.coin import coin

CHAIN = make_env("chain")
COIN, BELIEF = coin()


def held(state):
    """The models that an agent holds, as a finite belief; rewards scaled."""
    return FiniteBelief(
        np.moveaxis(state.core.models.p, -1, 0),
        np.moveaxis(state.core.models.r, -1, 0),
        reward_signal="unobserved",
        normalize=True,
    )


def walk(agent, steps, seed=1, environment=CHAIN):
    """Step an agent through its environment, yielding states before it acts."""
    luck, s = np.random.default_rng(seed), 0
    for _ in range(steps):
        yield s
        a = agent.act(s)
        o = int(np.searchsorted(environment.outcomes.cumulative[s, a], luck.random(), side="right"))
        t = int(environment.outcomes.next_state[s, a, o])
        agent.observe(s, a, float(environment.outcomes.reward[s, a, o]), t)
        s = t


def test_plans_of_mcbrl_cadp_are_those_of_cadp():
    agent = make_agent("mcbrl-cadp:n=5,depth=12,sweeps=50,discount=0.9,schedule=constant,interval=3", CHAIN)
    agent.reset(3)
    checked = 0
    for s in walk(agent, 30):
        plans = agent.machine.state.core.clock[PLANS]
        first = agent.act(s)  # asked twice: time goes on, and nothing else
        state = agent.machine.state
        if state.core.clock[PLANS] > plans:
            models = held(state)
            start = mmbi(models, discount=0.9, horizon=12).policy
            plan = cadp(models, discount=0.9, horizon=12, initial=s, start=start, restarts=False)
            np.testing.assert_array_equal(state.ascent.actions, plan.policy.actions)
            assert first == plan.policy.actions[0, s]
            checked += 1
    assert checked == 10


def test_mcbrl_cadp_follows_its_plan_stage_by_stage_and_plans_when_it_ends():
    agent = make_agent("mcbrl-cadp:n=3,depth=4", CHAIN)
    agent.reset(1)
    state = agent.machine.state
    for k in range(1, 14):
        a = agent.act(2)
        assert a == state.ascent.actions[(k - 1) % 4, 2]
        assert state.core.clock[PLANS] == 1 + (k - 1) // 4


def plain_look_ahead(p, r, q, best, w, available, s, discount, mix):
    """`p[m,s,a,t]`, `q[m,s,a]`, `best[m,s,a]`: from the definition."""
    totals = np.full(r.shape[2], -np.inf)
    for a in np.flatnonzero(available[s]):
        totals[a] = w @ r[:, s, a]
        for t in range(r.shape[1]):
            likely = w * p[:, s, a, t]
            lower, upper = ((likely @ x[:, t])[available[t]].max() for x in (q, best))
            totals[a] += discount * ((1 - mix) * lower + mix * upper)
    return int(totals.argmax())


def test_looking_ahead_is_what_it_says():
    agent = make_agent("mcbrl-lookahead:n=6,mix=0.8,renew=0.7", CHAIN)
    agent.reset(2)
    for s in walk(agent, 60):
        state = agent.machine.state
        if state.core.clock[STEP] == 0:
            continue
        p, r, q, best = (
            np.moveaxis(x, -1, 0)
            for x in (state.core.models.p, state.core.models.r, state.core.models.q, state.alone.q)
        )
        chosen = look_ahead(state.core.models, state.alone, state.weights, state.likely, 0.8, s)
        assert chosen == plain_look_ahead(p, r, q, best, state.weights, CHAIN.mdp.available, s, 0.95, 0.8)
        assert state.weights.sum() == pytest.approx(1.0)
    own = [policy_iteration(MDP(p[m], r[m], normalize=True), discount=0.95).values for m in range(6)]
    np.testing.assert_allclose(state.alone.q.max(axis=1).T, own, atol=0.25)  # 89 sweeps from above: .95^89 / .05
    assert (np.array(own) - 1e-9 <= state.alone.q.max(axis=1).T).all()


def test_new_models_are_drawn_when_few_of_them_fit():
    """Weights are likelihoods since the plan; `schedule=moved` has no other reason to plan."""
    agent = make_agent("mcbrl-lookahead:n=8,schedule=moved,renew=0.5,prior=known-rewards", CHAIN)
    agent.reset(5)
    state, weights, plans = agent.machine.state, None, 0
    luck, s, due = np.random.default_rng(1), 0, True
    for _ in range(300):
        a = agent.act(s)
        assert (state.core.clock[PLANS] > plans) == due
        if due:
            plans, weights = plans + 1, np.full(8, 1 / 8)
        t = int(luck.choice(5, p=CHAIN.mdp.transitions[s, a]))
        weights = weights * state.core.models.p[s, a, t]
        agent.observe(s, a, float(CHAIN.mdp.rewards[s, a]), t)
        due = not weights.sum() > 0
        if not due:
            weights = weights / weights.sum()
            np.testing.assert_allclose(state.weights, weights, atol=1e-12)
            due = 1 / (weights**2).sum() < 4
        s = t
    assert 5 < plans < 200
    assert state.core.clock[DUE] > state.core.clock[STEP]


def test_new_models_are_drawn_when_the_bracket_of_the_state_has_moved():
    """With `schedule=bracket` a plan follows a step whose bracket had moved by a quarter of its width, and no other."""
    agent = make_agent("mcbrl-lookahead:n=8,schedule=bracket,shift=0.25,prior=known-rewards", CHAIN)
    agent.reset(5)
    state, plans = agent.machine.state, 0
    luck, s, due = np.random.default_rng(1), 0, True
    for _ in range(300):
        a = agent.act(s)
        assert (state.core.clock[PLANS] > plans) == due
        plans += due
        ends = [
            (held[s] @ weights).max()
            for weights in (np.full(8, 1 / 8), state.weights)
            for held in (state.core.models.q, state.alone.q)
        ]
        due = max(abs(ends[2] - ends[0]), abs(ends[3] - ends[1])) >= 0.25 * max(ends[1] - ends[0], 1e-6)
        t = int(luck.choice(5, p=CHAIN.mdp.transitions[s, a]))
        due = due or not (state.weights * state.core.models.p[s, a, t]).sum() > 0
        agent.observe(s, a, float(CHAIN.mdp.rewards[s, a]), t)
        s = t
    assert 5 < plans < 250


def test_bracket_is_the_certified_policy_at_its_start():
    agent = make_agent("bracket:n=32", COIN, belief=BELIEF)
    for seed in range(3):
        agent.reset(seed)
        particles = seed_of(stream_of(seed))
        policy = ParticlePolicy(BELIEF, np.full(4, 0.25), 0.95, None, particles, ((0.0, 32),))
        for s, t in ((0, 1), (1, 0), (0, 2), (2, 0)):
            assert agent.act(s) == policy.act(s)
            agent.observe(s, 0, float(COIN.mdp.rewards[s, 0]), t)
            policy.observe(s, 0, None, t)


def test_bracket_counts_rewards_in_between_as_successes_so_often():
    agent = make_agent("bracket:n=8", CHAIN)
    agent.reset(1)
    for _ in range(2000):
        agent.observe(0, 0, 2.0, 0)
    counts = agent.machine.state.counts[0].reshape(2, 5)
    assert counts.sum() == 2000
    assert abs(counts[0].sum() - 400) < 4 * np.sqrt(2000 * 0.2 * 0.8)  # false alarms: 6e-5
    agent.observe(4, 1, 10.0, 4)
    assert agent.machine.state.counts[9].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]


def two_coins(discount=0.95, most=200):
    """COIN with θ ¼ or ¾: a belief is the wins minus the losses, and value iteration is exact. `(V, Q[k=0])`."""
    k = np.arange(-most, most + 1)
    chance = 1 / (1 + 3.0 ** -np.clip(k, -500, 500).astype(float))
    win = 0.25 + 0.5 * chance
    v = np.zeros(len(k))
    for _ in range(3000):
        up, down = np.append(v[1:], v[-1]), np.append(v[0], v[:-1])
        toss = discount * (win * (1 + discount * up) + (1 - win) * discount * down)
        safe = discount * (0.5 + discount * v)
        v = np.maximum(toss, safe)
    return v[most], np.array([toss[most], safe[most]])


def test_hypotheses_plan_for_learning_and_weigh_what_they_see():
    models = FiniteBelief.from_mdps([coin(theta)[0].mdp for theta in (0.25, 0.75)])
    state = planned(models, np.array(COIN.start), 0.95, 200, 4, np.random.default_rng(0))
    _, exact = two_coins()
    weights = state.weights
    given = (state.models, state.vectors, 0)
    values = np.array([look_below(*given, a, weights, state.likely, state.chosen) for a in (0, 1)])
    assert (values <= exact + 1e-9).all()  # vectors are values of policies
    np.testing.assert_allclose(values, exact, atol=2e-3)
    assert best_action(state.models, state.vectors, weights, state.likely, state.chosen, 0) == 0
    reweigh(state.models, weights, state.likely, 0, 0, 0.0, 1)
    np.testing.assert_allclose(weights, [0.25, 0.75])
    reweigh(state.models, weights, state.likely, 1, 0, 1.0, 0)
    reweigh(state.models, weights, state.likely, 0, 0, 0.0, 3)  # tossing never leads to H: nobody explains it
    np.testing.assert_allclose(weights, [0.25, 0.75])
    short = 0.95 / 2 + 0.95**3 * 0.5625  # four decisions, by hand: forever is worth more
    assert exact[0] > short


def test_hypotheses_are_drawn_from_the_prior_once_a_run():
    agent = make_agent("hypotheses:n=400,beliefs=1,rounds=1", COIN, belief=BELIEF)
    agent.reset(1)
    state = agent.machine.state
    rows = state.models.first[0, 1] - state.models.first[0, 0]
    won = int(np.flatnonzero(state.models.arrive[:rows] == 1)[0])
    theta = state.models.like[: 400 * state.models.first[0, -1]].reshape(400, -1)[:, won]
    assert abs(theta.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 400)  # false alarms: 6e-5
    before = state.models.like.copy()
    agent.observe(0, 0, 0.0, 1)
    np.testing.assert_array_equal(agent.machine.state.models.like, before)
    np.testing.assert_allclose(state.weights, theta / theta.sum())


@pytest.mark.parametrize(
    "rewards",
    [
        BetaRewards(1.0, 1.0, low=-1.0, high=3.0),
        DirichletRewards([-1.0, 0.5, 3.0]),
        KnownRewards(np.array([[0.0, 3.0], [1.0, -1.0]])),
    ],
)
def test_hypotheses_weigh_what_they_see_as_finite_beliefs_do(rewards):
    belief = DirichletBelief(2, 2, concentration=[[[1.0, 1.0], [1.0, 0.0]], [[0.5, 2.0], [1.0, 1.0]]], rewards=rewards)
    rng = np.random.default_rng(3)
    hypotheses = belief.sample(6, rng)
    state = planned(hypotheses, np.array([0.5, 0.5]), 0.9, 4, 1, rng)
    seen = [(0, 0, -1.0, 1), (1, 1, 3.0, 0), (0, 1, 0.5, 0), (1, 0, -1.0, 0), (0, 1, 3.0, 1), (0, 0, 7.0, 0)]
    for s, a, r, t in seen:
        reweigh(state.models, state.weights, state.likely, s, a, r, t)
        with contextlib.suppress(ObservationError):  # nobody explains it: the weights stay
            hypotheses = hypotheses.update(s, a, r, t)
        np.testing.assert_allclose(state.weights, hypotheses.weights, rtol=1e-12)
    assert np.ptp(state.weights) > 0.01


@pytest.mark.parametrize(
    "name", ["hypotheses:n=4,beliefs=8,rounds=1", "bracket:n=8", "mcbrl-cadp:n=2", "mcbrl-lookahead:n=2"]
)
@pytest.mark.parametrize("prior", ["support", "known-rewards", "tied"])
def test_structured_priors_are_learnt_from(name, prior):
    tied, belief = prior == "tied", None
    if tied:
        arrive = [[[0, min(s + 1, 4)], [min(s + 1, 4), 0]] for s in range(5)]
        rewards = np.array(CHAIN.mdp.rewards)
        belief = DirichletBelief.tied(np.zeros((5, 2), int), arrive, [[2.0, 1.0]], rewards=KnownRewards(rewards))
    agent = make_agent(name if tied else f"{name},prior={prior}", CHAIN, belief=belief)
    agent.reset(1)
    assert [agent.act(s) for s in walk(agent, 5)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mcbrl-cadp:depth=0", "depth is 0"),
        ("mcbrl-cadp:n=100000,depth=100000", "need .* GB"),
        ("mcbrl-cadp:warm=no", "mcbrl-cadp has no 'warm'"),
        ("mcbrl-lookahead:mix=2", "mix is 2.0"),
        ("mcbrl-lookahead:n=1,schedule=moved", "one model always fits"),
        ("mcbrl-lookahead:schedule=moved,interval=3", "interval has no effect"),
        ("mcbrl-lookahead:shift=1", "shift has no effect with schedule=linear"),
        ("hypotheses:n=0", "n is 0"),
        ("bracket:n=1", "n is 1; give a whole number from 8"),
    ],
)
def test_mistakes_are_answered(name, message):
    with pytest.raises(BeliefboundError, match=message):
        make_agent(name, CHAIN)


def test_particles_of_many_reward_values_need_room_too():
    belief = DirichletBelief(5, 2, rewards=DirichletRewards(np.linspace(0.0, 10.0, 5000)))
    with pytest.raises(BeliefboundError, match="n is 20000, .* need 32 GB; take fewer"):
        make_agent("bracket:n=20000", CHAIN, belief=belief)
    assert make_agent("bracket:n=8", CHAIN, belief=belief)
