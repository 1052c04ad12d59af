"""Reading logs: counts are those of plain Python, and what is no log is refused with file, row and column."""

import gzip
from collections import Counter
from types import SimpleNamespace

import gymnasium
import numpy as np
import polars as pl
import pytest

from beliefbound.base.errors import FileError, ObservationError, ParameterError
from beliefbound.logs import log_of, read_log, roll_out
from beliefbound.logs.formats import comma_separated, parquet
from beliefbound.logs.rollouts import log_of_minari

HEADER = "episode,t,state,action,reward,next_state,terminated,truncated\n"
GOOD = HEADER + "0,0,0,0,0.0,1,false,false\n0,1,1,1,1.0,0,false,true\n1,0,0,1,0.5,2,true,false\n"


def walk(n: int, seed: int = 0) -> pl.DataFrame:
    """Episodes of a random walk on six states; state 5 ends one, thirty steps cut one short."""
    rng = np.random.default_rng(seed)
    rows, episode, t, s = [], 0, 0, 0
    for _ in range(n):
        a, step = int(rng.integers(3)), int(rng.integers(3))
        to = min(5, max(0, s + a - 1 + (step == 0)))
        ended, cut = to == 5, t == 29
        rows.append((episode, t, s, a, float(to == 5) + 0.25 * a, to, ended, cut and not ended))
        s, t = to, t + 1
        if ended or cut:
            episode, t, s = episode + 1, 0, int(rng.integers(2))
    return pl.DataFrame(rows, schema=HEADER.strip().split(","), orient="row")


def counted(log) -> Counter:
    c = log.cells
    rows = zip(c.state, c.action, c.next_state, c.reward, c.times, strict=True)
    return Counter({(int(s), int(a), int(t), float(r)): int(n) for s, a, t, r, n in rows})


def test_counts_are_those_of_plain_python_however_the_file_is_cut(tmp_path, monkeypatch):
    frame = walk(900)
    frame.write_csv(tmp_path / "log.csv")
    frame.write_parquet(tmp_path / "log.parquet")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes()))
    columns = frame.select("state", "action", "next_state", "reward").iter_rows()
    truth = Counter(columns)
    starts = np.bincount(frame.filter(pl.col("t") == 0)["state"].to_numpy(), minlength=6)
    logs = [read_log(tmp_path / name) for name in ("log.csv", "log.parquet", "log.csv.gz")]
    monkeypatch.setattr(comma_separated, "BLOCK_BYTES", 700)
    monkeypatch.setattr(parquet, "BLOCK_ROWS", 37)
    logs += [read_log(tmp_path / name) for name in ("log.csv", "log.parquet")]
    for log in logs:
        assert counted(log) == truth
        assert log.n_rows == 900
        assert log.n_episodes == frame["episode"].n_unique()
        assert log.starts.tolist() == starts.tolist()
        assert np.flatnonzero(log.terminal).tolist() == [5]
        assert not log.ended
        assert log.n_truncated == int(frame["truncated"].sum())
    visits = logs[0].visits
    assert visits.sum() == 900
    chances = logs[0].behaviour().probabilities
    assert np.allclose(chances[:5], visits[:5] / visits[:5].sum(axis=1, keepdims=True))
    assert np.allclose(chances[5], 1 / 3)


def test_a_truncated_step_teaches_and_a_terminated_one_ends():
    log = log_of([0, 0], [0, 0], [1.0, 1.0], [1, 2], terminated=[False, True], truncated=[True, False])
    assert log.terminal.tolist() == [False, False, True]
    assert log.visits[0, 0] == 2


def test_where_episodes_go_on_from_the_state_reached_the_end_is_a_state_of_its_own():
    log = log_of([0, 1, 0], [0, 0, 0], [0.0, 0.0, 1.0], [1, 0, 1], terminated=[False, False, True])
    assert log.ended
    assert log.n_states == 3
    assert log.terminal.tolist() == [False, False, True]
    assert log.transition_counts()[0, 0].tolist() == [0, 1, 1]
    assert any("one more state" in note for note in log.notes)


