"""The peer that one writes by hand: urllib3, json, a dict by key, and two dicts as indexes.

It lists in pages, or by a streaming list, then watches, and does nothing else: no retries, no
expired versions, no handlers on threads of their own. What it costs is what Python's usual
tools cost.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator

import urllib3

from benchmarks.certificates import PATH
from benchmarks.measuring import EMPTY, Cache, Handler, run
from dyninformer.types import Object

Objects = dict[str, Object]
Index = dict[str, set[str]]


class DictCache(Cache):
    """Decoded objects in dicts."""

    def __init__(self, url: str, mode: str) -> None:
        self.url = url
        self.streaming = mode == "WatchList"
        self.pool = urllib3.PoolManager(retries=False)
        self.objects: Objects = {}
        self.by_issuer: Index = defaultdict(set)
        self.by_secret: Index = defaultdict(set)
        self.lock = threading.Lock()
        self.synced = threading.Event()

    def connect(self) -> None:
        """List nothing."""
        self._list(EMPTY)

    def sync(self, handler: Handler) -> None:
        """Copy all, on a thread that goes on watching."""
        threading.Thread(target=self._follow, args=(handler,), daemon=True).start()
        self.synced.wait()

    def get(self, namespace: str, name: str) -> Object:
        """A copy, made as the standard library makes it fastest."""
        copied: Object = json.loads(json.dumps(self.get_shared(namespace, name)))
        return copied

    def get_shared(self, namespace: str, name: str) -> Object:
        """The one in the cache."""
        with self.lock:
            return self.objects[f"{namespace}/{name}"]

    def count_of_index(self, issuer: str) -> int:
        """How many have it."""
        return len(self.by_issuer[issuer])

    def tell(self, handler: Handler, old: Object, new: Object) -> None:
        """Of an update. The new state is the one in the cache."""
        handler.on_update(old, new)

    def _follow(self, handler: Handler) -> None:
        if self.streaming:
            version = ""
        else:
            version = self._list(PATH)
            self.synced.set()
        for event in self._watch(version):
            if event["type"] == "BOOKMARK":
                self.synced.set()
                continue
            new = event["object"]
            old = self._put(new)
            if event["type"] == "MODIFIED" and old:
                self.tell(handler, old, new)

    def _list(self, path: str) -> str:
        token = version = ""
        while True:
            fields = {"limit": "500"} | ({"continue": token} if token else {})
            page = json.loads(self.pool.request("GET", self.url + path, fields=fields).data)
            for each in page["items"]:
                self._put(each)
            version = version or page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue", "")
            if not token:
                return version

    def _watch(self, version: str) -> Iterator[Object]:
        fields = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "1800"}
        if version:
            fields["resourceVersion"] = version
        else:
            fields |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        stream = self.pool.request(
            "GET", self.url + PATH, fields=fields, preload_content=False, timeout=None
        )
        rest = b""
        for piece in stream.stream(1 << 16):
            *lines, rest = (rest + piece).split(b"\n")
            yield from map(json.loads, lines)

    def _put(self, new: Object) -> Object | None:
        key = f"{new['metadata']['namespace']}/{new['metadata']['name']}"
        with self.lock:
            old = self.objects.get(key)
            if old:
                self.by_issuer[old["spec"]["issuerRef"]["name"]].discard(key)
                self.by_secret[old["spec"]["secretName"]].discard(key)
            self.objects[key] = new
            self.by_issuer[new["spec"]["issuerRef"]["name"]].add(key)
            self.by_secret[new["spec"]["secretName"]].add(key)
        return old


if __name__ == "__main__":
    url, mode, *numbers = sys.argv[1:]
    run(DictCache(url, mode), *map(int, numbers))
