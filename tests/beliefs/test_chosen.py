"""Weights and starts that somebody chooses for models: in words of the command line, in Python, again by `verify`."""

import numpy as np
import pytest
from typer.testing import CliRunner

from beliefbound import FiniteBelief, bracket, read_models, write_models
from beliefbound.base.errors import BeliefboundError
from beliefbound.cli import app
from support.oracles import random_models

STATES, MODELS = ("low", "medium", "high"), ("dry", "wet")


@pytest.fixture(params=["folder", pytest.param("models.npz", marks=pytest.mark.full)])
def models(tmp_path, request):
    p, r, _, _ = random_models(np.random.default_rng(3), 2, 3, 2)
    names = {"states": STATES, "actions": ("wait", "go"), "model_names": MODELS}
    belief = FiniteBelief(p, r, [0.5, 0.5], initial="medium", reward_signal="unobserved", **names)
    assert belief.initial.tolist() == [0.0, 1.0, 0.0]
    return write_models(tmp_path / request.param, belief, discount=0.9)


def test_weights_and_start_in_every_form(tmp_path, models):
    (tmp_path / "w.csv").write_text("idoutcome,weight\nwet,3\ndry,1\n")
    for given in ("1,3", [1, 3], "wet=3,dry=1", {"wet": 0.75, "dry": 0.25}, {0: 1, 1: 3}, tmp_path / "w.csv"):
        assert read_models(models, weights=given).training.weights.tolist() == [0.25, 0.75]
    (tmp_path / "start.csv").write_text("idstate,probability\nhigh,0.5\nlow,0.5\n")
    for start in ("low=0.5,high=0.5", [0.5, 0, 0.5], str(tmp_path / "start.csv"), {"low": 0.5, "high": 0.5}):
        found = read_models(models, initial=start)
        assert found.initial.tolist() == [0.5, 0.0, 0.5] == found.training.initial.tolist()
    for start in ("high", 2, "2"):
        assert read_models(models, initial=start).initial.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weights": "1,2,3"}, "3 numbers for 2 models; give each model one"),
        ({"weights": "1"}, "1 numbers for 2 models, none for .*; give each model one, 0 where it does not count"),
        ({"weights": "1,-2"}, "at least 0"),
        ({"weights": "0,0"}, "not all 0"),
        ({"weights": "wett=1,dry=1"}, "no model 'wett'; did you mean 'wet'"),
        ({"weights": "wet,dry"}, "weights is 'wet', no number"),
        ({"weights": "missing.csv"}, "missing.csv is not a file"),
        ({"initial": "hihg"}, "initial is 'hihg'.*did you mean 'high'"),
        ({"initial": []}, "one number per state"),
        ({"initial": {}}, "initial"),
        ({"initial": "low=2,high=-1"}, "not negative"),
        ({"initial": "7"}, "initial state is 7"),
        ({"initial": "low=0.5"}, "sums to 0.5"),
        ({"initial": [0.5, 0.5, 0.0, 0.0]}, "no state 3"),
    ],
)
def test_what_cannot_be_meant_is_said(models, given, said):
    with pytest.raises(BeliefboundError, match=said):
        read_models(models, **given)


@pytest.mark.full
def test_commands_take_them_and_verify_makes_the_certificate_again(tmp_path, models):
    run, out = CliRunner(), tmp_path / "out"
    asked = ["--weights", "wet=3,dry=1", "--initial", "high"]
    assert run.invoke(app, ["bound", str(models), "--effort", "20", "-o", str(out), *asked]).exit_code == 0
    held = read_models(models)
    belief = held.training.reweight([0.25, 0.75])
    found = bracket(belief, discount=0.9, initial="high", effort=20, rng=1)
    assert f'"value": {found.upper.value!r}' in (out / "bounds.json").read_text()
    assert run.invoke(app, ["verify", str(out / "bounds.json")]).exit_code == 0
    rule = str(out / "memoryless.csv")
    told = run.invoke(app, ["certify", rule, str(models), "--time", "1", *asked, "-o", str(tmp_path / "c.json")])
    assert told.exit_code == 0
    robust = ["robust", str(models), "--priors", "l1:0.1", "--effort", "2", "-o", str(tmp_path / "r"), *asked]
    assert run.invoke(app, robust).exit_code == 0
    assert run.invoke(app, ["verify", str(tmp_path / "r" / "robust.json")]).exit_code == 0


@pytest.mark.full
def test_a_start_may_be_a_dictionary_of_names_or_numbers():
    """As weights of models may, wherever a start is given."""
    p, r, _, _ = random_models(np.random.default_rng(3), 2, 3, 2)
    belief = FiniteBelief(p, r, initial="medium", reward_signal="unobserved", states=STATES)
    whole = bracket(belief, discount=0.9, initial=[0.25, 0.0, 0.75], effort=2, rng=1)
    for given in ({"low": 0.25, "high": 0.75}, {0: 0.25, "high": 0.75}):
        assert bracket(belief, discount=0.9, initial=given, effort=2, rng=1) == whole
    for given, said in (
        ({"lo": 1.0}, "no state 'lo'"),
        ({0: 0.5}, "sums to 0.5"),
        ({9: 1.0}, "9"),
        ({"low": "x"}, "low"),
    ):
        with pytest.raises(BeliefboundError, match=said):
            bracket(belief, discount=0.9, initial=given, effort=2, rng=1)
