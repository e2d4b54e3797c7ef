"""The doctor's checks of what is installed here, and of the server with its certificate."""

from __future__ import annotations

import json
import operator
import platform
import re
import socket
import ssl
import time
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit
from urllib.request import getproxies

from dyninformer.cli.findings import Finding, denied, fail, failed_by, message_of, ok, warn
from dyninformer.display.text import visible
from dyninformer.errors import ConfigError, UnreachableError
from dyninformer.transport.requests import JsonReply, without_password
from dyninformer.watching.client import Source
from dyninformer.watching.sockets import close_lost_socket

Numbers: TypeAlias = tuple[int, ...]

_OWN: Final = "dyninformer"
_PLACES: Final = 8  # of version numbers that are compared
_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*\(?([^;)]*)\)?\s*(?:;|$)")
# A wildcard as in !=0.41.* does not match: it is about a version that is long gone.
_CLAUSE: Final = re.compile(r"^\s*(>=|<=|==|!=|<|>)\s*(\d+(?:\.\d+)*)\s*$")
_COMPARE: Final = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_MOST_SKEW: Final = 30.0
_OLDEST: Final = (1, 16)  # the first with bookmarks and apiextensions.k8s.io/v1
_MEASURED: Final = "1.36"
_REVIEW: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
_IDENTITY: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")
_DAY: Final = 86_400.0
_SOON_DAYS: Final = 14


def installed_versions() -> Iterator[Finding]:
    """One line with all versions, and one more for each that is not allowed."""
    try:
        own = version(_OWN)
    except PackageNotFoundError:
        fix = "pip install 'dyninformer[cli]'"
        yield warn("versions", f"{_OWN} is not installed as a package", fix)
        return
    wanted = _requirements(_OWN)
    wanted["urllib3"] = wanted.get("urllib3", []) + _requirements("kubernetes").get("urllib3", [])
    found = {name: _installed(name) for name in wanted}
    listed = ", ".join(f"{name} {number or 'missing'}" for name, number in found.items())
    problems = [
        fail(
            "versions",
            f"{name} is {found[name] or 'missing'}; {_OWN} needs {name}{','.join(clauses)}",
            f"pip install --upgrade '{name}{','.join(clauses)}'",
        )
        for name, clauses in wanted.items()
        if not allows(clauses, found[name])
    ]
    yield from problems
    if not problems:
        yield ok("versions", f"{_OWN} {own}, python {platform.python_version()}, {listed}")


def allows(clauses: list[str], number: str) -> bool:
    """Whether a version is one that ``>=29,!=36.0.0`` allows.

    >>> allows([">=29.0.0", "!=36.0.0"], "36.0.0"), allows([">=29.0.0", "!=36.0.0"], "37.0.2")
    (False, True)
    """
    own = _numbers(number)
    for clause in clauses:
        matched = _CLAUSE.match(clause)
        if matched and not _COMPARE[matched[1]](own, _numbers(matched[2])):
            return False
    return bool(own)


def _requirements(package: str) -> dict[str, list[str]]:
    """What a package needs in any case, by name."""
    found: dict[str, list[str]] = {}
    for line in requires(package) or ():
        matched = _REQUIREMENT.match(line)
        if matched and ";" not in line:
            clauses = found.setdefault(matched[1], [])
            clauses += [each for each in matched[2].split(",") if each and each not in clauses]
    return found


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _numbers(text: str) -> Numbers:
    """The numbers of a version, filled up with zeros: 1.2 is 1.2.0; none if there is no number."""
    matched = re.match(r"\d+(?:\.\d+)*", text)
    numbers = tuple(map(int, matched[0].split("."))) if matched else ()
    return numbers and (*numbers, *[0] * (_PLACES - len(numbers)))


