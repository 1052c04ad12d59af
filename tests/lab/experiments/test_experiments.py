"""Experiments resume, refuse to mix, and give the same bits for any threads, blocks or interruption."""

import os

import msgspec
import numpy as np
import polars as pl
import pytest
import scipy.stats as stats
from hypothesis import given
from hypothesis import strategies as st

from beliefbound.base.errors import FileError, ParameterError
from beliefbound.lab.experiments.run import run
from beliefbound.lab.experiments.spec import Cell, Spec, checked, load_spec
from beliefbound.lab.experiments.statistics import bootstrap_mean, differences, regret_of, summary
from beliefbound.lab.experiments.store import Store
from beliefbound.report.experiment import write_report
from soak.kills import contents

SPEC = Spec(agents=("mcbrl:n=2", "oracle", "random"), environments=("chain", "riverswim"), runs=23, steps=40)


# -- results --------------------------------------------------------------------------------------------------


def test_threads_and_blocks_change_no_bit(tmp_path):
    truth = run(SPEC, tmp_path / "a", threads=1).read()
    assert truth.equals(run(SPEC, tmp_path / "b", threads=3, block=5).read())
    assert truth.equals(run(SPEC, tmp_path / "c", threads=2, block=1).read())
    assert len(truth) == 23 * 6
    assert np.isfinite(truth["total"].to_numpy()).all()


def test_a_finished_experiment_is_not_played_again_and_more_runs_extend_it(tmp_path):
    played = []
    run(SPEC, tmp_path / "a", progress=lambda cell, n: played.append(n))
    assert sum(played) == 23 * 6
    played.clear()
    before = contents(tmp_path / "a")
    store = run(SPEC, tmp_path / "a", progress=lambda cell, n: played.append(n))
    assert played == []
    assert contents(tmp_path / "a") == before
    more = msgspec.structs.replace(SPEC, runs=30)
    run(more, tmp_path / "a", progress=lambda cell, n: played.append(n))
    assert sum(played) == 7 * 6
    assert Store.existing(tmp_path / "a").read().equals(run(more, tmp_path / "b", block=4).read())
    assert store.read().filter(pl.col("run") < 23).equals(run(SPEC, tmp_path / "c").read())


def test_ctrl_c_keeps_finished_blocks(tmp_path):
    def stop(cell, n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(SPEC, tmp_path / "a", threads=1, block=5, progress=stop)
    kept = len(list(tmp_path.glob("a/**/*.parquet")))
    assert kept >= 1
    assert run(SPEC, tmp_path / "a").read().equals(run(SPEC, tmp_path / "b").read())


def test_curves_and_visits_are_recorded(tmp_path):
    spec = msgspec.structs.replace(SPEC, curve_every=10, visits=True, environments=("chain",))
    frame = run(spec, tmp_path / "a").read(("total", "curve", "visits"))
    curves, visits = np.array(frame["curve"].to_list()), np.array(frame["visits"].to_list())
    assert curves.shape == (69, 4)
    assert np.allclose(curves[:, -1], frame["total"].to_numpy())
    assert (np.diff(curves, axis=1) >= 0).all()
    assert (visits.sum(axis=1) == 40).all()
    assert "curves-0.svg" in {p.name for p in write_report(tmp_path / "a")[1].parent.iterdir()}


# -- refusals -------------------------------------------------------------------------------------------------


def test_an_edited_spec_is_refused_and_nothing_is_touched(tmp_path):
    run(SPEC, tmp_path / "a")
    before = contents(tmp_path / "a")
    with pytest.raises(FileError, match=r"holds another experiment: steps was 40, now 50; choose another folder"):
        run(msgspec.structs.replace(SPEC, steps=50), tmp_path / "a")
    assert contents(tmp_path / "a") == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("precious")
    with pytest.raises(FileError, match="holds other files and no spec.json"):
        run(SPEC, tmp_path / "other")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="is a file; give a folder"):
        run(SPEC, tmp_path / "file")
    with pytest.raises(FileError, match="holds no experiment"):
        write_report(tmp_path / "other")


@given(names=st.lists(st.text(min_size=1, max_size=40), min_size=2, max_size=2))
def test_a_cells_folder_never_leaves_the_store(names):
    folder = Cell(*names, 1).folder
    assert "/" not in folder
    assert "\\" not in folder
    assert folder not in (".", "..")
    assert not folder.startswith(".")
    assert len(os.fsencode(folder)) < 200
    assert Cell(names[0] + "x", names[1], 1).folder != folder


