"""From the bytes of a list to its items, and to what it says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TypeAlias

import msgspec

from dyninformer.store.receive import UnusableObjectError
from dyninformer.store.store import Store
from dyninformer.watching.answers import Answer, Batch, Lost, PageEnd
from dyninformer.watching.frames import BrokenFrameError, ItemCutter
from dyninformer.watching.gathering import Gathered

Items: TypeAlias = list[bytes]

_MOST_SKIPPED = 5000
"""In one batch. It takes long to say of an item what is wrong with it, and of two bytes there may
be many; between batches a stop is looked for (S34)."""


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
        self._gathered = Gathered(store, name)

    def feed(self, chunk: bytes) -> Iterator[Answer]:
        """One batch, if there are whole items; more if many cannot be used."""
        self._gathered = Gathered(self._store, self._name)
        before = self._items
        try:
            yield from self._read(self._cutter.feed(chunk))
            while self._cutter.trusted:
                yield from self._read(self._cutter.more())
        except BrokenFrameError as error:
            yield self._gathered.batch("", broken=str(error))
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

    def _read(self, items: Items) -> Iterator[Answer]:
        """Have the store read the items; if one turns out to be none, cut anew from there on."""
        cutter, receive, events = self._cutter, self._store.receive, self._gathered.events
        api_version, kind = cutter.api_version, cutter.kind.removesuffix("List")
        for at, item in enumerate(items):
            try:
                received = receive(item, api_version, kind)
                events.append(("ADDED", received))
                if received.failure:
                    self._gathered.fail(received)
            except UnusableObjectError as error:
                if cutter.trusted:
                    self._items += at
                    yield from self._read(cutter.again(items[at:]))
                    return
                self._gathered.refuse(error)
                if self._gathered.skipped == _MOST_SKIPPED:
                    yield self._batch()
                    self._gathered = Gathered(self._store, self._name)
                    events = self._gathered.events
        self._items += len(items)

    def _batch(self) -> Batch:
        """What was gathered, and the first key of the page noted."""
        batch = self._gathered.batch("")
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
