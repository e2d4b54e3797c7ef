"""Recordings: a header, then a line of JSON per change, in zstd that can be read while it grows.

The first line says which resources are recorded, and what a server must know to serve them
again. Each later line has a ``time`` and a ``type``: ADDED, MODIFIED and DELETED with the
``gvr`` and the ``object``, RESOURCE for one that came later, END for the clean end.
"""

from __future__ import annotations

import json
import os
import stat
import time
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, Self, TypeAlias

import msgspec
import zstandard

from dyninformer.cli.failing import CommandError
from dyninformer.resource import GroupVersionResource

FORMAT: Final = "dyninformer-recording"
VERSION: Final = 1

_FRAME_BYTES: Final = 8 << 20  # of plain text; a frame has a checksum, and can be read alone

Object: TypeAlias = dict[str, Any]
Texts: TypeAlias = tuple[str, ...]
Resources: TypeAlias = "tuple[Resource, ...]"
Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A printer column, as the CRD declared it."""

    name: str
    type: str
    path: str
    priority: int = 0


class Resource(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a server must know of a resource to serve it."""

    gvr: str
    kind: str
    namespaced: bool
    singular: str = ""
    short_names: Texts = ()
    categories: Texts = ()
    columns: tuple[Column, ...] = ()

    @property
    def parsed(self) -> GroupVersionResource:
        """Its name, taken apart; ValueError if it is none."""
        return GroupVersionResource.parse(self.gvr)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line."""

    format: str = FORMAT
    version: int = VERSION
    time: Moment
    resources: Resources


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """Any other line."""

    time: Moment
    type: str
    gvr: str = ""
    initial: bool = False
    """It was there when the recording began."""
    missed: bool = False
    """A deletion that nobody saw: this may not be the object's last state."""
    object: Object = {}
    resource: Resource | None = None
    events: int = 0
    objects: int = 0


class Recorder:
    """Writes a recording that only its owner can read. For one thread.

    What `flush` has written can be read, whatever becomes of this process.
    """

    def __init__(self, path: Path, resources: Resources, *, force: bool) -> None:
        if force:
            require_replaceable(path)
            path.unlink(missing_ok=True)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        self._file = os.fdopen(number, "wb", buffering=0)
        self._packer = _Packer() if path.suffix == ".zst" else None
        self._waiting = bytearray()
        self.written = 0
        """Bytes in the file."""
        self._put(Header(time=now(), resources=resources))
        self.flush()

    def write(self, line: Line) -> None:
        """Keep a line, for the next `flush`."""
        self._put(line)

    def flush(self) -> None:
        """Have everything in the file."""
        if not self._waiting:
            return
        plain = bytes(self._waiting)
        self._waiting.clear()
        self._append(plain if self._packer is None else self._packer.pack(plain))

    def close(self, *, events: int, objects: int) -> None:
        """Write the end, and close the file."""
        self._put(Line(now(), "END", events=events, objects=objects))
        self.flush()
        if self._packer is not None:
            self._append(self._packer.end())
        os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def _put(self, line: Header | Line) -> None:
        self._waiting += _encoded(line)
        self._waiting += b"\n"

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
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


def require_replaceable(path: Path) -> None:
    """CommandError unless the path is free, or a file of the ordinary kind."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise CommandError(f"{path} is no ordinary file, and is not replaced")


def now() -> datetime:
    """This moment, as recordings tell time."""
    return datetime.fromtimestamp(time.time(), UTC)


def _encoded(line: Header | Line) -> bytes:
    try:
        return msgspec.json.encode(line)
    except (OverflowError, UnicodeEncodeError):  # past 64 bits; half of a character
        return json.dumps(msgspec.to_builtins(line), separators=(",", ":")).encode()
