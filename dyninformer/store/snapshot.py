"""A frozen view of a store, and its form on disk.

A snapshot's file is one zstd frame of lines of JSON: first
``{"format": "dyninformer-snapshot", "version": 1, "group": "apps", "api_version": "v1",
"resource": "statefulsets", "objects": 2}``, then so many objects, one a line. ``zstdcat`` shows it.
To load one reads text and does nothing else.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import zstandard

from dyninformer.errors import DynInformerError
from dyninformer.resource import GroupVersionResource
from dyninformer.store.changes import Payload
from dyninformer.store.codec import Codec
from dyninformer.store.holdings import ByNamespace, Holdings
from dyninformer.store.indexers import Indexing
from dyninformer.store.receiving import Receiver
from dyninformer.store.refused import UnusableObjectError
from dyninformer.types import Keys, Object

_FORMAT = "dyninformer-snapshot"
_LONGEST_LINE = 64 << 20


class SnapshotError(DynInformerError, ValueError):
    """A file that is no snapshot, or not a whole one."""


class _Header(msgspec.Struct):
    format: str
    version: int
    group: str
    api_version: str
    resource: str
    objects: int


class View:
    """What a store held at one moment; immutable, for any thread.

    It shares the store's entries, so that it costs little, and iterates over objects decoded
    one at a time, each the caller's own.
    """

    def __init__(self, gvr: GroupVersionResource, codec: Codec, entries: ByNamespace) -> None:
        """The entries are by namespace and key, and do not change any more."""
        self.gvr = gvr
        self.codec = codec
        self._entries = entries

    def keys(self) -> Keys:
        """All keys, in the order of the store."""
        return [key for entries in self._entries.values() for key in entries]

    def get(self, key: str) -> Payload | None:
        """The entry of a key."""
        namespace, slash, _ = key.partition("/")
        return self._entries.get(namespace if slash else "", {}).get(key)

    def items(self) -> Iterator[tuple[str, Payload]]:
        """Keys and entries."""
        for entries in self._entries.values():
            yield from entries.items()

    def __iter__(self) -> Iterator[Object]:
        """The objects."""
        decode = self.codec.decode
        for entries in self._entries.values():
            for payload in entries.values():
                yield decode(payload)

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __repr__(self) -> str:
        return f"View({self.gvr}, {len(self)} objects)"

    def save(self, path: str | Path) -> None:
        """Write it to a file that nobody else may read, all or nothing."""
        target = Path(path)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with open(descriptor, "wb") as file:  # mkstemp made it for its owner alone
                with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as writer:
                    self._write(writer)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise

    def _write(self, writer: Any) -> None:
        gvr = self.gvr
        header = _Header(_FORMAT, 1, gvr.group, gvr.version, gvr.resource, len(self))
        writer.write(msgspec.json.encode(header) + b"\n")
        for _key, payload in self.items():  # noqa: PERF102 - a view is no dict, it has no values()
            data = self.codec.plain(payload)
            # JSON has line ends only between its tokens.
            line = data if b"\n" not in data else msgspec.json.format(data, indent=-1)
            writer.write(line + b"\n")

    @classmethod
    def load(cls, path: str | Path) -> View:
        """Read what ``save`` wrote."""
        with open(path, "rb") as file:
            lines = _lines(file, path)
            header, gvr = _header(next(lines, b""), path)
            codec = Codec()
            entries = _entries(lines, codec, path)
        view = cls(gvr, codec, entries)
        if len(view) != header.objects:
            raise SnapshotError(
                f"{path} is cut short: it has {len(view)} of {header.objects} objects"
            )
        return view


def _lines(file: IO[bytes], path: str | Path) -> Iterator[bytes]:
    with zstandard.ZstdDecompressor().stream_reader(file) as reader:
        rest = b""
        while True:
            try:
                chunk = reader.read(1 << 20)
            except zstandard.ZstdError as error:
                raise SnapshotError(f"{path} is no snapshot: {error}") from None
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
            if not chunk:
                break
            if len(rest) > _LONGEST_LINE:
                raise SnapshotError(f"{path} is no snapshot: it has an endless line")
    if rest:
        raise SnapshotError(f"{path} is cut short, in the middle of an object")


def _header(line: bytes, path: str | Path) -> tuple[_Header, GroupVersionResource]:
    try:
        header = msgspec.json.decode(line, type=_Header)
        gvr = GroupVersionResource(header.group, header.api_version, header.resource)
    except (msgspec.MsgspecError, ValueError) as error:
        raise SnapshotError(f"{path} is no snapshot of dyninformer: {error}") from None
    if header.format != _FORMAT:
        raise SnapshotError(f"{path} is no snapshot of dyninformer")
    if header.version != 1:
        raise SnapshotError(
            f"{path} is a snapshot of format {header.version}; this release reads format 1"
        )
    return header, gvr


def _entries(lines: Iterator[bytes], codec: Codec, path: str | Path) -> ByNamespace:
    receiver = Receiver(Holdings(Indexing({}, _no_index)), None, metadata_only=False)
    entries: ByNamespace = {}
    for number, line in enumerate(lines, 2):
        try:
            received = receiver.receive(line)
        except UnusableObjectError as error:
            raise SnapshotError(f"{path}, line {number}: {error}") from None
        if received.data is not None:
            entries.setdefault(received.namespace, {})[received.key] = codec.pack(received.data)
    return entries


def _no_index(name: str, error: BaseException) -> None:
    """There are no index functions that could fail."""
