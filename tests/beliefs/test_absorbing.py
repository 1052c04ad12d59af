"""A state without rows is declared, or it is a spelling mistake: nothing is proven about a state that nobody meant."""

import json

import pytest
from typer.testing import CliRunner

from beliefbound import bracket, read_models
from beliefbound.base.errors import BeliefboundError, FileError, ParameterError
from beliefbound.cli import app

HEADER = "idstatefrom,idaction,idstateto,idoutcome,probability,reward\n"
ROWS = [
    f"{s},{a},{t},{m},{p},{r}"
    for m, good in (("wet", 0.8), ("dry", 0.4))
    for s, a, t, p, r in (
        ("low", "run", "low", 1.0, -3.0),
        ("low", "fix", "high", good, -5.0),
        ("low", "fix", "low", round(1.0 - good, 1), -5.0),
        ("high", "run", "low", 0.5, -1.0),
        ("high", "run", "high", 0.5, -1.0),
        ("high", "fix", "high", 1.0, -4.0),
    )
]


def folder(path, rows=ROWS, start="low,1\n", **others):
    path.mkdir()
    files = {"training": HEADER + "\n".join(rows) + "\n", "initial": "idstate,probability\n" + start}
    for name, text in (files | {"parameters": "parameter,value\ndiscount,0.9\n"} | others).items():
        (path / f"{name}.csv").write_text(text)
    return path


def command(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize("start", ["Low,1\n", "Low,0.5\nlow,0.5\n", "lo w,1\n"])
def test_a_misspelt_start_is_an_error_with_what_was_meant(tmp_path, start):
    with pytest.raises(
        FileError, match=r"initial\.csv: idstate is [^,]*, a state without rows.*did you mean 'low'"
    ) as told:
        read_models(folder(tmp_path / "a", start=start))
    assert "states.csv" in str(told.value)
    done = command("bound", tmp_path / "a", "--out", tmp_path / "out", "--effort", 1)
    assert done.exit_code == 1
    assert "did you mean 'low'" in str(done.exception or done.output)
    assert not (tmp_path / "out").exists()


def test_a_misspelt_arrival_is_an_error_with_its_line(tmp_path):
    rows = [row.replace("high,0.8", "hihg,0.8") if "wet" in row else row for row in ROWS]
    rows[1] = "low,fix,hihg,wet,0.8,-5.0"
    with pytest.raises(FileError, match=r"training\.csv, line 3: idstateto is hihg.*did you mean 'high'"):
        read_models(folder(tmp_path / "a", rows=rows))


def test_a_misspelt_name_among_listed_ones_is_an_error_with_what_was_meant(tmp_path):
    listed = folder(tmp_path / "a", start="Low,1\n", states="idstate,name\n0,low\n1,high\n")
    with pytest.raises(FileError, match="'Low', which is not among the names of states; did you mean 'low'"):
        read_models(listed)


def test_a_misspelt_model_is_an_error(tmp_path):
    """One action only, so that no action of a state is missing: the new model has no rows where it starts."""
    rows = [row for row in ROWS if ",run," in row]
    rows.append("high,run,high,wett,1.0,-1.0")
    with pytest.raises(FileError, match=r"model wett has no rows for state low, where it starts"):
        read_models(folder(tmp_path / "a", rows=rows))


def ending(path, **others):
    """The same, where `fix` may end all."""
    rows = [row.replace("low,fix,low", "low,fix,broken") for row in ROWS]
    return folder(path, rows=rows, **others)


def test_a_state_that_is_only_arrived_at_is_declared(tmp_path):
    with pytest.raises(FileError, match="idstateto is broken, a state without rows of its own"):
        read_models(ending(tmp_path / "a"))
    told = read_models(ending(tmp_path / "b"), absorbing=["broken"])
    assert told.training.states == ("low", "high", "broken")
    assert any("state broken has no rows in any model; it is absorbing" in note for note in told.notes)
    listed = read_models(ending(tmp_path / "c", states="idstate,name\n0,low\n1,high\n2,broken\n"))
    assert (listed.training.transitions == told.training.transitions).all()
    both = [bracket(each.training, discount=0.9, effort=4, rng=1) for each in (told, listed)]
    assert both[0].upper.value == both[1].upper.value


def test_what_is_declared_exists_and_has_no_rows(tmp_path):
    place = ending(tmp_path / "a")
    with pytest.raises(ParameterError, match="there is no state 'brokn'; did you mean 'broken'"):
        read_models(place, absorbing=["brokn"])
    with pytest.raises(ParameterError, match="state low has rows"):
        read_models(place, absorbing=["broken", "low"])
    with pytest.raises(BeliefboundError):
        read_models(place, absorbing="broken")


def test_a_declared_state_may_be_a_start(tmp_path):
    told = read_models(ending(tmp_path / "a", start="low,0.5\nbroken,0.5\n"), absorbing=["broken"])
    assert told.initial.tolist() == [0.5, 0.0, 0.5]


def test_the_command_line_declares_and_verifies(tmp_path):
    place, out = ending(tmp_path / "a"), tmp_path / "out"
    assert command("bound", place, "--out", out, "--effort", 1).exit_code == 1
    done = command("bound", place, "--out", out, "--effort", 1, "--absorbing", "broken")
    assert done.exit_code == 0, done.output
    assert json.loads((out / "bounds.json").read_text())["job"]["made"]["absorbing"] == ["broken"]
    assert command("verify", out / "bounds.json").exit_code == 0
    done = command("convert", place, tmp_path / "b.npz", "--absorbing", "broken")
    assert done.exit_code == 0, done.output
    with pytest.raises(ParameterError, match="lists what every state does"):
        read_models(tmp_path / "b.npz", absorbing=["broken"])


def test_errors_about_rows_use_names(tmp_path):
    with pytest.raises(FileError, match="state high has no rows for action fix in model dry"):
        read_models(folder(tmp_path / "a", rows=ROWS[:-1]))
    wrong = [row.replace("0.8", "0.7") for row in ROWS]
    with pytest.raises(FileError, match=r"probabilities of model wet, state low, action fix sum to 0\.9"):
        read_models(folder(tmp_path / "b", rows=wrong))
