"""urllib3's connections, with sockets that are known from the moment they exist (S34).

`tracked` takes a pool manager as the user's client has set it up, whatever its proxies,
certificates and options, and gives one that behaves alike, except that every connection
announces its socket to the call it works for, opens it where waiting can be ended, and
has Nagle's algorithm off (with it on, TLS pays 40 ms before the first answer). Nothing is
retried, no redirect followed, and an answer other than 2xx is raised as it is, unread.

One part of urllib3 that is private is relied upon: a connection opens its socket by
`_new_conn`. `_opens_as_known` looks whether it still does, and `_connect_elsewhere` is the way
without it.
"""

from __future__ import annotations

import copy
import errno
import logging
import os
import platform
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from selectors import EVENT_WRITE, DefaultSelector
from traceback import walk_tb
from typing import Any, Self

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from dyninformer.watching.calls import Call, Wire, Wires
from dyninformer.watching.errands import Errands

__all__ = [
    "Plumbing",
    "RefusalError",
    "calling",
    "close_idle",
    "current_call",
    "note_changed",
    "tracked",
    "tracked_from",
]

_IDLE_CONNECTIONS = 4096
"""How many are kept for the next request; more work at the same time without being kept."""

_BEGUN = (errno.EINPROGRESS, errno.EWOULDBLOCK)

Opened = tuple[socket.socket, Wire]
Settings = Mapping[str, Any]

_this_thread = threading.local()
_logger = logging.getLogger(__name__)
_noted: set[tuple[str, str]] = set()


def note_changed(package: str, how: str, instead: str) -> None:
    """Log, once in a process, that a package does not work as the versions known here do."""
    if (package, how) in _noted:
        return
    _noted.add((package, how))
    _logger.warning(
        "%s %s on Python %s %s, unlike the versions that dyninformer knows. So %s. "
        "Look for a newer dyninformer.",
        package, version(package), platform.python_version(), how, instead,
    )  # fmt: skip


