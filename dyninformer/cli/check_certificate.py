"""Whether the server's certificate is checked, and for how long it is valid."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from dyninformer.cli.findings import Finding, ok, warn
from dyninformer.watching.source import Source

_DAY: Final = 86_400.0
_SOON_DAYS: Final = 14


def certificate(source: Source, patience: float) -> Iterator[Finding]:
    """For a server that answers over TLS."""
    host = urlsplit(source.host)
    if host.scheme != "https":
        return
    settings: Any = source.writes_client.configuration
    if not settings.verify_ssl:
        yield warn(
            "certificate",
            "it is not verified: anybody on the way can read along, and take the credentials",
            "Take insecure-skip-tls-verify out of the kubeconfig, and name the "
            "certificate-authority.",
        )
        return
    if source.proxy is not None:
        return  # it would take the proxy's words to look at it
    try:
        ends = _valid_until(
            host.hostname or "", host.port or 443, settings, patience
        )  # fmt: skip
    except (OSError, ValueError):
        return  # requests are answered; it is only this look that does not work
    days = (ends - time.time()) / _DAY
    if days < _SOON_DAYS:
        fix = "Renew it in time (kubeadm certs renew, or your provider's way)."
        yield warn("certificate", f"it expires in {days:.1f} days", fix)
    else:
        yield ok("certificate", f"trusted, and valid for {days:,.0f} days more")


def _valid_until(host: str, port: int, settings: Any, patience: float) -> float:
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    # urllib3 is no stricter, and the certificate has been judged there.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    name = getattr(settings, "tls_server_name", None) or host
    with (
        socket.create_connection((host, port), patience) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        shown = connection.getpeercert() or {}
    return float(ssl.cert_time_to_seconds(str(shown.get("notAfter") or "")))
