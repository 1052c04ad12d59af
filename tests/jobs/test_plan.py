"""From a log to a certified policy: claims hold, files say what was found, and the page is safe to open."""

import json
import re
import shutil
import subprocess
from collections import defaultdict

import gymnasium
import numpy as np
import polars as pl
import pytest

from beliefbound import (
    MDP,
    DirichletBelief,
    KnownRewards,
    StationaryPolicy,
    evaluate,
    load_actor,
    load_belief,
    load_policy,
)
from beliefbound.base.errors import BeliefError, FileError, ParameterError
from beliefbound.bounds.finite.problem import stage_values
from beliefbound.cli import app
from beliefbound.jobs.from_log.command import PlanFileOptions, plan_file
from beliefbound.jobs.from_log.plan import plan_log
from beliefbound.jobs.from_log.writing import policy_words
from beliefbound.lab.engine.actor import Actor
from beliefbound.logs import log_of
from beliefbound.report.from_log.headline import below
from beliefbound.report.from_log.page import page_of
from beliefbound.report.from_log.pictures import pictures
from support.command_line import command
from support.oracles import dirichlet_value

QUICK = {"n_models": 100, "time_limit": 0, "measure": False}
HOSTILE = ("<script>alert(1)</script>", "\"' onload=x", "مرحبا", "n" * 10_000, "$\\frac{1}{0}$", "plain")


def simulated(truth, rng, n):
    """Steps of a uniform policy in an MDP `[s,a,t]`, every pair equally often."""
    s, a = rng.integers(0, truth.shape[0], n), rng.integers(0, truth.shape[1], n)
    t = (rng.random(n)[:, None] > np.cumsum(truth[s, a], axis=1)[:, :-1]).sum(axis=1)
    return s, a, t


@pytest.mark.full
@pytest.mark.parametrize("n", [2, 12])
def test_the_certificate_covers_the_exact_value_over_many_logs(n):
    """Fifteen logs of models drawn from the prior, some pairs never seen: the Bayes-optimal value of the posterior, by
    enumeration of every history, lies between the bounds; at 95% three misses would come in 4 cases of 100, and the
    bounds are on the safe side."""
    paid = KnownRewards([[0.0, 0.5], [1.0, 0.2]])
    missed = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        truth = rng.dirichlet([0.5, 0.5], size=(2, 2))
        s, a, t = simulated(truth, rng, n)
        log = log_of(s, a, paid.rewards[s, a], t, n_states=2, n_actions=2)
        found = plan_log(log, discount=0.9, horizon=3, initial=0, rewards=paid, seed=seed, **QUICK)
        exact = dirichlet_value(found.learnt.belief, 0, 0.9, 3)
        missed += not found.lower.value <= exact <= found.upper.value
        assert (found.log.unseen.sum() > 0) == any("never observed" in note for note in found.notes())
    assert missed <= 2


def test_the_posterior_is_calibrated():
    """Where the truth comes from the prior, a policy's true value is as likely in each fifth of the posterior's."""
    ranks = []
    paid = KnownRewards([[0.0, 0.5], [1.0, 0.2]])
    for seed in range(60):
        rng = np.random.default_rng(1000 + seed)
        truth = rng.dirichlet([0.5, 0.5], size=(2, 2))
        s, a, t = simulated(truth, rng, 10)
        belief = DirichletBelief.from_log(
            log_of(s, a, paid.rewards[s, a], t, n_states=2, n_actions=2), rewards=paid, initial=0
        )
        policy = StationaryPolicy([1, 0])
        drawn = evaluate(policy, belief.sample(200, seed), discount=0.9)[:, 0]
        ranks.append((drawn < evaluate(policy, MDP(truth, paid.rewards), discount=0.9)[0]).mean())
    counts = np.histogram(ranks, bins=5, range=(0.0, 1.0))[0]
    assert ((counts - 12) ** 2 / 12).sum() < 18.5  # chi-squared with 4 degrees of freedom: once in a thousand


