"""`Source`: requests made with the official client, interruptible at any moment.

Everything that a kubeconfig, a pod or the caller's client says about hosts, proxies, TLS,
credentials and headers is the official client's to know; here its `DynamicClient.request`
is called on a private copy, over connections of ours. What the caller has set up is copied as far
as it takes part in a request, and never changed. What such a client is made of is no promise of
that package, nor of urllib3. Where it cannot be copied, requests are made with what its
Configuration says, which is one (`_Remade`).
"""

from __future__ import annotations

import copy
import json
import os
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode, urlsplit

import urllib3

from dyninformer.errors import ConfigError, StoppedError
from dyninformer.threads import Deadline, ReentrantLock, in_forked_child
from dyninformer.transport.config import (
    NO_OVERRIDES,
    Environment,
    Given,
    Hook,
    Overrides,
    doubt,
    find_configuration,
    official,
)
from dyninformer.transport.document import DocumentBody, TooLargeError
from dyninformer.transport.failures import (
    RefreshError,
    is_stale_connection,
    refresh_failed,
    unanswered,
)
from dyninformer.transport.requests import (
    NO_HEADERS,
    BrokenAnswerError,
    JsonReply,
    Request,
    SilentError,
    without_password,
)
from dyninformer.types import Names
from dyninformer.watching.background import BackgroundThreads
from dyninformer.watching.sockets import (
    Call,
    Plumbing,
    RefusalError,
    SocketReply,
    Wires,
    calling,
    close_idle,
    current_call,
    note_changed,
    tracked,
    tracked_from,
    warn_once,
)

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.dynamic import DynamicClient

_CONNECT_SECONDS = 10.0
_MOST_CONNECTING = 8
"""At a time: an address that never answers must not hold up the connections to others."""
_FRESH_SECONDS = 2.5  # credentials that were read anew so short a time ago are not read again

_STOPPED = "nothing is asked any more: the factory, or the informer, has stopped; make a new one"
_CLOSED = "the factory has been shut down; make a new one"
_FOR_WRITES = "refreshing credentials for writes"

_NO_ANSWER: tuple[type[Exception], ...] = (urllib3.exceptions.HTTPError, OSError, HTTPException)
_USED = ("status", "headers", "chunked", "stream", "read1", "release_conn", "close")
"""What is used of an answer that a caller's own class of pools may give."""

Ask: TypeAlias = Callable[..., urllib3.BaseHTTPResponse]
Pairs: TypeAlias = Sequence[tuple[str, str]]


