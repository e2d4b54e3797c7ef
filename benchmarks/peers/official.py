"""The official client: lists in pages into dicts, with an index by namespace, and then watches.

Its `kubernetes.informer` needs a typed list function, which custom resources have none of.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

from kubernetes import client, config, watch

from benchmarks.peers.told import sync_when_told

WHAT = ("cert-manager.io", "v1", "certificates")


class Cache:
    """What one writes by hand with it."""

    def __init__(self) -> None:
        self._api: Any = client.CustomObjectsApi(config.new_client_from_config())
        self._objects: dict[tuple[str, str], Any] = {}
        self._by_namespace: dict[str, set[str]] = defaultdict(set)

    def connect(self) -> None:
        """Ask for one."""
        self._api.list_cluster_custom_object(*WHAT, limit=1)

    def sync(self) -> int:
        """List all, and watch from there."""
        token = version = ""
        while True:
            asked = {"_continue": token} if token else {}
            page = self._api.list_cluster_custom_object(*WHAT, limit=500, **asked)
            for each in page["items"]:
                self._take("ADDED", each)
            version = version or page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue", "")
            if not token:
                break
        threading.Thread(target=self._watch, args=(version,), daemon=True).start()
        return len(self._objects)

    def _watch(self, version: str) -> None:
        listed = self._api.list_cluster_custom_object
        for event in watch.Watch().stream(listed, *WHAT, resource_version=version):
            self._take(event["type"], event["object"])

    def _take(self, kind: str, obj: Any) -> None:
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        if kind == "DELETED":
            self._objects.pop((namespace, name), None)
            self._by_namespace[namespace].discard(name)
        else:
            self._objects[namespace, name] = obj
            self._by_namespace[namespace].add(name)


if __name__ == "__main__":
    cache = Cache()
    sync_when_told(cache.connect, cache.sync)
