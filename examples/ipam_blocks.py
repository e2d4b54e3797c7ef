"""Calico's IPAM blocks and network policies: how full each block is, and which policies there are.

It shows a cluster-scoped and a namespaced custom resource side by side. IPAMBlock is
cluster-scoped, so a namespace means nothing to it; a factory-wide ``namespace=`` would be
refused for it. What to watch is therefore said for each resource: the policies are filtered
by namespace and label selector, the blocks by a label selector alone. Both filters run on
the API server: what they leave out is never sent.

Every five seconds a resync tells the handler all blocks again, as SYNC events from memory,
without asking the server anything.

    python examples/ipam_blocks.py --namespace prod --selector app.kubernetes.io/name=shop
    python examples/ipam_blocks.py --block-selector zone=a --seconds 20
"""

from __future__ import annotations

import argparse
import logging
import sys
from contextlib import suppress

from dyninformer import (
    CacheSyncError,
    DynamicSharedInformerFactory,
    Event,
    GroupVersionResource,
    ResourceOptions,
)

log = logging.getLogger("example")

IPAM_BLOCKS = GroupVersionResource("crd.projectcalico.org", "v1", "ipamblocks")
NETWORK_POLICIES = GroupVersionResource("crd.projectcalico.org", "v1", "networkpolicies")


def show_block(event: Event) -> None:
    """One line per event: an allocation that is null is a free address."""
    spec = event.object["spec"]
    allocations = spec.get("allocations", [])
    used = sum(each is not None for each in allocations)
    host = spec.get("affinity", "no host").removeprefix("host:")
    in_use = f"{used} of {len(allocations)} in use"
    log.info("%-8s%-18s %-10s %s", event.type, spec["cidr"], host, in_use)


def show_policy(event: Event) -> None:
    """One line per event."""
    spec = event.object["spec"]
    log.info("%-8s%s is for %s", event.type, event.key, spec.get("selector") or "all()")


def main() -> None:
    """Watch both until the time is over."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--namespace", default="", help="of the policies; all if left out")
    parser.add_argument("--selector", default="", help="label selector of the policies")
    parser.add_argument("--block-selector", default="", help="label selector of the blocks")
    parser.add_argument("--seconds", type=float, help="how long to watch; until Ctrl-C if left out")
    arguments = parser.parse_args()
    # Handlers run on threads of their own: logging keeps their lines apart, print would not.
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    log.setLevel(logging.INFO)

    watched = {
        IPAM_BLOCKS: ResourceOptions(
            label_selector=arguments.block_selector,
            resync=5,
            indexers={"by-host": ".spec.affinity"},
        ),
        NETWORK_POLICIES: ResourceOptions(
            namespaces=arguments.namespace, label_selector=arguments.selector
        ),
    }
    with DynamicSharedInformerFactory(resources=watched) as factory:
        blocks = factory.for_resource(IPAM_BLOCKS)
        policies = factory.for_resource(NETWORK_POLICIES)
        told = [
            blocks.informer.add_event_handler(on_event=show_block),
            policies.informer.add_event_handler(on_event=show_policy),
        ]
        try:
            factory.sync(timeout=30)
        except CacheSyncError as error:
            sys.exit(str(error))
        for registration in told:
            registration.wait_for_sync(timeout=30)
        for host in blocks.informer.indexer.list_index_func_values("by-host"):
            found = blocks.lister.by_index("by-host", host)
            log.info("%s has %s", host, ", ".join(each["spec"]["cidr"] for each in found))
        factory.wait(arguments.seconds)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C ends it
        main()
