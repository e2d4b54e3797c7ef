"""A table to scroll, sort and filter, of which only the rows that are seen cross to the browser."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dyninformer.display.live.page import texts
from dyninformer.display.live.rows import Found
from dyninformer.display.live.source import Headings, Source
from dyninformer.display.live.standing import Standing
from dyninformer.display.live.table import TableRows, check_order, source_of, still
from dyninformer.display.live.view import LiveView, View
from dyninformer.display.text import visible
from dyninformer.errors import StoppedError
from dyninformer.frames.selection import LiveOptions
from dyninformer.store.snapshot import Columns
from dyninformer.types import Key, Object

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError(
        f"live_widget needs {error.name}: pip install 'dyninformer[widget]'"
    ) from error

if TYPE_CHECKING:
    from dyninformer.informer import SharedIndexInformer

_MOST_ROWS: Final = 500  # of one answer
_LONGEST_FILTER: Final = 500
_STILL: Final = 2000  # objects; the rows of more are not read only to be kept
_UNSEEN: Final = 3  # pushes that a browser has not acknowledged, until there are fewer
_SLOWLY_SECONDS: Final = 5.0
_SILENT_SECONDS: Final = 180.0
"""A browser says every 30 s that it is there, or once a minute if its tab is not seen."""


class _Look(NamedTuple):
    """What one view in a browser asks for, and how far it has come."""

    id: int
    sort: int | None
    descending: bool
    words: tuple[str, ...]
    start: int
    rows: int
    seen: int
    at: float


class _Sent(NamedTuple):
    """The last answer to a view."""

    id: int
    version: int
    at: float
    body: Object


class _Painter:
    """Answers what browsers ask for, and pushes what changes in it.

    ``looks`` is written by the kernel's thread, each by one assignment; all else is the view's.
    """

    def __init__(self, title: str, table: TableRows, send: Any) -> None:
        self.looks: dict[str, _Look] = {}
        self._title = title
        self._table = table
        self._send = send
        self._sent: dict[str, _Sent] = {}
        self._standing: Standing | None = None

    def begin(self, headings: Headings, found: Found) -> None:
        """See `Painter`, as for the next three."""
        self._sent = {}
        self._table.begin(headings, found)

    def change(self, found: Found, now: float) -> None:
        self._table.change(found, now)

    def keys(self) -> Iterable[Key]:
        return self._table.rows.keys()

    def paint(self, standing: Standing, now: float) -> bool:
        self._standing = standing
        self._table.rows.expire(now)
        for view, look in list(self.looks.items()):
            if now - look.at > _SILENT_SECONDS:
                self.looks.pop(view, None)
                self._sent.pop(view, None)
            else:
                self._answer(view, look, standing, now)
        return bool(self.looks)

    def paint_last(self, now: float) -> None:
        """Answer once more, of what was there at the end."""
        if self._standing is not None:
            self.paint(self._standing, now)

    def wanted(self) -> bool:
        return bool(self.looks)

    def due(self, now: float) -> float | None:
        behind = [
            sent.at + _SLOWLY_SECONDS
            for view, sent in self._sent.items()
            if (look := self.looks.get(view)) is not None and sent.version > look.seen
        ]
        dues = [self._table.due(now), now + _SILENT_SECONDS, *behind]
        return min(due for due in dues if due is not None)

    def _answer(self, view: str, look: _Look, standing: Standing, now: float) -> None:
        """Send what the view asks for, if it has asked anew, or if that has changed."""
        sent, body = self._sent.get(view), self._body(look, standing)
        pushed = sent is not None and sent.id == look.id
        if sent is not None and body == sent.body:
            self._sent[view] = sent._replace(id=look.id)  # it only says that it is there
            return
        unseen = 0 if sent is None else sent.version - look.seen
        if sent is not None and pushed and unseen >= _UNSEEN and now - sent.at < _SLOWLY_SECONDS:
            return
        version = max(look.seen, 0 if sent is None else sent.version) + 1
        self._sent[view] = _Sent(look.id, version, now, body)
        self._send({**body, "view": view, "id": look.id, "version": version, "pushed": pushed})

    def _body(self, look: _Look, standing: Standing) -> Object:
        table = self._table
        column, descending = look.sort, look.descending
        if column is None or column >= len(table.headings):
            column, descending = table.column, table.descending
        query = table.query(column, descending=descending, words=look.words)
        window = table.rows.window(query, look.start, look.rows)
        now = datetime.now(UTC)
        return {
            "title": self._title,
            "headings": [visible(heading.name) for heading in table.headings],
            "sort": column,
            "descending": descending,
            "objects": len(table.rows),
            "noun": table.noun,
            "standing": visible(standing.text),
            "good": standing.good,
            "total": window.total,
            "start": window.start,
            "rows": [
                [texts(table.headings, row.cells, now), row.state.value, sorted(row.changed)]
                for row in window.rows
            ],
        }


class LiveWidget(LiveView, anywidget.AnyWidget):
    """A table of any length that follows the cluster: to scroll, to sort by a click, to filter.

    ``informer.live_widget()`` gives it; it needs the extra ``widget``. The rows stay in the
    kernel, which sorts and filters them; only those that are seen cross to the browser. It
    ends with `stop`, with its informer, and when its cell is run again; while no browser shows it,
    nothing is behind it. Where no widgets are shown, and there are few objects, the first rows are.

    Not for import.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     widget = namespaces.live_widget(sort_by="-name")
    ...     print(widget.running)  # no browser has asked yet
    ...     widget.close()
    False
    """

    _esm = files(__package__).joinpath("widget.js").read_text("utf-8")
    rows = traitlets.Int(15).tag(sync=True)
    """How many are seen at a time."""

    def __init__(self, source: Source, rows: int, options: LiveOptions) -> None:
        """``informer.live_widget()`` makes it."""
        super().__init__(rows=rows)
        self._source = source
        self._new_rows = partial(TableRows, options)
        self._painter = _Painter(str(source.gvr), self._new_rows(), self.send)
        like = f"live widget {source!r} {options.get('sort_by')} {rows}"
        self._view = View(source, self._painter, options.get("name"), like)
        self.on_msg(self._take)

    def close(self) -> None:
        """End it, and take it from the screen."""
        self.stop()
        super().close()

    def __repr__(self) -> str:
        return f"<LiveWidget of {self._source.gvr}>"

    def _repr_mimebundle_(self, **asked: Any) -> Any:
        """Itself; and for where there are no widgets, or no kernel any more, the first rows."""
        bundle: Any = super()._repr_mimebundle_(**asked)  # a dict, or also metadata
        if bundle is None:
            return bundle
        try:
            if self._source.count > _STILL:
                check_order(self._source, self._new_rows())
                return bundle
            page = still(self._source, self._new_rows(), self.rows)
        except StoppedError:  # it has let go of its informer: a browser gets its last rows
            return bundle
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, "text/html": page.html, "text/plain": page.text}, metadata

    def _take(self, _widget: object, content: object, _buffers: object) -> None:
        """A browser has asked. On the kernel's thread, which waits for nothing here."""
        view = content.get("view") if isinstance(content, dict) else None
        if not isinstance(content, dict) or not isinstance(view, str):
            return
        if content.get("leave"):
            self._painter.looks.pop(view, None)
        else:
            self._painter.looks[view] = _look(content)
            self._view.begin()
            if self._view.over:  # no thread is there to answer, nor to come between
                self._painter.paint_last(time.monotonic())
        self._view.look()


def _look(asked: Object) -> _Look:
    """What a message asks for; what makes no sense counts as not said."""

    def number(name: str, most: int) -> int:
        given = asked.get(name)
        return max(0, min(given, most)) if type(given) is int else 0

    text = asked.get("filter")
    words = text[:_LONGEST_FILTER].lower().split() if isinstance(text, str) else []
    return _Look(
        id=number("id", sys.maxsize),
        sort=number("sort", sys.maxsize) if type(asked.get("sort")) is int else None,
        descending=asked.get("descending") is True,
        words=tuple(words),
        start=number("start", sys.maxsize),
        rows=number("count", _MOST_ROWS),
        seen=number("seen", sys.maxsize),
        at=time.monotonic(),
    )


def live_widget(
    informer: SharedIndexInformer, columns: Columns | None, rows: int, options: LiveOptions
) -> LiveWidget:
    """What ``informer.live_widget()`` gives, whose docstring says what these are."""
    return LiveWidget(source_of(informer, columns, rows, options), rows, options)
