"""Every bracket of a belief with counts can be saved: whatever is believed of rewards, and whatever is restricted."""

import itertools

import numpy as np
import pytest

from beliefbound import Bracket, bracket, load_policy, plan_log
from beliefbound.base.errors import FileError, ObservationError, PolicyError
from beliefbound.base.io.arrays import read_arrays, write_arrays
from beliefbound.beliefs import BetaRewards, DirichletBelief, DirichletRewards, KnownRewards
from beliefbound.beliefs.files import load_belief, save_belief
from beliefbound.beliefs.rewards import MixedRewards
from beliefbound.bounds.dirichlet.particle_policy import ParticlePolicy
from beliefbound.logs import log_of

S, A = 3, 2
LEVELS = ((0.5, 32), (0.0, 16))
AMOUNTS = np.arange(S * A * S, dtype=np.float64).reshape(S, A, S)
REWARDS = {
    "beta": BetaRewards(1.0, 2.0, low=-1.0, high=3.0),
    "known": KnownRewards(AMOUNTS[..., 0]),
    "known, on arrival": KnownRewards(AMOUNTS),
    "values": DirichletRewards([0.0, 1.0, 4.0], [1.0, 0.5, 0.2]),
    "mixed": MixedRewards(np.where(np.arange(A) == 0, 2.0, np.nan) * np.ones((S, 1)), DirichletRewards([0.0, 1.0])),
}
OPEN = np.array([[True, True], [True, False], [True, True]])
LIMITS = {
    "free": {},
    "terminal": {"terminal": [2]},
    "restricted": {"available": OPEN, "support": np.tril(np.ones((S, S), dtype=bool), 1)},
    "both": {"terminal": [2], "available": OPEN, "initial": 0},
}
ROW, ARRIVE = np.zeros((S, A), dtype=int), np.array([[[s, (s + 1) % S]] * A for s in range(S)])


def belief_of(rewards, limits, *, tied):
    """A belief of a kind after some steps, in terminal states and out of them."""
    given = dict(LIMITS[limits])
    if tied:
        given.pop("support", None)
        belief = DirichletBelief.tied(ROW, ARRIVE, [[1.0, 0.5]], rewards=REWARDS[rewards], **given)
    else:
        belief = DirichletBelief(S, A, rewards=REWARDS[rewards], **given)
    return walked(belief, 25)[0]


def walked(belief, steps, policy=None):
    """The belief after steps that it allows, and what was done: by a policy, or at random."""
    rng, s, done = np.random.default_rng(7), 0, []
    for _ in range(steps):
        a = int(rng.choice(np.flatnonzero(belief.available[s]))) if policy is None else policy.act(s)
        t = int(rng.choice(S, p=belief.predictive(s, a)))
        for reward in rng.permutation([-1.0, 0.0, 1.0, 2.0, 3.0, 4.0]):
            try:
                after = belief.update(s, a, reward if belief.rewards.learns else None, t)
                if policy is not None:
                    policy.observe(s, a, reward, t)
            except ObservationError:
                continue
            belief = after
            break
        done.append((s, a, t))
        s = t
    return belief, done


CASES = list(itertools.product(REWARDS, LIMITS, (False, True)))


@pytest.mark.parametrize(("rewards", "limits", "tied"), CASES)
def test_a_belief_comes_back_as_it_was(rewards, limits, tied, tmp_path):
    belief = belief_of(rewards, limits, tied=tied)
    save_belief(tmp_path / "belief.npz", belief)
    back = load_belief(tmp_path / "belief.npz")
    for name in ("concentration", "terminal", "available", "observed"):
        assert np.array_equal(getattr(back, name), getattr(belief, name))
    assert (back.initial is None) == (belief.initial is None)
    assert belief.initial is None or np.array_equal(back.initial, belief.initial)
    assert (back.ties is None) == (belief.ties is None)
    one, other = back.counted(), belief.counted()
    assert all(np.array_equal(x, y) for x, y in zip(one, other, strict=True))


