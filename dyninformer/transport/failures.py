"""Why no answer came, or only part of one: what happened, to which host, what to do.

Nothing of a request or an answer is repeated here except the host: no token, no body.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from http.client import HTTPException, RemoteDisconnected

from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    ProxyError,
    ReadTimeoutError,
)

from dyninformer.errors import UnreachableError
from dyninformer.transport.messages import LostConnectionError
from dyninformer.transport.requests import BrokenAnswerError, SilentError, without_password

_SERVER = "Check the server's address in the kubeconfig, and the network (VPN, firewall, proxy)."
_CERTIFICATE = (
    "Its certificate must be vouched for by certificate-authority in the kubeconfig, "
    "for the name or address in server (or tls-server-name)."
)
_NOT_NOW = (
    "Renew the certificate of the server, or of the proxy that shows it; if it should be valid, "
    "this machine's clock is wrong."
)
_OTHER_NAME = (
    "Have server in the kubeconfig say a name or address that the certificate is for, or "
    "tls-server-name that name."
)
_CERTIFICATES = {9: _NOT_NOW, 10: _NOT_NOW, 62: _OTHER_NAME, 64: _OTHER_NAME}
"""By OpenSSL's code: not yet valid, expired, another name, another address."""
_OWN_CERTIFICATE = (
    "Give client-certificate and client-key in the kubeconfig that are valid now, and of an "
    "authority that the server trusts."
)
_NOBODY_BEHIND = "What listens there, a load balancer or a proxy, may have no server behind it now."
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"})
_NO_MORE_FILES = (
    "Each resource or namespace that is watched takes a connection, and each connection a file: "
    "allow more of them (ulimit -n, LimitNOFILE), or watch all namespaces by one informer."
)
_LONGEST_DETAIL = 120


class RefreshError(UnreachableError):
    """The hook that refreshes the credentials failed: nothing was asked."""


def unanswered(
    error: BaseException, host: str, proxy: str | None, stage: str, deadline: float
) -> UnreachableError:
    """What to raise in place of ``error``, before the head of an answer has come."""
    found = list(_chain(error))
    subject = f"cannot reach {host}"
    if proxy is not None:
        subject += f" through the proxy {without_password(proxy)}"
    if stage == "asked" and _is_silence(found):
        return SilentError(
            f"{host} took the request and said nothing for {_seconds(deadline)} s. "
            "It, or something on the way to it, is overloaded or gone."
        )
    what, advice = _lack_of_files(found) or _reason(found, stage, behind_proxy=proxy is not None)
    return UnreachableError(f"{subject}: {what}. {advice}".rstrip())


def refresh_failed(error: BaseException, host: str) -> str:
    """What to say of an error of the hook; its own words may hold a token."""
    what = type(error).__name__
    detail = next(filter(None, map(_why, _chain(error))), None)
    return (
        f"cannot refresh the credentials for {host}: the client's refresh_api_key_hook raised "
        f"{what}{f' ({detail})' if detail else ''}, so nothing was asked."
    )


def cut_off(error: BaseException, host: str, deadline: float) -> UnreachableError:
    """What to raise in place of ``error``, in the middle of an answer."""
    found = list(_chain(error))
    if _is_silence(found):
        silence = f"said nothing for {_seconds(deadline)} s in the middle of an answer"
        return SilentError(f"{host} {silence}")
    detail = next(filter(None, map(_why, found)), None)
    return BrokenAnswerError(
        f"the connection to {host} broke in the middle of an answer"
        + (f": {detail}" if detail else "")
    )


def is_stale_connection(error: BaseException) -> bool:
    """What a connection from the pool says that was closed, unnoticed, while it lay idle."""
    found = list(_chain(error))
    gone = (ConnectionResetError, BrokenPipeError, RemoteDisconnected, ssl.SSLEOFError)
    return _any(found, gone) and not _any(found, (TimeoutError,))


def is_time_out(error: BaseException) -> bool:
    """Nothing came for so long as was allowed, or as the system waits for the other side."""
    return _any(list(_chain(error)), (ReadTimeoutError, TimeoutError))


