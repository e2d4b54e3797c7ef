"""What differs between two states of an object, path by path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from dyninformer.types import Object

Pairs: TypeAlias = list[tuple[str, Any, Any]]

BOOKKEEPING: Final = (".metadata.managedFields", ".metadata.resourceVersion")
"""What every write changes."""

_ABSENT: Final = object()
_SPECIAL = re.compile(r"[^\w/-]", re.ASCII)


class Change(NamedTuple):
    """One value that differs. ``path`` is a JSONPath in kubectl's dialect; None where absent.

    >>> str(Change(".spec.replicas", 1, 2).path)
    '.spec.replicas'
    """

    path: str
    old: Any
    new: Any


Differences: TypeAlias = list[Change]


def differences(old: Object, new: Object, ignore: Iterable[str] = ()) -> Differences:
    r"""The values that differ, in the order of the old object, then what is only in the new.

    List items are compared by place. ``ignore`` names paths that are left out with all below
    them; ``[*]`` in one is any item.

    >>> differences({"spec": {"n": 1, "x": [1]}}, {"spec": {"n": 2, "x": [1, 5]}})
    [Change(path='.spec.n', old=1, new=2), Change(path='.spec.x[1]', old=None, new=5)]
    >>> old, new = {"labels": {"a.b/c": "1"}}, {"labels": {"a.b/c": "2"}}
    >>> print(differences(old, new)[0].path)
    .labels.a\.b/c
    """
    ignored = _pattern(ignore)
    found: Differences = []
    waiting: Pairs = [("", old, new)]
    while waiting:  # no recursion: objects may be nested deeper than Python's calls
        path, before, after = waiting.pop()
        if path and ignored.fullmatch(path):
            continue
        if type(before) is type(after) and isinstance(before, (dict, list)):
            waiting.extend(reversed(list(_children(path, before, after))))
        elif before is not after and not _same(before, after):
            found.append(Change(path, _shown(before), _shown(after)))
    return found


def _children(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, list):
        for at in range(max(len(before), len(after))):
            yield (
                f"{path}[{at}]",
                before[at] if at < len(before) else _ABSENT,
                after[at] if at < len(after) else _ABSENT,
            )
        return
    for key in dict.fromkeys((*before, *after)):
        name = _SPECIAL.sub(r"\\\g<0>", key)
        yield f"{path}.{name}", before.get(key, _ABSENT), after.get(key, _ABSENT)


def _same(before: Any, after: Any) -> bool:
    """Equal as JSON: 1 is 1.0, but no true."""
    return isinstance(before, bool) == isinstance(after, bool) and bool(before == after)


def _shown(value: Any) -> Any:
    return None if value is _ABSENT else value


def _pattern(ignore: Iterable[str]) -> re.Pattern[str]:
    given = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    spelled = ["." + path.strip("{}").removeprefix(".") for path in given]
    escaped = [re.escape(path).replace(r"\[\*\]", r"\[\d+\]") for path in (*BOOKKEEPING, *spelled)]
    return re.compile("|".join(escaped))
