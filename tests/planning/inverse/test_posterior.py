"""`from_demonstrations` as people call it: beliefs that everything works on, and what is said of them."""

import numpy as np
import pytest

import beliefbound as bb
from beliefbound.base.errors import BeliefError, FileError, ParameterError
from beliefbound.beliefs import check_belief
from beliefbound.logs.demonstrations import read_demonstrations
from beliefbound.planning.inverse.posterior import random_as_often

pytestmark = pytest.mark.full


def corridor(n=5, steps=120, seed=0, sides=(1,), names=("ada", "bob", "eve")):
    """People in a corridor who walk to one end (side 1: the right one, 0: the left), with slips."""
    rng, rows = np.random.default_rng(seed), {"state": [], "action": [], "next_state": [], "demonstrator": []}
    for who, side in enumerate(sides):
        s = n // 2
        for _ in range(steps):
            a = side if rng.random() < 0.9 else 1 - side
            t = min(max(s + (2 * a - 1) * (1 if rng.random() < 0.9 else -1), 0), n - 1)
            for name, x in zip(rows, (s, a, t, names[who]), strict=True):
                rows[name].append(x)
            s = int(rng.integers(n)) if rng.random() < 0.1 else t
    if len(sides) == 1:
        del rows["demonstrator"]
    return rows


@pytest.fixture(scope="module")
def learnt():
    return bb.from_demonstrations(corridor(), discount=0.9, draws=64, steps=20_000, rng=1)


def test_who_walks_right_wants_the_right_end(learnt):
    mean = learnt.reward_mean
    assert mean[:, 0].argmax() == 4
    assert np.array_equal(mean[:, 0], mean[:, 1])
    plan = bb.mmbi(learnt.belief, discount=0.9)
    assert plan.policy.actions.tolist()[:4] == [1, 1, 1, 1]
    assert learnt.gain > 20.0
    assert not learnt.looks_random
    assert learnt.chance < 0.001
    assert learnt.demonstrator().chances(2)[:4, 1].min() > 0.6
    assert all(0.0 < share < 1.0 for share in learnt.accepted.values())


def test_everything_works_on_the_belief(learnt, tmp_path):
    belief = learnt.belief
    assert belief.reward_signal == "unobserved"
    assert belief.n_models == 64
    check_belief(belief)
    plan = bb.cadp(belief, discount=0.9)
    found = bb.bracket(belief, discount=0.9, effort=3, rng=1)
    assert plan.value() <= found.upper.value
    assert found.lower.value >= plan.value() - 1e-9
    certified = bb.certify(plan.policy, belief, discount=0.9, upper=found.upper, rng=1)
    assert certified.lower.value == pytest.approx(plan.value())
    assert bb.robust_bracket(belief, discount=0.9, effort=1, rng=1).lower.value <= plan.value() + 1e-9
    assert bb.bounds.evpi(belief, discount=0.9, nodes=20).high >= 0.0
    bb.write_models(tmp_path / "belief.npz", belief, discount=0.9)
    kept = bb.read_models(tmp_path / "belief.npz").training
    assert np.array_equal(kept.rewards, belief.rewards)
    assert kept.reward_signal == "unobserved"
    learnt.save(tmp_path / "demonstrations.json")
    with pytest.raises(FileError, match="holds no draws"):
        type(learnt).load(tmp_path / "demonstrations.json")
    assert "R̂" in learnt.summary()
    assert "<table" in learnt._repr_html_()
    assert learnt.plot().get_xlabel() == "state"


def test_the_same_seed_gives_the_same_belief_on_any_number_of_threads():
    knobs = {"discount": 0.9, "draws": 16, "chains": 2, "steps": 500, "rng": 7}
    one, two = (bb.from_demonstrations(corridor(steps=20), threads=t, **knobs) for t in (1, 2))
    assert np.array_equal(one.belief.transitions, two.belief.transitions)
    assert np.array_equal(one.rewards, two.rewards)


def test_somebody_random_teaches_nothing_and_that_is_said():
    rng = np.random.default_rng(5)
    s, a, t = rng.integers(0, 4, 300), rng.integers(0, 3, 300), rng.integers(0, 4, 300)
    found = bb.from_demonstrations({"state": s, "action": a, "next_state": t}, discount=0.9, draws=64, rng=1)
    assert found.looks_random
    assert "nothing can be learnt" in found.notes()[0]
    assert np.abs(found.reward_mean - 0.5).max() < 0.2  # the prior's
    few = bb.from_demonstrations({"state": [0, 1], "action": [0, 1], "next_state": [1, 0]}, discount=0.9, rng=1)
    assert "too few" in few.notes()[0]


def test_chains_that_have_not_met_are_warned_of():
    found = bb.from_demonstrations(corridor(n=30), discount=0.95, draws=32, chains=4, steps=64, rng=1)
    assert not found.mixed
    assert "have not met" in " ".join(found.notes())