@pytest.mark.full
def test_what_is_credible_of_the_truth_is_seldom_too_much():
    """Forty logs of six steps, of models drawn from the prior, some pairs never seen: the truth pays the policy less
    than it was said to with a probability of at most a tenth. Eleven misses would come twice in a thousand such tests;
    the mean over the posterior is no such promise."""
    paid = KnownRewards([[0.0, 0.5], [1.0, 0.2]])
    missed = below = 0
    for seed in range(40):
        rng = np.random.default_rng(2000 + seed)
        truth = rng.dirichlet([0.5, 0.5], size=(2, 2))
        s, a, t = simulated(truth, rng, 6)
        log = log_of(s, a, paid.rewards[s, a], t, n_states=2, n_actions=2)
        found = plan_log(
            log, discount=0.9, initial=0, rewards=paid, prior="uniform", confidence=0.9, seed=seed, **QUICK
        )
        value = evaluate(found.policy, MDP(truth, paid.rewards), discount=0.9)[0]
        missed += value < found.credible.low
        below += value < found.lower.value
    assert missed <= 10
    assert below > 10


def test_what_was_never_tried_is_left_alone_unless_allowed(tmp_path):
    """In state 0 an action that was never tried looks best, because the others of the log pay: only who says so takes
    it. Its worth is bounded from above either way, and it is what to measure."""
    log = log_of([0, 1] * 40, [0, 0] * 40, [-1.0, 0.5] * 40, [1, 0] * 40, n_actions=2)
    careful = plan_log(log, discount=0.9, **QUICK)
    bold = plan_log(log, discount=0.9, try_untried=True, **QUICK)
    assert careful.policy.actions.tolist() == [0, 0]
    assert careful.reliance.untried == 0.0
    assert careful.reliance.warnings == ()
    assert bold.policy.actions[0] == 1
    assert bold.reliance.warnings
    assert bold.credible.low < careful.credible.low < bold.lower.value < careful.upper.value
    assert [c.other.name for c in careful.comparisons] == [
        "behaviour",
        "expected MDP",
        "expected MDP, also untried actions",
    ]
    assert set(pictures(careful, tmp_path)) == {"policy", "states", "values", "coverage"}
    assert (0, 1) in careful.to_measure()
    assert careful.learnt.belief.available.all()
    with pytest.raises(ParameterError, match="only_tried or try_untried, not both"):
        plan_log(log, discount=0.9, try_untried=True, only_tried=True, **QUICK)


def test_where_the_prior_speaks_that_is_said_first_and_the_least_number_leads():
    log = log_of([0, 1, 2], [0, 0, 0], [0.0, 1.0, 0.0], [1, 2, 0], n_states=6, n_actions=1)
    found = plan_log(log, discount=0.9, rewards=KnownRewards(np.arange(6.0)[:, None]), **QUICK)
    least = found.reliance.least
    assert least.prior != found.learnt.name
    assert least.credible == min(row.credible for row in found.reliance.table[:-1] if not row.refuted)
    assert least.credible < found.credible.low
    page = page_of(found, defaultdict(lambda: None))
    assert page.lead.startswith("Read with care: most of this value rests on the prior")
    assert f"at least {below(least.credible)} with 95% probability, if the prior {least.prior} is right" in page.lead
    said = found.to_dict()
    assert said["by_prior"]
    assert said["credible"]["least"] == least.credible
    assert said["warnings"][0] in page.lead
    assert "Read with care" in policy_words(found)


def test_a_prior_that_the_log_refutes_does_not_count():
    """A cycle walked fifty times: a prior that expects leaps is refuted, and its word about the value is no reason to
    doubt; who insists on it is told."""
    s = np.arange(400) % 8
    log = log_of(s, 0 * s, 1.0 * (s == 7), (s + 1) % 8)
    found, told = (plan_log(log, discount=0.9, prior=prior, **QUICK) for prior in ("suggest", "jeffreys"))
    rows = {row.prior: row for row in found.reliance.table}
    assert rows["jeffreys"].refuted
    assert not rows["empirical"].refuted
    assert rows["empirical"].evidence == 0.0
    assert found.reliance.least.prior == "empirical"
    assert found.reliance.warnings == ()
    assert any("the log speaks against the prior jeffreys" in text for text in told.reliance.warnings)


