"""Paths that no object of a resource can have, found by the schema of its CRD.

A path with a typo finds nothing, without an error. The schema tells it from a path that only these
objects do not have. Where the schema leaves a place open, the path is not judged.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final, TypeAlias

from dyninformer.errors import DynInformerError, JSONPathError, JSONPathWarning
from dyninformer.jsonpath import JSONPath
from dyninformer.jsonpath.compiling import EachStep, FilterStep, ItemStep, KeyStep, Step, Steps
from dyninformer.jsonpath.path import Projection
from dyninformer.jsonpath.writing import Way

Schema: TypeAlias = dict[str, Any]
Paths: TypeAlias = "Iterable[str | JSONPath]"
PathList: TypeAlias = list[JSONPath]
Problems: TypeAlias = list[str]
Place: TypeAlias = tuple[Steps, Any]
"""The way to a place, and the schema of what is there."""

_SAMPLE: Final = 100  # objects that are searched for a path before the schema is asked for
_MOST_PATHS: Final = 1000  # that are remembered, for programs that make up paths without end
_READ: Final = 0.5  # seconds that a read waits for a CRD
_AGAIN: Final = 10.0  # seconds after a server that did not answer is asked once more
_PLACES: Final = 3000  # of a schema, that are searched for a field of that name
_LIKE: Final = 0.7  # how similar two names are, of 1.0
_NAMES: Final = 10  # in a message

_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})
_OPEN_FIELDS: Final = "x-kubernetes-preserve-unknown-fields"
_OF_EVERY_OBJECT: Final = ("apiVersion", "kind", "metadata")

_TEXT: Final = {"type": "string"}
_TIME: Final = {"type": "string", "format": "date-time"}
_INTEGER: Final = {"type": "integer"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_OWNER: Final = {
    "apiVersion": _TEXT,
    "blockOwnerDeletion": {"type": "boolean"},
    "controller": {"type": "boolean"},
    "kind": _TEXT,
    "name": _TEXT,
    "uid": _TEXT,
}
_METADATA: Final = {
    "annotations": _TEXTS,
    "creationTimestamp": _TIME,
    "deletionGracePeriodSeconds": _INTEGER,
    "deletionTimestamp": _TIME,
    "finalizers": {"type": "array", "items": _TEXT},
    "generateName": _TEXT,
    "generation": _INTEGER,
    "labels": _TEXTS,
    "managedFields": {},
    "name": _TEXT,
    "namespace": _TEXT,
    "ownerReferences": {"type": "array", "items": {"type": "object", "properties": _OWNER}},
    "resourceVersion": _TEXT,
    "selfLink": _TEXT,
    "uid": _TEXT,
}


def whole_schema(declared: Any) -> Schema:
    """Add what every object has to a CRD's schema, which only says that there is metadata.

    Where no schema is declared, everything else is open.
    """
    known = isinstance(declared, dict)
    properties = declared.get("properties") if known else None
    return {
        "type": "object",
        _OPEN_FIELDS: bool(declared.get(_OPEN_FIELDS)) if known else True,
        "properties": {
            **(properties if isinstance(properties, dict) else {}),
            "apiVersion": _TEXT,
            "kind": _TEXT,
            "metadata": {"type": "object", "properties": _METADATA},
        },
    }


class PathCheck:
    """Reports each path that no object of a resource can have, once. From any thread."""

    def __init__(self, resource: str, ask: Callable[[float], Schema]) -> None:
        """``ask`` returns the whole schema within so many seconds, or raises DynInformerError."""
        self._resource = resource
        self._ask = ask
        self._checked: dict[str, object] = {}
        self._failed = False
        self._not_before = 0.0

    def problems(
        self, paths: Paths, objects: Iterable[Any] = (), *, seconds: float = 0.0
    ) -> Problems:
        """Return what to say of paths that none of the objects has, and that none can have.

        The server is asked for the CRD only if none of the objects has a path. With 0 seconds, and
        after a failure, a CRD that is not known yet is fetched in the background, for a later call.
        """
        checked = self._checked
        unseen = self.unseen(paths)
        if not unseen:
            return []
        missing = self._missing(
            [each if isinstance(each, JSONPath) else JSONPath(each) for each in unseen], objects
        )
        if not missing or time.monotonic() < self._not_before:
            return []
        try:
            schema = self._ask(0.0 if self._failed else seconds)
        except DynInformerError:
            self._failed = True
            self._not_before = time.monotonic() + _AGAIN
            return []
        found = []
        for path in missing:
            mine = object()
            # Of several threads one reports the path.
            if checked.setdefault(_bare(path), mine) is mine:
                advice = unknown_path(path, schema)
                if advice is not None:
                    found.append(f"{self._resource} has no field {_bare(path)}{advice}")
        return found

    def unseen(self, paths: Paths) -> list[str | JSONPath]:
        """Return the paths that are not checked yet; none once very many are."""
        if len(self._checked) >= _MOST_PATHS:
            return []
        return [path for path in paths if _bare(path) not in self._checked]

    def _missing(self, paths: PathList, objects: Iterable[Any]) -> PathList:
        """Return the paths that none of the first objects has; the others are checked."""
        projection = Projection(paths)
        left = set(range(len(paths)))
        for obj in islice(objects, _SAMPLE):
            try:
                rows = projection.rows(obj)
            except JSONPathError:  # nested too deep
                continue
            left = {at for at in left if not rows[at]}
            if not left:
                break
        for at, path in enumerate(paths):
            if at not in left:
                self._checked[_bare(path)] = None
        return [path for at, path in enumerate(paths) if at in left]


def _bare(path: str | JSONPath) -> str:
    """Return the text of a path, which is the same path with and without braces."""
    return str(path).strip("{}")


def seconds_of_a_read() -> float:
    """Return how long a read may wait for a CRD: in an event loop not at all."""
    asyncio = sys.modules.get("asyncio")  # without it there is no loop
    if asyncio is None:
        return _READ
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _READ
    return 0.0


def warn(problems: Iterable[str]) -> None:
    """Give a JSONPathWarning for each problem, at the line outside of this package."""
    for problem in problems:
        frame, level = sys._getframe(), 1  # noqa: SLF001 - Python 3.11 has no skip_file_prefixes
        package = __name__.partition(".")[0]
        while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
            frame, level = frame.f_back, level + 1
        warnings.warn(problem, JSONPathWarning, stacklevel=level)


def unknown_path(path: JSONPath, schema: Schema) -> str | None:
    """Return the advice for a path that no object of this schema has; None if one may have it.

    >>> issuer = {"type": "object", "properties": {"name": {"type": "string"}}}
    >>> schema = {"type": "object", "properties": {"issuerRef": issuer}}
    >>> unknown_path(JSONPath(".isuerRef.name"), schema)
    '; did you mean .issuerRef.name?'
    >>> print(unknown_path(JSONPath(".issuerRef.name"), schema))
    None
    """
    steps, parsed = path.parsed.steps, path.parsed
    stop = _stop(steps, schema)
    if stop is None:
        return None
    near = _repaired(steps, schema) or _condition(steps, schema) or _elsewhere(steps, stop, schema)
    extended = parsed.dialect == "jsonpath-ng"
    if near is not None:
        rest = "..." if parsed.rest else ""
        return f"; did you mean {_written(near, extended)}{rest}?"
    before = _written(steps[: stop[0]], extended) or "an object"
    names = sorted(_names(stop[1]))
    if not names:
        return f"; {before} has no fields"
    more = ", ..." if len(names) > _NAMES else ""
    return f"; {before} has {', '.join(names[:_NAMES])}{more}"


_ABSENT: Final[Schema] = {}


def _below(place: Any, step: Step) -> Any:
    """Return the schema one step further: `_ABSENT` for nothing, None for whatever may be there."""
    kind = str(place.get("type")) if isinstance(place, dict) else ""
    if isinstance(step, KeyStep):
        if kind == "object":
            return _field(place, step.name)
        return _ABSENT if kind == "array" or kind in _SCALARS else None
    if kind != "array":
        return None
    items = place.get("items")
    if isinstance(step, FilterStep) and _below(items, KeyStep(step.name)) is _ABSENT:
        return _ABSENT
    return items


def _field(place: Schema, name: str) -> Any:
    properties = place.get("properties")
    if isinstance(properties, dict) and name in properties:
        return properties[name]
    others = place.get("additionalProperties")
    if others is not None and others is not False:
        return others
    if place.get(_OPEN_FIELDS):
        return None
    if place.get("x-kubernetes-embedded-resource") and name in _OF_EVERY_OBJECT:
        return None
    return _ABSENT


def _names(place: Any) -> Sequence[str]:
    properties = place.get("properties") if isinstance(place, dict) else None
    return tuple(properties) if isinstance(properties, dict) else ()


def _stop(steps: Steps, schema: Any) -> tuple[int, Any] | None:
    """Return the first step that leads nowhere and the schema in front of it, None if none does."""
    place = schema
    for at, step in enumerate(steps):
        below = _below(place, step)
        if below is _ABSENT:
            return at, place
        place = below
    return None


# -- what was likely meant ---------------------------------------------------------------


def _repaired(steps: Steps, schema: Schema) -> Steps | None:
    """Return the path with similar names in the place of wrong ones, None if there are none."""
    stop = _stop(steps, schema)
    if stop is None:
        return steps
    at, place = stop
    for step in _similar(steps[at], place):
        rest = steps[at:] if isinstance(step, EachStep) else steps[at + 1 :]
        found = _repaired((*steps[:at], step, *rest), schema)
        if found is not None:
            return found
    return None


def _similar(step: Step, place: Schema) -> Iterator[Step]:
    """Yield steps that lead somewhere from this place; a list first needs ``[*]``."""
    if isinstance(step, KeyStep) and place.get("type") == "array":
        yield EachStep()
    elif isinstance(step, KeyStep):
        yield from map(KeyStep, _close(step.name, _names(place)))
    elif isinstance(step, FilterStep):
        for name in _close(step.name, _names(place.get("items"))):
            yield FilterStep(name, step.text)


def _close(name: str, names: Iterable[str]) -> list[str]:
    by_lower = {each.lower(): each for each in names}
    found = get_close_matches(name.lower(), by_lower, n=2, cutoff=_LIKE)
    return [by_lower[each] for each in found]


def _same(name: str, names: Iterable[str]) -> list[str]:
    return [each for each in names if each.lower() == name.lower()]


def _condition(steps: Steps, schema: Schema) -> Steps | None:
    """Return the way to the status of a condition, for a name like ``Ready`` alone."""
    only = steps[0] if len(steps) == 1 else None
    if not isinstance(only, KeyStep) or not only.name[:1].isupper():
        return None
    conditions = (KeyStep("status"), KeyStep("conditions"), FilterStep("type", only.name))
    place: Any = schema
    for step in conditions:
        place = _below(place, step)
    return (*conditions, KeyStep("status")) if "status" in _names(place) else None


def _elsewhere(steps: Steps, stop: tuple[int, Any], schema: Schema) -> Steps | None:
    """Return a way to a field of this name, or of a similar one, that is somewhere else."""
    at, place = stop
    wrong, rest = steps[at], steps[at + 1 :]
    if not isinstance(wrong, KeyStep):
        return None
    starts: list[Place] = [(steps[:at], place), ((), schema)]
    places = [each for start in starts for each in islice(_places(start), _PLACES)]
    for alike in (_same, _close):
        for way, there in places:
            for name in alike(wrong.name, _names(there)):
                found = (*way, KeyStep(name), *rest)
                if _stop(found, schema) is None:
                    return found
    return None


def _places(start: Place) -> Iterator[Place]:
    """Yield the places of a schema that have named fields, those above before those below."""
    waiting = deque([start])
    while waiting:
        way, place = waiting.popleft()
        if not isinstance(place, dict):
            continue
        if _names(place):
            yield way, place
        waiting += [((*way, KeyStep(name)), place["properties"][name]) for name in _names(place)]
        if place.get("type") == "array":
            waiting.append(((*way, EachStep()), place.get("items")))


def _written(steps: Steps, extended: bool) -> str:
    """Return the path as text, in the dialect of the path that was given."""
    way = Way(beyond=extended and bool(steps))
    for step in steps:
        match step:
            case KeyStep(name):
                way = way.to(name)
            case ItemStep(index):
                way = way.to(index)
            case FilterStep(name, text):
                way = way.to(((name, text),))
            case EachStep():
                way = way.to(None)
    return str(way)
