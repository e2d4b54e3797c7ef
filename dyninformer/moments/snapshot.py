"""A cache as it was at one moment: read as a lister is, compared with another, kept in a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from dyninformer.checked import checked, checked_path, wrong
from dyninformer.discovery.known import Known
from dyninformer.lister import GenericLister, KeyRules
from dyninformer.moments import saved
from dyninformer.moments.difference import Difference
from dyninformer.options import ALL_NAMESPACES, IndexFunction, checked_indexers
from dyninformer.pickling import NotPickled
from dyninformer.printable import counted, printable
from dyninformer.resource import GroupVersionResource
from dyninformer.store.frozen import FrozenStore

if TYPE_CHECKING:
    from dyninformer.store.store import Store

_LARGEST: Final = 2 << 30


class Snapshot(NotPickled, GenericLister):
    """The objects of one collection as they were at one moment. It never changes.

    It has all the reads of a `GenericLister`, by index too, and shares what the cache holds: it
    costs a pointer for each object, and no copy of one. From any thread.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     before = namespaces.snapshot()
    ...     namespaces.patch("default", None, {"metadata": {"labels": {"a": "b"}}}, wait=True)
    ...     after = namespaces.snapshot()  # doctest: +ELLIPSIS
    {...}
    >>> print(len(before), before.get("default")["metadata"]["labels"].get("a"))
    4 None
    >>> for changed in after.diff(before).changed:
    ...     print(changed.key, changed.changes())
    default [Change(path='.metadata.labels.a', old=None, new='b')]
    """

    send_instead = "the path of a file that snapshot.save(path) wrote"

    def __init__(
        self,
        store: FrozenStore,
        *,
        time: datetime,
        resource_version: str,
        namespaces: Iterable[str] = ALL_NAMESPACES,
        known: Known | None = None,
    ) -> None:
        super().__init__(store, lambda: True, KeyRules(store, tuple(namespaces)), known)
        self._frozen = store
        self.time = time
        """When it was so."""
        self.resource_version = resource_version
        """The server's version of which it is the state. Of several namespaces, each of which has a
        stream of its own, the lowest; "" where one of them was not synced."""

    @property
    def gvr(self) -> GroupVersionResource:
        """Which resource."""
        return self._frozen.gvr

    def snapshot(self) -> Snapshot:
        """Itself: it never changes."""
        return self

    def diff(self, before: Snapshot) -> Difference:
        """What was added, removed and changed between an earlier snapshot and this one.

        What is one and the same in the cache is not looked at, so that it takes as long as there
        are changes. Two states of an object are the same if they have the same uid, and differ at
        most in ``metadata.managedFields`` and ``metadata.resourceVersion``.
        """
        give = "a Snapshot, as certs.snapshot() makes one"
        checked("before", before, Snapshot, give)
        if before.gvr != self.gvr:
            raise ValueError(f"before is of {before.gvr}, and this snapshot of {self.gvr}")
        return Difference(before, self, before._frozen.view(), self._frozen.view())

    def add_indexers(self, indexers: Mapping[str, IndexFunction]) -> None:
        """Have more indexes; each is built when it is first asked for."""
        self._frozen.add_indexers(checked_indexers(indexers))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file that only you can read, which is replaced whole or not at all.

        What is there and is no ordinary file, such as a device or a link, is a FileExistsError.

        The file is lines of JSON in zstd: ``zstd -dc FILE`` shows them. Indexes that are paths are
        kept by their text, functions are not; and so is what the CRD declares, for tables.
        """
        saved.write(
            _path(path),
            self._frozen.view(),
            time=self.time,
            version=self.resource_version,
            namespaces=self._rules.namespaces,
            indexers=self._frozen.get_indexers(),
            declared=self.held.known.declared(),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, most_bytes: int = _LARGEST) -> Self:
        """Read what `save` wrote. Nothing in it is executed.

        ``most_bytes`` is the size up to which the objects may come when they are unpacked, each
        counted as 1 kB at least. UnreadableFileError says what is wrong with the file, where, and
        what to do.
        """
        if isinstance(most_bytes, bool) or not isinstance(most_bytes, int):
            raise wrong("most_bytes", most_bytes, "a whole number of bytes")
        read = saved.read(_path(path), most_bytes)
        return cls(
            FrozenStore(read.view, read.indexers),
            time=read.time,
            resource_version=read.version,
            namespaces=read.namespaces,
            known=Known(read.view.gvr, lambda _: read.declared),
        )

    def __repr__(self) -> str:
        told = printable(self.resource_version)
        version = f", version {told}" if told else ""
        return (
            f"<Snapshot of {self.gvr}, {counted(len(self), 'object')}, "
            f"{self.time.isoformat(' ', 'seconds')}{version}>"
        )

    def _missing(self, key: str) -> str:
        return f"no {self.gvr} {key!r} in the snapshot of {self.time.isoformat(' ', 'seconds')}"


def snapshot_of(store: Store, namespaces: tuple[str, ...], known: Known | None = None) -> Snapshot:
    """What a store holds at this moment."""
    now = datetime.now(UTC)
    view, version = store.moment(namespaces)
    frozen = FrozenStore(view, store.get_indexers())
    return Snapshot(frozen, time=now, resource_version=version, namespaces=namespaces, known=known)


def _path(given: object) -> Path:
    return Path(checked_path("path", given, "the name of a file")).expanduser()
