"""``count``: how many objects there are of each kind that a path tells apart."""

from __future__ import annotations

import sys
import threading
import time
from typing import Annotated, Any, TypeAlias

import typer

from dyninformer.cli import arguments
from dyninformer.cli.connection import Target
from dyninformer.cli.where import Wanted, wanted
from dyninformer.delivery.events import Event, EventType
from dyninformer.display.table import Table
from dyninformer.display.tally import Tally
from dyninformer.display.text import visible
from dyninformer.factory import GenericInformer

Object: TypeAlias = dict[str, Any]
Paths: TypeAlias = list[str]

_REDRAW_SECONDS = 0.1
_NAMESPACE = ".metadata.namespace"


def command(
    resource: arguments.Resource,
    *,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="PATH",
            help="What tells the groups apart; also several. By default the namespace.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Count once, also on a terminal.")] = False,
    namespace: arguments.Namespace = None,
    all_namespaces: arguments.AllNamespaces = False,
    selector: arguments.Selector = "",
    field_selector: arguments.FieldSelector = "",
    where: arguments.Where = None,
    no_headers: arguments.NoHeaders = False,
    kubeconfig: arguments.Kubeconfig = None,
    context: arguments.Context = None,
    request_timeout: arguments.SyncTimeout = 30.0,
) -> None:
    """Count objects by what a path finds in them, live.

    On a terminal the table follows the cluster until Ctrl-C; elsewhere, and with `--once`,
    it is printed once. The largest group stands first.

    For example:

    ```console
    $ dyninformer count certificates -A --by .spec.issuerRef.name
    $ dyninformer count cert -A --by .metadata.namespace --by .spec.issuerRef.kind --once
    $ dyninformer count ipamblocks --by .spec.affinity --where .spec.affinity!=host:worker-1
    ```
    """
    paths, fits = by or [_NAMESPACE], wanted(where)
    tally = Tally(paths)
    target = Target(
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        all_namespaces=all_namespaces,
        selector=selector,
        field_selector=field_selector,
        timeout=request_timeout,
    )
    with target.connected() as factory:
        found = target.resolved(factory, resource)
        informer = target.informer(factory, found)
        target.sync(factory)
        if sys.stdout.isatty() and not once:
            _follow(informer, tally, paths, fits)
            return
        for obj in informer.lister:
            if fits(obj):
                tally.add(obj)
    table = Table(["count", *map(_heading, paths)], show_headings=not no_headers)
    for line in table.lines(tally.rows()):
        typer.echo(line)


def _follow(informer: GenericInformer, tally: Tally, paths: Paths, fits: Wanted) -> None:
    """Draw the table anew when something has changed, until somebody interrupts."""
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.live import Live  # noqa: PLC0415

    changed, counting = threading.Event(), threading.Lock()  # the lock guards the tally

    def take(event: Event) -> None:
        with counting:
            _apply(tally, event)
        changed.set()

    informer.informer.add_event_handler(on_event=take, filter=fits, name="count")
    changed.set()
    with Live(console=Console(), auto_refresh=False) as live:
        while True:
            changed.wait()
            changed.clear()
            with counting:
                rows, total = tally.rows(), tally.total
            live.update(_drawn(paths, rows, f"{informer.gvr}: {total}"), refresh=True)
            time.sleep(_REDRAW_SECONDS)  # a storm of events is one picture


def _apply(tally: Tally, event: Event) -> None:
    if event.type is EventType.ADDED:
        tally.add(event.object)
    elif event.type is EventType.DELETED:
        tally.remove(event.object)
    elif event.type is EventType.UPDATED and event.old is not None:
        tally.remove(event.old)
        tally.add(event.object)


def _drawn(paths: Paths, rows: list[list[str]], caption: str) -> Any:
    from rich import box  # noqa: PLC0415 - only a terminal needs it
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415 - what is in it is never markup

    table = RichTable(box=box.SIMPLE_HEAD, caption=Text(caption), caption_justify="left")
    table.add_column("COUNT", justify="right")
    for path in paths:
        table.add_column(Text(visible(_heading(path)).upper()))
    for cells in rows:
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def _heading(path: str) -> str:
    """The last name in a path, as in ``.spec.issuerRef.name``: issuerRef.name says more."""
    return path.strip("{}$").lstrip(".").removeprefix("spec.").removeprefix("metadata.")
