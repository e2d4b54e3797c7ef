"""`Source`: requests through the official client's own door, interruptible at any moment.

Everything that a kubeconfig, a pod or the caller's client says about hosts, proxies, TLS,
credentials and headers is the official client's to know; here its `DynamicClient.request`
is called on a private copy, over connections of ours.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from http.client import HTTPException
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import urllib3

from dyninformer.errors import ConfigError, UnreachableError
from dyninformer.watching.connections import Plumbing, tracked
from dyninformer.watching.conversation import Conversation
from dyninformer.watching.exchange import ClientExchange, Guard, Hook, PrivateClient
from dyninformer.watching.failures import without_password
from dyninformer.watching.kubeconfigs import (
    InCluster,
    KubeconfigFiles,
    find_configuration,
    harmless,
    named_in,
)
from dyninformer.watching.replies import SocketReply
from dyninformer.watching.transport import JsonReply, Request

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.dynamic import DynamicClient

__all__ = ["Source"]

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_NO_CACHE_FILE = os.path.join(os.devnull, "discovery")
"""A path that cannot exist: official discovery would leave a file that all users can read."""

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
        self._origin: _Environment | _Given
        if client is None:
            place = find_configuration(kubeconfig, context, environment=os.environ)
            self._origin = _Environment(place)
        elif kubeconfig is not None or context is not None:
            raise ConfigError("pass a client, or kubeconfig= and context=, not both")
        else:
            self._origin = _Given(client)
        self._exchange = ClientExchange(self._origin)
        self._own = self._exchange.conversation()
        self._writes_lock = threading.Lock()  # guards _writes
        self._writes: DynamicClient | None = None

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


class _Given:
    """A client of the caller's; it and its Configuration are read, never changed."""

    def __init__(self, client: DynamicClient | ApiClient) -> None:

        kubernetes = _kubernetes()
        self._dynamic: DynamicClient | None = None
        if isinstance(client, kubernetes.dynamic.DynamicClient):
            self._dynamic = client
            client = client.client
        if not isinstance(client, kubernetes.client.ApiClient):
            raise ConfigError(
                "client must be a kubernetes.dynamic.DynamicClient or a "
                f"kubernetes.client.ApiClient, not {type(client).__name__}"
            )
        self._api: ApiClient = client
        self._keys: dict[str, str] = {}
        self._private: Configuration | None = None
        self.host = without_password(client.configuration.host)
        self.namespace = ""  # a client does not know its context

    def __str__(self) -> str:
        return "a client that was given"

    def load(self) -> None:
        """Nothing to read: the client has it."""

    def refreshed(self) -> None:
        """Tokens that the caller has put into his Configuration meanwhile."""
        keys = dict(self._api.configuration.api_key)
        private = self._private
        if private is not None and keys != self._keys:
            self._keys = keys
            private.api_key.update(keys)

    def private(self, guard: Guard, plumbing: Plumbing) -> PrivateClient:
        """A copy, over connections of ours."""
        self._keys = dict(self._api.configuration.api_key)
        configuration = _copy_of(self._api.configuration, guard)
        self._private = configuration
        return _private_client(self._api, configuration, plumbing, self._dynamic)

    def writes_client(self, guard: Guard) -> DynamicClient:
        """His own, or one around it."""
        del guard
        return self._dynamic or _dynamic_client(self._api)