def test_an_effort_gives_the_same_every_time():
    log = log_of([0, 1] * 10, [0, 1] * 10, [0.0, 1.0] * 10, [1, 0] * 10)
    knobs = {"discount": 0.9, "n_models": 100, "measure": False, "effort": 3}
    first, second = (plan_log(log, **knobs) for _ in range(2))
    assert first.bracket.effort == 3
    for name in ("lower", "upper", "credible"):
        assert getattr(first, name) == getattr(second, name)
    with pytest.raises(ParameterError, match="an effort, which is the same every time, or a time limit"):
        plan_log(log, **knobs, time_limit=1.0)


def test_a_wide_proven_interval_is_not_replaced_but_by_request():
    """A loss that a thousand rows show once: what it might cost is paid for, unless somebody asks otherwise."""
    states, paid = [0, 1] * 500, [1.0] * 999 + [-50.0]
    log = log_of(states, [0] * 1000, paid, [1, 0] * 500)
    proven = plan_log(log, discount=0.99, rewards="values", **QUICK)
    near = plan_log(log, discount=0.99, rewards="values", interval="t", **QUICK)
    assert "betting" in proven.lower.method
    assert near.lower.asymptotic
    assert proven.lower.value < near.lower.value
    (hint,) = proven.hints
    assert f"Student's is {near.lower.value:.6g} to" in hint
    assert near.hints == ()
    with pytest.raises(ParameterError, match="interval is 'normal'; give 'betting' or 't'"):
        plan_log(log, discount=0.99, interval="normal", **QUICK)


@pytest.mark.full
@pytest.mark.parametrize("confidence", [0.5, 0.99])
def test_any_confidence_may_be_asked_for(confidence):
    log = log_of([0, 1] * 30, [0, 0, 1, 0] * 15, [0.0, 1.0] * 30, [1, 0] * 30)
    found = plan_log(log, discount=0.9, confidence=confidence, **QUICK | {"measure": True})
    assert found.confidence == confidence
    assert found.information.confidence == pytest.approx(confidence)


def test_a_policy_is_never_valued_on_models_that_chose_it():
    """With no data the in-sample optimum of many policies looks far better than it is; the bound must not."""
    log = log_of([0, 1], [0, 1], [0.0, 1.0], [1, 0], n_states=4, n_actions=3)
    found = plan_log(log, discount=0.9, rewards=KnownRewards(np.arange(12.0).reshape(4, 3)), **QUICK)
    many = found.task.belief.sample(3000, 99)
    value = float((stage_values(found.policy, many.models, 0.9, None, 0)[0] @ found.task.start).mean())
    assert found.lower.value <= value + 0.5
    assert found.reliance.share > 0.5
    assert any(note.startswith("WARNING: most of this value rests on the prior") for note in found.notes())


