"""How `make docs` makes a site of the README, these pages and the docstrings."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.addnodes import pending_xref

import dyninformer
from dyninformer import options

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_FRONT = "README"
_PAGES = (
    "resources",
    "notebook",
    "work",
    "fleet",
    "scale",
    "paths",
    "asyncio",
    "cli",
    "testing",
    "differences",
    "semantics",
    "operating",
    "reliability",
    "architecture",
    "reference",
)
_OURS = ("DynamicSharedInformerFactory", "Snapshot")  # of those that other modules have as well
_ABOUT = ("examples/README", "benchmarks/RESULTS", "CHANGELOG", "CONTRIBUTING", "SECURITY")

project = "dyninformer"
version = release = dyninformer.__version__
copyright = "the authors of dyninformer, under the Apache License 2.0"  # noqa: A001 - Sphinx's word
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = _FRONT
source_suffix = {".md": "markdown"}
include_patterns = ["*.md", "docs/*.md", "benchmarks/*.md", "examples/*.md"]

default_role = "py:obj"  # `Event` in a docstring is a link to it
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": "tuple, dict, str, Exception"}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True  # as the source has them
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
maximum_signature_line_length = 88
myst_heading_anchors = 4

# What `help()` has option by option is ``**options`` here, with a link to them. The modules that
# have such functions are not imported yet.
options.spelled_out = lambda _options: lambda function: function  # type: ignore[assignment]

html_theme = "furo"
html_title = f"dyninformer {version}"
html_copy_source = False
html_show_sphinx = False
templates_path: list[str] = []


def _with_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """The front page is the README as it is, with a table of contents that only the site shows."""
    if name != _FRONT:
        return
    others = sorted(
        found
        for found in app.env.found_docs
        if found.startswith("docs/") and found.removeprefix("docs/") not in _PAGES
    )
    pages = [f"docs/{page}" for page in _PAGES[:-1]] + others + ["docs/reference"]
    for caption, listed in (("Documentation", pages), ("The project", _ABOUT)):
        fence = "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *listed, "```"])
        source[0] += f"\n\n{fence}\n"


def _signature(
    _app: Sphinx, _what: str, _name: str, thing: Any, _options: Any, signature: str, returns: str
) -> tuple[str, str]:
    """A class that the page writes as ``Event()`` is one that users do not make themselves."""
    if inspect.isclass(thing) and signature == "()":
        return "", returns
    return signature, returns


def _unambiguous(_app: Sphinx, doctree: nodes.document) -> None:
    """Say which is meant where a signature has a name that several things have.

    Python's own ``object`` is no link: not to the ``object`` of an event, say.
    """
    for reference in list(doctree.findall(pending_xref)):
        if reference.get("reftype") != "class":
            continue
        if reference["reftarget"] == "object":
            reference.replace_self(nodes.Text("object"))
        elif reference["reftarget"] in _OURS:
            reference["reftarget"] = f"dyninformer.{reference['reftarget']}"


def _front_as_index(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        shutil.copy(Path(app.outdir, f"{_FRONT}.html"), Path(app.outdir, "index.html"))


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", _with_contents)
    app.connect("autodoc-process-signature", _signature)
    app.connect("doctree-read", _unambiguous)
    app.connect("build-finished", _front_as_index)
