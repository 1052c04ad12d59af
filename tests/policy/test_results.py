"""Every result tells itself in words, as data, as a file and as a table, and comes back from its file as it was."""

import json
from dataclasses import replace
from functools import cache

import matplotlib
import numpy as np
import pytest

from beliefbound import (
    MDP,
    Bound,
    Bracket,
    DirichletBelief,
    FiniteBelief,
    Information,
    KnownRewards,
    Plan,
    Runs,
    bracket,
    cadp,
    certify,
    e_max,
    lower_bound,
    make_agent,
    make_env,
    mmbi,
    play,
    robust_bracket,
    upper_bound,
    value_iteration,
    value_of_information,
)
from beliefbound.base.errors import BeliefboundError, ContradictionError, FileError, ParameterError
from beliefbound.bounds import BestMemoryless, Regret, best_memoryless, policy_regret
from support.beliefs import chain_belief, random_belief

matplotlib.use("Agg")
RNG = np.random.default_rng(3)
BELIEF, _ = random_belief(RNG, "bernoulli", n_models=4, n_states=3)
TASK = {"discount": 0.9, "horizon": 4}


def runs(**knobs):
    environment = make_env("chain")
    return play(make_agent("random", environment), environment, seed=1, runs=5, steps=20, **knobs)


MADE = {
    "bound with values": lambda: e_max(BELIEF, **TASK),
    "estimated bound": lambda: upper_bound(DirichletBelief(2, 2), **TASK, n_models=20, rng=1),
    "information": lambda: value_of_information(BELIEF, **TASK),
    "information by tries": lambda: value_of_information(BELIEF, tries=2, draws=100, rng=1, **TASK),
    "runs": runs,
    "runs with a curve": lambda: runs(curve_every=5, visits=True),
}
WITH_POLICY = {
    "bound with a policy": lambda: lower_bound(cadp(BELIEF, **TASK).policy, BELIEF, discount=0.9),
    "regret": lambda: policy_regret(cadp(BELIEF, **TASK).policy, BELIEF, upper_bound(BELIEF, **TASK), discount=0.9),
    "best memoryless": lambda: best_memoryless(BELIEF, discount=0.9, horizon=3),
    "bracket of a search": lambda: bracket(BELIEF, **TASK, target_gap=1e-9, effort=5, rng=1, threads=1),
    "certified policy": lambda: certify(cadp(BELIEF, **TASK).policy, BELIEF, upper=upper_bound(BELIEF, **TASK), **TASK),
    "robust bracket": lambda: robust_bracket(BELIEF, **TASK, effort=2, target_gap=0.1, rng=1, threads=1),
    "bracket of a prior": lambda: bracket(chain_belief(0, 0), **TASK, effort=3, rng=1, threads=1),
}


@cache
def made(name):
    return (MADE | WITH_POLICY)[name]()


@pytest.fixture(params=MADE | WITH_POLICY)
def result(request):
    return made(request.param)


def same(one, other):
    """Equal numbers and words, bit for bit."""
    return one.to_dict() == other.to_dict()


def test_a_result_comes_back_from_its_file(result, tmp_path):
    result.save(tmp_path / "found.json")
    again = type(result).load(tmp_path / "found.json")
    assert same(result, again)
    assert repr(again) == repr(result)
    assert again.summary() == result.summary() or "policy" in result.summary()
    again.save(tmp_path / "again.json")
    one, other = (json.loads((tmp_path / name).read_text()) for name in ("found.json", "again.json"))
    assert one | {"policy": None} == other | {"policy": None}


@pytest.mark.parametrize("name", WITH_POLICY)
def test_the_policy_of_a_result_acts_as_before(name, tmp_path):
    result = made(name)
    policy = result.policy
    result.save(tmp_path / "found.json")
    again = type(result).load(tmp_path / "found.json").policy
    for walked in (policy, again):
        walked.reset(1)
    assert again.act(0) == policy.act(0)


def test_data_are_json_and_tables_are_escaped(result):
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == result.to_dict()
    table = result._repr_html_()
    assert table.startswith("<table>")
    assert table.count("<tr>") == table.count("</tr>") >= 2
    assert result.summary().startswith(repr(result))


