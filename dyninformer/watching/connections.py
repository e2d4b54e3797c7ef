"""urllib3's connections, with sockets that are known from the moment they exist (S34).

`tracked` takes a pool manager as the user's client has set it up, whatever its proxies,
certificates and options, and gives one that behaves alike, except that every connection
announces its socket to the call it works for, opens it where waiting can be ended, and
has Nagle's algorithm off (with it on, TLS pays 40 ms before the first answer). Nothing is
retried, no redirect followed, and an answer other than 2xx is raised as it is, unread.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from selectors import EVENT_WRITE, DefaultSelector
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection
from urllib3.util.connection import allowed_gai_family

from dyninformer.watching.calls import Call, Wire, Wires
from dyninformer.watching.errands import Errands

__all__ = ["Plumbing", "RefusalError", "calling", "close_idle", "current_call", "tracked"]

_IDLE_CONNECTIONS = 4096
"""How many are kept for the next request; more work at the same time without being kept."""

_BEGUN = (errno.EINPROGRESS, errno.EWOULDBLOCK)

Opened = tuple[socket.socket, Wire]

_this_thread = threading.local()


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
    classes = {
        scheme: _tracked_pool_class(pool_class, plumbing)
        for scheme, pool_class in manager.pool_classes_by_scheme.items()
    }
    name = f"Tracked{type(manager).__name__}"
    kind: Any = type(name, (_TrackedManager, type(manager)), {})
    copy: urllib3.PoolManager = kind.__new__(kind)
    urllib3.PoolManager.__init__(copy)  # for pools of its own; the rest is as it was there
    copy.__dict__.update((name, value) for name, value in vars(manager).items() if name != "pools")
    copy.connection_pool_kw = {
        **manager.connection_pool_kw,
        "retries": False,
        "block": False,
        "maxsize": _IDLE_CONNECTIONS,
    }
    copy.pool_classes_by_scheme = classes
    return copy


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
    return type(
        f"Tracked{pool_class.__name__}",
        (_TrackedPool, pool_class),
        {"ConnectionCls": connection_class},
    )


class _TrackedPool(urllib3.HTTPConnectionPool):
    """A pool whose idle connections belong to no call."""

    def _put_conn(self, conn: Any) -> None:
        # Before it lies in the pool, where another thread may take it: from here on an
        # end of the call that is over cannot reach the connection.
        if isinstance(conn, _TrackedConnection):
            conn.leave_call()
        super()._put_conn(conn)


class _TrackedConnection(HTTPConnection):
    """A connection that knows which call it works for, and whose socket the call can end."""

    plumbing: Plumbing
    _wire: Wire | None = None
    _call: Call | None = None

    # What urllib3 calls on the way of a request, in this order.

    def connect(self) -> None:
        """Connect, through the proxy if there is one, and set up TLS."""
        self._call = current_call()
        try:
            super().connect()
        except BaseException as error:
            _close_lost(error)
            self._free_wire()
            raise
        if self._wire is not None:
            self._wire.settle(self.sock)

    def request(self, *args: Any, **options: Any) -> None:
        """Send the head of a request, on a new connection or on one that lay idle."""
        if self.sock is None:
            self.connect()
        self._call = call = current_call()
        if call is not None and self._wire is not None:
            call.use(self._wire)
            call.stage = "asked"
        super().request(*args, **options)

    def leave_call(self) -> None:
        """The answer is over, or will be read from elsewhere no more."""
        call, self._call = self._call, None
        if call is not None:
            call.leave()

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
        call.fresh = True
        call.stage = "connecting"
        name = f"connecting to {self.host}:{self.port}"
        sock, wire = self.plumbing.connecting.run(name, self._open, call, discard=_discard)
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
        return _open_tcp(self, wires)

    def _has_own_way(self) -> bool:
        """A class in between, such as SOCKS, connects in its own way."""
        plain: Any = super()._new_conn
        return plain.__func__ is not vars(HTTPConnection)["_new_conn"]

    def _free_wire(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.let_go()


def _close_lost(error: BaseException) -> None:
    """Close the TLS socket that a connect had begun to make when it failed.

    Where the other side has reset the connection before TLS begins, Python leaves that socket
    open and gives it to nobody: only the traceback knows it, and keeps it for as long as it is
    kept itself.
    """
    trace = error.__traceback__
    while trace is not None:
        made = trace.tb_frame.f_locals.get("self")
        if isinstance(made, ssl.SSLSocket):
            made.close()
        trace = trace.tb_next


def _born(sock: socket.socket, wires: Wires) -> Wire:
    try:
        with suppress(OSError):  # it may be no TCP
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Wire(sock, wires)
    except BaseException:
        sock.close()
        raise


def _discard(opened: Opened) -> None:
    sock, wire = opened
    sock.close()
    wire.let_go()


def _open_tcp(connection: HTTPConnection, wires: Wires) -> Opened:
    """Connect to the first address that answers, as urllib3 does, with a `Wire` from birth."""
    host = connection._dns_host.strip("[]")  # noqa: SLF001 - with its trailing dot, for the resolver
    error: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(
        host, connection.port, allowed_gai_family(), socket.SOCK_STREAM
    ):
        sock = socket.socket(family, kind, protocol)
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
