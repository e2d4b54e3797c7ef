"""dyninformer, as its users use it."""

from __future__ import annotations

import sys

from benchmarks.own_informer import CERTIFICATES
from benchmarks.peers.told import sync_when_told
from dyninformer import DynamicSharedInformerFactory


def main(mode: str) -> None:
    """List in pages, or stream the list."""
    factory = DynamicSharedInformerFactory()
    streaming = mode == "WatchList"

    def connect() -> None:
        factory.for_resource("customresourcedefinitions.v1.apiextensions.k8s.io")
        factory.sync(timeout=60)

    def sync() -> int:
        found = factory.for_resource(CERTIFICATES, watch_list=streaming)
        factory.sync(timeout=600)
        return len(found.lister)

    sync_when_told(connect, sync)


if __name__ == "__main__":
    main(sys.argv[1])
