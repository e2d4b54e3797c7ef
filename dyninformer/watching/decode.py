"""From the bytes of an answer to what the protocol is told of it.

Each answer has a reading of its own, fed with the chunks of the body as they come. Objects
go through `Store.receive` here, outside every lock; what cannot be kept is skipped, counted
by the store, and said once per chunk (S32).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Final, Protocol, TypeAlias

import msgspec

from dyninformer.store import versions
from dyninformer.store.receive import Received, UnusableObjectError
from dyninformer.store.store import Store
from dyninformer.transport.document import DocumentBody, TooLargeError
from dyninformer.watching.cutting import (
    BrokenFrameError,
    ItemCutter,
    LineCutter,
    broken,
    cut_event,
    proved_event,
    proved_otherwise,
)
from dyninformer.watching.states import (
    Answer,
    Batch,
    ChangeType,
    Document,
    Ended,
    Lost,
    PageEnd,
    Refused,
    StatusError,
    WatchEvent,
)

MARK: Final = "k8s.io/initial-events-end"
_SHOWN_TEXT = 300  # characters of a refusal that is no Status
_LARGEST_STATUS = 1 << 20  # bytes: it is a message

LARGEST_DOCUMENT: Final = 64 << 20
"""So many bytes of memory may a document take when it is decoded. Discovery of some thousand CRDs
takes a third of it."""

_CHANGES: Final[dict[str, ChangeType]] = {
    "ADDED": "ADDED",
    "MODIFIED": "MODIFIED",
    "DELETED": "DELETED",
}

_MOST_SKIPPED = 5000
"""In one batch. It takes long to say of an item what is wrong with it, and of two bytes there may
be many; between batches a stop is looked for (S34)."""

Pieces: TypeAlias = list[bytes]

_logger = logging.getLogger(__name__)


class Reading(Protocol):
    """Reads one answer. It may be dropped at any point."""

    def feed(self, chunk: bytes) -> Iterator[Answer]:
        """What a part of the body says. Take all of it before the next part is fed."""

    def end(self) -> Answer:
        """What the body's clean end says."""


class _Annotations(msgspec.Struct):
    mark: str = msgspec.field(name=MARK, default="")


