"""Nodes with a handler: told when one comes, goes, or stops being ready.

A node's status changes every few seconds, as its kubelet reports in. ``when_changed`` lets
through only the updates that change what is asked for: here whether it is ready, and whether pods
may be scheduled on it.

    python examples/nodes.py               # until Ctrl-C
    python examples/nodes.py --seconds 60
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import Any

from dyninformer import (
    CacheSyncError,
    DynamicSharedInformerFactory,
    GroupVersionResource,
    JSONPath,
)

NODES = GroupVersionResource("", "v1", "nodes")
READY = "{.status.conditions[?(@.type=='Ready')].status}"
UNSCHEDULABLE = "{.spec.unschedulable}"

_ready = JSONPath(READY)
_unschedulable = JSONPath(UNSCHEDULABLE)


def state(node: dict[str, Any]) -> str:
    """What kubectl shows as the status of a node."""
    ready = "Ready" if _ready.first(node) == "True" else "NotReady"
    return f"{ready},SchedulingDisabled" if _unschedulable.first(node) else ready


def on_add(node: dict[str, Any]) -> None:
    """A node that is there at the start, or came later."""
    print(f"{node['metadata']['name']} is {state(node)}", flush=True)


def on_update(old: dict[str, Any], new: dict[str, Any]) -> None:
    """A change of readiness or of scheduling."""
    print(f"{new['metadata']['name']} was {state(old)}, is {state(new)}", flush=True)


def on_delete(node: dict[str, Any]) -> None:
    """A node that is gone."""
    print(f"{node['metadata']['name']} is gone, was {state(node)}", flush=True)


def main() -> None:
    """Watch nodes until the time is over."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, help="how long to watch; until Ctrl-C if left out")
    arguments = parser.parse_args()

    with DynamicSharedInformerFactory() as factory:
        nodes = factory.for_resource(NODES)
        handler = nodes.informer.add_event_handler(
            on_add=on_add,
            on_update=on_update,
            on_delete=on_delete,
            when_changed=(READY, UNSCHEDULABLE),
        )
        try:
            factory.sync(timeout=30)
        except CacheSyncError as error:
            sys.exit(str(error))
        handler.wait_for_sync(timeout=30)  # the handler has been told of every node there is
        print(f"{len(nodes.lister)} nodes; now watching", flush=True)
        factory.wait(arguments.seconds)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C ends it
        main()