def test_whoever_stops_it_gets_what_there_is():
    log = log_of([0, 1] * 10, [0, 1] * 10, [0.0, 1.0] * 10, [1, 0] * 10)
    found = plan_log(log, discount=0.9, n_models=100, effort=1000, stop=lambda: True)
    assert found.interrupted
    assert found.information is None
    assert found.lower.value <= found.upper.value


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A plan whose states have hostile names, with everything computed."""
    folder = tmp_path_factory.mktemp("plan")
    rng = np.random.default_rng(4)
    s, a = rng.integers(0, 5, 400), rng.integers(0, 2, 400)
    t = np.minimum(5, s + a * rng.integers(0, 2, 400))
    frame = pl.DataFrame(
        {
            "state": [HOSTILE[i] for i in s],
            "action": [("<b>stay</b>", "go")[i] for i in a],
            "reward": 1.0 * (s == 4) - 0.1 * a,
            "next_state": [HOSTILE[i] for i in t],
            "terminated": t == 5,
        }
    )
    frame.write_csv(folder / "log.csv")
    found, report = plan_file(
        str(folder / "log.csv"),
        folder / "out",
        PlanFileOptions(initial=["مرحبا"], discount=0.9, n_models=200, effort=8, objective="cvar:0.2"),
    )
    return folder / "out", found, report


def test_files_say_what_was_found(written):
    folder, found, _ = written
    said = json.loads((folder / "certificate.json").read_text())
    assert (said["lower"], said["upper"]) == (found.lower.value, found.upper.value)
    assert said["lower"] <= said["upper"]
    assert (said["confidence"], said["discount"], said["horizon"]) == (0.95, 0.9, None)
    assert said["initial"] == {"مرحبا": 1.0}
    assert said["objective"]["name"] == "cvar:0.2"
    assert said["objective"]["low"] <= said["objective"]["attainable"]["high"]
    assert said["credible"]["least"] <= said["credible"]["value"] <= said["upper"]
    assert load_policy(folder / "policy.json") == found.policy
    assert len(said["states"]) == found.log.n_states
    ends = [state["name"] for state in said["states"] if state["terminal"]]
    assert ends == ["plain"]
    assert said["bracket"]["lower"] <= said["bracket"]["upper"]
    assert len(said["measure"]) > 0
    assert {row["prior"] for row in said["priors"]} >= {"uniform", "jeffreys", "sparse", "empirical"}
    belief = load_belief(folder / "posterior.npz")
    assert np.array_equal(belief.concentration, found.learnt.belief.concentration)
    table = pl.read_csv(folder / "policy.csv")
    assert set(table["state"]) == set(HOSTILE)
    act = load_actor(folder / "policy.json")
    taken = dict(zip(table["state"], table["action"], strict=True))
    assert act("مرحبا") == taken["مرحبا"]
    assert all(0.0 <= row["low"] <= row["high"] for row in said["measure"])


def test_an_actor_plays_in_gymnasium(written):
    env, act = gymnasium.make("FrozenLake-v1"), Actor(StationaryPolicy(np.full(16, 2)))
    observation, _ = env.reset(seed=1)
    after, reward, *_ = env.step(act(observation))
    act.observe(observation, 2, reward, after)
    assert env.action_space.contains(act(np.array(after)))


def test_names_are_shown_as_text(written):
    _, _, report = written
    page = report.read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<b>stay" not in page
    assert "مرحبا" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
PROBE = """<script type="module">
window.addEventListener("load", () => setTimeout(() => {
  const images = [...document.images];
  const first = document.querySelector("table"), head = first.tHead.rows[0].cells[2];
  head.querySelector("button").click();
  const column = [...first.tBodies[0].rows].map(row => parseFloat(row.cells[2].textContent));
  document.title = JSON.stringify({
    images: images.length, drawn: images.filter(i => i.complete && i.naturalWidth > 50).length,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    sorted: column.every((x, i) => i === 0 || column[i - 1] <= x),
    buttons: document.querySelectorAll("th button").length,
    scripts: document.scripts.length,
  });
}, 50));
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: the page is not looked at in a browser")
@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_works_in_a_browser(written, tmp_path, width):
    _, _, report = written
    probed = tmp_path / "probed.html"
    probed.write_text(report.read_text().replace("</body>", PROBE))
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
            f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", "--virtual-time-budget=3000",
            "--dump-dom", probed.as_uri(),
        ],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.S)
    assert title is not None, done.stderr[-2000:]
    seen = json.loads(title.group(1).replace("&quot;", '"'))
    assert "CONSOLE" not in done.stderr
    assert seen["drawn"] == seen["images"] == 6
    assert seen["overflow"] <= 0
    assert seen["sorted"]
    assert seen["buttons"] > 10
    assert seen["scripts"] == 2  # the page's own, and this probe


