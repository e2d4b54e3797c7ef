"""A private copy of a client of the official package, over connections of ours.

What the caller has set up is copied as far as it takes part in a request, and never changed.
What such a client is made of is no promise of that package, nor of urllib3. Where it cannot be
copied, requests are made with what its Configuration says, which is one (`_Remade`).
"""

from __future__ import annotations

import copy
import json
import os
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode, urlsplit

import urllib3

from dyninformer.watching.connections import Plumbing, note_changed, tracked, tracked_from
from dyninformer.watching.exchange import Guard, Hook, PrivateClient

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.dynamic import DynamicClient

__all__ = ["Official", "copy_of", "dynamic_client", "private_client"]

Official: TypeAlias = Callable[[], Any]
"""Gives the package ``kubernetes``, which it imports on first use."""

Ask: TypeAlias = Callable[..., urllib3.BaseHTTPResponse]
Pairs: TypeAlias = Sequence[tuple[str, str]]

_USED = ("status", "headers", "chunked", "stream", "read1", "release_conn", "close")
"""Of an answer."""

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
    kubernetes = official()
    failures = (
        urllib3.exceptions.HTTPError,
        OSError,
        HTTPException,
        kubernetes.client.exceptions.OpenApiException,
        kubernetes.config.ConfigException,
    )
    try:
        request, manager = _copied(dynamic, configuration, plumbing)
    except (AttributeError, TypeError) as error:
        _note_remade(f"makes clients that cannot be copied ({error})")
    else:
        return PrivateClient(request, manager, failures)
    remade = _Remade(getattr(dynamic, "client", None), configuration, plumbing)
    return PrivateClient(remade.request, remade.manager, failures)


def _copied(
    dynamic: DynamicClient, configuration: Configuration, plumbing: Plumbing
) -> tuple[Ask, urllib3.PoolManager]:
    api = copy.copy(dynamic.client)
    rest = copy.copy(api.rest_client)
    if not isinstance(rest.pool_manager, urllib3.PoolManager):
        raise TypeError(f"its pool_manager is a {type(rest.pool_manager).__name__}")
    rest.pool_manager = manager = tracked(rest.pool_manager, plumbing)
    api.configuration = configuration
    api.default_headers = dict(api.default_headers)
    api.rest_client = rest
    private = copy.copy(dynamic)
    private.client = api
    private.configuration = configuration
    remade: _Remade | None = None

    def request(*args: Any, **options: Any) -> urllib3.BaseHTTPResponse:
        nonlocal remade
        if remade is None:
            found: urllib3.BaseHTTPResponse = private.request(*args, **options)
            if all(hasattr(found, name) for name in _USED):
                return found
            _note_remade(f"answers with a {type(found).__name__}")
            remade = _Remade(api, configuration, plumbing)
        return remade.request(*args, **options)

    return request, manager


def _note_remade(how: str) -> None:
    note_changed(
        "kubernetes",
        how,
        "requests are made with what the client's Configuration says, its default headers and "
        "its cookie alone; methods that a class of yours overrides are not called",
    )


class _Remade:
    """Asks by urllib3 alone, with what a Configuration documents."""

    def __init__(self, api: Any, configuration: Configuration, plumbing: Plumbing) -> None:
        self._configuration = configuration
        self._headers = {
            "Content-Type": "application/json",
            **getattr(api, "default_headers", {}),
            **({"Cookie": api.cookie} if getattr(api, "cookie", None) else {}),
        }
        kind, settings = _connecting_as(configuration)
        self.manager = tracked_from(kind, settings, plumbing)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any,
        query_params: Pairs,
        header_params: Mapping[str, str],
        _request_timeout: tuple[float, float],
        **_: Any,
    ) -> urllib3.BaseHTTPResponse:
        """What `DynamicClient.request` does, as far as it is used here."""
        headers, query = {**self._headers, **header_params}, list(query_params)
        settings: Any = self._configuration.auth_settings()  # it refreshes the token
        for each in settings.values():
            if each["in"] == "header":
                headers[each["key"]] = each["value"]
            elif each["in"] == "query":
                query.append((each["key"], each["value"]))
        connecting, reading = _request_timeout
        return self.manager.request(
            method.upper(),
            self._configuration.host + path + ("?" + urlencode(query) if query else ""),
            body=None if body is None else json.dumps(body),
            headers=headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=connecting, read=reading),
        )


def _connecting_as(configuration: Any) -> tuple[type[urllib3.PoolManager], dict[str, Any]]:
    """The manager for this Configuration, and its arguments."""
    said = {
        name: getattr(configuration, field, None)
        for name, field in (
            ("ca_certs", "ssl_ca_cert"),
            ("ca_cert_data", "ca_cert_data"),
            ("cert_file", "cert_file"),
            ("key_file", "key_file"),
            ("assert_hostname", "assert_hostname"),
            ("server_hostname", "tls_server_name"),
            ("socket_options", "socket_options"),
        )
    }
    settings = {name: value for name, value in said.items() if value is not None}
    settings["cert_reqs"] = ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE
    proxy = configuration.proxy
    if not proxy or _past_proxy(configuration.host, configuration.no_proxy or ""):
        return urllib3.PoolManager, settings
    settings["proxy_url"] = proxy
    if proxy.lower().startswith("socks"):
        from urllib3.contrib.socks import SOCKSProxyManager  # noqa: PLC0415 - it needs PySocks

        return SOCKSProxyManager, {**settings, "headers": configuration.proxy_headers}
    return urllib3.ProxyManager, {**settings, "proxy_headers": configuration.proxy_headers}


def _past_proxy(url: str, no_proxy: str) -> bool:
    host = urlsplit(url).hostname or ""
    entries = [each.strip().lower().lstrip(".") for each in no_proxy.split(",") if each.strip()]
    return any(each in ("*", host) or host.endswith("." + each) for each in entries)


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
