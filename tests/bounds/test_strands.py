"""Strands: what they find follows from the rounds alone, whoever is faster."""

import gc
import time
import weakref

import numpy as np
import pytest

from beliefbound.base.executors.team import Team
from beliefbound.bounds.bracket import bracket
from beliefbound.bounds.finite.search import finite_steps
from beliefbound.bounds.record import Record
from beliefbound.bounds.strands import Strand, done_of, take_round
from beliefbound.planning.rounding import Allowance
from beliefbound.planning.task import FiniteTask
from support.beliefs import random_belief


def counting(strand, shared, step, name, wait):
    """Counts up by `step`, and adds to what is committed of all."""
    while strand.done < 50.0:
        time.sleep(wait)
        strand.add(step)
        seen = tuple(shared)
        if strand.full():
            strand.find(lambda seen=seen: shared.append((name, strand.done, len(seen))))
            yield


def run(threads, waits):
    shared, strands = [], [Strand() for _ in waits]
    for i, (strand, wait) in enumerate(zip(strands, waits, strict=True)):
        strand.begin(counting(strand, shared, i + 1.0, i, wait))
    total = 0.0
    with Team(threads) as team:
        while any(strand.live for strand in strands):
            live = [strand for strand in strands if strand.live]
            total += take_round([(strand, 4.0 + len(shared) % 3) for strand in live], team)
    assert total == done_of(strands)
    return shared


def test_commits_do_not_depend_on_threads_nor_on_who_is_faster():
    alone = run(1, (0.0, 0.0, 0.0))
    assert len(alone) > 10
    for threads, waits in ((2, (0.002, 0.0, 0.0)), (3, (0.0, 0.003, 0.001)), (2, (0.0, 0.0, 0.002))):
        assert run(threads, waits) == alone


def test_a_strand_ends_its_part_of_a_round_and_may_begin_another_sequence():
    strand = Strand()
    assert not strand.live
    strand.begin(iter([None]))
    for _ in range(2):
        with Team(1) as team:
            take_round([(strand, 1.0)], team)
    assert not strand.live
    strand.begin(iter([None]))
    assert strand.live
    assert not strand.waiting
    strand.find(int)
    assert strand.waiting
    strand.commit()
    assert not strand.waiting


def test_what_goes_wrong_in_a_strand_is_raised():
    def broken():
        raise FloatingPointError("in a strand")
        yield

    good, bad = Strand(iter([None, None])), Strand(broken())
    with Team(2) as team, pytest.raises(FloatingPointError, match="in a strand"):
        take_round([(good, 1.0), (bad, 1.0)], team)
    assert np.isfinite(good.done)


def test_a_bracket_that_is_dropped_is_held_by_nobody():
    """Nor are its searches, by which a decision would find its stability."""
    belief, _ = random_belief(np.random.default_rng(7), "bernoulli")
    gc.collect()
    gc.disable()
    try:
        found = bracket(belief, discount=0.8, initial=0, effort=6, rng=1, threads=1)
        assert found.decision is not None
        held = weakref.ref(found.policy)
        del found
        assert held() is None
    finally:
        gc.enable()


def test_a_search_that_has_ended_is_held_by_nobody():
    """Its graphs are large, and nobody waits for the garbage collector where many small searches follow each other."""
    belief, _ = random_belief(np.random.default_rng(7), "bernoulli")
    task = FiniteTask.of(belief, discount=0.8)
    record = Record(0.95, allowance=Allowance(task), decide=True)
    gc.collect()
    gc.disable()
    try:
        steps = finite_steps(task, np.random.default_rng(1), 1, record)
        for _ in range(6):
            next(steps, None)
        held = weakref.ref(record.graph)
        del steps, record
        assert held() is None
    finally:
        gc.enable()
