"""The Python snippets of the README and of docs/, found by file and line.

As a program it writes those that are scripts into a folder, for type checkers to read.
"""

from __future__ import annotations

import re
import shutil
import sys
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


def write_scripts(folder: Path) -> None:
    """One file for each script, named by its page and line; tests have untyped fixtures."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for each in snippets():
        if not each.is_test:
            name = f"{each.page.stem}_{each.line}.py".replace("-", "_")
            (folder / name).write_text(each.source, "utf-8")


if __name__ == "__main__":
    write_scripts(Path(sys.argv[1]))
