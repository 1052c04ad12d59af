"""Plug-ins that go wrong: one line each, the others play on, exit code 1; and editions cover the files they import."""

import json
import sys
from dataclasses import replace

import polars as pl
import pytest
from typer.testing import CliRunner

from beliefbound.base import plugins
from beliefbound.base.errors import BeliefboundError, PluginError
from beliefbound.base.io.imports import own_files
from beliefbound.base.plugins import load_plugin
from beliefbound.cli import app
from beliefbound.lab.engine.priors import PRIORS
from beliefbound.lab.engine.registry import AGENTS
from beliefbound.lab.envs.registry import ENVIRONMENTS
from beliefbound.lab.experiments import run
from beliefbound.lab.experiments.spec import Spec
from soak.plugins import Broken, faults
from support.command_line import beliefbound

FAULTS = faults()


@pytest.fixture
def forgotten():
    """What a plug-in registers in this process is forgotten afterwards."""
    modules, loaded = set(sys.modules), dict(plugins._PLUGINS)
    yield
    for registry in (AGENTS, ENVIRONMENTS, PRIORS):
        for name, family in list(registry._families.items()):
            if family.build.__module__ not in modules and family.foreign:
                del registry._families[name]
    plugins._PLUGINS.clear()
    plugins._PLUGINS.update(loaded)
    for name in set(sys.modules) - modules:
        if name.startswith(("plugin_", "helper_of_")):
            del sys.modules[name]


def spec_of(path, broken: Broken):
    agents = list(dict.fromkeys([broken.agent, "random"]))
    environments = list(dict.fromkeys([broken.environment, "double-loop"]))
    path.write_text(json.dumps({"agents": agents, "environments": environments, "runs": 3, "steps": 40}))
    return path


def test_there_are_a_hundred():
    assert len(FAULTS) >= 100
    assert len({broken.name for broken in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(
            broken, id=broken.name, marks=[pytest.mark.full] if k % 25 else []
        )  # four of them in the first tier
        for k, broken in enumerate(FAULTS)
    ],
)
def test_no_fault_of_a_plugin_is_a_traceback(broken, tmp_path, forgotten):
    """In this process, as the command line runs: an error of ours, or exit code 1 after the others have played."""
    plugin = tmp_path / f"{broken.name.replace('-', '_')}.py"
    plugin.write_text(broken.text, encoding="utf-8", errors="surrogatepass")
    spec, out = spec_of(tmp_path / "spec.json", broken), tmp_path / "out"
    done = CliRunner().invoke(app, ["run", str(spec), "--out", str(out), "--plugin", str(plugin), "--threads", "1"])
    assert done.exit_code == 1
    if isinstance(done.exception, SystemExit):  # it went on, and says so at the end
        assert "Traceback" not in done.output
        lines = [line for line in done.output.splitlines() if line.startswith("failed: ")]
        assert lines
        assert all(len(line) < 500 for line in lines)
        assert "Traceback" in (out / "failures.txt").read_text()
        played = pl.read_parquet(out / "runs.parquet")
        assert ("random", "double-loop") in set(played.select("agent", "environment").iter_rows())
    else:
        assert isinstance(done.exception, BeliefboundError), repr(done.exception)
        assert "\n" not in str(done.exception)


@pytest.mark.full
def test_the_command_line_itself_prints_one_line(tmp_path):
    """In a process of its own, for a few: nothing that is printed looks like a traceback."""
    for name in ("agent-act-value", "environment-key", "import-exit"):
        broken = next(each for each in FAULTS if each.name == name)
        plugin = tmp_path / f"{name.replace('-', '_')}.py"
        plugin.write_text(broken.text)
        spec = spec_of(tmp_path / f"{name}.json", broken)
        done = beliefbound("run", spec, "--out", tmp_path / name, "--plugin", plugin)
        assert done.returncode == 1
        assert "Traceback" not in done.stdout + done.stderr
        assert len([line for line in done.stderr.splitlines() if line.startswith(("failed: ", "error: "))]) <= 4


