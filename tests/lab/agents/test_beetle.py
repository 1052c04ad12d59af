"""BEETLE: expectations of monomials, the projection, backups against the exact tree, and what it earns."""

import math

import numpy as np
import pytest

from beliefbound import DirichletBelief, KnownRewards
from beliefbound.base.errors import ParameterError
from beliefbound.beliefs.compiled import posterior_of
from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.play import environment_stream
from beliefbound.kernels.random import seed_stream, uniform
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.agents.beetle import (
    BackupInputs,
    add,
    backup,
    best_function,
    clipped,
    first_pool,
    new_pool,
    plan,
    problem_of,
    scratch_for,
    sweep,
)
from beliefbound.lab.agents.common.monomials import Points, choose_basis, log_expectations, projection_of, unknowns_of
from beliefbound.lab.envs import make_env
from support.coin import coin
from support.environments import CHAIN
from support.every_agent import EveryAgent
from support.oracles import dirichlet_value
from support.planned_twins import BeetleTwin

SMALL = "points=60,basis=12,length=16,sweeps=15"


class TestBeetle(EveryAgent):
    name = "beetle"
    mistakes = (
        ("beetle:points=1", "points is 1"),
        ("beetle:basis=0", "basis is 0"),
        ("beetle:ridge=-1", "ridge is -1.0"),
        ("beetle:seed=0.5", "seed is '0.5'"),
        ("beetle:prior=nothing", "no prior 'nothing'"),
    )


def of_belief(belief, discount):
    return unknowns_of(posterior_of(belief), np.ones((belief.n_states, belief.n_actions), bool), discount)


def histories(unknowns, steps):
    """Every belief after at most so many steps from any state, in every state: points without their expectations."""
    n_states, n_actions = unknowns.available.shape
    layers = [{(s, unknowns.prior.tobytes()) for s in range(n_states)}]
    for _ in range(steps):
        after = set()
        for s, raw in layers[-1]:
            for a in range(n_actions):
                pair = s * n_actions + a
                for j in np.flatnonzero(unknowns.arrive[pair] >= 0):
                    for k in range(len(unknowns.paid)):
                        counts = np.frombuffer(raw).reshape(unknowns.prior.shape).copy()
                        counts[unknowns.row[pair], j] += 1.0
                        if len(unknowns.paid) > 1:
                            counts[unknowns.n_rows + pair, k] += 1.0
                        after.add((int(unknowns.arrive[pair, j]), counts.tobytes()))
        layers.append(after)
    found = sorted(set().union(*layers))
    counts = np.array([np.frombuffer(raw).reshape(unknowns.prior.shape) for _, raw in found])
    return Points(np.array([s for s, _ in found]), counts, np.zeros((len(found), 0)))


def value_after_backups(unknowns, steps, s):
    """Values of the prior in state s after backups at every point, `steps` times, from 0: no sweep, no cuts."""
    problem = problem_of(unknowns, histories(unknowns, steps), size=10**6, ridge=1e-22)
    problem = BackupInputs(*problem[:4], math.inf)
    pool, scratch = first_pool(problem), scratch_for(problem)
    for _ in range(steps):
        after = new_pool(problem)
        for n, state in enumerate(problem.points.state):
            add(after, state, backup(problem, pool, n, scratch), scratch.out)
        pool = after
    return best_function(pool, s, problem.basis.start)[1]


def test_backups_are_the_exact_tree_on_the_coin():
    """Two pulls: 13/12 undiscounted, and .975135 at .95."""
    _, belief = coin()
    for discount, value in ((1.0, 13 / 12), (0.95, 0.475 + 0.95**3 * 7 / 12)):
        assert value_after_backups(of_belief(belief, discount), 4, 0) == pytest.approx(value, abs=1e-9)


def two_states(rewards=None):
    concentration = [[[0.5, 1.0], [2.0, 0.3]], [[0.7, 0.7], [0.2, 1.5]]]
    return DirichletBelief(2, 2, concentration=concentration, rewards=rewards or KnownRewards([[0.0, 0.3], [1.0, 0.1]]))


