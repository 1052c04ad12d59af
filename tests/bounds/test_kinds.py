"""A bound says what it is by its type: the sentence beside it is for people, and nothing is decided by its words."""

from dataclasses import replace

import numpy as np
import pytest

from beliefbound import (
    Bound,
    DirichletBelief,
    StationaryPolicy,
    bracket,
    certify,
    lower_bound,
    robust_bracket,
    upper_bound,
)
from beliefbound.base.errors import ParameterError
from beliefbound.beliefs import NormalRewards
from beliefbound.bounds import Kind, evpi
from beliefbound.report.certificate import best_rows
from support.beliefs import chain_belief, random_belief


@pytest.fixture(scope="module")
def bounds():
    """Of everything that makes some."""
    return tuple(made())


def made():
    finite, _ = random_belief(np.random.default_rng(2), "bernoulli")
    table, task = StationaryPolicy([0, 0]), {"discount": 0.9, "rng": 1}
    yield from bracket(finite, effort=12, **task).bounds
    yield from bracket(finite, effort=4, horizon=5, **task).bounds
    yield from bracket(chain_belief(20, 0), effort=4, **task).bounds
    robust = robust_bracket(finite, effort=1, **task)
    yield from (robust.lower, robust.upper)
    for belief in (finite, DirichletBelief(2, 2)):
        yield lower_bound(table, belief, **task)
        yield from (upper_bound(belief, method=method, **task) for method in ("qmdp", "emax"))
    certified = certify(table, finite, upper=Bound(100.0, "upper", "somebody says so"), **task)
    yield from (certified.lower, certified.upper)


def test_every_bound_has_a_kind_of_its_own(bounds):
    kinds = {(bound.side, bound.kind) for bound in bounds}
    assert not any(kind is Kind.GIVEN for _, kind in kinds)
    for side in ("lower", "upper"):
        assert {(side, kind) for kind in (Kind.HISTORIES, Kind.DISTINCT_BELIEFS, Kind.POLICY)} <= kinds
    assert {("lower", Kind.MMBI), ("lower", Kind.MIXTURE), ("upper", Kind.PAIRS), ("upper", Kind.QMDP)} <= kinds
    assert Bound(1.0, "upper", "somebody says so").kind is Kind.GIVEN
    with pytest.raises(ParameterError, match="kind is 'MMBI'; give one of `bounds.Kind`"):
        Bound(1.0, "lower", "MMBI", kind="MMBI")


def test_only_students_interval_is_asymptotic_and_says_so_in_every_result():
    belief, task = DirichletBelief(2, 2, rewards=NormalRewards(0.0)), {"discount": 0.9, "rng": 1}
    normal = bracket(belief, effort=2, **task)
    assert all(bound.asymptotic for bound in normal.bounds)
    assert normal.regret.asymptotic
    assert normal.to_dict()["asymptotic"]
    assert evpi(belief, bounds=normal, n_models=100, **task).asymptotic
    student = bracket(chain_belief(0, 0), effort=4, interval="t", **task)
    assert {bound.asymptotic for bound in student.bounds if bound.exact} == {False}
    assert {bound.asymptotic for bound in student.bounds if not bound.exact} == {True}
    assert not any(bound.asymptotic for bound in bracket(chain_belief(0, 0), effort=4, **task).bounds)
    with pytest.raises(ParameterError, match="what holds with certainty is not asymptotic"):
        Bound(1.0, "lower", "x", asymptotic=True)


def test_other_words_change_nothing(bounds):
    """The table of a report groups by kind, whatever the sentences are."""
    reworded = tuple(replace(bound, method=f"sentence {k}") for k, bound in enumerate(bounds))
    rows, others = best_rows(bounds)[1], best_rows(reworded)[1]
    assert [row[1:] for row in rows] == [row[1:] for row in others]
    assert len(rows) == len({(bound.side, bound.kind) for bound in bounds})
