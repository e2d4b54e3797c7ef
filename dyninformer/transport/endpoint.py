"""Where the API server is, and how a connection to it is opened."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

from dyninformer.errors import ConfigError
from dyninformer.transport.connection import READ_SIZE, Connection
from dyninformer.transport.http1 import Http1
from dyninformer.transport.http2 import Http2
from dyninformer.transport.keepalive import keep_alive
from dyninformer.transport.layers import Layer, Tls, Tunnel
from dyninformer.transport.loop import in_thread
from dyninformer.transport.messages import Engine, Pairs, ProtocolError

CONNECT_SECONDS: Final = 10.0
_PORTS: Final = {"http": 80, "https": 443}
_SOCKS: Final = {
    "socks4": (4, False),
    "socks4a": (4, True),
    "socks5": (5, False),
    "socks5h": (5, True),
}

SocketOptions: TypeAlias = Sequence[tuple[int, int, Any]]
_BOTH: Final = ["h2", "http/1.1"]


@dataclass(frozen=True)
class Endpoint:
    """Where the server is. ``tls`` makes a context, which is asked for with each connection."""

    url: str
    tls: Callable[[], ssl.SSLContext] | None = None
    """None for plain HTTP."""
    server_name: str = ""
    """The name that the certificate has to be for; "" for the host of the URL."""
    proxy: str = ""
    """The URL of a proxy; "" for none."""
    proxy_headers: Pairs = ()
    proxy_tls: Callable[[], ssl.SSLContext] = field(default=ssl.create_default_context)
    """Makes a context for a proxy that is spoken to by TLS."""
    socket_options: SocketOptions = ()

    @property
    def parts(self) -> SplitResult:
        """The parts of the URL."""
        return urlsplit(self.url)

    @property
    def authority(self) -> str:
        """The host and port, as requests name them."""
        host = self.parts.hostname or ""
        name = f"[{host}]" if ":" in host else host
        port = self.parts.port
        return name if port in (None, _PORTS.get(self.parts.scheme)) else f"{name}:{port}"


class ConnectError(ConnectionError):
    """No connection came about. ``stage`` says how far it came, ``__cause__`` what failed."""

    def __init__(self, stage: str) -> None:
        super().__init__(f"failed while {stage}")
        self.stage = stage


class Connector:
    """Opens connections to one endpoint. For one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._buffer = bytearray(READ_SIZE)
        self._last: Tls | None = None  # of the newest connection, whose session can be resumed

    async def connect(self, on_change: Callable[[], None]) -> Connection:
        """Open a connection, within `CONNECT_SECONDS` for each step. Raises `ConnectError`."""
        stage = "connecting"
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                sock = await self._open()
            stage = "setting up TLS"
            layers = self._layers()
            connection = Connection(layers, self._http(layers), self._buffer, on_change)
            connection.socket = sock
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await connection.loop.create_connection(lambda: connection, sock=sock)
                    await connection.established()
            except BaseException:
                connection.close()
                sock.close()
                raise
        except (OSError, ProtocolError) as error:
            raise ConnectError(stage) from error
        self._last = layers[-1] if layers and isinstance(layers[-1], Tls) else None
        return connection

    # -- inside --------------------------------------------------------------------------

    async def _open(self) -> socket.socket:
        """Connect to the proxy if there is one, else to the server."""
        parts, proxy = self.endpoint.parts, urlsplit(self.endpoint.proxy)
        if proxy.scheme in _SOCKS:
            return await in_thread(self._open_by_socks, "dyninformer connecting by SOCKS")
        target = proxy if self.endpoint.proxy else parts
        return await open_tcp(
            target.hostname or "",
            target.port or _PORTS.get(target.scheme, 80),
            self.endpoint.socket_options,
        )

    def _open_by_socks(self) -> socket.socket:
        """Connect by SOCKS. It blocks, so it is run on a thread."""
        try:
            import socks  # noqa: PLC0415 - only for those who have such a proxy
        except ImportError:
            raise ConfigError(
                "a SOCKS proxy is configured, and the package for it is not there. "
                "Install it: pip install PySocks"
            ) from None
        parts, proxy = self.endpoint.parts, urlsplit(self.endpoint.proxy)
        version, remote_names = _SOCKS[proxy.scheme]
        sock: socket.socket = socks.create_connection(
            (parts.hostname, parts.port or _PORTS.get(parts.scheme, 80)),
            timeout=CONNECT_SECONDS,
            proxy_type=socks.SOCKS5 if version == 5 else socks.SOCKS4,
            proxy_addr=proxy.hostname,
            proxy_port=proxy.port or 1080,
            proxy_rdns=remote_names,
            proxy_username=unquote(proxy.username) if proxy.username else None,
            proxy_password=unquote(proxy.password) if proxy.password else None,
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        )
        prepare(sock, self.endpoint.socket_options)
        return sock

    def _layers(self) -> list[Layer]:
        endpoint, proxy = self.endpoint, urlsplit(self.endpoint.proxy)
        layers: list[Layer] = []
        if proxy.scheme == "https":
            layers.append(Tls(endpoint.proxy_tls(), proxy.hostname or ""))
        if proxy.scheme in ("http", "https") and endpoint.tls is not None:
            port = endpoint.parts.port or _PORTS["https"]
            host = endpoint.authority.removesuffix(f":{port}")
            layers.append(Tunnel(f"{host}:{port}", _proxy_headers(proxy, endpoint.proxy_headers)))
        if endpoint.tls is not None:
            context = endpoint.tls()
            known = self._last  # with TLS 1.3 a session can be resumed only after the first answer
            session = known.session if known is not None and known.context is context else None
            host = endpoint.parts.hostname or ""
            layers.append(Tls(context, endpoint.server_name or host.rstrip("."), session))
        return layers

    def _http(self, layers: Sequence[Layer]) -> Callable[[], Engine]:
        """Return what makes the engine, once it is known which protocol was agreed on."""
        endpoint, proxy = self.endpoint, urlsplit(self.endpoint.proxy)

        def made() -> Engine:
            last = layers[-1] if layers else None
            if isinstance(last, Tls) and endpoint.tls is not None and last.protocol == "h2":
                return Http2(endpoint.authority)
            if proxy.scheme in ("http", "https") and endpoint.tls is None:
                headers = _proxy_headers(proxy, endpoint.proxy_headers)
                return Http1(endpoint.authority, through_proxy=True, proxy_headers=headers)
            return Http1(endpoint.authority)

        return made