def test_a_name_in_a_table_is_never_markup():
    assert "<b>" not in Bound(1.0, "lower", "<b>MMBI</b>")._repr_html_()


@pytest.mark.parametrize(
    "planned", [lambda: mmbi(BELIEF, **TASK), lambda: mmbi(BELIEF, discount=0.9), lambda: cadp(BELIEF, **TASK)]
)
def test_a_plan_is_read_with_its_belief_and_checked_on_it(planned, tmp_path):
    plan = planned()
    plan.save(tmp_path / "plan.json")
    again = Plan.load(tmp_path / "plan.json", BELIEF)
    assert same(plan, again)
    assert again.policy == plan.policy
    assert again.value(0) == plan.value(0)
    with pytest.raises(FileError, match="not what its policy earns"):
        Plan.load(tmp_path / "plan.json", BELIEF.reweight([0.7, 0.1, 0.1, 0.1]))
    with pytest.raises(FileError, match=r"plan\.json is damaged"):
        Plan.load(tmp_path / "plan.json", FiniteBelief([[[[1.0]]]], [[[1.0]]]))
    with pytest.raises(BeliefboundError, match="together with its belief"):
        Plan.load(tmp_path / "plan.json")


def test_a_plan_of_an_iteration_is_read_within_its_residual(tmp_path):
    mdp = MDP([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[0.0, 0.5], [1.0, 0.0]])
    plan = value_iteration(mdp, discount=0.9, epsilon=0.5)
    plan.save(tmp_path / "plan.json")
    assert same(plan, Plan.load(tmp_path / "plan.json", plan.belief))


def changed(path, **entries):
    content = json.loads(path.read_text()) | entries
    path.write_text(json.dumps({key: value for key, value in content.items() if value != "drop"}))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"format": "something"}, "format is not"),
        ({"version": 2}, "version 2 of kind 'bracket'; this program reads version 3: make it again"),
        ({"version": 4}, "version 4"),
        ({"version": True}, "version True"),
        ({"kind": "runs"}, "is of the kind 'runs', not 'bracket'"),
        ({"policy": None}, "names no policy"),
        ({"policy": "../other.json"}, "no name of a file beside it"),
        ({"policy": "nowhere.json"}, "cannot read"),
        ({"confidence": "much"}, "confidence"),
        ({"width": None}, "width"),
        ({"bounds": "drop"}, "bounds"),
        ({"more": 1}, "more"),
        ({"trace": [{"seconds": 0.1, "lower": 10**6, "upper": 0}]}, "names bounds that it does not have"),
        ({"lower": {"value": 1.0}}, "method"),
    ],
)
def test_a_damaged_file_is_refused_by_name(entries, message, tmp_path):
    file = tmp_path / "found.json"
    bracket(BELIEF, **TASK, target_gap=0.1, rng=1).save(file)
    changed(file, **entries)
    with pytest.raises(FileError, match=message) as error:
        Bracket.load(file)
    assert str(tmp_path) in str(error.value)


def test_ends_on_the_wrong_sides_are_refused(tmp_path):
    file = tmp_path / "found.json"
    bracket(BELIEF, **TASK, target_gap=0.1, rng=1).save(file)
    content = json.loads(file.read_text())
    changed(file, lower=content["upper"], upper=content["lower"])
    with pytest.raises(FileError, match="wrong sides"):
        Bracket.load(file)


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"[" * 10**5, b'{"format": "beliefbound result"}'])
@pytest.mark.parametrize("kind", [BestMemoryless, Bound, Bracket, Information, Regret, Runs])
def test_what_is_no_result_is_refused(kind, text, tmp_path):
    file = tmp_path / "found.json"
    file.write_bytes(text)
    with pytest.raises(FileError, match=r"found\.json"):
        kind.load(file)
    with pytest.raises(FileError, match="cannot read"):
        kind.load(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("entries", "message"),
    [({"utility": [1.0]}, "utility"), ({"curve": [[1.0]]}, "curve"), ({"total": [[1.0]]}, "total")],
)
def test_arrays_that_do_not_fit_together_are_refused(entries, message, tmp_path):
    file = tmp_path / "runs.json"
    runs(curve_every=5).save(file)
    changed(file, **entries)
    with pytest.raises(FileError, match=message):
        Runs.load(file)


