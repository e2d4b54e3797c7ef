"""`Source`: requests through the official client's own door, interruptible at any moment.

Everything that a kubeconfig, a pod or the caller's client says about hosts, proxies, TLS,
credentials and headers is the official client's to know; here its `DynamicClient.request`
is called on a private copy, over connections of ours.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dyninformer.errors import ConfigError
from dyninformer.threads import in_forked_child
from dyninformer.watching.conversation import Conversation
from dyninformer.watching.exchange import ClientExchange
from dyninformer.watching.failures import without_password
from dyninformer.watching.kubeconfigs import find_configuration
from dyninformer.watching.origins import Environment, Given
from dyninformer.watching.replies import SocketReply
from dyninformer.watching.transport import JsonReply, Request

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

__all__ = ["Source"]

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})

UnderWay = list[str]


class Source:
    """An API server to ask: a `Transport` itself, and the maker of others for parts of the work.

    ``client`` is a `kubernetes.dynamic.DynamicClient` or `kubernetes.client.ApiClient`,
    which stays as it is, or None for what is found in the environment (`ConfigError` if
    nothing is). Nothing is asked of the network, and no credential plugin run, before the
    first request. Every method may be called from any thread.
    """

    def __init__(
        self,
        client: DynamicClient | ApiClient | None = None,
        *,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
    ) -> None:
        self._origin: Environment | Given
        if client is None:
            place = find_configuration(kubeconfig, context, environment=os.environ)
            self._origin = Environment(place, _kubernetes)
        elif kubeconfig is not None or context is not None:
            raise ConfigError("pass a client, or kubeconfig= and context=, not both")
        else:
            self._origin = Given(client, _kubernetes)
        self._exchange = ClientExchange(self._origin)
        self._own = self._exchange.conversation()
        self._writes_lock = threading.RLock()  # guards _writes
        self._writes: DynamicClient | None = None
        in_forked_child(self, "_writes_lock")

    def __repr__(self) -> str:
        return f"<Source {self.host}>"

    @property
    def host(self) -> str:
        """Where the API server is, as messages name it."""
        return self._origin.host

    @property
    def origin(self) -> str:
        """Where the settings come from: files and context, the pod, a client of the caller's."""
        return str(self._origin)

    @property
    def proxy(self) -> str | None:
        """The proxy that requests go through, without its password; known after the first one."""
        proxy = self._exchange.proxy
        return None if proxy is None else without_password(proxy)

    @property
    def namespace(self) -> str:
        """The namespace that the configuration is for, as kubectl takes it; else "default"."""
        return self._origin.namespace or "default"

    def conversation(self) -> Conversation:
        """A `Transport` whose `close` ends what was asked through it, and nothing else."""
        return self._exchange.conversation()

    def list(self, request: Request) -> SocketReply:
        """Ask for a collection."""
        return self._own.list(request)

    def watch(self, request: Request) -> SocketReply:
        """Ask for a stream of events."""
        return self._own.watch(request)

    def get_json(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] = _NO_HEADERS,
        deadline: float = 30.0,
    ) -> JsonReply:
        """Ask for something small, and read it whole."""
        return self._own.get_json(path, query, headers, deadline)

    def post_json(self, path: str, body: Mapping[str, object], deadline: float = 30.0) -> JsonReply:
        """Ask by a POST, for what is computed and kept nowhere: a review of access."""
        return self._own.post_json(path, body, deadline)

    def reload_credentials(self) -> None:
        """Have the next requests use credentials read anew."""
        self._own.reload_credentials()

    @property
    def writes_client(self) -> DynamicClient:
        """A `DynamicClient` for writes: the caller's own, or one with the same settings.

        Its ``resources`` asks what the server has on first use. It outlives `close`.
        """
        with self._writes_lock:
            found = self._writes
        if found is None:
            call = self._own.begin()
            try:
                self._exchange.prepare(call)
                made = self._origin.writes_client(self._exchange.guard)
            finally:
                self._own.over(call)
            with self._writes_lock:
                found = self._writes = self._writes or made
        return found

    def under_way(self) -> UnderWay:
        """The threads in something that nothing can interrupt, each with what it does.

        After `close` these alone may live on; what they bring is closed unused.
        """
        return self._exchange.under_way()

    def join(self, timeout: float) -> None:
        """After `close`: give what is `under_way` so long to end."""
        self._exchange.join(timeout)

    def close(self) -> None:
        """End every request at once, refuse new ones, close all connections. Idempotent."""
        self._exchange.close()


def _kubernetes() -> Any:
    """The official client: its import costs 0.25 s and 45 MB, so it comes on first use."""
    import kubernetes.client.exceptions  # noqa: PLC0415 - see above
    import kubernetes.config  # noqa: PLC0415
    import kubernetes.dynamic.discovery  # noqa: PLC0415

    return kubernetes
