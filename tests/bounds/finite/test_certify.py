"""`certify`: values against enumeration and evaluation, distances against the exact tree, files of other solvers."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from beliefbound import (
    Bound,
    FiniteBelief,
    MemorylessPolicy,
    StationaryPolicy,
    bracket,
    certify,
    mmbi,
    upper_bound,
    write_models,
)
from beliefbound.base.errors import BeliefboundError, FileError, ObservationError, PolicyError
from beliefbound.bounds.certified import Certified
from beliefbound.bounds.finite import simulation
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.alpha_policy import AlphaPolicy, read_sarsop
from beliefbound.bounds.finite.controller_value import completed, enclosed_values
from beliefbound.bounds.finite.relaxation import certifier_of
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.bounds.policy_files import load_policy
from beliefbound.cli import app
from beliefbound.planning.task import FiniteTask
from support import oracles
from support.beliefs import ROUNDING, SIGNALS, random_belief
from support.enumeration import value_by_enumeration
from support.tiers import tiers


class Wrapped:
    """Somebody's agent: three methods, and nothing else is known of it."""

    def __init__(self, policy):
        self.policy = policy

    def reset(self, seed):
        self.policy.reset(seed)

    def act(self, state):
        return self.policy.act(state)

    def observe(self, state, action, reward, next_state):
        self.policy.observe(state, action, reward, next_state)


def settled(belief, nodes=20, horizon=4):
    certifier = certifier_of(FiniteTask.of(belief, discount=0.9, horizon=horizon), core_nodes=nodes)
    certifier.grow(nodes)
    return AdaptivePolicy(certifier)


@pytest.mark.parametrize("signal", tiers(SIGNALS, "bernoulli"))
def test_decision_graphs_are_valued_exactly_and_their_distance_covers_the_truth(signal):
    """Enumeration of every history for the value, the exact tree for what is missing."""
    belief, (P, r, w, p0) = random_belief(np.random.default_rng(5), signal)
    policy = settled(belief)
    best = oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 4, signal)
    upper = upper_bound(belief, discount=0.9, horizon=4)
    found = certify(policy, belief, discount=0.9, horizon=4, upper=upper)
    value = value_by_enumeration(policy, belief, 0.9, 4)
    assert found.exact
    assert found.value == pytest.approx(value, abs=ROUNDING)
    assert found.regret.value >= best - value - ROUNDING
    assert found.regret.value == pytest.approx(upper.value - value)
    drawn = {line.get_label(): line.get_xdata() for line in found.plot().lines}
    np.testing.assert_array_equal(drawn["on each model"], found.model_values)
    assert set(drawn["this policy, on average"]) == {found.value}
    assert set(drawn["nobody earns more on average"]) == {found.best.value}
    one = [FiniteBelief(P[m : m + 1], r[m : m + 1], initial=p0, reward_signal="unobserved") for m in range(3)]
    if signal in ("known", "unobserved"):  # where rewards show nothing, each model by itself is played alike
        alone = [value_by_enumeration(policy.fresh(), each, 0.9, 4) for each in one]
        np.testing.assert_allclose(found.model_values, alone, atol=ROUNDING)


def test_without_a_horizon_graphs_with_and_without_circles_are_linear_systems():
    """The last four hundred steps of a long horizon, by the stage-wise recursion, against the solution for ever."""
    belief, _ = random_belief(np.random.default_rng(2), "known")
    policy = settled(belief, horizon=None)
    task, long = (FiniteTask.of(belief, discount=0.9, horizon=h) for h in (None, 400))
    controller = policy.data[0]
    np.testing.assert_allclose(enclosed_values(controller, task)[0], enclosed_values(controller, long)[0], atol=1e-12)
    circle = completed(controller)
    circle = circle._replace(after=np.where(circle.after < 0, circle.after, 0 * circle.after))
    circle = circle._replace(state=np.zeros_like(circle.state), action=np.zeros_like(circle.action))
    one = FiniteBelief(np.ones((2, 1, 1, 1)), [[[1.0]], [[3.0]]], reward_signal="unobserved", initial=0)
    rows = (np.array([[0, 1]]), np.array([0]), np.array([np.nan]), np.ones((1, 1), bool))
    loop = circle._replace(
        state=np.array([0, 0]), action=np.array([0, 0], np.int32), after=np.array([[1], [0]], np.int32),
        roots=np.array([0]), first=rows[0], arrive=rows[1], seen=rows[2], available=rows[3],
        pool=np.array([[0]]), pool_first=np.array([0, 1]),
    )  # fmt: skip
    values = enclosed_values(loop, FiniteTask.of(one, discount=0.5))[0]
    np.testing.assert_allclose(values, [[2.0, 6.0]])