class RefusalError(Exception):
    """An answer that is no 2xx, on its way around what the official client does with it."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        super().__init__(response.status)
        self.response = response


@dataclass(frozen=True, slots=True)
class Plumbing:
    """What all connections of one client share."""

    wires: Wires
    connecting: Errands


def close_idle(manager: urllib3.PoolManager) -> None:
    """Close the connections that lie idle, and have those at work be closed afterwards."""
    for key in manager.pools.keys():  # noqa: SIM118 - it is no dict, and refuses to be iterated
        pool = manager.pools.get(key)
        if pool is not None:
            pool.close()
    manager.clear()


@contextmanager
def calling(call: Call) -> Iterator[None]:
    """Have what this thread asks for in the block belong to ``call``."""
    before = getattr(_this_thread, "call", None)
    _this_thread.call = call
    try:
        yield
    finally:
        _this_thread.call = before


def current_call() -> Call | None:
    """The call that this thread works for."""
    call: Call | None = getattr(_this_thread, "call", None)
    return call


def tracked(manager: urllib3.PoolManager, plumbing: Plumbing) -> urllib3.PoolManager:
    """A manager like ``manager``, which stays as it is, over connections of its own."""
    kind = _tracked_class(type(manager))
    found: urllib3.PoolManager = kind.__new__(kind)
    urllib3.PoolManager.__init__(found)  # for pools of its own; the rest is as it was there
    vars(found).update((name, value) for name, value in vars(manager).items() if name != "pools")
    return _with_our_connections(found, plumbing)


def tracked_from(
    kind: type[urllib3.PoolManager], settings: Settings, plumbing: Plumbing
) -> urllib3.PoolManager:
    """A new manager, made with these arguments, over connections of its own."""
    return _with_our_connections(_tracked_class(kind)(**settings), plumbing)


def _tracked_class(kind: type[urllib3.PoolManager]) -> Any:
    return type(f"Tracked{kind.__name__}", (_TrackedManager, kind), {})


def _with_our_connections(manager: urllib3.PoolManager, plumbing: Plumbing) -> urllib3.PoolManager:
    manager.connection_pool_kw = {
        **manager.connection_pool_kw,
        "retries": False,
        "block": False,
        "maxsize": _IDLE_CONNECTIONS,
    }
    manager.pool_classes_by_scheme = {
        scheme: _tracked_pool_class(pool_class, plumbing)
        for scheme, pool_class in manager.pool_classes_by_scheme.items()
    }
    return manager


class _TrackedManager(urllib3.PoolManager):
    """Answers are given as they come."""

    def urlopen(  # type: ignore[override]
        self, method: str, url: str, redirect: bool = True, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        """Ask once. A redirect is an answer too: credentials do not follow it elsewhere."""
        del redirect
        options["retries"] = False
        response = super().urlopen(method, url, redirect=False, **options)
        if not 200 <= response.status <= 299:
            raise RefusalError(response)
        return response


def _tracked_pool_class(
    pool_class: type[urllib3.HTTPConnectionPool], plumbing: Plumbing
) -> type[urllib3.HTTPConnectionPool]:
    connection_class = type(
        f"Tracked{pool_class.ConnectionCls.__name__}",
        (_TrackedConnection, pool_class.ConnectionCls),
        {"plumbing": plumbing},
    )
    return type(f"Tracked{pool_class.__name__}", (pool_class,), {"ConnectionCls": connection_class})


class _TrackedConnection(HTTPConnection):
    """A connection that knows which call it works for, and whose socket the call can end."""

    plumbing: Plumbing
    _wire: Wire | None = None
    _call: Call | None = None

    def __init__(self, host: str, port: int | None = None, **options: Any) -> None:
        super().__init__(host, port, **options)
        # With its trailing dot, for the resolver; ``host`` is without it, for certificates.
        self._name = host.strip("[]") if port is not None else self.host

    # What urllib3 calls on the way of a request, in this order.

    @property
    def is_connected(self) -> bool:
        """It can be used as it is: asked of one that lay idle, and is closed if it cannot."""
        call = current_call()
        return super().is_connected and not (call is not None and call.anew)

    def connect(self) -> None:
        """Connect, through the proxy if there is one, and set up TLS."""
        self._call = call = current_call()
        try:
            if call is None or _opens_as_known():
                super().connect()
            else:
                self._connect_elsewhere(call)
            if self._wire is None:  # a class in between has its own way past `_new_conn`
                self._wire = _born(self.sock, self.plumbing.wires)
                if call is not None:
                    call.use(self._wire)
        except BaseException as error:
            _close_lost(error)
            self.close()
            raise
        self._wire.settle(self.sock)

    def request(self, *args: Any, **options: Any) -> None:
        """Send the head of a request, on a new connection or on one that lay idle."""
        call, before = current_call(), self._call
        if self.sock is None:
            self.connect()
        elif call is not None:
            call.reused = True
        if before is not None and before is not call:
            before.leave()  # from here on, an end of that call cannot reach the connection
        self._call = call
        if call is not None and self._wire is not None:
            call.use(self._wire)
            call.stage = "asked"
        super().request(*args, **options)

    def response_class(self, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        """http.client makes an answer by this: the call gets to know it."""
        answer = super().response_class(*args, **options)
        if self._call is not None:
            self._call.answer = answer
        return answer

    def close(self) -> None:
        """Close this end of it; a call whose answer is still being read keeps the socket."""
        super().close()
        self._free_wire()

    # -- inside --------------------------------------------------------------------------

    def _new_conn(self) -> socket.socket:
        call = self._call
        if call is None:  # a manager that is used by hand
            sock, self._wire = self._open()
            return sock
        call.stage = "connecting"
        sock, wire = self.plumbing.connecting.run(
            self._connecting, self._open, call, discard=_discard
        )
        self._wire = wire
        try:
            call.use(wire)
        except BaseException:
            sock.close()  # `connect` frees the wire
            raise
        call.stage = "handshake"
        return sock

    def _open(self) -> Opened:
        wires = self.plumbing.wires
        if self._has_own_way():
            sock = super()._new_conn()
            return sock, _born(sock, wires)
        return _open_tcp(self, self._name, wires)

    def _has_own_way(self) -> bool:
        """A class in between, such as SOCKS, connects in its own way."""
        plain: Any = super()._new_conn
        return plain.__func__ is not vars(HTTPConnection)["_new_conn"]

    def _connect_elsewhere(self, call: Call) -> None:
        """Have urllib3 connect in whatever way it does, TLS too, where nobody must wait for it.

        It cannot be interrupted then, but left (S34). It is done by a twin: if it is left, the
        pool may use this connection again while the twin is not done.
        """
        note_changed(
            "urllib3",
            "opens its sockets in a way of its own",
            "a connection is set up, TLS too, on a thread that a stop leaves behind, at most "
            "eight at a time",
        )
        call.stage = "connecting"
        connect = copy.copy(self)._connected  # noqa: SLF001 - another one of us
        twin = self.plumbing.connecting.run(
            self._connecting, connect, call, discard=_TrackedConnection.close
        )
        vars(self).update(vars(twin), _call=call)
        if self._wire is not None:
            call.use(self._wire)

    def _connected(self) -> Self:
        self._call = None  # on the errand's thread nothing more is waited for
        try:
            super().connect()
            if self._wire is None:
                self._wire = _born(self.sock, self.plumbing.wires)
        except BaseException as error:
            _close_lost(error)
            self.close()
            raise
        return self

    @property
    def _connecting(self) -> str:
        return f"connecting to {self.host}:{self.port}"

    def _free_wire(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.let_go()


def _opens_as_known() -> bool:
    """urllib3 asks a connection for its socket by `_new_conn`, without saying more."""
    known = getattr(vars(HTTPConnection).get("_new_conn"), "__code__", None)
    asking = [getattr(kind.connect, "__code__", None) for kind in (HTTPConnection, HTTPSConnection)]
    return (
        known is not None
        and known.co_argcount == 1
        and all(code is not None and "_new_conn" in code.co_names for code in asking)
    )


def _close_lost(error: BaseException) -> None:
    """Close the TLS socket that a connect had begun to make when it failed.

    Where the other side has reset the connection before TLS begins, Python leaves that socket
    open and gives it to nobody: only the traceback knows it, and keeps it for as long as it is
    kept itself. Where Python closes it, this finds it closed.
    """
    for frame, _ in walk_tb(error.__traceback__):
        for value in frame.f_locals.values():
            if isinstance(value, ssl.SSLSocket):
                value.close()


def _born(sock: socket.socket, wires: Wires) -> Wire:
    try:
        with suppress(OSError, AttributeError):  # it may be no TCP, or TLS inside TLS
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Wire(sock, wires)
    except BaseException:
        sock.close()
        raise


def _discard(opened: Opened) -> None:
    sock, wire = opened
    sock.close()
    wire.let_go()


def _open_tcp(connection: HTTPConnection, host: str, wires: Wires) -> Opened:
    """Connect to the first address that answers, as urllib3 does, with a `Wire` from birth."""
    # Looked up each time: to change it there is how users keep to IPv4.
    family_of = getattr(urllib3.util.connection, "allowed_gai_family", None)
    allowed = socket.AF_UNSPEC if family_of is None else family_of()
    error: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(
        host, connection.port, allowed, socket.SOCK_STREAM
    ):
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError as failed:  # a kind of address that this machine does not know
            error = failed
            continue
        wire = _born(sock, wires)
        try:
            for option in connection.socket_options or ():
                sock.setsockopt(*option)
            sock.settimeout(connection.timeout)
            if connection.source_address:
                sock.bind(connection.source_address)
            _connect(sock, address, wires)
        except OSError as failed:
            _discard((sock, wire))
            error = failed
        except BaseException:
            _discard((sock, wire))
            raise
        else:
            return sock, wire
    raise error or OSError(f"{host} has no address")


def _connect(sock: socket.socket, address: Any, wires: Wires) -> None:
    """Connect within the socket's timeout, unless all connections are ended.

    Ending a socket stops a connect only once it has begun; so whether the end came before is
    asked after that. Either way it is not missed.
    """
    timeout = sock.gettimeout()
    sock.settimeout(0)
    code = sock.connect_ex(address)
    wires.check_open()
    if code in _BEGUN:
        with DefaultSelector() as answered:
            answered.register(sock, EVENT_WRITE)
            if not answered.select(timeout):
                raise TimeoutError("timed out")
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))
    sock.settimeout(timeout)