class _Environment:
    """Kubeconfig files, or the service account of a pod."""

    def __init__(self, place: KubeconfigFiles | InCluster) -> None:
        self._place: KubeconfigFiles | InCluster = place
        self._plugin: str | None = None
        if isinstance(place, KubeconfigFiles):
            # Only files are read; the official loader runs the plugin as soon as it loads.
            named = named_in(place, _kubernetes().config.kube_config.KubeConfigMerger)
            self.host, self._plugin = named.server, named.plugin
            self.namespace = named.namespace
            self._place = replace(place, context=named.context)
        else:
            self.host, self.namespace = place.host, place.namespace
        self._loaded: Configuration | None = None

    def __str__(self) -> str:
        if isinstance(self._place, InCluster):
            return str(self._place)
        return f"context {self._place.context!r} of {self._place}"

    def load(self) -> None:
        """Read the files, tokens, and certificates; run the credential plugin if there is one."""
        self._loaded = self._read()

    def refreshed(self) -> None:
        """Nobody else changes what was loaded."""

    def private(self, guard: Guard, plumbing: Plumbing) -> PrivateClient:
        """A client with what was loaded."""
        api = self._api(guard)
        return _private_client(api, api.configuration, plumbing, None)

    def writes_client(self, guard: Guard) -> DynamicClient:
        """Another, with the official client's own connections and retries."""
        return _dynamic_client(self._api(guard))

    def _api(self, guard: Guard) -> ApiClient:

        api: ApiClient = _kubernetes().client.ApiClient(
            _copy_of(self._loaded or self._read(), guard)
        )
        api.user_agent = _user_agent()
        return api

    def _read(self) -> Configuration:

        kubernetes = _kubernetes()
        configuration: Configuration = kubernetes.client.Configuration()
        try:
            if isinstance(self._place, InCluster):
                kubernetes.config.load_incluster_config(client_configuration=configuration)
            else:
                kubernetes.config.load_kube_config(
                    config_file=self._place.joined,
                    context=self._place.context,
                    client_configuration=configuration,
                )
        except Exception as error:  # noqa: BLE001 - the loader raises what YAML, JSON and files do
            raise UnreachableError(
                f"cannot read the credentials for {self.host} from {self._place}: {harmless(error)}"
            ) from None  # what it says may quote the file, secrets included
        if self._plugin and not (configuration.api_key or configuration.cert_file):
            raise UnreachableError(
                f"cannot get credentials for {self.host}: the plugin {self._plugin!r}, named in "
                f"{self._place}, failed. Run it by hand to see why."
            )
        return configuration


class _LateDiscovery:
    """Discovery on first use; the official ones ask in their constructor."""

    def __init__(self, dynamic: DynamicClient, cache_file: str | None) -> None:
        del cache_file
        self._dynamic = dynamic
        self._found: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._discoverer(), name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._discoverer())

    def _discoverer(self) -> Any:

        if self._found is None:
            self._found = _kubernetes().dynamic.discovery.LazyDiscoverer(
                self._dynamic, _NO_CACHE_FILE
            )
        return self._found


def _dynamic_client(api: ApiClient) -> DynamicClient:

    found: DynamicClient = _kubernetes().dynamic.DynamicClient(api, discoverer=_LateDiscovery)
    return found


def _copy_of(configuration: Configuration, guard: Guard) -> Configuration:
    """A copy whose credentials are its own.

    Shallow: a deep one opens log files again and sets log levels (client 29).
    """
    private = copy.copy(configuration)
    private.api_key = dict(configuration.api_key)
    private.api_key_prefix = dict(configuration.api_key_prefix)
    if configuration.refresh_api_key_hook is not None:
        private.refresh_api_key_hook = guard(_apart(configuration.refresh_api_key_hook))
    return private


def _apart(hook: Hook) -> Hook:
    """The hook, but run on a copy: the official ones put themselves in the place of ours."""
    name = "refresh_api_key_hook"

    def refresh(configuration: Configuration) -> None:
        nonlocal hook
        apart: Any = copy.copy(configuration)
        apart.api_key = dict(configuration.api_key)
        apart.refresh_api_key_hook = hook
        hook(apart)
        found = vars(apart)
        hook = found[name] or hook
        vars(configuration).update({key: found[key] for key in found if key != name})

    return refresh


def _private_client(
    api: ApiClient, configuration: Configuration, plumbing: Plumbing, dynamic: DynamicClient | None
) -> PrivateClient:
    """A copy of all that takes part in a request, down to the pool of connections."""
    kubernetes = _kubernetes()
    if hasattr(configuration, "client_go_retries"):
        configuration.client_go_retries = False  # it would sleep where nobody can wake it
    manager = tracked(api.rest_client.pool_manager, plumbing)
    private = copy.copy(api)
    private.configuration = configuration
    private.default_headers = dict(api.default_headers)
    private.rest_client = copy.copy(api.rest_client)
    private.rest_client.pool_manager = manager
    if dynamic is None:
        dynamic = _dynamic_client(private)
    else:
        dynamic = copy.copy(dynamic)
        dynamic.client = private
        dynamic.configuration = configuration
    failures = (
        urllib3.exceptions.HTTPError,
        OSError,
        HTTPException,
        kubernetes.client.exceptions.OpenApiException,
        kubernetes.config.ConfigException,
    )
    return PrivateClient(dynamic.request, manager, failures)


def _kubernetes() -> Any:
    """The official client: its import costs 0.25 s and 45 MB, so it comes on first use."""
    import kubernetes.client.exceptions  # noqa: PLC0415 - see above
    import kubernetes.config.kube_config  # noqa: PLC0415
    import kubernetes.dynamic.discovery  # noqa: PLC0415

    return kubernetes


def _user_agent() -> str:
    try:
        return f"dyninformer/{version('dyninformer')}"
    except PackageNotFoundError:
        return "dyninformer"
