"""The site of `make docs`: pages in Markdown, a gallery that runs, a reference and results that are generated."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

from generators.chart import draw_quality_for_time  # noqa: E402
from generators.command_line import write_command_line  # noqa: E402
from generators.records import write_records  # noqa: E402

from heatprior import __version__  # noqa: E402

project = "heatprior"
author = copyright = "The heatprior developers"  # noqa: A001 (sphinx calls it so)
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
exclude_patterns = ["generators", "templates", "generated/gallery/*.ipynb"]
templates_path = ["templates"]
default_role = "code"  # docstrings put names in single backticks
highlight_language = "none"  # listings without a language are commands
smartquotes = False  # the quotes of docstrings are Python's

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"/\d\d_",
    "subsection_order": ["../examples/gallery/pictures", "../examples/gallery/mathematics"],
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (480, 280),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 0,
    "write_computation_times": False,
    "plot_gallery": "True",
    "backreferences_dir": None,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "heatprior"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "start": []}
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 8,
}


def setup(app: Sphinx) -> None:
    """Write the pages that come from elsewhere before sphinx looks for pages."""
    generated = Path(app.srcdir) / "generated"
    generated.mkdir(exist_ok=True)
    write_command_line(generated / "command-line.md")
    write_records(DOCS.parent, generated / "records")
    draw_quality_for_time(DOCS.parent, generated / "quality-for-time.svg")
