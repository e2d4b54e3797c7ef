"""What TLS needs, loaded once for all connections of a client that are set up alike.

urllib3 makes a context for each connection, and loads the certificates into it again. With a
cluster's own authority that is 18 kB and a third of a millisecond; with the system's authorities,
where none is named, 840 kB and 21 ms. A thousand watches are a thousand connections.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import (
    ALPN_PROTOCOLS,
    create_urllib3_context,
    resolve_cert_reqs,
    resolve_ssl_version,
)

from dyninformer.threads import ReentrantLock, in_forked_child

_LOADED: Final = ("ca_certs", "ca_cert_dir", "ca_cert_data", "cert_file", "key_file")
_SETTINGS: Final = (
    *_LOADED,
    "key_password",
    "cert_reqs",
    "ssl_version",
    "ssl_minimum_version",
    "ssl_maximum_version",
    "assert_hostname",
    "assert_fingerprint",
)
_KEPT: Final = 8  # a client has one; a few more while its files are moved elsewhere

Settings: TypeAlias = tuple[Any, ...]
Files: TypeAlias = tuple[tuple[int, ...] | None, ...]
"""Which files stand there, and in which state: a rotated certificate is another file."""


class Contexts:
    """The contexts of one client, for any thread.

    A file that has changed is loaded by the next connection, as if each loaded its own.
    """

    def __init__(self) -> None:
        # Held while a context is made, so that a thousand connections that begin at once wait for
        # one, in place of making a thousand. What it reads, each of them would read.
        self._lock = ReentrantLock()
        self._made: dict[Settings, tuple[Files, ssl.SSLContext]] = {}  # guarded by it
        in_forked_child(self, "_lock")

    @contextmanager
    def lent_to(self, connection: HTTPConnection) -> Iterator[None]:
        """Have it connect with the context of all that are set up as it is.

        Nothing is lent where it is not certain that all comes to the same: to one that was given a
        context, that goes by a proxy, or whose settings cannot be loaded, which urllib3 says best.
        """
        if not isinstance(connection, HTTPSConnection) or _has_own_way(connection):
            yield
            return
        context = self._context(connection)
        if context is None:
            yield
            return
        own = {name: getattr(connection, name) for name in _LOADED}
        vars(connection).update(dict.fromkeys(_LOADED), ssl_context=context)
        try:
            yield
        finally:  # it may connect again, when its files have changed
            vars(connection).update(own, ssl_context=None)

    def _context(self, connection: HTTPSConnection) -> ssl.SSLContext | None:
        try:
            settings = tuple(getattr(connection, name) for name in _SETTINGS)
            with self._lock:
                files = _files(connection)
                known = self._made.get(settings)
                if known is not None and known[0] == files:
                    return known[1]
                made = _new(connection)
                while len(self._made) >= _KEPT:
                    del self._made[next(iter(self._made))]
                self._made[settings] = files, made
        except Exception:  # noqa: BLE001 - urllib3 comes to the same, and says what it is
            return None
        return made


def _has_own_way(connection: HTTPSConnection) -> bool:
    """It connects otherwise, or what it goes by needs the same settings."""
    inner: Any = next(
        kind.__dict__["connect"]
        for kind in type(connection).__mro__
        if "connect" in kind.__dict__ and not kind.__module__.startswith("dyninformer.")
    )
    return (
        connection.ssl_context is not None
        or connection.proxy is not None
        or inner is not HTTPSConnection.connect
    )


def _files(connection: HTTPSConnection) -> Files:
    paths = [connection.ca_certs, connection.ca_cert_dir, connection.cert_file, connection.key_file]
    if not _names_authorities(connection):
        system = ssl.get_default_verify_paths()
        paths += [system.cafile, system.capath]
    return tuple(None if path is None else _state(path) for path in paths)


def _state(path: str) -> tuple[int, ...]:
    with suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
    return ()


def _names_authorities(connection: HTTPSConnection) -> bool:
    return bool(connection.ca_certs or connection.ca_cert_dir or connection.ca_cert_data)


def _new(connection: HTTPSConnection) -> ssl.SSLContext:
    """What urllib3 would make for this connection alone."""
    context = create_urllib3_context(
        ssl_version=resolve_ssl_version(connection.ssl_version),
        ssl_minimum_version=connection.ssl_minimum_version,
        ssl_maximum_version=connection.ssl_maximum_version,
        cert_reqs=resolve_cert_reqs(connection.cert_reqs),
    )
    if not isinstance(context, ssl.SSLContext):
        raise TypeError("urllib3 uses another library for TLS")
    if _names_authorities(connection):
        context.load_verify_locations(
            connection.ca_certs, connection.ca_cert_dir, connection.ca_cert_data
        )
    else:
        context.load_default_certs()
    if connection.cert_file:
        password = connection.key_password
        context.load_cert_chain(
            connection.cert_file, connection.key_file, _ask_nobody if password is None else password
        )
    context.set_alpn_protocols(ALPN_PROTOCOLS)
    # urllib3 sets them again for each connection. OpenSSL copies them into a new connection
    # meanwhile, which Python asks it for without holding its lock: so they stay as they are.
    vars(context)["set_alpn_protocols"] = _stay
    return context


def _ask_nobody() -> str:
    """OpenSSL would ask at the terminal."""
    raise ValueError("the client's key is encrypted")


def _stay(_: object) -> None:
    pass
