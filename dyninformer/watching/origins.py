"""Where the settings of a connection come from: a client of the caller's, files, or a pod.

The official package is handed in as ``official``, which imports it on first use.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dyninformer import __version__
from dyninformer.errors import ConfigError, UnreachableError
from dyninformer.watching.connections import Plumbing
from dyninformer.watching.exchange import Guard, PrivateClient
from dyninformer.watching.failures import without_password
from dyninformer.watching.kubeconfigs import InCluster, KubeconfigFiles, harmless, named_in
from dyninformer.watching.private_client import Official, copy_of, dynamic_client, private_client

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.dynamic import DynamicClient

__all__ = ["Environment", "Given"]


class Given:
    """A client of the caller's; it and its Configuration are read, never changed."""

    def __init__(self, client: DynamicClient | ApiClient, official: Official) -> None:
        self._official = official
        kubernetes = official()
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
        configuration = copy_of(self._api.configuration, guard)
        self._private = configuration
        dynamic = self._dynamic or dynamic_client(self._api, self._official)
        return private_client(dynamic, configuration, plumbing, self._official)

    def writes_client(self, guard: Guard) -> DynamicClient:
        """His own, or one around it."""
        del guard
        return self._dynamic or dynamic_client(self._api, self._official)


class Environment:
    """Kubeconfig files, or the service account of a pod."""

    def __init__(self, place: KubeconfigFiles | InCluster, official: Official) -> None:
        self._official = official
        self._place: KubeconfigFiles | InCluster = place
        self._plugin: str | None = None
        if isinstance(place, KubeconfigFiles):
            named = named_in(place)  # the official loader runs the plugin as soon as it loads
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
        dynamic = dynamic_client(api, self._official)
        return private_client(dynamic, api.configuration, plumbing, self._official)

    def writes_client(self, guard: Guard) -> DynamicClient:
        """Another, with the official client's own connections and retries."""
        return dynamic_client(self._api(guard), self._official)

    def _api(self, guard: Guard) -> ApiClient:
        api: ApiClient = self._official().client.ApiClient(
            copy_of(self._loaded or self._read(), guard)
        )
        api.user_agent = f"dyninformer/{__version__}"
        return api

    def _read(self) -> Configuration:
        kubernetes = self._official()
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