class ServerChecks:
    """The checks of a server, one after the other; ``reached`` says whether to go on."""

    def __init__(self, source: Source, patience: float) -> None:
        self._source = source
        self._patience = patience
        self.reached = False
        self.user = ""
        """The user that the server takes us for, as far as it tells."""

    def run(self) -> Iterator[Finding]:
        """All of them; after a server that cannot be reached there is nothing to check."""
        source = self._source
        began = time.time()
        try:
            reply = source.get_json("/version", deadline=self._patience)
        except (UnreachableError, ConfigError) as error:
            yield failed_by("connection", error)
            yield from self._proxy(blamed=True)
            return
        ended = time.time()
        tls = "TLS" if urlsplit(source.host).scheme == "https" else "no TLS"
        yield ok("connection", f"{source.host} answers after {ended - began:.2f} s ({tls})")
        yield from self._proxy(blamed=False)
        yield from certificate(source, self._patience)
        yield _clock(reply, began, ended)
        yield from self._credentials(reply)
        if self.reached:
            yield _version(reply)

    def _proxy(self, *, blamed: bool) -> Iterator[Finding]:
        proxy = self._source.proxy
        if proxy is None:
            return
        named = [name for name, url in getproxies().items() if name != "no" and _same(url, proxy)]
        where = f"the environment ({named[0]}_proxy)" if named else "the kubeconfig (proxy-url)"
        found = f"requests go through {visible(proxy)}, from {where}"
        if blamed:
            fix = "See whether it runs, and lets through to the server; or add that to NO_PROXY."
            yield warn("proxy", found, fix)
        else:
            yield ok("proxy", f"{found}; whether it cuts idle watches is seen with --watch-for")

    def _credentials(self, version: JsonReply) -> Iterator[Finding]:
        try:
            reply = self._source.post_json(_IDENTITY, _REVIEW, self._patience)
        except (UnreachableError, ConfigError) as error:
            yield failed_by("credentials", error)
            return
        if 401 in (reply.status, version.status):
            expired = _expired(self._source)
            what = f"they are refused{expired and f' (the token expired {expired})'}"
            yield denied("credentials", what, 401, message_of(reply))
            return
        self.reached = True
        self.user = _name_in(reply)
        if self.user:
            yield ok("credentials", f"the server knows them as {visible(self.user)}")
        else:
            yield ok("credentials", f"accepted (it does not tell for whom: {reply.status})")


def _same(url: str, proxy: str) -> bool:
    return without_password(url).rstrip("/") == proxy.rstrip("/")


def _name_in(reply: JsonReply) -> str:
    found: object = reply.body
    for key in ("status", "userInfo", "username"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) and reply.status < 300 else ""


def _expired(source: Source) -> str:
    """When a token that says it itself has expired; "" if it has not, or does not say."""
    settings: Any = source.writes_client.configuration
    for text in settings.api_key.values():
        payload = f"{text}..".split(".")[1]
        try:
            claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            ended = datetime.fromtimestamp(claims["exp"], UTC)
        except (ValueError, TypeError, KeyError, OverflowError, OSError):
            continue  # it is of another kind
        if ended < datetime.now(UTC):
            return f"{ended:%Y-%m-%d %H:%M:%S} UTC"
    return ""


def _clock(reply: JsonReply, began: float, ended: float) -> Finding:
    """The server tells whole seconds, cut off, of a moment between the request and the answer."""
    try:
        server = parsedate_to_datetime(reply.headers.get("Date", "")).timestamp()
    except ValueError:
        return warn(
            "clock",
            "the server's answer has no Date that can be read",
            "Compare the clocks by hand: tokens and certificates depend on them.",
        )
    skew = server - ended if server > ended else min(0.0, server + 1 - began)
    if abs(skew) <= _MOST_SKEW:
        return ok("clock", "this machine's and the server's agree")
    which = "ahead of" if skew < 0 else "behind"
    return warn(
        "clock",
        f"this machine is {abs(skew):.0f} s {which} the server",
        "Synchronise both with NTP: with clocks apart, tokens and certificates count as expired "
        "or as not yet valid, and ages are wrong.",
    )


def _version(reply: JsonReply) -> Finding:
    body = reply.body if isinstance(reply.body, dict) else {}
    release = str(body.get("gitVersion") or "")
    matched = _VERSION.match(release)
    if reply.status != 200 or matched is None:
        return warn(
            "server version",
            f"/version answers {reply.status} without one",
            "Is this an API server? The user may lack the ClusterRole system:public-info-viewer.",
        )
    if (int(matched[1]), int(matched[2])) < _OLDEST:
        return fail(
            "server version",
            f"{visible(release)} has neither bookmarks nor apiextensions.k8s.io/v1",
            f"Upgrade the server: {_OLDEST[0]}.{_OLDEST[1]} is the oldest that can be watched.",
        )
    return ok("server version", f"{visible(release)} (measured with {_MEASURED})")


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
        ends = _valid_until(host.hostname or "", host.port or 443, settings, patience)
    except (OSError, ValueError) as error:
        close_lost_socket(error)
        return  # requests are answered; only this look at the certificate does not work
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