async def open_tcp(host: str, port: int, options: SocketOptions) -> socket.socket:
    """Connect to the first address that answers. Raises the last error if none does."""
    loop = asyncio.get_running_loop()
    error: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in await _addresses(host, port):
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError as failed:  # this machine has no IPv6, say
            error = failed
            continue
        try:
            sock.setblocking(False)
            prepare(sock, options)
            await loop.sock_connect(sock, address)
        except OSError as failed:
            sock.close()
            error = failed
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise error


def prepare(sock: socket.socket, options: SocketOptions) -> None:
    """Set what each connection needs, then the user's own options."""
    with suppress(OSError, AttributeError):  # it may be no TCP
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    keep_alive(sock)
    for option in options:
        sock.setsockopt(*option)


async def _addresses(host: str, port: int) -> list[Any]:
    """Look a name up, on a thread since nothing can interrupt that. An address needs no look-up."""
    # Users who keep to IPv4 replace this function of urllib3's.
    family_of = getattr(sys.modules.get("urllib3.util.connection"), "allowed_gai_family", None)
    family = socket.AF_UNSPEC if family_of is None else family_of()

    def look_up() -> list[Any]:
        return socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)

    if ":" in host or host.replace(".", "").isdigit():
        return look_up()
    return await in_thread(look_up, f"dyninformer looking up {host}")


def _proxy_headers(proxy: SplitResult, given: Pairs) -> Pairs:
    headers = list(given)
    names = {name.lower() for name, _ in headers}
    if proxy.username and "proxy-authorization" not in names:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        headers.append(("Proxy-Authorization", "Basic " + base64.b64encode(pair.encode()).decode()))
    return headers


def offer_http2(context: ssl.SSLContext) -> ssl.SSLContext:
    """Have a context offer HTTP/2, and HTTP/1.1 for servers and proxies without it."""
    context.set_alpn_protocols(_BOTH)
    return context
