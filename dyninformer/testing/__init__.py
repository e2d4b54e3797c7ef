"""An embedded Kubernetes API server for tests: real HTTP on loopback, no cluster needed.

>>> from dyninformer.testing import ApiServer
>>> with ApiServer() as server:
...     server.install({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}})
...     [namespace["metadata"]["name"] for namespace in server.list("namespaces")]
['default', 'kube-node-lease', 'kube-public', 'kube-system', 'prod']

`ApiServer` is the server, `InProcessServer` the same without sockets and with a clock
that the test moves, `ControlPlane` a real etcd and kube-apiserver with the same methods.
What can go wrong is in `dyninformer.testing.faults`.

The names are looked up on first use: pytest loads a module of this package in every
project that has it installed, and that must cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dyninformer.first_use import on_first_use

if TYPE_CHECKING:
    from dyninformer.testing.api.access import Access, Rule, User
    from dyninformer.testing.api_server import ApiServer
    from dyninformer.testing.clock import ManualClock
    from dyninformer.testing.cluster.cluster import Snapshot
    from dyninformer.testing.cluster.watch_cache import ReadSettings
    from dyninformer.testing.control_plane import ControlPlane
    from dyninformer.testing.embedded import LoggedRequest
    from dyninformer.testing.http.wire import Limits
    from dyninformer.testing.in_process import InProcessServer, Reply
    from dyninformer.testing.messages import Request
    from dyninformer.testing.status import ApiError

__all__ = [
    "Access",
    "ApiError",
    "ApiServer",
    "ControlPlane",
    "InProcessServer",
    "Limits",
    "LoggedRequest",
    "ManualClock",
    "ReadSettings",
    "Reply",
    "Request",
    "Rule",
    "Snapshot",
    "User",
]

_HOMES = {
    "Access": "api.access",
    "ApiError": "status",
    "ApiServer": "api_server",
    "ControlPlane": "control_plane",
    "InProcessServer": "in_process",
    "Limits": "http.wire",
    "LoggedRequest": "embedded",
    "ManualClock": "clock",
    "ReadSettings": "cluster.watch_cache",
    "Reply": "in_process",
    "Request": "messages",
    "Rule": "api.access",
    "Snapshot": "cluster.cluster",
    "User": "api.access",
}

_found = on_first_use(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    try:
        return _found(name)
    except ModuleNotFoundError as error:
        what = f"dyninformer.testing needs {error.name}: pip install 'dyninformer[testing]'"
        raise ModuleNotFoundError(what, name=error.name) from error


def __dir__() -> list[str]:
    return sorted((*globals(), *__all__))