@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_backups_are_the_exact_tree(horizon):
    belief = two_states()
    for s in range(2):
        found = value_after_backups(of_belief(belief, 0.9), horizon, s)
        assert found == pytest.approx(dirichlet_value(belief, s, 0.9, horizon), abs=1e-7)


def test_backups_with_rewards_to_learn_and_with_tied_rows_are_the_exact_tree():
    from beliefbound import BetaRewards

    learnt = two_states(BetaRewards([[1.0, 2.0], [0.5, 1.0]], [[3.0, 1.0], [0.5, 2.0]]))
    assert value_after_backups(of_belief(learnt, 0.9), 2, 0) == pytest.approx(
        dirichlet_value(learnt, 0, 0.9, 2), abs=1e-7
    )
    paid = np.zeros((2, 2, 2))
    paid[:, :, 1] = [[1.0, 0.2], [0.6, 0.4]]  # on arrival
    shared = DirichletBelief.tied(
        [[0, 1], [1, 0]], [[[0, 1], [1, 0]], [[0, 1], [1, 0]]], [[1.0, 2.0], [0.5, 0.5]], rewards=KnownRewards(paid)
    )
    assert value_after_backups(of_belief(shared, 0.9), 3, 1) == pytest.approx(
        dirichlet_value(shared, 1, 0.9, 3), abs=1e-8
    )


def test_the_projection_of_a_square():
    """θ² on {1, θ}, exact at Beta(1, 1) and Beta(2, 1): θ − 1/6, so .58333 at Beta(3, 1) where θ² has .6."""
    _, belief = coin()
    unknowns = of_belief(belief, 1.0)
    counts = np.stack([unknowns.prior] * 3)
    counts[1, 0, 1] += 1
    counts[2, 0, 1] += 2
    points, basis = choose_basis(unknowns, Points(np.zeros(2, int), counts[:2], np.zeros((2, 0))), 2)
    projection = projection_of(unknowns, points, basis, 0.0)
    theta = np.linalg.solve(points.phi, [1 / 2, 2 / 3])  # coefficients of θ itself
    square = projection.times[projection.cell[0, 0, 1]] @ theta
    np.testing.assert_allclose(points.phi @ square, [1 / 3, 1 / 2], rtol=1e-12)
    powers = np.moveaxis(basis.powers, -1, 0)
    at = np.exp(log_expectations(counts, powers))
    scale = points.phi[0] / at[0]
    assert (at[2] * scale) @ square == pytest.approx(7 / 12, rel=1e-12)
    second = np.zeros_like(powers[:1])
    second[0, 0, 1] = 2
    assert np.exp(log_expectations(counts, second)[:, 0]) == pytest.approx([1 / 3, 1 / 2, 3 / 5])


@pytest.mark.parametrize("prior", ["flat", "known-rewards", "semi-tied"])
def test_expectations_on_line_are_those_of_the_belief(prior):
    """After a walk, fractional rewards and impossible transitions among what was seen."""
    agent = make_agent(f"beetle:{SMALL},prior={prior}", CHAIN)
    agent.reset(1)
    rng = np.random.default_rng(4)
    for _ in range(50):
        s, a, t = (int(x) for x in rng.integers([5, 2, 5]))
        agent.observe(s, a, float(rng.choice([0.0, 2.0, 10.0])), t)
    state = agent.machine.state
    counts = np.zeros(state.basis.powers.shape[:2])
    rows, outcomes = state.posterior.alpha.shape
    counts[:rows, :outcomes] = state.posterior.alpha
    if len(state.posterior.reward) > 1:
        counts[rows:, :2] = state.posterior.reward.T
    before = unknowns_of(state.posterior, np.ones((5, 2), bool), 0.95).prior
    powers = np.moveaxis(state.basis.powers, -1, 0)
    moved = log_expectations(counts[None], powers)[0] - log_expectations(before[None], powers)[0]
    np.testing.assert_allclose(state.phi, state.basis.start * np.exp(moved), rtol=1e-9)
    assert (moved[1:] != 0.0).all()


