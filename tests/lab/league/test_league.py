"""A league: agents on one environment, compared run by run; MDPs drawn from a prior, as in the Bayesian benchmark."""

import json
import re

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from beliefbound.base.errors import FileError, ParameterError
from beliefbound.lab.engine.registry import canonical_agent
from beliefbound.lab.envs import make_env
from beliefbound.lab.experiments.cells import play_cell
from beliefbound.lab.experiments.spec import Cell, Spec
from beliefbound.lab.league.band import PLAYERS, _earned
from beliefbound.lab.league.entries import LENGTHS, chosen, entries, with_prior, without_prior
from beliefbound.lab.league.page import write_league
from beliefbound.lab.league.published import PUBLISHED, published
from beliefbound.lab.league.season import league
from beliefbound.lab.league.standings import pareto
from beliefbound.planning.optimal import optimal_values
from support.command_line import beliefbound

SMALL = {"runs": 6, "steps": 60}

MINE = """
from beliefbound.lab.agents import agent

@agent("mine", summary="always forward")
class Mine:
    def __init__(self, setting): pass
    def reset(self, seed): pass
    def act(self, state): return 1
    def observe(self, state, action, reward, next_state): pass
"""


def test_all_face_the_same_noise_and_more_can_join_later(tmp_path):
    first = league("chain", tmp_path, agents=["random"], **SMALL)
    parts = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    more = league("chain", tmp_path, agents=["random", "oracle", "exploit"], **SMALL)
    assert all(path.stat().st_mtime_ns == time for path, time in parts.items())  # nothing was played again
    assert set(more.table["agent"]) == {"random", "oracle", "exploit", "mcbrl:n=16"}
    assert more.frame.filter(agent="random").equals(first.frame.filter(agent="random"))
    row = more.table.row(by_predicate=pl.col("agent") == "random", named=True)
    totals = {
        agent: more.frame.filter(agent=agent).sort("run")["total"].to_numpy() for agent in ("random", "mcbrl:n=16")
    }
    assert row["difference"] == pytest.approx((totals["random"] - totals["mcbrl:n=16"]).mean())
    assert row["total"] == pytest.approx(totals["random"].mean())
    assert more.table["level"].to_list() == sorted(more.table["level"], reverse=True)
    assert more.table["agent"][0] == "oracle"
    assert not more.table.row(by_predicate=pl.col("agent") == "oracle", named=True)["front"]


def test_times_that_cannot_be_read_are_said(tmp_path):
    (tmp_path / "timing.json").write_text("[1]")
    with pytest.raises(FileError, match=r"timing\.json"):
        league("chain", tmp_path, agents=["random"], **SMALL)


def test_every_agent_is_entered_once():
    named = entries(None)
    assert {"exploit", "gittins", "mcbrl:n=16", "oracle", "ucrl2"} <= set(named)
    assert len(named) == len(set(named))
    assert not any(name.startswith("policy") for name in named)
    assert with_prior("thompson", "support") == "thompson:prior=support"
    assert with_prior("qlearning", "support") == "qlearning"
    assert with_prior("mcbrl:n=4,prior=support", "known-rewards") == "mcbrl:n=4,prior=support"
    assert chosen(["exploit", "exploit"], None) == ["exploit", "mcbrl:n=16"]


def test_who_cannot_play_is_left_out_unless_named(tmp_path, monkeypatch):
    monkeypatch.setattr("beliefbound.lab.league.season.entries", lambda prior: ["gittins", "random", "mcbrl:n=16"])
    found = league("chain", tmp_path, **SMALL)
    assert set(found.table["agent"]) == {"random", "mcbrl:n=16"}
    assert "of one state" in found.left_out["gittins"]
    with pytest.raises(ParameterError, match="of one state"):
        league("chain", tmp_path, agents=["gittins"], **SMALL)


