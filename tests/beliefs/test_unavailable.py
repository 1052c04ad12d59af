"""Actions that a state does not offer, in model folders."""

import numpy as np
import pytest

from beliefbound import FiniteBelief, e_max, read_models, write_models
from beliefbound.base.errors import FileError, ParameterError
from beliefbound.beliefs import rows
from support.oracles import random_models

OFFERED = np.array([[True, False, True], [True, True, True], [False, False, True]])
NAMES = {"states": ("low", "medium", "high"), "actions": ("wait", "treat", "cull")}


@pytest.fixture
def belief():
    p, r, _, _ = random_models(np.random.default_rng(3), 2, 3, 3)
    p, r = np.where(OFFERED[..., None], p, 0.0), np.where(OFFERED, r, 0.0)
    return FiniteBelief(p, r, initial=0, available=OFFERED, reward_signal="deterministic", **NAMES)


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_not_offered_is_written_and_read_back(tmp_path, belief, sparse, monkeypatch):
    folder = write_models(tmp_path / "m", belief, discount=0.9)
    assert (folder / "unavailable.csv").read_text().splitlines() == ["idstate,idaction", "0,1", "2,0", "2,1"]
    if sparse:
        monkeypatch.setattr(rows, "SPARSE_BYTES", 0)
        monkeypatch.setattr(rows, "_SPARSE_SHARE", 2.0)
    held = read_models(folder)
    assert held.training.models.is_sparse == sparse
    assert np.array_equal(held.training.available, OFFERED)
    assert np.array_equal(held.average.models.available, OFFERED)
    assert np.array_equal(held.training.models.dense()[:, OFFERED], belief.models.dense()[:, OFFERED])
    assert np.array_equal(held.training.rewards[:, OFFERED], belief.rewards[:, OFFERED])
    assert e_max(held.training, discount=0.9).value == pytest.approx(e_max(belief, discount=0.9).value, abs=1e-12)
    write_models(folder, belief.from_mdps([held.average]), discount=0.9, overwrite=True)
    assert np.array_equal(read_models(folder).training.available, OFFERED)


def test_names_may_be_used_and_faults_are_named(tmp_path, belief):
    folder = write_models(tmp_path / "m", belief, discount=0.9)
    file = folder / "unavailable.csv"
    for text, said in [
        ("idstate,idaction\n0,1\n2,0\n", "state high has no rows for action treat.*list the pair in unavailable.csv"),
        ("idstate,idaction\n0,1\n2,0\n2,1\n1,1\n", "state medium, action treat has rows, though unavailable.csv"),
        ("idstate,idaction\n0,1\n2,0\n2,1\n2,2\n", "high offers no action"),
        ("idstate,idaction\n0,7\n", "idaction is 7"),
    ]:
        file.write_text(text)
        with pytest.raises(FileError, match=said):
            read_models(folder)
    everything = FiniteBelief(np.full((1, 3, 3, 3), 1 / 3), np.zeros((1, 3, 3)))
    with pytest.raises(ParameterError, match="differ in whether state 0 offers action 1"):
        write_models(tmp_path / "two", belief, discount=0.9, test=everything)
