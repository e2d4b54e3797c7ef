"""A first look that needs no cluster: an embedded API server, two CRDs, and an informer on one.

It starts the server, installs examples/crd, keeps a live copy of the certificates while
they change, shows what changed and an index by JSONPath, and ends by itself: with exit
code 0 only if the cache and the server agree.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from dyninformer import Event, open_informer
from dyninformer.testing import ApiServer

CERTIFICATES = "cert-manager.io/v1/certificates"
READY = "{.status.conditions[?(@.type=='Ready')].status}"


def change_things(server: ApiServer) -> None:
    """What a busy controller would do: issue, fail, renew, delete. And the server restarts."""
    for name, status in (("shop", "False"), ("mail", "True"), ("shop", "True")):
        change = {"status": {"conditions": [{"type": "Ready", "status": status, "reason": "Demo"}]}}
        server.patch(f"certificates/{name}", change, "prod", subresource="status")
    server.delete("certificates/mail", "prod")
    server.restart()  # every connection drops, every watch has to begin anew
    server.patch("certificates/shop", {"spec": {"issuerRef": {"name": "internal-ca"}}}, "prod")


def show(event: Event) -> None:
    """One line per event, and one per value that changed."""
    print(f"  {event.type:<8} {event.key}")
    for change in event.changes(ignore=[".metadata.generation"]):
        print(f"           {change.path}: {change.old!r} -> {change.new!r}")


def main() -> int:
    """Run the demonstration; 0 if the cache ends up as the server is."""
    with ApiServer() as server:
        server.install(Path(__file__).parent / "crd")
        kubeconfig = server.kubeconfig()
        print(
            f"An API server listens on {server.url}. While it lives, another terminal can ask it:"
        )
        print(f"  kubectl --kubeconfig {kubeconfig} get certificates -A -w\n")
        with open_informer(
            CERTIFICATES,
            kubeconfig=kubeconfig,
            indexers={"by-issuer": ".spec.issuerRef.name", "ready": READY},
        ) as certificates:
            informer, lister = certificates.informer, certificates.lister
            print(f"The informer holds {', '.join(sorted(lister.keys()))}. What it hears:")
            informer.add_event_handler(on_event=show)
            writer = threading.Thread(target=change_things, args=(server,), name="demo controller")
            writer.start()
            writer.join()
            last = server.get("certificates/shop", "prod")
            informer.wait_for_version(last["metadata"]["resourceVersion"], timeout=15)
            print("\nBy issuer, by readiness (indexes of JSONPath):")
            for index in ("by-issuer", "ready"):
                for value in informer.indexer.list_index_func_values(index):
                    keys = informer.indexer.index_keys(index, value)
                    print(f"  {index:<10} {value:<14} {', '.join(sorted(keys))}")
            same = lister.list() == server.list("certificates")
            print(f"\nThe cache and the server {'agree' if same else 'DIFFER'}.")
            return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