def test_the_coin_is_worth_what_it_is_worth():
    """For ever at .95: 5.695387, by tossing first; a planner that does not value learning has 4.87 for both."""
    environment, belief = coin()
    values = {}
    agent = make_agent("beetle:points=300,basis=40,sweeps=300,tolerance=1e-5", environment, belief=belief)
    agent.reset(0)
    state = agent.machine.state
    for a in (0, 1):
        chosen = [f for f in range(*state.functions.first[:2]) if state.functions.action[f] == a]
        values[a] = max((float(state.functions.coefficients[f] @ state.phi) for f in chosen), default=-np.inf)
    assert agent.act(0) == 0
    assert values[0] == pytest.approx(5.695387, abs=0.05)
    assert values[1] < values[0]
    for _ in range(6):
        agent.observe(0, 0, 0.0, 2)  # tails
    assert agent.act(0) == 1


def test_sweeps_lower_no_value_at_a_point():
    unknowns = of_belief(two_states(), 0.9)
    problem = problem_of(unknowns, histories(unknowns, 3), size=15, ridge=1e-6)
    old, new, scratch = first_pool(problem), new_pool(problem), scratch_for(problem)
    values, stream = np.zeros(len(problem.points.state)), seed_stream(np.array([1], np.uint64))
    for _ in range(30):
        before = values.copy()
        rise = sweep(problem, old, new, values, stream, scratch)
        assert rise == pytest.approx((values - before).max())
        assert (values >= before).all()
        old, new = new, old
        for n, s in enumerate(problem.points.state):  # what is claimed at a point is what its functions give
            assert clipped(best_function(old, s, problem.points.phi[n])[1], 10.0) == pytest.approx(values[n], abs=1e-9)
    assert values.max() <= 10.0
    assert values.min() > 1.0


def test_it_plays_as_its_twin_does():
    agent = make_agent(f"beetle:{SMALL},prior=known-rewards", CHAIN)
    twin, played = BeetleTwin(agent.machine.state), []
    agent.reset(1)
    twin.reset(1)
    noise = environment_stream(5, 0)
    s = int(begin(CHAIN.outcomes, uniform(noise)))
    for k in range(60):
        played.append(agent.act(s))
        assert played[-1] == twin.act(s), f"step {k}"
        a = played[-1] if k % 3 else k % 2  # now and then another action than its own
        r, t = step(CHAIN.outcomes, s, a, uniform(noise))
        agent.observe(s, a, r, t)
        twin.observe(s, a, r, t)
        s = int(t)
    assert len(set(played)) == 2


def test_a_plan_is_made_once_and_depends_on_the_seed_alone():
    one, same = (make_agent(f"beetle:{SMALL}", CHAIN).machine.state for _ in range(2))
    assert one.functions.coefficients is same.functions.coefficients
    assert one.phi is not same.phi
    unknowns = unknowns_of(one.posterior, np.ones((5, 2), bool), CHAIN.discount)
    again = plan(unknowns, 60, 16, 12, 1e-6, 15, 1e-3, 1)[1]
    np.testing.assert_array_equal(again.coefficients, one.functions.coefficients)
    other = make_agent(f"beetle:{SMALL},seed=2", CHAIN).machine.state
    assert other.functions.coefficients is not one.functions.coefficients


def test_with_tied_slips_it_earns_nearly_what_the_oracle_does():
    totals = {
        name: play(make_agent(name, CHAIN), CHAIN, seed=1, runs=60, steps=300).total
        for name in ("oracle", "beetle:points=120,basis=20,prior=tied", "beetle:points=120,basis=20,prior=semi-tied")
    }
    best, tied, semi = totals.values()
    assert tied.mean() > 0.97 * best.mean()
    assert semi.mean() > 0.9 * best.mean()


def test_what_does_not_fit_in_memory_is_refused():
    with pytest.raises(ParameterError, match="GB and up to .* take a smaller basis"):
        make_agent("beetle:basis=2000", make_env("garnet:60,4,2"))
