"""Snapshots in files: lines of JSON in zstd, with their number and a checksum at the end.

The first line says what it is, and what its CRD declares, the last one how many objects there are
and the SHA-256 of all lines before it. Between them each object has a line, as the server sent it,
with its uid and version beside it where a transform has changed them.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, NamedTuple, NoReturn, TypeAlias

import msgspec
import zstandard

from dyninformer.discovery.declared import Declared
from dyninformer.discovery.resources import PrinterColumn
from dyninformer.errors import JSONPathError, UnreadableFileError
from dyninformer.jsonpath import JSONPath, PathIndex
from dyninformer.options import IndexFunction
from dyninformer.resource import GroupVersionResource
from dyninformer.store.codec import Identity, on_fresh_stack, packed_identity
from dyninformer.store.indexes import NAMESPACE, as_function
from dyninformer.store.receive import Received, UnusableObjectError
from dyninformer.store.snapshot import View
from dyninformer.store.store import Store

Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
Texts: TypeAlias = tuple[str, ...]

MAGIC: Final = b"\x28\xb5\x2f\xfd"
"""What a zstd frame begins with."""
WINDOW: Final = 8 << 20
"""What unpacking a frame may keep at hand: what the default levels of zstd use at most."""
END_OF_FILE: Final = b"\x50\x2a\x4d\x18\0\0\0\0"
"""An empty frame that zstd passes over: where it is missing, so is what was before it."""

_FORMAT: Final = "dyninformer-snapshot"
_VERSION: Final = 1
_PIECE: Final = 1 << 16  # of the text, however well it is compressed
_READ: Final = 1 << 12  # of the file: an offset is known as exactly as that
_LONGEST_LINE: Final = 17 << 20  # an object of 16 MiB, and what is around it
_SMALLEST: Final = 1024  # bytes that an object counts as at least: its key and place take memory
_TOGETHER: Final = 256  # objects
_MOST_INDEXERS: Final = 1000
_MOST_COLUMNS: Final = 1000

_OBJECT: Final = b'{"object":'
_BESIDE: Final = b',"object":'
_AGAIN: Final = "Take the snapshot again, or another copy of the file."


class _Declared(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What its CRD declared, as far as that was known."""

    columns: tuple[_Column, ...] = ()
    list_keys: dict[str, Texts] = {}
    schema: dict[str, Any] = {}
    namespaced: bool | None = None


class _Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of its columns, as a CRD names what it has."""

    name: str
    type: str
    path: str = msgspec.field(name="jsonPath")
    priority: int = 0


class _Header(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first line."""

    format: str
    version: int
    gvr: str
    time: Moment
    resource_version: str
    namespaces: Texts
    indexers: dict[str, Texts]
    objects: int
    size: int
    """Bytes of the objects."""
    declared: _Declared = _Declared()


class _End(msgspec.Struct, frozen=True):
    """The last line."""

    end: int
    """Objects."""
    sha256: str


class _Beside(msgspec.Struct, frozen=True):
    """Uid and version of an object, where it does not say them as the server did."""

    uid: str
    version: str


class Saved(NamedTuple):
    """What a file has."""

    view: View
    time: datetime
    version: str
    namespaces: Texts
    indexers: dict[str, IndexFunction]
    declared: Declared


# -- writing -----------------------------------------------------------------------------------


def write(
    path: Path,
    view: View,
    *,
    time: datetime,
    version: str,
    namespaces: Texts,
    indexers: Mapping[str, IndexFunction],
    declared: Declared,
) -> None:
    """Write a snapshot, so that at any moment the file is the old one or the new one."""
    plain = view.codec.plain
    header = _Header(
        format=_FORMAT,
        version=_VERSION,
        gvr=str(view.gvr),
        time=time,
        resource_version=version,
        namespaces=namespaces,
        indexers={name: paths for name, each in indexers.items() if (paths := _paths(each))},
        objects=len(view),
        size=sum(len(plain(entry)) for _, entry in view.items()),
        declared=_Declared(
            columns=tuple(_Column(*each) for each in declared.columns),
            list_keys={path: tuple(names) for path, names in declared.list_keys.items()},
            schema=msgspec.json.decode(declared.schema) if declared.schema else {},
            namespaced=declared.namespaced,
        ),
    )
    with errors_name(path), _replaced(path) as file:
        digest = hashlib.sha256()
        packer = zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False)

        def put(line: bytes) -> None:
            digest.update(line)
            packer.write(line)

        put(msgspec.json.encode(header) + b"\n")
        for _, entry in view.items():  # noqa: PERF102 - a View is no dict, and has no values()
            beside = packed_identity(entry)
            head = (
                _OBJECT
                if beside is None
                else msgspec.json.encode(_Beside(beside.uid, beside.version))[:-1] + _BESIDE
            )
            # In JSON a line break can only be between two tokens.
            put(head + plain(entry).replace(b"\n", b" ") + b"}\n")
        packer.write(msgspec.json.encode(_End(len(view), digest.hexdigest())) + b"\n")
        packer.flush(zstandard.FLUSH_FRAME)
        file.write(END_OF_FILE)


