"""MCBRL that looks one step ahead: the definition, and when it draws new models."""

import os
import subprocess
import sys

import numpy as np
import pytest

from beliefbound import MDP, policy_iteration
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.mcbrl import DUE, PLANS, STEP
from beliefbound.lab.agents.mcbrl_lookahead import look_ahead
from support.coin import coin
from support.environments import CHAIN
from support.every_agent import EveryAgent
from support.following import walk
from support.structured_priors import PRIORS, check_structured_prior


class TestMcbrlLookahead(EveryAgent):
    name = "mcbrl-lookahead"
    mistakes = (
        ("mcbrl-lookahead:mix=2", "mix is 2.0"),
        ("mcbrl-lookahead:n=1,schedule=moved", "one model always fits"),
        ("mcbrl-lookahead:schedule=moved,interval=3", "interval has no effect"),
        ("mcbrl-lookahead:shift=1", "shift has no effect with schedule=linear"),
        ("mcbrl-lookahead:depth=12", "depth is 12, n 16: looking so far among"),
    )


def looked(state, s, mix, depth):
    """`(value, action)` of the agent's own look-ahead, at its present weights."""
    state.likely[depth] = state.weights
    return look_ahead(state.core.models, state.alone, state.reached, state.likely, mix, s, depth)


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
    for s in walk(agent, CHAIN, 60):
        state = agent.machine.state
        if state.core.clock[STEP] == 0:
            continue
        p, r, q, best = (
            np.moveaxis(x, -1, 0)
            for x in (state.core.models.p, state.core.models.r, state.core.models.q, state.alone.q)
        )
        chosen = looked(state, s, 0.8, 1)[1]
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
    noise, s, due = np.random.default_rng(1), 0, True
    for _ in range(300):
        a = agent.act(s)
        assert (state.core.clock[PLANS] > plans) == due
        if due:
            plans, weights = plans + 1, np.full(8, 1 / 8)
        t = int(noise.choice(5, p=CHAIN.mdp.transitions[s, a]))
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
    noise, s, due = np.random.default_rng(1), 0, True
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
        t = int(noise.choice(5, p=CHAIN.mdp.transitions[s, a]))
        due = due or not (state.weights * state.core.models.p[s, a, t]).sum() > 0
        agent.observe(s, a, float(CHAIN.mdp.rewards[s, a]), t)
        s = t
    assert 5 < plans < 250


@pytest.mark.parametrize("prior", PRIORS)
def test_structured_priors_are_learnt_from(prior):
    check_structured_prior("mcbrl-lookahead:n=2", prior)


def tree(p, r, q, best, w, available, s, discount, mix, depth):
    """The look-ahead from its definition; `(value, action)`."""
    if depth == 0:
        lower, upper = ((w @ x[:, s])[available[s]].max() for x in (q, best))
        return (1 - mix) * lower + mix * upper, -1
    values = np.full(r.shape[2], -np.inf)
    for a in np.flatnonzero(available[s]):
        values[a] = w @ r[:, s, a] + discount * sum(
            tree(p, r, q, best, w * p[:, s, a, t], available, t, discount, mix, depth - 1)[0]
            for t in range(r.shape[1])
            if (w * p[:, s, a, t]).sum() > 0.0
        )
    return values.max(), int(values.argmax())


def test_a_deeper_look_equals_the_tree():
    agent = make_agent("mcbrl-lookahead:n=5,depth=3", CHAIN)
    agent.reset(2)
    agent.act(0)
    state = agent.machine.state
    models = state.core.models
    arrays = [np.moveaxis(x, -1, 0) for x in (models.p, models.r, models.q, state.alone.q)]
    state.weights[:] = [0.1, 0.3, 0.2, 0.35, 0.05]
    for s in range(5):
        value, action = looked(state, s, 0.6, 3)
        exact = tree(*arrays, state.weights, CHAIN.mdp.available, s, 0.95, 0.6, 3)
        assert value == pytest.approx(exact[0], rel=1e-9)
        assert action == exact[1]


def test_what_is_used_two_steps_later_is_worth_something():
    """On the coin the first toss teaches what the second decides, two steps later. What is left to chance is whether 16
    models drawn from the prior win more often than not. How many of 20 agents begin with the better action."""
    environment, belief = coin()
    firsts = {}
    for depth in (1, 2):
        agent = make_agent(f"mcbrl-lookahead:depth={depth}", environment, belief=belief)
        firsts[depth] = 0
        for seed in range(20):
            agent.reset(seed)
            firsts[depth] += agent.act(0) == 0
    assert firsts[2] > firsts[1]
    assert firsts[2] >= 15


def test_it_plays_in_a_process_that_reads_all_of_its_code_from_the_disk(tmp_path):
    """A function that calls itself for two types of arguments would be called at address 0."""
    code = "from beliefbound.lab.agents import make_agent; from beliefbound.lab.envs import make_env; " + (
        "agent = make_agent('mcbrl-lookahead:n=6,depth=2', make_env('chain')); agent.reset(5); print(agent.act(0))"
    )
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    said = [subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True) for _ in range(2)]
    assert [done.returncode for done in said] == [0, 0]
    assert said[0].stdout == said[1].stdout
