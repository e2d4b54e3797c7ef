"""`SocketReply`: an answer that is read from a socket, and can be ended from any thread."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from http.client import HTTPException
from io import BufferedReader

import urllib3

from dyninformer.threads import in_forked_child
from dyninformer.watching.calls import Call
from dyninformer.watching.chunked import BrokenChunksError, Dechunker
from dyninformer.watching.connections import note_changed
from dyninformer.watching.failures import cut_off
from dyninformer.watching.transport import BrokenAnswerError

__all__ = ["SocketReply"]

_PIECE = 131_072
_LONGEST_REFUSAL = 65_536
_LONGEST_SHOWN = 40
_PLAIN = ("", "identity")
_ZLIB = ("gzip", "x-gzip", "deflate")
_ANY_HEADER = 32 + zlib.MAX_WBITS  # gzip's or zlib's, as it comes


class SocketReply:
    """See `Reply`. Who reads it also frees what it holds; unread, `close` does."""

    def __init__(
        self,
        response: urllib3.BaseHTTPResponse,
        call: Call,
        host: str,
        deadline: float,
        on_over: Callable[[], None],
    ) -> None:
        self._response = response
        self._call = call
        self._host = host
        self._deadline = deadline
        self._on_over = on_over
        self._lock = threading.RLock()  # guards _reading and _over
        self._reading = False
        self._over = False
        in_forked_child(self, "_lock")

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The answer's headers; the names' case does not matter to a lookup."""
        return self._response.headers

    def chunks(self) -> Generator[bytes, None, None]:
        """The body, decoded, as it arrives and cut anywhere; by one thread, once."""
        with self._lock:
            if self._over or self._reading:
                return
            self._reading = True
        try:
            yield from self._pieces()
        except (urllib3.exceptions.HTTPError, HTTPException, OSError) as error:
            if not self._call.ended:
                raise cut_off(error, self._host, self._deadline) from error
        except AttributeError:
            # Closed under its reader: by a signal handler that shuts down, on this very thread.
            if not self._call.ended:
                raise
        finally:
            self._free()

    def allow_silence(self, seconds: float) -> None:
        """From the next read on, so many seconds without a byte are no failure."""
        self._deadline = seconds
        self._call.allow_silence(seconds)

    def body(self) -> bytes:
        """The body of a refusal, or as much of its beginning as an error message needs."""
        found = b""
        with suppress(ConnectionError):
            for piece in self.chunks():
                found += piece
                if len(found) >= _LONGEST_REFUSAL:
                    break
        self.close()
        return found[:_LONGEST_REFUSAL]

    def close(self) -> None:
        """End it at once, from any thread; a read that is under way ends."""
        self._call.end()
        with self._lock:
            if self._reading:
                return  # the reader wakes up, or was never started again: it frees all
        self._free()

    def _pieces(self) -> Iterator[bytes]:
        response = self._response
        if not response.chunked:
            sent = self._unframed()
        elif self._is_readable():
            sent = self._dechunked()
        else:
            sent = response.stream(_PIECE, decode_content=False)
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        if encoding in _PLAIN:
            return sent
        if encoding in _ZLIB:
            return _inflated(sent)
        raise BrokenAnswerError(
            f"{self._host} answers in the encoding {encoding[:_LONGEST_SHOWN]!r}, which was not "
            "asked for. Something between, a proxy perhaps, must leave answers as they are."
        )

    def _unframed(self) -> Iterator[bytes]:
        # `stream` would wait for a full piece.
        while piece := self._response.read1(_PIECE, decode_content=False):
            yield piece

    def _is_readable(self) -> bool:
        """http.client's answer is there, stands before the body, and is read as is known.

        Its file and its place in the body are in no documentation.
        """
        head = self._call.answer
        known = (
            isinstance(getattr(head, "fp", None), BufferedReader)
            and getattr(head, "chunked", False) is True
            and getattr(head, "chunk_left", 0) is None
        )
        if not known:
            note_changed(
                "urllib3",
                "reads answers in a way of its own",
                "it is left to cut them into chunks, one by one, which takes more CPU",
            )
        return known

    def _dechunked(self) -> Iterator[bytes]:
        head = self._call.answer
        dechunker = Dechunker()
        while not dechunker.done:
            data = head.fp.read1(_PIECE)
            if not data:
                raise BrokenChunksError("the connection was closed in the middle of the body")
            if piece := dechunker.feed(data):
                yield piece
        # As urllib3 does it at the end of a body: the connection is free for another request.
        head.close()
        if not dechunker.beyond:
            self._response.release_conn()

    def _free(self) -> None:
        with self._lock:
            if self._over:
                return
            self._over = True
        self._response.close()  # nothing, if the body was read to its end
        self._call.leave()
        self._on_over()


def _inflated(sent: Iterator[bytes]) -> Iterator[bytes]:
    """The content of what was compressed, in pieces, however much comes of a few bytes.

    urllib3 would decompress whatever has come at once, and make gigabytes of it.
    """
    unpacker = zlib.decompressobj(_ANY_HEADER)
    for data in sent:
        rest = data
        while True:
            if unpacker.eof:  # several that follow each other are one
                unpacker = zlib.decompressobj(_ANY_HEADER)
            try:
                piece = unpacker.decompress(rest, _PIECE)
            except zlib.error:
                raise HTTPException("what was sent as compressed is not") from None
            if piece:
                yield piece
            rest = unpacker.unused_data or unpacker.unconsumed_tail
            if not rest and (unpacker.eof or len(piece) < _PIECE):  # else it holds back more
                break
    if not unpacker.eof:
        raise HTTPException("the compressed body is cut short")
