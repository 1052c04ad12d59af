"""Comparisons over common runs, with intervals that hold together."""

import numpy as np
import polars as pl
import pytest

from beliefbound.lab.league.comparison import FEWEST, lead, paired_difference, simultaneous
from beliefbound.lab.league.ranking import ranking
from beliefbound.lab.league.standings import standings
from beliefbound.lab.league.timing import Timing


def runs_of(scores):
    """`{agent: scores of runs 0, 1, …}` as a frame of runs."""
    return pl.concat(
        pl.DataFrame(
            {"agent": [agent] * len(own), "seed": [1] * len(own), "run": np.arange(len(own)), "steps": [9] * len(own)}
        ).with_columns(total=pl.Series(own), utility=pl.Series(own))
        for agent, own in scores.items()
    )


def table_of(frame, times, reference, prior=None):
    timings = {agent: Timing(seconds, 0.0, 100, 9) for agent, seconds in times.items()}
    knobs = {"prior": prior, "steps": 9, "reference": reference, "compared": frame.filter(agent=reference)}
    return standings(frame, timings, None, score="total", **knobs)


def test_intervals_of_forty_means_hold_together():
    """Shared noise, as agents have it. False alarms: 0.05 expected, at most 0.08 in 400 leagues with 5e-3."""
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(400):
        samples = rng.normal(size=(40, 60)) + rng.normal(size=60)
        found = [simultaneous(own, 40) for own in samples]
        missed += any(not each.low <= 0.0 <= each.high for each in found)
    assert missed <= 0.08 * 400
    alone = simultaneous(samples[0], 1)
    assert found[0].high - found[0].low > 1.6 * (alone.high - alone.low)


def test_the_set_of_the_best_holds_it_and_few_others():
    """Twenty alike but for one that is better by a standard deviation: it stays, and all others go."""
    rng = np.random.default_rng(2)
    lost, left = 0, 0
    for _ in range(60):
        noise = rng.normal(size=100)
        scores = {f"random:{i}": noise + rng.normal(size=100) + (i == 7) for i in range(20)}
        frame = runs_of(scores)
        table = pl.DataFrame(
            {"agent": list(scores), "told": [""] * 20, "ranked": [True] * 20, "step_seconds": [1e-6] * 20}
        ).with_columns(level=pl.Series([own.mean() for own in scores.values()]))
        best = ranking(frame, table, score="total")["agent"].to_list()
        lost += "random:7" not in best
        left += len(best) - 1
    assert lost == 0
    assert left <= 6


@pytest.mark.full
def test_the_best_is_seldom_ruled_out_where_all_are_alike():
    """Each of ten is the best; all of them are kept but in 5% of leagues. At most 12% in 200: false alarms 1e-4."""
    rng = np.random.default_rng(3)
    lost = 0
    for _ in range(200):
        scores = {f"random:{i}": rng.normal(size=40) for i in range(10)}
        table = pl.DataFrame(
            {"agent": list(scores), "told": [""] * 10, "ranked": [True] * 10, "step_seconds": [1e-6] * 10}
        ).with_columns(level=pl.Series([own.mean() for own in scores.values()]))
        lost += "random:0" not in ranking(runs_of(scores), table, score="total")["agent"].to_list()
    assert lost <= 0.12 * 200


def test_sixteen_lucky_runs_do_not_lead():
    """Easy MDPs first: who played only those has the highest mean, and is worse than the reference on each of them."""
    ease = np.linspace(10.0, 0.0, 200)
    frame = runs_of({"exploit": ease, "thompson": ease + 0.5, "random": ease[:16] - 1.0, "psrl": ease[:40] - 1.0})
    table = table_of(frame, {"exploit": 1e-6, "thompson": 1e-3, "random": 1e-3, "psrl": 1e-6}, "exploit")
    assert table["agent"].to_list() == ["thompson", "exploit", "psrl", "random"]
    rows = {row["agent"]: row for row in table.iter_rows(named=True)}
    assert rows["random"]["total"] > rows["thompson"]["total"]
    assert rows["psrl"]["level"] == pytest.approx(ease.mean() - 1.0)
    assert {name: row["ranked"] for name, row in rows.items()} == {
        "exploit": True,
        "thompson": True,
        "psrl": True,
        "random": False,
    }
    assert FEWEST > 16
    assert [name for name, row in rows.items() if row["front"]] == ["thompson", "exploit"]
    ranks = ranking(frame, table, score="total")
    assert ranks.filter(bound=1e-6)["agent"].to_list() == ["exploit"]
    assert ranks.filter(bound=1e-3)["agent"].to_list() == ["thompson"]


def test_who_was_told_more_is_no_rival():
    rng = np.random.default_rng(4)
    noise = rng.normal(size=50)
    scores = {
        "mcbrl:n=16": noise,
        "boss:prior=tied": noise + 9.0,
        "oracle": noise + 10.0,
        "beetle:prior=tied": noise + 8,
    }
    times = {"mcbrl:n=16": 1e-3, "boss:prior=tied": 1e-6, "oracle": 1e-8, "beetle:prior=tied": 1e-6}
    frame = runs_of(scores)
    table = table_of(frame, times, "mcbrl:n=16")
    assert table["agent"].to_list() == ["oracle", "mcbrl:n=16", "boss:prior=tied", "beetle:prior=tied"]
    assert table["front"].to_list() == [False, True, False, False]
    ranks = ranking(frame, table, score="total")
    assert dict(ranks["told", "agent"].iter_rows()) == {"": "mcbrl:n=16", "tied": "boss:prior=tied"}
    assert table_of(frame, times, "mcbrl:n=16", prior="tied")["told"].to_list()[-1] == "flat"


def test_differences_are_taken_over_common_runs():
    frame = runs_of({"a": np.arange(5.0), "b": np.arange(3.0) - 1.0})
    assert paired_difference(frame, "a", "b", "total").tolist() == [1.0, 1.0, 1.0]
    assert lead(np.array([2.0])) == 0.0
    assert simultaneous(np.array([2.0]), 3).high == np.inf
