"""An event as lines: a row of a table, a diff, or the object in a form for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from dyninformer.cli.choosing import ADDED, DELETED, MODIFIED, Seen
from dyninformer.cli.output import Form
from dyninformer.discovery import Discovery, ResolvedResource
from dyninformer.display import forms
from dyninformer.display.columns import Columns, row
from dyninformer.display.diff import ADDED as PLUS
from dyninformer.display.diff import REMOVED as MINUS
from dyninformer.display.diff import diff_lines
from dyninformer.display.table import Table
from dyninformer.display.text import visible
from dyninformer.store.jsonpath import JSONPath

Object: TypeAlias = dict[str, Any]
Lines: TypeAlias = "Iterator[Line]"
Cells: TypeAlias = list[str]
Paths: TypeAlias = Sequence[str]

_TIME: Final = "%H:%M:%S"
COLOURS: Final = {ADDED: "green", MODIFIED: "yellow", DELETED: "red"}
_SIGNS: Final = {PLUS: "green", MINUS: "red"}
_GENERATION: Final = ".metadata.generation"
_PATHS: Final = 3  # that a row names of what changed; --diff shows all


class Line(NamedTuple):
    """Text that is safe to show, and the colour of a part of it on a terminal."""

    text: str
    colour: str = ""
    start: int = 0
    end: int | None = None


class Lined(Protocol):
    """Makes lines of events."""

    def lines(self, seen: Seen) -> Lines:
        """The lines of one event."""


class Rows:
    """A table that grows by a row per event."""

    def __init__(self, headings: Cells, columns: Columns | None, paths: Paths, *, namespace: bool,
                 show_headings: bool) -> None:  # fmt: skip
        self._columns = columns
        self._paths = [path.strip("{}") for path in paths]
        self._namespace = namespace
        where = ["namespace"] if namespace else []
        own = headings if columns is not None else ["name"]
        last = self._paths or ["changed"]
        self._table = Table(["time", "event", *where, *own, *last], show_headings=show_headings)

    def lines(self, seen: Seen) -> Lines:
        """One row; before the first the headings."""
        cells = [seen.when.strftime(_TIME), f"{seen.type:{len(MODIFIED)}}"]  # the longest
        if self._namespace:
            cells.append(seen.event.namespace)
        if self._columns is None:
            cells.append(full_name(seen))
        else:
            cells += row(self._columns, seen.object)
        cells += self._values(seen) if self._paths else [_changed(seen)]
        *headings, text = self._table.lines([cells])
        for heading in headings:
            yield Line(heading)
        start = len(cells[0]) + 3
        yield Line(text, COLOURS[seen.type], start, start + len(seen.type))

    def _values(self, seen: Seen) -> Cells:
        """What the paths find, behind an arrow where it was something else."""
        was = {change.path: change.old for change in seen.changes}
        return [
            f"{was[path] or '<none>'} -> {now or '<none>'}" if path in was else now
            for path, now in zip(self._paths, seen.values, strict=True)
        ]


class Diffs:
    """A heading per event, and below it what an update changed."""

    def lines(self, seen: Seen) -> Lines:
        """The heading, and the diff."""
        inside = f" in {visible(seen.event.namespace)}" if seen.event.namespace else ""
        head = f"{seen.when.strftime(_TIME)} {seen.type} "
        note = f" ({_MISSED})" if seen.missed else ""
        yield Line(
            f"{head}{full_name(seen)}{inside}{note}",
            COLOURS[seen.type],
            len(head) - len(seen.type) - 1,
            len(head) - 1,
        )
        for sign, text in diff_lines(seen.changes):
            yield Line(f"  {sign} {text}", _SIGNS.get(sign, ""))


class Objects:
    """The object itself, or the event as the watch protocol has it."""

    def __init__(self, form: Form, *, events: bool) -> None:
        self._form = form
        self._events = events
        self._path = JSONPath.template(form.argument) if form.kind == "jsonpath" else None
        self._before = ""

    def lines(self, seen: Seen) -> Lines:
        """The text of one event."""
        obj = forms.without_managed_fields(seen.object)
        if self._form.kind == "name":
            text = full_name(seen)
            yield Line(f"{seen.type}   {text}" if self._events else text)
            return
        shown = {"type": seen.type, "object": obj} if self._events else obj
        if self._form.kind == "ndjson":
            yield Line(forms.as_ndjson(shown))
        elif self._form.kind == "json":
            yield Line(forms.as_json([shown], one=True))
        elif self._path is not None:
            yield Line(forms.as_jsonpath(self._path, [shown], one=True))
        else:
            if self._before:
                yield Line(self._before)
            self._before = "---"
            yield Line(forms.as_yaml([shown], one=True))


class PlainRows:
    """Rows as get shows them, in a table that grows; ``events`` adds what happened."""

    def __init__(self, form: Form, columns: Columns, *, events: bool, show_headings: bool) -> None:
        self._columns = columns
        self._events = events
        headings = [each.heading for each in columns]
        if events:
            headings.insert(0, "event")
        self._table = form.rows(headings, show_headings=show_headings)
        if events:
            self._table.make_room([(MODIFIED, "")])  # the longest

    def make_room(self, objects: Iterable[Object]) -> None:
        """Line up what is there already, though it comes object by object."""
        event = [""] if self._events else []
        self._table.make_room([*event, *row(self._columns, obj)] for obj in objects)

    def lines(self, seen: Seen) -> Lines:
        """One row."""
        cells = row(self._columns, seen.object)
        if self._events:
            cells.insert(0, seen.type)
        for text in self._table.lines([cells]):
            yield Line(text)


def rows(
    form: Form,
    discovery: Discovery,
    resource: ResolvedResource | None,
    paths: Paths,
    *,
    namespace: bool,
    show_headings: bool,
) -> Rows:
    """A table for one resource, with its columns, or for several, with names that say which.

    With paths, those stand in place of the resource's columns.
    """
    columns: Columns | None = None
    if resource is not None:
        columns = form.columns(discovery, resource, with_namespace=False)
        columns = columns[:1] if paths else columns
    headings = [each.heading for each in columns or ()]
    return Rows(headings, columns, paths, namespace=namespace, show_headings=show_headings)


def full_name(seen: Seen) -> str:
    """``certificate.cert-manager.io/shop``."""
    kind = str(seen.object.get("kind") or seen.event.gvr.resource)
    return forms.as_name(seen.object, kind, seen.event.gvr.group)


_MISSED: Final = "nobody saw when, so this may not be its last state"


def _changed(seen: Seen) -> str:
    if seen.missed:
        return "missed"
    paths = [change.path for change in seen.changes]
    if len(paths) > 1 and _GENERATION in paths:
        paths.remove(_GENERATION)  # it only counts the others
    more = len(paths) - _PATHS
    named = ", ".join(paths[:_PATHS])
    return f"{named} and {more} more" if more > 0 else named
