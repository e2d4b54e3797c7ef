"""Pods and StatefulSets with listers: which pod belongs to which set, without a request each time.

Built-in resources are watched exactly as custom ones are. Each of the two is listed once and
then kept up to date; every read below is answered from memory. The pods are found by an
index on the uid of their owner, so no loop goes over all of them.

    python examples/pods_and_statefulsets.py
    python examples/pods_and_statefulsets.py --namespace prod --every 5
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress

from dyninformer import CacheSyncError, DynamicSharedInformerFactory, JSONPath
from dyninformer import GenericLister as Lister

READY = JSONPath("{.status.readyReplicas}")
NODE = JSONPath("{.spec.nodeName}")
PHASE = JSONPath("{.status.phase}")


def show(statefulsets: Lister, pods: Lister) -> None:
    """Print each StatefulSet with its pods."""
    for statefulset in statefulsets:
        meta = statefulset["metadata"]
        wanted = statefulset["spec"].get("replicas", 1)
        ready = READY.first(statefulset, 0)
        print(f"{meta['namespace']}/{meta['name']}: {ready} of {wanted} ready")
        for pod in pods.by_index("by-owner", meta["uid"]):
            name, phase = pod["metadata"]["name"], PHASE.first(pod, "Unknown")
            print(f"  {name:<20} {phase:<10} {NODE.first(pod, 'on no node yet')}")
    print(f"{len(statefulsets)} StatefulSets, {len(pods)} pods in the cache", flush=True)


def main() -> None:
    """Show once, or again and again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--namespace", help="one namespace instead of all")
    parser.add_argument("--every", type=float, metavar="SECONDS", help="show again so often")
    arguments = parser.parse_args()

    with DynamicSharedInformerFactory(namespace=arguments.namespace) as factory:
        # A short name asks the server which resource is meant; "v1/pods" would not have to.
        pods = factory.for_resource(
            "pods", indexers={"by-owner": ".metadata.ownerReferences[*].uid"}
        )
        statefulsets = factory.for_resource("statefulsets.v1.apps")
        try:
            factory.sync(timeout=30)
        except CacheSyncError as error:
            sys.exit(str(error))
        show(statefulsets.lister, pods.lister)
        while arguments.every and not factory.wait(arguments.every):
            show(statefulsets.lister, pods.lister)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C ends it
        main()
