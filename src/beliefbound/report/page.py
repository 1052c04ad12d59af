"""One HTML file that holds everything: text, tables and figures, nothing to fetch.

All text is escaped by the template engine; figures are embedded as data.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from beliefbound.base.io.atomic import write_text

_CODE = re.compile(r"`([^`\n]+)`")
REPORT = "report.html"  # of every folder that has one


@dataclass(frozen=True)
class Table:
    """Rows of already formatted cells under a header; `highlight` marks rows by index. Columns of words stand on the
    left, columns of numbers on the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    highlight: frozenset[int] = frozenset()

    @property
    def words(self) -> frozenset[int]:
        """Columns that hold words: a cell that begins with no number."""
        columns = range(len(self.header))
        return frozenset(
            k
            for k in columns
            if any(row[k] and not re.match(r"[-+−–≤≥]?\d|[-+]?(inf|nan)\b", row[k]) for row in self.rows)
        )


@dataclass(frozen=True)
class Picture:
    """A figure already saved as PNG or SVG, with the sentence that says what it shows."""

    path: Path
    caption: str
    wide: bool = False  # never smaller than it can be read: a small screen moves along it

    @property
    def data(self) -> str:
        """The file as a data address."""
        kind = "svg+xml" if self.path.suffix == ".svg" else "png"
        return f"data:image/{kind};base64,{base64.b64encode(self.path.read_bytes()).decode()}"


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs, in which `code` stands between backticks and which begin with a capital letter, lines to
    copy, tables and pictures."""

    heading: str
    text: Sequence[str] = ()
    code: Sequence[str] = field(default=(), kw_only=True)
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()


@dataclass(frozen=True)
class Page:
    """A report: title, lead and sections; `facts` are small label–value pairs under the title."""

    title: str
    lead: str
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = field(default=())


def render(page: Page) -> str:
    """The page as HTML text.

    >>> html = render(Page("A < B", "lead", [Section("Results", tables=[Table(["x"], [["<script>"]])])]))
    >>> "A &lt; B" in html and "<script>" not in html
    True
    """
    from importlib.resources import files

    from jinja2 import Environment
    from markupsafe import Markup, escape

    template = files("beliefbound.report").joinpath("page.html").read_text(encoding="utf-8")
    engine = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)

    def prose(text: str) -> Markup:
        return Markup(_CODE.sub(r"<code>\1</code>", str(escape(f"{text[:1].upper()}{text[1:]}"))))

    engine.filters["prose"] = prose
    return engine.from_string(template).render(page=page)


def write_page(page: Page, path: Path) -> Path:
    """Write the page aside and rename it."""
    write_text(path, render(page))
    return path
