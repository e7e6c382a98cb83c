"""The site of the documentation: `sphinx-build -W docs BUILD`. Tutorials are executed as notebooks while it builds."""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from pathlib import Path

from pygments.lexers import CSharpLexer
from sphinx.application import Sphinx
from sphinx.highlighting import lexers

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, not a wpinq that is installed

# Each tutorial runs in an empty folder of its own, with the examples at hand as in a checkout.
DESK = Path(tempfile.mkdtemp(prefix="wpinq-tutorials-"))
STARTUP = f"""
import os, sys, tempfile
os.chdir(tempfile.mkdtemp(dir={str(DESK)!r}))
os.symlink({str(ROOT / "examples")!r}, "examples")
sys.path.insert(0, {str(ROOT)!r})
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]  # the wpinq beside this Python
"""
(DESK / "profile_default" / "startup").mkdir(parents=True)
(DESK / "profile_default" / "startup" / "desk.py").write_text(STARTUP, encoding="utf-8")
os.environ["IPYTHONDIR"] = str(DESK)

project = "wpinq"
author = "the authors of wpinq"
html_title = "wpinq"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]

if found := runpy.run_path(str(ROOT / "docs" / "prose.py"))["faults"]():
    raise SystemExit("the prose of the pages is beyond its limits:\n" + "\n".join(found))

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_external_toc",
]
exclude_patterns = ["_build"]
external_toc_path = "contents.yml"

# Pages link to headings as GitHub names them, so that they read the same there and here.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300

lexers["wpq"] = CSharpLexer()  # sources, var and arrows: the text language reads like LINQ

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

default_role = "code"  # docstrings write `x` for code, as the pages do
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"  # the parameters are described in the docstrings, in words and units
autodoc_member_order = "bysource"
autoclass_content = "class"


def setup(app: Sphinx) -> None:
    """Drops the empty line that ends each doctest in the source."""
    app.connect("source-read", lambda app, page, source: source.append(source.pop().replace("\n\n```\n", "\n```\n")))
