"""`BriefSource`: a few documents, asked for on the calling thread with what Python has.

For one look, as long as a plain kubeconfig says where. Importing the official client and urllib3
takes longer than that look; nor does it need what `Source` is for, streams and channels that end
by themselves.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlencode, urlsplit

from dyninformer.errors import StoppedError
from dyninformer.threads import ReentrantLock, in_forked_child, spawn
from dyninformer.transport.config import Environment, doubt
from dyninformer.transport.document import DocumentBody, TooLargeError
from dyninformer.transport.impersonation import Pairs
from dyninformer.transport.keepalive import keep_alive
from dyninformer.transport.plain import PlainConfiguration
from dyninformer.transport.request_log import reported_request
from dyninformer.transport.requests import NO_HEADERS, BrokenAnswerError, JsonReply

_CONNECT_SECONDS: Final = 10.0
_PIECE: Final = 1 << 17
_LONGEST_SHOWN: Final = 40

Addresses: TypeAlias = list[Any]


class BriefSource:
    """An API server to ask for documents; see `DocumentSource`.

    Every method may be called from any thread. ``_lock`` guards which connections there are, which
    of them lie idle, and that it is closed; under it sockets are shut down, and nothing else is
    done with them.
    """

    def __init__(self, environment: Environment, plain: PlainConfiguration) -> None:
        self._environment = environment
        self._plain = plain
        self._lock = ReentrantLock()
        self._all: set[_Connection] = set()
        self._idle: list[_Connection] = []
        self._closed = False
        in_forked_child(self, "_lock", _closed=True, _all=set, _idle=list)

    @classmethod
    def of(cls, environment: Environment) -> BriefSource | None:
        """One for what an environment says; None where only the official client knows that."""
        plain = environment.plain()
        return None if plain is None else cls(environment, plain)

    @property
    def host(self) -> str:
        """Where the API server is, as messages name it."""
        return self._environment.host

    @property
    def namespace(self) -> str:
        """The namespace that the configuration is for, as kubectl takes it; else "default"."""
        return self._environment.namespace or "default"

    @property
    def doubt(self) -> str:
        """What to tell people of the connection before they trust it; "" if there is nothing."""
        return doubt(self.host, verified=self._environment.verified)

    def get_json(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] = NO_HEADERS,
        deadline: float = 30.0,
    ) -> JsonReply:
        """Ask for something small, and read it whole."""
        plain = self._plain
        url = plain.host + path + (f"?{urlencode(query)}" if query else "")
        said = [*{**plain.headers, **headers}.items(), *self._environment.impersonation]
        while True:
            connection, lay_idle = self._take(plain)
            idle = False
            try:
                try:
                    with reported_request("GET", url, dict(said)) as report:
                        response = connection.ask(url, said, deadline)
                        report.answered(response.status, response.reason, _headers(response))
                except (OSError, HTTPException) as error:
                    self._check_open()
                    # It knows urllib3's errors, too.
                    from dyninformer.transport import failures  # noqa: PLC0415 - only failures need it

                    if lay_idle and failures.is_stale_connection(error):
                        continue  # it was closed meanwhile, and is one less of those that lay idle
                    stage = connection.stage
                    raise failures.unanswered(error, self.host, None, stage, deadline) from error
                reply = self._read(response, path, deadline)
                idle = connection.sock is not None  # unless the answer said that it is the last
                return reply
            finally:
                self._give_back(connection, idle=idle)

    def reload_credentials(self) -> None:
        """Take what the files say now. What is not plain any more stays as it was."""
        self._plain = self._environment.plain() or self._plain

    def close(self) -> None:
        """End every request at once, and refuse new ones. Idempotent."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for each in self._all:
                each.end()
        for each in idle:
            self._give_back(each, idle=False)

    # -- inside --------------------------------------------------------------------------

    def _take(self, plain: PlainConfiguration) -> tuple[_Connection, bool]:
        """A connection of one's own, and whether it has lain idle."""
        with self._lock:
            self._check_open()
            while self._idle:
                found = self._idle.pop()
                if found.plain is plain:
                    return found, True
                self._all.discard(found)
                found.close()
            made = _Connection(plain)
            self._all.add(made)
            return made, False

    def _give_back(self, connection: _Connection, *, idle: bool) -> None:
        with self._lock:
            if idle and not self._closed:
                self._idle.append(connection)
                return
            self._all.discard(connection)  # from here on `close` cannot reach its socket
        connection.close()

    def _read(self, response: HTTPResponse, path: str, deadline: float) -> JsonReply:
        """The whole answer; what breaks off in its midst is told as that."""
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            raise BrokenAnswerError(
                f"{self.host} answers in the encoding {encoding[:_LONGEST_SHOWN]!r}, which was not "
                "asked for. Something between, a proxy perhaps, must leave answers as they are."
            )
        body, left = DocumentBody(), response.length or 0
        try:
            while piece := response.read(_PIECE):
                body.feed(piece)
                left -= len(piece)
            if left > 0:  # read in pieces, Python takes a short body for a whole one
                raise IncompleteRead(b"", left)
            return JsonReply(response.status, _headers(response), body.value())
        except TooLargeError as error:
            raise BrokenAnswerError(f"GET {path}: {error}") from None
        except (OSError, HTTPException) as error:
            self._check_open()
            from dyninformer.transport.failures import cut_off  # noqa: PLC0415 - see `get_json`

            raise cut_off(error, self.host, deadline) from error
        finally:
            response.close()  # where it is the last of its connection, it has the socket alone

    def _check_open(self) -> None:
        if self._closed:
            raise StoppedError(f"asking {self.host} was ended, because what it was for has stopped")


