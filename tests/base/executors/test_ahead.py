"""Samples made ahead: the same, in their order, on any number of threads."""

import time

import pytest

from beliefbound.base.executors.ahead import Ahead


class Slow:
    """Cubes, of which some take longer; scratch is used by one thread at a time."""

    def scratch(self):
        return []

    def one(self, number, scratch):
        assert not scratch
        scratch.append(number)
        time.sleep(0.002 * (number % 3))
        if number == 17:
            raise ArithmeticError("seventeen")
        return scratch.pop() ** 3


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_samples_are_those_of_their_numbers(threads):
    one, other = Slow(), Slow()
    shared = [[] for _ in range(threads)]
    with Ahead(threads) as ahead:
        for patient in (False, True):
            ahead.patient = patient
            first = 8 * patient
            for i in (first, first + 4):
                assert ahead.map(one, range(i, i + 4), lambda: shared) == [x**3 for x in range(i, i + 4)]
                assert ahead.map(other, range(i // 4, i // 4 + 1), lambda: shared) == [(i // 4) ** 3]
        ahead.forget(other)
        assert ahead.map(one, range(16, 17), lambda: shared) == [4096]


@pytest.mark.parametrize("threads", [1, 3])
def test_what_a_sample_raises_is_raised_when_it_is_asked_for(threads):
    slow, scratch = Slow(), [[] for _ in range(threads)]
    with Ahead(threads) as ahead:
        assert ahead.map(slow, range(14, 17), lambda: scratch) == [14**3, 15**3, 16**3]
        with pytest.raises(ArithmeticError, match="seventeen"):
            ahead.map(slow, range(17, 18), lambda: scratch)