BAD = [
    (["--initial", "nowhere"], "there is no state 'nowhere'"),
    (["--objective", "median"], "the objective is 'median'"),
    (["--prior", "flat"], "the prior is 'flat'"),
    (["--rewards", "gamma"], "rewards is 'gamma'"),
    (["--column", "state"], "give COLUMN=NAME"),
    (["--discount", "1"], "discount is 1 and there is no horizon"),
    (["--terminal", "7"], "there is no state '7'"),
    (["--states", "1"], "only 1 states are declared"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_bad_words_are_told_and_nothing_is_written(tmp_path, words, message):
    (tmp_path / "log.csv").write_text("state,action,reward,next_state\n0,0,1,1\n1,0,0,0\n")
    options = {"discount": 0.9, **QUICK}
    keys = {"--initial": "initial", "--terminal": "terminal", "--column": "columns"}
    name, value = words
    key = keys.get(name, name.removeprefix("--"))
    options[key] = [value] if name in keys else float(value) if name == "--discount" else value
    with pytest.raises((BeliefError, ParameterError, FileError), match=re.escape(message)):
        plan_file(str(tmp_path / "log.csv"), tmp_path / "out", PlanFileOptions(**options))
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize("words", [{"columns": ["state=s"]}, {"states": "3"}, {"names": True}])
def test_a_dataset_takes_no_words_about_files(tmp_path, words):
    with pytest.raises(ParameterError, match="is for files; a Minari dataset says it itself"):
        plan_file("minari:toy/walk-v0", tmp_path / "out", PlanFileOptions(discount=0.9, **words))
    with pytest.raises(ParameterError, match="the dataset is ''; give a name"):
        plan_file("minari:", tmp_path / "out", PlanFileOptions(discount=0.9))


def test_known_rewards_come_from_a_table(tmp_path):
    rows = ["state,action,reward,next_state", *(["a,x,5,b", "b,x,1,a", "a,y,2,a", "b,y,0,b"] * 10)]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    table = tmp_path / "known.csv"
    table.write_text("state,action,reward\na,x,5\nb,x,1\n")
    found, _ = plan_file(
        str(tmp_path / "log.csv"), tmp_path / "out", PlanFileOptions(discount=0.9, known_rewards=table, **QUICK)
    )
    assert found.learnt.family == "mixed"
    assert found.learnt.belief.rewards.known[0, 0].tolist() == [5.0, 5.0]
    assert np.isnan(found.learnt.belief.rewards.known[:, 1]).all()
    for text, message in (("a,z,1", "line 2: there is no action 'z'"), ("a,x,1\na,x,1", "line 3: .*more than once")):
        table.write_text(f"state,action,reward\n{text}\n")
        with pytest.raises(FileError, match=message):
            plan_file(
                str(tmp_path / "log.csv"),
                tmp_path / "none",
                PlanFileOptions(discount=0.9, known_rewards=table, **QUICK),
            )


def test_the_command_ends_in_one_line_where_the_log_is_bad(tmp_path):
    (tmp_path / "log.csv").write_text("state,action,reward,next_state\n0,0,1,1\n1,0,inf,0\n")
    done = command("plan", tmp_path / "log.csv", "--discount", 0.9, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith("error: ")
    assert "row 2, column 'reward': it is inf" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "certificate.json").exists()


@pytest.mark.full
def test_the_command_answers_three_questions(tmp_path, capsys):
    rows = ["state,action,reward,next_state", *(["new,run,5,old", "old,run,1,old", "old,fix,-2,new"] * 20)]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    options = ("--discount", 0.9, "--models", 100, "--time", 0, "--out", tmp_path / "out")
    app(["plan", str(tmp_path / "log.csv"), *map(str, options)], standalone_mode=False)
    said = capsys.readouterr().out
    assert re.search(r"policy: .* in .*policy.json", said)
    assert re.search(r"it earns at least [-\d.]+ with 95% probability, if the prior", said)
    mean = (
        r"worth at least [-\d.]+( \(about [-\d.]+, not proven\))?; no policy is worth more than [-\d.]+; 95% confidence"
    )
    assert re.search(mean, said)
    assert "report: " in said
    said = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert "fix" in dict(zip(["new", "old"], said["policy"]["actions"], strict=True))["old"]  # alone, or among others


def test_a_plan_tells_itself_like_every_other_result(tmp_path):
    columns = {"state": ["dry", "wet"] * 20, "action": ["wait", "sow"] * 20, "reward": [0.0, 1.0] * 20}
    columns["next_state"] = ["wet", "dry"] * 20
    found = plan_log(columns, discount=0.9, n_models=60, time_limit=0, measure=False)
    told = found.summary()
    assert told.splitlines()[0] == repr(found)
    assert told.splitlines()[1].split()[0] == "estimate"
    assert "dry: wait" in told
    assert "<table>" in found._repr_html_()
    assert found.plot().get_xlabel().startswith("value from the start")
    found.save(tmp_path / "plan.json")
    written = json.loads((tmp_path / "plan.json").read_text())
    assert written["lower"] == found.lower.value
    assert load_policy(tmp_path / written["policy"]["file"]) == found.policy
    with pytest.raises(FileError, match="load_policy"):
        type(found).load(tmp_path / "plan.json")