def _paths(given: IndexFunction) -> Texts:
    """The texts of an index's paths; none of a function."""
    function = as_function(given)
    if not isinstance(function, PathIndex):
        return ()
    return tuple(path.expression for path in function.paths)


def require_replaceable(path: Path) -> None:
    """FileExistsError unless the path is free, or names an ordinary file."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise FileExistsError(errno.EEXIST, "not an ordinary file, and not replaced", str(path))


class _replaced:  # noqa: N801 - it is used as a function
    """A new file, in the place of ``path`` once all is on the disk; or none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> BinaryIO:
        if self._path.is_symlink() or not self._path.is_dir():  # of a folder the system says it
            require_replaceable(self._path)
        number, self._name = tempfile.mkstemp(  # for its owner alone
            dir=self._path.parent, prefix=f".{self._path.name[:32]}.", suffix=".tmp"
        )
        self._file: BinaryIO = os.fdopen(number, "wb")
        return self._file

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                Path(self._name).replace(self._path)
                _sync_folder(self._path.parent)
        finally:
            self._file.close()
            with suppress(FileNotFoundError):
                Path(self._name).unlink()


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """An error of the system tells the name that was given, not one that was made up, or none."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None


def _sync_folder(folder: Path) -> None:
    """Have the new name on the disk; some systems cannot open a folder."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


# -- reading -----------------------------------------------------------------------------------


def read(path: Path, most_bytes: int) -> Saved:
    """Read a snapshot; UnreadableFileError if it is not whole, or larger than it may be.

    At any moment there is no more in memory than what the store holds of the objects, and one line.
    """
    with path.open("rb") as file:
        reading = _Reading(path, file, most_bytes)
        try:
            return reading.read()
        except zstandard.ZstdError as error:
            reading.refuse(f"it cannot be unpacked ({error})", _AGAIN)
        except MemoryError:
            reading.refuse("it takes more memory than there is", "Load it where there is more.")


