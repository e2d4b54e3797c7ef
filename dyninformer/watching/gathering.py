"""Read an answer's body: in large pieces while much arrives, in small buffers while it waits.

A kube-apiserver writes TLS records of 4 kB, 50 to 90 us apart while it sends a list. OpenSSL
returns one record at a time, and the steps above (dechunker, cutter, session, store) cost more for
each read than for each byte. So a read first waits for 4 kB only, since a thousand streams may wait
for hours. If those 4 kB arrive, the read takes everything that the socket has. If the socket is
empty then, the read pauses for 1 ms and takes what arrived meanwhile: a sync of many objects takes
a third less CPU time.

A read of less than 4 kB never pauses. Neither does the first full one after it, so that a single
large event is not delayed.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from io import BufferedReader
from time import sleep
from typing import Final

_LEAST: Final = 4096
_RECORD: Final = 16_384  # of TLS, at most
_MOST: Final = 131_072
_PAUSE_SECONDS: Final = 0.001
_NOTHING_MORE: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Gatherer:
    """Reads one body from the file that http.client reads it from. For one thread.

    ``sock`` is what the file reads from; None where that is no plain socket, or one of TLS: then
    each read gives what one read of the file does.
    """

    __slots__ = ("_failure", "_file", "_flowing", "_socket")

    def __init__(self, file: BufferedReader, sock: socket.socket | None) -> None:
        self._file = file
        self._socket = sock
        self._failure: OSError | None = None
        self._flowing = False  # the read before this one was full

    def read(self) -> bytes:
        """Wait until something has come, and give all that has; nothing at the end."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        data = self._file.read1(_LEAST)
        sock = self._socket
        if len(data) < _LEAST or sock is None:
            self._flowing = False
            return data
        flowing, self._flowing = self._flowing, True
        silence = sock.gettimeout()
        pieces = [data]
        # Whether there is more cannot be asked: half a record may have come.
        sock.settimeout(0)
        try:
            emptied = self._gather(pieces)
            if emptied and flowing:
                sleep(_PAUSE_SECONDS)
                self._gather(pieces)
        finally:
            with suppress(OSError):  # closed under its reader
                sock.settimeout(silence)
        return b"".join(pieces)

    def _gather(self, pieces: list[bytes]) -> bool:
        """Add what the socket has, up to a limit; True if it has nothing more, and is open."""
        read, size = self._file.read1, sum(map(len, pieces))
        try:
            while size < _MOST:
                piece = read(_RECORD)
                if not piece:  # the end, which the next read finds; or nothing has come
                    return True
                pieces.append(piece)
                size += len(piece)
        except _NOTHING_MORE:
            return True
        except OSError as error:
            self._failure = error  # what came before it counts
        return False
