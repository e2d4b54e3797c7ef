"""The official client, connected to a server of this package; the only importer of it here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubernetes import client
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.discovery import LazyDiscoverer

_NO_CACHE_FILE = os.path.join(os.devnull, "discovery")
"""A path that cannot exist: the official client would leave a file that all users can read."""


def dynamic_client(url: str, token: str, ca: Path | None) -> DynamicClient:
    """A DynamicClient that asks nothing of the server before it is used."""
    configuration = client.Configuration()
    configuration.host = url
    configuration.ssl_ca_cert = None if ca is None else str(ca)
    configuration.api_key = {"authorization": f"Bearer {token}"}
    configuration.proxy = None  # loopback is not behind the proxy of the environment
    api = client.ApiClient(configuration)
    return DynamicClient(api, discoverer=_LateDiscoverer)  # type: ignore[no-untyped-call]


class _LateDiscoverer:
    """Discovery on first use; the official ones ask in their constructor."""

    def __init__(self, dynamic: DynamicClient, cache_file: str | None) -> None:
        del cache_file
        self._dynamic = dynamic
        self._found: LazyDiscoverer | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._discoverer(), name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._discoverer())

    def _discoverer(self) -> LazyDiscoverer:
        if self._found is None:
            self._found = LazyDiscoverer(  # type: ignore[no-untyped-call]
                self._dynamic, _NO_CACHE_FILE
            )
        return self._found
