"""Steps that are kept beside counts: whole episodes, up to a number, and the chances with which actions were taken."""

import numpy as np
import polars as pl
import pytest

from beliefbound.base.errors import FileError
from beliefbound.logs import episodes, log_of, read_log
from beliefbound.logs.formats import comma_separated
from beliefbound.logs.joining import joined

WALK = {  # three episodes: the first ends in c, the last is cut off
    "episode": [4, 4, 7, 7, 7, 9],
    "t": [0, 1, 0, 1, 2, 0],
    "state": ["a", "b", "a", "b", "a", "b"],
    "action": ["go", "hop", "hop", "go", "go", "hop"],
    "reward": [0.0, 1.0, 2.0, 0.0, 0.5, 1.0],
    "next_state": ["b", "c", "b", "a", "c", "a"],
    "terminated": [False, True, False, False, True, False],
    "propensity": [0.5, 0.25, 0.5, 0.75, 1.0, 0.25],
}


def test_steps_stand_in_the_order_of_the_log():
    log = read_log(WALK)
    kept = log.episodes
    assert kept.first.tolist() == [0, 2, 5]
    assert kept.lengths.tolist() == [2, 3, 1]
    assert kept.state.tolist() == [0, 1, 0, 1, 0, 1]
    assert kept.action.tolist() == [0, 1, 1, 0, 0, 1]
    assert kept.next_state.tolist() == [1, 2, 1, 0, 2, 0]
    assert kept.reward.tolist() == WALK["reward"]
    assert kept.propensity.tolist() == WALK["propensity"]
    shuffled = pl.DataFrame(WALK).sample(fraction=1.0, shuffle=True, seed=3)
    again = read_log(shuffled, sort=True).episodes
    for one, other in zip(kept, again, strict=True):
        assert one.tolist() == other.tolist()


def test_blocks_change_nothing_and_decimal_commas_are_read(tmp_path, monkeypatch):
    frame = pl.DataFrame(WALK)
    frame.write_csv(tmp_path / "log.csv")
    text = frame.with_columns(pl.col("reward", "propensity").cast(pl.String).str.replace(".", ",", literal=True))
    text.write_csv(tmp_path / "commas.csv", separator=";")
    monkeypatch.setattr(comma_separated, "BLOCK_BYTES", 60)
    for name in ("log.csv", "commas.csv"):
        kept = read_log(tmp_path / name).episodes
        assert kept.first.tolist() == [0, 2, 5]
        assert kept.propensity.tolist() == WALK["propensity"]


def test_being_over_is_the_state_that_the_log_adds():
    """`c` is also left, so that terminated steps lead to a state of their own: in the steps as in the counts."""
    log = log_of([0, 1, 1], [0, 0, 0], [0.0] * 3, [1, 1, 1], terminated=[False, True, False], episodes=[0, 0, 1])
    assert log.ended
    assert log.episodes.next_state.tolist() == [1, 2, 1]


def test_no_more_steps_than_that_and_only_whole_episodes(monkeypatch):
    """The number of episodes kept follows from those before: one that began in time is kept to its end."""
    monkeypatch.setattr(episodes, "MOST_STEPS", 2)
    n = 12
    columns = {"states": [0] * n, "actions": [0] * n, "rewards": range(n), "next_states": [0] * n}
    kept = log_of(**columns, episodes=np.repeat(range(4), 3)).episodes
    assert kept.lengths.tolist() == [3] * 4  # one block
    keeper, begins = episodes.Keeper(), [True, False, False, True, False, False, True, False]
    rows = pl.DataFrame({"state": [0] * 8, "reward": range(8)})
    for i in range(0, 8, 2):
        keeper.add(rows[i : i + 2], pl.Series(begins[i : i + 2]))
    assert keeper.rows()["reward"].to_list() == [0, 1, 2]
    monkeypatch.setattr(episodes, "_LONGEST", 5)
    assert log_of(**columns, episodes=[0] * n).episodes is None


def test_logged_chances_are_the_behaviour_where_they_belong_to_the_state():
    """Those of pairs that were tried, the rest to the others; where they vary, or make more than 1, frequencies."""
    log = read_log(WALK | {"propensity": [0.7, 0.25, 0.3, 0.75, 0.7, 0.25]}, actions=["go", "hop", "rest"])
    assert log.behaviour().chances(3)[:2].tolist() == pytest.approx(np.array([[0.7, 0.3, 0.0], [0.75, 0.25, 0.0]]))
    log = read_log(WALK | {"propensity": [0.6, 0.2, 0.3, 0.7, 0.6, 0.2]}, actions=["go", "hop", "rest"])
    assert log.behaviour().chances(3)[0] == pytest.approx([0.6, 0.3, 0.1])
    assert log.behaviour().chances(3)[2] == pytest.approx([1 / 3] * 3)
    for chances in ([0.5, 0.25, 0.5, 0.75, 1.0, 0.25], [0.7, 0.9, 0.3, 0.75, 0.7, 0.9], [0.6, 0.2, 0.3, 0.7, 0.6, 0.2]):
        assert read_log(WALK | {"propensity": chances}).behaviour().chances(2)[0] == pytest.approx([2 / 3, 1 / 3])


def test_where_episodes_are_not_known_no_steps_are_kept(tmp_path):
    bare = {name: column for name, column in WALK.items() if name not in ("episode", "t")}
    assert read_log(bare).episodes is None
    broken = WALK | {"state": ["a", "a", "a", "b", "a", "b"]}
    assert read_log(broken, keep_suspicious=True).episodes is None
    assert joined(read_log(WALK), read_log(WALK)).log.episodes is None


@pytest.mark.parametrize("wrong", [0.0, 1.5, None, float("nan"), -0.2, "often"])
def test_what_is_no_chance_is_named(wrong):
    table = {**WALK, "propensity": [0.5, wrong, 0.5, 0.5, 0.5, 0.5]}
    if isinstance(wrong, str):
        table["propensity"] = [str(x) for x in table["propensity"]]
    with pytest.raises(FileError, match=r"row 2, column 'propensity': it is .*above 0 and at most 1; or leave"):
        read_log(table)
    assert read_log({**WALK, "p": WALK["propensity"]}, columns={"propensity": "p"}).episodes.propensity is not None
