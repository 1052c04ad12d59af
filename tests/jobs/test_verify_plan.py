"""`beliefbound verify` of a plan: the log is read again, everything is found again and every file compared."""

import json
from functools import partial

import numpy as np
import pytest

from beliefbound.base.errors import FileError
from beliefbound.base.io.result_folder import CONTENTS, names_in
from beliefbound.jobs import verify
from beliefbound.jobs.from_log import command as plan
from beliefbound.jobs.from_log.command import PlanFileOptions, plan_file
from beliefbound.jobs.from_log.plan import Taken, plan_of
from support.command_line import command
from support.tampering import code, copied, is_told, relisted, tampered_objects

pytestmark = pytest.mark.full
KNOBS = {"discount": 0.9, "effort": 8, "n_models": 100, "seed": 3}


def write_log(path, seed=1):
    """A clinic: three states, two actions, episodes that end where somebody is well."""
    rng, rows = np.random.default_rng(seed), ["episode,t,state,action,reward,next_state,terminated"]
    for episode in range(40):
        state = "ill"
        for t in range(12):
            action = rng.choice(["wait", "treat, or not"])
            better = rng.random() < (0.2 if action == "wait" else 0.5)
            new = {"ill": "weak", "weak": "well"}[state] if better else "ill"
            reward = {"ill": -2.0, "weak": -1.0}[state] - (action != "wait")
            rows.append(f'{episode},{t},{state},"{action}",{reward},{new},{str(new == "well").lower()}')
            if new == "well":
                break
            state = new
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """A log and its plan, with a robust bracket."""
    place = tmp_path_factory.mktemp("plan")
    log = write_log(place / "log.csv")
    found, _ = plan_file(str(log), place / "out", PlanFileOptions(**KNOBS, objective="cvar:0.2"))
    return found, log, place / "out" / "certificate.json"


@pytest.fixture
def remembered(monkeypatch, planned):
    """What was planned once, with the same options, is not planned again; nor is its page drawn again."""
    known = {}

    def once(log, options, *, taken=None, **told):
        key = repr((vars(options), taken, log.source))
        known[key] = known[key] if key in known else plan_of(log, options, taken=taken, **told)
        return known[key]

    def drawn(found, words, place, write=plan.write_pages):
        key, before = (words, repr(found.bracket and found.bracket.trace)), {*names_in(place)}
        if key not in known:
            write(found, words, place)
            known[key] = {name: (place / name).read_bytes() for name in {*names_in(place)} - before}
        for name, data in known[key].items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(data)

    monkeypatch.setattr(plan, "plan_of", once)
    monkeypatch.setattr(plan, "write_pages", drawn)


def test_a_plan_is_found_again_bit_for_bit(planned):
    made, log, file = planned
    for threads in (1, 2):
        result = verify.verify(file, threads=threads)
        assert result.words[-1] == f"identical: all {len(names_in(file.parent)) + 1} files, bit for bit"
        assert (result.code, result.differs) == (0, ())
        assert result.found.policy == made.policy
    written = json.loads(file.read_text())["job"]
    assert written["log"] == str(log)
    assert (written["effort"], written["rounds"]) == (made.bracket.effort, made.robust.bracket.rounds)
    done = command("verify", file, log)
    assert (done.returncode, done.stdout.splitlines()[-1][:9]) == (0, "identical"), done.stderr
    assert f"beliefbound verify certificate.json {log}" in (file.parent / "report.html").read_text()


@pytest.mark.parametrize("given", [{"time_limit": 0.2}, {"time_limit": 0.0, "measure": False}, {"horizon": 4}])
def test_also_where_the_clock_ended_the_search_and_where_there_was_none(planned, tmp_path, given):
    _, log, _ = planned
    knobs = KNOBS | {"effort": None} | given if "time_limit" in given else KNOBS | given
    options = PlanFileOptions(**knobs, initial=["ill"], columns=["reward=reward"], prior="0.5")
    found, _ = plan_file(str(log), tmp_path / "out", options)
    assert (found.bracket is None) == (given.get("time_limit") == 0.0)
    result = verify.verify(tmp_path / "out" / "certificate.json", log)
    assert result.code == 0, result.words


