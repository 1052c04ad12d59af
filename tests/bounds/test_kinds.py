"""A bound says what it is by its type: the sentence beside it is for people, and nothing is decided by its words."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import beliefbound
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

SOURCES = Path(beliefbound.__file__).parent
ROOMS = {path: ast.parse(path.read_text()) for path in sorted(SOURCES.rglob("*.py"))}


def made():
    """Bounds of everything that makes some."""
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


def test_every_bound_has_a_kind_of_its_own():
    kinds = {(bound.side, bound.kind) for bound in made()}
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


def test_other_words_change_nothing():
    """The table of a report groups by kind, whatever the sentences are."""
    bounds = tuple(made())
    reworded = tuple(replace(bound, method=f"sentence {k}") for k, bound in enumerate(bounds))
    rows, others = best_rows(bounds)[1], best_rows(reworded)[1]
    assert [row[1:] for row in rows] == [row[1:] for row in others]
    assert len(rows) == len({(bound.side, bound.kind) for bound in bounds})


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: str(path.relative_to(SOURCES)))
def test_nothing_searches_in_a_sentence(path):
    """No comparison with, and no pattern over, a `method`."""
    for node in ast.walk(ROOMS[path]):
        asked = []
        if isinstance(node, ast.Compare) and any(isinstance(x, ast.In | ast.NotIn | ast.Eq) for x in node.ops):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            asked = node.args if named else [node.func.value] if node.func.attr in ("startswith", "find") else []
        sentences = [x for x in asked if isinstance(x, ast.Attribute) and x.attr == "method"]
        assert not sentences, f"{path.name}:{node.lineno} decides by the words of a method"


@pytest.mark.parametrize("path", [p for p in ROOMS if p.is_relative_to(SOURCES / "bounds")], ids=lambda path: path.stem)
def test_bounds_do_not_ask_which_class_a_policy_is(path):
    """Policies answer for themselves (`bounds.policies`); equality is the one place for classes."""
    functions = [node for node in ast.walk(ROOMS[path]) if isinstance(node, ast.FunctionDef)]
    equal = {id(inner) for node in functions if node.name == "__eq__" for inner in ast.walk(node)}
    for node in ast.walk(ROOMS[path]):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            names = {x.id for x in ast.walk(node.args[1]) if isinstance(x, ast.Name)}
            switches = {name for name in names if name.endswith("Policy")}
            allowed = id(node) in equal or (path.name == "policies.py" and switches == {"Policy"})
            assert not switches or allowed, f"{path.name}:{node.lineno} asks for {switches}"


def test_frozen_bounds_stay_as_they_were_made():
    """Nothing sets a field of a frozen result but its own `__post_init__`."""
    for path, tree in ((p, tree) for p, tree in ROOMS.items() if p.is_relative_to(SOURCES / "bounds")):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "__setattr__":
                inside = [f.name for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and node in ast.walk(f)]
                assert inside in (["__post_init__"], ["_check"]), f"{path.name}:{node.lineno}"