def _headers(response: HTTPResponse) -> Mapping[str, str]:
    """It is no Mapping by name, and can all that one can; the names' case does not matter."""
    return cast("Mapping[str, str]", response.headers)


class _Connection(HTTPConnection):
    """One connection, used by one thread at a time; ``stage`` tells how far it came."""

    def __init__(self, plain: PlainConfiguration) -> None:
        parts = urlsplit(plain.host)
        self.default_port = 443 if plain.tls is not None else 80
        super().__init__(parts.hostname or "", parts.port or self.default_port, _CONNECT_SECONDS)
        self.sock: Any = None
        self.plain = plain
        self._ended = False
        self.stage = "connecting"
        self._path_from = len(plain.host) - len(parts.path)

    def ask(self, url: str, headers: Pairs, deadline: float) -> HTTPResponse:
        """The head of the answer to a GET. ``deadline``: seconds without a byte."""
        if self.sock is None:
            self.timeout = min(_CONNECT_SECONDS, deadline)
            self.connect()
        self.stage = "asked"
        self.sock.settimeout(deadline)
        self.putrequest("GET", url[self._path_from :])
        for name, value in headers:
            self.putheader(name, value)
        self.endheaders()
        return self.getresponse()

    def connect(self) -> None:
        """Connect to the first address that answers, and set up TLS."""
        error = OSError(f"{self.host} has no address")
        for family, kind, protocol, _, address in self._addresses():
            try:
                self.sock = socket.socket(family, kind, protocol)
                self._open(address)
            except OSError as failed:
                error = failed
                self.close()
                if self.stage == "setting up TLS" or self._ended:
                    break
            else:
                return
        raise error

    def end(self) -> None:
        """A thread that connects, reads or writes there stops within milliseconds."""
        self._ended = True
        if isinstance(self.sock, socket.socket):
            with suppress(OSError):  # the other side was faster
                # The plain method: SSLSocket's drops the TLS state under the reader.
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    def _open(self, address: Any) -> None:
        self.sock.settimeout(self.timeout)
        self.sock.connect(address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        keep_alive(self.sock)
        if self.plain.tls is not None:
            self.stage = "setting up TLS"
            name = self.plain.server_name or self.host.rstrip(".")
            # In two steps, so that `end` reaches the second.
            self.sock = self.plain.tls.wrap_socket(
                self.sock, server_hostname=name, do_handshake_on_connect=False
            )
            self.sock.do_handshake()
        if self._ended:
            raise OSError("the connection was ended")

    def _addresses(self) -> Addresses:
        """Those of the host. A lookup cannot be interrupted: it is left to a thread of its own."""
        found: Future[Addresses] = Future()

        def look_up() -> None:
            try:
                found.set_result(socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM))
            except (OSError, UnicodeError) as error:
                found.set_exception(error)

        if self.host.replace(".", "").isdigit() or ":" in self.host:
            look_up()  # an address: there is nothing to wait for
        else:
            spawn(self, f"dyninformer looking up {self.host}", look_up)
        return found.result(self.timeout)
