"""The pages say what is so: their commands run, their reference is whole, and they build without a warning.

Their Python examples are doctests, collected with the others.
"""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import beliefbound

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
COMMANDS = [
    (page.name, command)
    for page in PAGES
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.M | re.S)
    for command in re.findall(r"^\$ beliefbound (.*)$", block, re.M)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a page's commands are run, one after the other: with the examples, as in a clone."""
    where = tmp_path_factory.mktemp("docs")
    shutil.copytree(ROOT / "examples", where / "examples")
    return where


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_a_command_of_a_page_runs(folder, page, command):
    done = beliefbound(*shlex.split(command), cwd=folder)
    assert done.returncode == 0, f"{page}: {command}\n{done.stderr}"


def test_the_reference_has_every_public_name():
    stub = (ROOT / "src" / "beliefbound" / "__init__.pyi").read_text()
    names = {name for name in re.findall(r" as (\w+)$", stub, re.M) if name != "theory"}
    listed = set(re.findall(r"^\.\. auto\w+:: beliefbound\.(\w+)$", (ROOT / "docs" / "api.md").read_text(), re.M))
    assert names == listed


def test_the_pages_build_without_a_warning_and_fetch_nothing(tmp_path):
    pytest.importorskip("sphinx")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(ROOT / "docs"), str(tmp_path)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in tmp_path.glob("*.html"):
        assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//', page.read_text()), page.name


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(notebook):
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(notebook, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells)  # outputs would go out of date
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(notebook.parent)}}).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert shown
    assert not any(output.get("name") == "stderr" for output in shown)
