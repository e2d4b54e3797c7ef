"""What clients asked, for tests to look at."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from dyninformer.testing.api.request_info import RequestInfo
from dyninformer.testing.messages import Query, Request


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request as it came in. It holds no headers but the user agent: no tokens.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     with open_informer("v1/pods", client=server.client()):
    ...         print(*{(each.verb, each.info.resource) for each in server.requests})
    ('watch', 'pods')
    """

    at: float
    """The server's time, in seconds since 1970."""
    method: str
    path: str
    query: Query
    user_agent: str
    user: str
    """Who asked; "" if the token was nobody's."""
    info: RequestInfo = field(repr=False)

    @property
    def verb(self) -> str:
        """``list``, ``watch``, ``get`` and so on, as rules name it."""
        return self.info.verb

    @property
    def resource(self) -> str:
        """``widgets`` or ``widgets/status``; "" for a path that is no resource."""
        return self.info.authorised_resource

    def param(self, name: str) -> str | None:
        """The first value of a query parameter, None if it is not there."""
        return next((value for key, value in self.query if key == name), None)


class RequestLog:
    """The newest requests, oldest first; owned by the thread that handles them."""

    def __init__(self, clock: Callable[[], float], limit: int = 10_000) -> None:
        self._clock = clock
        self._requests: deque[LoggedRequest] = deque(maxlen=limit)

    def add(self, request: Request, info: RequestInfo, user: str) -> None:
        """Note a request."""
        agent = request.headers.get("user-agent", "")
        self._requests.append(
            LoggedRequest(
                self._clock(), request.method, request.path, request.query, agent, user, info
            )
        )

    def all(self) -> list[LoggedRequest]:
        """What was noted."""
        return list(self._requests)

    def clear(self) -> None:
        """Forget it."""
        self._requests.clear()
