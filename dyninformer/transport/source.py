"""`Source`: an API server to ask, for threads. The requests are made on its event loop."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Generator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dyninformer.errors import ConfigError, StoppedError
from dyninformer.threads import Deadline, in_forked_child
from dyninformer.transport.client import Answer, Client
from dyninformer.transport.config import (
    NO_OVERRIDES,
    Environment,
    Given,
    Hook,
    Overrides,
    doubt,
    find_configuration,
)
from dyninformer.transport.document import DocumentBody, TooLargeError
from dyninformer.transport.endpoint import Endpoint, offer_http2
from dyninformer.transport.loop import LoopThread, in_thread, waited
from dyninformer.transport.messages import Pairs
from dyninformer.transport.pool import Traffic
from dyninformer.transport.requests import (
    NO_HEADERS,
    BrokenAnswerError,
    JsonReply,
    Request,
    without_password,
)
from dyninformer.transport.settings import Settings, settings_of
from dyninformer.types import Names

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

T = TypeVar("T")

_FRESH_SECONDS: Final = 2.5  # credentials that were read so short a time ago are not read again
_STOPPED: Final = "the factory or the informer has stopped, so it makes no requests; make a new one"


class BlockingReply:
    """See `requests.Reply`: an answer that the loop reads, and a thread takes piece by piece."""

    def __init__(self, channel: Channel, answer: Answer) -> None:
        self._channel = channel
        self._answer = answer
        self._closed = False
        self._taken = False
        # A reply that is dropped unread must not keep its connection.
        self._finalizer = weakref.finalize(self, channel.post, answer.close)
        self._finalizer.atexit = False

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The answer's headers; the case of their names does not matter."""
        return self._answer.headers

    def chunks(self) -> Generator[bytes, None, None]:
        """Yield the body, decompressed, as it arrives and cut anywhere; by one thread, once."""
        if self._taken or self._closed:
            return
        self._taken = True
        try:
            while piece := self._channel.run(self._answer.read()):
                yield piece
        except (StoppedError, ConnectionError):
            if not self._closed:
                raise
        finally:
            self.close()

    def allow_silence(self, seconds: float) -> None:
        """From the next read on, so many seconds without a byte are no failure."""
        self._channel.post(lambda: self._answer.allow_silence(seconds))

    def body(self) -> bytes:
        """Return the beginning of the body of a refusal. Never raises; the reply is closed then."""
        found = b""
        with suppress(StoppedError):
            found = self._channel.run(self._answer.refusal())
        self.close()
        return found

    def close(self) -> None:
        """End it at once, from any thread; a read that is under way ends. Idempotent."""
        if not self._closed:
            self._closed = True
            self._finalizer()


