"""The paper's figures and table."""

import numpy as np
import polars as pl
import pytest

from beliefbound.lab.experiments.spec import checked
from beliefbound.lab.paper import figure1
from beliefbound.lab.paper.published import TABLE1
from beliefbound.lab.paper.reproduce import others_spec, paper_spec, reproduce
from beliefbound.lab.paper.table1 import COLUMNS


def test_figure_1_has_the_shape_of_the_papers(tmp_path):
    result = figure1(tmp_path / "at once", points=11, n_states=6, n_actions=3)
    assert {p.suffix for p in (tmp_path / "at once").iterdir()} == {".csv", ".png", ".svg"}
    upper, mmbi, greedy = (result.curves[name] for name in ("E max", "MMBI", "expected MDP"))
    assert (mmbi <= upper + 1e-9).all()
    assert (greedy <= upper + 1e-9).all()
    # Certain: every curve is the optimal value of the one model left.
    assert mmbi[-1] == pytest.approx(upper[-1], abs=1e-9)
    assert greedy[-1] == pytest.approx(upper[-1], abs=1e-9)
    assert np.allclose(np.diff(upper, 2), 0.0, atol=1e-9)  # E max is linear in the belief
    paths = result.save(tmp_path)
    assert {p.name for p in paths} == {"figure1.csv", "figure1.png", "figure1.svg"}
    assert np.allclose(pl.read_csv(tmp_path / "figure1.csv")["MMBI"], mmbi)
    first = (tmp_path / "figure1.svg").read_bytes()
    result.save(tmp_path)
    assert (tmp_path / "figure1.svg").read_bytes() == first


def test_the_certified_bracket_lies_between_mmbi_and_e_max(tmp_path):
    result = figure1(tmp_path, points=3, n_models=3, n_states=3, certify_every=2, effort=60)
    low, high = result.curves["certified lower"], result.curves["certified upper"]
    assert np.isnan(low[1])
    assert (result.curves["MMBI"][::2] <= low[::2] + 1e-9).all()
    assert (low[::2] <= high[::2] + 1e-9).all()
    assert (high[::2] <= result.curves["E max"][::2] + 1e-9).all()
    assert pl.read_csv(tmp_path / "figure1.csv")["certified lower"].null_count() == 1


def test_on_average_mmbi_beats_the_expected_mdp_when_uncertain():
    gaps = []
    for seed in range(20):
        curves = figure1(points=2, seed=seed).curves
        gaps.append(curves["MMBI"][0] - curves["expected MDP"][0])
    assert np.mean(gaps) > 3 * np.std(gaps) / np.sqrt(20)


def test_the_papers_experiment_is_data():
    spec = paper_spec(runs=5, seed=3, samples=(2, 4))
    assert spec.agents == ("oracle", "exploit", "mcbrl:n=1", "mcbrl:n=2", "mcbrl:n=4", "mcbrl:n=8", "mcbrl:n=16")
    assert (spec.steps, spec.discount, spec.accounting) == (1000, 0.95, "paper")


def test_the_systems_quoted_by_the_paper_are_run_beside_it():
    spec = others_spec(runs=500, seed=3)
    assert checked(spec) == spec  # names in their canonical form, under which runs are found
    assert (spec.runs, spec.steps, spec.seeds, spec.accounting) == (50, 1000, (3,), "paper")
    assert {name.partition(":")[0] for name in spec.agents} == {"beetle", "amp-em", "sem"}


@pytest.mark.full
def test_the_whole_paper_in_small(tmp_path):
    """400 runs: the four means lie within 4.5 joint standard errors of the paper's (false alarm below 1e-4)."""
    result = reproduce(tmp_path / "out", runs=400, seed=11, samples=(1, 2))
    names = {p.name for p in (tmp_path / "out").iterdir()}
    figures = {f"figure{k}.{kind}" for k in ("1", "2a", "2b") for kind in ("png", "svg")}
    assert names >= figures | {"table1.csv", "report.html", "runs.parquet", "figure1.csv", "figure2a.csv"}
    table = pl.read_csv(tmp_path / "out" / "table1.csv")
    assert tuple(table.columns[: len(COLUMNS)]) == COLUMNS
    assert table["total_reward"].is_not_null().all()
    assert table["runs"].to_list() == [400.0] * 4 + [200.0, 40.0, 40.0]
    ran = table.filter(pl.col("z_total").is_not_null())
    assert ran["model"].to_list() == [row.model for row in TABLE1 if row.agent]
    assert ran["z_total"].abs().max() < 4.5
    utility = (ran["utility"] - ran["paper_utility"]) / ran["utility_error"]
    assert utility.abs().max() < 4.5
    assert (ran["ci_low"] < ran["total_reward"]).all()
    assert "BEETLE plans once" in (tmp_path / "out" / "report.html").read_text()
    assert result.regret["n"].to_list() == [1, 2, None]
