"""`robust_bracket` against the exact minimax value: every deterministic policy of histories, and a linear program."""

import itertools
import json

import numpy as np
import pytest
from scipy.optimize import linprog
from typer.testing import CliRunner

from beliefbound import (
    DirichletBelief,
    FiniteBelief,
    KnownRewards,
    StationaryPolicy,
    evaluate,
    robust_bracket,
    write_models,
)
from beliefbound.base.errors import ParameterError
from beliefbound.bounds.finite.mixed import MixedPolicy
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.bounds.policy_files import load_policy
from beliefbound.bounds.posterior.candidates import Candidate
from beliefbound.bounds.posterior.risk import Objective
from beliefbound.bounds.prior_sets import prior_set
from beliefbound.bounds.robust import RobustBracket
from beliefbound.cli import app
from beliefbound.jobs.from_log.robust import drawn_models
from beliefbound.planning.task import FiniteTask, Task
from support import oracles

SETS = ("all", "cvar:0.6", "l1:0.4")


def value_vectors(P, r, s, discount, horizon):
    """`[i,m]`: the values on every model of every deterministic policy that conditions on all it has seen."""
    if horizon == 0:
        return np.zeros((1, len(P)))
    found = []
    later = [value_vectors(P, r, t, discount, horizon - 1) for t in range(P.shape[1])]
    for a in range(P.shape[2]):
        for choice in itertools.product(*later):
            total = r[:, s, a] + discount * sum(P[:, s, a, t] * v for t, v in enumerate(choice))
            found.append(total)
    return np.unique(np.array(found), axis=0)


def minimax(values, kind, level, w0):
    """`min_{w∈W} max_i w·v_i`, written down once more: the epigraph form with the sets as plain inequalities."""
    n, m = values.shape
    rows, limits = [np.hstack([values, np.zeros((n, m)), -np.ones((n, 1))])], [np.zeros(n)]
    if kind == "cvar":
        rows.append(np.hstack([np.eye(m), np.zeros((m, m + 1))]))
        limits.append(w0 / level)
    if kind == "l1":  # |w − w0| ≤ d, Σ d ≤ level
        rows += [np.hstack([s * np.eye(m), -np.eye(m), np.zeros((m, 1))]) for s in (1.0, -1.0)]
        limits += [w0, -w0]
        rows.append(np.concatenate([np.zeros(m), np.ones(m), [0.0]])[None])
        limits.append([level])
    cost = np.concatenate([np.zeros(2 * m), [1.0]])
    equal = np.concatenate([np.ones(m), np.zeros(m + 1)])[None]
    bounds = [(0, None)] * (2 * m) + [(None, None)]
    done = linprog(cost, np.vstack(rows), np.concatenate(limits), equal, [1.0], bounds)
    return done.fun


@pytest.mark.parametrize("priors", SETS)
def test_the_exact_minimax_value_lies_in_the_bracket(priors):
    """Horizon 3: all 128 policies. The bracket must hold the value and come close to it."""
    P, r, w, _ = oracles.random_models(np.random.default_rng(4), 3, 2, 2)
    belief = FiniteBelief(P, r, w, reward_signal="unobserved", initial=0)
    kind, _, level = priors.partition(":")
    exact = minimax(value_vectors(P, r, 0, 0.9, 3), kind, float(level or 1), w)
    found = robust_bracket(
        belief, priors=priors, discount=0.9, horizon=3, target_gap=1e-3, effort=20, rng=1, confidence=0.9999
    )
    assert found.lower.exact
    assert found.lower.value <= exact + 1e-9
    assert found.upper.value >= exact - 1e-9
    assert found.relative_gap < 0.02
    value, _ = prior_set(priors, belief.weights).worst(found.model_values)
    assert value == pytest.approx(found.lower.value)