class Channel:
    """The requests of one part of the work: `close` ends them, and no others. See `Transport`."""

    def __init__(self, source: Source) -> None:
        self._source = source
        # Added to and taken from by any thread; each is one step.
        self._waiting: set[Future[Any]] = set()
        self._replies: set[weakref.ref[BlockingReply]] = set()
        self._closed = False
        in_forked_child(self, _closed=True, _waiting=set, _replies=set)

    @property
    def host(self) -> str:
        """Where the API server is."""
        return self._source.host

    def list(self, request: Request) -> BlockingReply:
        """Ask for a collection."""
        return self._ask(request, Traffic.LIST)

    def watch(self, request: Request) -> BlockingReply:
        """Ask for a stream of events."""
        return self._ask(request, Traffic.WATCH)

    def get_json(
        self,
        path: str,
        query: Pairs = (),
        headers: Mapping[str, str] = NO_HEADERS,
        deadline: float = 30.0,
    ) -> JsonReply:
        """Ask for something small, and read it whole."""
        return self.run(self._whole(Request(path, query, headers, deadline)))

    def post_json(self, path: str, body: Mapping[str, object], deadline: float = 30.0) -> JsonReply:
        """Ask by a POST for something that is computed and stored nowhere: a review of access."""
        return self.run(self._whole(Request(path, (), NO_HEADERS, deadline, body)))

    def reload_credentials(self) -> None:
        """Have the next requests use credentials that are read again."""
        self.run(self._source.reload())

    def close(self) -> None:
        """End every request of this channel at once, and refuse new ones. Idempotent."""
        self._closed = True
        for future in list(self._waiting):
            future.cancel()
        for reference in list(self._replies):
            reply = reference()
            if reply is not None:
                reply.close()
        self._source.forget(self)

    # -- for replies ---------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and wait for it. `StoppedError` once this is closed."""
        if self._closed:
            coroutine.close()
            raise StoppedError(_STOPPED)
        future = self._source.loop.begin(coroutine)
        self._waiting.add(future)
        try:
            if self._closed:  # since it was looked at above
                future.cancel()
            return waited(future)
        except CancelledError:
            raise StoppedError(_STOPPED) from None
        finally:
            self._waiting.discard(future)

    def post(self, act: Callable[[], object]) -> None:
        """Have the loop call something soon."""
        self._source.loop.post(act)

    # -- inside --------------------------------------------------------------------------

    def _ask(self, request: Request, traffic: Traffic) -> BlockingReply:
        reply = BlockingReply(self, self.run(self._source.request(request, traffic)))
        self._replies.add(weakref.ref(reply, self._replies.discard))
        if self._closed:
            reply.close()
            raise StoppedError(_STOPPED)
        return reply

    async def _whole(self, request: Request) -> JsonReply:
        answer = await self._source.request(request, Traffic.LIST)
        body = DocumentBody()
        try:
            while chunk := await answer.read():
                body.feed(chunk)
            return JsonReply(answer.status, answer.headers, body.value())
        except TooLargeError as error:
            raise BrokenAnswerError(f"GET {request.path}: {error}") from None
        finally:
            answer.close()