@pytest.mark.parametrize(("rewards", "limits", "tied"), CASES)
def test_a_particle_policy_comes_back_and_acts_the_same(rewards, limits, tied, tmp_path):
    belief = belief_of(rewards, limits, tied=tied)
    policy = ParticlePolicy(belief, np.eye(S)[0], 0.9, None, 3, LEVELS)
    policy.save(tmp_path / "policy.npz", state_names=["a", "b", "c"], note="for a test")
    back = load_policy(tmp_path / "policy.npz")
    assert back == policy
    for one in (policy, back):
        one.reset(1)
    assert walked(belief, 8, policy)[1] == walked(belief, 8, back)[1]


def test_the_bracket_of_a_log_is_saved_with_its_policy(tmp_path):
    """Terminal states, rewards of finitely many values, actions that were never offered: what a log gives."""
    rng, rows = np.random.default_rng(2), []
    for _ in range(40):
        s = 0
        while s != 2:
            a = int(rng.integers(2))
            t = int(rng.choice(3, p=[[0.5, 0.3, 0.2], [0.1, 0.5, 0.4]][a]))
            rows.append((s, a, float(rng.choice([0.0, 1.0, 3.0])), t, t == 2))
            s = t
    *columns, ends = map(list, zip(*rows, strict=True))
    found = plan_log(log_of(*columns, terminated=ends), discount=0.9, n_models=100, effort=12, measure=False)
    assert found.learnt.belief.terminal.any()
    sampled = [bound for bound in found.bracket.bounds if bound.policy is not None]
    assert any(isinstance(bound.policy, ParticlePolicy) for bound in sampled)
    found.bracket.save(tmp_path / "bracket.json")
    assert Bracket.load(tmp_path / "bracket.json").policy == found.bracket.policy
    for k, bound in enumerate(sampled):
        bound.policy.save(tmp_path / f"{k}.npz")
        assert load_policy(tmp_path / f"{k}.npz") == bound.policy


def test_rewards_of_an_unknown_class_are_refused_in_words(tmp_path):
    class Other:
        learns, range = False, (0.0, 1.0)

        def __getattr__(self, name):
            return getattr(REWARDS["known"].expand(S, A), name)

        def expand(self, n_states, n_actions):
            return self

    policy = ParticlePolicy(DirichletBelief(S, A, rewards=Other()), np.eye(S)[0], 0.9, None, 3, LEVELS)
    with pytest.raises(PolicyError, match="cannot be saved: rewards of the kind Other"):
        policy.save(tmp_path / "policy.npz")
    assert not (tmp_path / "policy.npz").exists()


def test_files_of_an_earlier_form_and_damaged_ones_say_what_they_are(tmp_path):
    belief = belief_of("known", "both", tied=True)
    ParticlePolicy(belief, np.eye(S)[0], 0.9, None, 3, LEVELS).save(tmp_path / "policy.npz")
    arrays = read_arrays(tmp_path / "policy.npz")
    old = {name.removeprefix("belief_"): array for name, array in arrays.items()}
    for changed, message in (
        (old | {"header": arrays["header"]}, "earlier release"),
        (arrays | {"belief_row": arrays["belief_row"] + 9}, "outside 0"),
        (arrays | {"belief_arrive": np.zeros_like(arrays["belief_arrive"])}, "both lead to state 0|stays where it is"),
        (arrays | {"belief_concentration": arrays["belief_concentration"] * 0.0}, "no possible outcome"),
        (arrays | {"belief_terminal": ~arrays["belief_terminal"]}, "stays where it is"),
        (arrays | {"belief_more": arrays["start"]}, "unknown array 'more'"),
        (arrays | {"start": np.ones(2) / 2}, "has 2 states where other arrays have 3"),
    ):
        write_arrays(tmp_path / "changed.npz", changed)
        with pytest.raises(FileError, match=message):
            load_policy(tmp_path / "changed.npz")


def test_a_bracket_of_tied_rows_plays_from_its_file(tmp_path):
    belief = belief_of("values", "free", tied=True)
    found = bracket(belief, discount=0.9, initial=0, effort=10, rng=1)
    found.save(tmp_path / "found.json")
    assert Bracket.load(tmp_path / "found.json").policy == found.policy
