"""From the bytes of an answer to what the protocol is told of it.

Each answer has a reading of its own, fed with the chunks of the body as they come. Objects
go through `Store.receive` here, outside every lock; what cannot be kept is skipped, counted
by the store, and said once per chunk (S32).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol, TypeAlias

import msgspec

from dyninformer.jsonpath.json_bytes import decoded_size
from dyninformer.store import versions
from dyninformer.store.receive import UnusableObjectError
from dyninformer.store.store import Store
from dyninformer.watching.answers import (
    Answer,
    Batch,
    Document,
    Ended,
    EventType,
    Lost,
    StatusError,
)
from dyninformer.watching.broken_frames import broken
from dyninformer.watching.frames import (
    BrokenFrameError,
    LineCutter,
    cut_event,
    proved_event,
)
from dyninformer.watching.gathering import Gathered
from dyninformer.watching.statuses import status_of

MARK: Final = "k8s.io/initial-events-end"
LARGEST_DOCUMENT: Final = 64 << 20
"""So many bytes of memory may a document take when it is decoded. Discovery of some thousand CRDs
takes a third of it."""

_CHANGES: Final[dict[str, EventType]] = {
    "ADDED": "ADDED",
    "MODIFIED": "MODIFIED",
    "DELETED": "DELETED",
}

Lines: TypeAlias = list[bytes]


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
        while (batch := self._batch(lines)) is not None:
            yield batch

    def end(self) -> Answer:
        """A clean end in the middle of a line is none."""
        if rest := self._cutter.rest.strip():
            return Lost(
                f"the stream ended in the middle of a line, after {len(rest):,} bytes of it"
            )
        return Ended()

    def _batch(self, lines: Iterator[bytes]) -> Batch | None:
        """What the lines say, up to the first that is more than a change."""
        gathered = Gathered(self._store, self._name)
        receive, append = self._store.receive, gathered.events.append
        begin, any_line = self._newest, False
        for line in lines:
            any_line = True
            try:
                type_, data = cut_event(line)
                if type_ not in _CHANGES:
                    batch = self._special(type_, data, line, begin, gathered)
                    if batch is not None:
                        return batch
                    continue
                deleted = type_ == "DELETED"
                try:
                    received = receive(data, deleted=True) if deleted else receive(data)
                except UnusableObjectError:
                    proved = proved_event(line)[1]
                    if proved == data:
                        raise
                    # It was cut on trust, and is none (S32).
                    received = receive(proved, deleted=deleted)
                if self._start is None or self._is_news(received.version):
                    append((_CHANGES[type_], received))
                    if received.failure:
                        gathered.fail(received)
                gathered.live = gathered.live or type_ != "ADDED"
            except BrokenFrameError as error:
                return gathered.batch(self._since(begin), broken=str(error))
            except UnusableObjectError as error:
                self._pass(error.version)
                gathered.refuse(error)
        return gathered.batch(self._since(begin)) if any_line else None

    def _special(
        self, type_: str, data: bytes, line: bytes, begin: str, gathered: Gathered
    ) -> Batch | None:
        """A line that is no change; the batch that it ends, if it does."""
        gathered.live = True
        if type_ == "BOOKMARK":
            marked = self._bookmarked(data, line)
            return gathered.batch(self._newest, mark=True) if marked else None
        if type_ == "ERROR":
            error = status_of(data) or status_of(proved_event(line)[1])
            error = error or StatusError(message="an ERROR event without a Status")
            return gathered.batch(self._since(begin), error=error)
        proved_event(line)
        gathered.skip(f"an event of the unknown type {type_[:20]!r}")
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
            proved = proved_event(line)[1]
            if proved != data:
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
        self._body = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Lost]:
        """Nothing before the end, unless it is too much."""
        self._body += chunk
        if len(self._body) > LARGEST_DOCUMENT:
            yield self._too_large()

    def end(self) -> Document | Lost:
        """The object; an empty one if it was none."""
        found = self.value()
        if isinstance(found, Lost):
            return found
        return Document(found if isinstance(found, dict) else {})

    def value(self) -> object:
        """What the body says, None if it is no JSON, `Lost` if that would take too much memory."""
        if decoded_size(self._body) > LARGEST_DOCUMENT:
            return self._too_large()
        try:
            return msgspec.json.decode(self._body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def _too_large(self) -> Lost:
        self._body = bytearray()
        return Lost(f"the answer would take more than {LARGEST_DOCUMENT:,} bytes of memory")
