"""A team of threads: the same results in the same order, nobody waits for a busy thread, exceptions arrive."""

import threading

import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.base.executors.team import ALONE, Team


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_results_come_in_the_order_of_the_tasks_also_within_one_another(threads):
    with Team(threads) as team:

        def sums(n):
            return sum(team.run([lambda i=i: i * n for i in range(20)]))

        assert team.run([lambda n=n: sums(n) for n in range(30)]) == [190 * n for n in range(30)]
        assert team.run([]) == []
        assert team.map(lambda block, own: (block, own is not None), range(5), [[], []]) == [
            (i, True) for i in range(5)
        ]
        assert team.map(lambda block, own: block, [], [1, 2]) == []


def test_scratch_is_used_by_one_at_a_time_and_ranges_make_up_the_whole():
    with Team(4) as team:
        scratch, busy, twice = [object() for _ in range(3)], set(), []

        def work(block, own):
            if own in busy:
                twice.append(block)
            busy.add(own)
            threading.Event().wait(0.001)
            busy.remove(own)
            return block

        assert team.map(work, range(40), scratch) == list(range(40))
        assert not twice


def test_tasks_run_side_by_side():
    """Each waits for the other: on one thread they would never end."""
    both = threading.Barrier(2, timeout=30.0)
    with Team(2) as team:
        assert sorted(team.run([both.wait, both.wait])) == [0, 1]


def test_who_waits_for_others_takes_part_in_what_they_divide():
    """One of two tasks is divided into two that wait for each other, after the other has ended."""
    begun, both = threading.Event(), threading.Barrier(2, timeout=30.0)
    with Team(2) as team:

        def divided():
            begun.set()
            return sorted(team.run([both.wait, both.wait]))

        for _ in range(20):
            begun.clear()
            assert team.run([lambda: begun.wait(30.0), divided]) == [True, [0, 1]]


@pytest.mark.parametrize("team", [ALONE, Team(3)])
def test_the_first_exception_is_raised_and_the_team_goes_on(team):
    def fail():
        raise ValueError("task 1")

    with team, pytest.raises(ValueError, match="task 1"):
        team.run([int, fail, int])
    with team:
        assert team.run([int, int]) == [0, 0]


def test_a_number_of_threads_is_checked():
    with pytest.raises(ParameterError, match="threads"):
        Team(0)
