"""A plan against what is done now: what is chosen, what is said, and what is written."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from beliefbound import StationaryPolicy, load_policy
from beliefbound.base.errors import ParameterError
from beliefbound.beliefs.few_successors import few_successors
from beliefbound.beliefs.from_log import learn
from beliefbound.bounds.posterior.fresh import fresh_values
from beliefbound.jobs.from_log.comparing import suggest_objective
from beliefbound.jobs.from_log.plan import PlanOptions, plan_log
from beliefbound.logs import log_of, read_log
from beliefbound.planning.task import Task
from beliefbound.report.from_log.headline import checked_words, estimate_words, free_words
from support.command_line import command
from support.tiers import tiers

QUICK = {"n_models": 100, "time_limit": 0, "measure": False}


def two_arms(n: int, often: float = 0.8, seed: int = 0):
    """One state; action 1 pays with 90%, action 0 with 10%; behaviour takes action 0 with the chance `often`."""
    rng = np.random.default_rng(seed)
    a = (rng.random(n) > often).astype(int)
    paid = (rng.random(n) < np.where(a == 1, 0.9, 0.1)).astype(float)
    return log_of([0] * n, a, paid, [0] * n, n_states=1, n_actions=2)


def test_random_actions_are_no_behaviour_and_choices_are():
    """Pearson's statistic tells even choices from others; somebody's word goes first."""

    def suggested(log, **options):
        return suggest_objective(log, learn(log), PlanOptions(discount=0.9, **options))

    even, chosen = two_arms(400, 0.5), two_arms(400, 0.8)
    assert suggested(even) == "mean"
    assert suggested(chosen) == "safe:0.05"
    assert suggested(chosen, objective="cvar:0.1") == "cvar:0.1"
    assert suggested(chosen, try_untried=True) == "mean"
    assert suggested(even, behaviour=StationaryPolicy(probabilities=[[0.5, 0.5]])) == "safe:0.05"
    spread = [suggested(two_arms(50, 0.5, seed)) for seed in range(40)]
    assert spread.count("safe:0.05") == 0  # four standard deviations: one in 30 000 where the law is normal


@pytest.mark.full
def test_a_clear_improvement_is_taken_and_told():
    """The better arm is taken; both statements are below what it is worth, and the estimate leads."""
    found = plan_log(two_arms(4000), discount=0.9, **QUICK)
    assert str(found.objective) == "safe:0.05"
    assert found.policy.actions.tolist() == [1]
    assert found.safety is not None
    assert found.safety.changed.tolist() == [True]
    assert not found.safety.kept
    assert found.prior_free is not None
    assert 1.0 < found.prior_free.value < 9.0  # more than behaviour's 2.6, whatever the process is
    assert found.prior_free.value > 2.6
    assert "whatever the process is, it earns at least" in free_words(found)
    assert estimate_words(found).startswith("the policy is estimated to earn")
    told = found.to_dict()
    assert told["prior_free"] == {"value": found.prior_free.value}
    assert told["safety"]["changed"] == ["0"]
    json.dumps(told, allow_nan=False)


def short_episodes(n: int, *, known: bool = True):
    """`two_arms` as episodes of two steps, with the chances of behaviour."""
    log = two_arms(n)
    rng = np.random.default_rng(1)
    a = (rng.random(n) > 0.8).astype(int)
    paid = (rng.random(n) < np.where(a == 1, 0.9, 0.1)).astype(float)
    p = np.where(a == 0, 0.8, 0.2) if known else None
    sizes = {"n_states": log.n_states, "n_actions": log.n_actions}
    return log_of([0] * n, a, paid, [0] * n, episodes=np.arange(n) // 2, propensities=p, **sizes)


def test_held_out_episodes_are_told_with_what_they_prove(tmp_path):
    """Chances that were logged or given prove; estimated ones do not, and the words say so."""
    knobs = {"discount": 0.9, "horizon": 2, "objective": "safe:0.05"} | QUICK
    found = plan_log(short_episodes(2000), **knobs)
    assert found.held_out.gain > 0.0
    assert found.held_out.policy.policy.chances(2)[0, 0, 1] > 0.2
    words = checked_words(found)
    assert "whatever the process is: a policy that 500 episodes chose" in words
    assert "more than what is done now, by 500 others, 95% confidence" in words
    told = found.to_dict()["held_out"]
    assert told["proven"]
    assert (told["chances"], told["cut_off"], told["file"]) == ("logged", 0, None)
    assert told["value"] == found.held_out.value < told["estimate"]
    assert found.policy.chances(2)[0, 0].tolist() == [0.0, 1.0]
    few = plan_log(short_episodes(60), **knobs)
    assert "is not shown, by 15 others" in checked_words(few)
    nothing = replace(found, held_out=found.held_out._replace(vacuous=True))
    assert "nothing can be said of a policy that 500 episodes chose" in checked_words(nothing)
    assert nothing.to_dict()["held_out"]["value"] is None
    guessed = plan_log(short_episodes(2000, known=False), **knobs)
    assert "not proven, since behaviour's chances are estimated from the log" in checked_words(guessed)
    assert "confidence" not in checked_words(guessed)
    assert not guessed.to_dict()["held_out"]["proven"]
    given = plan_log(short_episodes(2000, known=False), behaviour=StationaryPolicy(probabilities=[[0.8, 0.2]]), **knobs)
    assert given.held_out.chances == "given"
    assert given.held_out.value == pytest.approx(found.held_out.value, rel=0.05)
    bare = plan_log(two_arms(400), **knobs)
    assert checked_words(bare).startswith("no check by held-out episodes: which steps make an episode is not known")
    assert "no column 'episode'" in bare.to_dict()["held_out"]["missing"]


def test_a_certificate_says_between_which_actions_a_policy_draws():
    """SPIBB keeps behaviour's chance of what was hardly tried: the file has both actions, not the likelier one."""
    found = plan_log(two_arms(60, 0.9), discount=0.9, objective="safe:0.05", **QUICK)
    mixed = StationaryPolicy(probabilities=[[0.25, 0.75]])
    drawn = replace(found, choice=found.choice._replace(chosen=found.choice.chosen._replace(policy=mixed)))
    told = drawn.to_dict()
    assert told["policy"]["actions"] == [{"0": 0.25, "1": 0.75}]
    assert told["states"][0]["action"] == {"0": 0.25, "1": 0.75}
    assert told["states"][0]["prior_share"] == pytest.approx(found.learnt.prior_share[0] @ [0.25, 0.75])
    sure = replace(
        found, choice=found.choice._replace(chosen=found.choice.chosen._replace(policy=StationaryPolicy([1])))
    )
    assert sure.to_dict()["policy"]["actions"] == [1]
    assert sure.to_dict()["states"][0]["action"] == "1"


