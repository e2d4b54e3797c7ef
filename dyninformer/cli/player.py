"""Recordings read again, as far as they can be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias

import msgspec
import zstandard

from dyninformer.cli.failing import CommandError
from dyninformer.cli.recording import FORMAT, VERSION, Header, Line
from dyninformer.resource import GroupVersionResource
from dyninformer.store.jsonpath.document import decoded

_CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})
_LINE_BYTES: Final = 64 << 20  # no object is as large: a file that has such a line is none of ours
_CHUNK: Final = 4096  # before the place where a file is broken, as much may be lost
_NO_LINE: Final = (msgspec.MsgspecError, ValueError, TypeError, RecursionError, CommandError)
_MAGIC: Final = b"\x28\xb5\x2f\xfd"

Lines: TypeAlias = Iterator[Line]


class BrokenError(CommandError):
    """A recording that ends before its end, or holds what is no line of one."""


class Player:
    """Reads a recording, compressed or not, line by line. For one thread."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
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

    def lines(self) -> Lines:
        """The lines up to the end; BrokenError where it breaks off, or makes no sense."""
        for text in self._texts:
            try:
                line = _line(text)
            except _NO_LINE as error:
                raise BrokenError(f"{self._place()} is no line of a recording: {error}") from None
            self._last = line.time
            if line.type == "END":
                return
            yield line
        raise BrokenError(
            f"{self._place()}: the recording ends without its end: the recorder was killed, "
            "or the file was cut"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def _header(self, path: Path) -> Header:
        text = next(self._texts, b"")
        try:
            head = msgspec.json.decode(text, type=Header)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            head = None
        if head is None or head.format != FORMAT:
            raise CommandError(f"{path} is no recording of dyninformer: its first line is none")
        if head.version > VERSION:
            raise CommandError(
                f"{path} is of version {head.version}, and this dyninformer reads up to {VERSION}: "
                "use a later one"
            )
        self._last = head.time
        return head

    def _read(self) -> Iterator[bytes]:
        """The whole lines that can be read; BrokenError if the rest cannot."""
        rest = b""
        try:
            for piece in self._plain():
                *texts, rest = (rest + piece).split(b"\n")
                for text in texts:
                    self._number += 1
                    yield text
                if len(rest) > _LINE_BYTES:
                    break
        except zstandard.ZstdError as error:
            self._number += 1
            raise BrokenError(f"{self._place()}: the rest cannot be read: {error}") from None
        self._number += 1
        if rest:
            why = "is cut" if len(rest) <= _LINE_BYTES else "is too long"
            raise BrokenError(f"{self._place()} {why}")

    def _plain(self) -> Iterator[bytes]:
        """The file's text in pieces, unpacked if it is packed."""
        chunk = self._file.read(_CHUNK)
        if not chunk.startswith(_MAGIC):
            while chunk:
                yield chunk
                chunk = self._file.read(_CHUNK)
            return
        context = zstandard.ZstdDecompressor()
        frame = context.decompressobj()
        while chunk:
            yield frame.decompress(chunk)
            chunk = frame.unused_data or self._file.read(_CHUNK)
            if frame.eof:
                frame = context.decompressobj()

    def _place(self) -> str:
        told = f", after {self._last.astimezone().isoformat(' ', 'seconds')}" if self._last else ""
        return f"line {self._number}{told}"


def _line(text: bytes) -> Line:
    line = msgspec.convert(decoded(text), Line)
    if line.type in _CHANGES:
        GroupVersionResource.parse(line.gvr)
        if not isinstance(line.object.get("metadata"), dict):
            raise ValueError("its object has no metadata")
    return line