def test_the_policies_of_a_bracket_earn_what_it_says():
    """Every exact lower bound on the way, those of distinct beliefs and alpha vectors included: the policy behind it is
    valued by itself."""
    rng = np.random.default_rng(3)
    good = np.sort(rng.random((6, 2, 3)), axis=0)
    belief = FiniteBelief(np.stack([1 - good, good], -1), [[0.0, -2.0, -4.0], [20.0, 18.0, 16.0]], initial=0)
    found = bracket(belief, discount=0.9, effort=12, rng=1)
    task, kinds = FiniteTask.of(belief, discount=0.9), set()
    for bound in found.bounds:
        if bound.exact and bound.side == "lower" and bound.policy is not None:
            value = float(belief.weights @ AnyPolicy(bound.policy).values_on(task))
            assert value >= bound.value - 1e-9 * abs(bound.value), bound
            kinds.add(re.sub(r"\d+", "#", bound.method))
    assert any("distinct" in kind for kind in kinds)


@pytest.mark.full
@pytest.mark.parametrize("horizon", [None, 4])
def test_simulated_intervals_hold_the_exact_value(horizon):
    """Four signals, 99.9% intervals: false alarm at most 4e-3 a case. The agent draws its actions."""
    rng = np.random.default_rng(3)
    for signal in SIGNALS:
        belief, _ = random_belief(rng, signal)
        policy = StationaryPolicy(probabilities=rng.dirichlet([1.0, 1.0], size=2))
        upper = upper_bound(belief, discount=0.5, horizon=horizon)
        given = {"discount": 0.5, "horizon": horizon, "upper": upper}
        exact = certify(policy, belief, **given)
        found = certify(Wrapped(policy), belief, **given, confidence=0.999, samples=150, rng=1)
        assert not found.exact
        assert found.lower.value <= exact.value <= found.upper.value
        assert found.upper.value - found.lower.value < upper.value
        assert found.confidence == pytest.approx(0.999)
        assert found.regret.value <= upper.value - found.lower.value
        assert certify(Wrapped(policy), belief, **given, confidence=0.999, samples=150, rng=1) == found


def test_who_stops_has_fewer_walks_and_a_wider_interval():
    belief, _ = random_belief(np.random.default_rng(7), "known")
    policy = Wrapped(StationaryPolicy(probabilities=[[0.5, 0.5], [0.2, 0.8]]))
    given = {"discount": 0.5, "horizon": 3, "upper": upper_bound(belief, discount=0.5, horizon=3), "rng": 1}
    asked = iter([False] * 20 + [True])
    few = certify(policy, belief, **given, samples=200, stop=lambda: next(asked))
    many = certify(policy, belief, **given, samples=200)
    assert (few.lower.n_samples, many.lower.n_samples) == (21, 200)
    assert few.upper.value - few.lower.value > many.upper.value - many.lower.value


