"""`bound --starts` and `--sensitivity`: against the exact tree, verified, and refused where they make no sense."""

import csv

import numpy as np
import pytest

from beliefbound import FiniteBelief, write_models
from beliefbound.base.errors import ParameterError
from beliefbound.jobs.bound import BoundOptions, certify_folder
from beliefbound.jobs.verify import verify
from support.command_line import command
from support.oracles import bayes_adaptive_value, random_models
from support.tampering import code, copied, relisted

pytestmark = pytest.mark.full
HORIZON = 3


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Three models that start in two of three states; what was found, and where."""
    p, r, _, _ = random_models(np.random.default_rng(5), 3, 3, 2)
    names = {"states": ("low", "medium", "high"), "actions": ("wait", "treat"), "model_names": tuple("abc")}
    belief = FiniteBelief(p, r, initial=[0.3, 0.0, 0.7], reward_signal="unobserved", **names)
    place = tmp_path_factory.mktemp("beside")
    models = write_models(place / "models", belief, discount=0.9)
    options = BoundOptions(horizon=HORIZON, effort=40, starts=True, sensitivity="b,a")
    return (p, r, belief.weights), models, place / "out", certify_folder(models, place / "out", options)


def rows(file):
    with file.open() as opened:
        return list(csv.DictReader(opened))


def test_the_first_action_of_each_start_is_that_of_the_exact_tree(found):
    held, _, out, made = found
    table = rows(out / "decisions.csv")
    assert [(row["state"], float(row["probability"])) for row in table] == [("low", 0.3), ("high", 0.7)]
    for row, (s, bracket) in zip(table, made.starts.items(), strict=True):
        exact = bayes_adaptive_value(*held, s, 0.9, HORIZON, "unobserved")
        assert bracket.lower.value - 1e-9 <= exact <= bracket.upper.value + 1e-9
        assert row["action"] in ("wait", "treat")  # proven here
        assert float(row["at_least"]) <= exact + 1e-9
        assert float(row["others_at_most"]) < float(row["at_least"])
    page = (out / "report.html").read_text()
    assert "What to do first, by where it starts" in page
    assert any(words.startswith("Starting in high: ") for words in made.beside_words())


def test_the_tables_are_those_of_sensitivity(found):
    _, _, out, made = found
    curve, two = rows(out / "acceptability.csv"), rows(out / "sensitivity.csv")
    assert len(curve) == 101
    assert made.sensitivity.policies[0] == "the certified policy"
    assert [float(row["weight"]) for row in curve] == made.sensitivity.one_way("b")["weight"].tolist()
    assert {row["best"] for row in two} <= set(made.sensitivity.policies)
    assert len({tuple(values.round(9)) for values in made.sensitivity.values}) == len(made.sensitivity.policies)
    for name in ("acceptability.png", "sensitivity.png", "sensitivity.svg"):
        assert (out / name).exists()
    assert "Which policy, as weights move" in (out / "report.html").read_text()


def test_they_are_verified(found, tmp_path):
    _, models, out, _ = found
    result = verify(out / "bounds.json", models)
    assert result.code == 0, result.words
    for name in ("decisions.csv", "acceptability.csv", "sensitivity.csv"):
        copy = copied(out / "bounds.json", tmp_path / "copy")
        text = (copy.parent / name).read_text()
        (copy.parent / name).write_text(text.replace("0", "1", 1))
        relisted(copy)
        assert code(copy, models) == 1, name
    copy = copied(out / "bounds.json", tmp_path / "copy")
    for path, change in {"starts": "[1, 2, 3]", "sensitivity": "[0, 7]"}.items():
        text = (out / "bounds.json").read_text()
        first, _, rest = text.partition(f'"{path}": [')
        copy.write_text(f'{first}"{path}": {change}{rest.partition("]")[2]}')
        relisted(copy)
        assert code(copy, models) == 1, path


@pytest.mark.parametrize("given", ["a,b,c", "a,a", "d", "a,", "9"])
def test_what_makes_no_sense_is_refused_before_the_search(found, tmp_path, given):
    with pytest.raises(ParameterError):
        certify_folder(found[1], tmp_path / "out", BoundOptions(sensitivity=given))


def test_from_the_command_line(found, tmp_path):
    words = ["--horizon", "3", "--effort", "5", "--starts", "--sensitivity", "c"]
    done = command("bound", found[1], *words, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "Starting in low: " in done.stdout
    assert "has the highest expected value" in done.stdout
    assert not (tmp_path / "out" / "sensitivity.csv").exists()