def test_no_entry_of_a_plan_can_be_changed(planned, remembered, tmp_path):
    """Neither alone nor, but for what nothing can find again, together with the list of files."""
    _, log, file = planned
    copy = copied(file, tmp_path / "copy")
    assert code(copy, log) == 0
    content = json.loads(file.read_text())
    options = {("job", "options", name) for name in content["job"]["options"]}
    slow = {("job", "effort"), ("job", "rounds")} | options  # each of these is a plan of its own: some of them below
    listing, count = (file.parent / CONTENTS).read_text(), 0
    for what, path, other in list(tampered_objects(content))[::7]:
        if path in slow:
            continue
        copy.write_text(json.dumps(other, indent=2, ensure_ascii=False) + "\n")
        (copy.parent / CONTENTS).write_text(listing)
        seconds = path[:2] == ("bracket", "trace") and path[3:] == (0,)
        if not (is_told(path) or seconds or path == ("job", "log")):
            relisted(copy)
        assert code(copy, log) != 0, what
        count += 1
    assert count > 150


def test_other_options_and_other_files_are_noticed(planned, remembered, tmp_path):
    _, log, file = planned
    for name, value in {
        "discount": 0.91,
        "seed": 4,
        "objective": "cvar:0.3",
        "prior": "jeffreys",
        "initial": ["weak"],
        "columns": 5,
        "known_rewards": 3,
        "rewards": "no such",
        "n_models": "many",
    }.items():
        copy = copied(file, tmp_path / "copy")
        content = json.loads(file.read_text())
        content["job"]["options"][name] = value
        copy.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        relisted(copy)
        assert code(copy, log) == 1, name
    for name in [*names_in(file.parent), CONTENTS]:
        copy = copied(file, tmp_path / "copy")
        (copy.parent / name).unlink()
        assert code(copy, log) == (1 if name == "certificate.json" else 3), name
        (copy.parent / name).write_bytes(b"x")
        relisted(copy) if name != CONTENTS else None
        assert code(copy, log) == 1, name


def test_another_log_an_interrupted_plan_and_a_saved_one_are_refused(planned, tmp_path):
    made, log, file = planned
    with pytest.raises(FileError, match="is not the log of"):
        verify.verify(file, write_log(tmp_path / "log.csv", seed=2))
    with pytest.raises(FileError, match="is not the log of"):
        verify.verify(file, tmp_path / "none.csv")
    content = json.loads(file.read_text())
    changed = partial(json.dumps, ensure_ascii=False)
    (tmp_path / "early.json").write_text(changed(content | {"interrupted": True}))
    with pytest.raises(FileError, match="plan once more"):
        verify.verify(tmp_path / "early.json", log)
    content["job"]["log"] = "nowhere.csv"
    (tmp_path / "lost.json").write_text(changed(content))
    with pytest.raises(FileError, match="give the log"):
        verify.verify(tmp_path / "lost.json")
    made.save(tmp_path / "saved.json")
    with pytest.raises(FileError, match="no certificate that can be made again by this command"):
        verify.verify(tmp_path / "saved.json", log)


def test_how_far_searches_went_stands_in_place_of_their_limits(planned):
    """A plan by `taken` is the plan that took so much, whatever the limits say."""
    made, _, _ = planned
    options = PlanFileOptions(**KNOBS | {"effort": 1}, objective="cvar:0.2")
    again = plan_of(made.log, options.of_log(made.log), taken=Taken(made.bracket.effort, made.robust.bracket.rounds))
    assert again.upper == made.upper
    assert again.robust.bracket == made.robust.bracket
