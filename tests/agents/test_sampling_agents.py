"""BOSS, SBOSS, Wyatt's selection and PSRL: plain twins, solvers against value iteration, and the facts that tell right
implementations from wrong ones."""

import math

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from beliefbound import MDP, BetaRewards, DirichletBelief, KnownRewards, policy_iteration
from beliefbound.agents import canonical_agent, make_agent
from beliefbound.agents.boss import DUE, PLANS
from beliefbound.agents.psrl import EPISODES
from beliefbound.agents.sboss import movement
from beliefbound.envs import environment_from_mdp, make_env
from beliefbound.errors import ParameterError
from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.planning.merged_models import merged_models, solve_merged
from beliefbound.kernels.planning.sampled_models import greedy, sampled_models, solve_each, start_lowest
from beliefbound.kernels.play import agent_stream, environment_stream
from beliefbound.kernels.random import uniform
from support.coin import coin
from support.oracles import optimal_values
from support.sampling_twins import BossTwin, SbossTwin

CHAIN = make_env("chain")


def partial_environment():
    """Three states, some of whose actions are not available."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), size=(3, 3))
    available = np.array([[False, True, True], [True, True, True], [False, True, False]])
    return environment_from_mdp(MDP(p, rng.normal(size=(3, 3)), initial=0, available=available), name="partial")


def walk(agent, environment, steps, *, seed=7, twin=None, watch=None):
    """One run by hand; the twin, if there is one, acts alike."""
    luck = environment_stream(seed, 3)
    agent.reset(agent_stream(seed, 0, 3))
    if twin is not None:
        twin.reset(seed, 0, 3)
    s, actions = int(begin(environment.outcomes, uniform(luck))), []
    for k in range(steps):
        a = agent.act(s)
        if twin is not None:
            assert a == twin.act(s), f"step {k}"
        if watch is not None:
            watch(k)
        r, t = step(environment.outcomes, s, a, uniform(luck))
        agent.observe(s, a, r, t)
        if twin is not None:
            twin.observe(s, a, r, t)
        actions.append(a)
        s = int(t)
    return actions


@pytest.mark.parametrize("environment", [CHAIN, partial_environment()], ids=["chain", "partial"])
@pytest.mark.parametrize(
    ("name", "make_twin"),
    [
        ("boss:k=3,b=4", lambda e: BossTwin(e, 3, 4)),
        ("sboss:epsilon=0.02,delta=1.5", lambda e: SbossTwin(e, 0.02, 1.5)),
    ],
)
def test_agents_equal_their_twins_step_by_step(name, make_twin, environment):
    agent, twin = make_agent(name, environment), make_twin(environment)

    def watch(k):
        np.testing.assert_allclose(agent.machine.state.models.v[:, 0], twin.v, rtol=1e-9, err_msg=f"step {k}")

    walk(agent, environment, 60, twin=twin, watch=watch)
    assert agent.machine.state.clock[PLANS] == twin.plans > 3


@pytest.mark.parametrize("name", ["boss", "sboss", "wyatt", "psrl", "psrl:episodes=fixed,tau=1", "vpi", "pac-bayes"])
def test_plans_allocate_nothing(name):
    """A step with a plan allocates what a step without one does: what it takes to hand over the state."""
    _nrt_python.memsys_enable_stats()
    agent = make_agent(name, CHAIN)
    made = []
    for planned in (True, False):
        agent.reset(0)
        agent.act(0)
        agent.observe(0, 0, 2.0, 0)
        state = agent.machine.state
        if name.startswith("psrl"):
            state.clock[EPISODES] = 0 if planned else 1
            state.clock[1] = 0
        elif name == "wyatt":
            state.clock[0] = 0 if planned else 5
        else:
            state.clock[DUE] = int(planned)
        before = rtsys.get_allocation_stats().alloc
        agent.act(0)
        made.append(rtsys.get_allocation_stats().alloc - before)
    assert made[0] == made[1] > 0


def two_in_a_row():
    """Two states to pass, two models: one passes the first and not the second, the other the reverse."""
    p = np.zeros((2, 4, 1, 4))
    p[:, 2:, 0, 3] = 1.0  # state 2 pays and leads to the end
    p[0, 0, 0, 1] = p[0, 1, 0, 3] = 1.0
    p[1, 0, 0, 3] = p[1, 1, 0, 2] = 1.0
    r = np.zeros((2, 4, 1))
    r[:, 2] = 1.0
    return p, r


def merge(p, r, copies=None, discount=0.9):
    """The merged optimum of models `p[k,s,a,t]`, `r[k,s,a]`."""
    K, S, A, _ = p.shape
    models = merged_models(K, S, A, discount)
    models.p[:], models.r[:] = np.moveaxis(p, 0, -1), np.moveaxis(r, 0, -1)
    models.copies[:] = K if copies is None else copies
    solve_merged(models)
    return models


def test_the_merged_mdp_mixes_rows_of_different_models():
    p, r = two_in_a_row()
    assert merge(p, r).v[0, 0] == pytest.approx(0.81)  # each model alone pays 0 from the start
    assert merge(p[:1], r[:1]).v[0, 0] == merge(p[1:], r[1:]).v[0, 0] == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_the_merged_optimum_is_that_of_value_iteration_with_all_actions(seed):
    rng = np.random.default_rng(seed)
    K, S, A = rng.integers(1, 6), rng.integers(1, 7), rng.integers(1, 4)
    p, r = rng.dirichlet(np.full(S, 0.3), size=(K, S, A)), rng.random((K, S, A))
    copies = rng.integers(0, K + 1, size=(S, A))
    copies[:, -1] = np.maximum(1, copies[:, -1])
    models = merge(p, r, copies)
    wide_p, wide_r = np.moveaxis(p, 0, 2).reshape(S, A * K, S), np.moveaxis(r, 0, 2).reshape(S, A * K)
    offered = (np.arange(K) < copies[:, :, None]).reshape(S, A * K)
    v = np.zeros(S)
    for _ in range(400):
        q = np.where(offered, wide_r + 0.9 * wide_p @ v, -np.inf)
        v = q.max(axis=1)
    np.testing.assert_allclose(models.v[:, 0], v, rtol=1e-11)
    np.testing.assert_array_equal(models.actions, q.argmax(axis=1) // K)
    whole = merge(p, r)
    for k in range(K):  # never below what one model promises
        assert (whole.v[:, 0] >= merge(p[k : k + 1], r[k : k + 1]).v[:, 0] - 1e-12).all()


def test_models_are_solved_each_on_its_own():
    rng = np.random.default_rng(1)
    available = np.array([[True, True, True], [False, True, False], [False, True, True], [True, False, True]])
    models = sampled_models(5, available, 0.9)
    models.p[:] = np.moveaxis(rng.dirichlet(np.ones(4), size=(4, 3, 5)), 3, 2)
    models.r[:] = rng.random((4, 3, 5))
    start_lowest(models.policy, models.available)
    solve_each(models)
    for m in range(5):
        v = optimal_values(models.p[None, ..., m], models.r[None, ..., m], 0.9, 400, available)[0][0]
        np.testing.assert_allclose(models.v[:, m], v, rtol=1e-10)
        q = np.where(available, models.r[..., m] + 0.9 * models.p[..., m] @ v, -np.inf)
        assert [greedy(models, s, m) for s in range(4)] == q.argmax(axis=1).tolist()


def test_equal_actions_are_ties_and_go_to_the_lowest():
    p = np.tile(np.random.default_rng(2).dirichlet(np.ones(3), size=(3, 1)), (1, 1, 3, 1))
    r = np.tile(np.random.default_rng(3).random((1, 3, 1)), (1, 1, 3))
    assert merge(p, r).actions.tolist() == [0, 0, 0]
    models = sampled_models(1, np.array([[False, True, True]] * 3), 0.95)
    models.p[:], models.r[:] = np.moveaxis(p, 0, -1), np.moveaxis(r, 0, -1)
    models.policy[:] = 2
    solve_each(models)
    assert [greedy(models, s, 0) for s in range(3)] == [1, 1, 1]


def test_boss_plans_when_a_pair_becomes_known_and_only_then():
    agent = make_agent("boss:k=2,b=3", CHAIN)
    agent.reset(0)
    plans = []
    for _ in range(6):
        agent.act(0)
        agent.observe(0, 0, 2.0, 0)
        plans.append(int(agent.machine.state.clock[PLANS]))
    assert plans == [1, 1, 1, 2, 2, 2]


def share_of_coin(name, *, seeds=2000, seen=()):
    """How often an agent's first action on the coin is `coin`, after having seen its outcomes."""
    environment, belief = coin()
    agent = make_agent(name, environment, discount=0.95, belief=belief)
    first = 0
    for seed in range(seeds):
        agent.reset(seed)
        for t in seen:
            agent.observe(0, 0, 0.0, t)
        first += agent.act(0) == 0
    return first / seeds


