"""Who is slow plays shorter runs. Time stands still here but for the agents that let it pass."""

import json
from functools import partial

import numpy as np
import polars as pl
import pytest
from numba import njit
from numba.core.event import end_event, start_event
from numba.extending import overload
from polars.testing import assert_frame_equal

from beliefbound.base.errors import ParameterError, PolicyError
from beliefbound.base.grammar import Number
from beliefbound.lab.engine.play import play
from beliefbound.lab.engine.registry import AGENTS, agent, make_agent
from beliefbound.lab.envs import make_env
from beliefbound.lab.envs.environment import environment_from_mdp
from beliefbound.lab.league import season, timing
from beliefbound.lab.league.clock import Spent, working_time
from beliefbound.lab.league.page import write_league
from beliefbound.lab.league.season import league
from beliefbound.lab.league.tables import shown
from beliefbound.lab.league.timing import Timing, read_timings, timed
from beliefbound.models.mdp import MDP
from beliefbound.policy import MemorylessPolicy
from support.tiers import tiers

NOW = [0.0]
REFERENCE = "mcbrl:n=16"
SHORT = "slow:first=1.0,later=1.0"  # seconds
PLANS = "slow:first=4.0,later=0.0"


def clock():
    return NOW[0]


class Slow:
    """Always forward; its first step of a run, and every so many, takes a time of its own."""

    def __init__(self, setting, *, first, later, every):
        self.first, self.later, self.every = first, later, every

    def reset(self, seed):
        self.done = 0

    def act(self, state):
        NOW[0] += self.later if self.done % self.every else self.first
        self.done += 1
        return 1

    def observe(self, state, action, reward, next_state):
        pass


@pytest.fixture(autouse=True)
def slow(monkeypatch):
    monkeypatch.setattr(AGENTS, "_families", dict(AGENTS.families()))
    monkeypatch.setattr(season, "timed", partial(timed, clock=clock))
    seconds = [Number(name, 0.0, 0.0, 1e9, "seconds", always=True) for name in ("first", "later")]
    every = Number("every", 10**6, 1, 10**6, "steps", whole=True)
    agent("slow", summary="lets time pass", parameters=(*seconds, every))(Slow)


@pytest.mark.parametrize(
    ("first", "later", "steps", "runs"),
    [
        (1.0, 1.0, 50, 2),
        (1.0, 0.5, 50, 3),  # 25.5 seconds; two runs of 100 steps would take 101
        (20.0, 1 / 128, 1000, 3),  # a long plan, then cheap steps: 27.8 seconds a run
        (0.0, 1 / 32, 1000, 3),
        (30.0, 1.0, 20, 2),
        (30.0, 30.0, 1, 3),
        (60.0, 0.0, 1, 2),
        (1e6, 1e6, 1, 0),  # not one step fits
        (1 / 1024, 1 / 1024, 1000, 9),
    ],
)
def test_as_many_steps_as_fit_twice_and_as_many_runs_as_fit_then(first, later, steps, runs):
    budget, began = 100.0, NOW[0]
    found = timed(
        f"slow:first={first},later={later}", "chain", steps=1000, runs=9, budget=budget, discount=None, clock=clock
    )
    spent = NOW[0] - began
    assert (found.steps, found.runs) == (steps, runs)
    assert found.step == pytest.approx((first + (steps - 1) * later) / steps)
    assert spent <= 0.2 * budget + later or spent == first or spent <= first + 0.1 * budget + later


def test_who_takes_long_for_a_plan_and_plans_again_later_is_not_taken_for_fast():
    """Fifteen seconds every forty steps: the first plan is all that a tenth of the budget allows."""
    found = timed(
        "slow:first=15.0,later=0.0,every=40", "chain", steps=1000, runs=9, budget=100.0, discount=None, clock=clock
    )
    assert (found.steps, found.runs) == (50, 2)


def test_who_plans_again_and_again_is_not_taken_for_fast():
    """Ten steps by hand have one plan. A hundred more have five, and tell that a thousand do not fit."""
    budget, began = 20.0, NOW[0]
    found = timed(
        "slow:first=0.5,later=0.0,every=20", "chain", steps=1000, runs=9, budget=budget, discount=None, clock=clock
    )
    assert NOW[0] - began <= 0.2 * budget
    assert (found.steps, found.runs) == (200, 4)


def test_what_is_compiled_meanwhile_takes_no_time():
    def told(x):
        return x

    @overload(told)
    def _told(x):
        NOW[0] += 5.0  # runs in the compiler
        return lambda x: x + 1

    with working_time(clock) as now:
        began = now()
        assert njit(lambda x: told(x))(1) == 2
        assert now() == began
        start_event("numba:compiler_lock")
        start_event("numba:compiler_lock")
        NOW[0] += 1.0
        end_event("numba:compiler_lock")
        NOW[0] += 1.0
        end_event("numba:compiler_lock")
        assert now() == began
        NOW[0] += 2.0
        assert now() == began + 2.0


