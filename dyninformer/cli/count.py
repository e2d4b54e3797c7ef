"""``count``: how many objects there are of each kind that a path tells apart."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, TypeAlias

import typer
from rich.console import Console

from dyninformer.cli import arguments
from dyninformer.cli.connection import Target
from dyninformer.cli.connection_notices import ConnectionNotices
from dyninformer.cli.counting import LiveCount
from dyninformer.cli.event_lines import Line
from dyninformer.cli.event_loop import say
from dyninformer.cli.failing import WRONG_USAGE, CommandError
from dyninformer.cli.output import Form
from dyninformer.cli.screen import Screen, canvas
from dyninformer.cli.where import wanted
from dyninformer.display.tally import Tally
from dyninformer.display.text import visible

Paths: TypeAlias = list[str]
Rows: TypeAlias = list[list[str]]

_LOOK_SECONDS = 0.2  # between two looks at the connection and at the reader of the pipe
_REDRAW_SECONDS = 0.1
_BLOCK_SECONDS = 1.0
_FORMS = ("table", "csv")
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
    follow: Annotated[
        bool | None,
        typer.Option(
            "--watch/--once",
            "-w",
            help="Follow the cluster, or count once. By default it follows on a terminal alone.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FORM", help="table or csv."),
    ] = "table",
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

    On a terminal the table follows the cluster until Ctrl-C. Elsewhere, and with `--once`, it is
    printed once; with `--watch` it is printed there again, behind a blank line, when a count
    has changed. The largest group stands first.

    For example:

    ```console
    $ dyninformer count certificates -A --by .spec.issuerRef.name
    $ dyninformer count cert -A -o csv
    $ dyninformer count cert -A --by .metadata.namespace --by .spec.issuerRef.kind --once
    $ dyninformer count ipamblocks --by .spec.affinity --where .spec.affinity!=host:worker-1
    ```
    """
    paths, fits = by or [_NAMESPACE], wanted(where)
    tally, form = Tally(paths), Form.parse(output)
    if form.kind not in _FORMS or form.argument:
        raise CommandError(f"-o {output}: give one of {', '.join(_FORMS)}", code=WRONG_USAGE)
    follows = sys.stdout.isatty() if follow is None else follow
    shape = _Shape(form, paths, headings=not no_headers)
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
        if not follows:
            for obj in informer.lister:
                if fits(obj):
                    tally.add(obj)
            for line in shape.lines(tally.rows()):
                typer.echo(line)
            return
        live_count = LiveCount(informer, tally, fits)
        look = ConnectionNotices(factory.status, say).look
        console = canvas(sys.stdout)
        if console is not None and form.is_table:
            _draw(console, live_count, look, paths, str(informer.gvr))
        _print_blocks(live_count, look, shape)


def _draw(
    console: Console, live_count: LiveCount, look: Callable[[], None], paths: Paths, name: str
) -> NoReturn:
    """Draw the table anew when something has changed, until somebody interrupts."""
    from rich.live import Live  # noqa: PLC0415 - only a terminal needs it

    with Live(console=console, auto_refresh=False) as live:
        while True:
            look()
            if live_count.wait(_LOOK_SECONDS):
                rows, total = live_count.rows()
                live.update(_drawn(paths, rows, f"{name}: {total}"), refresh=True)
                time.sleep(_REDRAW_SECONDS)  # a storm of events is one picture


def _print_blocks(live_count: LiveCount, look: Callable[[], None], shape: _Shape) -> NoReturn:
    """Print the whole table, and again when the counts have changed."""
    screen = Screen()
    live_count.wait_for_all()
    before: Rows | None = None
    while True:
        look()
        screen.check_reader()
        if not live_count.wait(_LOOK_SECONDS):
            continue
        rows, _ = live_count.rows()
        if rows != before:
            lines = shape.lines(rows)
            screen.show(Line(line) for line in (lines if before is None else ["", *lines]))
            before = rows
            time.sleep(_BLOCK_SECONDS)  # a storm of events is one block
        else:
            time.sleep(_REDRAW_SECONDS)


@dataclass(frozen=True)
class _Shape:
    """How counts are printed where they are not drawn."""

    form: Form
    paths: Paths
    headings: bool

    def lines(self, rows: Rows) -> list[str]:
        """The whole table."""
        table = self.form.rows(["count", *map(_heading, self.paths)], show_headings=self.headings)
        return table.lines(rows)


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
