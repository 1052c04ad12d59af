"""The pages say what is so: what they show works, and they build without a warning."""

import doctest
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.full
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.M | re.S)
SAID = re.compile(r"^It says[^`]*?^```text\n(.*?)^```", re.M | re.S)  # what the command before it prints


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: page.stem)
def test_commands_and_code_of_a_page_work_in_the_order_given(page, tmp_path, monkeypatch):
    """In a folder with the examples, as a clone has them."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for kind, text in BLOCK.findall(page.read_text()):
        if kind == "python":
            examples = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
            assert runner.run(examples, clear_globs=False).failed == 0, f"{page.name}:\n{text}"
            names = examples.globs
        for command in re.findall(r"^\$ (.*)$", text, re.M) if kind == "console" else ():
            name, *words = shlex.split(command)
            assert name in ("beliefbound", "python"), command
            run = ["-m", "beliefbound", *words] if name == "beliefbound" else words
            done = subprocess.run([sys.executable, *run], capture_output=True, text=True)
            assert done.returncode == 0, f"{page.name}: {command}\n{done.stderr}"
            printed += " ".join(done.stdout.split())
    for line in "\n".join(SAID.findall(page.read_text())).splitlines():
        assert_printed(line.removesuffix("…"), printed)


def assert_printed(line: str, printed: str) -> None:
    """The same words; numbers within a hundredth, as another processor may search otherwise."""
    number = r"-?\d+(?:\.\d+)?"
    between = (r"\s+".join(map(re.escape, words.split(" "))) for words in re.split(number, " ".join(line.split())))
    found = re.search(f"({number})".join(between), printed)
    assert found, f"{line}\n{printed}"
    said = [float(x) for x in re.findall(number, line)]
    assert [float(x) for x in found.groups()] == pytest.approx(said, rel=0.01), line


def test_the_pages_build_without_a_warning_and_fetch_nothing(tmp_path):
    pytest.importorskip("sphinx")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(ROOT / "docs"), str(tmp_path)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in tmp_path.glob("*.html"):
        assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//', page.read_text()), page.name


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(notebook):
    nbformat, nbclient = (pytest.importorskip(name) for name in ("nbformat", "nbclient"))

    book = nbformat.read(notebook, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells)  # outputs would go out of date
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(notebook.parent)}}).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert shown
    assert not any(output.get("name") == "stderr" for output in shown)


def test_the_page_of_the_command_line_has_every_command_and_option(monkeypatch):
    """It is made of them when the pages are built, so it is as new as they are."""
    from beliefbound.cli import app

    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import cli_page

    page = cli_page.page()
    commands = [each.name or each.callback.__name__ for each in app.registered_commands]
    assert re.findall(r"^## beliefbound (.*)$", page, re.M) == commands
    options = ("`--sensitivity`", "`--out`, `-o`", "`--absorbing`, `--terminal`", "`--discount` | required")
    assert all(f"| {option} |" in page for option in options)
    help_text = subprocess.run([sys.executable, "-m", "beliefbound", "bound", "--help"], capture_output=True, text=True)
    bound = page.split("## beliefbound bound\n")[1].split("\n## ")[0]
    assert {*re.findall(r"--[a-z-]+", help_text.stdout)} - {"--help"} <= {*re.findall(r"--[a-z-]+", bound)}


def test_notebooks_are_executed_when_the_pages_are_built(tmp_path):
    """What came of a cell stands below it."""
    pytest.importorskip("sphinx")
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A *title*")])
    book.cells.append(nbformat.v4.new_code_cell("print(6 * 7)\n'x' * 3"))
    book.cells.append(nbformat.v4.new_code_cell("import matplotlib.pyplot as plt\nplt.plot([0, 1]);"))
    nbformat.write(book, tmp_path / "index.ipynb")
    shutil.copy(ROOT / "docs" / "notebook_pages.py", tmp_path)
    (tmp_path / "conf.py").write_text(
        "import sys\nsys.path.insert(0, '.')\nextensions = ['myst_parser', 'notebook_pages']\n"
    )
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", ".", "out"]
    done = subprocess.run(build, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<em>title</em>" in page
    assert "42" in page
    assert "xxx" in page
    assert "data:image/png;base64," in page
