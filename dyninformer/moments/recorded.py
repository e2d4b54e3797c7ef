"""Recordings: a header, then a line of JSON per change, in zstd that can be read while it grows.

The first line says which resources are recorded, and what a server must know to serve them
again. Each later line has a ``time`` and a ``type``: ADDED, MODIFIED and DELETED with the
``gvr`` and the ``object``, RESOURCE for one that came later, END for the clean end.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Self, TypeAlias

import msgspec
import zstandard

from dyninformer.errors import UnreadableFileError
from dyninformer.jsonpath.json_bytes import decoded
from dyninformer.moments.saved import MAGIC, WINDOW, errors_name, require_replaceable
from dyninformer.resource import GroupVersionResource
from dyninformer.types import Object

Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]

_FORMAT: Final = "dyninformer-recording"
_VERSION: Final = 1
_FRAME_BYTES: Final = 8 << 20  # of plain text; a frame has a checksum, and can be read alone
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})
_LINE_BYTES: Final = 64 << 20  # no object is as large: a file that has such a line is none of ours
_CHUNK: Final = 4096  # before the place where a file is broken, as much may be lost
_YEARS: Final = range(2, 9999)  # a time in one of them can be shown in any zone
_NO_LINE: Final = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)
_PIECE: Final = 1 << 16  # of the text, however well it is compressed


class ColumnDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A printer column, as the CRD declared it."""

    name: str
    type: str
    path: str
    priority: int = 0


class ResourceDefinition(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a server must know of a resource to serve it."""

    gvr: str
    kind: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[ColumnDefinition, ...] = ()

    @property
    def parsed(self) -> GroupVersionResource:
        """Its name as a GroupVersionResource; ValueError if it is malformed."""
        return GroupVersionResource.parse(self.gvr)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line."""

    format: str = _FORMAT
    version: int = _VERSION
    time: Moment
    resources: tuple[ResourceDefinition, ...]


class RecordingLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """Any other line."""

    time: Moment
    type: str
    gvr: str = ""
    initial: bool = False
    """It was there when the recording began."""
    missed: bool = False
    """A deletion that nobody saw: this may not be the object's last state."""
    object: Object = {}
    resource: ResourceDefinition | None = None
    events: int = 0
    objects: int = 0


class RecordingWriter:
    """Writes a recording that only its owner can read. For one thread.

    What `flush` has written can be read, whatever becomes of this process.
    """

    def __init__(
        self, path: Path, resources: tuple[ResourceDefinition, ...], *, force: bool
    ) -> None:
        if force:
            require_replaceable(path)
            path.unlink(missing_ok=True)
        self._path = path
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        self._file = os.fdopen(number, "wb", buffering=0)
        self._packer = _Packer() if path.suffix == ".zst" else None
        self._waiting = bytearray()
        self.written = 0
        """Bytes in the file."""
        self.write(Header(time=now(), resources=resources))
        try:
            self.flush()
        except BaseException:
            self._file.close()
            raise

    def write(self, line: Header | RecordingLine) -> None:
        """Keep a line, for the next `flush`."""
        self._waiting += encoded(line)
        self._waiting += b"\n"

    def flush(self) -> None:
        """Have everything in the file."""
        if not self._waiting:
            return
        plain = bytes(self._waiting)
        self._waiting.clear()
        self._append(plain if self._packer is None else self._packer.pack(plain))

    def close(self, *, events: int, objects: int) -> None:
        """Write the end, and close the file."""
        self.write(RecordingLine(now(), "END", events=events, objects=objects))
        self.flush()
        if self._packer is not None:
            self._append(self._packer.end())
        with errors_name(self._path):
            os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        with errors_name(self._path):
            while view:  # a disk that is nearly full takes a part
                view = view[self._file.write(view) :]
        self.written += len(data)


class _Packer:
    """Compresses pieces so that each can be read as soon as it is written."""

    def __init__(self) -> None:
        self._context = zstandard.ZstdCompressor(write_checksum=True)
        self._frame = self._context.compressobj()
        self._size = 0

    def pack(self, data: bytes) -> bytes:
        packed: bytes = self._frame.compress(data)
        self._size += len(data)
        if self._size >= _FRAME_BYTES:
            return packed + self.end()
        return packed + self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def end(self) -> bytes:
        """The end of the frame; the next begins with the next piece."""
        last: bytes = self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)
        self._frame, self._size = self._context.compressobj(), 0
        return last


def now() -> datetime:
    """This moment, as recordings tell time."""
    return datetime.fromtimestamp(time.time(), UTC)


def encoded(line: Header | RecordingLine | Object) -> bytes:
    """It as JSON on one line."""
    try:
        return msgspec.json.encode(line)
    except (OverflowError, UnicodeEncodeError):  # past 64 bits; half of a character
        return json.dumps(msgspec.to_builtins(line), separators=(",", ":")).encode()


