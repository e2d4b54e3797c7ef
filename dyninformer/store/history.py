"""The last versions of each object, within a number of bytes that is never exceeded."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from dyninformer.options import ALL_NAMESPACES, History
from dyninformer.store.codec import Entry
from dyninformer.store.decide import Delta, Deltas, InitialDeltas
from dyninformer.types import Key


class Kept(msgspec.Struct, frozen=True, gc=False):
    """One version: the store's own entry, and how it came."""

    entry: Entry
    time: float
    """Seconds since 1970; 0 if it is not known."""
    kind: int = 0
    """`ADDED`, `UPDATED` or `DELETED`; with `INITIAL` or `MISSED`."""


ADDED: Final = 0
UPDATED: Final = 1
DELETED: Final = 2
INITIAL: Final = 4
MISSED: Final = 8

Versions: TypeAlias = tuple[Kept, ...]

# What Python takes beside an entry's own bytes, rounded up: the header of the bytes, the version,
# its time, its places in two containers that may be half empty; for each key its places in two
# dicts, the tuple, and its text. `benchmarks/bench_history.py` compares with what the process has.
_VERSION_BYTES: Final = 208
_KEY_BYTES: Final = 416
_STALE: Final = 1024  # places of versions that are gone, before those are taken out


class VersionHistory:
    """Versions by key, oldest first; the oldest of all goes first when there are too many bytes.

    The store's lock guards it: `note` is called with it held, as the store's changes are told.
    Only `of` may be called without, from any thread.

    An object that has not changed is not in it, since the store has its one version; the first
    change takes the state before it in as well. So a cache in which nothing happens costs nothing.
    """

    def __init__(self, options: History, scopes: Sequence[str]) -> None:
        """``scopes`` are the namespaces that are watched, each by itself."""
        self._in_namespaces = tuple(scopes) != ALL_NAMESPACES
        self._most = options.versions
        self._most_bytes = options.most_bytes
        self._seconds = options.seconds
        self._began: dict[str, float] = {}  # by scope, when its first state came
        self.forget()

    def forget(self) -> None:
        """Let go of all versions."""
        self._versions: dict[Key, Versions] = {}  # the tuples are replaced, never changed
        # One place for each version, in the order in which they came. A version that its key has
        # had too many of is gone before its place comes up: `_skipped` counts those.
        self._order: deque[Key] = deque()
        self._skipped: dict[Key, int] = {}
        self._stale = 0
        self._let_go = bool(self._began)  # some versions were: what is not there may have been
        self.bytes = 0
        """What is held takes so much memory, or less."""

    def note(self, deltas: Deltas) -> None:
        """What has changed, just now."""
        now = time.time()
        if type(deltas) is InitialDeltas:
            self._begin(deltas[0].key, now)
            return
        for delta in deltas:
            self._note(delta, now)
        if self._seconds is not None:
            self._expire(now - self._seconds)

    def of(self, key: Key, current: Entry | None) -> Versions:
        """The versions of a key, whose state is at present ``current``, oldest first."""
        versions = self._versions.get(key, ())
        if self._seconds is not None and versions:
            since = time.time() - self._seconds
            ends = [each.time for each in versions[1:]]
            ends.append(versions[-1].time if current is None else since)
            versions = tuple(each for each, end in zip(versions, ends, strict=True) if end >= since)
        if not versions and current is not None:
            return (self._unchanged(key, current),)
        return versions

    def __len__(self) -> int:
        """The number of versions that are held."""
        return len(self._order) - self._stale

    def _scope(self, key: Key) -> str:
        return key.rpartition("/")[0] if self._in_namespaces else ""

    def _begin(self, key: Key, now: float) -> None:
        """A scope, the key's, has its first state: its objects were there before that."""
        self._began.setdefault(self._scope(key), now)

    def _unchanged(self, key: Key, entry: Entry) -> Kept:
        """The one version of an object that has not changed, or whose versions are all gone."""
        since = 0.0 if self._let_go else self._began.get(self._scope(key), 0.0)
        return Kept(entry, since, ADDED | INITIAL)

    def _note(self, delta: Delta, now: float) -> None:
        key, old, new = delta.key, delta.old, delta.new
        if delta.initial and old is None:
            self._begin(key, now)
            return
        if old is not None and key not in self._versions:
            self._keep(key, self._unchanged(key, old))
        if old is None and new is not None:
            self._keep(key, Kept(new, now, ADDED))
        elif new is not None:
            self._keep(key, Kept(new, now, UPDATED))
        elif old is not None:
            missed = MISSED if delta.final_state_unknown else 0
            self._keep(key, Kept(old, now, DELETED | missed))

    def _keep(self, key: Key, kept: Kept) -> None:
        """Make room for a version first, then hold it."""
        size = _VERSION_BYTES + len(kept.entry)
        before = self._versions.get(key)
        if before is not None and len(before) >= self._most:
            self._drop_oldest(key, before)
            self._skipped[key] = self._skipped.get(key, 0) + 1
            self._stale += 1
            before = self._versions.get(key)
        if size + _KEY_BYTES + len(key) > self._most_bytes:
            # It alone is too much. Without it what came before it would seem to be the newest.
            self._forget(key)
            self._let_go = True
            return
        while self.bytes + size + (0 if key in self._versions else _KEY_BYTES + len(key)) > (
            self._most_bytes
        ):
            self._drop_first()
        before = self._versions.get(key)
        if before is None:
            self.bytes += _KEY_BYTES + len(key)
        self._versions[key] = (kept,) if before is None else (*before, kept)
        self._order.append(key)
        self.bytes += size
        if self._stale > _STALE and self._stale * 2 > len(self._order):
            self._compact()

    def _drop_first(self) -> None:
        """Let go of the oldest version of all."""
        while True:
            key = self._order.popleft()
            skipped = self._skipped.get(key, 0)
            if not skipped:
                self._drop_oldest(key, self._versions[key])
                self._let_go = True
                return
            self._skip(key, skipped)

    def _skip(self, key: Key, skipped: int) -> None:
        self._stale -= 1
        if skipped == 1:
            del self._skipped[key]
        else:
            self._skipped[key] = skipped - 1

    def _drop_oldest(self, key: Key, versions: Versions) -> None:
        self.bytes -= _VERSION_BYTES + len(versions[0].entry)
        if len(versions) > 1:
            self._versions[key] = versions[1:]
        else:
            del self._versions[key]
            self.bytes -= _KEY_BYTES + len(key)

    def _forget(self, key: Key) -> None:
        """Let go of all versions of a key; their places are passed over."""
        versions = self._versions.get(key, ())
        for each in range(len(versions)):
            self._drop_oldest(key, versions[each:])
        if versions:
            self._skipped[key] = self._skipped.get(key, 0) + len(versions)
            self._stale += len(versions)

    def _expire(self, since: float) -> None:
        """Let go of the oldest versions, as far as they ended before then.

        A version ends when the next one of its key comes; the last one goes when nothing has.
        """
        while self._order:
            key = self._order[0]
            skipped = self._skipped.get(key, 0)
            if skipped:
                self._order.popleft()
                self._skip(key, skipped)
                continue
            versions = self._versions[key]
            if versions[len(versions) > 1].time >= since:
                return
            self._order.popleft()
            self._drop_oldest(key, versions)
            self._let_go = True

    def _compact(self) -> None:
        """Take out the places of versions that are gone."""
        order: deque[Key] = deque()
        for key in self._order:
            skipped = self._skipped.get(key, 0)
            if skipped:
                self._skip(key, skipped)
            else:
                order.append(key)
        self._order = order
