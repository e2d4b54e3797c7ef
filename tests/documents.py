"""The Python snippets of the README and of docs/, found by file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")))
_FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """One fenced block of Python."""

    page: Path
    line: int
    source: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_test(self) -> bool:
        """It defines tests, so it is pytest's to run."""
        return "def test_" in self.source

    def code(self) -> object:
        """The block compiled so that a traceback shows the page's own line."""
        return compile("\n" * self.line + self.source, str(self.page), "exec")


def snippets() -> Iterator[Snippet]:
    """Every Python block of every page, in reading order."""
    for page in PAGES:
        text = page.read_text("utf-8")
        for found in _FENCE.finditer(text):
            yield Snippet(page, text.count("\n", 0, found.start()) + 1, found[1])
