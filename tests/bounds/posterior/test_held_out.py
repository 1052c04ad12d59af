"""Importance-weighted returns have the value as their mean, and held-out episodes say nothing that is not so."""

from dataclasses import replace

import numpy as np
import pytest

from beliefbound.beliefs.from_log import learn
from beliefbound.bounds.posterior.held_out import HeldOut, held_out
from beliefbound.bounds.posterior.weighted import Weighted
from beliefbound.bounds.statistics.clipped import nonnegative_mean_at_least
from beliefbound.logs import log_of
from beliefbound.logs.log import Episodes
from beliefbound.planning.safe.bounded import value_of
from beliefbound.planning.safe.frequencies import Frequencies

# Two states and an end; action 0 dawdles, action 1 tends to the end. Rewards of either sign.
ROWS = np.array([[[0.6, 0.3, 0.1], [0.1, 0.5, 0.4]], [[0.5, 0.5, 0.0], [0.0, 0.3, 0.7]], [[0.0, 0.0, 1.0]] * 2])
PAID = np.array([[-1.0, 0.5], [-0.5, 2.0], [0.0, 0.0]])
BEHAVIOUR = np.array([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])
POLICY = np.array([[0.2, 0.8], [0.9, 0.1], [0.5, 0.5]])
OVER = np.array([False, False, True])
RANGE = (-1.0, 2.0)


def every_episode(steps: int, behaviour):
    """Episodes from state 0 of at most so many steps, each with its chance; `behaviour(history)`: chances `[a]`."""
    found = []

    def grow(history, state, chance):
        if state == 2 or len(history) == steps:
            found.append((history, chance))
            return
        for a, p in enumerate(behaviour(history, state)):
            for t, q in enumerate(ROWS[state, a]):
                if p * q > 0.0:
                    grow([*history, (state, a, t, PAID[state, a], p)], t, chance * p * q)

    grow([], 0, 1.0)
    lengths = np.array([len(history) for history, _ in found])
    s, a, t, r, p = (np.array(x) for x in zip(*(step for history, _ in found for step in history), strict=True))
    return Episodes(np.cumsum(lengths) - lengths, s, a, t, r, p), np.array([chance for _, chance in found])


def forgetful(history, state):
    return BEHAVIOUR[state]


def moody(history, state):
    """Not a memoryless behaviour: it does what it did before more often."""
    return (
        BEHAVIOUR[state]
        if not history
        else 0.5 * BEHAVIOUR[state] + 0.5 * np.array([0.8, 0.2])[:: 1 - 2 * history[-1][1]]
    )


def staged_value(policy, horizon, discount):
    values = np.zeros(3)
    for k in range(horizon)[::-1]:
        now = policy if policy.ndim == 2 else policy[k]
        values = (now * (PAID + discount * ROWS @ values)).sum(axis=1)
    return values[0]


@pytest.mark.parametrize("behaviour", [forgetful, moody])
@pytest.mark.parametrize("policy", [POLICY, np.stack([POLICY, POLICY[::, ::-1], BEHAVIOUR])])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_the_mean_of_weighted_returns_is_the_value(behaviour, policy, discount):
    """All episodes of three steps, each with its chance: exact, whatever behaviour remembers."""
    episodes, chance = every_episode(3, behaviour)
    assert chance.sum() == pytest.approx(1.0)
    ready = Weighted.of(episodes, episodes.propensity, RANGE, OVER, discount=discount, horizon=3)
    assert ready.cut == 0
    assert (ready.returns(policy) >= 0.0).all()
    assert ready.least + chance @ ready.returns(policy) == pytest.approx(staged_value(policy, 3, discount))
    own = ready.most - chance @ ready.missing()
    assert own == pytest.approx(chance @ ready.logged())
    if behaviour is forgetful:
        assert own == pytest.approx(staged_value(BEHAVIOUR, 3, discount))


def test_episodes_that_are_cut_off_say_less_and_nothing_false():
    """For ever, cut off after four steps: what is missing is exactly the rest at the least, or at the most."""
    episodes, chance = every_episode(4, forgetful)
    ready = Weighted.of(episodes, episodes.propensity, RANGE, OVER, discount=0.8, horizon=None)
    last = episodes.first + episodes.lengths - 1
    cut = episodes.next_state[last] != 2
    assert ready.cut == cut.sum()
    value = value_of(POLICY, ROWS, PAID, 0.8)
    found = ready.least + chance @ ready.returns(POLICY)
    ratio = POLICY[episodes.state, episodes.action] / episodes.propensity
    weight = np.array([ratio[i : i + n].prod() for i, n in zip(episodes.first, episodes.lengths, strict=True)])
    rest = 0.8**4 * (value[episodes.next_state[last]] - ready.least)
    assert found == pytest.approx(value[0] - (chance * cut * weight) @ rest)
    assert found < value[0]
    own = value_of(BEHAVIOUR, ROWS, PAID, 0.8)[0]
    assert ready.most - chance @ ready.missing() > own > chance @ ready.logged()


def test_the_mean_of_huge_samples_is_bounded_from_below():
    """Weights of a product of ratios: 400 bounds at 90%, false in at most 15% (were it 10%, once in 1000 tries)."""
    false = tight = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        pilot, samples = (np.exp(rng.normal(0.0, 1.5, n) - 1.125) for n in (100, 200))  # of mean 1
        bound = nonnegative_mean_at_least(samples, pilot=pilot, alpha=0.1)
        false, tight = false + (bound > 1.0), tight + (bound > 0.4)
    assert false <= 60
    assert tight > 300
    assert nonnegative_mean_at_least(np.zeros(0), pilot=np.ones(3), alpha=0.1) == 0.0
    assert nonnegative_mean_at_least(np.ones(9), pilot=np.zeros(3), alpha=0.1) >= 0.0


