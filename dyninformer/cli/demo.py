"""``dyninformer demo``: a first look that needs no cluster.

It starts the embedded API server, keeps a live copy of the certificates while they change
and the server restarts, shows what changed and an index by JSONPath, and ends by itself.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer

from dyninformer.delivery.events import Event
from dyninformer.opening import OpenInformer, open_informer
from dyninformer.testing import ApiServer

CERTIFICATES = "cert-manager.io/v1/certificates"
READY = "{.status.conditions[?(@.type=='Ready')].status}"


_MANIFESTS = Path(__file__).with_name("demo.yaml")


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
    typer.echo(f"  {event.type:<8} {event.key}")
    for change in event.changes(ignore=[".metadata.generation"]):
        typer.echo(f"           {change.path}: {change.old!r} -> {change.new!r}")


def show_indexes(certificates: OpenInformer) -> None:
    """What is under each value of the two indexes."""
    indexer = certificates.informer.indexer
    typer.echo("\nBy issuer, by readiness (indexes of JSONPath):")
    for index in ("by-issuer", "ready"):
        for value in indexer.list_index_func_values(index):
            keys = ", ".join(sorted(indexer.index_keys(index, value)))
            typer.echo(f"  {index:<10} {value:<14} {keys}")


def command(
    manifests: Annotated[
        Path, typer.Option(help="CRDs and objects to begin with; certificates in prod are needed.")
    ] = _MANIFESTS,
) -> None:
    """See it work, on a cluster in this process.

    Ends by itself, with exit code 0 only if the cache ends up as the server is.

    Examples:
        $ dyninformer demo
    """
    with ApiServer() as server:
        server.install(manifests)
        kubeconfig = server.kubeconfig()
        typer.echo(
            f"An API server listens on {server.url}. Meanwhile, another terminal can ask it:"
        )
        typer.echo(f"  kubectl --kubeconfig {kubeconfig} get certificates -A -w\n")
        with open_informer(
            CERTIFICATES,
            kubeconfig=kubeconfig,
            indexers={"by-issuer": ".spec.issuerRef.name", "ready": READY},
        ) as certificates:
            informer, lister = certificates.informer, certificates.lister
            typer.echo(f"The informer holds {', '.join(sorted(lister.keys()))}. What it hears:")
            informer.add_event_handler(on_event=show)
            writer = threading.Thread(target=change_things, args=(server,), name="demo controller")
            writer.start()
            writer.join()
            last = server.get("certificates/shop", "prod")
            informer.wait_for_version(last["metadata"]["resourceVersion"], timeout=15)
            show_indexes(certificates)
            same = lister.list() == server.list("certificates")
    typer.echo(f"\nThe cache and the server {'agree' if same else 'DIFFER'}.")
    if not same:
        raise typer.Exit(1)
