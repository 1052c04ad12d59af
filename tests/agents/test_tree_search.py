"""Agents that search trees of histories: exact values, plain twins, and what their trees say of themselves."""

import numpy as np
import pytest

from beliefbound import MDP, BetaRewards, DirichletBelief, KnownRewards
from beliefbound.agents import make_agent
from beliefbound.agents.bamcp import child_of
from beliefbound.envs import environment_from_mdp, make_env
from beliefbound.errors import BeliefboundError
from beliefbound.kernels.outcomes import step
from beliefbound.kernels.planning.held_bounds import new_optimum, optimum_from_above
from beliefbound.kernels.planning.held_models import held_models
from beliefbound.kernels.planning.held_pairs import new_pairs, value_of_pairs
from beliefbound.kernels.play import agent_stream, environment_stream
from beliefbound.kernels.random import uniform
from support.coin import coin
from support.oracles import dirichlet_value
from support.search_twins import BamcpTwin, Bfs3Twin

COIN, BELIEF = coin()
TOSS, SAFE = 0.95 / 2 + 0.95**3 * 7 / 12, 0.95 / 2 + 0.95**3 / 2  # four decisions, by hand
FOREVER = 5.695387  # Bayes-optimal without a horizon
SEARCHERS = (
    "bamcp:simulations=40",
    "bfs3:rollouts=3,width=3,depth=6",
    "sparse-sampling:samples=6",
    "branch-and-bound:n=2",
)


def searched(name, environment=COIN, belief=BELIEF, *, state=0, seed=1):
    """The state of an agent's machine after one action."""
    agent = make_agent(name, environment, belief=belief)
    agent.reset(seed)
    agent.act(state)
    return agent.machine.state


def partial_environment():
    p = np.random.default_rng(3).dirichlet(np.ones(3), size=(3, 3))
    available = np.array([[True, False, True], [True, True, True], [False, True, False]])
    rewards = np.random.default_rng(4).normal(size=(3, 3))
    return environment_from_mdp(MDP(p, rewards, initial=0, available=available), name="partial")


@pytest.mark.parametrize("environment", [make_env("chain"), partial_environment()], ids=["chain", "partial"])
def test_bamcp_equals_its_twin_step_by_step(environment):
    twin = BamcpTwin(environment, simulations=60, depth=12, c=0.7)
    agent = make_agent("bamcp:simulations=60,depth=12,c=0.7,discount=0.95", environment)
    luck = environment_stream(2, 3)
    agent.reset(agent_stream(2, 0, 3))
    twin.reset(2, 0, 3)
    s = 0
    for _ in range(25):
        a = agent.act(s)
        assert a == twin.act(s)
        np.testing.assert_allclose(agent.machine.state.tree.value[0], twin.root["q"], rtol=1e-12)
        assert agent.machine.state.tree.tries[0].tolist() == twin.root["n"]
        r, t = step(environment.outcomes, s, a, uniform(luck))
        agent.observe(s, a, r, t)
        twin.observe(s, a, r, t)
        s = int(t)


def test_bfs3_equals_its_twin_step_by_step():
    environment = make_env("chain")
    twin = Bfs3Twin(environment, rollouts=4, width=3, depth=5)
    agent = make_agent("bfs3:rollouts=4,width=3,depth=5", environment)
    agent.reset(agent_stream(2, 0, 3))
    twin.reset(2, 0, 3)
    luck, s = environment_stream(2, 3), 0
    for _ in range(6):
        a = agent.act(s)
        assert a == twin.act(s)
        np.testing.assert_allclose(agent.machine.state.upper, twin.upper, rtol=1e-12)
        np.testing.assert_allclose(agent.machine.state.lower, twin.lower, rtol=1e-12)
        r, t = step(environment.outcomes, s, a, uniform(luck))
        agent.observe(s, a, r, t)
        twin.observe(s, a, r, t)
        s = int(t)


def test_bamcp_converges_to_the_bayes_adaptive_value():
    """Returns of exploring simulations are averaged too, so it comes from below."""
    state = searched("bamcp:simulations=300000,depth=4,c=0.3")
    assert state.tree.value[0, 0] == pytest.approx(TOSS, abs=4e-3)  # a planner that ignores learning says SAFE
    assert state.tree.value[0, 1] == pytest.approx(SAFE, abs=0.02)  # tried less often