class Source(Channel):
    """An API server to ask: a `Transport` itself, and the maker of channels for parts of the work.

    ``client`` is a `kubernetes.dynamic.DynamicClient` or `kubernetes.client.ApiClient`, whose
    settings are read and never changed, or None for those of the environment (`ConfigError` if
    there are none), with ``overrides`` in place of what that says. No request is made, and no
    credential plugin run, before the first request. Every method may be called from any thread.
    """

    def __init__(
        self,
        client: DynamicClient | ApiClient | Environment | Given | None = None,
        *,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
        overrides: Overrides = NO_OVERRIDES,
    ) -> None:
        self._origin: Environment | Given
        if client is None:
            place = find_configuration(
                kubeconfig, context, environment=os.environ, overrides=overrides
            )
            self._origin = Environment(place, overrides)
        elif kubeconfig is not None or context is not None:
            raise ConfigError("pass a client, or kubeconfig= and context=, not both")
        else:
            self._origin = client if isinstance(client, Environment | Given) else Given(client)
        super().__init__(self)
        self.loop = LoopThread(f"dyninformer I/O with {self.host}")
        self._channels: set[Channel] = set()
        self._hooks = threading.Lock()  # held while a refresh hook of the user's runs
        self._writes: DynamicClient | None = None  # two threads that make one each do no harm
        # Changed on the loop alone:
        self._client: Client | None = None
        self._loading: asyncio.Task[None] | None = None
        self._reloaded_at = float("-inf")
        in_forked_child(
            self,
            "_hooks",
            then=Source._leave_to_parent,
            _closed=True,
            _waiting=set,
            _replies=set,
            _channels=set,
        )

    def __repr__(self) -> str:
        return f"<Source {self.host}>"

    @property
    def host(self) -> str:
        """Where the API server is, as messages name it."""
        return self._origin.host

    @property
    def origin(self) -> str:
        """Where the settings come from: files and context, the pod, a client of the caller's."""
        return str(self._origin)

    @property
    def doubt(self) -> str:
        """A warning about the connection that people should see; "" if there is none."""
        return doubt(self.host, verified=self._origin.verified)

    @property
    def proxy(self) -> str | None:
        """The proxy that requests go through, without its password; known after the first one."""
        client = self._client
        found = "" if client is None else client.endpoint.proxy
        return without_password(found) if found else None

    @property
    def namespace(self) -> str:
        """The namespace that the configuration is for, as kubectl takes it; else "default"."""
        return self._origin.namespace or "default"

    @property
    def settings(self) -> Environment | Given:
        """Settings for another source, which finds what this one finds, and ends by itself."""
        return self._origin.again()

    def channel(self) -> Channel:
        """Return a `Transport` whose `close` ends the requests made through it, and no others."""
        if self._closed:
            raise StoppedError(_STOPPED)
        found = Channel(self)
        self._channels.add(found)
        return found

    @property
    def writes_client(self) -> DynamicClient:
        """A `DynamicClient` for writes: the caller's own, or one with the same settings."""
        if self._writes is None:
            self.run(self._ready())
            self._writes = self._origin.writes_client(self._one_at_a_time)
        return self._writes

    def under_way(self) -> Names:
        """The threads in something that nothing can interrupt: a plugin, a name lookup."""
        return self.loop.under_way()

    def join(self, timeout: float) -> None:
        """After `close`: give the threads so long to end."""
        deadline = Deadline(timeout)
        self.loop.join(deadline.left)

    def close(self) -> None:
        """End every request at once, refuse new ones, close all connections. Idempotent."""
        super().close()
        for each in list(self._channels):
            each.close()
        self.loop.post(self._close_client)
        self.loop.stop()

    # -- for channels, on the loop -------------------------------------------------------

    async def request(self, request: Request, traffic: Traffic) -> Answer:
        """Send a request, and wait for the head of its answer."""
        client = await self._ready()
        self._origin.refreshed()
        return await client.request(request, traffic)

    async def reload(self) -> None:
        """Read the credentials again, unless that was done a moment ago."""
        if self._loading is None and time.monotonic() - self._reloaded_at < _FRESH_SECONDS:
            return
        await self._load()
        self._reloaded_at = time.monotonic()

    def forget(self, channel: Channel) -> None:
        """A channel is closed. From any thread."""
        self._channels.discard(channel)

    # -- inside --------------------------------------------------------------------------

    async def _ready(self) -> Client:
        """Return the client; before the first request, read the settings."""
        if self._client is None:
            await self._load()
        assert self._client is not None  # noqa: S101 - it was loaded, or that has raised
        return self._client

    async def _load(self) -> None:
        """Read the settings. Requests that come meanwhile wait for the same reading."""
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._renew())
            self._loading.add_done_callback(self._loaded)
        await asyncio.shield(self._loading)

    async def _renew(self) -> None:
        settings = await in_thread(
            self._read, f"dyninformer credentials for {self.host} (reading credentials)"
        )
        before, self._client = self._client, Client(settings, self.host)
        self._writes = None  # those who ask again write with the new credentials
        if before is not None:
            before.retire()

    def _loaded(self, task: asyncio.Task[None]) -> None:
        self._loading = None
        if not task.cancelled():
            task.exception()  # those that wait for it raise it

    def _read(self) -> Settings:
        """Read files, tokens and certificates; run the credential plugin if there is one."""
        if isinstance(self._origin, Environment) and (plain := self._origin.plain()) is not None:
            tls = None if plain.tls is None else offer_http2(plain.tls)
            return Settings(
                endpoint=Endpoint(
                    url=plain.host,
                    tls=None if tls is None else lambda: tls,
                    server_name=plain.server_name,
                ),
                headers=[*plain.headers.items(), *self._origin.impersonation],
                auth=lambda: (),
                blocks=False,
            )
        self._origin.load()
        dynamic, configuration = self._origin.settings(self._one_at_a_time)
        api: Any = dynamic.client
        headers = dict(api.default_headers)
        if api.cookie:
            headers["Cookie"] = api.cookie
        found = settings_of(configuration, headers)
        return (
            found
            if not self._origin.impersonation
            else found.with_headers(self._origin.impersonation)
        )

    def _one_at_a_time(self, hook: Hook) -> Hook:
        """A refresh hook may run a plugin that writes a file: never two at a time."""

        def guarded(configuration: Any) -> None:
            with self._hooks:
                hook(configuration)

        return guarded

    def _close_client(self) -> None:
        if self._client is not None:
            self._client.close()

    def _leave_to_parent(self) -> None:
        """In a forked child: close what was inherited, and never shut it down."""
        client, self._client = self._client, None
        if client is not None:
            client.leave_to_parent()
