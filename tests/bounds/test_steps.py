"""The clock decides only how far a bracket gets: seed and effort say which one it is, bit for bit."""

import numpy as np
import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.bracket import Bracket, bracket
from beliefbound.bounds.record import Record
from beliefbound.bounds.steps import GROWTH, STEP_WORK, Limits, Meter, take
from beliefbound.policy import StationaryPolicy
from support.beliefs import chain_belief, random_belief
from support.tiers import tiers


def chain():
    return chain_belief(30, 4).sample(6, np.random.default_rng(5))


def told(found):
    """Everything that a certificate says but the time it took."""
    return [bound.to_dict() for bound in found.bounds], found.regret, found.confidence, found.effort, found.policy


@pytest.mark.full
@pytest.mark.parametrize("horizon", [None, 40])
def test_the_number_of_threads_changes_no_bit(horizon):
    runs = [bracket(chain(), discount=0.9, horizon=horizon, effort=14, rng=3, threads=threads) for threads in (1, 2)]
    assert told(runs[0]) == told(runs[1])
    assert runs[0].effort == 14
    if horizon is not None:  # nothing but scenarios is shared by threads
        assert any(not bound.exact for bound in runs[0].bounds)


@pytest.mark.parametrize("horizon", tiers([None, 40], 40))
def test_what_the_clock_stopped_is_what_that_effort_gives(horizon, clock):
    clock.step = 1.0
    timed = bracket(chain(), discount=0.9, horizon=horizon, time_limit=12.5, rng=np.random.default_rng(8))
    assert 1 < timed.effort < 13
    again = bracket(chain(), discount=0.9, horizon=horizon, effort=timed.effort, rng=timed.seed)
    assert told(timed) == told(again)
    assert again.version == timed.version


def test_more_effort_goes_on_where_less_has_stopped():
    some, more = (bracket(chain(), discount=0.9, effort=k, rng=1) for k in (5, 9))
    assert (some.effort, more.effort) == (5, 9)
    known = [bound.to_dict() for bound in some.bounds]
    assert [bound.to_dict() for bound in more.bounds][: len(known)] == known
    assert more.width <= some.width


def test_a_target_ends_an_effort_early_and_a_closed_bracket_ends_it():
    found = bracket(chain(), discount=0.9, effort=1000, target_gap=0.05, rng=1)
    assert found.effort < 1000
    assert found.relative_gap <= 0.05
    belief, _ = random_belief(np.random.default_rng(1), "bernoulli", n_models=2)
    closed = bracket(belief, discount=0.9, horizon=3, effort=10**6, rng=1)
    assert closed.relative_gap <= 1e-9


def test_a_saved_bracket_still_says_how_to_make_it_again(tmp_path):
    found = bracket(chain(), discount=0.9, effort=3, rng=7)
    found.save(tmp_path / "b.json")
    loaded = Bracket.load(tmp_path / "b.json")
    assert (loaded.seed, loaded.effort, loaded.version) == (7, 3, found.version)
    assert loaded.decision.to_dict() == found.decision.to_dict()


@pytest.mark.parametrize("effort", [0, -1, 1.5, "much"])
def test_an_effort_is_a_number_of_steps(effort):
    with pytest.raises(ParameterError, match="effort"):
        bracket(chain(), discount=0.9, effort=effort, rng=1)


def test_effort_and_time_are_not_given_together():
    with pytest.raises(ParameterError, match="effort.*time limit"):
        bracket(chain(), discount=0.9, effort=3, time_limit=1.0, rng=1)


def steps(n, record):
    for k in range(n):
        policy = StationaryPolicy([0])
        record.add(Bound(k, "lower", "l", policy=policy) if k % 2 else Bound(100.0 - k, "upper", "u"))
        yield


def test_steps_are_taken_until_both_sides_are_there_and_the_clock_says_so():
    late = Record(0.95)
    late.began = -1e9
    assert take(steps(10, late), late, Limits(seconds=1.0)) == 2
    for effort, taken in ((1, 2), (7, 7), (50, 10)):
        record = Record(0.95)
        assert take(steps(10, record), record, Limits(effort=effort, seconds=1.0)) == taken


def test_steps_grow_with_the_work_behind_them():
    meter = Meter()
    assert meter.left == STEP_WORK
    meter.add(0.4 * STEP_WORK)
    assert not meter.full()
    meter.add(0.6 * STEP_WORK)
    assert meter.full()
    meter.add(1000.0 * STEP_WORK)
    assert meter.full()
    assert meter.left == pytest.approx(GROWTH * 1001.0 * STEP_WORK)


def test_a_long_step_is_not_begun_where_there_is_no_time_left_for_it(clock):
    def sequence(record, taken):
        yield from steps(2, record)
        record.ahead = 1e6
        yield
        record.ahead = 0.0
        taken.append("long")
        yield

    for effort, expected in ((None, []), (4, ["long"])):
        record, taken = Record(0.95), []
        assert take(sequence(record, taken), record, Limits(effort=effort, seconds=1e3)) == 3 + len(expected)
        assert taken == expected