def test_a_simulation_of_bamcp_is_in_one_model():
    """After W, W has the chance 2/3; were models drawn anew below the root it would be 1/2."""
    tree = searched("bamcp:simulations=40000,depth=4,c=10").tree
    won = child_of(tree, 0, 0, 1)
    seen = np.zeros(2)
    for a in range(2):
        back = child_of(tree, won, a, 0)
        seen += [tree.visits[child_of(tree, back, 0, column)] for column in (1, 2)]
    assert abs(seen[0] / seen.sum() - 2 / 3) < 4 * np.sqrt(2 / 9 / seen.sum())  # false alarms: 6e-5
    assert seen.sum() > 2000


def shared_slip():
    """Two states, two actions, one unknown slip, shared: what is seen anywhere tells about everywhere."""
    row, arrive = [[0, 0], [0, 0]], [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]
    rewards = KnownRewards([[0.1, 0.0], [0.4, 1.0]])
    return DirichletBelief.tied(row, arrive, [[0.6, 0.9]], rewards=rewards, initial=0)


def unknown_rewards():
    """One state, two arms: rewards are all there is to learn."""
    return DirichletBelief(1, 2, rewards=BetaRewards([[1.0, 2.0]], [[1.0, 2.5]], low=0.0, high=1.0))


def on_arrival():
    rewards = np.array([[[0.0, 1.0], [0.5, 0.0]], [[0.2, 0.6], [0.0, 0.3]]])
    return DirichletBelief(2, 2, concentration=0.7, rewards=KnownRewards(rewards))


BELIEFS = {"tied": shared_slip(), "rewards": unknown_rewards(), "on arrival": on_arrival()}


def playground(belief):
    """Somewhere to make an agent for; rewards from 0 to 1."""
    S, A = belief.n_states, belief.n_actions
    mdp = MDP(np.full((S, A, S), 1.0 / S), np.full((S, A), 0.5), initial=0)
    return environment_from_mdp(mdp, reward_range=(0.0, 1.0), discount=0.9)


SEARCHES = {
    "bamcp": ("bamcp:simulations=120000,depth=3,c=0.3", lambda state: state.tree.value[0].max()),
    "bfs3": ("bfs3:rollouts=60,width=250,depth=2", lambda state: state.lower.max()),
    "sparse-sampling": ("sparse-sampling:samples=15000,depth=3", lambda state: state.tree.value[0]),
}


# All share the urn, which BAMCP tries on every kind of belief; each kind is compiled anew.
@pytest.mark.parametrize(
    ("search", "kind"), [*(("bamcp", kind) for kind in BELIEFS), ("bfs3", "tied"), ("sparse-sampling", "on arrival")]
)
def test_values_of_structured_beliefs_are_those_of_the_exact_tree(search, kind):
    belief, (name, read) = BELIEFS[kind], SEARCHES[search]
    """Three decisions; all have seen what rewards and shared rows teach."""
    exact = dirichlet_value(belief, 0, 0.9, 3)
    assert read(searched(name, playground(belief), belief)) == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("name", SEARCHERS)
def test_a_search_leaves_the_belief_as_it_was(name):
    environment = make_env("chain")
    agent = make_agent(name, environment)
    agent.reset(4)
    for s, a, r, t in ((0, 1, 0.0, 1), (1, 1, 2.0, 0), (0, 0, 2.0, 0)):
        agent.observe(s, a, r, t)
    posterior = agent.machine.state.posterior
    alpha, reward = posterior.alpha.copy(), posterior.reward.copy()
    agent.act(0)
    np.testing.assert_array_equal(posterior.alpha, alpha)
    np.testing.assert_array_equal(posterior.reward, reward)


def test_bfs3_bounds_the_tree_it_sampled():
    """Depth 3 below the first action: U keeps what four decisions leave open, L does not have it."""
    tail = 0.95**4 / 0.05
    toss, safe = np.mean(
        [
            np.column_stack([state.upper - tail, state.lower])
            for state in (searched("bfs3:rollouts=40,width=150,depth=3", seed=seed) for seed in range(12))
        ],
        axis=0,
    )
    np.testing.assert_allclose(
        toss, TOSS, atol=0.035
    )  # deviation .8 · .5 / √(12 · 150), and a bias that falls as 1/√width
    np.testing.assert_allclose(safe, SAFE, atol=0.035)
    few = searched("bfs3:rollouts=2,width=20,depth=3")
    assert (few.lower < few.upper - tail).all()  # not all was looked at


def test_sparse_sampling_values_and_chooses_as_it_should():
    state = searched("sparse-sampling:samples=20000,depth=4")
    np.testing.assert_allclose(state.tree.q[0], [TOSS, SAFE], atol=0.02)
    assert abs(state.tree.tries[0, 0] - 10000) < 4 * np.sqrt(5000)  # Thompson sampling at the root: false alarms 6e-5
    # Untried actions have the expected MDP's value, and one decision is worth its reward.
    state = searched("sparse-sampling:samples=1,depth=4")
    (untried,) = np.flatnonzero(state.tree.tries[0] == 0)
    assert state.tree.q[0, untried] == pytest.approx(SAFE)