@pytest.mark.parametrize(
    ("name", "chance"),
    [
        ("boss:k=1,b=5", 1 / 2),  # Thompson sampling
        ("boss:k=3,b=5", 1 - 2**-3),
        ("sboss:epsilon=0.02", 1 - 2**-5),  # a variance of 1/12: five copies
        ("wyatt:n=1", 1 / 2),
        ("wyatt:n=4", 1 - 2**-4),
        ("psrl", 1 / 2),
        ("psrl:episodes=fixed,tau=4", 1 / 2),
    ],
)
def test_the_coin_is_tried_as_often_as_a_sample_likes_it(name, chance):
    deviation = math.sqrt(chance * (1 - chance) / 2000)
    assert abs(share_of_coin(name) - chance) < 4 * deviation  # false alarms: 6e-5 each


def test_after_one_head_thompson_likes_the_coin_with_probability_three_quarters():
    """P(θ > ½) under Beta(2, 1)."""
    assert abs(share_of_coin("psrl", seen=[1]) - 0.75) < 4 * math.sqrt(0.75 * 0.25 / 2000)


def test_sboss_draws_again_at_the_third_equal_outcome():
    law = np.array([1.0, 1.0])
    moved = [movement(law, law + np.array([k, 0.0])) for k in (1, 2, 3)]
    assert moved == pytest.approx([math.sqrt(12) * k / (k + 2) for k in (1, 2, 3)])  # 1.15, 1.73, 2.08
    environment, belief = coin()
    agent = make_agent("sboss:delta=2", environment, belief=belief)
    agent.reset(0)
    plans = []
    for _ in range(4):
        agent.act(0)
        agent.observe(0, 0, 0.0, 1)
        plans.append(int(agent.machine.state.clock[PLANS]))
    agent.observe(0, 1, 0.0, 3)  # a row that is known does not move
    assert plans == [1, 1, 1, 2]