GOOD = 'agents = ["exploit"]\nenvironments = ["chain"]\nsteps = 5\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs = 0\n", r"\$\.runs|missing required field"),
        ('agents = ["exploit"]\nenvironments = ["chain"]\nruns = 0\nsteps = 5', r"Expected `int` >= 1 - at `\$\.runs`"),
        ('agents = ["exploit"]\nenvironments = ["chain"]\nruns = 5\nsteps = -5', r"at `\$\.steps`"),
        ('agents = ["exploit"]\nenvironments = ["chain"]\nruns = 5', "missing required field `steps`"),
        ('agents = ["exploit"]\nenvironments = ["chain"]\nruns = 5\nsteps = 5\nspeed = 3', "unknown field `speed`"),
        ('agents = [3]\nenvironments = ["chain"]\nruns = 5\nsteps = 5', r"Expected `str`, got `int` - at `\$\.agents"),
        ('agents = ["exploit"]\nenvironments = ["chian"]\nruns = 5\nsteps = 5', r"\$\.environments\[0\]: .*chain"),
        ('agents = ["explot"]\nenvironments = ["chain"]\nruns = 5\nsteps = 5', r"\$\.agents\[0\]: .*exploit"),
        ('agents = ["mcbrl:n=0"]\nenvironments = ["chain"]\nruns = 5\nsteps = 5', r"\$\.agents\[0\]: .*n is 0"),
        ('agents = ["random", "random"]\nenvironments = ["chain"]\nruns = 5\nsteps = 5', "listed twice"),
        ("agents = [", "is not valid toml"),
        (f"{GOOD}runs = 1000000000000", r"`int` <= 1000000000 - at `\$\.runs`"),
        (f"{GOOD.replace('steps = 5', 'steps = 10000000000000')}runs = 5", r"<= 1000000000 - at `\$\.steps`"),
        (f"{GOOD}runs = 5\na = {'[' * 5000}{']' * 5000}", "has nested tables or dotted keys"),
        (f"{GOOD}runs = 5\n{'.'.join('a' * 30_000)} = 1", "has nested tables or dotted keys"),
        (f"[{'.'.join('a' * 30_000)}]", "has nested tables or dotted keys"),
        (f"{GOOD}runs = 5\ntitle = '{'x' * 200_000}'", "longer than 100,000 bytes"),
        (f"{GOOD}runs = 5\nx = {'[' * 30}{']' * 30}", "unknown field `x`"),
    ],
)
def test_a_malformed_spec_names_the_field(tmp_path, text, message):
    path = tmp_path / "spec.toml"
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        load_spec(path)


def test_a_spec_built_by_hand_is_checked_too():
    for change, message in (
        ({"runs": 0}, r"\$\.runs"),
        ({"steps": "many"}, r"\$\.steps"),
        ({"steps": 10**8, "curve_every": 1}, "100000000 points a run; every 100 steps gives 1000000"),
    ):
        with pytest.raises(ParameterError, match=message):
            checked(msgspec.structs.replace(SPEC, **change))
    many_dots = msgspec.structs.replace(SPEC, title="[" * 50 + "." * 50)
    assert checked(many_dots).title == many_dots.title


def test_a_title_may_have_dots_and_brackets(tmp_path):
    (tmp_path / "a.toml").write_text(f"{GOOD}runs = 5\ntitle = '{'[a.b] ' * 50}' # {'. ' * 50}\n")
    assert load_spec(tmp_path / "a.toml").title.startswith("[a.b]")


def test_specs_in_json_and_toml_mean_the_same(tmp_path):
    (tmp_path / "a.json").write_bytes(msgspec.json.encode(SPEC))
    (tmp_path / "a.toml").write_text(
        'agents = ["mcbrl:n=2", "oracle", "random"]\nenvironments = ["chain", "riverswim"]\nruns = 23\nsteps = 40\n'
    )
    assert load_spec(tmp_path / "a.json") == load_spec(tmp_path / "a.toml") == checked(SPEC)
    with pytest.raises(FileError, match="cannot read"):
        load_spec(tmp_path / "none.toml")


# -- statistics -----------------------------------------------------------------------------------------------


def frame_of(totals: dict[str, np.ndarray]) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame(
            {
                "environment": "chain",
                "agent": agent,
                "seed": 1,
                "run": np.arange(len(x)),
                "total": x,
                "utility": x / 10,
            }
        )
        for agent, x in totals.items()
    )


def test_bootstrap_intervals_cover_at_their_rate():
    """100 intervals at 95%: more than 13 misses has probability below 0.1%."""
    misses = 0
    for seed in range(100):
        x = np.random.default_rng(seed).exponential(size=200)
        found = bootstrap_mean(x, seed=seed, resamples=2000)
        misses += not found.low <= 1.0 <= found.high
        assert found.low < found.mean < found.high
    assert misses <= stats.binom(100, 0.05).ppf(0.999)
    with pytest.raises(ParameterError, match="no runs"):
        bootstrap_mean(np.array([]))
    assert bootstrap_mean(np.array([2.0, 2.0])).high == 2.0


def test_regret_and_differences_are_paired():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 100, size=500)
    frame = frame_of({"oracle": noise + 10, "a": noise + 7 + rng.normal(0, 0.1, 500), "b": noise})
    regret = regret_of(frame, "chain", "a")
    assert regret.mean == pytest.approx(3.0, abs=0.05)
    assert regret.high - regret.low < 0.1  # unpaired it would be about 25
    table = differences(frame)
    assert table.filter(first="a", second="b")["difference"].item() == pytest.approx(7.0, abs=0.05)
    rows = summary(frame, stuck_below=-50.0)
    assert rows.filter(agent="b")["stuck"].item() == pytest.approx((noise < -50).mean())
    assert rows.filter(agent="oracle")["regret"].item() == 0.0
    assert rows.filter(agent="b")["p10"].item() == pytest.approx(np.percentile(noise, 10))
    assert summary(frame.filter(pl.col("agent") != "oracle"))["regret"].null_count() == 2
