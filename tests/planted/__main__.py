"""Plants each bug in a copy of the project, runs the tests that should object, prints who did.

`make mutants`. The working tree is never touched. ``--only TEXT ...`` plants the bugs whose names
or files have such a text; ``--tests PATH`` has other tests object than the bug names; ``--write``
puts the table into docs/reliability.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.planted.bugs import BUGS, Bug

_ROOT: Final = Path(__file__).parents[2]
_DOCUMENT: Final = _ROOT / "docs" / "reliability.md"
_NOT_COPIED: Final = shutil.ignore_patterns(
    ".*", "__pycache__", "build", "dist", "*.egg-info", "images", "benchmarks"
)
_SECONDS: Final = 240.0  # for the tests of one bug: what hangs for so long has been found
_FIRST: Final = re.compile(r"^(?:FAILED|ERROR) tests/(.+?)(?: - .*)?$", re.MULTILINE)
_BEGIN: Final = "<!-- what `make mutants WRITE=1` found -->"
_END: Final = "<!-- end -->"
_HEAD: Final = ("| bug | file | found by | seconds |", "|---|---|---|---|")

Command = list[str]


@dataclass(frozen=True)
class Outcome:
    """What became of one bug."""

    bug: Bug
    found_by: str
    """The test that failed, "" if none did."""
    seconds: float


class Copy:
    """A copy of the project, for one bug at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        shutil.copytree(_ROOT, root, ignore=_NOT_COPIED, symlinks=True)

    def run(self, tests: Sequence[str], seconds: float = _SECONDS) -> tuple[str, str]:
        """The first test that fails, "" if all pass, and what was printed."""
        command: Command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-m", "not soak and not real", "--timeout", "60", "-x"]
        environment = {
            name: value for name, value in os.environ.items() if name != "KUBEBUILDER_ASSETS"
        }
        process = subprocess.Popen(
            [*command, *(f"tests/{each}" for each in tests)],
            cwd=self._root,
            env={**environment, "PYTHONPATH": str(self._root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            return f"no end within {seconds:.0f} s", said
        if process.returncode == 0:
            return "", said
        found = _FIRST.search(said)
        if found:
            return found[1], said
        if "Timeout" in said:  # pytest-timeout ends the process, and no summary is printed
            return "a test without an end", said
        return f"pytest's exit code {process.returncode}", said

    @contextmanager
    def planted(self, bug: Bug) -> Iterator[None]:
        """With the bug in it; what Python has compiled of the file does not outlive it."""
        file = self._root / "dyninformer" / bug.file
        before = file.read_text(encoding="utf-8")
        if before.count(bug.old) != 1:
            raise LookupError(f"{bug.name}: {bug.file} has not exactly one {bug.old!r}")
        try:
            file.write_text(before.replace(bug.old, bug.new), encoding="utf-8")
            self._forget(file)
            yield
        finally:
            file.write_text(before, encoding="utf-8")
            self._forget(file)

    def _forget(self, file: Path) -> None:
        for each in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            each.unlink()
        # Examples that hypothesis keeps of one bug would find another one by chance.
        shutil.rmtree(self._root / ".hypothesis", ignore_errors=True)


def outcomes(bugs: Sequence[Bug], tests: Sequence[str], workers: int) -> Iterator[Outcome]:
    """Each bug's, in order, a few at a time."""
    copies: SimpleQueue[Copy] = SimpleQueue()

    def outcome(bug: Bug) -> Outcome:
        copy = copies.get()
        try:
            began = time.monotonic()
            with copy.planted(bug):
                found_by, _ = copy.run(tests or bug.tests)
            return Outcome(bug, found_by, time.monotonic() - began)
        finally:
            copies.put(copy)

    with (
        tempfile.TemporaryDirectory(prefix="planted-") as folder,
        ThreadPoolExecutor(workers) as pool,
    ):
        for number in range(workers):
            copies.put(Copy(Path(folder) / str(number)))
        _check_sound(copies, tests or sorted({each for bug in bugs for each in bug.tests}))
        yield from pool.map(outcome, bugs)


def _check_sound(copies: SimpleQueue[Copy], tests: Sequence[str]) -> None:
    """Without a bug nobody objects."""
    copy = copies.get()
    found_by, said = copy.run(tests, 10 * _SECONDS)
    if found_by:
        sys.exit(f"{said}\nNo bug was planted, and {found_by} fails: mend that first.")
    copies.put(copy)


def table(found: Sequence[Outcome]) -> str:
    """As Markdown."""
    return "\n".join([*_HEAD, *map(_row, found)])


def _row(each: Outcome) -> str:
    found_by = f"`{each.found_by}`" if each.found_by else "**nobody**"
    return f"| {each.bug.name} | `{each.bug.file}` | {found_by} | {each.seconds:.0f} |"


def write(found: Sequence[Outcome]) -> None:
    """Put what was found where the document has it; it keeps the rows of bugs that are not new."""
    document = _DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = document.partition(_BEGIN)
    old, _, after = rest.partition(_END)
    rows = {row.split(" | ")[0].removeprefix("| "): row for row in old.splitlines()}
    rows |= {each.bug.name: _row(each) for each in found}
    text = "\n".join([*_HEAD, *(rows[bug.name] for bug in BUGS if bug.name in rows)])
    _DOCUMENT.write_text(f"{before}{_BEGIN}\n{text}\n{_END}{after}", encoding="utf-8")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    bugs = [bug for bug in BUGS if any(each in bug.name or each in bug.file for each in given.only)]
    if not bugs:
        parser.error(f"no bug's name or file has any of {', '.join(given.only)} in it")
    found: list[Outcome] = []
    for each in outcomes(bugs, given.tests, given.workers):
        found.append(each)
        said = f"found by {each.found_by}" if each.found_by else "FOUND BY NOBODY"
        print(f"{len(found):3} {each.bug.name}: {said}, {each.seconds:.1f} s", flush=True)
    print("", table(found), "", sep="\n")
    left = [each.bug.name for each in found if not each.found_by]
    print(f"{len(found) - len(left)} of {len(found)} bugs were found.")
    if given.write:
        write(found)
    if left and not given.tests:
        sys.exit("Not found: " + "; ".join(left))


if __name__ == "__main__":
    main()
