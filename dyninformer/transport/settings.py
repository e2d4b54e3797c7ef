"""What a client's Configuration says about connections and requests.

Everything is read from the official client's `Configuration`, which documents it. Methods of a
client that a user's own class overrides are not called.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from dyninformer.transport.endpoint import Endpoint, offer_http2
from dyninformer.transport.messages import Pairs
from dyninformer.transport.plain import client_context

Auth: TypeAlias = Callable[[], Pairs]
"""Returns the headers that carry the credentials. It may block: a refresh hook may run."""

_FILES: Final = ("ssl_ca_cert", "cert_file", "key_file")


@dataclass(frozen=True)
class Settings:
    """How requests are made."""

    endpoint: Endpoint
    headers: Pairs
    """Sent with each request."""
    auth: Auth
    blocks: bool
    """``auth`` may block, so it is called on a thread."""

    def with_headers(self, more: Pairs) -> Settings:
        """Return settings that send these headers, too."""
        return replace(self, headers=(*self.headers, *more))


def settings_of(configuration: Any, headers: Mapping[str, str]) -> Settings:
    """Read the settings of an official Configuration; ``headers`` are its client's own."""
    host = str(configuration.host).rstrip("/")
    scheme = urlsplit(host).scheme.lower()
    proxy = configuration.proxy or ""
    if proxy and _passes_proxy(host, getattr(configuration, "no_proxy", None) or ""):
        proxy = ""
    name = getattr(configuration, "assert_hostname", None)
    own_name = name if isinstance(name, str) and name else ""
    return Settings(
        endpoint=Endpoint(
            url=host,
            tls=TlsContexts(configuration) if scheme == "https" else None,
            server_name=own_name or getattr(configuration, "tls_server_name", None) or "",
            proxy=proxy,
            proxy_headers=tuple((getattr(configuration, "proxy_headers", None) or {}).items()),
            proxy_tls=_proxy_tls(configuration),
            socket_options=tuple(getattr(configuration, "socket_options", None) or ()),
        ),
        headers=tuple(headers.items()),
        auth=lambda: _credentials(configuration),
        blocks=configuration.refresh_api_key_hook is not None,
    )


def _proxy_tls(configuration: Any) -> Callable[[], ssl.SSLContext]:
    given = getattr(configuration, "proxy_ssl_context", None)
    return ssl.create_default_context if given is None else lambda: given


def _credentials(configuration: Any) -> Pairs:
    """Return the headers with the credentials; the Configuration refreshes them by its hook."""
    return [
        (each["key"], each["value"])
        for each in configuration.auth_settings().values()
        if each["in"] == "header" and each["value"]
    ]


def _passes_proxy(url: str, no_proxy: str) -> bool:
    """Return whether NO_PROXY names the host: by name, by address, or by a network of addresses."""
    parts = urlsplit(url)
    host, whole = (parts.hostname or "").lower(), parts.netloc.lower()
    for entry in filter(None, (each.strip().lower() for each in no_proxy.split(","))):
        name = entry.lstrip(".")
        if entry == "*" or name in (host, whole) or host.endswith("." + name):
            return True
        with suppress(ValueError):
            if ip_address(host) in ip_network(entry, strict=False):
                return True
    return False


class TlsContexts:
    """Makes the TLS context of a Configuration, once for all connections.

    A context takes up to 840 kB and 21 ms where the system's authorities are loaded. If one of its
    files has changed, such as a certificate that was rotated, the next connection gets a new one.
    """

    def __init__(self, configuration: Any) -> None:
        self._configuration = configuration
        self._made: tuple[object, ssl.SSLContext] | None = None

    def __call__(self) -> ssl.SSLContext:
        """Return the context. Raises `OSError` or `ValueError` if a file cannot be used."""
        files = tuple(_state(getattr(self._configuration, name, None)) for name in _FILES)
        made = self._made
        if made is None or made[0] != files:
            made = self._made = files, self._new()
        return made[1]

    def _new(self) -> ssl.SSLContext:
        configuration = self._configuration
        context = offer_http2(client_context())
        if not configuration.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif getattr(configuration, "assert_hostname", None) is False:
            context.check_hostname = False
        data = getattr(configuration, "ca_cert_data", None)
        if configuration.ssl_ca_cert or data:
            context.load_verify_locations(configuration.ssl_ca_cert or None, cadata=data or None)
        else:
            context.load_default_certs()
        if configuration.cert_file:
            context.load_cert_chain(
                configuration.cert_file, configuration.key_file or None, _without_password
            )
        return context


def _state(path: str | None) -> tuple[int, ...] | None:
    if not path:
        return None
    with suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
    return ()


def _without_password() -> str:
    """OpenSSL would ask at the terminal."""
    raise ValueError("the client's key is encrypted")
