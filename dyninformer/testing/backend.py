"""What stands behind a door, sockets or none: the state, the API, who may, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dyninformer.testing.api.access import MASTERS, Access
from dyninformer.testing.api.request_info import read_request_info
from dyninformer.testing.api.router import Api
from dyninformer.testing.cluster.cluster import Cluster, Snapshot
from dyninformer.testing.cluster.log import Key
from dyninformer.testing.cluster.watch_cache import ReadSettings
from dyninformer.testing.exchange import Exchange
from dyninformer.testing.faults.injection import Faults, Run
from dyninformer.testing.faults.strike import Handler
from dyninformer.testing.messages import Request
from dyninformer.testing.objects import Objects
from dyninformer.testing.request_log import RequestLog

ADMIN = "admin"


class Backend:
    """One cluster behind one door; everything happens on the thread that owns it.

    ``run`` brings others to that thread, ``gate`` is told whether connections are
    refused, ``sever`` ends those that are open.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: ReadSettings | None,
        *,
        run: Run,
        gate: Callable[[bool], None],
        sever: Callable[[], None],
    ) -> None:
        self._sever = sever
        self._cluster = cluster
        self._settings = settings
        self.access = Access()
        self.token = self.access.add_user(ADMIN, groups=[MASTERS])
        self.faults = Faults(run, self, cluster.now, gate)
        self.requests = RequestLog(cluster.now)
        self._api = Api(cluster, self.access)
        self.objects = Objects(self._api.handle, cluster.resources, self.token)

    def handle(self, request: Request) -> Exchange:
        """What is to be sent to a client: the API's answer, as faults leave it."""
        exchange = Exchange(request)
        info = read_request_info(request)
        user = self._user_of(request)
        self.requests.add(request, info, user)

        def serve() -> None:
            exchange.answer = self._api.handle(request)

        self.faults.perform(exchange, info, user, serve)
        return exchange

    def load(self, obj: Mapping[str, Any]) -> None:
        """Put an object in place as it is."""
        self._cluster.load(self.objects.resource_of(obj), dict(obj))

    def unload(self, obj: Mapping[str, Any]) -> bool:
        """Take an object out at once; whether it was there."""
        resource, metadata = self.objects.resource_of(obj), obj["metadata"]
        namespace = metadata.get("namespace") or "default"
        key = Key(namespace if resource.namespaced else "", metadata["name"])
        return self._cluster.unload(resource, key)

    def compact(self, revision: int | None = None) -> int:
        """Forget every state before ``revision``, and return it.

        None makes every resourceVersion that was handed out too old to start from: a
        revision is written that nobody sees, and the history ends there.
        """
        chosen = self._cluster.log.advance() if revision is None else revision
        self._cluster.compact(chosen)
        return chosen

    def snapshot(self) -> Snapshot:
        """The state as it is now, for `restore`."""
        return self._cluster.snapshot()

    def restore(self, snapshot: object) -> None:
        """Go back to that state, as a cluster restored from a backup; clients are cut off."""
        if not isinstance(snapshot, Snapshot):
            raise TypeError(f"restore() takes what snapshot() gave, not {type(snapshot).__name__}")
        self._cluster.restore(snapshot)
        self._sever()

    def restart(self) -> None:
        """Forget what only an API server's memory holds; clients are cut off."""
        self._cluster.restart()
        self._sever()

    def reset(self) -> None:
        """Begin anew: an empty cluster, no faults, no declared rules; clients are cut off.

        Users keep their tokens.
        """
        self.faults.clear()
        self.access.clear()
        self.requests.clear()
        self._cluster.reset()
        self._sever()

    def replica(self) -> Handler:
        """What answers from a copy of the state as it is now."""
        copy = Cluster(self._cluster.clock, self._settings)
        copy.restore(self._cluster.snapshot())
        return Api(copy, self.access).handle

    def next_deadline(self) -> float | None:
        """When something is to happen that nobody asks for."""
        found = (self._cluster.next_deadline(), self.faults.next_deadline())
        return min((each for each in found if each is not None), default=None)

    def run_due(self) -> None:
        """Let happen what is due."""
        now = self._cluster.now()
        self.faults.run_due(now)
        self._cluster.run_due(now)

    def _user_of(self, request: Request) -> str:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return "system:anonymous"
        user = self.access.user_of(token.strip())
        return "" if user is None else user.name
