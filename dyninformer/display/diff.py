"""What an update changed, as lines of a diff: path by path, old above new."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from dyninformer.delivery.changes import Change
from dyninformer.display.text import visible

Values: TypeAlias = list[tuple[str, Any]]

REMOVED: Final = "-"
ADDED: Final = "+"
_CONTEXT: Final = " "

_FILTER: Final = re.compile(r"\[\?\((@[^]]*)\)\]")
_FIELD: Final = re.compile(r'@\.(\w+)==(-?\d+|"[^"]*")')
_ESCAPE: Final = re.compile(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")
_BARE: Final = re.compile(r"[\w./:-]+")

_SHOWN = 500  # characters of one value
_COMPARED = 50_000  # characters of a text that is compared line by line: difflib is quadratic


class DiffLine(NamedTuple):
    """One line: its sign, and its text."""

    sign: str
    text: str

    def __str__(self) -> str:
        return f"{self.sign} {self.text}"


def short_path(path: str) -> str:
    r"""A change's path as people read it, on one line: an element by its key, without a filter.

    >>> short_path('.status.conditions[?(@.type=="Ready")].status')
    '.status.conditions[type=Ready].status'
    >>> short_path('$.spec.ports[?(@.port==53 && @.protocol=="UDP")].nodePort')
    '.spec.ports[port=53,protocol=UDP].nodePort'
    """
    short = visible(_FILTER.sub(_short_filter, path))
    return short.removeprefix("$") if short.startswith("$.") else short


def _short_filter(found: re.Match[str]) -> str:
    tests = [_FIELD.fullmatch(each) for each in found[1].split(" && ")]
    if None in tests:
        return found[0]
    return f"[{','.join(f'{each[1]}={_bare(each[2])}' for each in tests if each)}]"


def _bare(literal: str) -> str:
    """A number, a name without quotes, or any other text in them, without a filter's escapes."""
    if not literal.startswith('"'):
        return literal
    text = _ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)), literal[1:-1])
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def diff_lines(changes: Iterable[Change]) -> Iterator[DiffLine]:
    r"""The lines of a diff, safe to show.

    Objects and lists that come or go whole are shown value by value, and texts of several
    lines line by line.

    >>> for line in diff_lines([Change(".spec.n", 1, 2), Change(".status", None, {"a": [True]})]):
    ...     print(line)
    - .spec.n: 1
    + .spec.n: 2
    + .status.a[0]: true
    """
    for jsonpath, old, new in changes:
        path = short_path(jsonpath)
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
    yield DiffLine(_CONTEXT, f"{path}:")
    before, after = old.split("\n"), new.split("\n")
    lines = difflib.unified_diff(before, after, n=1, lineterm="")
    for line in itertools.islice(lines, 2, None):  # after the two that would name files
        if not line.startswith("@@"):
            yield DiffLine(line[0], f"    {visible(line[1:])}")


def _leaves(path: str, value: Any) -> Values:
    """The values in a value, with their paths; an empty object or list is one itself."""
    leaves: Values = []
    waiting: Values = [(path, value)]
    while waiting:  # no recursion: objects may be nested deeper than Python's calls
        at, each = waiting.pop()
        if isinstance(each, dict) and each:
            waiting.extend((f"{at}.{key}", below) for key, below in reversed(each.items()))
        elif isinstance(each, list) and each:
            numbered = reversed(list(enumerate(each)))
            waiting.extend((f"{at}[{index}]", below) for index, below in numbered)
        else:
            leaves.append((at, each))
    return leaves


def _shown(value: Any) -> str:
    text = visible(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
