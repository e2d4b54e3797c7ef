"""Sockets that any thread can end: requests, the connections they go over, and their answers (S34).

`Call` is one request, from its beginning to the end of its answer; `Wire` the socket of one
connection, which a call can end; `SocketReply` the answer. `tracked` has urllib3 open connections
whose sockets are known from the moment they exist: it takes a pool manager as the user's client
has set it up, whatever its proxies, certificates and options, and gives one that behaves alike,
except that every connection announces its socket to the call it works for, opens it where
waiting can be ended, has the system notice that the other side is gone (`keepalive`), and has
Nagle's algorithm off (with it on, TLS pays 40 ms before the first answer). Nothing is retried, no
redirect followed, and an answer other than 2xx is raised as it is, unread.

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
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from importlib.metadata import version
from io import BufferedReader
from selectors import EVENT_WRITE, DefaultSelector
from traceback import walk_tb
from typing import Any, Self

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from dyninformer.errors import StoppedError
from dyninformer.threads import Bell, ReentrantLock, in_forked_child
from dyninformer.transport.chunks import BrokenChunksError, Dechunker
from dyninformer.transport.failures import cut_off
from dyninformer.transport.impersonation import Pairs
from dyninformer.transport.keepalive import keep_alive
from dyninformer.transport.pools import Quiet, unfilled, with_connections, with_headers
from dyninformer.transport.request_log import reported_request
from dyninformer.transport.requests import BrokenAnswerError
from dyninformer.watching.background import BackgroundThreads
from dyninformer.watching.gathering import Gatherer
from dyninformer.watching.tls import Contexts

_IDLE_CONNECTIONS = 4096
"""How many are kept for the next request; more work at the same time without being kept."""

_BEGUN = (errno.EINPROGRESS, errno.EWOULDBLOCK)
_PIECE = 131_072
_LONGEST_REFUSAL = 65_536
_REFUSAL_SECONDS = 5.0
_LONGEST_SHOWN = 40
_PLAIN = ("", "identity")
_ZLIB = ("gzip", "x-gzip", "deflate")
_ANY_HEADER = 32 + zlib.MAX_WBITS  # gzip's or zlib's, as it comes

Settings = Mapping[str, Any]

_this_thread = threading.local()
_logger = logging.getLogger(__name__)
_noted: set[str] = set()


class Wire:
    """A connection's socket: any thread may end what goes on there, nobody else can close it.

    Between TCP and TLS the descriptor passes from one socket object to another that is not
    available before the handshake is over; so until `settle` a duplicate is held. After
    that a file on the socket is: as long as that is open, a close elsewhere leaves the
    descriptor as it is. Either way `end` cannot hit a number that has become another
    file's, because only `let_go` frees it, under the same lock.
    """

    def __init__(self, born: socket.socket, wires: Wires) -> None:
        self._number = born.fileno()
        # By its number: a TLS socket refuses `dup`.
        self._socket: socket.socket | None = socket.socket(fileno=os.dup(born.fileno()))
        self._file: Any = None
        self._holders = 1
        self._wires = wires
        in_forked_child(self, then=Wire._leave_to_parent)
        try:
            wires.add(self)
        except BaseException:
            self._socket.close()
            raise

    def settle(self, final: object) -> None:
        """The connection is ready, and this is its socket."""
        if not isinstance(final, socket.socket):
            return  # TLS inside TLS, through a proxy: no socket, so the duplicate stays
        with self._wires.lock:
            if self._socket is None:
                return
            duplicate, self._socket = self._socket, final
            self._file = final.makefile("rb", buffering=0)
        duplicate.close()

    def allow_silence(self, seconds: float) -> None:
        """From the next read on, wait so long for a byte."""
        with self._wires.lock:
            if self._file is not None and self._socket is not None:  # it is the one that is read
                self._socket.settimeout(seconds)

    @property
    def read_from(self) -> socket.socket | None:
        """The one that is read, once it is known."""
        with self._wires.lock:
            return None if self._file is None else self._socket

    def end(self) -> None:
        """A thread that reads or writes there stops within milliseconds."""
        with self._wires.lock:
            if self._socket is not None:
                with suppress(OSError):  # the other side was faster
                    # The plain method also for TLS: SSLSocket's drops the TLS state under
                    # the reader, which then takes ciphertext for the answer.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def hold(self) -> None:
        """One more needs it: as many `let_go` as there are holders free it."""
        with self._wires.lock:
            self._holders += 1

    def let_go(self) -> None:
        """One less needs it."""
        with self._wires.lock:
            self._holders -= 1
            if self._holders > 0:
                return
            sock, self._socket = self._socket, None
            file, self._file = self._file, None
            self._wires.discard(self)
        if file is not None:
            file.close()
        elif sock is not None:
            sock.close()

    def _leave_to_parent(self) -> None:
        """Close what was inherited, never shut it down: the connection is the parent's."""
        sock, self._socket = self._socket, None
        if sock is None:
            return
        with suppress(OSError):
            if self._file is None and os.path.sameopenfile(self._number, sock.fileno()):
                os.close(self._number)  # in the middle of a handshake; nobody has the object
        with suppress(OSError):
            os.close(sock.detach())