@pytest.mark.parametrize("objective", tiers(["mean", "safe:0.05", "cvar:0.2"], "safe:0.05"))
def test_behaviour_may_do_what_the_log_does_not_show(objective):
    """Chances of an action that was never tried, given or left over by those that were logged."""
    log = {"episode": [0] * 20 + [1] * 20, "state": [0] * 40, "action": [0, 1] * 20, "reward": [0.0, 1.0] * 20}
    log |= {"next_state": [0] * 40}
    knobs = {"discount": 0.9, "objective": objective} | QUICK
    given = plan_log(read_log(log, actions=3), behaviour=StationaryPolicy(probabilities=[[0.4, 0.4, 0.2]]), **knobs)
    logged = plan_log(read_log(log | {"propensity": [0.4] * 40}, actions=3), **knobs)
    for found in (given, logged):
        assert found.comparisons[0].other.policy.chances(3)[0] == pytest.approx([0.4, 0.4, 0.2])
        assert found.policy.chances(3)[0, 2] <= 0.2 + 1e-9


def test_nothing_better_is_nothing_changed():
    """Arms that pay alike: keep doing what you do, and where there is no bound that is said."""
    log = log_of([0] * 12, [0, 0, 0, 0, 0, 1] * 2, [0.0, 1.0] * 6, [0] * 12, n_states=1, n_actions=2)
    found = plan_log(log, discount=0.9, objective="safe:0.05", **QUICK)
    assert found.safety is not None
    assert found.safety.kept
    assert estimate_words(found).startswith("keep doing what you do")
    assert found.policy.chances(2)[0].tolist() == pytest.approx([5 / 6, 1 / 6])
    assert found.prior_free is not None
    short = replace(found, prior_free=found.prior_free._replace(vacuous=True))
    assert "nothing can be said" in free_words(short)
    assert short.to_dict()["prior_free"] == {"value": None}
    assert "nothing was computed" in free_words(replace(found, prior_free=None))


def test_behaviour_that_is_given_is_the_one_compared_with():
    log = two_arms(300)
    given = StationaryPolicy(probabilities=[[0.8, 0.2]])
    found = plan_log(log, discount=0.9, behaviour=given, **QUICK)
    assert next(c for c in found.comparisons if c.other.name == "behaviour").other.policy == given
    with pytest.raises(ParameterError, match="behaviour never takes action 1 in state 0, but the log has it"):
        plan_log(log, discount=0.9, behaviour=StationaryPolicy([0]), **QUICK)
    with pytest.raises(ParameterError, match="give a StationaryPolicy of the 1 states"):
        plan_log(log, discount=0.9, behaviour="b.csv", **QUICK)


