"""What it costs to watch a shard of a collection on a server that sends all of it."""

from __future__ import annotations

import json
import time
from uuid import UUID

from dyninformer.resource import GroupVersionResource
from dyninformer.shard import Shard, uid_hash
from dyninformer.store.store import Store

OBJECTS = 20_000
GVR = GroupVersionResource("cert-manager.io", "v1", "certificates")


def objects() -> list[bytes]:
    """Certificates of 1.2 kB, as a server sends them."""
    made = []
    for number in range(OBJECTS):
        metadata = {
            "annotations": {"note": "x" * 300},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "name": f"cert-{number}",
            "namespace": f"ns-{number % 50}",
            "resourceVersion": str(1000 + number),
            "uid": str(UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128))),
        }
        spec = {"secretName": f"cert-{number}", "dnsNames": [f"{number}.example.com"] * 20}
        whole = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": metadata}
        made.append(json.dumps({**whole, "spec": spec}, separators=(",", ":")).encode())
    return made


def seconds(shard: Shard | None, came: list[bytes]) -> tuple[float, int]:
    """CPU time of a first state, and how many objects are held then."""
    uid_hash.cache_clear()
    store = Store(GVR, shard=shard)
    began = time.process_time()
    relist = store.relist()
    relist.add(
        received for received in (store.receive(each) for each in came) if not received.foreign
    )
    relist.swap(first=True)
    return time.process_time() - began, len(store)


def main() -> None:
    """Print the cost per object, whole and by parts."""
    came = objects()
    uids = [json.loads(each)["metadata"]["uid"] for each in came]
    uid_hash.cache_clear()
    began = time.process_time()
    for uid in uids:
        uid_hash(uid)
    print(f"hash of a uid: {(time.process_time() - began) / OBJECTS * 1e6:.1f} us")
    whole = 0.0
    for count in (None, 1, 2, 5, 20):
        shard = None if count is None else Shard(0, count)
        spent, held = min(seconds(shard, came) for _ in range(3))
        whole = whole or spent
        name = "no shard" if count is None else f"1 of {count}"
        print(
            f"{name:>9}: {spent / OBJECTS * 1e6:5.1f} us for each object that came, "
            f"{held:6,} held, {spent / whole:.2f} of the whole"
        )


if __name__ == "__main__":
    main()
