"""Pages: words on the left and numbers on the right, code as code, and lines that act with the policy."""

import re
from html import unescape

import numpy as np
import pytest

from beliefbound import FiniteBelief, plan_log, write_models
from beliefbound.jobs.bound import BoundOptions, certify_folder
from beliefbound.jobs.from_log.writing import write_files, write_pages
from beliefbound.jobs.robust import RobustOptions, robust_folder
from beliefbound.report.batch import Row, write_batch
from beliefbound.report.page import Page, Picture, Section, Table, render
from support.oracles import random_models

STATES = ("it's low", "medium", "high")


def test_columns_of_words_are_told_from_columns_of_numbers():
    rows = [["1", "mcbrl:8", "3 – 4", "−0.5", "", "2 ms", "+1"], ["2", "7up", "", "n/a", "", "≤ 3", "-inf"]]
    assert Table(list("abcdefg"), rows).words == {1, 3, 5}
    page = render(Page("t", "l", [Section("s", tables=[Table(["who", "n"], [["a", "1"]])])]))
    assert '<td dir="auto" class="words" data-column="who">a</td>' in page
    assert '<td dir="auto" data-column="n">1</td>' in page


def test_code_between_backticks_is_code_and_still_escaped():
    page = render(Page("t", "see `a < b`", [Section("s", ["run `x --time 1` and `<script>`, not ` alone"])]))
    assert "<code>a &lt; b</code>" in page
    assert "<code>x --time 1</code> and <code>&lt;script&gt;</code>, not ` alone" in page


@pytest.fixture(params=["bound", "robust", "plan"])
def folder(request, tmp_path):
    if request.param == "plan":
        columns = {"state": ["low", "high"] * 20, "action": ["wait", "go"] * 20, "reward": [0.0, 1.0] * 20}
        columns["next_state"] = ["high", "low"] * 20
        found = plan_log(columns, discount=0.9, n_models=60, time_limit=0, measure=False)
        out = tmp_path / "out"
        out.mkdir()
        write_files(found, {}, out)
        write_pages(found, "by a test", out)
        return out
    p, r, _, _ = random_models(np.random.default_rng(3), 2, 3, 2)
    belief = FiniteBelief(p, r, initial=0, reward_signal="deterministic", states=STATES, actions=("wait", "go"))
    models = write_models(tmp_path / "models", belief, discount=0.9)
    if request.param == "bound":
        certify_folder(models, tmp_path / "out", BoundOptions(effort=20))
    else:
        robust_folder(models, tmp_path / "out", RobustOptions(effort=2))
    return tmp_path / "out"


def test_the_lines_of_a_report_act_with_the_policy(folder, monkeypatch):
    monkeypatch.chdir(folder)
    page = (folder / "report.html").read_text()
    (lines,) = re.findall(r"<pre><code>(.*?)</code></pre>", page, flags=re.DOTALL)
    done: dict[str, object] = {}
    exec(unescape(lines).split("\nact.observe")[0], done)
    assert done["action"] in ("wait", "go")


def test_paragraphs_begin_with_a_capital_and_tables_have_rows():
    """Sentences are made as parts of others; a command between backticks stays as it is."""
    lines = ["no action is proven", "`beliefbound plan` does so"]
    html = render(
        Page("T", "lead", [Section("S", lines, tables=[Table(["nothing"], []), Table(["x"], [["1"]], "rows")])])
    )
    for found in ("<p>No action is proven</p>", "<p><code>beliefbound plan</code>", "Lead", "<caption>Rows</caption>"):
        assert found in html
    assert "nothing" not in html
    assert html.count("<table") == 1


@pytest.mark.parametrize(("sure", "said"), [(1.0, "Every bracket holds with certainty"), (0.9, "with confidence 0.9")])
def test_the_page_of_many_problems_begins_with_a_sentence(tmp_path, sure, said):
    row = Row(problem="a", lower=1.0, upper=2.0, gap=0.5, confidence=sure, action="wait", proven=False)
    page = write_batch([row], 1, tmp_path / "all").read_text()
    assert re.search(rf'<p class="lead">.*{said}.*; the first action is proven optimal in 0 of 1\.</p>', page)


def test_pictures_that_must_not_shrink_say_so(tmp_path):
    (tmp_path / "x.png").write_bytes(b"")
    drawn = [Picture(tmp_path / "x.png", "a graph", wide=True), Picture(tmp_path / "x.png", "a curve")]
    page = render(Page("t", "l", [Section("s", pictures=drawn)]))
    assert page.count('<figure class="long">') == 1
    assert page.count("<figure>") == 1