class Wires:
    """All connections of one client, those that lie idle too, and the lock of what goes on there.

    ``lock`` guards the set of wires, each `Wire`, which wire each `Call` has and whether the call
    was ended, and which thread frees each `SocketReply`. Under it nothing waits and nothing is
    closed: a socket may be shut down, given a timeout, or get a file. No other lock is taken under
    it.
    """

    def __init__(self) -> None:
        self.lock = ReentrantLock()
        self._all: set[Wire] = set()
        self._ended = False
        in_forked_child(self, "lock", _ended=True, _all=set)

    def __len__(self) -> int:
        with self.lock:
            return len(self._all)

    def add(self, wire: Wire) -> None:
        """A connection begins. Raises after `end`."""
        with self.lock:
            self.check_open()
            self._all.add(wire)

    def check_open(self) -> None:
        """Raise after `end`."""
        if self._ended:
            raise StoppedError("no connection begins any more: the factory was shut down")

    def discard(self, wire: Wire) -> None:
        """It is over."""
        with self.lock:
            self._all.discard(wire)

    def end(self) -> None:
        """End what goes on anywhere, for good; a connect under way fails at once, on Linux."""
        with self.lock:
            self._ended = True
            wires = list(self._all)
        for wire in wires:
            wire.end()


class Call:
    """One request. Its own thread moves it on; any thread may `end` it.

    ``stage`` tells how far it came, ``reused`` that it went over a connection which had lain
    idle. With ``anew`` it goes over none of those, with ``kept`` over none that other calls use;
    else over none that was made before ``doubted``.
    ``answer`` is http.client's, once there is one: urllib3 keeps its own to itself.
    """

    def __init__(self, wires: Wires) -> None:
        self.wires = wires
        self._changed = Bell()  # rings at the end, and for results that are waited for
        self._wire: Wire | None = None
        self._ended = False
        self.anew = self.kept = False
        self.doubted = float("-inf")
        self.reused = False
        self.stage = "preparing"
        self.answer: Any = None

    def begin(self, doubted: float) -> None:
        """It is tried from the start."""
        self.doubted = doubted
        self.reused, self.stage, self.answer = False, "preparing", None

    @property
    def read_from(self) -> socket.socket | None:
        """What its answer is read from; None where that is no socket of the system's."""
        with self.wires.lock:
            return None if self._wire is None else self._wire.read_from

    @property
    def ended(self) -> bool:
        """It was ended from outside."""
        return self._ended

    def use(self, wire: Wire) -> None:
        """It goes over this connection from now on."""
        with self.wires.lock:
            self._check()
            if self._wire is wire:
                return
            wire.hold()
            before, self._wire = self._wire, wire
        if before is not None:
            before.let_go()

    def leave(self) -> None:
        """It needs its connection no more; after this an `end` cannot touch that."""
        with self.wires.lock:
            wire, self._wire = self._wire, None
            self.answer = None  # an idle connection knows its last call
        if wire is not None:
            wire.let_go()

    def allow_silence(self, seconds: float) -> None:
        """From the next read on, wait so long for a byte."""
        with self.wires.lock:
            if self._wire is not None:
                self._wire.allow_silence(seconds)

    def end(self) -> None:
        """Whatever it waits for, it stops. Idempotent, and harmless when it is over."""
        with self.wires.lock:
            self._ended = True
            if self._wire is not None:
                # Under the lock: `leave` comes before another request gets the connection.
                self._wire.end()
        self._changed.ring()

    def wait_for(self, result: Future[Any], /) -> None:
        """Wait for something that is done on another thread."""
        result.add_done_callback(lambda _: self._changed.ring())
        self._changed.wait_for(lambda: result.done() or self._ended)
        self._check()

    def _check(self) -> None:
        if self._ended:
            raise StoppedError("the request was ended, because what it was for has stopped")