def test_a_run_that_is_over_takes_no_more_time(monkeypatch):
    """Three steps of 2 seconds lead to a terminal state: ten whole runs fit into a minute."""
    p = np.zeros((4, 2, 4))
    p[[0, 1, 2, 3], :, [1, 2, 3, 3]] = 1.0
    way = environment_from_mdp(MDP(p, [[0.0] * 2] * 2 + [[1.0] * 2, [0.0] * 2], initial=0), name="way")
    monkeypatch.setattr(timing, "make_env", lambda name: way)
    found = timed("slow:first=2.0,later=2.0", "way", steps=500, runs=20, budget=60.0, discount=None, clock=clock)
    assert (found.steps, found.runs) == (500, 10)
    assert found.step == 2.0  # of the three that are made, not of 500
    found = timed("slow:first=2.0,later=2.0", "way", steps=500, runs=20, budget=10.0, discount=None, clock=clock)
    assert (found.steps, found.runs) == (2, 2)  # as few as 50 would take as long as all


def test_a_budget_without_end_is_all_runs():
    found = timed("slow:first=9.0,later=9.0", "chain", steps=30, runs=7, budget=np.inf, discount=None, clock=clock)
    assert (found.steps, found.runs, found.step) == (30, 7, 9.0)


def test_waiting_is_time_and_a_busy_machine_is_not():
    worked, passed = [0.0], [0.0]
    spent = Spent(lambda: worked[0], lambda: passed[0])
    for work, wait, counted in ((1.0, 0.0, 1.0), (1.0, 2.5, 1.0), (0.0, 0.05, 0.0), (0.01, 2.0, 2.01), (0.0, 0.5, 0.5)):
        before = spent()
        worked[0] += work
        passed[0] += work + wait
        assert spent() - before == pytest.approx(counted)


def test_a_policy_of_too_few_decisions_is_refused_before_it_plays(tmp_path):
    MemorylessPolicy([[1] * 5] * 5).save(tmp_path / "five.json")
    with pytest.raises(PolicyError, match="40 are to be made; play fewer steps"):
        league("chain", tmp_path / "out", agents=[f"policy:{tmp_path / 'five.json'}"], runs=3, steps=40)


def test_a_slow_agent_is_compared_after_as_many_steps(tmp_path):
    arguments = {"agents": [SHORT, PLANS, "oracle", "exploit"], "runs": 6, "steps": 60, "budget": 10.0}
    found = league("chain", tmp_path, **arguments)
    names = found.table["agent"].to_list()
    assert names[-1] == SHORT
    assert found.table["steps"].to_list() == [60, 60, 60, 60, 5]
    assert names[0] == "oracle"
    assert found.table["level"].to_list()[1:-1] == sorted(found.table["level"].to_list()[1:-1], reverse=True)
    row = found.table.row(-1, named=True)
    assert (row["runs"], row["step_seconds"], row["published"], row["front"]) == (2, 1.0, None, False)
    place = make_env("chain")
    slow, mcbrl = (play(make_agent(name, place), place, seed=1, runs=2, steps=5).total for name in (SHORT, REFERENCE))
    assert row["total"] == slow.mean()
    assert row["difference"] == (slow - mcbrl).mean()
    assert SHORT not in found.ranking["agent"].to_list()
    assert PLANS in names  # its plan takes long, and its steps nothing: two runs of 60 fit
    assert found.left_out == {}
    parts = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    began = NOW[0]
    again = league("chain", tmp_path, **arguments)
    assert NOW[0] == began  # nothing is measured or played again
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")} == parts
    assert_frame_equal(again.table, found.table)
    assert_frame_equal(again.frame, found.frame)
    page = write_league(found, tmp_path).read_text()
    assert_frame_equal(again.table, pl.read_csv(tmp_path / "league.csv"), check_dtypes=False)
    assert "after as many" in page
    assert "Marks on the time axis" in page
    assert "| steps |" in (tmp_path / "league.md").read_text()


def test_who_takes_longer_for_a_step_than_it_has_is_left_out_with_its_time(tmp_path):
    for _ in range(2):
        began = NOW[0]
        found = league("chain", tmp_path, agents=["slow:first=30,later=30", "random"], runs=3, steps=40, budget=20.0)
        assert found.left_out == {"slow:first=30.0,later=30.0": "a step takes 30 s, longer than the 20 s that it has"}
        assert found.table["agent"].to_list() == [REFERENCE, "random"]
    assert NOW[0] == began  # it is kept how long it took


