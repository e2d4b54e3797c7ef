"""A first look that needs no cluster: an embedded API server, two CRDs, and a watch on one of them.

It starts the server, installs examples/crd, watches certificates over real HTTP while
they change, and ends by itself.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

import urllib3

from dyninformer import JSONPath
from dyninformer.testing import ApiServer

CERTIFICATES = "/apis/cert-manager.io/v1/certificates"
READY = JSONPath("{.status.conditions[?(@.type=='Ready')].status}")
ISSUER = JSONPath(".spec.issuerRef.name")


def change_things(server: ApiServer) -> None:
    """What a busy controller would do: issue, fail, renew, delete."""
    for name, status in (("shop", "False"), ("mail", "True"), ("shop", "True")):
        ready = {"type": "Ready", "status": status, "reason": "Demo"}
        change = {"status": {"conditions": [ready]}}
        server.patch(f"certificates/{name}", change, "prod", subresource="status")
    server.delete("certificates/mail", "prod")


def main() -> None:
    """Run the demonstration and print what the watch saw."""
    with ApiServer() as server:
        server.install(Path(__file__).parent / "crd")
        print(
            f"An API server listens on {server.url}. While it lives, another terminal can ask it:"
        )
        print(f"  kubectl --kubeconfig {server.kubeconfig()} get certificates -A -w\n")
        print(f"Watching {CERTIFICATES}:")
        stream = urllib3.request(
            "GET", server.url + CERTIFICATES, fields={"watch": "true", "timeoutSeconds": "3"},
            headers={"Authorization": f"Bearer {server.token}"}, preload_content=False, timeout=10,
        )  # fmt: skip
        writer = threading.Thread(target=change_things, args=(server,), name="demo controller")
        writer.start()
        for line in stream:
            event = json.loads(line)
            certificate = event["object"]
            name = "{namespace}/{name}".format(**certificate["metadata"])
            ready = READY.first(certificate, "not yet known")
            issuer = ISSUER.text(certificate)
            print(f"  {event['type']:<9}{name:<12} issuer {issuer:<13} ready: {ready}")
        writer.join()
        print("\nThe watch ended at its timeout. All of it came over HTTP, from this process.")


if __name__ == "__main__":
    main()
