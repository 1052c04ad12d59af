"""The conjecture of the paper's discussion: losses are losses, and the command continues where it stopped."""

import numpy as np
import polars as pl
import pytest

from beliefbound.lab.paper import discussion as module
from beliefbound.lab.paper.discussion import METHODS, SHOWN, discussion, losses_of, table_of
from support.command_line import command

pytestmark = pytest.mark.full


def test_losses_are_not_negative_and_the_same_again():
    found = losses_of(3, seed=1)
    assert found["steps"] == list(SHOWN)
    assert all(loss >= -1e-9 for name in METHODS for loss in found[name])
    assert np.ptp(found["demonstrator"]) == 0.0  # it does not learn
    assert losses_of(3, seed=1) == found


def test_the_command_continues_where_it_stopped(tmp_path, monkeypatch):
    fake = {name: [0.5, 0.25, 0.125] for name in METHODS} | {"steps": list(SHOWN)}
    asked = []

    def losses(problem, seed):
        asked.append(problem)
        return {"problem": [problem] * 3, **{k: v for k, v in fake.items() if k != "problem"}}

    monkeypatch.setattr(module, "losses_of", losses)
    words = ("paper", "--discussion", "--problems", 12, "--threads", 1, "--out", tmp_path)
    assert command(*words).returncode == 0
    assert sorted(asked) == list(range(12))
    (tmp_path / "blocks" / "1-10-12.csv").unlink()
    done = command(*words)
    assert sorted(asked[12:]) == [10, 11]
    assert "expected MDP − MMBI" in done.stdout
    assert len(pl.read_csv(tmp_path / "losses.csv")) == 36
    assert discussion(tmp_path, problems=12, threads=1).equals(table_of(pl.read_csv(tmp_path / "losses.csv")))
