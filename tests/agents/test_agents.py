"""Agents: twins, schedules, the protocol, and how mistakes are answered."""

import random

import gymnasium
import numpy as np
import pytest

from beliefbound import MDP, policy_iteration
from beliefbound.agents import (
    agent_parameters,
    agents,
    canonical_agent,
    check_agent,
    make_agent,
    parse_agent,
    play,
    run_episode,
)
from beliefbound.agents.mcbrl import PLANS, SWEEPS
from beliefbound.envs import DiscreteEnv, environment_from_mdp, make_env
from beliefbound.errors import BeliefboundError, ObservationError, ParameterError
from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.play import agent_stream, environment_stream
from beliefbound.kernels.random import uniform
from support.agent_twins import ExploitTwin, McbrlTwin


def partial_environment():
    """Three states, some of whose actions are not available."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), size=(3, 3))
    available = np.array([[True, False, True], [True, True, True], [False, True, False]])
    return environment_from_mdp(MDP(p, rng.normal(size=(3, 3)), initial=0, available=available), name="partial")


ENVIRONMENTS = {
    "chain": make_env("chain"),
    "riverswim": make_env("riverswim"),
    "garnet": make_env("garnet:7,3,4,seed=2"),
    "partial": partial_environment(),
}


def follow(agent, twin, environment, *, steps, seed, values):
    """Step both through one run, comparing actions and values."""
    luck = environment_stream(seed, 3)
    agent.reset(agent_stream(seed, 0, 3))
    twin.reset(seed, 0, 3)
    s = int(begin(environment.outcomes, uniform(luck)))
    for k in range(steps):
        a = agent.act(s)
        b = twin.act(s)
        tie = abs(twin.mixed[s, a] - twin.mixed[s, b]) < 1e-13  # rows never visited: NumPy's sums round otherwise
        assert a == b or tie, f"step {k}"
        np.testing.assert_allclose(values(agent.machine.state), twin.v.T, rtol=1e-12, atol=1e-12)
        r, t = step(environment.outcomes, s, a, uniform(luck))
        agent.observe(s, a, r, t)
        twin.observe(s, a, r, t)
        s = int(t)


def values_held(state):
    return state.models.odd if state.models.side[0] else state.models.even


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
@pytest.mark.parametrize("n", [1, 3, 8, 16, 29])
def test_mcbrl_equals_its_twin_step_by_step(environment, n):
    twin = McbrlTwin(environment, n, discount=0.95)
    agent = make_agent(f"mcbrl:n={n}", environment, discount=0.95)
    follow(agent, twin, environment, steps=150, seed=n, values=values_held)
    assert agent.machine.state.clock[SWEEPS] == twin.total_sweeps


def test_every_mcbrl_parameter_means_what_it_says():
    environment = make_env("chain")
    twin = McbrlTwin(environment, 5, discount=0.8, interval=4, increment=3, sweeps=3, tolerance=0.02, warm=False)
    twin.concentration = 0.7
    name = "mcbrl:n=5,interval=4,increment=3,sweeps=3,tolerance=0.02,warm=no,discount=0.8,concentration=0.7"
    follow(make_agent(name, environment), twin, environment, steps=200, seed=1, values=values_held)


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
@pytest.mark.parametrize("sweeps", [1, 4])
def test_exploit_equals_its_twin_step_by_step(environment, sweeps):
    twin = ExploitTwin(environment, discount=environment.discount, sweeps=sweeps)
    agent = make_agent(f"exploit:sweeps={sweeps}", environment)
    follow(agent, twin, environment, steps=200, seed=2, values=values_held)


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_one_model_makes_mcbrl_thompson_sampling_bit_for_bit(environment):
    for options in ("", ",schedule=constant,interval=7", ",schedule=posterior"):
        a = play(make_agent(f"mcbrl:n=1{options}", environment), environment, seed=4, runs=range(20), steps=300)
        name = f"thompson:{options[1:]}" if options else "thompson"
        b = play(make_agent(name, environment), environment, seed=4, runs=range(20), steps=300)
        np.testing.assert_array_equal(a.total, b.total)
        np.testing.assert_array_equal(a.utility, b.utility)


def planning_steps(name, steps, environment=None, watch=None):
    """The steps at which an agent draws new models."""
    environment = environment or make_env("chain")
    agent = make_agent(name, environment)
    agent.reset(1)
    luck = environment_stream(1, 0)
    s, plans, found = 0, 0, []
    for k in range(1, steps + 1):
        a = agent.act(s)
        if agent.machine.state.clock[PLANS] > plans:
            plans += 1
            found.append(k)
        r, t = step(environment.outcomes, s, a, uniform(luck))
        agent.observe(s, a, r, t)
        if watch is not None:
            watch(agent.machine.state, k, s, a)
        s = int(t)
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mcbrl:preset=paper,n=2", [1, 12, 24, 37, 51, 66, 82]),
        ("mcbrl:n=2,interval=5,increment=0", [1, 6, 11, 16, 21]),
        ("mcbrl:n=2,schedule=constant,interval=20", [1, 21, 41, 61, 81]),
        ("thompson:schedule=doubling,interval=3", [1, 4, 10, 22, 46, 94]),
        ("thompson:schedule=constant,interval=1", [1, 2, 3, 4, 5]),
    ],
)
def test_schedules_plan_at_the_documented_steps(name, expected):
    assert planning_steps(name, expected[-1]) == expected


def test_posterior_schedule_plans_when_an_expected_row_has_moved():
    """Against the definition, computed afresh from the counts at every step."""
    due, planned = [1], [None]

    def expected(state):
        alpha, (successes, failures) = state.posterior.alpha.reshape(5, 2, 5), state.posterior.reward.reshape(2, 5, 2)
        return alpha / alpha.sum(axis=-1, keepdims=True), successes / (successes + failures)

    prior = (np.full((5, 2, 5), 0.2), np.full((5, 2), 0.5))
    planned[0] = prior

    def watch(state, k, s, a):
        p, r = expected(state)
        moved = np.abs(p - planned[0][0]).sum(axis=-1) + np.abs(r - planned[0][1])
        if moved[s, a] >= 0.4:
            due.append(k + 1)
            planned[0] = (p, r)

    found = planning_steps("mcbrl:n=2,schedule=posterior,threshold=0.4", 200, watch=watch)
    assert found == [k for k in due if k <= 200]
    assert 5 < len(found) < 100


def test_the_solve_preset_sweeps_until_values_settle():
    environment = make_env("chain")
    agent = make_agent("thompson:preset=solve", environment)
    agent.reset(0)
    agent.act(0)
    state = agent.machine.state
    assert 100 < state.clock[SWEEPS] < 1000
    mdp = MDP(state.models.p[..., 0], state.models.r[..., 0])
    np.testing.assert_allclose(values_held(state)[:, 0], policy_iteration(mdp, discount=0.95).values, atol=2e-5)
    assert canonical_agent("mcbrl:preset=solve,n=4") == "mcbrl:n=4,sweeps=1000,tolerance=1e-06"


def test_qlearning_follows_its_formulas():
    environment = make_env("chain")
    agent = make_agent("qlearning:epsilon=0,step=0.5,power=1,optimism=0.5,discount=0.5", environment)
    agent.reset(0)
    assert agent.act(0) == 0
    agent.observe(0, 0, 10.0, 1)  # Q starts at 0.5 / (1 − 0.5) = 1: target 1 + 0.5·1, step 0.5
    assert agent.machine.state.q[0, 0] == 1.25
    agent.observe(0, 0, 0.0, 1)  # target 0.5, step 0.5 / 2
    assert agent.machine.state.q[0, 0] == 1.25 - 0.25 * 0.75
    agent.observe(0, 0, 0.0, 0)  # step 0.5 / 3, target 0.5 max(1.0625, 1)
    assert agent.machine.state.q[0, 0] == pytest.approx(1.0625 - 0.5 / 3 * 0.53125)


def test_exploration_of_qlearning_decays():
    environment = make_env("chain")
    agent = make_agent("qlearning:epsilon=1,decay=0.1", environment)
    agent.reset(3)
    actions = np.array([agent.act(0) for _ in range(4000)])  # nothing observed: greedy is 0
    chance = 1 / (1 + 0.1 * np.arange(4000)) / 2
    for part in (slice(0, 40), slice(40, 4000)):
        mean, deviation = chance[part].sum(), np.sqrt((chance[part] * (1 - chance[part])).sum())
        assert abs(actions[part].sum() - mean) < 4 * deviation  # false alarms: 6e-5 each


def test_random_chooses_available_actions_equally_often():
    environment = partial_environment()
    agent = make_agent("random", environment)
    agent.reset(0)
    counts = np.bincount([agent.act(0) for _ in range(4000)], minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 2000) < 4 * np.sqrt(1000)  # false alarms: 6e-5


SEARCHES = ("bamcp", "bfs3", "bracket", "branch-and-bound", "hypotheses", "sparse-sampling")  # milliseconds a step
# Without `policy`, which needs a file. First what takes longest to compile: test_play.py, beside it, comes to it late.
MADE_BY_NAME = sorted((name for name in agents() if name != "policy"), key="branch-and-bound".__ne__)


VARIANTS = [
    "mcbrl:n=3,schedule=posterior",
    "mcbrl:n=9,warm=no,schedule=doubling",
    "sboss:copies=fixed,k=2",
    "psrl:episodes=fixed,tau=5",
    "bayes-q:choose=sample,update=moment",
    "vpi:k=3,variant=importance",
    "vpi:k=3,variant=repair",
    "vpi:k=3,variant=local",
]


@pytest.mark.parametrize("name", [*MADE_BY_NAME, *VARIANTS])
def test_every_agent_keeps_the_protocol(name):
    bandits = [make_env("bandit:3,seed=1"), make_env("bandit:means=0/1")]
    on, steps = bandits if name == "gittins" else (), 12 if name in SEARCHES else 60
    check_agent(lambda environment: make_agent(name, environment), on=on, steps=steps)


class Plain:
    """A little agent of one's own; the class attributes break it in various ways."""

    counter = 0

    def __init__(self, environment):
        self.n = environment.n_actions
        self.available = environment.mdp.available

    def reset(self, seed):
        self.rng = np.random.default_rng(seed)

    def act(self, state):
        return int(self.rng.choice(np.flatnonzero(self.available[state])))

    def observe(self, state, action, reward, next_state):
        pass


