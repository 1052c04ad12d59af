"""Slips of the hand, each with the words that help: what was found by throwing wrong things at every door."""

import numpy as np
import pytest

import beliefbound as bb
from beliefbound import bounds
from beliefbound.base.errors import BeliefboundError
from beliefbound.beliefs import NormalRewards
from beliefbound.planning.compare import compare_memoryless
from soak.calls import things as x

TASK = {"discount": 0.9, "horizon": 3}


@pytest.mark.parametrize(
    ("slip", "message"),
    [
        (lambda: bb.FiniteBelief.from_mdps(x()["mdp"]), "mdps is MDP.*; give a list of MDPs"),
        (lambda: bb.FiniteBelief.from_mdps([x()["finite"]]), r"mdps\[0\] is of type FiniteBelief"),
        (lambda: bb.FiniteBelief([[[[1.0]]]], [[[1.0]]], reward_range=0.5), "low must be below high"),
        (lambda: bb.DirichletBelief(2, 2, rewards=1.0), "rewards is 1.0; give a reward belief"),
        (lambda: bb.BetaRewards(float("nan"), 1.0), "BetaRewards alpha is nan; every entry must be a finite number"),
        (lambda: bb.BetaRewards(1.0, [[1.0, 0.0]]), "BetaRewards beta is 0.0; it must be above 0"),
        (lambda: bb.KnownRewards([[0.0, float("nan")]]), r"KnownRewards\[state 0, action 1\] is nan"),
        (lambda: NormalRewards(strength=-1.0), "NormalRewards strength is -1.0; it must be above 0"),
        (lambda: bb.theory.lemma2_models(x()["bound"], discount=0.9, r_max=1e300), "epsilon is .*; give a larger one"),
        (lambda: bb.DirichletBelief(2, 2, available="all"), "available has <U3 entries; give booleans"),
        (lambda: x()["finite"].predictive([0, 1], 0), r"state is \[0, 1\]; give one whole number"),
        (lambda: x()["finite"].update([0], [0], [[1.0]], [1]), "give one number each, or arrays of equal length"),
        (lambda: x()["finite"].sample(10**12, 0), "draw fewer models"),
        (lambda: x()["mdp"].relabel(3), "order is 3; ids run from 0 to 2"),
        (lambda: x()["table"].repeat(10**12), "give fewer stages"),
        (lambda: x()["table"].chances(0), "n_actions is 0"),
        (lambda: x()["staged"].drop("one"), "stages is 'one'"),
        (lambda: bb.MDP([[[1.0]]], [[1.0]], actions=1), "action names is 1; give one name each"),
        (lambda: bb.MDP([[[1.0]]], [[1.0]], normalize=np.array([])), "normalize is .*; give True or False"),
        (lambda: compare_memoryless(x()["mdp"], discount=0.9, horizons=[3]), "training is MDP.*; give a FiniteBelief"),
        (lambda: compare_memoryless(x()["finite"], discount=0.9, horizons=3), "horizons is 3; give a list"),
        (lambda: bounds.belief_distance(x()["finite"], x()["mdp"]), "second is MDP.*; give a belief"),
        (
            lambda: bounds.lookahead_lower(x()["finite"], depth=1, policies=x()["table"], **TASK),
            "give a list of policies",
        ),
        (lambda: bounds.lookahead_upper(x()["finite"], depth=10**12, discount=0.9), "depth is .*use bracket"),
        (
            lambda: bb.lower_bound(x()["table"], x()["dirichlet"], interval="z", rng=0, **TASK),
            "interval is 'z'; choose",
        ),
        (lambda: bb.bracket(x()["finite"], watch=3, rng=0, **TASK), "watch is 3; give a function"),
        (lambda: bb.bracket(x()["dirichlet"], threads=2**63, rng=0, **TASK), "give at most 1024"),
        (lambda: bb.play(x()["agent"], "chain", seed=1, runs=1, steps=1), r"environment is 'chain'; .*make_env"),
        (lambda: bb.play(x()["plan"], x()["env"], seed=1, runs=1, steps=1), "agent is of type Plan.*make_agent"),
        (lambda: bb.make_agent("exploit", x()["env"], discount="half"), "discount is 'half'"),
        (lambda: bb.write_models("nowhere", 3, discount=0.9), "training is 3; give a FiniteBelief"),
        (lambda: bb.read_models("examples/chain8", reward_signal=["known"]), "reward_signal is .*; choose one of"),
        (lambda: bb.from_gymnasium({0: {0: 3}}), r"P\[0\]\[0\] is 3; give a list of outcomes"),
        (lambda: bb.theory.truncation_stages(5e-324, discount=1.0 - 1e-16, r_max=1.0), "give a larger one"),
        (lambda: bb.theory.uniform_models(1e-300, n_states=2, n_actions=2, r_max=1.0, **TASK), "give a larger one"),
        (lambda: bb.value_of_information(x()["finite"], tries=1, draws=2**60, rng=0, **TASK), "give fewer draws"),
        (lambda: bb.Bound("1", "lower", "x"), "the value of the lower bound is '1'; give a number"),
    ],
)
def test_a_slip_is_named_and_mended_in_words(slip, message):
    with pytest.raises(BeliefboundError, match=message):
        slip()


def test_what_looks_like_a_slip_and_is_none():
    assert bb.theory.truncation_stages(1.0, discount=0.5, r_max=5e-324) == 1
    assert bb.theory.truncation_stages(1e-300, discount=0.5, r_max=1e300) == 1995
    assert bb.play(x()["agent"], x()["env"], seed=1, runs=2, steps=3, curve_every=2**63).curve.shape == (2, 0)
    assert bb.FiniteBelief(np.ones((1, 1, 1, 1), dtype=np.float32), [[[1]]]).n_models == 1
