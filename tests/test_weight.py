"""What is loaded and what is installed: bounds of beliefs need no table library, no pictures, no environments."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from beliefbound import write_models
from support.beliefs import chain_belief

HEAVY = ("polars", "pandas", "matplotlib", "gymnasium", "jinja2", "typer")
CODE = """
import sys
import beliefbound as bb
belief = bb.FiniteBelief([[[[1.0], [1.0]]]] * 2, [[[0.0, 1.0]], [[1.0, 0.0]]], reward_signal="unobserved")
found = bb.bracket(belief, discount=0.9, effort=2, rng=1)
found.summary()
bb.certify(bb.StationaryPolicy([0]), belief, discount=0.9, upper=found.upper)
bb.bracket(bb.DirichletBelief(2, 1), discount=0.9, horizon=2, effort=2, rng=1)
print(*(name for name in {heavy!r} if name in sys.modules))
"""


def test_a_bracket_loads_nothing_that_it_does_not_need():
    done = subprocess.run([sys.executable, "-c", CODE.format(heavy=HEAVY)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


WITHOUT = """
import sys
sys.modules["polars"] = None  # as if it were not installed
sys.argv = ["beliefbound", *sys.argv[1:]]
from beliefbound.cli import main
main()
"""


def without_polars(*words):
    """A command where polars is not installed."""
    done = subprocess.run([sys.executable, "-c", WITHOUT, *map(str, words)], capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.full
def test_commands_on_models_need_no_polars_and_others_say_what_to_install(tmp_path):
    belief = chain_belief(30, 4).sample(2, 5)
    models, out = write_models(tmp_path / "models", belief, discount=0.9), tmp_path / "out"
    for words in (
        ["bound", models, "--effort", "3", "--controller", "20", "--measure", "1", "--out", out],
        ["verify", out / "bounds.json", models],
        ["certify", out / "memoryless.csv", models, "--time", "0.1", "--out", tmp_path / "c.json"],
        ["robust", models, "--effort", "1", "--out", tmp_path / "robust"],
        ["compare", models, "--horizon", "3", "--out", tmp_path / "compare.csv"],
        ["convert", models, tmp_path / "models.npz"],
        ["agents"],
    ):
        done = without_polars(*words)
        assert done.returncode == 0, (words, done.stderr)
    (tmp_path / "log.csv").write_text("state,action,reward,next_state\n0,0,0,0\n")
    for words in (["plan", tmp_path / "log.csv", "--discount", "0.9"], ["paper"], ["league", "chain"]):
        done = without_polars(*words)
        assert done.returncode == 1
        assert "polars, which is not installed; pip install 'beliefbound[logs]'" in done.stderr
    code = "import sys; sys.modules['polars'] = None; import beliefbound as bb; bb.read_log"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtraError: logs and experiments need polars" in done.stderr


def needed(requirements, found):
    """Names of distributions that come with requirements, theirs included; extras and other platforms are left out."""
    for requirement in requirements:
        if "extra ==" in requirement:
            continue
        name = re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower().replace("_", "-")
        try:
            if name not in found:
                found[name] = distribution(name)
                needed(found[name].requires or (), found)
        except PackageNotFoundError:
            assert ";" in requirement, f"{requirement} is not installed"  # for other machines
    return found


@pytest.mark.full
def test_what_pip_installs_is_light():
    """Files of all that a plain install brings, without bytecode, which adds about a fifth."""
    project = tomllib.loads(Path(__file__, "../../pyproject.toml").resolve().read_text())["project"]
    found = needed(project["dependencies"], {})
    assert {"numpy", "llvmlite", "matplotlib"} <= set(found)
    assert not {"polars", "pandas", "pyarrow", "ray"} & set(found)
    files = {file.locate() for each in found.values() for file in each.files or () if file.suffix != ".pyc"}
    size = sum(file.stat().st_size for file in files if file.is_file())
    assert 300e6 < size < 500e6
