"""Sphinx: `make docs` builds these pages into docs/_build; nothing is fetched."""

import sys
from pathlib import Path

import beliefbound

sys.path.insert(0, str(Path(__file__).parent))  # for cli_page, notebook_pages
project = "beliefbound"
author = "the beliefbound authors"
release = version = beliefbound.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "cli_page", "notebook_pages"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"beliefbound {release}"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"
default_role = "code"
html_show_copyright = False
html_static_path, html_css_files = ["_static"], ["pages.css"]