@pytest.mark.full
def test_intervals_of_simulated_values_fail_no_more_often_than_they_say(monkeypatch):
    """Sixty times the value and the distance at 90%, against the exact tree: more than 13 failures have probability
    2e-3 if each fails with 0.1. Upper values are one step of look-ahead only, so that relaxations have work to do; the
    differences on common scenarios are nearer to the truth than the difference of two bounds."""
    monkeypatch.setattr(simulation, "_NODES", 1)
    belief, (P, r, w, p0) = random_belief(np.random.default_rng(11), "bernoulli", n_models=6)
    policy = mmbi(belief, discount=0.9, horizon=4).policy
    given = {"discount": 0.9, "horizon": 4, "upper": upper_bound(belief, discount=0.9, horizon=4)}
    best = oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 4, "bernoulli")
    exact, failed, separate, paired = certify(policy, belief, **given).value, 0, [], []
    for seed in range(60):
        found = certify(Wrapped(policy), belief, **given, confidence=0.9, samples=64, rng=seed)
        failed += not (found.lower.value <= exact <= found.upper.value and found.regret.value >= best - exact)
        separate.append(found.best.value - found.lower.value)
        paired.append(found.regret.value)
    assert failed <= 13
    assert (np.array(paired) <= np.array(separate) + ROUNDING).all()
    assert np.mean(paired) - (best - exact) < 0.9 * (np.mean(separate) - (best - exact))


def vectors_of(belief, discount, seed, count=3):
    """Random vectors in SARSOP's format."""
    rng = np.random.default_rng(seed)
    lines = ['<?xml version="1.0" encoding="ISO-8859-1"?>\n<Policy version="0.1" type="value" model="x.pomdpx">']
    lines.append(f'<AlphaVector vectorLength="{belief.n_models}" numObsValue="{belief.n_states}" numVectors="9">')
    for s in range(belief.n_states):
        for _ in range(count):
            numbers = " ".join(map(repr, rng.random(belief.n_models).tolist()))
            lines.append(f'<Vector action="{rng.integers(belief.n_actions)}" obsValue="{s}">{numbers} </Vector>')
    return "\n".join([*lines, "</AlphaVector> </Policy>"])


@pytest.mark.parametrize("signal", tiers(SIGNALS, "bernoulli"))
def test_alpha_vectors_of_other_solvers_act_on_the_posterior(tmp_path, signal):
    """Enumeration of what `act` does, from SARSOP's file and from our own."""
    belief, _ = random_belief(np.random.default_rng(9), signal)
    (tmp_path / "x.policy").write_text(vectors_of(belief, 0.9, 1))
    upper = upper_bound(belief, discount=0.9, horizon=3)
    task = FiniteTask.of(belief, discount=0.9, horizon=3)
    policy = read_sarsop(tmp_path / "x.policy", task)
    value = value_by_enumeration(policy, belief, 0.9, 3)
    found = certify(tmp_path / "x.policy", belief, discount=0.9, horizon=3, upper=upper, samples=300, rng=1)
    assert found.lower.value - ROUNDING <= value <= found.upper.value + ROUNDING
    policy.save(tmp_path / "own.npz")
    again = load_policy(tmp_path / "own.npz")
    assert isinstance(again, AlphaPolicy)
    assert value_by_enumeration(again, belief, 0.9, 3) == value
    policy.reset()
    policy.observe(0, 0, float(belief.rewards[0, 0, 0]) if signal != "bernoulli" else 1.0, 1)
    with pytest.raises(ObservationError, match="ended in state"):
        policy.act(0)


def test_where_beliefs_repeat_alpha_vectors_are_a_decision_graph_of_exact_value(tmp_path):
    """Deterministic models: a step tells all there is to tell, so there are few beliefs."""
    rng = np.random.default_rng(4)
    P = np.eye(3)[rng.integers(3, size=(4, 3, 2))]
    belief = FiniteBelief(P, rng.random((3, 2)), initial=0)
    (tmp_path / "x.policy").write_text(vectors_of(belief, 0.5, 2))
    policy = read_sarsop(tmp_path / "x.policy", FiniteTask.of(belief, discount=0.5))
    found = certify(policy, belief, discount=0.5, upper=upper_bound(belief, discount=0.5))
    assert found.exact
    assert found.value == pytest.approx(value_by_enumeration(policy, belief, 0.5, 12), abs=2 * 0.5**12)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<Vector ", "<SparseVector ", "is no XML"),
        ('action="', 'deed="', "action is ''"),
        ('obsValue="1"', 'obsValue="7"', "line 7, <Vector>: obsValue is '7'"),
        ("</Vector>", "nan</Vector>", "'nan' is not a number"),
        ("</Vector>", " 0.5</Vector>", "has 4 numbers, and there are 3 models"),
        ("Policy", "Politics", "is a <Politics> document"),
    ],
)
def test_damaged_policy_files_are_refused(tmp_path, old, new, message):
    belief, _ = random_belief(np.random.default_rng(9), "known")
    (tmp_path / "x.policy").write_text(vectors_of(belief, 0.9, 1).replace(old, new))
    with pytest.raises(FileError, match=re.escape(message)):
        certify(tmp_path / "x.policy", belief, discount=0.9)


