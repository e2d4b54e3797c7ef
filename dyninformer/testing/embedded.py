"""What the server with sockets and the one without have in common: the state and its handles.

A request comes to `EmbeddedServer._plan`: it is read once, logged, met by faults, and answered by
the API.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from dyninformer.checked import checked_flag, checked_number, checked_or_none, checked_text
from dyninformer.testing.api.access import MASTERS, Access, ReceivedRequest
from dyninformer.testing.api.router import Api
from dyninformer.testing.clock import Clock
from dyninformer.testing.cluster.cluster import Cluster, Snapshot
from dyninformer.testing.cluster.log import Key
from dyninformer.testing.cluster.resources import Resources
from dyninformer.testing.cluster.watch_cache import ReadSettings
from dyninformer.testing.faults.injection import Faults, Handler, ServerState
from dyninformer.testing.messages import Answer, AnswerPlan, Query, Request, RequestInfo
from dyninformer.testing.objects import ObjectMethods, name_of

T = TypeVar("T")

_LOGGED = 10_000


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request as it came in. It holds no headers except the user agent: no tokens.

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
    """The user who asked; "" if the token was unknown."""
    http_version: str
    """The version of HTTP that the client spoke: 1.0, 1.1 or 2."""
    info: RequestInfo = field(repr=False)

    @property
    def verb(self) -> str:
        """``list``, ``watch``, ``get`` and so on, as rules name it."""
        return self.info.verb

    @property
    def resource(self) -> str:
        """``widgets`` or ``widgets/status``; "" for a path that is not a resource's."""
        return self.info.authorised_resource

    def param(self, name: str) -> str | None:
        """The first value of a query parameter, None if it is not there."""
        checked_text("the name of a parameter", name)
        return next((value for key, value in self.query if key == name), None)


LoggedRequests: TypeAlias = list[LoggedRequest]


class EmbeddedServer(ObjectMethods):
    """A cluster, and the means to set it up, change it, break it, and see what was asked of it.

    Everything happens on the thread that owns the state; `_call` brings others there.
    """

    def __init__(
        self,
        clock: Clock,
        settings: ReadSettings | None,
        *,
        seed: int | None,
        controllers: bool,
        controller_delay: float,
    ) -> None:
        checked_or_none("settings", settings, ReadSettings, "ReadSettings(...), or None")
        checked_or_none("seed", seed, int, "a whole number, or None")
        checked_flag("controllers", controllers)
        checked_number("controller_delay", controller_delay, "seconds")
        self._settings = settings
        self._cluster = Cluster(
            clock,
            settings,
            seed=seed,
            controllers=controllers,
            controller_delay=controller_delay,
        )
        self._access = Access()
        self._token = self._access.add_user("admin", groups=[MASTERS])
        self._api = Api(self._cluster, self._access)
        self._requests: deque[LoggedRequest] = deque(maxlen=_LOGGED)
        state = ServerState(self.compact, self.restore, self._replica)
        self._faults = Faults(self._call, state, self._cluster.now, self._set_refusing)

    @abstractmethod
    def _set_refusing(self, refusing: bool) -> None:
        """Refuse connections from now on, or take them again."""

    @abstractmethod
    def _sever(self) -> None:
        """End the connections that are open."""

    # -- objects as they are -------------------------------------------------------------

    def load(self, obj: Mapping[str, Any]) -> None:
        """Put an object in place just as it is; what is there is written over.

        Its uid, creationTimestamp, status and all else that a create would not take are
        kept; only the resourceVersion is this server's. ValueError if it cannot be held.
        CRDs are for `install`.
        """
        self._call(lambda: self._cluster.load(self._resource_of(obj), dict(obj)))

    def unload(self, obj: Mapping[str, Any]) -> bool:
        """Take an object out at once, whatever finalizers it has; False if it is not there."""

        def unload() -> bool:
            resource, name = self._resource_of(obj), name_of(obj)
            namespace = obj["metadata"].get("namespace") or "default"
            key = Key(namespace if resource.namespaced else "", name)
            return self._cluster.unload(resource, key)

        return self._call(unload)

    # -- the state -----------------------------------------------------------------------

    def compact(self, revision: int | None = None) -> int:
        """Forget every state before ``revision``, and return it.

        Without one, every resourceVersion and continue token handed out so far is too old:
        a revision is written that nobody sees, and the history ends there.
        """
        checked_or_none("revision", revision, int, "a whole number, or None for all")

        def compact() -> int:
            chosen = self._cluster.log.advance() if revision is None else revision
            self._cluster.compact(chosen)
            return chosen

        return self._call(compact)

    def snapshot(self) -> Snapshot:
        """The state as it is now, a backup for `restore`; it costs little."""
        return self._call(self._cluster.snapshot)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a state of before, as a cluster restored from a backup.

        resourceVersions are those of then, and will be used again. Connections end.
        """
        if not isinstance(snapshot, Snapshot):
            raise TypeError(f"restore() takes what snapshot() gave, not {type(snapshot).__name__}")

        def restore() -> None:
            self._cluster.restore(snapshot)
            self._sever()

        self._call(restore)

    def restart(self) -> None:
        """End every connection, and forget what is only in memory, as a restart does.

        Objects and resourceVersions stay; a watch from before must list again.
        """

        def restart() -> None:
            self._cluster.restart()
            self._sever()

        self._call(restart)

    def reset(self) -> None:
        """Make it as new: no objects, CRDs, faults, rules or requests. Connections end.

        Users and their tokens stay.
        """

        def reset() -> None:
            self._faults.clear()
            self._access.clear()
            self._requests.clear()
            self._cluster.reset()
            self._sever()

        self._call(reset)

    # -- who may, what goes wrong, what was asked --------------------------------------

    @property
    def access(self) -> Access:
        """Users with their tokens, and rules of what they may do beside RBAC's."""
        return self._access

    @property
    def token(self) -> str:
        """The bearer token of a user who may do all. A client without a token may do little."""
        return self._token

    @property
    def faults(self) -> Faults:
        """What goes wrong; see `dyninformer.testing.faults`."""
        return self._faults

    @property
    def requests(self) -> LoggedRequests:
        """What clients asked since the start or `reset`, oldest first, at most 10,000."""
        return self._call(lambda: list(self._requests))

    # -- inside, on the thread that owns the state ---------------------------------------

    def _plan(self, request: Request) -> AnswerPlan:
        """What is to be sent to a client: the API's answer, as faults leave it."""
        received = self._access.receive(request)
        self._log(received)
        return self._faults.plan(received, self._api.answer)

    def _log(self, received: ReceivedRequest) -> None:
        request = received.request
        self._requests.append(
            LoggedRequest(
                self._cluster.now(),
                request.method,
                request.path,
                request.query,
                request.headers.get("user-agent", ""),
                received.user_name,
                request.http_version,
                received.info,
            )
        )

    def _handle(self, request: Request) -> Answer:
        return self._api.handle(request)

    def _served(self) -> Resources:
        return self._cluster.resources.all()

    def _replica(self) -> Handler:
        """What answers from a copy of the state as it is now."""
        copy = Cluster(self._cluster.clock, self._settings)
        copy.restore(self._cluster.snapshot())
        return Api(copy, self._access).answer

    def _next_deadline(self) -> float | None:
        """When something is to happen without a request."""
        found = (self._cluster.next_deadline(), self._faults.next_deadline())
        return min((each for each in found if each is not None), default=None)

    def _run_due(self) -> None:
        """Let happen what is due."""
        now = self._cluster.now()
        self._faults.run_due(now)
        self._cluster.run_due(now)
