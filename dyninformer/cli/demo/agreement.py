"""Whether the caches hold what the server has, object for object."""

from __future__ import annotations

import time
from typing import Any, Final, TypeAlias

from dyninformer.cli.demo.spectator import Informers, Spectator
from dyninformer.testing import ApiServer

Object: TypeAlias = dict[str, Any]
Objects: TypeAlias = list[Object]
Texts: TypeAlias = list[str]

_QUIET_SECONDS: Final = 3.0  # without an event, while all is connected: nothing is on its way
_PATIENCE: Final = 15.0


def differences(server: ApiServer, spectator: Spectator) -> Texts:
    """What differs once everything has arrived; nothing if cache and server agree.

    Nothing may write meanwhile. What is on its way is waited for.
    """
    begun = time.monotonic()
    while found := _differences_now(server, spectator.informers):
        spectator.look(0.1)
        now = time.monotonic()
        connected, _ = spectator.standing()
        quiet = now - max(begun, spectator.last_event) > _QUIET_SECONDS
        if (connected and quiet) or now - begun > _PATIENCE:
            break
    return found


def _differences_now(server: ApiServer, informers: Informers) -> Texts:
    found = []
    for each in informers:
        cached = {_key(obj): obj for obj in each.lister}
        served = {_key(obj): obj for obj in _listed(server, each.gvr.group_resource)}
        for key in sorted(cached.keys() | served.keys()):
            if key not in served:
                found.append(f"{each.gvr.resource} {key}: only the cache has it")
            elif key not in cached:
                found.append(f"{each.gvr.resource} {key}: the cache does not have it")
            elif cached[key] != served[key]:
                found.append(f"{each.gvr.resource} {key}: the cache has another state of it")
    return found


def _listed(server: ApiServer, resource: str) -> Objects:
    """A fresh LIST; of a resource whose CRD is away there is nothing."""
    try:
        return server.list(resource)
    except LookupError:
        return []


def _key(obj: Object) -> str:
    metadata = obj["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