def logged(n, seed, *, propensities=True, steps=30):
    """Episodes of behaviour, which has an end."""
    rng = np.random.default_rng(seed)
    rows = []
    for e in range(n):
        s = 0
        for _ in range(steps):
            a = int(rng.random() >= BEHAVIOUR[s, 0])
            t = int(rng.choice(3, p=ROWS[s, a]))
            rows.append((e, s, a, PAID[s, a], t, t == 2, BEHAVIOUR[s, a]))
            s = t
            if t == 2:
                break
    e, s, a, r, t, done, p = (np.array(x) for x in zip(*rows, strict=True))
    sizes = {"n_states": 3, "n_actions": 2}
    return log_of(s, a, r, t, terminated=done, episodes=e, propensities=p if propensities else None, **sizes)


def checked(log, **changed):
    learnt = learn(log)
    behaviour = changed.pop("behaviour", log.behaviour().chances(2))
    data = Frequencies.of(log, behaviour, learnt.belief.available, learnt.terminal)
    knobs = {"given": False, "start": None, "discount": 0.9, "horizon": None, "error": 0.1} | changed
    return held_out(log, data, **knobs)


@pytest.mark.full
def test_what_held_out_episodes_say_is_true():
    """200 logs at 90%: false in at most 8% of them (were it 5% each, once in 30 tries), and it says a good deal."""
    now, false, gains = value_of(BEHAVIOUR, ROWS, PAID, 0.9)[0], 0, 0
    for seed in range(200):
        found = checked(logged(60, seed))
        assert isinstance(found, HeldOut)
        true = value_of(np.vstack([found.policy.policy.chances(2)[:2], POLICY[2]]), ROWS, PAID, 0.9)[0]
        false += found.value > true or found.gain > true - now
        gains += not found.vacuous
        assert found.proven
        assert (found.n_chosen, found.n_valued) == (30, 30)
    assert false <= 16
    assert gains == 200


def test_enough_episodes_show_an_improvement():
    found = checked(logged(3000, 7))
    assert found.gain > 0.1
    assert found.now == pytest.approx(value_of(BEHAVIOUR, ROWS, PAID, 0.9)[0], abs=0.15)
    assert found.value < found.estimate


def test_chances_that_are_given_prove_and_estimated_ones_do_not():
    log = logged(200, 3, propensities=False)
    assert log.episodes.propensity is None
    estimated, given = checked(log), checked(log, behaviour=BEHAVIOUR, given=True)
    assert (estimated.chances, estimated.proven) == ("estimated", False)
    assert (given.chances, given.proven) == ("given", True)
    known = checked(logged(200, 3))
    assert known.chances == "logged"


def test_where_nothing_can_be_said_it_says_why():
    log = logged(200, 3)
    assert "no column 'episode'" in checked(replace(log, episodes=None))
    assert "there are 12 episodes, fewer than 20" in checked(logged(12, 1))
    assert "the start is not that of the log's episodes" in checked(log, start=np.array([0.5, 0.5, 0.0]))
    assert isinstance(checked(log, start=np.array([1.0, 0.0, 0.0])), HeldOut)
    assert "there are 0 episodes" in checked(log, start=np.array([0.0, 1.0, 0.0]))
    small = log.episodes._replace(propensity=log.episodes.propensity * 0.3)
    assert "too small to be true: 1/propensity is" in checked(replace(log, episodes=small))


def test_a_log_without_some_of_its_steps_is_the_log_of_the_others():
    """Counts from which steps are taken away, against counting the others."""
    log = logged(40, 5)
    data = Frequencies.of(log, BEHAVIOUR, np.ones((3, 2), dtype=bool), OVER)
    odd = np.arange(40) % 2 == 1
    gone, rest = log.episodes.chosen(odd), log.episodes.chosen(~odd)
    steps = log_of(rest.state, rest.action, rest.reward, rest.next_state, n_states=3, n_actions=2)
    other = Frequencies.of(steps, BEHAVIOUR, data.available, OVER)
    for by_value in (True, False):
        left = data.without(gone, by_value=by_value)
        assert left.visits.tolist() == other.visits.tolist()
        np.testing.assert_allclose(left.model()[0], other.model()[0])
        np.testing.assert_allclose(left.model()[1], other.model()[1])


def test_candidates_know_nothing_of_the_episodes_held_out():
    """Every second episode with other rewards, so that another policy is better: the choice is the same."""
    log = logged(100, 2)
    odd = np.repeat(np.arange(100) % 2 == 1, log.episodes.lengths)
    e = log.episodes
    ids = np.repeat(np.arange(100), e.lengths)
    swapped = np.where(odd, PAID[e.state, 1 - e.action], e.reward)
    sizes = {
        "n_states": 3,
        "n_actions": 2,
        "episodes": ids,
        "propensities": e.propensity,
        "terminated": e.next_state == 2,
    }
    other = log_of(e.state, e.action, swapped, e.next_state, **sizes)
    assert checked(other).policy.policy == checked(log).policy.policy
    assert checked(other).value != checked(log).value


def test_of_large_problems_few_candidates_are_made_and_of_larger_ones_none(monkeypatch):
    log = logged(60, 4)
    monkeypatch.setattr("beliefbound.bounds.posterior.held_out._FEW_ENTRIES", 1)
    assert checked(log).policy.name.startswith(("SPIBB, at most behaviour below 5 visits", "pessimistic, doubt 1"))
    monkeypatch.setattr("beliefbound.bounds.posterior.held_out._MOST_ENTRIES", 1)
    assert checked(log) == "3 states and 2 actions are too many for it"