class Channel:
    """The requests of one part of the work, which end with it and leave the others alone.

    See `Transport`. `close` reaches what was asked through this object, at any stage.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._under_way: dict[Call, SocketReply | None] = {}  # with _closed, under source.lock
        self._closed = False
        in_forked_child(self, _closed=True, _under_way=dict)  # its sockets are the wires' to close

    @property
    def host(self) -> str:
        """Where the API server is."""
        return self._source.host

    def list(self, request: Request) -> SocketReply:
        """Ask for a collection."""
        return self._ask(request)

    def watch(self, request: Request) -> SocketReply:
        """Ask for a stream of events."""
        return self._ask(request)

    def get_json(
        self,
        path: str,
        query: Pairs = (),
        headers: Mapping[str, str] = NO_HEADERS,
        deadline: float = 30.0,
    ) -> JsonReply:
        """Ask for something small, and read it whole."""
        return self._whole(Request(path, query, headers, deadline))

    def post_json(self, path: str, body: Mapping[str, object], deadline: float = 30.0) -> JsonReply:
        """Ask by a POST, for what is computed and kept nowhere: a review of access."""
        return self._whole(Request(path, (), NO_HEADERS, deadline, body))

    def reload_credentials(self) -> None:
        """Have the next requests use credentials read anew."""
        call = self._begin()
        try:
            self._source.read_credentials(call)
        finally:
            self._over(call)

    def close(self) -> None:
        """End every request of this channel at once, and refuse new ones. Idempotent."""
        with self._source.lock:
            self._closed = True
            under_way = list(self._under_way.items())
        for call, reply in under_way:
            call.end()
            if reply is not None:
                reply.close()
        self._source.forget(self)

    # -- inside --------------------------------------------------------------------------

    def _begin(self) -> Call:
        """Something that `close` ends."""
        call = Call(self._source.wires)
        with self._source.lock:
            if self._closed:
                raise StoppedError(_STOPPED)
            self._under_way[call] = None
        return call

    def _over(self, call: Call) -> None:
        with self._source.lock:
            self._under_way.pop(call, None)

    def _ask(self, request: Request) -> SocketReply:
        call = self._begin()
        call.anew, call.kept = request.anew, request.kept
        try:
            reply = self._source.open(request, call, partial(self._over, call))
        except BaseException:
            call.leave()
            self._over(call)
            raise
        with self._source.lock:
            if call in self._under_way:
                self._under_way[call] = reply
            closed = self._closed
        if closed:  # between the head of the answer and here
            reply.close()
            raise StoppedError(_STOPPED)
        return reply

    def _whole(self, request: Request) -> JsonReply:
        reply = self._ask(request)
        try:
            body = DocumentBody()
            for chunk in reply.chunks():
                body.feed(chunk)
            if self._closed:
                raise StoppedError(_STOPPED)
            return JsonReply(reply.status, reply.headers, body.value())
        except TooLargeError as error:
            raise BrokenAnswerError(f"GET {request.path}: {error}") from None
        finally:
            reply.close()


class Source(Channel):
    """An API server to ask: a `Transport` itself, and the maker of others for parts of the work.

    Not for import.

    ``client`` is a `kubernetes.dynamic.DynamicClient` or `kubernetes.client.ApiClient`,
    which stays as it is, or None for what is found in the environment (`ConfigError` if
    nothing is), with ``overrides`` in place of what that says. Nothing is asked of the network,
    and no credential plugin run, before the first request. Every method may be called from any
    thread.

    ``lock`` guards the private client and when it was made, the client for writes, the channels,
    and of each channel what is under way and whether it is closed. Under it nothing waits, nothing
    is asked and nothing is closed, and no other lock is taken.

    Not for import: the command gives one to a factory.
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
        self.lock = ReentrantLock()
        self.wires = Wires()
        self._channels: set[Channel] = set()
        self._private: _PrivateClient | None = None
        self._reloaded = float("-inf")
        # When a request was made that got no answer over a connection that had lain idle: those
        # that lay idle then may be dead, too, and are not used. A race costs another such request.
        self._doubted = float("-inf")
        self._writes: DynamicClient | None = None
        self._credentials = BackgroundThreads(f"dyninformer credentials for {self.host}", 1)
        self._connecting = BackgroundThreads(
            f"dyninformer connecting to {self.host}", _MOST_CONNECTING
        )
        in_forked_child(self, "lock", _closed=True, _under_way=dict)

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
        """What to tell people of the connection before they trust it; "" if there is nothing."""
        return doubt(self.host, verified=self._origin.verified)

    @property
    def proxy(self) -> str | None:
        """The proxy that requests go through, without its password; known after the first one."""
        with self.lock:
            proxy = self._private.proxy if self._private is not None else None
        return None if proxy is None else without_password(proxy)

    @property
    def namespace(self) -> str:
        """The namespace that the configuration is for, as kubectl takes it; else "default"."""
        return self._origin.namespace or "default"

    @property
    def settings(self) -> Environment | Given:
        """What to make another one of, which finds what this one finds, and ends by itself."""
        return self._origin.again()

    def channel(self) -> Channel:
        """A `Transport` whose `close` ends what was asked through it, and nothing else."""
        with self.lock:
            if self._closed:
                raise StoppedError(_CLOSED)
            found = Channel(self)
            self._channels.add(found)
            return found

    @property
    def writes_client(self) -> DynamicClient:
        """A `DynamicClient` for writes: the caller's own, or one with the same settings.

        Its ``resources`` asks what the server has on first use. It outlives `close`.
        """
        with self.lock:
            found = self._writes
        if found is None:
            call = self._begin()
            try:
                self._prepare(call)
                made = self._origin.writes_client(partial(self._guard, what=_FOR_WRITES))
            finally:
                self._over(call)
            with self.lock:
                found = self._writes = self._writes or made
        return found

    def under_way(self) -> Names:
        """The threads in something that nothing can interrupt, each with what it does.

        After `close` these alone may live on; what they bring is closed unused.
        """
        return [*self._credentials.under_way(), *self._connecting.under_way()]

    def join(self, timeout: float) -> None:
        """After `close`: give what is `under_way` so long to end."""
        deadline = Deadline(timeout)
        for threads in (self._credentials, self._connecting):
            threads.join(deadline.left)

    def close(self) -> None:
        """End every request at once, refuse new ones, close all connections. Idempotent."""
        super().close()
        with self.lock:
            channels = list(self._channels)
            private = self._private
        for each in channels:
            each.close()
        self._credentials.close()
        self._connecting.close()
        self.wires.end()
        if private is not None:
            close_idle(private.manager)

    # -- what channels ask for -------------------------------------------------------------

    def open(self, request: Request, call: Call, on_over: Callable[[], None]) -> SocketReply:
        """Ask, and wait for the head of the answer; whatever its status, it is a reply."""
        self._prepare(call)
        host = self.host
        while True:
            with self.lock:
                private = self._private
            if private is None or self._closed:
                raise StoppedError(_CLOSED)
            call.begin(self._doubted)
            asked = time.monotonic()
            try:
                response = _ask(private, request, call)
            except RefreshError:
                raise
            except urllib3.exceptions.ClosedPoolError:
                call.leave()
                continue  # nothing was asked: another client has come in this one's place
            except private.failures as error:
                call.leave()
                if call.ended:
                    raise StoppedError(f"asking {host} was ended") from None
                if call.reused and not call.anew and is_stale_connection(error):
                    # It lay idle too long. Whatever else fails, be it in the same words, is
                    # told, so that the next try is one that waits (S29).
                    call.anew = True
                    continue
                deadline = request.deadline
                failure = unanswered(error, host, private.proxy, call.stage, deadline)
                if isinstance(failure, SilentError):
                    failure.reused = call.reused
                    if call.reused:
                        self._doubted = max(self._doubted, asked)
                raise failure from error
            return SocketReply(response, call, host, request.deadline, on_over)

    def read_credentials(self, call: Call) -> None:
        """Read them anew, unless that was done a moment ago."""
        self._credentials.run("reading credentials anew", self._reload, call, shared=True)

    def forget(self, channel: Channel) -> None:
        """It is closed."""
        with self.lock:
            self._channels.discard(channel)

    # -- inside --------------------------------------------------------------------------

    def _prepare(self, call: Call) -> None:
        """Have a client to ask with; the first time this may run a credential plugin."""
        with self.lock:
            loaded = self._private is not None
        if not loaded:
            self._credentials.run("reading credentials", self._load, call, shared=True)
        self._origin.refreshed()

    def _guard(self, hook: Hook, what: str = "refreshing credentials") -> Hook:
        """A refresh hook that is never run twice at a time, and that nobody must wait for.

        Who comes while one runs has what that brings: each client needs another ``what``.
        """

        def guarded(configuration: Any) -> None:
            ours = current_call()
            call = ours or Call(self.wires)
            refresh = partial(hook, configuration)
            try:
                self._credentials.run(what, refresh, call, shared=True)
            except StoppedError:
                if call.ended:
                    raise
                refresh()  # the client for writes, which outlives this
            except (Exception, SystemExit) as error:
                if ours is None:
                    raise  # the client for writes: its user sees what the hook said
                raise RefreshError(refresh_failed(error, self.host)) from error

        return guarded

    def _load(self) -> None:
        with self.lock:
            if self._private is not None:
                return
        self._renew()

    def _reload(self) -> None:
        with self.lock:
            if time.monotonic() - self._reloaded < _FRESH_SECONDS:
                return
        self._renew()
        with self.lock:
            self._reloaded = time.monotonic()

    def _renew(self) -> None:
        """A new client, since certificates may have changed too. On the credentials' thread."""
        plumbing = Plumbing(self.wires, self._connecting, self._origin.impersonation)
        self._origin.load()
        private = _private_client(*self._origin.settings(self._guard), plumbing)
        if self.doubt:
            warn_once(self.doubt)
        with self.lock:
            before, self._private = self._private, private
            self._writes = None  # those who ask again write with the new credentials
        if before is not None:
            close_idle(before.manager)