@pytest.mark.full
def test_own_agents_enter_with_one_file(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    arguments = ("--plugin", "mine.py", "-a", "mine", "--runs", "3", "--steps", "40", "--out", "out")
    done = beliefbound("league", "chain", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mine" in done.stdout
    table = pl.read_csv(tmp_path / "out" / "league.csv")
    assert set(table["agent"]) == {"mine", "mcbrl:n=16"}
    assert "|  | agent | runs |" in (tmp_path / "out" / "league.md").read_text()
    assert "<svg" in (tmp_path / "out" / "league.svg").read_text()
    assert table["published"].is_null().all()  # what was published is of 1000 steps
    (tmp_path / "mine.py").write_text(MINE.replace("return 1", "return 0"))
    assert beliefbound("league", "chain", *arguments, cwd=tmp_path).returncode == 0
    edited = pl.read_csv(tmp_path / "out" / "league.csv")
    before, after = (each.filter(agent="mine")["utility"].item() for each in (table, edited))
    assert before != after  # runs of the agent as it was are not taken for its own
    bad = beliefbound("league", "chian", cwd=tmp_path)
    assert bad.returncode == 1
    assert "chain" in bad.stderr
    assert "Traceback" not in bad.stderr


@pytest.mark.parametrize(("kind", "published", "error"), [("chain", 31.99, 0.30), ("double-loop", 2.751, 0.025)])
def test_random_play_earns_on_drawn_mdps_what_was_computed_elsewhere(kind, published, error):
    """Its exact value, mean over 2000 draws with 95% intervals; ours is played, once on each of 300 draws."""
    spec = Spec(agents=("random",), environments=(f"drawn-{kind}",), runs=300, steps=250)
    utility = play_cell(spec, Cell("random", f"drawn-{kind}", 1), range(300)).utility
    deviation = np.hypot(utility.std() / np.sqrt(300), error / 1.96)
    assert abs(utility.mean() - published) < 4 * deviation  # false alarms: 6e-5


@pytest.mark.full
def test_a_run_on_drawn_mdps_is_the_run_on_its_own_draw():
    spec = Spec(agents=("exploit:prior=environment",), environments=("drawn-grid",), runs=3, steps=30, curve_every=10)
    cell = Cell("exploit:prior=environment", "drawn-grid", 1)
    together = play_cell(spec, cell, range(3))
    for run in range(3):
        alone = Spec(agents=spec.agents, environments=(f"prior-grid:seed={run}",), runs=3, steps=30, curve_every=10)
        own = play_cell(alone, Cell(cell.agent, f"prior-grid:seed={run}", 1), range(run, run + 1))
        assert own.total[0] == together.total[run]
        assert own.curve[0].tolist() == together.curve[run].tolist()
    assert play_cell(spec, cell, range(1, 3)).total.tolist() == together.total[1:].tolist()


def test_nobody_on_the_front_is_beaten():
    rng = np.random.default_rng(2)
    cost, score = rng.integers(0, 6, size=30).astype(float), rng.integers(0, 6, size=30).astype(float)
    front = pareto(cost, score)
    for i in range(30):
        beaten = any(
            cost[j] <= cost[i] and score[j] >= score[i] and (cost[j], score[j]) != (cost[i], score[i])
            for j in range(30)
        )
        assert front[i] == (not beaten)


def test_the_report_holds_everybody(tmp_path):
    found = league("double-loop", tmp_path, agents=["oracle", "random"], **SMALL)
    page = write_league(found, tmp_path).read_text()
    for agent in found.table["agent"]:
        assert agent in page
    timings = json.loads((tmp_path / "timing.json").read_text())
    assert all(entry["step"] > 0.0 for entry in timings.values())


def test_a_figure_stands_beside_the_setting_it_was_published_for_and_no_other():
    assert published("chain", "mcbrl:n=16") == 3376
    for other in ("bayes-q:choose=sample,update=moment", "boss:k=1,b=1", "beb:beta=0", "boss:k=20,b=5", "mcbrl"):
        assert published("chain", other) is None
    for environment, figures in PUBLISHED.items():
        assert environment in LENGTHS
        assert all(canonical_agent(agent) == agent for agent in figures)


@pytest.mark.full
@pytest.mark.parametrize("name", LENGTHS)
def test_the_oracle_is_an_upper_line(name):
    """The optimal policy with the league's discount, and with no smaller one, earns what so many steps allow."""
    place, (steps, _, discount) = make_env(name), LENGTHS[name]
    p, r = place.mdp.transitions, place.mdp.rewards
    pairs, states = sparse.csr_matrix(np.reshape(p, (-1, p.shape[-1]))), np.arange(len(r))

    def earned(choose):
        v = np.zeros(len(r))
        for _ in range(steps):
            v = choose(r + (pairs @ v).reshape(r.shape))
        return float(place.start @ v)

    def share(gamma):
        actions = optimal_values(place.mdp, discount=gamma).actions[0]
        return earned(lambda q: q[states, actions]) / best

    best = earned(lambda q: q.max(axis=1))
    assert share(discount) >= 0.999
    assert all(share(smaller) < 0.999 for smaller in (0.95, 0.97, 0.98) if smaller < discount)


def test_all_plan_with_one_discount(tmp_path):
    found = league("chain", tmp_path, agents=["oracle"], discount=0.5, **SMALL)
    usual = league("chain", tmp_path, agents=["oracle"], **SMALL)
    assert (found.discount, usual.discount) == (0.5, 0.95)
    utility = [
        each.table.row(by_predicate=pl.col("agent") == "oracle", named=True)["utility"] for each in (found, usual)
    ]
    assert utility[0] < utility[1] / 4  # discounted as it was planned, and not taken from the other league
    assert found.table["published"].is_null().all()
    with pytest.raises(ParameterError, match="discount is 1"):
        league("chain", tmp_path, agents=["oracle"], discount=1.0, **SMALL)


def earned_at_least(folder, place, player, *, steps):
    """What a player of the band earns, over 200 MDPs."""
    return _earned(place, canonical_agent(player), folder / "band.json", steps=steps, discount=0.95, runs=200)


@pytest.mark.full
def test_the_band_encloses_what_a_known_optimum_earns(tmp_path):
    """Of 1 step the Bayes-optimal value is the largest expected reward: 5/2 + 0 … on the drawn chain, 2/2 from 0."""
    found = league("drawn-chain", tmp_path / "one", agents=["exploit"], runs=3, steps=1, effort=20)
    assert found.band is not None
    assert found.band.low <= 1.0 <= found.band.high
    for player in PLAYERS:  # whatever is done first
        assert 0.6 < earned_at_least(tmp_path / "one", make_env("drawn-chain"), player, steps=1) <= 1.0
    told: list[str] = []
    endless = league("drawn-chain", tmp_path, agents=["exploit"], runs=3, effort=5, doing=told.append)
    assert endless.band is not None
    assert f"and {endless.band.high:.4g}, " in "".join(told)
    assert endless.band.low < endless.band.high < 250 * 10.0
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "band").iterdir()}
    again = league("drawn-chain", tmp_path, agents=["exploit"], runs=3, effort=5)
    assert again.band == endless.band
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "band").iterdir()} == files
    assert "best possible agent earns between" in write_league(again, tmp_path).read_text()
    assert league("chain", tmp_path, agents=["exploit"], **SMALL).band is None


def test_the_text_page_says_how_it_was_made_who_played_and_who_cannot(tmp_path, monkeypatch):
    names = ["gittins", "random", "exploit:prior=support", "mcbrl:n=16,prior=support"]
    monkeypatch.setattr("beliefbound.lab.league.season.entries", lambda prior: names)
    found = league("chain", tmp_path, prior="support", runs=30, steps=40)
    report = write_league(found, tmp_path, "beliefbound league chain --prior support --budget 120").read_text()
    page = (tmp_path / "league.md").read_text()
    assert page.startswith("# League: chain, told support\n\n```text\nbeliefbound league chain --prior support")
    assert "(league.png)" in page
    assert (tmp_path / "league.png").exists()
    assert re.search(r"\| gittins \| .*of one state", page)
    assert "were told “support”" in page
    assert "exploit:prior" not in page  # what all were told is in no name
    front = {without_prior(agent, "support") for agent in found.table.filter("front")["agent"]}
    assert front
    assert set(re.findall(r"\| \*\*(.*?)\*\* \|", page)) == front
    assert "beliefbound league chain --prior support --budget 120" in report
