"""What an update changed, as lines of a diff: path by path, old above new."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from dyninformer.delivery.changes import Change
from dyninformer.display.text import visible
from dyninformer.jsonpath.writing import one_further

Values: TypeAlias = list[tuple[str, Any]]

REMOVED: Final = "-"
ADDED: Final = "+"
_CONTEXT: Final = " "

_SHOWN = 500  # characters of one value
_COMPARED = 50_000  # characters of a text that is compared line by line: difflib is quadratic


class DiffLine(NamedTuple):
    """One line: its sign, and its text."""

    sign: str
    text: str

    def __str__(self) -> str:
        return f"{self.sign} {self.text}"


def diff_lines(changes: Iterable[Change]) -> Iterator[DiffLine]:
    r"""The lines of a diff, safe to show.

    Each path is a JSONPath that finds its value. Objects and lists that come or go whole are
    shown value by value, and texts of several lines line by line.

    >>> for line in diff_lines([Change(".spec.n", 1, 2), Change(".status", None, {"a": [True]})]):
    ...     print(line)
    - .spec.n: 1
    + .spec.n: 2
    + .status.a[0]: true
    """
    for path, old, new in changes:
        if _are_texts(old, new):
            yield from _by_line(path, old, new)
            continue
        for sign, value in ((REMOVED, old), (ADDED, new)):
            if value is not None or (old is None and new is None):
                # Two lists are the order of elements, by their keys.
                whole = isinstance(old, list) and isinstance(new, list)
                for below, leaf in [(path, value)] if whole else _leaves(path, value):
                    yield DiffLine(sign, f"{visible(below)}: {_shown(leaf)}")


def _are_texts(old: Any, new: Any) -> bool:
    if not (isinstance(old, str) and isinstance(new, str)):
        return False
    return "\n" in old + new and len(old) + len(new) <= _COMPARED


def _by_line(path: str, old: str, new: str) -> Iterator[DiffLine]:
    yield DiffLine(_CONTEXT, f"{visible(path)}:")
    before, after = old.split("\n"), new.split("\n")
    lines = difflib.unified_diff(before, after, n=1, lineterm="")
    for line in itertools.islice(lines, 2, None):  # after the two that would name files
        if not line.startswith("@@"):
            yield DiffLine(line[0], f"    {visible(line[1:])}")


def _leaves(path: str, value: Any) -> Values:
    """Return the values in a value with their paths; an empty object or list is one itself."""
    leaves: Values = []
    waiting: Values = [(path, value)]
    while waiting:  # no recursion: objects may be nested deeper than Python's calls
        at, each = waiting.pop()
        if isinstance(each, dict) and each:
            waiting.extend((one_further(at, key), below) for key, below in reversed(each.items()))
        elif isinstance(each, list) and each:
            numbered = reversed(list(enumerate(each)))
            waiting.extend((one_further(at, index), below) for index, below in numbered)
        else:
            leaves.append((at, each))
    return leaves


def _shown(value: Any) -> str:
    text = visible(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