class _Reading:
    """One file that is being read."""

    def __init__(self, path: Path, file: BinaryIO, most_bytes: int) -> None:
        self._path = path
        self._file = file
        self._most_bytes = most_bytes
        self._digest = hashlib.sha256()

    def refuse(self, what: str, then: str, offset: int | None = None) -> NoReturn:
        """Say what is wrong, where, and what to do."""
        at = self._file.tell() if offset is None else offset
        raise UnreadableFileError(
            f"{self._path} is no snapshot that can be read: {what}, near byte {at}. {then}",
            offset=at,
        ) from None

    def read(self) -> Saved:
        """All of it."""
        lines = self._lines()
        first = next(lines, b"")
        header = self._header(first)
        indexers = self._indexers(header)
        gvr = self._gvr(header)
        store = Store(gvr)
        relist, end, size, weight = store.relist(), None, 0, 0
        keys: set[str] = set()
        waiting: list[Received] = []
        for line in lines:
            if not line.startswith(b'{"end":'):
                self._digest.update(line)
                self._digest.update(b"\n")
            else:
                end = self._end(line)
                break
            received = self._object(store, line)
            if received.key in keys:
                self.refuse("it has an object twice", _AGAIN)
            keys.add(received.key)
            data = received.data or b""
            size += len(data)
            weight += max(len(data), _SMALLEST)
            self._check_size(weight)
            waiting.append(received)
            if len(waiting) >= _TOGETHER:
                relist.add(waiting)
                waiting = []
        relist.add(waiting)
        if end is None:
            self.refuse("it ends before its end: it was cut", _AGAIN)
        if end.end != len(keys) or end.sha256 != self._digest.hexdigest():
            self.refuse("its checksum is another one: something in it was changed", _AGAIN)
        if next(lines, None) is not None:
            self.refuse("there is more behind its end", _AGAIN)
        relist.swap(first=True)
        return Saved(
            view=store.view(),
            time=header.time,
            version=header.resource_version,
            namespaces=header.namespaces,
            indexers=indexers,
            declared=self._declared(header),
        )

    def _lines(self) -> Iterator[bytes]:
        """The lines, without their ends."""
        if not self._file.seekable():
            self.refuse("it is a pipe", "Write it to a file, and give that.", 0)
        beginning = self._file.read(len(MAGIC))
        if beginning != MAGIC:
            self.refuse(
                "it does not begin as one", "Give a file that Snapshot.save has written.", 0
            )
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(0, size - len(END_OF_FILE)))
        if self._file.read() != END_OF_FILE:
            self.refuse("it ends before its end: it was cut", _AGAIN)
        self._file.seek(0)
        context = zstandard.ZstdDecompressor(max_window_size=WINDOW)
        text = context.stream_reader(
            self._file, read_size=_READ, read_across_frames=True, closefd=False
        )
        rest = bytearray()
        while piece := text.read(_PIECE):
            at = piece.find(b"\n")
            if at < 0:
                rest += piece
            else:
                rest += piece[:at]
                yield bytes(rest)
                *whole, last = piece[at + 1 :].split(b"\n")
                yield from whole
                rest = bytearray(last)
            if len(rest) > _LONGEST_LINE:
                self.refuse("it has a line that is too long for an object", _AGAIN)
        if rest:
            self.refuse("it ends within a line: it was cut", _AGAIN)

    def _header(self, line: bytes) -> _Header:
        self._digest.update(line)
        self._digest.update(b"\n")
        try:
            kind = msgspec.json.decode(line, type=_Kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            kind = _Kind()
        if kind.format != _FORMAT:
            self.refuse(
                "its first line is that of something else",
                "Give a file that Snapshot.save has written; open_recording reads recordings.",
                0,
            )
        if kind.version != _VERSION:
            self.refuse(
                f"it is of version {kind.version}, and this dyninformer reads version {_VERSION}",
                "Use the version of dyninformer that has written it, or a later one.",
                0,
            )
        try:
            header = msgspec.json.decode(line, type=_Header)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.refuse(f"its first line makes no sense ({error})", _AGAIN, 0)
        try:
            header = msgspec.structs.replace(header, time=header.time.astimezone(UTC))
        except OverflowError as error:
            self.refuse(f"its first line makes no sense ({error})", _AGAIN, 0)
        self._check_size(max(header.size, header.objects * _SMALLEST))
        return header

    def _check_size(self, size: int) -> None:
        if size > self._most_bytes:
            self.refuse(
                f"its objects take {size:,} bytes when they are unpacked, and "
                f"{self._most_bytes:,} are allowed",
                f"If you trust it: Snapshot.load(path, most_bytes={size}) or more.",
            )

    def _gvr(self, header: _Header) -> GroupVersionResource:
        try:
            return GroupVersionResource.parse(header.gvr)
        except ValueError as error:
            self.refuse(f"its first line makes no sense ({error})", _AGAIN, 0)

    def _indexers(self, header: _Header) -> dict[str, IndexFunction]:
        if NAMESPACE in header.indexers:
            self.refuse(f"it has an index {NAMESPACE!r}, which each has by itself", _AGAIN, 0)
        if len(header.indexers) > _MOST_INDEXERS:
            self.refuse(f"it has more than {_MOST_INDEXERS} indexes", _AGAIN, 0)
        try:
            return {name: PathIndex(*paths) for name, paths in header.indexers.items() if paths}
        except JSONPathError as error:
            self.refuse(f"one of its indexes cannot be ({error})", _AGAIN, 0)

    def _declared(self, header: _Header) -> Declared:
        found = header.declared
        if len(found.columns) > _MOST_COLUMNS:
            self.refuse(f"it has more than {_MOST_COLUMNS} columns", _AGAIN, 0)
        try:
            for each in found.columns:
                JSONPath(each.path)
        except JSONPathError as error:
            self.refuse(f"one of its columns cannot be ({error})", _AGAIN, 0)
        return Declared(
            columns=tuple(
                PrinterColumn(each.name, each.type, each.path, each.priority)
                for each in found.columns
            ),
            list_keys=found.list_keys,
            schema=msgspec.json.encode(found.schema) if found.schema else b"",
            namespaced=found.namespaced,
        )

    def _object(self, store: Store, line: bytes) -> Received:
        beside, at = None, 0
        if not line.startswith(_OBJECT):
            at = line.find(_BESIDE)
            try:
                beside = msgspec.json.decode(line[: max(at, 0)] + b"}", type=_Beside)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                self.refuse("it has a line that is of no object", _AGAIN)
        data = line[at + len(_BESIDE if beside else _OBJECT) : -1]
        if line[-1:] != b"}" or data[:1] != b"{":
            self.refuse("it has a line that is of no object", _AGAIN)
        received = self._received(store, data)
        if beside is None:
            return received
        return msgspec.structs.replace(
            received,
            uid=beside.uid,
            version=beside.version,
            identity=Identity(beside.uid, beside.version),
        )

    def _received(self, store: Store, data: bytes) -> Received:
        try:
            return store.receive(data)
        except UnusableObjectError:
            pass
        try:  # perhaps the caller is deep in calls, and so is the object
            return on_fresh_stack(store.receive, data)
        except UnusableObjectError as error:
            self.refuse(str(error), _AGAIN)

    def _end(self, line: bytes) -> _End:
        try:
            return msgspec.json.decode(line, type=_End)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.refuse("its last line makes no sense", _AGAIN)


class _Kind(msgspec.Struct, frozen=True):
    """What the first line of any version says."""

    format: str = ""
    version: int = 0
