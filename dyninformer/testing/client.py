"""What clients connect with: a kubeconfig for one server and one user, or the official client."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dyninformer.checked import checked_or_none

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from kubernetes.dynamic.discovery import LazyDiscoverer

_NAME = "dyninformer"
"""The name of the cluster, the user and the context in it."""


def kubeconfig_text(url: str, token: str, ca: bytes | None, namespace: str = "default") -> str:
    """A kubeconfig that any client can use; JSON, which is YAML too."""
    cluster: dict[str, str] = {"server": url}
    if ca is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": _NAME,
            "clusters": [{"name": _NAME, "cluster": cluster}],
            "users": [{"name": _NAME, "user": {"token": token}}],
            "contexts": [
                {
                    "name": _NAME,
                    "context": {"cluster": _NAME, "user": _NAME, "namespace": namespace},
                }
            ],
        },
        indent=2,
    )


def checked_token(token: object) -> str | None:
    """A bearer token that a caller gave, or None."""
    return checked_or_none(
        "token", token, str, "a user's bearer token, or None for one of all rights"
    )


def write_private(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one step, readable by its owner alone."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600 from birth
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


_NO_CACHE_FILE = os.path.join(os.devnull, "discovery")
"""A path that cannot exist: the official client would leave a file that all users can read."""


def dynamic_client(url: str, token: str, ca: Path | None) -> DynamicClient:
    """A DynamicClient that asks nothing of the server before it is used."""
    from kubernetes import client  # noqa: PLC0415 - 0.25 s of import
    from kubernetes.dynamic import DynamicClient  # noqa: PLC0415 - as above

    configuration = client.Configuration()
    configuration.host = url
    configuration.ssl_ca_cert = None if ca is None else str(ca)
    configuration.api_key = {"authorization": f"Bearer {token}"}
    configuration.proxy = None  # loopback is not behind the proxy of the environment
    api = client.ApiClient(configuration)
    return DynamicClient(api, discoverer=_LateDiscoverer)


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
        from kubernetes.dynamic.discovery import LazyDiscoverer  # noqa: PLC0415 - as above

        if self._found is None:
            self._found = LazyDiscoverer(self._dynamic, _NO_CACHE_FILE)
        return self._found
