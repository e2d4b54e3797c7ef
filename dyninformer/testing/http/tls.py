"""A certificate authority of this process's own, for TLS on loopback."""

from __future__ import annotations

import ssl
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import trustme


@cache
def authority() -> trustme.CA:
    """One authority for all servers of the process, made on first use (a few milliseconds)."""
    import trustme  # noqa: PLC0415 - 50 ms of cryptography that plain HTTP does not need

    return trustme.CA(organization_name="dyninformer", key_type=trustme.KeyType.ECDSA)


def authority_pem() -> bytes:
    """The authority's certificate, for clients to trust."""
    return authority().cert_pem.bytes()


def server_context() -> ssl.SSLContext:
    """What a server on loopback shows: a certificate for 127.0.0.1 and localhost."""
    import trustme  # noqa: PLC0415 - as above

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    certificate = authority().issue_cert("127.0.0.1", "localhost", key_type=trustme.KeyType.ECDSA)
    certificate.configure_cert(context)
    return context
