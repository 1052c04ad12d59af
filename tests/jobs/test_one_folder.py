"""Results of different problems and of different jobs in one folder: only the last one is there."""

import numpy as np
import pytest

from beliefbound import write_models
from beliefbound.base.io.result_folder import CONTENTS, names_in, read_contents
from beliefbound.jobs.bound import BoundOptions, certify_folder
from beliefbound.jobs.from_log.command import PlanFileOptions, plan_file
from beliefbound.jobs.robust import RobustOptions, robust_folder
from beliefbound.jobs.verify import verify
from beliefbound.lab.paper import reproduce as paper
from support.beliefs import chain_belief


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    belief = chain_belief(30, 4)
    return [
        write_models(place / name, belief.sample(3, np.random.default_rng(seed)), discount=0.9)
        for seed, name in enumerate("ab")
    ]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    file = tmp_path_factory.mktemp("log") / "log.csv"
    file.write_text("\n".join(["state,action,reward,next_state", *(["a,x,1,b", "b,x,0,a", "a,y,2,a", "b,y,0,b"] * 10)]))
    return file


def planned(log, out, **options):
    plan_file(str(log), out, PlanFileOptions(discount=0.9, n_models=50, measure=False, **options))


def alone(folder, *own):
    """Whether nothing is in a folder but one result and somebody's own files."""
    return sorted(read_contents(folder).files) == [name for name in names_in(folder) if name not in own]


@pytest.mark.full
def test_bound_after_bound_leaves_nothing_of_the_first(tmp_path, models):
    """Its decision graph and what to measure were of other models."""
    out = tmp_path / "out"
    certify_folder(models[0], out, BoundOptions(effort=2, controller=8, measure=1))
    assert {"controller.json", "controller.npz", "information.json", "information.png"} <= {*names_in(out)}
    (out / "notes.txt").write_text("mine")
    certify_folder(models[1], out, BoundOptions(effort=2))
    assert alone(out, "notes.txt")
    assert not {name for name in names_in(out) if name.startswith(("controller", "information"))}
    assert (out / "notes.txt").read_text() == "mine"
    assert verify(out / "bounds.json").code == 0


@pytest.mark.full
def test_a_file_of_somebody_else_stays_and_is_told(tmp_path, models):
    """Though it has the name of one that a certificate may have."""
    out = tmp_path / "out"
    certify_folder(models[1], out, BoundOptions(effort=2))
    (out / "controller.json").write_text("{}")
    certify_folder(models[0], out, BoundOptions(effort=2))
    assert (out / "controller.json").read_text() == "{}"
    assert verify(out / "bounds.json").different == ("controller.json is no part of this certificate",)


@pytest.mark.full
def test_plan_after_plan_leaves_nothing_of_the_first(tmp_path, log):
    out = tmp_path / "out"
    planned(log, out, effort=2, objective="cvar:0.5")
    assert {"robust.json", "robust.policy.npz", "figures/bracket.png"} <= {*names_in(out)}
    (out / "figures" / "mine.png").write_text("mine")
    planned(log, out, time_limit=0)
    assert alone(out, "figures/mine.png")
    assert not {"robust.json", "robust.policy.npz", "figures/bracket.png"} & {*names_in(out)}
    assert (out / "figures" / "mine.png").read_text() == "mine"


@pytest.mark.full
def test_other_jobs_take_the_place_of_each_other(tmp_path, models, log):
    out = tmp_path / "out"
    certify_folder(models[0], out, BoundOptions(effort=2, controller=8))
    planned(log, out, time_limit=0)
    assert alone(out)
    assert not (out / "bounds.json").exists()
    robust_folder(models[0], out, RobustOptions(effort=1))
    assert alone(out)
    assert not (out / "certificate.json").exists()
    assert verify(out / "robust.json").code == 0
    certify_folder(models[0], out, BoundOptions(effort=2))
    assert alone(out)
    assert not (out / "robust.json").exists()


@pytest.mark.full
def test_the_paper_clears_a_result_when_it_has_its_own_and_keeps_its_runs(tmp_path, models, monkeypatch):
    out, drawn = tmp_path / "out", []

    def figure1(folder, **named):
        drawn.append((out / "bounds.json").exists())
        for end in ("csv", "png", "svg"):
            (folder / f"figure1.{end}").write_text("<svg/>")

    monkeypatch.setattr(paper, "figure1", figure1)
    certify_folder(models[0], out, BoundOptions(effort=2))
    paper.reproduce(out, runs=4, samples=(1, 8))
    assert drawn == [True]  # until the new result is complete, the old one is there
    assert not (out / "bounds.json").exists()
    assert {"table1.csv", "figure2a.png", "runs.parquet", "report.html"} <= set(read_contents(out).files)
    parts = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")}
    assert parts
    paper.reproduce(out, runs=4, samples=(1, 8))
    assert {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")} == parts

    def broken(folder, **named):
        raise KeyboardInterrupt

    before = {name: (out / name).read_bytes() for name in [*read_contents(out).files, CONTENTS]}
    monkeypatch.setattr(paper, "figure1", broken)
    with pytest.raises(KeyboardInterrupt):
        paper.reproduce(out, runs=4, samples=(1, 8))
    assert {name: (out / name).read_bytes() for name in before} == before
    certify_folder(models[0], out, BoundOptions(effort=2))
    assert not (out / "table1.csv").exists()
    assert {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")} == parts
