"""kr8s: it lists, in pages of a hundred, into objects of its own.

It does not say of which version the list is, so that no watch can go on from it, and none is begun.
"""

from __future__ import annotations

from typing import Any

import kr8s

from benchmarks.peers.told import sync_when_told

KIND = "certificates.cert-manager.io"


def sync() -> int:
    """List all, by key."""
    found: Any = kr8s.get(KIND, namespace=kr8s.ALL)
    objects = {(each.namespace, each.name): each for each in found}
    return len(objects)


if __name__ == "__main__":
    sync_when_told(lambda: list(kr8s.get("namespaces")), sync)