@pytest.mark.parametrize("leaves", ["original", "mmbi", "cadp", "pairs"])
def test_branch_and_bound_brackets_the_exact_value_at_every_expansion(leaves):
    """A leaf's estimates have a deviation of about 2.3/√n: the allowance is twice that."""
    widths = []
    for expansions in (1, 2, 4, 8):
        tree = searched(f"branch-and-bound:leaves={leaves},n=1000,depth=100,expansions={expansions}").tree
        assert tree.lower[0] <= FOREVER + 0.15
        assert tree.upper[0] >= FOREVER - 0.15
        assert (tree.lower <= tree.upper + 1e-12).all()
        assert tree.upper[0] - tree.lower[0] < tree.first[1] - tree.first[0] + 0.15
        widths.append(tree.upper[0] - tree.lower[0])
    assert widths[-1] < widths[0]


def test_pairs_are_worth_what_the_exact_tree_says():
    """Two models, transitions and rewards unknown, weights ½: finer grids come down to it, all are below QMDP."""
    rng = np.random.default_rng(5)
    models = held_models(2, np.array([[True, True], [True, False]]), 0.3)
    p, r = rng.dirichlet(np.ones(2), (2, 2, 2)), rng.random((2, 2, 2))
    models.p[:], models.r[:] = np.moveaxis(p, 0, -1), np.moveaxis(r, 0, -1)
    shown = np.concatenate([p * r[..., None], p * (1.0 - r[..., None])], axis=-1)  # success and arrival, failure and …

    def value(weights, s, left):
        if left == 0:
            return 0.0
        options = []
        for a in range(2 if s == 0 else 1):
            likely = weights[:, None] * shown[:, s, a]
            following = sum(
                chance * value(likely[:, k] / chance, k % 2, left - 1) for k, chance in enumerate(likely.sum(axis=0))
            )
            options.append(weights @ r[:, s, a] + 0.3 * following)
        return max(options)

    optimum = new_optimum(2, 2, 2)
    optimum_from_above(models, optimum, 100, 1e-9)
    paid = np.array([np.ones(4), np.zeros(4)])
    values = [value_of_pairs(models, optimum, new_pairs(paid, 2, 2, grid), 100, 1e-9, 0) for grid in (3, 5, 401)]
    exact = value(np.full(2, 0.5), 0, 6)
    assert exact - 1e-9 <= values[2] <= exact + 0.3**6 / 0.7 + 1e-3
    assert values[2] <= values[1] + 1e-9 <= values[0] + 2e-9 <= optimum.mean[0].max() + 3e-9


def test_leaves_of_branch_and_bound_are_the_bounds_they_are_named_after():
    """A leaf: always safe or always toss earns ½ a pull; E max ⅝; QMDP tosses once and is then told."""
    pulls = 0.95 / (1 - 0.95**2)
    for leaves, upper in (("original", 0.625 * pulls), ("mmbi", 0.95 / 2 + 0.95**2 * 0.625 * pulls)):
        state = searched(f"branch-and-bound:n=4096,depth=300,tolerance=1e-7,expansions=1,leaves={leaves}")
        np.testing.assert_allclose(state.tree.first, [0.5 * pulls, upper], atol=0.1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bamcp:simulations=0", "simulations is 0"),
        ("bamcp:epsilon=2", "epsilon is 2.0"),
        ("bamcp:depth=0", "depth is 0"),
        ("bamcp:simulations=100000000", "simulations need .* GB"),
        ("bfs3:width=0", "width is 0"),
        ("bfs3:rollouts=1000000,depth=1000", "a tree of .* nodes needs .* GB"),
        ("sparse-sampling:samples=none", "samples is 'none'"),
        ("branch-and-bound:leaves=none", "leaves is 'none'; give one of original, mmbi, cadp, pairs"),
        ("branch-and-bound:leaves=pairs,n=1", "leaves=pairs needs two models"),
        ("branch-and-bound:sweeps=3", "sweeps has no effect with leaves=original"),
        ("branch-and-bound:n=1000000,leaves=cadp,depth=1000", "need .* GB"),
        ("branch-and-bound:expansions=100000,n=1000", "2000000 leaves at every step are 1e[+]13 operations; take"),
        ("bamcp:prior=environment", "was not drawn from a prior"),
    ],
)
def test_mistakes_are_answered(name, message):
    with pytest.raises(BeliefboundError, match=message):
        make_agent(name, make_env("chain"))