def broken(**methods):
    return type("Broken", (Plain,), methods)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (broken(act=lambda self, state: self.n), "actions run from 0 to"),
        (broken(act=lambda self, state: 0.5), "chose 0.5 in state 0; an action is a whole number"),
        (broken(act=lambda self, state: 0), "does not offer it"),
        (broken(reset=lambda self, seed: setattr(self, "rng", np.random.default_rng())), "after a reset"),
        (
            broken(reset=lambda self, seed: self.__dict__.setdefault("rng", np.random.default_rng(seed))),
            "after a reset",
        ),
        (broken(reset=lambda self, seed: setattr(self, "rng", np.random.default_rng(id(self)))), "two agents|at step"),
        (
            broken(
                reset=lambda self, seed: (random.seed(seed), Plain.reset(self, seed)),
            ),
            "global random generator",
        ),
        (lambda environment: object(), "must have the methods"),
    ],
)
def test_check_agent_says_what_is_wrong(factory, message):
    check_agent(Plain)
    with pytest.raises(AssertionError, match=message):
        check_agent(factory)


def test_names_have_one_canonical_form():
    assert (
        canonical_agent("mcbrl") == canonical_agent(" mcbrl : n = 16 ") == canonical_agent("mcbrl:16") == "mcbrl:n=16"
    )
    assert canonical_agent("mcbrl:tolerance=1e-3,interval=20,n=8") == "mcbrl:n=8,interval=20"
    assert canonical_agent("exploit:preset=paper") == canonical_agent("exploit:sweeps=1") == "exploit"
    assert canonical_agent("qlearning:epsilon=.2") == "qlearning:epsilon=0.2"
    for name in MADE_BY_NAME:
        assert canonical_agent(canonical_agent(name)) == canonical_agent(name)
        assert all(agent_parameters(name).values())
    assert parse_agent("mcbrl:n=4").values["n"] == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mcbr", "no agent 'mcbr'; did you mean 'mcbrl'"),
        ("thomson", "did you mean 'thompson'"),
        ("mcbrl:", "nothing follows the colon"),
        ("mcbrl:16,sometimes", "schedule is 'sometimes'; give one of constant, linear"),
        ("mcbrl:n=16,linear", "'linear' comes after a key=value"),
        ("mcbrl:sweps=3", "no 'sweps'; did you mean 'sweeps'"),
        ("mcbrl:n=0", "n is 0; give a whole number from 1"),
        ("mcbrl:n=2.5", "n is '2.5'; give a whole number"),
        ("mcbrl:n=2,n=3", "n is given twice"),
        ("mcbrl:schedule=linaer", "did you mean 'linear'"),
        ("mcbrl:interval=0", "interval is 0"),
        ("mcbrl:schedule=posterior,interval=5", "interval has no effect with schedule=posterior"),
        ("mcbrl:threshold=0.1", "threshold has no effect with schedule=linear"),
        ("mcbrl:concentration=0", "concentration is 0.0; give a number above 0"),
        ("mcbrl:tolerance=nan", "tolerance is nan"),
        ("mcbrl:discount=1", "discount is 1.0"),
        ("mcbrl:preset=papr", "did you mean 'paper'"),
        ("exploit:n=3", "exploit has no 'n'"),
        ("random:n=3", "random has no 'n'"),
        ("qlearning:epsilon=1.5", "epsilon is 1.5; give a number from 0 to 1"),
        ("qlearning:step=0", "step is 0.0"),
        (16, "give a name such as"),
    ],
)
def test_bad_names_and_parameters_are_answered(name, message):
    with pytest.raises(ParameterError, match=message):
        make_agent(name, make_env("chain"))


