"""What differs between two states of an object, path by path; elements of lists by what they are.

An element that came to the head of a list is one change, not a shift of all the others. What an
element is, its keys say: those that the schema declares, those of Kubernetes' own types, or the
first field that tells all elements apart, as ``name`` and ``type`` do. Elements without any are
compared by the longest common subsequence.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from dyninformer.jsonpath.patterns import Patterns
from dyninformer.jsonpath.writing import Way, can_be_compared
from dyninformer.types import ListKeys, Object

Names: TypeAlias = tuple[str, ...]
Values: TypeAlias = tuple[str | int, ...]
Elements: TypeAlias = list[Any]
Places: TypeAlias = list[tuple[int, int]]
Declared: TypeAlias = Patterns[Sequence[str]] | None

BOOKKEEPING: Final = (".metadata.managedFields", ".metadata.resourceVersion")
"""What every write changes."""

_ABSENT: Final = object()
_ELEMENT: Final = re.escape("[*]")

# Merge keys of Kubernetes' own types, where it is not the name: pod templates are everywhere.
_MERGE_KEYS: Final[Mapping[str, tuple[Names, ...]]] = {
    "addresses": (("type", "address"),),
    "hostAliases": (("ip",),),
    "ownerReferences": (("uid",),),
    "ports": (("containerPort", "protocol"), ("port", "protocol"), ("containerPort",)),
    "taints": (("key", "effect"),),
    "topologySpreadConstraints": (("topologyKey", "whenUnsatisfiable"),),
    "volumeDevices": (("devicePath",),),
    "volumeMounts": (("mountPath",),),
}
# What elsewhere tells elements apart, the likeliest first.
_LIKELY_KEYS: Final[tuple[Names, ...]] = (
    ("name",), ("type",), ("key",), ("id",), ("uid",), ("ip",), ("host",), ("path",), ("port",),
    ("namespace", "name"), ("kind", "name"), ("kind", "namespace", "name"),
)  # fmt: skip
_MOST_BYTES: Final = 8_000_000
_MOST_MATCHES: Final = 200_000


class Change(NamedTuple):
    """One value that differs; None where it is absent.

    ``path`` is a JSONPath, in kubectl's dialect wherever that can say it. It finds ``new`` in
    the new object, and ``old`` in the old one. An element of a list is named by its keys; one
    that has none by its place in the new list, or in the old one if it is gone. Where elements
    are only in another order, the path ends with ``[*]`` and the key, and finds the key of each.

    >>> str(Change(".spec.replicas", 1, 2).path)
    '.spec.replicas'
    """

    path: str
    old: Any
    new: Any


Differences: TypeAlias = list[Change]


def differences(
    old: Object, new: Object, ignore: Iterable[str] = (), keys: ListKeys | None = None
) -> Differences:
    r"""The values that differ, in the order of the old object, then what is only in the new.

    ``ignore`` names paths that are left out with all below them; ``[*]`` in one is any element.
    ``keys`` are those that a schema declares, as in ``{".spec.listeners": ["name"]}``.

    >>> differences({"spec": {"n": 1, "x": ["b"]}}, {"spec": {"n": 2, "x": ["a", "b"]}})
    [Change(path='.spec.n', old=1, new=2), Change(path='.spec.x[0]', old=None, new='a')]
    >>> old, new = ({"c": [{"type": "Ready", "status": each}]} for each in ("False", "True"))
    >>> differences(old, new)
    [Change(path='.c[?(@.type=="Ready")].status', old='False', new='True')]
    """
    ignored = _ignored(ignore)
    effort = _Effort()
    found: Differences = []
    waiting = [_Pair(Way(), Way(), old, new, Patterns.of(keys) if keys else None, "")]
    while waiting:  # no recursion: objects may be nested deeper than Python's calls
        pair = waiting.pop()
        before, after = pair.before, pair.after
        way = pair.was if after is _ABSENT else pair.now
        if way.text and ignored(way):
            continue
        if type(before) is type(after) and isinstance(before, dict):
            waiting.extend(reversed(list(_fields(pair))))
        elif type(before) is type(after) and isinstance(before, list):
            waiting.extend(reversed(list(_elements(pair, effort))))
        elif type(before) is _Order:
            found.append(Change(str(way), before.values, after.values))
        elif before is not after and not _same(before, after):
            found.append(Change(str(way), _shown(before), _shown(after)))
    return found


class _Pair(NamedTuple):
    """A place in the old state and in the new one, and what is there."""

    was: Way
    now: Way
    before: Any
    after: Any
    declared: Declared
    field: str
    """The key under which it is, or the list that it is an element of."""


class _Order:
    """The order of elements, by a key, where nothing else may have changed."""

    def __init__(self, values: Elements) -> None:
        self.values = values


class _Effort:
    """How much work lists without keys may still take, whatever is in them."""

    def __init__(self) -> None:
        self.bytes = _MOST_BYTES
        self.matches = _MOST_MATCHES


def _fields(pair: _Pair) -> Iterator[_Pair]:
    was, now, before, after, declared, _ = pair
    for key in dict.fromkeys((*before, *after)):
        old_way = was.to(key)
        yield _Pair(
            old_way,
            old_way if was is now else now.to(key),
            before.get(key, _ABSENT),
            after.get(key, _ABSENT),
            declared.field(key) if declared is not None else None,
            key,
        )


def _elements(pair: _Pair, effort: _Effort) -> Iterator[_Pair]:
    names = _names(pair)
    if names is None:
        return _by_place(pair, _matched(pair.before, pair.after, effort))
    return _by_key(pair, names)


def _names(pair: _Pair) -> Names | None:
    """The fields that tell all elements apart, in both states; None if there are none such."""
    both = pair.before + pair.after
    if not both or not all(type(each) is dict for each in both):
        return None
    declared = pair.declared.value if pair.declared is not None else None
    own: tuple[Names, ...] = (tuple(declared),) if declared else ()
    for names in (*own, *_MERGE_KEYS.get(pair.field, ()), *_LIKELY_KEYS):
        if (
            all(_comparable([each.get(name) for each in both]) for name in names)
            and _distinct(pair.before, names)
            and _distinct(pair.after, names)
        ):
            return names
    return None


def _comparable(values: Elements) -> bool:
    """A filter can compare all of them: texts, or whole numbers."""
    first = type(values[0])
    return all(type(each) is first and can_be_compared(each) for each in values)


def _distinct(elements: Elements, names: Names) -> bool:
    return len({tuple(each[name] for name in names) for each in elements}) == len(elements)


def _by_key(pair: _Pair, names: Names) -> Iterator[_Pair]:
    was, now, before, after, declared, field = pair
    below = declared.element() if declared is not None else None
    first = names[:1]  # it is enough where it tells all apart, as most ports' numbers do
    named = first if _distinct(before, first) and _distinct(after, first) else names

    def value(each: Object) -> Values:
        return tuple(each[name] for name in names)

    old = {value(each): each for each in before}
    new = {value(each): each for each in after}
    for key in dict.fromkeys((*old, *new)):
        step = tuple((name, each) for name, each in zip(names, key, strict=True) if name in named)
        old_way = was.to(step)
        new_way = old_way if was is now else now.to(step)
        yield _Pair(old_way, new_way, old.get(key, _ABSENT), new.get(key, _ABSENT), below, field)
    kept, kept_now = [key for key in old if key in new], [key for key in new if key in old]
    if kept != kept_now:
        at = next(at for at in range(len(names)) if _column(kept, at) != _column(kept_now, at))
        way = now.to(None).to(names[at])
        old_order = _Order([each[names[at]] for each in before])
        new_order = _Order([each[names[at]] for each in after])
        yield _Pair(way, way, old_order, new_order, None, field)


def _column(keys: Iterable[Values], at: int) -> Elements:
    return [key[at] for key in keys]


def _by_place(pair: _Pair, matched: Places) -> Iterator[_Pair]:
    """Elements that stayed, and between them by place what was there and what is there now."""
    was, now, before, after, declared, field = pair
    below = declared.element() if declared is not None else None

    def at(i: int, j: int) -> _Pair:
        old, new = i < len(before), j < len(after)
        old_way = was.to(i)
        return _Pair(
            old_way,
            old_way if i == j and was is now else now.to(j),
            before[i] if old else _ABSENT,
            after[j] if new else _ABSENT,
            below,
            field,
        )

    nowhere_old, nowhere_new = len(before), len(after)
    for (i, j), (next_i, next_j) in pairwise([(-1, -1), *matched, (nowhere_old, nowhere_new)]):
        if i >= 0:
            yield at(i, j)  # 1 and 1.0 are found apart, and are the same
        gone, come = range(i + 1, next_i), range(j + 1, next_j)
        for k in range(max(len(gone), len(come))):
            old = gone[k] if k < len(gone) else nowhere_old
            new = come[k] if k < len(come) else nowhere_new
            if old == new or (
                old < nowhere_old
                and new < nowhere_new
                and type(before[old]) is type(after[new])
                and isinstance(before[old], dict | list)
            ):
                yield at(old, new)
                continue
            if old < nowhere_old:
                yield at(old, nowhere_new)
            if new < nowhere_new:
                yield at(nowhere_old, new)


def _matched(before: Elements, after: Elements, effort: _Effort) -> Places:
    """The places of the longest common subsequence; by place alone if that is too much work."""
    try:
        old, new = _as_bytes(before, effort), _as_bytes(after, effort)
    except _TooMuchError:
        return []
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    middle = _longest(old[first : len(old) - last], new[first : len(new) - last], effort)
    return [
        *((at, at) for at in range(first)),
        *((first + i, first + j) for i, j in middle),
        *((len(old) - at, len(new) - at) for at in range(last, 0, -1)),
    ]


class _TooMuchError(Exception):
    """Comparing so would take too long."""


def _as_bytes(elements: Elements, effort: _Effort) -> list[bytes]:
    found = []
    for each in elements:
        if effort.bytes <= 0:
            raise _TooMuchError
        try:
            found.append(msgspec.json.encode(each, order="sorted"))
        except RecursionError:
            raise _TooMuchError from None
        effort.bytes -= len(found[-1])
    return found


def _longest(old: list[bytes], new: list[bytes], effort: _Effort) -> Places:
    """Hunt and Szymanski's: time grows with the pairs that are equal, which are few mostly."""
    places: dict[bytes, list[int]] = {}
    for j, each in enumerate(new):
        places.setdefault(each, []).append(j)
    effort.matches -= sum(len(places.get(each, ())) for each in old)
    if effort.matches < 0:
        return []
    ends: list[int] = []  # of the common subsequences of each length, where the best one ends
    links: list[_Link | None] = []
    for i, each in enumerate(old):
        for j in reversed(places.get(each, ())):
            length = bisect_left(ends, j)
            link = _Link(i, j, links[length - 1] if length else None)
            if length == len(ends):
                ends.append(j)
                links.append(link)
            else:
                ends[length], links[length] = j, link
    found: Places = []
    link_now = links[-1] if links else None
    while link_now is not None:
        found.append((link_now.old, link_now.new))
        link_now = link_now.before
    found.reverse()
    return found


class _Link(NamedTuple):
    old: int
    new: int
    before: _Link | None


def _same(before: Any, after: Any) -> bool:
    """Equal as JSON: 1 is 1.0, but no true."""
    return isinstance(before, bool) == isinstance(after, bool) and bool(before == after)


def _shown(value: Any) -> Any:
    return None if value is _ABSENT else value


def _ignored(ignore: Iterable[str]) -> Callable[[Way], bool]:
    """Whether a place is one of those that are left out."""
    given = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    extended = {path for path in given if path.startswith("$")}
    spelled = ["." + path.strip("{}").removeprefix(".") for path in given if path not in extended]
    patterns = [
        re.escape(path).replace(_ELEMENT, r"\[[^]]*\]") for path in (*BOOKKEEPING, *spelled)
    ]
    fits = re.compile("|".join(patterns)).fullmatch
    if not extended:
        return lambda way: fits(way.text) is not None
    return lambda way: fits(way.text) is not None or str(way) in extended