@dataclass(frozen=True, slots=True)
class _PrivateClient:
    """A copy of an official client, over connections of ours.

    ``request`` is its DynamicClient's; ``failures`` is what that raises when no answer came.
    """

    request: Callable[..., urllib3.BaseHTTPResponse]
    manager: urllib3.PoolManager
    failures: tuple[type[Exception], ...]

    @property
    def proxy(self) -> str | None:
        """What stands between, if anything."""
        return None if self.manager.proxy is None else self.manager.proxy.url


def _ask(private: _PrivateClient, request: Request, call: Call) -> urllib3.BaseHTTPResponse:
    with calling(call):
        try:
            return private.request(
                "get" if request.body is None else "post",
                request.path,
                body=request.body,
                serialize=False,
                # Fresh ones each time: the client changes what it is given.
                query_params=list(request.query),
                header_params=dict(request.headers),
                _request_timeout=(_CONNECT_SECONDS, request.deadline),
            )
        except RefusalError as refusal:
            return refusal.response


def _private_client(
    dynamic: DynamicClient, configuration: Configuration, plumbing: Plumbing
) -> _PrivateClient:
    """A copy of all that takes part in a request, down to the pool of connections."""
    if hasattr(configuration, "client_go_retries"):
        configuration.client_go_retries = False  # it would sleep where nobody can wake it
    kubernetes = official()
    failures = (
        *_NO_ANSWER,
        kubernetes.client.exceptions.OpenApiException,
        kubernetes.config.ConfigException,
    )
    try:
        request, manager = _copied(dynamic, configuration, plumbing)
    except (AttributeError, TypeError) as error:
        _note_remade(f"makes clients that cannot be copied ({error})")
    else:
        return _PrivateClient(request, manager, failures)
    remade = _Remade(getattr(dynamic, "client", None), configuration, plumbing)
    return _PrivateClient(remade.request, remade.manager, failures)


