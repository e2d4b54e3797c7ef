"""Each request on a logger of its own, as ``kubectl -v`` shows them, and never a credential.

``dyninformer.requests`` has a line per request, ``dyninformer.requests.headers`` the headers too;
both at DEBUG. Bodies are never logged: they hold Secrets.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from dyninformer.transport.requests import without_password
from dyninformer.transport.server_warnings import log_warnings

REQUESTS: Final = "dyninformer.requests"
HEADERS: Final = f"{REQUESTS}.headers"

_requests: Final = logging.getLogger(REQUESTS)
_headers: Final = logging.getLogger(HEADERS)
_headers.setLevel(logging.INFO)  # not with the requests: whoever wants headers says so

# A client that was given may have any headers: only these are known to be harmless.
_SENT: Final = frozenset({"accept", "accept-encoding", "content-type", "user-agent"})
_SENT_PREFIX: Final = "impersonate-"
_SECRET_ANSWER: Final = re.compile("auth|cookie|token|key|secret|password", re.IGNORECASE)
_MASKED: Final = "<masked>"
_SCHEMES: Final = ("basic", "bearer")


class RequestReport:
    """What becomes of one request."""

    def __init__(self, method: str, url: str) -> None:
        self._began = time.monotonic()
        self._method, self._url = method, url

    def answered(self, status: int, reason: str | None, headers: Mapping[str, str]) -> None:
        """Log the head of an answer, and its warnings even if requests are not logged."""
        log_warnings(self._what().partition("?")[0], headers)
        self.over(f"{status} {reason or ''}".strip())
        self.headers("response", headers, _answered)

    def headers(
        self, whose: str, headers: Mapping[str, str], shown: Callable[[str, str], str]
    ) -> None:
        """What goes with it, one below the other."""
        if _headers.isEnabledFor(logging.DEBUG):
            lines = [f"\n    {name}: {shown(name, str(value))}" for name, value in headers.items()]
            _headers.debug("%s %s headers:%s", self._what(), whose, "".join(lines))

    def over(self, outcome: str) -> None:
        """Nothing more comes of it."""
        if not _requests.isEnabledFor(logging.DEBUG):
            return
        took = (time.monotonic() - self._began) * 1000
        _requests.debug("%s %s in %.0f milliseconds", self._what(), outcome, took)

    def _what(self) -> str:
        return f"{self._method} {without_password(self._url)}"


@contextmanager
def reported_request(method: str, url: str, headers: Mapping[str, str]) -> Iterator[RequestReport]:
    """Log the request that is made within, if anybody listens: its headers, and how it ends."""
    report = RequestReport(method, url)
    report.headers("request", headers, _sent)
    try:
        yield report
    except Exception as error:
        report.over(f"failed ({type(error).__name__})")
        raise


def _answered(name: str, value: str) -> str:
    return _MASKED if _SECRET_ANSWER.search(name) else value


def _sent(name: str, value: str) -> str:
    """The value, if it can be no secret; of an Authorization its scheme."""
    lower = name.lower()
    if lower in _SENT or lower.startswith(_SENT_PREFIX):
        return value
    scheme = value.partition(" ")[0]
    return f"{scheme} {_MASKED}" if scheme.lower() in _SCHEMES else _MASKED
