"""Notebooks as pages: executed when the pages are built, so that what they show is what they do now."""

import os
from typing import Any

import nbformat
from myst_parser.parsers.sphinx_ import MystParser
from nbclient import NotebookClient


class NotebookParser(MystParser):
    """A notebook, executed where it lies, as a page of text, code and what came of it."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        """Markdown of the executed notebook, parsed as other pages are."""
        book = nbformat.reads(inputstring, as_version=4)
        folder = os.path.dirname(document["source"])
        client = NotebookClient(book, timeout=600, resources={"metadata": {"path": folder}})
        client.execute(env=os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"})
        super().parse("\n\n".join(part for cell in book.cells for part in _parts(cell)), document)


def _parts(cell: Any) -> list[str]:
    if cell.cell_type == "markdown":
        return [cell.source]
    return [f"```python\n{cell.source}\n```", *(_shown(output) for output in cell.get("outputs", ()))]


def _shown(output: Any) -> str:
    """A picture or a table where there is one, else the text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f'```{{raw}} html\n<img alt="" src="data:image/png;base64,{data["image/png"].strip()}">\n```'
    if "text/html" in data:
        return f'```{{raw}} html\n<div style="overflow-x:auto">{data["text/html"]}</div>\n```'
    return f"```text\n{(data.get('text/plain') or output.get('text', '')).rstrip()}\n```"


def setup(app: Any) -> dict[str, bool]:
    """Sphinx asks for this."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
