"""`beliefbound imitate`: from demonstrations to a folder, and what is wrong with a file."""

import json

import numpy as np
import pytest

import beliefbound as bb
from support.command_line import command

pytestmark = pytest.mark.full


def corridor(path, *, n=5, steps=200, seed=0, names=True, who=1):
    """People who walk to the right end, with slips, episode by episode."""
    rng, lines = np.random.default_rng(seed), ["episode,demonstrator,state,action,next_state"]
    for episode in range(steps // 10):
        s = int(rng.integers(n))
        for _ in range(10):
            a = int(rng.random() < 0.9)
            t = min(max(s + (2 * a - 1) * (1 if rng.random() < 0.9 else -1), 0), n - 1)
            labels = (f"room <{s}>", ("left", "right")[a], f"room <{t}>") if names else (s, a, t)
            lines.append(",".join(map(str, (episode, f"p{episode % who}", *labels))))
            s = t
    path.write_text("\n".join(lines) + "\n")
    return path


def run(*words, code=0):
    done = command(*words)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


QUICK = ("--discount", 0.9, "--effort", 2, "--draws", 64, "--steps", 50_000)


def test_from_a_file_to_a_folder(tmp_path):
    demos, out = corridor(tmp_path / "demos.csv"), tmp_path / "out"
    done = run("imitate", demos, *QUICK, "--out", out)
    assert "loses at most" in done.stdout
    assert "they seem to want room <4>" in done.stdout
    found = json.loads((out / "imitation.json").read_text())
    assert [state["action"] for state in found["states"]][:4] == ["right"] * 4
    assert found["loss"]["low"] <= found["loss"]["value"] <= found["loss"]["high"]
    policy = bb.load_policy(out / "policy.json")
    models = bb.read_models(out / "posterior.npz")
    assert models.training.n_models == 64
    assert models.training.reward_signal == "unobserved"
    values = bb.evaluate(policy, models.training, discount=0.9) @ models.initial
    best = bb.optimal_values(models.training, discount=0.9).values @ models.initial
    assert values[32:].mean() == pytest.approx(found["value"]["value"])
    assert (best - values)[32:].mean() == pytest.approx(found["loss"]["value"])
    assert values[:32].mean() <= found["bracket"]["upper"] + 1e-9
    page = (out / "report.html").read_text()
    assert "room &lt;4&gt;" in page
    assert "room <4>" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    run("certify", out / "policy.csv", out / "posterior.npz", "--time", 0.2, "--out", tmp_path / "certified")
    again = run("imitate", demos, *QUICK, "--out", tmp_path / "twice", "--threads", 1)
    assert again.stdout.replace("twice", "out") == done.stdout
    for name in ("policy.csv", "imitation.json", "posterior.npz", "report.html"):
        assert (out / name).read_bytes() == (tmp_path / "twice" / name).read_bytes()


def test_several_demonstrators_features_a_map_and_transitions_by_others(tmp_path):
    demos = corridor(tmp_path / "demos.csv", names=False, who=2)
    others = corridor(tmp_path / "others.csv", names=False, steps=500, seed=9)
    done = run("imitate", demos, *QUICK, "--transitions", others, "--grid", "1x5", "--out", tmp_path / "a")
    assert "somebody new" in (tmp_path / "a" / "report.html").read_text()
    assert "200 steps" in done.stdout
    (tmp_path / "features.csv").write_text("state,right\n" + "\n".join(f"{s},{s / 4}" for s in range(5)))
    run("imitate", demos, *QUICK, "--reward", tmp_path / "features.csv", "--out", tmp_path / "b")
    found = json.loads((tmp_path / "b" / "imitation.json").read_text())
    assert found["belief"]["reward_mean"][0] == [0.0, 0.0]
    assert found["belief"]["reward_mean"][4][0] > 0.0


def test_chains_that_have_not_met_certify_nothing(tmp_path):
    demos = corridor(tmp_path / "demos.csv", n=12)
    words = ("--discount", 0.9, "--time", 0, "--draws", 64, "--steps", 100, "--out", tmp_path / "out")
    done = run("imitate", demos, *words)
    assert "that is a guess" in done.stdout
    assert "confidence" not in done.stdout
    assert "have not met" in done.stderr


def test_somebody_random_is_said_to_teach_nothing(tmp_path):
    rng = np.random.default_rng(5)
    rows = [f"{s},{a},{t}" for s, a, t in zip(*(rng.integers(0, k, 300) for k in (4, 3, 4)), strict=True)]
    (tmp_path / "demos.csv").write_text("state,action,next_state\n" + "\n".join(rows))
    done = run("imitate", tmp_path / "demos.csv", *QUICK, "--out", tmp_path / "out")
    assert "nothing can be learnt" in done.stderr
    assert "as far as anything can be said" in done.stdout
    assert "Read with care" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("state,action,reward,next_state\n0,1,0,1\n1,0,1,0\n", (), "beliefbound plan"),
        ("state,action,next_state\n0,0,1\n1,0,0\n", (), "every step takes the action"),
        ("episode,t,state,action,next_state\n0,0,0,0,1\n0,0,0,1,1\n", (), "repeated step"),
        ("state,action,next_state\n0,0,1\n1,1,0\n", ("--grid", "3x3"), "there are 2 states"),
        ("state,action,next_state\n0,0,1\n1,1,0\n", ("--grid", "wide"), "ROWSxCOLUMNS"),
        ("state,action,next_state\n0,0,1\n1,1,0\n", ("--reward", "nothing.csv"), "is not a file"),
        ("state,action,next_state\n0,0,1\n1,1,0\n", ("--chains", "5"), "an even number"),
        ("state,action,next_state\n0,0,1\n1,1,0\n", ("--initial", "7"), "there is no state '7'"),
        ("state,action,next_state\n0,0,1\n1,1,0\n", ("--prior", "flat"), "the prior is 'flat'"),
    ],
)
def test_what_is_wrong_is_said_and_an_earlier_result_stays(tmp_path, text, words, said):
    out = tmp_path / "out"
    out.mkdir()
    (out / "imitation.json").write_text("earlier")
    (tmp_path / "demos.csv").write_text(text)
    done = run("imitate", tmp_path / "demos.csv", *QUICK, *words, "--out", out, code=1)
    assert said in done.stderr
    assert (out / "imitation.json").read_text() == "earlier"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("state,x\n0,1\n", "no row for state '1'"),
        ("state,x\n0,1\n0,2\n1,1\n", "line 3: state 0 is given more than once"),
        ("state,x\n0,1\n1,a lot\n", "line 3, column 'x'"),
        ("state,x\n0,1\n9,1\n", "line 3: there is no state '9'"),
        ("state\n0\n1\n", "one for each feature"),
    ],
)
def test_features_are_checked_cell_by_cell(tmp_path, text, said):
    (tmp_path / "demos.csv").write_text("state,action,next_state\n0,0,1\n1,1,0\n")
    (tmp_path / "features.csv").write_text(text)
    words = ("--reward", tmp_path / "features.csv", "--out", tmp_path / "out")
    assert said in run("imitate", tmp_path / "demos.csv", *QUICK, *words, code=1).stderr
