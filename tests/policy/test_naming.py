"""Names of states, actions and models reach every result: words, HTML, files, policies and pictures."""

import json
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from beliefbound import (
    Bracket,
    FiniteBelief,
    Information,
    RobustBracket,
    bracket,
    certify,
    load_actor,
    mmbi,
    robust_bracket,
    value_of_information,
)
from beliefbound.base.errors import FileError, ObservationError
from beliefbound.bounds import evppi, evsi
from beliefbound.bounds.finite.decision_graph import Node
from beliefbound.policy.naming import Names
from beliefbound.report.decision import decision_sections, write_decision
from beliefbound.report.decision_graph import draw

TASK = {"discount": 0.9, "initial": 0}
NAMES = Names(("up$on", "do<b>wn"), ("stay", "$move"), ("wet year", "dry year"))


@pytest.fixture(scope="module")
def belief():
    """Two models: in one, moving leads from a state to the other."""
    stay, move = np.eye(2), np.eye(2)[::-1]
    P = 0.9 * np.stack([np.stack([stay, move], axis=1), np.stack([stay, stay], axis=1)]) + 0.05
    named = {"states": NAMES.states, "actions": NAMES.actions, "model_names": NAMES.models}
    return FiniteBelief(P, [[0.0, -0.1], [1.0, 0.9]], initial=0, **named)


@pytest.fixture(scope="module")
def robust(belief):
    return robust_bracket(belief, **TASK, effort=2, rng=0)


def labels(axis):
    return {label.get_text() for label in axis.get_ticklabels()}


def test_what_to_measure_is_named(belief, tmp_path):
    found = value_of_information(belief, **TASK, horizon=3, rng=0)
    s, a = found.best()
    pair = NAMES.pair(s, a)
    assert found.high[s, a] > 0.0
    assert pair in repr(found)
    assert pair in found.summary()
    assert pair.replace("<", "&lt;").replace(">", "&gt;") in found._repr_html_()
    found.save(tmp_path / "found.json")
    assert Information.load(tmp_path / "found.json").names == NAMES
    axes = found.plot()
    axes.figure.canvas.draw()
    assert labels(axes.xaxis) == {"stay", r"\$move"}
    assert labels(axes.yaxis) == {r"up\$on", "do<b>wn"}
    plt.close(axes.figure)
    assert evppi(belief, (1, 0), **TASK, horizon=2).of == "EVPPI of (do<b>wn, stay)"
    assert evsi(belief, (0, 1), 2, **TASK, horizon=2).of == "EVSI of 2 observations of (up$on, $move)"


def test_names_of_a_file_that_do_not_fit_are_refused(belief, tmp_path):
    file = tmp_path / "found.json"
    value_of_information(belief, **TASK, horizon=2, rng=0).save(file)
    content = json.loads(file.read_text())
    for names in ({"states": ["a"]}, {"states": ["a", "a"]}, {"states": [1, 2]}, {"colours": ["a"]}, 3):
        file.write_text(json.dumps({**content, "names": names}))
        with pytest.raises(FileError, match=r"found\.json"):
            Information.load(file)
    file.write_text(json.dumps({key: held for key, held in content.items() if key != "names"}))
    assert Information.load(file).names == Names()


def test_the_worst_prior_and_a_certified_policy_name_models(belief, robust, tmp_path):
    assert "year" in robust.summary()
    assert "model 0" not in robust.summary() + robust._repr_html_()
    robust.save(tmp_path / "robust.json")
    assert RobustBracket.load(tmp_path / "robust.json").names == NAMES
    act = load_actor(tmp_path / "robust.policy.npz")
    assert act("up$on") in NAMES.actions
    found = certify(mmbi(belief, discount=0.9).policy, belief, **TASK, upper=bracket(belief, **TASK, effort=1).upper)
    assert f"on {NAMES.model(int(np.argmin(found.model_values)))}" in found.summary()


def test_a_bracket_and_a_plan_keep_names_with_their_policies(belief, tmp_path):
    found = bracket(belief, **TASK, effort=2, rng=0)
    found.save(tmp_path / "bracket.json")
    assert Bracket.load(tmp_path / "bracket.json").names == NAMES
    (policy,) = tmp_path.glob("bracket.policy.*")
    assert load_actor(policy)("up$on") in NAMES.actions
    with pytest.raises(ObservationError, match=r"no state of the policy; did you mean 'up\$on'"):
        load_actor(policy)("up$onn")
    mmbi(belief, discount=0.9).save(tmp_path / "plan.json")
    assert load_actor(tmp_path / "plan.policy.json")("do<b>wn") in NAMES.actions


def test_an_archive_whose_names_do_not_fit_is_refused(robust, tmp_path):
    robust.policy.save(tmp_path / "policy.npz", state_names=["a", "b", "c"])
    with pytest.raises(FileError, match=r"policy\.npz is damaged: 3 state names for 2 states"):
        load_actor(tmp_path / "policy.npz")


def test_pictures_of_reports_show_names_that_look_like_formulas(belief, tmp_path):
    found = bracket(belief, **TASK, target="decision", effort=3, rng=0)
    picture = write_decision(found, tmp_path)
    (section,) = decision_sections(found, belief, [], picture)
    told = {cell for table in section.tables for row in table.rows for cell in row}
    assert told >= {*NAMES.actions, *NAMES.models}
    node = Node(1, "a$b", r"$\frac{", 1.0, (("$x_", 1),))
    assert draw(SimpleNamespace(nodes=(node,), start=(("a$b", 1),)), tmp_path / "graph").stat().st_size > 1000