def test_several_who_want_different_things_share_the_dynamics():
    found = bb.from_demonstrations(corridor(sides=(1, 0, 1)), discount=0.9, draws=128, rng=1)
    means = [found.of(name).models.mean(found.belief.weights).rewards[0][:, 0] for name in ("ada", "bob", "eve")]
    assert [bool(mean[4] > mean[0]) for mean in means] == [True, False, True]
    assert np.array_equal(found.of(0).transitions, found.of(1).transitions)
    new = found.reward_mean[:, 0]  # of somebody new: less sure, between them
    assert means[1][4] < new[4] < means[0][4]
    assert found.reward_spread[4, 0] > found.rewards[:, 0, 4, 0].std()
    with pytest.raises(ParameterError, match="no demonstrator 'zoe'"):
        found.of("zoe")


def test_transitions_by_others_sharpen_the_dynamics():
    rng = np.random.default_rng(5)
    s, a = rng.integers(0, 5, 2000), rng.integers(0, 2, 2000)
    t = np.clip(s + (2 * a - 1) * np.where(rng.random(2000) < 0.9, 1, -1), 0, 4)
    others = {"state": s, "action": a, "next_state": t, "reward": rng.random(2000)}
    alone, more = (
        bb.from_demonstrations(read_demonstrations(corridor(), transitions=x), discount=0.9, steps=5000, rng=1)
        for x in (None, others)
    )
    rare = (0, 0)  # the demonstrator hardly ever does that
    assert (
        more.belief.transitions[:, *rare].std(axis=0).max() < 0.3 * alone.belief.transitions[:, *rare].std(axis=0).max()
    )
    assert more.demonstrations.n_steps == 120


def test_told_dynamics_are_those_of_every_draw():
    p = np.full((5, 2, 5), 0.2)
    found = bb.from_demonstrations(corridor(), discount=0.9, dynamics=p, draws=16, steps=500, rng=1)
    assert (found.belief.transitions == p).all()
    assert "a row of the dynamics" not in found.accepted


def test_where_episodes_end_may_be_what_is_wanted():
    rows = {"state": [0, 1, 0, 1] * 20, "action": [1, 1, 1, 1] * 20, "next_state": [1, 2, 1, 2] * 20}
    rows |= {"terminated": [False, True] * 40}
    found = bb.from_demonstrations(read_demonstrations(rows, actions=2), discount=0.9, reward="pair", rng=1)
    assert found.reward_mean[2, 0] == found.reward_mean[2, 1] > found.reward_mean[0].max()
    assert (found.belief.transitions[:, 2, :, 2] == 1.0).all()


def test_features():
    distance = np.abs(np.arange(5) - 4.0)[:, None] / 4.0
    found = bb.from_demonstrations(corridor(), discount=0.9, reward=distance, rng=1)
    assert found.rewards.shape == (256, 1, 5, 2)
    assert found.reward_mean[4, 0] == 0.0 > found.reward_mean[0, 0]


@pytest.mark.parametrize(
    ("knobs", "error", "words"),
    [
        ({"reward": "money"}, ParameterError, "reward is 'money'"),
        ({"reward": np.ones((4, 2))}, ParameterError, r"features have shape \(4, 2\)"),
        ({"reward": np.zeros((5, 1))}, ParameterError, "feature 0 is 0 everywhere"),
        ({"reward": np.full((5, 1), np.nan)}, ParameterError, "finite"),
        ({"reward_prior": "flat"}, ParameterError, "reward_prior is 'flat'"),
        ({"reward_prior": ("beta", 0.0, 1.0)}, ParameterError, "reward_prior a is 0"),
        ({"reward_prior": ("normal", np.inf, 1.0)}, ParameterError, "finite number"),
        ({"rationality": 0.0}, ParameterError, "rationality is 0"),
        ({"rationality": ("beta", 1.0, 1.0)}, ParameterError, "rationality is"),
        ({"dynamics": np.ones((5, 2, 5))}, BeliefError, "sums to 5"),
        ({"dynamics": np.ones((2, 2))}, BeliefError, "shape"),
        ({"draws": 8, "chains": 4}, ParameterError, "draws is 8"),
        ({"chains": 1}, ParameterError, "chains is 1"),
        ({"steps": 0}, ParameterError, "steps is 0"),
        ({"discount": 1.0}, ParameterError, "discount is 1"),
        ({"prior": "flat"}, BeliefError, "prior is 'flat'"),
        ({"initial": 9}, BeliefError, "initial state is 9"),
        ({"hypotheses": 3}, BeliefError, "hypotheses is 3"),
    ],
)
def test_wrong_calls_are_refused_with_what_to_give(knobs, error, words):
    with pytest.raises(error, match=words):
        bb.from_demonstrations(corridor(steps=10), **{"discount": 0.9, "steps": 100} | knobs)
    with pytest.raises(BeliefError, match="demonstrations is 3"):
        bb.from_demonstrations(3, discount=0.9)


def test_one_sidedness_is_the_share_of_random_demonstrators_as_one_sided():
    """Three choices of two in one state: all equal has chance 1/4; 1999 simulations leave 0.01."""
    assert random_as_often(np.array([[[3, 0]]]), 1) == pytest.approx(0.25, abs=0.04)
    assert random_as_often(np.array([[[2, 1]]]), 1) == 1.0