def test_a_number_that_is_not_finite_is_not_written(tmp_path):
    with pytest.raises(ParameterError, match="not finite"):
        Bound(-np.inf, "lower", "nothing").save(tmp_path / "found.json")
    assert not (tmp_path / "found.json").exists()


def test_pictures_show_what_was_found():
    from matplotlib import pyplot as plt

    at_once = bracket(
        FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved"), discount=0.5
    )
    assert len(at_once.trace) == 1
    drawn = {
        "bracket": at_once.plot(),
        "plan": cadp(BELIEF, **TASK).plot(),
        "information": value_of_information(BELIEF, **TASK).plot(),
        "runs": runs().plot(),
        "curve": runs(curve_every=5).plot(),
    }
    low, high = drawn["bracket"].get_xlim()
    shown = [line for line in drawn["bracket"].lines if len(line.get_xdata()) and low <= line.get_xdata()[0] <= high]
    assert {3.0} == {round(float(y), 9) for line in shown for y in line.get_ydata()}
    assert len(drawn["plan"].patches) == 3
    assert np.asarray(drawn["information"].images[0].get_array()).shape == (3, 2)
    assert sum(bar.get_height() for bar in drawn["runs"].patches) == 5
    assert len(drawn["curve"].lines[0].get_xdata()) == 4
    _, mine = plt.subplots()
    assert at_once.plot(mine) is mine
    plt.close("all")


def test_ends_that_meet_have_a_picture_and_ends_that_cross_are_an_error():
    policy = bracket(BELIEF, **TASK, target_gap=0.1, rng=1).policy
    low, high = Bound(1.0, "lower", "x", policy=policy), Bound(1.0, "upper", "y")
    found = Bracket(low, high, policy, Regret(0.0, "z"), 1.0, (), (low, high))
    assert found.width == 0.0
    assert found.relative_gap == 0.0
    found.plot()
    crossed = replace(low, value=1.0 + 1e-15)
    with pytest.raises(ContradictionError, match=r"lower bound 1.000000000000001 \(x\) is above the upper bound 1.0 "):
        Bracket(crossed, high, policy, Regret(0.0, "z"), 1.0, (), (crossed, high))
    matplotlib.pyplot.close("all")


def test_fresh_randomness_differs_from_call_to_call():
    prior = DirichletBelief(2, 2, rewards=KnownRewards([[0.0, 1.0], [0.5, 0.2]]))
    assert upper_bound(prior, **TASK, n_models=10).value != upper_bound(prior, **TASK, n_models=10).value


def test_progress_is_shown_on_standard_error_and_changes_nothing(capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    seen = []
    shown = bracket(BELIEF, **TASK, target_gap=0.01, rng=1, progress=True, watch=seen.append)
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{shown.lower.value:.6g}" in err
    assert "width -" not in err
    assert [point.upper for point in seen] == [point.upper for point in shown.trace]
    quiet = bracket(BELIEF, **TASK, target_gap=0.01, rng=1)
    assert capsys.readouterr() == ("", "")
    assert (quiet.lower, quiet.upper) == (shown.lower, shown.upper)


def test_a_plan_of_named_states_is_drawn_with_their_names():
    from matplotlib import pyplot as plt

    names = ["well", "$ill$", "x" * 100]
    named = FiniteBelief.of(BELIEF.models, reward_signal="bernoulli", states=names, actions=["wait", "treat"])
    ax = cadp(named, **TASK).plot()
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["well", r"\$ill\$", "x" * 23 + "…"]
    assert {text.get_text() for text in ax.texts} <= {"wait", "treat"}
    plt.close(ax.figure)


def test_a_robust_bracket_draws_its_prior_with_names():
    found = made("robust bracket")
    drawn = found.plot()
    assert [bar.get_height() for bar in drawn.patches] == pytest.approx(found.prior.tolist())
    assert drawn.get_xticklabels()[0].get_text() == found.names.model(0)