@pytest.mark.full
def test_the_command_reads_behaviour_and_says_both_statements(tmp_path):
    log = tmp_path / "log.csv"
    rng = np.random.default_rng(0)
    rows = ["state,action,reward,next_state"]
    rows += [f"on,{'stay' if rng.random() < 0.8 else 'go'},{int(rng.random() < 0.5)},on" for _ in range(60)]
    log.write_text("\n".join(rows) + "\n")
    (tmp_path / "now.csv").write_text("state,action,probability\non,stay,0.8\non,go,0.2\n")
    out = tmp_path / "out"
    asked = ("plan", log, "--discount", 0.9, "--time", 0, "--no-measure", "--out", out, "--behaviour")
    told = command(*asked, tmp_path / "now.csv")
    assert "whatever the process is" in told.stdout
    assert "if the prior" in told.stdout
    page = (out / "report.html").read_text()
    assert "hatever the process is" in page
    assert "worse than behaviour" in page
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("state,action,probability\non,stay,1.0\n")
    bad = command(*asked, wrong)
    assert bad.returncode != 0
    assert "behaviour never takes action go" in bad.stderr


@pytest.mark.full
def test_the_command_writes_the_policy_that_was_checked(tmp_path):
    """From a column of another name to the words, the file, the page, and the same again."""
    rng = np.random.default_rng(2)
    rows = ["episode,state,action,reward,next_state,chance"]
    for i in range(400):
        go = rng.random() < 0.3
        rows.append(
            f"{i // 2},on,{'go' if go else 'stay'},{int(rng.random() < (0.9 if go else 0.1))},on,{0.3 if go else 0.7}"
        )
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    out = tmp_path / "out"
    asked = ("plan", tmp_path / "log.csv", "--discount", 0.9, "--horizon", 2, "--column", "propensity=chance")
    told = command(*asked, "--time", 0, "--no-measure", "--out", out)
    assert re.search(
        r"check by held-out episodes, whatever the process is: a policy that 100 episodes chose", told.stdout
    )
    said = json.loads((out / "certificate.json").read_text())["held_out"]
    assert said["proven"]
    assert said["gain"] > 0.0
    assert load_policy(out / said["file"]).chances(2)[0, 0, 0] > 0.3  # go, by name the first
    assert "high-confidence policy improvement" in (out / "report.html").read_text()
    assert command("verify", out / "certificate.json").returncode == 0
    (out / "checked.policy.json").unlink()
    assert command("verify", out / "certificate.json").returncode == 3


def test_few_successors_find_how_many_there_are():
    """Rows of exactly three even successors of twenty: far likelier than under the uniform prior, the likelihood of
    every pair given all others is the ratio of two evidences, and drawn rows have about three successors."""
    rng = np.random.default_rng(1)
    after = np.stack([rng.choice(20, 3, replace=False) for _ in range(20)])
    s = np.repeat(np.arange(20), 30)
    t = after[s, rng.integers(0, 3, 600)]
    log = log_of(s, np.zeros(600, int), np.zeros(600), t, n_states=20, n_actions=1, episodes=np.arange(600))
    learnt = learn(log, prior="uniform")
    found = few_successors(log, learnt.belief)
    assert learnt.foretold is not None
    assert found.foretold > learnt.foretold + 20.0
    models = found.belief.sample(50, rng).models.dense()
    assert (models > 0.0).sum(axis=-1).mean() == pytest.approx(3.0, abs=0.1)


def test_starts_are_drawn_where_nobody_gives_them():
    """Half of a thousand episodes begin in a state worth 1 and half in one worth 0: mean 1/2, and spread as of the
    posterior Beta(500.5, 500.5), within a tenth (2000 draws); without starts there is nothing drawn."""
    n = 1000
    log = log_of([0, 1] * (n // 2), [0] * n, [1.0, 0.0] * (n // 2), [2] * n, terminated=[True] * n, n_states=3,
                 n_actions=1, episodes=np.arange(n))  # fmt: skip
    learnt = learn(log)
    task = Task.of(learnt.belief, discount=0.9)
    found = fresh_values(
        task, [StationaryPolicy([0, 0, 0])], 2000, np.random.default_rng(0), starts=log.starts, solved=5
    )
    assert found.drawn is not None
    assert len(found.best) == 5
    assert found.drawn.mean() == pytest.approx(0.5, abs=0.005)
    assert found.drawn.std() == pytest.approx(0.5 / np.sqrt(1002.0), rel=0.1)
    assert found.values[0].std() < 1e-3
    assert fresh_values(task, [StationaryPolicy([0, 0, 0])], 20, np.random.default_rng(0)).drawn is None