class _Annotated(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion", default="")
    annotations: _Annotations | None = None


class _Bookmark(msgspec.Struct):
    metadata: _Annotated


_bookmark = msgspec.json.Decoder(_Bookmark)


class StreamReading:
    """Reads the lines of a watch, of one that begins with the state, or at a version.

    ``start`` is None while the initial events come; the mark ends that.
    """

    def __init__(self, store: Store, name: str, start: str | None) -> None:
        self._store = store
        self._name = name
        self._start = start
        self._newest = start or ""
        self._cutter = LineCutter()

    def feed(self, chunk: bytes) -> Iterator[Answer]:
        """One batch, unless a mark or an end is in the middle."""
        try:
            lines = iter(self._cutter.feed(chunk))
        except BrokenFrameError as error:
            yield Batch(broken=str(error))
            return
        for line in lines:
            yield self._batch(chain((line,), lines))

    def end(self) -> Answer:
        """A clean end in the middle of a line is none."""
        if rest := self._cutter.rest.strip():
            return Lost(
                f"the stream ended in the middle of a line, after {len(rest):,} bytes of it"
            )
        return Ended()

    def _batch(self, lines: Iterator[bytes]) -> Batch:
        """What the lines say, up to the first that is more than a change."""
        builder = _BatchBuilder(self._store, self._name)
        receive, append = self._store.receive, builder.events.append
        begin = self._newest
        for line in lines:
            try:
                type_, data = cut_event(line)
                if type_ not in _CHANGES:
                    batch = self._special(type_, data, line, begin, builder)
                    if batch is not None:
                        return batch
                    continue
                deleted = type_ == "DELETED"
                try:
                    received = receive(data, deleted=True) if deleted else receive(data)
                except UnusableObjectError:
                    proved = proved_otherwise(line, data)
                    if proved is None:
                        raise
                    # It was cut on trust, and is none (S32).
                    received = receive(proved, deleted=deleted)
                if received.foreign:
                    self._pass(received.version)
                    builder.foreign = True
                elif self._start is None or self._is_news(received.version):
                    append((_CHANGES[type_], received))
                    if received.failure:
                        builder.fail(received)
                builder.live = builder.live or type_ != "ADDED"
            except BrokenFrameError as error:
                return builder.batch(self._since(begin), broken=str(error))
            except UnusableObjectError as error:
                self._pass(error.version)
                builder.refuse(error)
        return builder.batch(self._since(begin))

    def _special(
        self, type_: str, data: bytes, line: bytes, begin: str, builder: _BatchBuilder
    ) -> Batch | None:
        """A line that is no change; the batch that it ends, if it does."""
        builder.live = True
        if type_ == "BOOKMARK":
            marked = self._bookmarked(data, line)
            return builder.batch(self._newest, mark=True) if marked else None
        if type_ == "ERROR":
            error = status_of(data) or status_of(proved_event(line)[1])
            error = error or StatusError(message="an ERROR event without a Status")
            return builder.batch(self._since(begin), error=error)
        proved_event(line)
        builder.skip(f"an event of the unknown type {type_[:20]!r}")
        return None

    def _is_news(self, version: str) -> bool:
        """Not older than the stream's start (S30); the newest version is remembered."""
        newest = self._newest
        # Same length and not smaller, or longer, is what nearly every event is.
        if len(version) == len(newest) and version >= newest:
            self._newest = version
            return True
        if not versions.older(version, newest):
            if version:
                self._newest = version
            return True
        return not versions.older(version, self._start or "")

    def _pass(self, version: str) -> None:
        """Something is skipped: its version advances the stream all the same."""
        if self._start is not None:
            self._is_news(version)

    def _since(self, begin: str) -> str:
        return "" if self._newest == begin else self._newest

    def _bookmarked(self, data: bytes, line: bytes) -> bool:
        """Take a bookmark's version; whether it is the mark that ends the initial events."""
        try:
            metadata = _bookmark.decode(data).metadata
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            proved = proved_otherwise(line, data)
            if proved is not None:
                return self._bookmarked(proved, line)
            raise broken("a bookmark", line, str(error)) from None
        if self._start is not None:
            self._is_news(metadata.resource_version)
            return False
        if metadata.annotations is None or metadata.annotations.mark != "true":
            return False
        if not metadata.resource_version:
            raise broken("a bookmark", line, "it ends the initial events, and has no version")
        self._start = self._newest = metadata.resource_version
        return True


class DocumentReading:
    """Reads a small JSON object whole."""

    def __init__(self) -> None:
        self._body = DocumentBody()

    def feed(self, chunk: bytes) -> Iterator[Lost]:
        """Nothing before the end, unless it is too much."""
        try:
            self._body.feed(chunk)
        except TooLargeError as error:
            yield Lost(str(error))

    def end(self) -> Document | Lost:
        """The object; an empty one if it was none."""
        try:
            found = self._body.value()
        except TooLargeError as error:
            return Lost(str(error))
        return Document(found if isinstance(found, dict) else {})


class ListReading:
    """Reads the items of a list, one page, as they arrive.

    The store reads each item anyway, so that they are cut on trust: see `ItemCutter`.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self._cutter = ItemCutter(on_trust=True)
        self._items = 0
        self._first = ""
        self._builder = _BatchBuilder(store, name)

    def feed(self, chunk: bytes) -> Iterator[Answer]:
        """One batch, if there are whole items; more if many cannot be used."""
        self._builder = _BatchBuilder(self._store, self._name)
        before = self._items
        try:
            yield from self._read(self._cutter.feed(chunk))
            while self._cutter.trusted:
                yield from self._read(self._cutter.more())
        except BrokenFrameError as error:
            yield self._builder.batch("", broken=str(error))
        else:
            if self._items > before:
                yield self._batch()

    def end(self) -> Answer:
        """The page's metadata, unless the body was cut short or is no list."""
        try:
            meta = self._cutter.finish()
        except BrokenFrameError as error:
            return Lost(str(error))
        if not meta.kind.endswith("List"):
            return Lost(f"the answer is of kind {meta.kind[:40]!r}, which is no list")
        return PageEnd(meta.version, meta.continue_, self._items, meta.remaining, self._first)

    def _read(self, items: Pieces) -> Iterator[Answer]:
        """Have the store read the items; if one turns out to be none, cut anew from there on."""
        cutter, receive, events = self._cutter, self._store.receive, self._builder.events
        api_version, kind = cutter.api_version, cutter.kind.removesuffix("List")
        for at, item in enumerate(items):
            try:
                received = receive(item, api_version, kind)
                if received.foreign:
                    self._first = self._first or received.key
                    continue
                events.append(("ADDED", received))
                if received.failure:
                    self._builder.fail(received)
            except UnusableObjectError as error:
                if cutter.trusted:
                    self._items += at
                    yield from self._read(cutter.again(items[at:]))
                    return
                self._builder.refuse(error)
                if self._builder.skipped == _MOST_SKIPPED:
                    yield self._batch()
                    self._builder = _BatchBuilder(self._store, self._name)
                    events = self._builder.events
        self._items += len(items)

    def _batch(self) -> Batch:
        """What was gathered, and the first key of the page noted."""
        batch = self._builder.batch("")
        self._first = self._first or _first_key(batch)
        return batch


def _first_key(batch: Batch) -> str:
    """The key of an item, of the first one unless that is unusable."""
    if batch.events:
        return batch.events[0][1].key
    return next(filter(None, batch.unusable), "")


class _Metadata(msgspec.Struct, rename={"version": "resourceVersion"}):
    name: str = ""
    namespace: str = ""
    version: str = ""


class _Item(msgspec.Struct):
    metadata: _Metadata


_item = msgspec.json.Decoder(_Item)


class RevisionReading:
    """Reads how far the server has come off a list, and which object is the first in it."""

    def __init__(self) -> None:
        self._cutter = ItemCutter()
        self._items = 0
        self._first = "", ""

    def feed(self, chunk: bytes) -> Iterator[Answer]:
        """Nothing before the end, unless it makes no sense."""
        try:
            items = self._cutter.feed(chunk)
        except BrokenFrameError as error:
            yield Lost(str(error))
            return
        for item in items:
            self._items += 1
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                metadata = _item.decode(item).metadata
                if not self._first[0]:
                    key = f"{metadata.namespace}/{metadata.name}".removeprefix("/")
                    self._first = key, metadata.version

    def end(self) -> Answer:
        """The list's metadata."""
        try:
            meta = self._cutter.finish()
        except BrokenFrameError as error:
            return Lost(str(error))
        return PageEnd(meta.version, "", self._items, None, *self._first)


class _BatchBuilder:
    """A batch in the making."""

    __slots__ = (
        "_failed",
        "_failure",
        "_name",
        "_store",
        "_unusable",
        "_why",
        "events",
        "foreign",
        "live",
        "skipped",
    )

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self._unusable: list[str | None] = []
        self.skipped = 0
        self._why = ""
        self._failed = 0
        self._failure = ""
        self.events: list[WatchEvent] = []
        self.live = False
        self.foreign = False

    def skip(self, why: str) -> None:
        """Something is left out, which is said once per batch (S32)."""
        self.skipped += 1
        self._why = self._why or why

    def refuse(self, error: UnusableObjectError) -> None:
        """An object is left out. It counts as present, if its key is known."""
        self._store.count_unusable()
        self.skip(str(error))
        self._unusable.append(error.key)

    def fail(self, received: Received) -> None:
        """The transform failed on an object: what is to be kept of it, the store knows (S17)."""
        self._failed += 1
        self._failure = self._failure or received.failure

    def batch(
        self,
        version: str,
        *,
        mark: bool = False,
        error: StatusError | None = None,
        broken: str = "",
    ) -> Batch:
        """What was gathered, and how it ends."""
        if self.skipped:
            _logger.warning("%s: skipped %d of what came: %s", self._name, self.skipped, self._why)
        if self._failed:
            self._store.count_failures(self._failed)
        return Batch(
            self.events,
            version,
            self.live,
            tuple(self._unusable),
            mark,
            error,
            broken,
            self._failed,
            self._failure,
            self.foreign,
        )


class _Details(msgspec.Struct):
    name: str = ""


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_decoder = msgspec.json.Decoder(_Status)


def status_of(body: bytes) -> StatusError | None:
    """The Status that these bytes are, None if they are no JSON object, or one of odd fields."""
    if len(body) > _LARGEST_STATUS:
        return None
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = _decoder.decode(body)
        name = found.details.name if found.details is not None else ""
        return StatusError(found.code, found.reason, found.message, name)
    return None


def is_json(headers: Mapping[str, str]) -> bool:
    """The answer says that it is JSON, or nothing about it."""
    kind = headers.get("Content-Type") or ""
    return not kind or kind.partition(";")[0].strip().lower() == "application/json"


def refusal(code: int, headers: Mapping[str, str], body: bytes, now: float) -> Refused:
    """An answer that is not what was asked for. ``now`` is wall time, for a Retry-After date."""
    if code == 200:
        kind = headers.get("Content-Type")
        return Refused(StatusError(code, "", f"the answer is {kind}, not JSON"))
    found = status_of(body)
    if found is None or not (found.message or found.reason):
        message = body[:_SHOWN_TEXT].decode(errors="replace")
        found = StatusError(code, "", message or "no more is said")
    else:
        found = StatusError(code, found.reason, found.message, found.name)
    return Refused(found, retry_after(headers, now))


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, whether the header says seconds or a date; None without a sane one.

    >>> retry_after({"Retry-After": "5"}, 0.0)
    5.0
    >>> retry_after({"Retry-After": "Thu, 01 Jan 1970 00:01:00 GMT"}, 20.0)
    40.0
    """
    said = (headers.get("Retry-After") or "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:10])
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(said).timestamp() - now)
    return None


class NewsReading:
    """Reads a watch only for its versions: how far it has come, and what changed on the way."""

    def __init__(self, start: str) -> None:
        self.changed = start
        """The newest change; the start if there was none."""
        self.passed = start
        """Up to here there was no other."""
        self._cutter = LineCutter()

    def feed(self, chunk: bytes) -> None:
        """A part of the body. Raises `BrokenFrameError` where it makes no sense, or is an error."""
        for line in self._cutter.feed(chunk):
            type_, data = proved_event(line)
            if type_ not in _CHANGES and type_ != "BOOKMARK":
                raise broken("a line", line, "it is an error")
            try:
                version = _item.decode(data).metadata.version
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise broken("a line", line, str(error)) from None
            self.passed = version
            if type_ in _CHANGES:
                self.changed = version
