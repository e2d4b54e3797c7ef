"""`Client`: requests to one API server, for coroutines on its event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode, urlsplit

from dyninformer.errors import UnreachableError
from dyninformer.transport.answers import Inflater, inflater
from dyninformer.transport.connection import Stream
from dyninformer.transport.endpoint import ConnectError, Connector, Endpoint
from dyninformer.transport.failures import RefreshError, cut_off, refresh_failed, unanswered
from dyninformer.transport.loop import in_thread
from dyninformer.transport.messages import (
    Head,
    Headers,
    LostConnectionError,
    Outgoing,
    Pairs,
    ProtocolError,
    UnprocessedError,
)
from dyninformer.transport.pool import Pool, Traffic
from dyninformer.transport.request_log import RequestReport, reported_request
from dyninformer.transport.requests import Request, SilentError
from dyninformer.transport.settings import Settings

_TRIES: Final = 3  # of a request that the server did not look at
_LONGEST_REFUSAL: Final = 65_536
_REFUSAL_SECONDS: Final = 5.0
_USUAL: Final = {"Accept": "application/json", "Accept-Encoding": "identity"}


class Answer:
    """An answer whose head has come, whatever its status. For one coroutine."""

    def __init__(self, stream: Stream, head: Head, host: str, deadline: float) -> None:
        self.status = head.status
        self.headers: Headers = head.headers
        self._stream = stream
        self._host = host
        self._deadline = deadline
        self._unpacker: Inflater | None = None
        self._unpacked: Iterator[bytes] = iter(())
        self._begun = False

    async def read(self) -> bytes:
        """Return a part of the body, decompressed and cut anywhere; b"" at its end.

        Raises:
            SilentError: Nothing came for as long as is allowed.
            BrokenAnswerError: The connection broke in the middle.
        """
        try:
            return await self._read()
        except (OSError, ProtocolError) as error:
            self.close()
            raise cut_off(error, self._host, self._deadline) from error

    def allow_silence(self, seconds: float) -> None:
        """From now on, so many seconds without a byte are no failure."""
        self._deadline = seconds
        self._stream.allow_silence(seconds)

    async def refusal(self) -> bytes:
        """Return the beginning of the body of a refusal, and close the answer. Never raises."""
        found = bytearray()
        with suppress(TimeoutError, ConnectionError):
            # It may have no end, as the stream that was asked for has none.
            async with asyncio.timeout(_REFUSAL_SECONDS):
                while len(found) < _LONGEST_REFUSAL and (piece := await self.read()):
                    found += piece
        self.close()
        return bytes(found[:_LONGEST_REFUSAL])

    def close(self) -> None:
        """End it. Idempotent."""
        self._stream.close()

    async def _read(self) -> bytes:
        if not self._begun:
            self._begun = True
            self._unpacker = inflater(self.headers.get("content-encoding", ""))
        if self._unpacker is None:
            return await self._stream.read()
        while (piece := next(self._unpacked, b"")) == b"":
            data = await self._stream.read()
            if not data:
                self._unpacker.finish()
                return b""
            self._unpacked = self._unpacker.feed(data)
        return piece


class Client:
    """Makes requests with the same settings until it is closed."""

    def __init__(self, settings: Settings, host: str) -> None:
        self._settings = settings
        self._host = host  # as messages name it
        self._pool = Pool(Connector(settings.endpoint))
        self._authorizing: asyncio.Task[Pairs] | None = None

    async def request(self, request: Request, traffic: Traffic) -> Answer:
        """Send a request, and wait for the head of its answer.

        Raises:
            UnreachableError: No answer came. The message says why, and what to do.
        """
        target = self._settings.endpoint.parts.path + request.path
        if request.query:
            target += f"?{urlencode(request.query)}"
        body = b"" if request.body is None else json.dumps(request.body).encode()
        headers = {**_USUAL, **dict(self._settings.headers), **request.headers}
        if body:
            headers["Content-Type"] = "application/json"
        outgoing = Outgoing("POST" if body else "GET", target, list(headers.items()), body)
        stream, head = await self._exchange(outgoing, request, traffic)
        return Answer(stream, head, self._host, request.deadline)

    def close(self) -> None:
        """End every request at once, and close all connections. Idempotent."""
        self._pool.close()

    @property
    def endpoint(self) -> Endpoint:
        """Where requests go."""
        return self._settings.endpoint

    def leave_to_parent(self) -> None:
        """In a forked child: close the sockets, and leave the connections to the parent."""
        self._pool.leave_to_parent()

    def retire(self) -> None:
        """Close the connections without requests; the others end with their requests."""
        self._pool.distrust_idle()

    # -- inside --------------------------------------------------------------------------

    async def _exchange(
        self, outgoing: Outgoing, request: Request, traffic: Traffic
    ) -> tuple[Stream, Head]:
        """Send it, once more where that is safe: the server did not look at it, or never got it."""
        fresh = request.anew
        proxy = self._settings.endpoint.proxy or None
        for tries_left in reversed(range(_TRIES)):
            stream: Stream | None = None
            try:
                authorized = await self._authorized(outgoing)
                with self._reported(authorized) as report:
                    stream = await self._pool.begin(
                        authorized, request.deadline, traffic, fresh=fresh
                    )
                    head = await stream.head()
                    report.answered(head.status, None, head.headers)
                    return stream, head
            except UnreachableError:
                raise
            except ConnectError as error:
                cause = error.__cause__ or error
                raise unanswered(cause, self._host, proxy, error.stage, request.deadline) from error
            except (OSError, ProtocolError) as error:
                refused = isinstance(error, UnprocessedError)
                was_idle = stream is not None and stream.reused and not fresh
                if was_idle and not refused:
                    self._pool.distrust_idle()
                if tries_left and (
                    refused or (was_idle and isinstance(error, LostConnectionError))
                ):
                    fresh = fresh or was_idle
                    continue
                failure = unanswered(error, self._host, proxy, "asked", request.deadline)
                if isinstance(failure, SilentError):
                    failure.reused = stream is not None and stream.reused
                raise failure from error
            except BaseException:
                if stream is not None:
                    stream.close()
                raise
        raise AssertionError("the last try returns or raises")

    def _reported(self, outgoing: Outgoing) -> AbstractContextManager[RequestReport]:
        parts = urlsplit(self._settings.endpoint.url)
        url = f"{parts.scheme}://{parts.netloc}{outgoing.target}"
        return reported_request(outgoing.method, url, dict(outgoing.headers))

    async def _authorized(self, outgoing: Outgoing) -> Outgoing:
        """Add the headers with the credentials."""
        return replace(outgoing, headers=[*outgoing.headers, *await self._credentials()])

    async def _credentials(self) -> Pairs:
        """Return the headers with the credentials. Requests that wait for a hook share its run."""
        settings = self._settings
        if not settings.blocks:
            return settings.auth()
        if self._authorizing is None:
            task = asyncio.ensure_future(
                in_thread(
                    settings.auth,
                    f"dyninformer credentials for {self._host} (refreshing credentials)",
                )
            )
            self._authorizing = task
            task.add_done_callback(self._has_run)
        try:
            return await asyncio.shield(self._authorizing)
        except Exception as error:
            raise RefreshError(refresh_failed(error, self._host)) from error

    def _has_run(self, _: object) -> None:
        self._authorizing = None
