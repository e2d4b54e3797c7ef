"""Reads of an answer's body: little memory while one waits, many records at once where many came.

A kube-apiserver writes TLS records of 4 kB, and OpenSSL gives out one at a time. Each costs two
system calls, and Python has no switch that would have OpenSSL read ahead; what stands above, the
dechunker, the cutter and the session, costs more than that for each step, however little it is of.
So a read that waits asks for little, since there may be a thousand that wait for hours; and where
it gets all that it asked for, what else has come by then is read without waiting.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from io import BufferedReader
from typing import Final

_LEAST: Final = 4096
_RECORD: Final = 16_384  # of TLS, at most
_MOST: Final = 131_072
_NOTHING_MORE: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Gatherer:
    """Reads one body from the file that http.client reads it from. For one thread.

    ``sock`` is what the file reads from; None where that is no plain socket, or one of TLS: then
    each read gives what one read of the file does.
    """

    __slots__ = ("_failure", "_file", "_socket")

    def __init__(self, file: BufferedReader, sock: socket.socket | None) -> None:
        self._file = file
        self._socket = sock
        self._failure: OSError | None = None

    def read(self) -> bytes:
        """Wait until something has come, and give all that has; nothing at the end."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        data = self._file.read1(_LEAST)
        sock = self._socket
        if len(data) < _LEAST or sock is None:
            return data
        silence = sock.gettimeout()
        pieces = [data]
        # Whether there is more cannot be asked: half a record may have come.
        sock.settimeout(0)
        try:
            self._gather(pieces, len(data))
        finally:
            with suppress(OSError):  # closed under its reader
                sock.settimeout(silence)
        return b"".join(pieces)

    def _gather(self, pieces: list[bytes], size: int) -> None:
        read = self._file.read1
        try:
            while size < _MOST:
                piece = read(_RECORD)
                if not piece:  # the end, which the next read finds; or nothing has come
                    return
                pieces.append(piece)
                size += len(piece)
        except _NOTHING_MORE:
            pass
        except OSError as error:
            self._failure = error  # what came before it counts