def _reason(found: list[BaseException], stage: str, *, behind_proxy: bool) -> tuple[str, str]:
    for each in found:
        if isinstance(each, socket.gaierror):
            return f"the name cannot be resolved ({each.strerror})", _SERVER
        if isinstance(each, ssl.SSLCertVerificationError):
            advice = _CERTIFICATES.get(each.verify_code, _CERTIFICATE)
            return f"its certificate is not trusted ({each.verify_message})", advice
        if isinstance(each, ConnectionRefusedError):
            return "connection refused", f"Is it running, and listening there? {_SERVER}"
    if behind_proxy and (said := _tunnel_refusal(found)):
        return f"the proxy refused ({said})", "Check the proxy's address and credentials."
    if _any(found, (ConnectTimeoutError, TimeoutError)):
        return f"it did not answer in time while {stage}", _SERVER
    for each in found:
        if isinstance(each, ssl.SSLError):
            return _tls_failure(each, stage)
        if isinstance(each, RemoteDisconnected):
            return "it closed the connection without an answer", _NOBODY_BEHIND
    for why in filter(None, map(_why, found)):
        return why, "" if stage == "asked" else _SERVER
    if _any(found, (HTTPException,)):
        return "what answers there does not speak HTTP as expected", _SERVER
    return f"{type(found[0]).__name__} while {stage}", _SERVER


def _tls_failure(error: ssl.SSLError, stage: str) -> tuple[str, str]:
    """All but a certificate of the server that is not trusted."""
    detail = (error.reason or error.strerror or "no more is known")[:_LONGEST_DETAIL]
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or "_EOF_" in detail:
        if stage == "asked":
            return "it closed the connection without an answer", _NOBODY_BEHIND
        return "it closed the connection before TLS was agreed on", _NOBODY_BEHIND
    if detail in _NO_TLS:
        return f"it does not speak TLS ({detail})", f"Is it http, or another port? {_SERVER}"
    if detail == "KEY_VALUES_MISMATCH":
        what = "client-key in the kubeconfig is not the key of client-certificate"
        return what, "If they have just been replaced, only one was; else give the two of one pair."
    if "_ALERT_" in detail and any(word in detail for word in ("CERT", "UNKNOWN_CA", "HANDSHAKE")):
        return f"it refused this client's TLS ({detail})", _OWN_CERTIFICATE
    return f"TLS failed ({detail})", _SERVER


def _lack_of_files(found: list[BaseException]) -> tuple[str, str] | None:
    codes = {each.errno for each in found if isinstance(each, OSError)}
    if errno.EMFILE in codes:
        what = f"this process has all the files open that it may have{_file_limit()}"
        return what, _NO_MORE_FILES
    if errno.ENFILE in codes:
        return "this machine has all the files open that it may have (fs.file-max)", ""
    return None


def _file_limit() -> str:
    try:
        import resource  # noqa: PLC0415 - not everywhere
    except ImportError:
        return ""
    return f", {resource.getrlimit(resource.RLIMIT_NOFILE)[0]:,}"


def _tunnel_refusal(found: list[BaseException]) -> str | None:
    for each in found:
        if isinstance(each, OSError) and str(each).startswith("Tunnel connection failed: "):
            return str(each).partition(": ")[2][:_LONGEST_DETAIL]
    return "no more is known" if isinstance(found[0], ProxyError) and len(found) == 1 else None


def _seconds(deadline: float) -> str:
    """Return seconds as a person would say them."""
    return f"{round(deadline, 1) or deadline:g}"


def _why(error: BaseException) -> str | None:
    """Return what the operating system or the server says of it."""
    if isinstance(error, LostConnectionError):
        return None if error.__cause__ is not None else str(error)[:_LONGEST_DETAIL]
    if isinstance(error, OSError) and not isinstance(error, HTTPError) and error.strerror:
        return error.strerror[:_LONGEST_DETAIL]
    return None


def _is_silence(found: list[BaseException]) -> bool:
    """Nothing came for so long as was allowed; not that the system calls the other side gone."""
    gone = any(isinstance(each, OSError) and each.errno == errno.ETIMEDOUT for each in found)
    return not gone and _any(found, (ReadTimeoutError, TimeoutError))


def _any(found: list[BaseException], kinds: tuple[type[BaseException], ...]) -> bool:
    return any(isinstance(each, kinds) for each in found)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what is behind it: causes, contexts, and errors that errors carry."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        each = waiting.pop(0)
        if not isinstance(each, BaseException) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [getattr(each, "reason", None), getattr(each, "original_error", None)]
        waiting += [arg for arg in each.args if isinstance(arg, BaseException)]
        waiting += [each.__cause__, each.__context__]