def test_names_and_other_columns(tmp_path):
    (tmp_path / "log.csv").write_text('s,do,gain,then\n"wet, cold",go,1,dry\ndry,go,2,"wet, cold"\ndry,wait,2,dry\n')
    columns = {"state": "s", "action": "do", "reward": "gain", "next_state": "then"}
    log = read_log(tmp_path / "log.csv", columns=columns)
    assert (log.states, log.actions) == (("dry", "wet, cold"), ("go", "wait"))
    assert log.visits.tolist() == [[1, 1], [1, 0]]
    listed = read_log(tmp_path / "log.csv", columns=columns, states=["wet, cold", "dry", "hot"])
    assert listed.visits.tolist() == [[1, 0], [1, 1], [0, 0]]
    with pytest.raises(FileError, match="row 1, column 's': it is 'wet, cold', which is not among the declared states"):
        read_log(tmp_path / "log.csv", columns=columns, states=["dry", "hot"])
    with pytest.raises(ParameterError, match="no column called 'st'"):
        read_log(tmp_path / "log.csv", columns={"st": "s"})


def test_a_notebook_shows_names_as_text(tmp_path):
    (tmp_path / "log.csv").write_text(
        "state,action,reward,next_state,terminated\nhome,go,1,<b>end</b>,true\nhome,go,0,home,false\n"
    )
    shown = read_log(tmp_path / "log.csv")._repr_html_()
    assert "&lt;b&gt;end" in shown
    assert "<b>" not in shown


def test_line_ends_and_quotes_of_other_programs(tmp_path, monkeypatch):
    file = tmp_path / "log.csv"
    file.write_bytes(GOOD.replace("\n", "\r\n").encode())
    assert counted(read_log(file)) == counted(read_log(_copy(tmp_path, GOOD)))
    two_lines = 'state,action,reward,next_state\n"a\nb",x,0,"c ""d"""\n' + '"c ""d""",x,1,"a\nb"\n' * 40
    monkeypatch.setattr(comma_separated, "BLOCK_BYTES", 64)
    assert read_log(_copy(tmp_path, two_lines)).states == ("a\nb", 'c "d"')
    assert read_log(_copy(tmp_path, GOOD + "\n\n")).n_rows == 3
    packed = tmp_path / "cut.csv.gz"
    packed.write_bytes(gzip.compress(GOOD.encode())[:-12])
    with pytest.raises(FileError, match="cannot read"):
        read_log(packed)


def _copy(folder, text):
    file = folder / "copy.csv"
    file.write_text(text, newline="")
    return file


def test_numbers_may_be_names(tmp_path):
    (tmp_path / "log.csv").write_text("state,action,reward,next_state\n10,1,0,20\n20,1,0,10\n")
    assert read_log(tmp_path / "log.csv").n_states == 21
    assert read_log(tmp_path / "log.csv", names=True).states == ("10", "20")


def test_many_rewards_are_kept_as_moments():
    rng = np.random.default_rng(3)
    s, paid = rng.integers(0, 2, 4000), rng.normal(2.0, 3.0, 4000)
    log = log_of(s, np.zeros(4000, int), paid, 1 - s)
    assert log.values is None
    for state in (0, 1):
        i = int(np.flatnonzero(log.cells.state == state)[0])
        assert log.cells.reward[i] == pytest.approx(paid[s == state].mean())
        assert log.cells.squares[i] == pytest.approx((paid[s == state] ** 2).sum())
    assert log.reward_range == (paid.min(), paid.max())


