"""The seam between what is shown and the display."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dyninformer.shown import Shown
from tests.frames.objects import certificate, holding


def test_who_never_looks_imports_no_display() -> None:
    """A factory that works, reads and makes rows does without, and without what is optional."""
    script = (
        "import sys\n"
        "from tests.frames.objects import certificate, holding\n"
        "lister = holding(certificate('a'))\n"
        "lister.list(), lister.select(), repr(lister)\n"
        "heavy = ('dyninformer.display.notebook', 'rich', 'IPython', 'pandas', 'pyarrow',\n"
        "    'nanoarrow', 'duckdb', 'polars', 'kubernetes')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "lister._repr_mimebundle_()\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.splitlines() == ["[]", "['dyninformer.display.notebook']"]


def test_what_has_no_page_of_its_own_shows_its_repr() -> None:
    """Escaped, as all else."""

    class Thing(Shown):
        def __repr__(self) -> str:
            return "<Thing>"

    bundle = Thing()._repr_mimebundle_()
    assert bundle["text/plain"] == "<Thing>"
    assert "<b>&lt;Thing&gt;</b>" in bundle["text/html"]


def test_ipython_takes_both() -> None:
    """HTML for notebooks, text for terminals."""
    formatters = pytest.importorskip("IPython.core.formatters")
    formatter = formatters.DisplayFormatter()
    formatter.active_types = formatter.format_types
    found, _ = formatter.format(holding(certificate("shop")))
    assert found["text/plain"].startswith("Lister of certificates.v1.cert-manager.io\nlive · ")
    assert found["text/html"].startswith("<style>")