def note_changed(package: str, how: str, instead: str) -> None:
    """Log, once in a process, that a package does not work as the versions known here do."""
    warn_once(
        f"{package} {version(package)} on Python {platform.python_version()} {how}, unlike the "
        f"versions that dyninformer knows. So {instead}. Look for a newer dyninformer."
    )


def warn_once(text: str) -> None:
    """Log a warning, unless this process has logged it before."""
    if text not in _noted:
        _noted.add(text)
        _logger.warning("%s", text)


class RefusalError(Exception):
    """An answer that is no 2xx, on its way around what the official client does with it."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        super().__init__(response.status)
        self.response = response


@dataclass(frozen=True, slots=True)
class Plumbing:
    """What all connections of one client share."""

    wires: Wires
    connecting: BackgroundThreads
    headers: Pairs = ()
    """Sent with each request."""
    contexts: Contexts = field(default_factory=Contexts)


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
    vars(manager)["added_headers"] = plumbing.headers
    manager.pool_classes_by_scheme = {
        scheme: unfilled(
            with_connections(pool_class, "Tracked", _TrackedConnection, {"plumbing": plumbing})
        )
        for scheme, pool_class in manager.pool_classes_by_scheme.items()
    }
    return manager


class _TrackedManager(urllib3.PoolManager):
    """Answers are given as they come."""

    added_headers: Pairs = ()

    def urlopen(  # type: ignore[override]
        self, method: str, url: str, redirect: bool = True, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        """Ask once. A redirect is an answer too: credentials do not follow it elsewhere."""
        del redirect
        options["retries"] = False
        if self.added_headers:
            options["headers"] = with_headers(options.get("headers"), self.added_headers)
        with reported_request(method, url, options.get("headers") or {}) as report:
            response = super().urlopen(method, url, redirect=False, **options)
            report.answered(response.status, response.reason, response.headers)
        if not 200 <= response.status <= 299:
            raise RefusalError(response)
        return response

    def connection_from_host(
        self,
        host: str | None,
        port: int | None = None,
        scheme: str | None = "http",
        pool_kwargs: dict[str, Any] | None = None,
    ) -> urllib3.HTTPConnectionPool:
        """The pool to this server: calls whose connection is kept have another one, of one."""
        call = current_call()
        if call is not None and call.kept:
            pool_kwargs = {**(pool_kwargs or {}), "maxsize": 1}
        return super().connection_from_host(host, port, scheme, pool_kwargs)


class _TrackedConnection(Quiet):
    """A connection that knows which call it works for, and whose socket the call can end."""

    plumbing: Plumbing
    _wire: Wire | None = None
    _call: Call | None = None
    _made = float("-inf")

    def __init__(self, host: str, port: int | None = None, **options: Any) -> None:
        super().__init__(host, port, **options)
        # With its trailing dot, for the resolver; ``host`` is without it, for certificates.
        self._name = host.strip("[]") if port is not None else self.host

    # What urllib3 calls on the way of a request, in this order.

    @property
    def is_connected(self) -> bool:
        """It can be used as it is: asked of one that lay idle, and is closed if it cannot."""
        call = current_call()
        if call is not None and (call.anew or (self._made < call.doubted and not call.kept)):
            return False
        return super().is_connected

    def connect(self) -> None:
        """Connect, through the proxy if there is one, and set up TLS."""
        self._call = call = current_call()
        self._made = time.monotonic()
        try:
            if call is None or _opens_as_known():
                with self.plumbing.contexts.lent_to(self):
                    super().connect()
            else:
                self._connect_elsewhere(call)
            if self._wire is None:  # a class in between has its own way past `_new_conn`
                self._wire = _born(self.sock, self.plumbing.wires)
                if call is not None:
                    call.use(self._wire)
        except BaseException as error:
            close_lost_socket(error)
            self.close()
            raise
        self._wire.settle(self.sock)

    def request(self, *args: Any, **options: Any) -> None:
        """Send the head of a request, on a new connection or on one that lay idle."""
        call, before = current_call(), self._call
        if self.sock is None:
            self.connect()
        elif call is not None:
            call.reused = before is not call  # through a proxy, it was connected for this very call
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
        call.stage = "setting up TLS"
        return sock

    def _open(self) -> tuple[socket.socket, Wire]:
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
        self._call = None  # on the background thread nothing more is waited for
        try:
            super().connect()
            if self._wire is None:
                self._wire = _born(self.sock, self.plumbing.wires)
        except BaseException as error:
            close_lost_socket(error)
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


def close_lost_socket(error: BaseException) -> None:
    """Close the TLS socket that a connect had begun to make when it failed.

    Where the other side has reset the connection before TLS begins, Python leaves that socket
    open and gives it to nobody: only the traceback knows it, and is part of a cycle. Of 300
    connections reset like that, 109 were open until the garbage collector came, without this.
    Where Python closes it, this finds it closed.
    """
    for frame, _ in walk_tb(error.__traceback__):
        for value in frame.f_locals.values():
            if isinstance(value, ssl.SSLSocket):
                value.close()


def _born(sock: socket.socket, wires: Wires) -> Wire:
    try:
        with suppress(OSError, AttributeError):  # it may be no TCP, or TLS inside TLS
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        keep_alive(sock)
        return Wire(sock, wires)
    except BaseException:
        sock.close()
        raise


def _discard(opened: tuple[socket.socket, Wire]) -> None:
    sock, wire = opened
    sock.close()
    wire.let_go()


def _open_tcp(connection: HTTPConnection, host: str, wires: Wires) -> tuple[socket.socket, Wire]:
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


class SocketReply:
    """See `Reply`. The thread that reads it also frees what it holds; unread, `close` does."""

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
        self._reading = False
        self._over = False

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
        with self._call.wires.lock:
            if self._over or self._reading:
                return
            self._reading = True
        try:
            yield from self._pieces()
        except BrokenAnswerError:
            raise
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
        """The body of a refusal, or as much of its beginning as an error message needs.

        What was asked for may have been a stream, and then this one, too, may have no end.
        """
        found, end = b"", time.monotonic() + _REFUSAL_SECONDS
        self.allow_silence(_REFUSAL_SECONDS)
        with suppress(ConnectionError):
            for piece in self.chunks():
                found += piece
                left = end - time.monotonic()
                if len(found) >= _LONGEST_REFUSAL or left <= 0:
                    break
                self.allow_silence(left)
        self.close()
        return found[:_LONGEST_REFUSAL]

    def close(self) -> None:
        """End it at once, from any thread; a read that is under way ends."""
        self._call.end()
        with self._call.wires.lock:
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
        body = Gatherer(head.fp, self._call.read_from)
        while not dechunker.done:
            data = body.read()
            if not data:
                raise BrokenChunksError("the connection was closed in the middle of the body")
            if piece := dechunker.feed(data):
                yield piece
        # As urllib3 does it at the end of a body: the connection is free for another request.
        head.close()
        if not dechunker.beyond:
            self._response.release_conn()

    def _free(self) -> None:
        with self._call.wires.lock:
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
