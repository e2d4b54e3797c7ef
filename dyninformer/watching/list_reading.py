"""From the bytes of a list to its items, and to what it says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from dyninformer.store.refused import TransformError, UnusableObjectError
from dyninformer.watching.answers import Answer, Lost, PageEnd
from dyninformer.watching.frames import BrokenFrameError, ItemCutter
from dyninformer.watching.gathering import Gathered, Receiving

Items: TypeAlias = list[bytes]

_MOST_SKIPPED = 5000
"""In one batch. It takes long to say of an item what is wrong with it, and of two bytes there may
be many; between batches a stop is looked for (S34)."""


class ListReading:
    """Reads the items of a list, one page, as they arrive.

    The store reads each item anyway, so that they are cut on trust: see `ItemCutter`.
    """

    def __init__(self, store: Receiving, name: str) -> None:
        self._store = store
        self._name = name
        self._cutter = ItemCutter(on_trust=True)
        self._items = 0
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
        except TransformError as error:
            yield self._gathered.fail(error)
        else:
            if self._items > before:
                yield self._gathered.batch("")

    def end(self) -> Answer:
        """The page's metadata, unless the body was cut short or is no list."""
        try:
            meta = self._cutter.finish()
        except BrokenFrameError as error:
            return Lost(str(error))
        if not meta.kind.endswith("List"):
            return Lost(f"the answer is of kind {meta.kind[:40]!r}, which is no list")
        return PageEnd(meta.version, meta.continue_, self._items, meta.remaining)

    def _read(self, items: Items) -> Iterator[Answer]:
        """Have the store read the items; if one turns out to be none, cut anew from there on."""
        cutter, receive, events = self._cutter, self._store.receive, self._gathered.events
        api_version, kind = cutter.api_version, cutter.kind.removesuffix("List")
        for at, item in enumerate(items):
            try:
                events.append(("ADDED", receive(item, api_version, kind)))
            except UnusableObjectError as error:
                if cutter.trusted:
                    self._items += at
                    yield from self._read(cutter.again(items[at:]))
                    return
                self._gathered.refuse(error)
                if self._gathered.skipped == _MOST_SKIPPED:
                    yield self._gathered.batch("")
                    self._gathered = Gathered(self._store, self._name)
                    events = self._gathered.events
        self._items += len(items)


class RevisionReading:
    """Reads how far the server has come off a list whose items nobody wants."""

    def __init__(self) -> None:
        self._cutter = ItemCutter()

    def feed(self, chunk: bytes) -> Iterator[Answer]:
        """Nothing before the end, unless it makes no sense."""
        try:
            self._cutter.feed(chunk)
        except BrokenFrameError as error:
            yield Lost(str(error))

    def end(self) -> Answer:
        """The list's metadata."""
        try:
            meta = self._cutter.finish()
        except BrokenFrameError as error:
            return Lost(str(error))
        return PageEnd(meta.version)