def test_a_league_goes_on_without_who_fails(tmp_path, forgotten):
    plugin = tmp_path / "late.py"
    plugin.write_text(next(each.text for each in FAULTS if each.name == "agent-act-value"))
    words = ["league", "double-loop", "--out", tmp_path / "out", "--plugin", plugin, "-a", "broken", "-a", "random"]
    words += ["--runs", "2", "--steps", "30"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 1
    assert "failed: broken: ValueError: no such thing (late.py, line 15)" in done.output
    table = pl.read_csv(tmp_path / "out" / "league.csv")
    assert set(table["agent"]) == {"random", "mcbrl:n=16"}
    assert "Traceback" in (tmp_path / "out" / "failures.txt").read_text()
    assert "Who failed" in (tmp_path / "out" / "report.html").read_text()


def test_who_fails_after_its_time_was_taken_is_marked_too(tmp_path, forgotten):
    plugin = tmp_path / "later.py"
    text = next(each.text for each in FAULTS if each.name == "agent-act-value")
    plugin.write_text(text.replace("raise ValueError('no such thing')", "open('there').close()\n        return 0"))
    load_plugin(plugin)
    with pytest.raises(PluginError, match=r"broken on double-loop: FileNotFoundError: .* \(later\.py, line 15\)"):
        run(Spec(agents=("broken",), environments=("double-loop",), runs=2, steps=5), tmp_path / "out")


@pytest.mark.full
def test_what_failed_is_played_once_it_is_mended(tmp_path, forgotten):
    """The finished cells of a run that failed are kept, and the mended plug-in is another experiment."""
    plugin, out = tmp_path / "mended.py", tmp_path / "out"
    broken = next(each for each in FAULTS if each.name == "agent-act-value")
    plugin.write_text(broken.text)
    spec = spec_of(tmp_path / "spec.json", broken)
    assert beliefbound("run", spec, "--out", out, "--plugin", plugin).returncode == 1
    plugin.write_text(broken.text.replace("raise ValueError('no such thing')", "return 0"))
    done = beliefbound("run", spec, "--out", tmp_path / "again", "--plugin", plugin)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "again" / "failures.txt").exists()


HELPED = """
import sys

sys.path.insert(0, {folder!r})
from helper_of_it import action
from beliefbound.lab.agents import agent


@agent("helped", summary="acts as a file beside it says")
class Helped:
    def __init__(self, setting): ...
    def reset(self, seed): ...
    def act(self, state): return action(state)
    def observe(self, state, action, reward, next_state): ...
"""


@pytest.mark.full
def test_an_edited_helper_is_another_edition(tmp_path):
    """What the plug-in imports decides what it does: edited, old runs are not taken for new ones."""
    plugin, helper = tmp_path / "helped.py", tmp_path / "helper_of_it.py"
    plugin.write_text(HELPED.format(folder=str(tmp_path)))
    helper.write_text("import deeper_of_it\n\n\ndef action(state):\n    return deeper_of_it.ACTION\n")
    deeper = tmp_path / "deeper_of_it.py"
    deeper.write_text("ACTION = 0\n")
    spec = tmp_path / "spec.toml"
    spec.write_text('agents = ["helped"]\nenvironments = ["chain"]\nruns = 2\nsteps = 50\n')
    words = ("run", spec, "--out", tmp_path / "out", "--plugin", plugin)
    assert beliefbound(*words).returncode == 0
    first = pl.read_parquet(tmp_path / "out" / "runs.parquet")["total"].to_list()
    assert beliefbound(*words).returncode == 0  # nothing has changed: it is the same experiment
    deeper.write_text("ACTION = 1  # edited\n")
    assert beliefbound(*words).returncode == 0
    again = pl.read_parquet(tmp_path / "out" / "runs.parquet")["total"].to_list()
    assert again != first
    deeper.write_text("ACTION = 0\n")
    assert beliefbound(*words).returncode == 0  # as it was: those runs are still there
    assert pl.read_parquet(tmp_path / "out" / "runs.parquet")["total"].to_list() == first


def test_the_files_of_a_module_are_its_own_and_what_it_imports(tmp_path, monkeypatch, forgotten):
    package = tmp_path / "helper_of_package"
    package.mkdir()
    (package / "__init__.py").write_text("from . import inner\n")
    (package / "inner.py").write_text("import json\nimport numpy\n")
    (tmp_path / "helper_of_late.py").write_text("X = 1\n")
    plugin = tmp_path / "whole.py"
    plugin.write_text("import helper_of_package\n\n\ndef later():\n    import helper_of_late\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    load_plugin(plugin)
    found = own_files("plugin_whole")
    assert {file.name for file in found.values()} == {"whole.py", "__init__.py", "inner.py", "helper_of_late.py"}
    assert next(iter(found)) == "plugin_whole"
    assert own_files("no_such_module") == {}
    assert AGENTS.find("mcbrl").edition == ""


def test_an_edited_prior_is_another_experiment(tmp_path, forgotten):
    plugin = tmp_path / "priors.py"
    plugin.write_text(
        "from beliefbound.lab.agents import prior\nfrom beliefbound import DirichletBelief\n"
        '@prior("own", summary="flat")\n'
        "def own(environment): return DirichletBelief(environment.n_states, environment.n_actions)\n"
    )
    load_plugin(plugin)
    spec = Spec(agents=("exploit:prior=own",), environments=("chain",), runs=1, steps=5)
    before = spec.digest()
    family = PRIORS.find("own")
    edited = replace(family)
    plugin.write_text(plugin.read_text() + "# edited\n")
    PRIORS._families["own"] = edited
    assert spec.digest() != before