def _copied(
    dynamic: DynamicClient, configuration: Configuration, plumbing: Plumbing
) -> tuple[Ask, urllib3.PoolManager]:
    api = copy.copy(dynamic.client)
    rest = copy.copy(api.rest_client)
    if not isinstance(rest.pool_manager, urllib3.PoolManager):
        raise TypeError(f"its pool_manager is a {type(rest.pool_manager).__name__}")
    rest.pool_manager = manager = tracked(rest.pool_manager, plumbing)
    api.configuration = configuration
    api.default_headers = dict(api.default_headers)
    api.rest_client = rest
    private = copy.copy(dynamic)
    private.client = api
    private.configuration = configuration
    remade: _Remade | None = None

    def request(*args: Any, **options: Any) -> urllib3.BaseHTTPResponse:
        nonlocal remade
        if remade is None:
            found: urllib3.BaseHTTPResponse = private.request(*args, **options)
            if all(hasattr(found, name) for name in _USED):
                return found
            _note_remade(f"answers with a {type(found).__name__}")
            remade = _Remade(api, configuration, plumbing)
        return remade.request(*args, **options)

    return request, manager


def _note_remade(how: str) -> None:
    note_changed(
        "kubernetes",
        how,
        "requests are made with what the client's Configuration says, its default headers and "
        "its cookie alone; methods that a class of yours overrides are not called",
    )


class _Remade:
    """Asks by urllib3 alone, with what a Configuration documents."""

    def __init__(self, api: Any, configuration: Configuration, plumbing: Plumbing) -> None:
        self._configuration: Any = configuration
        self._headers = {
            "Content-Type": "application/json",
            **getattr(api, "default_headers", {}),
            **({"Cookie": api.cookie} if getattr(api, "cookie", None) else {}),
        }
        kind, settings = _connecting_as(configuration)
        self.manager = tracked_from(kind, settings, plumbing)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any,
        query_params: Pairs,
        header_params: Mapping[str, str],
        _request_timeout: tuple[float, float],
        **_: Any,
    ) -> urllib3.BaseHTTPResponse:
        """What `DynamicClient.request` does, as far as it is used here."""
        headers, query = {**self._headers, **header_params}, list(query_params)
        settings = self._configuration.auth_settings()  # it refreshes the token
        for each in settings.values():
            if each["in"] == "header":
                headers[each["key"]] = each["value"]
            elif each["in"] == "query":
                query.append((each["key"], each["value"]))
        connecting, reading = _request_timeout
        return self.manager.request(
            method.upper(),
            self._configuration.host + path + ("?" + urlencode(query) if query else ""),
            body=None if body is None else json.dumps(body),
            headers=headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=connecting, read=reading),
        )


def _connecting_as(configuration: Any) -> tuple[type[urllib3.PoolManager], dict[str, Any]]:
    """The manager for this Configuration, and its arguments."""
    said = {
        name: getattr(configuration, field, None)
        for name, field in (
            ("ca_certs", "ssl_ca_cert"),
            ("ca_cert_data", "ca_cert_data"),
            ("cert_file", "cert_file"),
            ("key_file", "key_file"),
            ("assert_hostname", "assert_hostname"),
            ("server_hostname", "tls_server_name"),
            ("socket_options", "socket_options"),
        )
    }
    settings = {name: value for name, value in said.items() if value is not None}
    settings["cert_reqs"] = ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE
    proxy = configuration.proxy
    if not proxy or _past_proxy(configuration.host, configuration.no_proxy or ""):
        return urllib3.PoolManager, settings
    settings["proxy_url"] = proxy
    if proxy.lower().startswith("socks"):
        from urllib3.contrib.socks import SOCKSProxyManager  # noqa: PLC0415 - it needs PySocks

        return SOCKSProxyManager, {**settings, "headers": configuration.proxy_headers}
    return urllib3.ProxyManager, {**settings, "proxy_headers": configuration.proxy_headers}


def _past_proxy(url: str, no_proxy: str) -> bool:
    host = urlsplit(url).hostname or ""
    entries = [each.strip().lower().lstrip(".") for each in no_proxy.split(",") if each.strip()]
    return any(each in ("*", host) or host.endswith("." + each) for each in entries)