BAD = {
    "missing column": (GOOD.replace("reward", "gain"), r"row 0: there is no column 'reward'.*--column reward=NAME"),
    "number among names": (
        "state,action,reward,next_state\na,x,0,b\nb,x,0,7\n",
        r"row 2, column 'next_state': it is the number 7, where other rows have names",
    ),
    "name among numbers": (
        GOOD + "1,1,two,0,0,0,false,false\n",
        r"row 4, column 'state': it is 'two', where other rows have numbers",
    ),
    "not a number": (GOOD + "2,0,0,0,NaN,1,false,false\n", r"row 4, column 'reward': it is nan; rewards are finite"),
    "infinite": (GOOD + "2,0,0,0,-inf,1,false,false\n", r"row 4, column 'reward': it is -inf"),
    "no reward": (GOOD + "2,0,0,0,,1,false,false\n", r"row 4, column 'reward': it is empty"),
    "words as reward": (GOOD + "2,0,0,0,much,1,false,false\n", r"row 4, column 'reward': it is 'much'"),
    "negative id": (GOOD + "2,0,0,-1,0,1,false,false\n", r"row 4, column 'action': it is -1; ids are whole"),
    "half an id": (GOOD + "2,0,0.5,1,0,1,false,false\n", r"row 4, column 'state': it is '?0.5"),
    "no id": (GOOD + "2,0,,1,0,1,false,false\n", r"row 4, column 'state': it is empty"),
    "flag": (GOOD + "2,0,0,1,0,1,perhaps,false\n", r"row 4, column 'terminated': it is 'perhaps'; give true or false"),
    "repeated step": (GOOD + "2,0,0,1,0,0,false,false\n2,0,0,1,0,0,false,false\n", r"row 5, column 't': repeated step"),
    "missing step": (GOOD + "2,0,0,1,0,0,false,false\n2,2,0,1,0,0,false,false\n", r"row 5, column 't': missing step"),
    "after the end": (GOOD + "1,1,2,1,0,0,false,false\n", r"row 4, column 'state': step after the end"),
    "broken episode": (
        GOOD + "2,0,0,1,0,1,false,false\n2,1,0,1,0,0,false,false\n",
        r"row 5, column 'state': broken episode.*--keep-suspicious",
    ),
    "split episode": (GOOD + "0,2,0,1,0,1,false,false\n", r"row 4, column 'episode': split episode"),
    "too many cells": (GOOD + "2,0,0,1,0,1,false,false,9\n", r"row 4, column 9: the row has 9 cells, the header 8"),
    "empty": ("", r"is empty; expected a header"),
    "header only": (HEADER, r"row 0: the log has no rows"),
    "one row": (HEADER + "0,0,0,0,0.0,1,false,false\n", r"row 1: the log has 1 row"),
    "no end of line": (
        GOOD + "2" * 3_000_000,
        r"row \d+: the line has more than a million characters|column 'episode'",
    ),
    "open quote": (GOOD + '2,0,"0,1,0,1,false,false\n2,1,1,1,0,1,false,true\n', r"row 4: a quote is opened and never"),
    "a column twice": ("state," + GOOD.replace("\n", "\n0,")[:-2], r"row 0: the column 'state' is there twice; leave"),
    "zero byte": (GOOD + "2,0,0,1,0,\0,false,false\n", r"row 4, column 6: there is a zero byte"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_log_is_refused_with_its_place(tmp_path, name):
    text, message = BAD[name]
    file = tmp_path / "log.csv"
    file.write_text(text)
    with pytest.raises(FileError, match=message) as error:
        read_log(file)
    assert str(error.value).startswith(str(file))


def test_a_gigabyte_without_a_line_is_not_read_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(comma_separated, "BLOCK_BYTES", 3 << 20)
    file = tmp_path / "log.csv"
    file.write_bytes(GOOD.encode() + b"7" * (20 << 20))
    with pytest.raises(FileError, match=r"row 4: the line has more than a million characters"):
        read_log(file)


def test_encodings_are_told(tmp_path):
    file = tmp_path / "log.csv"
    file.write_bytes((GOOD + "2,0,0,1,0,é,false,false\n").encode("latin-1"))
    with pytest.raises(FileError, match=r"row 4, column 6: there is the byte 0xe9, which is not UTF-8"):
        read_log(file)
    file.write_text(GOOD, encoding="utf-16")
    with pytest.raises(FileError, match="UTF-16"):
        read_log(file)
    file.write_text(GOOD, encoding="utf-32")
    with pytest.raises(FileError, match="row 0: the text is UTF-32"):
        read_log(file)
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read_log(file).n_rows == 3


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        read_log(tmp_path / "none.csv")
    with pytest.raises(FileError, match="is a folder"):
        read_log(tmp_path)
    (tmp_path / "log.parquet").write_bytes(b"PAR1" + b"x" * 100)
    with pytest.raises(FileError, match="damaged, or no Parquet"):
        read_log(tmp_path / "log.parquet")
    for column, values in (("state", [[0], [1]]), ("reward", [b"x", b"y"])):
        table = {"state": [0, 1], "action": [0, 0], "reward": [0.0, 1.0], "next_state": [1, 0], column: values}
        pl.DataFrame(table).write_parquet(tmp_path / "log.parquet")
        with pytest.raises(FileError, match=f"row 1, column '{column}': it holds .*; give numbers or text"):
            read_log(tmp_path / "log.parquet")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(GOOD.encode())[:-12])
    with pytest.raises(FileError, match="after row 0: "):
        read_log(tmp_path / "log.csv.gz")
    for name, kind in (("text.parquet", "Parquet"), ("text.csv.gz", "gzip")):
        (tmp_path / name).write_text(GOOD)
        with pytest.raises(FileError, match=f"is no {kind} file, as its name says"):
            read_log(tmp_path / name)
    (tmp_path / "log.csv").write_text(GOOD)
    with pytest.raises(FileError, match="row 3, column 'next_state': it is 2, but only 2 states are declared"):
        read_log(tmp_path / "log.csv", states=2)


def test_suspicious_rows_may_be_kept_and_are_counted(tmp_path):
    (tmp_path / "log.csv").write_text(GOOD + "2,0,0,1,0,1,false,false\n2,1,0,1,0,0,false,false\n")
    log = read_log(tmp_path / "log.csv", keep_suspicious=True)
    assert log.n_rows == 5
    assert "1 rows are suspicious: broken episode, first in row 5" in log.notes[0]


def test_roll_outs_are_what_their_file_says(tmp_path):
    env = gymnasium.make("FrozenLake-v1")
    log = roll_out(env, steps=400, seed=3, save=tmp_path / "log.csv")
    again = read_log(tmp_path / "log.csv", states=16, actions=4)
    assert counted(log) == counted(again)
    assert log.n_states == 16
    holes = {5, 7, 11, 12, 15}
    assert set(np.flatnonzero(log.terminal)) <= holes
    assert np.array_equal(log.starts, again.starts)
    right = roll_out(env, lambda state: 2, steps=50, seed=3)
    assert set(np.flatnonzero(right.visits.sum(axis=0))) == {2}


@pytest.mark.full
def test_minari_episodes_are_read():
    EpisodeData = pytest.importorskip("minari.dataset.episode_data").EpisodeData

    space = SimpleNamespace(n=3, start=1)
    episode = EpisodeData(
        id=0,
        observations=np.array([1, 2, 3]),
        actions=np.array([1, 2]),
        rewards=np.array([0.0, 1.0]),
        terminations=np.array([False, True]),
        truncations=np.array([False, False]),
        infos={},
    )
    dataset = SimpleNamespace(
        spec=SimpleNamespace(dataset_id="toy/walk-v0"),
        observation_space=space,
        action_space=SimpleNamespace(n=2, start=1),
        iterate_episodes=lambda: iter([episode]),
    )
    log = log_of_minari(dataset)
    assert counted(log) == Counter({(0, 0, 1, 0.0): 1, (1, 1, 2, 1.0): 1})
    assert log.terminal.tolist() == [False, False, True]


def test_arrays_of_different_lengths_are_refused():
    with pytest.raises(ObservationError, match="one length"):
        log_of([0, 1], [0], [0.0, 1.0], [1, 0])
