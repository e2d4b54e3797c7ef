"""What came of waiting for caches to sync."""

from __future__ import annotations

from collections.abc import Mapping

from dyninformer.errors import CacheSyncError
from dyninformer.resource import GroupVersionResource
from dyninformer.watching.status import InformerStatus


class SyncResult(dict[GroupVersionResource, bool]):
    """Which caches are synced. It is true if all are.

    >>> pods = GroupVersionResource("", "v1", "pods")
    >>> bool(SyncResult({pods: True})), bool(SyncResult({pods: False}))
    (True, False)
    """

    def __bool__(self) -> bool:
        return all(self.values())


def sync_error(
    result: SyncResult, status: Mapping[GroupVersionResource, InformerStatus], seconds: float
) -> CacheSyncError:
    """What to raise after so many seconds: of each cache that did not sync, why."""
    lines = []
    for gvr in sorted(gvr for gvr, synced in result.items() if not synced):
        found = status.get(gvr)
        reason = (found and found.reason) or f"still {found.state if found else 'removed'}"
        tries = f" ({found.attempts} tries failed)" if found and found.attempts else ""
        lines.append(f"  {gvr}: {reason}{tries}")
    head = f"{len(lines)} of {len(result)} caches did not sync in {seconds:.1f} s:"
    return CacheSyncError("\n".join([head, *lines]), status)
