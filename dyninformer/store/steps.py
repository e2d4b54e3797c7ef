"""What an object that came does to what is held of its key: decided outside the lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

import msgspec

from dyninformer.store.changes import Change, Fresh, Payload
from dyninformer.store.codec import Codec, identity_aside
from dyninformer.store.equality import same_content
from dyninformer.store.indexers import Indexing, Row
from dyninformer.store.reading import text
from dyninformer.store.receiving import Received
from dyninformer.store.versions import older

WatchType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
WatchEvent: TypeAlias = tuple[WatchType, Received]


class Step(msgspec.Struct, frozen=True, gc=False):
    """A change of one key, and its index values before and after, for the store to make.

    The two rows are one and the same list if no index changes, whatever is in it.
    """

    namespace: str
    change: Change
    old_row: Row
    new_row: Row


Steps: TypeAlias = list[Step]


class Deciding:
    """Compares what came with what is held; immutable, for any thread."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def of_events(
        self,
        events: Iterable[WatchEvent],
        held_of: Callable[[str, str], Payload | None],
        indexing: Indexing,
    ) -> Steps:
        """What events do that came together, one after the other; ``held_of`` a namespace's key."""
        steps: Steps = []
        made: dict[str, Payload | None] = {}
        for type_, received in events:
            key = received.key
            held = made[key] if key in made else held_of(received.namespace, key)
            if type_ == "DELETED":
                step = self.removed(received, held, indexing)
            else:
                step = self.kept(received, held, indexing, live=True)
            if step is not None:
                steps.append(step)
                made[key] = step.change.new
        return steps

    def kept(
        self, received: Received, held: Payload | None, indexing: Indexing, *, live: bool
    ) -> Step | None:
        """An object was added or changed. None if there is nothing to do.

        ``live``: it came as an event, so that it may be older than what is held (S30). A relist
        is the truth, as old as it may be.
        """
        data = received.data
        if held is None:
            if data is None:
                return None
            return self._added(received, data, indexing)
        if data is None:
            return self._without(received, held, indexing)
        plain = self._codec.plain(held)
        if plain == data and received.identity == identity_aside(held):
            return None
        uid, version, old_row = self._held(held, plain, indexing)
        if live and older(received.version, version):
            return None
        if version == received.version and uid == received.uid and same_content(plain, data):
            return None
        recreated = bool(uid and received.uid and uid != received.uid)
        new = self._codec.pack(data, received.identity)
        change = (
            Fresh(received.key, held, new, recreated=recreated, old_plain=plain, new_plain=data)
            if live
            else Change(received.key, held, new, recreated=recreated)
        )
        row = new_row(received, data, indexing)
        if indexing.is_steady and row == old_row:
            # There may be 100,000 such steps at once: they hold no values.
            row = old_row = indexing.no_values
        return Step(received.namespace, change, old_row, row)

    def _added(self, received: Received, data: bytes, indexing: Indexing) -> Step:
        change = Change(received.key, None, self._codec.pack(data, received.identity))
        row = new_row(received, data, indexing)
        return Step(received.namespace, change, indexing.no_values, row)

    def _without(self, received: Received, held: Payload, indexing: Indexing) -> Step | None:
        """Of what was added or changed nothing is to be kept (S17).

        Dropped by the transform, what is held goes. Where that failed, it stays, if it is an
        older state of the same object; of another one that is gone, nobody would tell its end.
        """
        if not received.failure:
            return self.removed(received, held, indexing)
        if not self.is_another(received, held):
            return None
        _, version, old_row = self._held(held, self._codec.plain(held), indexing)
        if older(received.version, version):
            return None
        change = Change(received.key, held, None, final_state_unknown=True)
        return Step(received.namespace, change, old_row, indexing.no_values)

    def is_another(self, received: Received, held: Payload) -> bool:
        """What came is another object of the same name."""
        uid = self._codec.identity(held).uid
        return bool(uid and received.uid and uid != received.uid)

    def removed(self, received: Received, held: Payload | None, indexing: Indexing) -> Step | None:
        """An object was deleted, or left the selection, or the transform dropped it (S6, S17)."""
        if held is None:
            return None
        uid, version, old_row = self._held(held, self._codec.plain(held), indexing)
        if uid and received.uid and uid != received.uid:
            return None
        if older(received.version, version):
            return None
        return Step(
            received.namespace, Change(received.key, held, None), old_row, indexing.no_values
        )

    def missing(self, namespace: str, key: str, held: Payload, indexing: Indexing) -> Step:
        """A relist does not have an object that is held (S13)."""
        old_row = self._held(held, self._codec.plain(held), indexing)[2]
        change = Change(key, held, None, final_state_unknown=True)
        return Step(namespace, change, old_row, indexing.no_values)

    def _held(self, held: Payload, plain: bytes, indexing: Indexing) -> tuple[str, str, Row]:
        head, row = indexing.held(plain)
        uid, version = identity_aside(held) or (text(head[2]), text(head[3]))
        return uid, version, row

    def again(self, step: Step, indexing: Indexing) -> Step:
        """A step with the index values that other index functions give."""
        change = step.change
        old, new = change.old, change.new
        return Step(
            step.namespace,
            change,
            indexing.no_values if old is None else indexing.held(self._codec.plain(old))[1],
            indexing.no_values if new is None else indexing.row_of(self._codec.plain(new)),
        )


def new_row(received: Received, data: bytes, indexing: Indexing) -> Row:
    """The index values of an object, as these index functions give them."""
    return received.row if received.indexing is indexing else indexing.row_of(data)