def test_bad_settings_and_observations_are_answered():
    chain = make_env("chain")
    with pytest.raises(ParameterError, match="discount is 1.0"):
        make_agent("exploit", chain, discount=1.0)
    with pytest.raises(ParameterError, match="give make_env"):
        make_agent("exploit", "chain")
    with pytest.raises(ParameterError, match="need .* GB"):
        make_agent("mcbrl:n=1000000", make_env("garnet:100,2,2"))
    agent = make_agent("exploit", chain)
    with pytest.raises(ObservationError, match="act before reset"):
        agent.act(0)
    with pytest.raises(ObservationError, match="observe before reset"):
        agent.observe(0, 0, 0.0, 0)
    for seed in (-1, 2**63, 0.5, np.zeros(4, np.uint64)):
        with pytest.raises(BeliefboundError, match="seed|stream"):
            agent.reset(seed)
    agent.reset(0)
    for call, message in (
        (lambda: agent.act(5), "ids run from 0 to 4"),
        (lambda: agent.observe(0, 2, 0.0, 0), "ids run from 0 to 1"),
        (lambda: agent.observe(0, 0, 11.0, 0), "reward 11.0, seen in state 0 after action 0, is outside"),
        (lambda: agent.observe(0, 0, float("nan"), 0), "outside the declared range"),
    ):
        with pytest.raises(ObservationError, match=message):
            call()


def test_agents_play_gymnasium_environments_of_others():
    env = DiscreteEnv(gymnasium.make("FrozenLake-v1", is_slippery=False), reward_range=(0.0, 1.0))
    agent = make_agent("mcbrl:n=4", env, discount=0.9)
    lengths = [len(run_episode(agent, env, steps=100, seed=1, run=k, reset=k == 0).actions) for k in range(5)]
    assert all(1 <= length <= 100 for length in lengths)
    with pytest.raises(ParameterError, match="oracle must know the MDP"):
        make_agent("oracle", env, discount=0.9)
    with pytest.raises(ParameterError, match="no discount of its own"):
        make_agent("exploit", env)
    with pytest.raises(ParameterError, match="reward_range"):
        make_agent("exploit", DiscreteEnv(gymnasium.make("FrozenLake-v1")), discount=0.9)