@pytest.mark.parametrize(("counts", "copies"), [(1.0, 9), (10.0, 2)])
def test_sboss_takes_as_many_samples_as_the_variance_asks_for(counts, copies):
    environment, belief = coin(heads=counts, tails=counts)
    agent = make_agent("sboss:epsilon=0.01", environment, belief=belief)
    agent.reset(0)
    agent.act(0)
    assert agent.machine.state.models.copies.tolist() == [[copies, 1]] + [[1, 1]] * 3


def test_sboss_learns_rewards_where_only_they_are_unknown():
    """One state: without rewards in the rule, it would plan once and never again."""
    environment = make_env("bandit:means=0.2/0.9")
    agent = make_agent("sboss", environment)
    assert sum(walk(agent, environment, 200)[100:]) > 90


def tied_chain():
    """One slip for every pair of the chain, rewards known."""
    S = CHAIN.n_states
    arrive = np.array([[[0, min(s + 1, S - 1)], [min(s + 1, S - 1), 0]] for s in range(S)])
    return DirichletBelief.tied(
        np.zeros((S, 2), int), arrive, [[1.0, 1.0]], rewards=KnownRewards(CHAIN.mdp.rewards), initial=0
    )


@pytest.mark.parametrize(
    "name", ["boss:k=4,b=3", "sboss:epsilon=0.01", "wyatt:n=3", "psrl", "vpi:k=3", "vpi:k=3,variant=repair"]
)
def test_tied_rows_of_one_model_come_from_one_draw(name):
    agent = make_agent(name, CHAIN, belief=tied_chain())
    actions = walk(agent, CHAIN, 200)
    p = agent.machine.state.models.p  # [s,a,t,m]
    used = 1 if name.startswith("sboss") else p.shape[3]
    slips = np.stack([p[s, a, s + 1 if a == 0 else 0, :used] for s in range(4) for a in range(2)])
    np.testing.assert_allclose(slips, np.tile(slips[:1], (8, 1)), rtol=1e-12)
    assert slips.min() > 0.01
    assert slips.max() < 0.45  # .2 in truth
    assert np.mean(actions[20:]) > 0.8  # forward, once the slip is known


@pytest.mark.parametrize("name", ["boss", "sboss", "wyatt", "psrl", "vpi", "pac-bayes"])
def test_what_the_belief_rules_out_stays_out(name):
    """Support of the environment, rewards of a finite number of values on arrival: any posterior will do."""
    environment, belief = coin(heads=2.0, tails=3.0)
    agent = make_agent(name, environment, belief=belief)
    walk(agent, environment, 30)
    p = agent.machine.state.models.p[..., 0]
    assert not p[belief.concentration == 0.0].any()
    np.testing.assert_allclose(p.sum(axis=2), 1.0)
    np.testing.assert_allclose(agent.machine.state.models.r[..., 0], environment.mdp.rewards)


