"""A private copy of a client of the official package, over connections of ours.

What the caller has set up is copied as far as it takes part in a request, and never changed.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, TypeAlias

import urllib3

from dyninformer.watching.connections import Plumbing, tracked
from dyninformer.watching.exchange import Guard, Hook, PrivateClient

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.dynamic import DynamicClient

__all__ = ["Official", "copy_of", "dynamic_client", "private_client"]

Official: TypeAlias = Callable[[], Any]
"""Gives the package ``kubernetes``, which it imports on first use."""

_NO_CACHE_FILE = os.path.join(os.devnull, "discovery")
"""A path that cannot exist: official discovery would leave a file that all users can read."""


def dynamic_client(api: ApiClient, official: Official) -> DynamicClient:
    """A `DynamicClient` that asks nothing before it must."""
    late = partial(_LateDiscovery, official)
    found: DynamicClient = official().dynamic.DynamicClient(api, discoverer=late)
    return found


def private_client(
    dynamic: DynamicClient, configuration: Configuration, plumbing: Plumbing, official: Official
) -> PrivateClient:
    """A copy of all that takes part in a request, down to the pool of connections."""
    if hasattr(configuration, "client_go_retries"):
        configuration.client_go_retries = False  # it would sleep where nobody can wake it
    api = copy.copy(dynamic.client)
    manager = tracked(api.rest_client.pool_manager, plumbing)
    api.configuration = configuration
    api.default_headers = dict(api.default_headers)
    api.rest_client = copy.copy(api.rest_client)
    api.rest_client.pool_manager = manager
    private = copy.copy(dynamic)
    private.client = api
    private.configuration = configuration
    kubernetes = official()
    failures = (
        urllib3.exceptions.HTTPError,
        OSError,
        HTTPException,
        kubernetes.client.exceptions.OpenApiException,
        kubernetes.config.ConfigException,
    )
    return PrivateClient(private.request, manager, failures)


def copy_of(configuration: Configuration, guard: Guard) -> Configuration:
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


class _LateDiscovery:
    """Discovery on first use; the official ones ask in their constructor."""

    def __init__(
        self, official: Official, dynamic: DynamicClient, cache_file: str | None
    ) -> None:  # fmt: skip
        del cache_file
        self._official = official
        self._dynamic = dynamic
        self._found: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._discoverer(), name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._discoverer())

    def _discoverer(self) -> Any:
        if self._found is None:
            self._found = self._official().dynamic.discovery.LazyDiscoverer(
                self._dynamic, _NO_CACHE_FILE
            )
        return self._found