@pytest.mark.parametrize("start", [0, [0.3, 0.7]])
def test_without_a_horizon_vectors_are_the_policies(start):
    """Discount 0.4: all policies of four steps, and what can be left after them. The mixture is valued again."""
    P, r, w, _ = oracles.random_models(np.random.default_rng(6), 2, 2, 2, equal_rewards=True)
    belief = FiniteBelief(P, r, w, initial=start)
    if start == 0:
        values = value_vectors(P, r, 0, 0.4, 4)
        exact, left = minimax(values, "all", 1.0, w), 0.4**4 / 0.6
        low, high = exact + left * r.min(), exact + left * r.max()
    found = robust_bracket(belief, discount=0.4, target_gap=1e-4, effort=20, rng=1)
    if start == 0:
        assert found.lower.value <= high + 1e-9
        assert found.upper.value >= low - 1e-9
    assert found.relative_gap <= 1e-3
    task = FiniteTask.of(belief, discount=0.4)
    again = AnyPolicy(found.policy).values_on(task)
    np.testing.assert_allclose(again, found.model_values, atol=1e-9)
    assert again.min() >= found.lower.value - 1e-9


def test_the_mixture_plays_and_comes_back_from_its_file(tmp_path):
    """Two arms, each best in one model, rewards unseen: the mixture earns the same on both, in play as on paper."""
    belief = FiniteBelief(
        np.ones((2, 1, 2, 1)),
        [[[1.0, 0.0]], [[0.0, 3.0]]],
        reward_signal="unobserved",
        initial=0,
        model_names=("a", "b"),
    )
    found = robust_bracket(belief, discount=0.5, rng=0)
    assert (found.lower.value, found.upper.value) == pytest.approx((1.5, 1.5), rel=1e-4)
    assert found.prior.tolist() == pytest.approx([0.75, 0.25], abs=1e-4)
    found.save(tmp_path / "robust.json")
    back = RobustBracket.load(tmp_path / "robust.json")
    assert back == found
    policy = load_policy(tmp_path / "robust.policy.npz")
    assert isinstance(policy, MixedPolicy)
    assert policy == found.policy
    first = []
    for seed in range(400):
        policy.reset(seed)
        action = policy.act(0)
        policy.observe(0, action, None, 0)
        assert policy.act(0) == action  # one part for ever
        first.append(action)
    assert np.mean(first) == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / 400))  # false alarm 6e-5
    assert "mixture" in found.summary()
    assert "75%" in repr(policy)


def test_worst_priors_are_those_of_a_linear_program():
    rng = np.random.default_rng(2)
    for _ in range(20):
        w, x = rng.dirichlet(np.ones(4)), rng.normal(size=4)
        for priors in ("all", "cvar:0.3", "cvar:1", "l1:0.2", "l1:2"):
            kind, _, level = priors.partition(":")
            value, prior = prior_set(priors, w).worst(x)
            assert value == pytest.approx(minimax(x[None], kind, float(level or 1), w), abs=1e-9)
            assert prior.sum() == pytest.approx(1.0)
            assert prior.min() >= 0.0
    # The nominal prior is all there is at level 1, and nothing is worse than the worst model.
    assert prior_set("cvar:1", w).worst(x)[0] == pytest.approx(w @ x)
    assert prior_set("l1:2", w).worst(x)[0] == pytest.approx(x.min())


def test_one_model_or_no_choice_of_prior_is_an_ordinary_problem():
    P, r, w, _ = oracles.random_models(np.random.default_rng(1), 1, 3, 2)
    belief = FiniteBelief(P, r, w, initial=0, reward_signal="unobserved")
    found = robust_bracket(belief, discount=0.8, rng=1)
    best = max(evaluate(StationaryPolicy(rule), belief, discount=0.8)[0, 0] for rule in oracles.every_policy(3, 2))
    assert found.lower.value == pytest.approx(best)
    assert found.upper.value == pytest.approx(best)


@pytest.mark.parametrize("priors", ["some", "cvar", "cvar:0", "cvar:2", "l1:3", "l1:x", "all:1", 3, None])
def test_sets_that_do_not_exist_are_refused(priors):
    belief = FiniteBelief(np.ones((1, 1, 1, 1)), [[1.0]], initial=0)
    with pytest.raises(ParameterError, match="give 'all', 'cvar:a'"):
        robust_bracket(belief, priors=priors, discount=0.5)


