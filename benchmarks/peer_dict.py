"""The least that one writes by hand: urllib3, json, one dict by key, and no index."""

from __future__ import annotations

import sys

from benchmarks.measuring import run
from benchmarks.peer_dicts import DictCache
from dyninformer.types import Object


class OneDictCache(DictCache):
    """Decoded objects in a dict."""

    def count_of_index(self, issuer: str) -> int:
        """By looking at every object."""
        with self.lock:
            return sum(
                each["spec"]["issuerRef"]["name"] == issuer for each in self.objects.values()
            )

    def _put(self, new: Object) -> Object | None:
        key = f"{new['metadata']['namespace']}/{new['metadata']['name']}"
        with self.lock:
            old = self.objects.get(key)
            self.objects[key] = new
        return old


if __name__ == "__main__":
    url, mode, *numbers = sys.argv[1:]
    run(OneDictCache(url, mode), *map(int, numbers))
