"""How Sphinx builds the site; ``python docs/site/build.py`` calls it."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

import tvmgraph  # noqa: E402

project = "tvmgraph"
author = "The tvmgraph developers"
copyright = "the tvmgraph developers; Apache-2.0"
release = version = tvmgraph.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "formulas",
    "reference",
]
exclude_patterns = ["site", "examples"]
nitpicky = True
nitpick_ignore = [("py:class", "numpy.ndarray")]  # of another project
templates_path = []
html_theme = "furo"
html_title = f"tvmgraph {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # browsers let no page of files read another one
html_theme_options = {"navigation_with_keys": True, "footer_icons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = True
napoleon_use_rtype = False
napoleon_custom_sections = ["Inputs", "Outputs"]
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 88
viewcode_line_numbers = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

nb_execution_mode = "off"
nb_merge_streams = True
nb_output_stderr = "remove"
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