def test_the_command_writes_prior_and_policy(tmp_path):
    p, r, w, _ = oracles.random_models(np.random.default_rng(4), 2, 2, 2, equal_rewards=True)
    belief = FiniteBelief(p, r, w, initial=0, model_names=("dry", "wet"))
    write_models(tmp_path / "finch.pomdpx", belief, discount=0.5)
    arguments = ["robust", str(tmp_path / "finch.pomdpx"), "--priors", "l1:0.2", "--effort", "2"]
    done = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "wet" in done.output
    found = RobustBracket.load(tmp_path / "out" / "robust.json")
    assert found.priors == "l1:0.2"
    assert np.abs(found.prior - belief.weights).sum() <= 0.2 + 1e-9
    again = robust_bracket(belief, priors="l1:0.2", discount=0.5, rng=1, effort=found.rounds)
    assert again == found
    assert (again.prior == found.prior).all()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "least favourable" in page
    assert f"effort {found.rounds}" in page
    file = tmp_path / "out" / "robust.json"
    done = CliRunner().invoke(app, ["verify", str(file), "--threads", "1"])
    assert done.exit_code == 0, done.output
    assert "identical" in done.output
    # What was changed is noticed, also where it claims to come from another machine; and so is another policy.
    text, policy = file.read_text(), (tmp_path / "out" / "robust.policy.npz").read_bytes()
    written = json.loads(text)
    for key, change in (("prior", lambda x: x[::-1]), ("upper", lambda x: x | {"value": x["value"] + 0.01})):
        for machine in (written["job"]["made"]["machine"], "another"):
            job = {"made": written["job"]["made"] | {"machine": machine}, "interrupted": False}
            file.write_text(json.dumps(written | {key: change(written[key]), "job": job}))
            done = CliRunner().invoke(app, ["verify", str(file)])
            assert done.exit_code == 1
            assert f"robust.json: {key}" in done.output
    file.write_text(text)
    other = robust_bracket(FiniteBelief(p, -np.asarray(r), w, initial=0), discount=0.5, rng=1, effort=1)
    other.policy.save(tmp_path / "out" / "robust.policy.npz")
    done = CliRunner().invoke(app, ["verify", str(file)])
    assert done.exit_code == 1
    assert "robust.policy.npz is another policy" in done.output
    (tmp_path / "out" / "robust.policy.npz").write_bytes(policy)
    del written["job"]
    file.write_text(json.dumps(written))
    refused = CliRunner().invoke(app, ["verify", str(file)])
    assert "robust bracket" in str(refused.exception)


def test_effort_is_a_number_of_rounds_and_not_given_with_a_time():
    belief = FiniteBelief(np.ones((1, 1, 1, 1)), [[1.0]], initial=0)
    with pytest.raises(ParameterError, match="not both"):
        robust_bracket(belief, discount=0.5, effort=2, time_limit=1.0)
    with pytest.raises(ParameterError, match="effort"):
        robust_bracket(belief, discount=0.5, effort=0)


@pytest.mark.parametrize("name", ["cvar:0.25", "l1:0.5", "worst"])
def test_objectives_of_a_posterior_are_bracketed_on_drawn_models(name):
    """On twenty models of one step, where the best mixture is a small linear program; and the chosen policy's own."""
    paid = KnownRewards(np.array([[[0.4, 0.4], [0.0, 1.0]], [[0.0, 0.0]] * 2]))
    paying = DirichletBelief(2, 2, rewards=paid, concentration=1.0, initial=0)
    task, chosen = Task.of(paying, discount=1.0, horizon=1), Candidate("first", StationaryPolicy([1, 0]))
    knobs = {"seconds": 1.0, "rounds": 3, "threads": 1, "stop": None}
    found = drawn_models(task, Objective.parse(name), chosen, rng=np.random.default_rng(4), **knobs)
    sample = paying.sample(20, np.random.default_rng(4))
    values = np.stack([sample.rewards[:, 0, 0], sample.rewards[:, 0, 1]])
    kind, level = ("all", 0.0) if name == "worst" else (name.split(":")[0], float(name.split(":")[1]))
    exact = minimax(values, kind, level, np.full(20, 0.05))
    assert found.bracket.lower.value <= exact + 1e-9 <= found.bracket.upper.value + 2e-9
    assert found.bracket.width < 1e-6
    ranked = np.sort(values[1])
    nearby = (5.0 * ranked[0] + ranked[:15].sum()) / 20.0  # a quarter of the weight goes from the best to the worst
    own = {"worst": ranked[0], "cvar:0.25": ranked[:5].mean(), "l1:0.5": nearby}
    assert found.chosen == pytest.approx(own[name])
    assert drawn_models(task, Objective.parse("percentile:0.1"), chosen, rng=np.random.default_rng(4), **knobs) is None
