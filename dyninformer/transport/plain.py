"""What a plain kubeconfig says, read without the official client.

Importing that takes longer than most commands do. What only it knows is left to it: plugins,
passwords, tokens in files, proxies.
"""

from __future__ import annotations

import base64
import os
import ssl
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dyninformer import __version__

_CLUSTER: Final = frozenset(
    {
        "server",
        "certificate-authority",
        "certificate-authority-data",
        "insecure-skip-tls-verify",
        "tls-server-name",
        "extensions",
    }
)
_CERTIFICATES: Final = ("client-certificate", "client-key")
_USER: Final = frozenset({"token", *_CERTIFICATES, *(f"{name}-data" for name in _CERTIFICATES)})


@dataclass(frozen=True, repr=False)
class PlainConfiguration:
    """As much of an official Configuration as requests need."""

    host: str
    token: str = ""
    tls: ssl.SSLContext | None = None
    """None for plain HTTP."""
    server_name: str = ""
    """The name that the certificate has to be for, "" for that of the host."""

    @property
    def headers(self) -> dict[str, str]:
        """Those of every request."""
        asks = {"User-Agent": f"dyninformer/{__version__}"}
        return asks | ({"Authorization": f"Bearer {self.token}"} if self.token else {})


def plain_configuration(
    cluster: Mapping[str, Any], user: Mapping[str, Any], directory: str
) -> PlainConfiguration | None:
    """What they say, with paths from a directory; None if the official client has to read it.

    What is wrong with a file is found out there too, and said in its words.
    """
    known = _CLUSTER.issuperset(cluster) and _USER.issuperset(user) and not _proxies()
    server, token = cluster.get("server"), user.get("token")
    if not known or not isinstance(server, str) or not isinstance(token, str | None):
        return None
    if token and not (token.isascii() and token.isprintable()):
        return None  # no header can have it
    host = server.rstrip("/")
    if "@" in host:
        return None  # a user and a password
    if not host.startswith("https://"):
        return PlainConfiguration(host, token or "") if host.startswith("http://") else None
    try:
        context = _context(cluster, user, directory)
    except (OSError, ValueError, TypeError):  # ssl's errors are OSErrors
        return None
    return PlainConfiguration(host, token or "", context, str(cluster.get("tls-server-name") or ""))


def _proxies() -> bool:
    """A proxy is configured. What reads them is imported only where there may be some."""
    named = any(name.lower().endswith("_proxy") for name in os.environ)
    if not named and sys.platform not in ("darwin", "win32"):  # these have settings of their own
        return False
    from urllib.request import getproxies  # noqa: PLC0415 - see above

    return bool(getproxies())


def _context(cluster: Mapping[str, Any], user: Mapping[str, Any], directory: str) -> ssl.SSLContext:
    context = client_context()
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    authorities = _content(cluster, "certificate-authority", directory)
    if authorities:
        context.load_verify_locations(cadata=authorities.decode("ascii"))
    else:
        context.load_default_certs()
    certificate, key = (_content(user, name, directory) for name in _CERTIFICATES)
    if certificate and key:
        with tempfile.TemporaryDirectory(prefix="dyninformer-") as place:  # 0700
            path = Path(place, "both.pem")  # OpenSSL reads files only
            path.write_bytes(certificate + b"\n" + key)
            context.load_cert_chain(path)
    return context


def client_context() -> ssl.SSLContext:
    """Return a context as strict as the official client's: TLS 1.2, certificates are verified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if sys.version_info >= (3, 13):
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_STRICT
    return context


def _content(fields: Mapping[str, Any], name: str, directory: str) -> bytes:
    """What is given in place, or in a file; in place goes first."""
    if data := fields.get(f"{name}-data"):
        content = base64.b64decode(data)
        if not content:
            raise ValueError(name)
        return content
    path = fields.get(name)
    return Path(os.path.join(directory, path)).read_bytes() if path else b""