def test_what_does_not_fit_is_refused_in_words(tmp_path):
    belief, _ = random_belief(np.random.default_rng(1), "known")
    other, _ = random_belief(np.random.default_rng(2), "known", n_states=3)
    given = {"discount": 0.9, "upper": upper_bound(belief, discount=0.9)}
    for policy, message in (
        (42, "give an object with reset, act and observe"),
        (StationaryPolicy([0, 0, 0]), "3 states, the belief has 2"),
        (settled(other, horizon=None), "3 states, the belief has 2"),
        (tmp_path / "nothing.npz", "cannot read"),
    ):
        with pytest.raises(BeliefboundError, match=message):
            certify(policy, belief, **given)
    with pytest.raises(BeliefboundError, match="makes 2 decisions"):
        certify(MemorylessPolicy([[0, 0], [0, 0]]), belief, horizon=3, **given)
    with pytest.raises(BeliefboundError, match="upper bound on the Bayes-optimal"):
        certify(StationaryPolicy([0, 0]), belief, discount=0.9, upper=Bound(1.0, "lower", "x"))
    bad = Wrapped(StationaryPolicy([5, 5]))
    with pytest.raises(ObservationError, match="chose action 5 in state"):
        certify(bad, belief, **given, samples=2)
    # A policy made for models in which a state is never met does not know what to do where it is.
    surely = FiniteBelief(np.array([[[[1.0, 0.0]] * 2] * 2] * 2), np.zeros((2, 2)), initial=0)
    with pytest.raises(PolicyError, match="made for another belief|starts in"):
        AnyPolicy(settled(surely, horizon=None)).values_on(FiniteTask.of(belief, discount=0.9, initial=0))


def test_a_certificate_comes_back_from_its_file(tmp_path):
    belief, _ = random_belief(np.random.default_rng(5), "known")
    policy = settled(belief, horizon=None)
    found = certify(policy, belief, discount=0.9, upper=upper_bound(belief, discount=0.9))
    found.save(tmp_path / "certificate.json")
    back = Certified.load(tmp_path / "certificate.json")
    assert back == found
    assert back.policy == policy
    assert "evaluation on every model" in found.summary()


def test_the_command_certifies_a_table_and_a_sarsop_file(tmp_path):
    p, r, w, _ = oracles.random_models(np.random.default_rng(1), 2, 2, 2, equal_rewards=True)
    belief = FiniteBelief(p, r, w, initial=0)
    write_models(tmp_path / "models.pomdpx", belief, discount=0.5)
    StationaryPolicy([0, 1]).save(tmp_path / "table.json")
    (tmp_path / "x.policy").write_text(vectors_of(belief, 0.5, 1))
    for name in ("table.json", "x.policy"):
        arguments = ["certify", tmp_path / name, tmp_path / "models.pomdpx", "-o", tmp_path / "certificate.json"]
        arguments += ["--gap", 0.1, "--samples", 50, "--threads", 1]
        done = CliRunner().invoke(app, list(map(str, arguments)))
        assert done.exit_code == 0, done.output
        assert "below Bayes-optimal" in done.output
        assert json.loads((tmp_path / "certificate.json").read_text())["kind"] == "certified policy"
    done = CliRunner().invoke(app, ["certify", str(tmp_path / "nothing.npz"), str(tmp_path / "models.pomdpx")])
    assert isinstance(done.exception, FileError)