class BrokenRecordingError(UnreadableFileError):
    """A recording that ends before its end, or has a line that makes no sense."""


class RecordingReader:
    """Reads a recording, compressed or not, line by line. For one thread."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        if not self._file.seekable():
            self._file.close()
            raise UnreadableFileError(
                f"{path} is a pipe, and a recording is read more than once: write it to a file, "
                "and give that",
                offset=0,
            )
        self.size = os.fstat(self._file.fileno()).st_size
        self._number = 0
        self._last: datetime | None = None
        try:
            self._texts = self._read()
            self.header = self._header(path)
        except BaseException:
            self._file.close()
            raise

    @property
    def position(self) -> int:
        """How many bytes of the file have been read."""
        return self._file.tell()

    def lines(self) -> Iterator[RecordingLine]:
        """The lines up to the end; BrokenRecordingError where it breaks off."""
        for text in self._texts:
            try:
                line = _line(text)
            except _NO_LINE as error:
                raise self._broken(
                    f"{self._place()} is not a line of a recording: {error}"
                ) from None
            self._last = line.time
            if line.type == "END":
                return
            yield line
        raise self._broken(
            f"{self._place()}: the recording ends without its end: the recorder was killed, "
            "or the file was cut"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _header(self, path: Path) -> Header:
        try:
            text = next(self._texts, None)
        except BrokenRecordingError as error:
            what = f"{path} is not a recording of dyninformer: {error}"
            raise UnreadableFileError(what, offset=0) from None
        if text is None:
            raise UnreadableFileError(
                f"{path} has nothing in it: its recorder has just begun, or was killed", offset=0
            )
        try:
            head = msgspec.json.decode(text, type=Header)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            head = None
        if head is None or head.format != _FORMAT:
            raise UnreadableFileError(
                f"{path} is not a recording of dyninformer: its first line says otherwise",
                offset=0,
            )
        if head.version > _VERSION:
            raise UnreadableFileError(
                f"{path} is of version {head.version}, and this dyninformer reads up to "
                f"{_VERSION}: use a later one",
                offset=0,
            )
        try:
            _check_time(head.time)
            for resource in head.resources:
                _ = resource.parsed
        except ValueError as error:
            raise UnreadableFileError(
                f"{path} cannot be read: its first line makes no sense ({error})", offset=0
            ) from None
        self._last = head.time
        return head

    def _read(self) -> Iterator[bytes]:
        """The whole lines that can be read; BrokenRecordingError if the rest cannot."""
        rest = bytearray()
        try:
            for piece in self._unpacked():
                *texts, last = piece.split(b"\n")
                for text in texts:
                    self._number += 1
                    whole, rest = bytes(rest + text) if rest else text, bytearray()
                    yield whole
                rest += last
                if len(rest) > _LINE_BYTES:
                    break
        except zstandard.ZstdError as error:
            self._number += 1
            raise self._broken(f"{self._place()}: the rest cannot be read: {error}") from None
        self._number += 1
        if rest:
            why = "is cut" if len(rest) <= _LINE_BYTES else "is too long"
            raise self._broken(f"{self._place()} {why}")

    def _broken(self, message: str) -> BrokenRecordingError:
        return BrokenRecordingError(message, offset=self.position)

    def _unpacked(self) -> Iterator[bytes]:
        """The file's text in pieces, unpacked if it is packed."""
        beginning = self._file.read(len(MAGIC))
        self._file.seek(0)
        if beginning != MAGIC:
            while chunk := self._file.read(_CHUNK):
                yield chunk
            return
        context = zstandard.ZstdDecompressor(max_window_size=WINDOW)
        text = context.stream_reader(
            self._file, read_size=_CHUNK, read_across_frames=True, closefd=False
        )
        while piece := text.read1(_PIECE):
            yield piece

    def _place(self) -> str:
        moment = (
            f", after {self._last.astimezone().isoformat(' ', 'seconds')}" if self._last else ""
        )
        return f"line {self._number}{moment}"


def _line(text: bytes) -> RecordingLine:
    line = msgspec.convert(decoded(text), RecordingLine)
    _check_time(line.time)
    if line.resource is not None:
        _ = line.resource.parsed
    if line.gvr and line.type not in _CHANGES:
        raise ValueError(f"{line.type!r} is no type of a change")
    if line.type in _CHANGES:
        GroupVersionResource.parse(line.gvr)
        if not isinstance(line.object.get("metadata"), dict):
            raise ValueError("its object has no metadata")
    return line


def _check_time(moment: datetime) -> None:
    """ValueError for what only a damaged or a made-up file says."""
    if moment.year not in _YEARS:
        raise ValueError(f"its time is of the year {moment.year}")
