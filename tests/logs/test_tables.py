"""Logs as practitioners have them: DataFrames, shuffled rows, semicolons, tabs and decimal commas."""

import sys
import types

import numpy as np
import polars as pl
import pytest

from beliefbound import DirichletBelief, plan_log, read_log
from beliefbound.base.errors import BeliefboundError, FileError, ParameterError
from beliefbound.logs.files import as_log

COLUMNS = {
    "episode": [1, 1, 1, 2, 2],
    "t": [0, 1, 2, 0, 1],
    "state": ["dry", "wet", "dry", "wet", "dry"],
    "action": ["wait", "sow", "wait", "sow", "sow"],
    "reward": [0.5, 1.25, 0.0, -2.5, 1.0],
    "next_state": ["wet", "dry", "wet", "dry", "dry"],
}
FRAME = pl.DataFrame(COLUMNS)


def same(log, other):
    assert (log.states, log.actions, log.n_episodes) == (other.states, other.actions, other.n_episodes)
    assert all(np.array_equal(x, y) for x, y in zip(log.cells, other.cells, strict=True))
    assert np.array_equal(log.starts, other.starts)


@pytest.fixture
def log(tmp_path):
    FRAME.write_csv(tmp_path / "log.csv")
    return read_log(tmp_path / "log.csv")


def pandas_like():
    """What is used of pandas, in a module of that name: it is no dependency."""
    module = types.ModuleType("pandas")

    class Series(list):
        def tolist(self):
            return list(self)

        def isna(self):
            return Series(x is None or x != x for x in self)

    class DataFrame:
        columns = tuple(COLUMNS)

        def __getitem__(self, name):
            return Series(COLUMNS[name])

        def isna(self):
            raise AssertionError("asked by column")

    DataFrame.__module__ = Series.__module__ = module.__name__
    return DataFrame()


@pytest.mark.parametrize(
    "table", [FRAME, FRAME.lazy(), COLUMNS, pandas_like()], ids=["polars", "lazy", "dict", "pandas"]
)
def test_a_table_in_memory_is_a_log(log, table):
    same(read_log(table), log)
    believed = DirichletBelief.from_log(table)
    assert np.array_equal(believed.concentration, DirichletBelief.from_log(log).concentration)
    assert "pandas" not in sys.modules


def test_pandas_itself(log):
    pandas = pytest.importorskip("pandas")
    same(read_log(pandas.DataFrame(COLUMNS)), log)


def test_plans_take_tables():
    quick = {"discount": 0.9, "n_models": 50, "time_limit": 0, "measure": False}
    assert plan_log(COLUMNS, **quick).lower == plan_log(read_log(COLUMNS), **quick).lower
    assert plan_log(COLUMNS, initial="wet", **quick).task.start.tolist() == [0.0, 1.0]
    assert plan_log(COLUMNS, initial={"wet": 0.5, "dry": 0.5}, **quick).task.start.tolist() == [0.5, 0.5]


def test_what_is_no_table_is_named():
    with pytest.raises(ParameterError, match="no table"):
        read_log({"state": [0, 1], "action": [0]})
    with pytest.raises(FileError, match="the table, row 0: there is no column 'action'"):
        read_log({"state": [0, 1]})
    with pytest.raises(FileError, match="the table, row 2, column 'reward'"):
        read_log(COLUMNS | {"reward": [0.0, None, 1.0, 1.0, 1.0]})
    with pytest.raises(BeliefboundError):
        plan_log([1, 2], discount=0.9)


@pytest.mark.parametrize("seed", range(5))
def test_shuffled_rows_are_sorted_by_t_or_the_error_says_so(tmp_path, log, seed, monkeypatch):
    order = np.random.default_rng(seed).permutation(len(FRAME))
    assert (np.diff(order) < 0).any()
    FRAME[order].write_csv(tmp_path / "shuffled.csv")
    with pytest.raises(FileError, match="--sort"):
        read_log(tmp_path / "shuffled.csv")
    same(read_log(tmp_path / "shuffled.csv", sort=True), log)
    monkeypatch.setattr("beliefbound.logs.formats.comma_separated.BLOCK_BYTES", 30)
    same(read_log(tmp_path / "shuffled.csv", sort=True), log)


def test_what_cannot_be_sorted_is_said():
    with pytest.raises(FileError, match="no column 't' to sort rows by"):
        read_log(FRAME.drop("t"), sort=True)
    with pytest.raises(FileError, match="several rows have this step"):
        read_log(FRAME.drop("episode"), sort=True)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_other_separators_and_decimal_commas(tmp_path, log, mark, decimal):
    text = FRAME.write_csv(separator=mark).replace(".", decimal)
    (tmp_path / "other.csv").write_text(text)
    same(read_log(tmp_path / "other.csv"), log)


def test_points_and_commas_together_are_an_error(tmp_path):
    text = "state;action;reward;next_state\n0;0;1.5;0\n0;0;1,5;0\n"
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(FileError, match="row 2, column 'reward': it is '1,5', where other"):
        read_log(tmp_path / "log.csv")
    (tmp_path / "log.csv").write_text(text.replace(";", ",").replace("1.5", "1"))
    with pytest.raises(FileError, match="row 2, column 5.*decimal commas"):
        read_log(tmp_path / "log.csv")


def test_a_path_stands_for_its_log(tmp_path, log):
    FRAME.write_csv(tmp_path / "log.csv")
    same(as_log(tmp_path / "log.csv"), log)
    found, known = (DirichletBelief.from_log(given) for given in (str(tmp_path / "log.csv"), log))
    assert np.array_equal(found.concentration, known.concentration)
