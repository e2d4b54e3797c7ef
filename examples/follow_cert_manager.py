"""All resources of cert-manager, also those that are installed later.

``factory.follow`` keeps one informer per resource that matches a pattern, as CRDs come and go. It
does not matter whether cert-manager is installed when this starts. When a CRD is deleted, its
objects are told as DELETED, and its informer ends.

    python examples/follow_cert_manager.py
    python examples/follow_cert_manager.py "*.cert-manager.io" "*.projectcalico.org" --seconds 60
"""

from __future__ import annotations

import argparse
import logging
import sys
from contextlib import suppress

from dyninformer import DynamicSharedInformerFactory, Event

log = logging.getLogger("example")


def show(event: Event) -> None:
    """Events of all the resources come here, one at a time for each resource."""
    log.info("%-8s %-35s %s", event.type, event.gvr.group_resource, event.key)


def main() -> None:
    """Follow until the time is over, and say what was followed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "patterns", nargs="*", default=["*.cert-manager.io"], help="of plural.group, as in a shell"
    )
    parser.add_argument(
        "--seconds", type=float, help="how long to follow; until Ctrl-C if left out"
    )
    arguments = parser.parse_args()
    # Handlers run on threads of their own: logging keeps their lines apart, print would not.
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    log.setLevel(logging.INFO)

    with DynamicSharedInformerFactory() as factory:
        factory.follow(*arguments.patterns, on_event=show)
        factory.start()
        log.info("following %s", ", ".join(arguments.patterns))
        factory.wait(arguments.seconds)
        for gvr, status in factory.status().items():
            log.info("%s: %d objects, %s", gvr, status.objects, status.state)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C ends it
        main()