def test_the_reference_has_as_much_time_as_all_together(tmp_path, monkeypatch):
    budgets = {}

    def measured(name, place, *, runs, steps, budget, **_):
        budgets[name] = budget
        return Timing(1e-3, 0.0, runs, steps)

    monkeypatch.setattr(season, "timed", measured)
    league("chain", tmp_path, agents=["exploit", "random"], runs=3, steps=40, budget=20.0)
    assert budgets == {REFERENCE: 60.0, "exploit": 20.0, "random": 20.0}


def test_a_league_of_nobody_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(season, "timed", lambda name, place, **_: Timing(5.0, 0.0, 0, 1))
    with pytest.raises(ParameterError, match="nobody can play: random: a step takes 5 s, longer than the 2 s"):
        league("chain", tmp_path, agents=["random"], runs=3, steps=40, budget=2.0)


def test_the_shorter_come_last_the_longest_of_them_first(tmp_path):
    slower = "slow:first=3.0,later=1.0"
    found = league("chain", tmp_path, agents=[slower, "random", SHORT], runs=3, steps=40, budget=20.0)
    assert found.table["agent"].to_list()[2:] == [SHORT, slower]
    assert found.table["steps"].to_list() == [40, 40, 10, 5]
    assert [row[2] for row in shown(found)[1]] == ["40", "40", "10", "5"]


def test_steps_are_shown_only_where_they_differ(tmp_path):
    found = league("chain", tmp_path, agents=["random"], runs=3, steps=40)
    assert "steps" not in shown(found)[0]
    page = write_league(found, tmp_path).read_text()
    assert pl.read_csv(tmp_path / "league.csv")["steps"].to_list() == [40, 40]
    assert "after as many" not in page
    assert "Marks on the time axis" not in page


@pytest.mark.parametrize("others", tiers([40, 10], 40))
def test_the_reference_may_be_the_slow_one(tmp_path, monkeypatch, others):
    steps = {REFERENCE: 10, "random": others, "exploit": 2}
    monkeypatch.setattr(season, "timed", lambda name, place, **_: Timing(1e-3, 0.0, 3, steps[name]))
    found = league("chain", tmp_path, agents=list(steps), runs=3, steps=40)
    rows = {row["agent"]: row for row in found.table.iter_rows(named=True)}
    assert {name: row["steps"] for name, row in rows.items()} == steps
    assert (rows["random"]["difference"] is None) == (others == 40)  # the reference plays no more steps than fit
    assert rows["exploit"]["difference"] is not None
    page = write_league(found, tmp_path).read_text()
    assert "nobody is ranked" in page
    assert ("Learning curves" in page) == (others == 40)


def test_intervals_and_ranks_need_thirty_runs_of_both(tmp_path, monkeypatch):
    runs = {REFERENCE: 40, "random": 35, "exploit": 29}
    monkeypatch.setattr(season, "timed", lambda name, place, **_: Timing(1e-3, 0.0, runs[name], 40))
    found = league("chain", tmp_path, agents=list(runs), runs=40, steps=40)
    pairs = dict(zip(found.table["agent"], found.table["pairs"], strict=True))
    assert pairs == {REFERENCE: 0, "random": 35, "exploit": 29}
    assert found.table.filter("ranked")["agent"].to_list() == [REFERENCE, "random"]
    header, rows = shown(found)
    for row in rows:
        assert (row[header.index("total, 95%")] != "") == (row[1] != "exploit")
        assert (row[header.index("− MCBRL, 95%")] != "") == (row[1] == "random")
        assert (row[header.index("− MCBRL")] != "") == (row[1] != REFERENCE)
    page = write_league(found, tmp_path).read_text()
    assert "total, over common runs, is that of mcbrl:n=16. Of 1 others with 30 runs or more in common" in page
    assert "come after, without a rank" in page
    assert "Hollow: fewer than 30" in page


def test_times_of_earlier_versions_are_taken_but_for_who_was_left_out(tmp_path):
    file = tmp_path / "timing.json"
    old = {
        f"{name} on chain, 3 runs of 40 steps, 20 s": {"step": 0.5, "build": 0.25, "runs": runs}
        for name, runs in (("random", 2), (REFERENCE, 3), ("exploit", 0))
    }
    file.write_text(json.dumps(old))
    assert read_timings(file) == {
        "random on chain, 3 runs of 40 steps, 20 s": Timing(0.5, 0.25, 2, 40),
        f"{REFERENCE} on chain, 3 runs of 40 steps, 20 s": Timing(0.5, 0.25, 3, 40),
    }
    found = league("chain", tmp_path, agents=["random", "exploit"], runs=3, steps=40, budget=20.0)
    rows = {row["agent"]: row for row in found.table.iter_rows(named=True)}
    assert (rows["random"]["step_seconds"], rows["random"]["runs"], rows["random"]["steps"]) == (0.5, 2, 40)
    assert rows["exploit"]["step_seconds"] < 0.5
    assert rows["exploit"]["steps"] == 40
    assert json.loads(file.read_text())["random on chain, 3 runs of 40 steps, 20 s"]["steps"] == 40