@pytest.mark.parametrize("name", ["psrl", "psrl:episodes=fixed,tau=300", "wyatt", "boss"])
def test_who_knows_the_model_plays_optimally(name):
    """A prior that is as good as a point: regret 0."""
    river = make_env("riverswim")
    belief = DirichletBelief(6, 2, concentration=1e14 * river.mdp.transitions, rewards=KnownRewards(river.mdp.rewards))
    agent = make_agent(name, river, belief=belief, discount=0.99)
    agent.reset(0)
    best = policy_iteration(river.mdp, discount=0.99).policy.actions.tolist()
    assert best == [1] * 6
    assert [agent.act(s) for s in range(6)] == best


def test_psrl_begins_episodes_when_a_count_has_doubled():
    """One state, one action: at steps 1, 2, 3, 5, 9, …; or every τ steps."""
    single = environment_from_mdp(MDP(np.ones((1, 1, 1)), [[0.5]], initial=0), name="one", reward_range=(0.0, 1.0))
    for name, expected in (("psrl", [1, 2, 3, 5, 9, 17]), ("psrl:episodes=fixed,tau=7", [1, 8, 15])):
        agent = make_agent(name, single)
        began, counted = [], []
        walk(agent, single, 20, watch=lambda k, a=agent, c=counted: c.append(int(a.machine.state.clock[EPISODES])))
        began = [k + 1 for k, count in enumerate(counted) if k == 0 or count > counted[k - 1]]
        assert began == expected


def test_wyatt_follows_the_model_that_promises_most_until_the_next_plan():
    agent = make_agent("wyatt:n=5,interval=3", CHAIN)
    agent.reset(1)
    state = agent.machine.state
    for k in range(7):
        before = state.models.p.copy()
        a = agent.act(2)
        assert (state.models.p != before).any() == (k % 3 == 0)
        if k % 3 == 0:
            assert state.clock[1] == state.models.v[2].argmax()
        m = state.clock[1]
        mdp = MDP(state.models.p[..., m], state.models.r[..., m])
        assert a == policy_iteration(mdp, discount=CHAIN.discount).policy.actions[2]
        agent.observe(2, a, 0.0, 3)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("boss:k=0", "k is 0; give a whole number from 1"),
        ("boss:b=0", "b is 0; give a whole number from 1"),
        ("sboss:epsilon=0", "epsilon is 0.0; give a number above 0"),
        ("sboss:k=4", "k has no effect with copies=local"),
        ("sboss:copies=fixed,epsilon=0.1", "epsilon has no effect with copies=fixed"),
        ("sboss:epsilon=1e-9", "epsilon is 1e-09: .* models .* need .* GB; take a larger one"),
        ("boss:k=1048576,prior=flat", "k is 1048576: .* GB; take fewer"),
        ("wyatt:interval=0", "interval is 0"),
        ("psrl:tau=5", "tau has no effect with episodes=doubling"),
        ("psrl:episodes=sometimes", "give one of doubling, fixed"),
        ("vpi:backups=3", "backups has no effect with variant=global"),
        ("vpi:variant=best", "give one of global, importance, repair, local"),
        ("bayes-q:shape=1", "shape is 1.0"),
        ("bayes-q:prior=flat", "bayes-q has no 'prior'"),
        ("pac-bayes:delta=0", "delta is 0.0"),
    ],
)
def test_bad_parameters_are_answered(name, message):
    environment = make_env("garnet:40,3,4") if "1048576" in name or "1e-9" in name else CHAIN
    with pytest.raises(ParameterError, match=message):
        make_agent(name, environment)


def test_published_settings_are_presets():
    assert canonical_agent("boss:preset=recalled") == "boss:k=5,b=10"
    assert canonical_agent("boss") == "boss:k=20,b=5"
    assert canonical_agent("sboss:preset=guez") == "sboss:copies=fixed"


def test_rewards_on_any_belief_with_counts():
    """Beta rewards in a range of their own."""
    belief = DirichletBelief(5, 2, rewards=BetaRewards(2.0, 5.0, low=0.0, high=10.0))
    agent = make_agent("boss:k=4000,b=1", CHAIN, belief=belief)
    agent.reset(0)
    agent.act(0)
    drawn = agent.machine.state.models.r
    assert abs(drawn.mean() - 2 / 7) < 4 * math.sqrt(2 * 5 / (49 * 8) / drawn.size)
