"""The site: `make docs` builds it into build/site, without network and without a warning.

Pages are Markdown by the folders of docs/; the interface for Python comes from the docstrings.
Nothing that the pages need lies on another machine: Furo uses the fonts of the system, and there
are no formulas that a script would have to set.
"""

import domkl

project = "domkl"
author = "The domkl developers"
copyright = author
version = release = domkl.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
nitpicky = False

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
# Pygments cannot read output between commands; one word may be the name of several attributes
suppress_warnings = ["misc.highlighting_failure", "ref.python"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_custom_sections = ["Deviations", "Rules"]
napoleon_use_rtype = False
napoleon_use_ivar = True
default_role = "code"
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"domkl {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None
html_show_search_summary = False  # a browser does not let a page of a folder read its neighbors
html_theme_options = {"navigation_with_keys": True}
