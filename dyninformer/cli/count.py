"""``count``: how many objects there are, grouped by what paths find in them."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, TypeAlias

import typer

from dyninformer.cli import arguments, completion
from dyninformer.cli.connection import (
    LOOK_SECONDS,
    Cluster,
    ConnectionNotices,
    Target,
    saying,
    with_target,
)
from dyninformer.cli.errors import WRONG_USAGE, CommandError
from dyninformer.cli.output import Form
from dyninformer.cli.terminal import Screen, canvas, say
from dyninformer.cli.where import Filter, Where, none_match, unknown_paths
from dyninformer.delivery.events import Event, EventType
from dyninformer.display.text import Line, visible
from dyninformer.errors import JSONPathError
from dyninformer.factory import GenericInformer
from dyninformer.jsonpath import JSONPath, index_text
from dyninformer.threads import Flag, ReentrantLock
from dyninformer.types import Object

if TYPE_CHECKING:
    from rich.console import Console

Rows: TypeAlias = list[list[str]]
Texts: TypeAlias = list[str]

_REDRAW_SECONDS: Final = 0.1
_BLOCK_SECONDS: Final = 1.0
_FORMS: Final = ("table", "csv")
_NAMESPACE: Final = ".metadata.namespace"
_COUNT: Final = "count"


@with_target()
def command(
    resource: arguments.Resource,
    *,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="What the objects are grouped by. May be repeated. By default the namespace.",
        ),
    ] = None,
    follow: Annotated[
        bool | None,
        typer.Option(
            "--watch/--once",
            "-w",
            help="Follow the cluster, or count once. By default it follows only on a terminal.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FORM",
            help="table or csv.",
            autocompletion=completion.one_of(*_FORMS),
        ),
    ] = "table",
    target: Target,
    where: arguments.Where = None,
    no_headers: arguments.NoHeaders = False,
) -> None:
    """Count objects by what a path finds in them, live.

    On a terminal the table follows the cluster until Ctrl-C. Elsewhere, and with `--once`, it is
    printed once; with `--watch` it is printed there again, after a blank line, whenever a count
    has changed. The largest group comes first.

    For example:

    ```console
    $ dyninformer count certificates -A --by .spec.issuerRef.name
    $ dyninformer count cert -A --by '.spec.dnsNames[*]' -o csv
    $ dyninformer count cert -A --by .spec.issuerRef.kind --by .spec.duration
    $ dyninformer count ipamblocks --where .spec.affinity!=host:worker-1
    ```
    """
    paths, fits = by or [_NAMESPACE], Where(where)
    tally, form = Tally(paths), Form.parse(output)
    if form.kind not in _FORMS or form.argument:
        raise CommandError(f"-o {output}: give one of {', '.join(_FORMS)}", code=WRONG_USAGE)
    follows = sys.stdout.isatty() if follow is None else follow
    if target.several:
        _count_several(
            target, resource, paths, fits, form, headings=not no_headers, follows=follows
        )
        return
    printer = _Printer(form, _headings(paths), not no_headers)
    with target.connected() as cluster:
        informer = cluster.informer(cluster.resolve(resource))
        cluster.sync()
        _say_unknown_paths([informer], [*paths, *fits.paths])
        if not follows:
            for line in printer.lines(_counted(informer, tally, fits)):
                typer.echo(line)
            _say_if_none([tally], [informer])
            return
        live_count = LiveCount(informer, tally, fits)
        notices = ConnectionNotices(cluster.factory.status)
        _follow(live_count, [notices], printer, str(informer.gvr))


def _count_several(
    target: Target,
    resource: str,
    paths: Texts,
    fits: Where,
    form: Form,
    *,
    headings: bool,
    follows: bool,
) -> None:
    """The same in several clusters: which is the first column."""
    from dyninformer.cli.contexts import connected, targets  # noqa: PLC0415 - one does without

    def prepare(_: str, cluster: Cluster) -> tuple[Cluster, GenericInformer]:
        informer = cluster.informer(cluster.resolve(resource))
        cluster.sync()
        return cluster, informer

    printer = _Printer(form, ["cluster", *_headings(paths)], headings)
    with connected(targets(target), prepare) as outcomes:
        informers = [informer for _, informer in outcomes.done.values()]
        _say_unknown_paths(informers, [*paths, *fits.paths])
        if not follows:
            rows: Rows = []
            tallies = [Tally(paths) for _ in informers]
            for name, informer, tally in zip(outcomes.done, informers, tallies, strict=True):
                rows += [[name, *row] for row in _counted(informer, tally, fits)]
            for line in printer.lines(rows):
                typer.echo(line)
            _say_if_none(tallies, informers)
            outcomes.end()
            return
        changed = Flag()
        counts = {
            name: LiveCount(informer, Tally(paths), fits, changed)
            for name, (_, informer) in outcomes.done.items()
        }
        notices = [
            ConnectionNotices(cluster.factory.status, saying(name))
            for name, (cluster, _) in outcomes.done.items()
        ]
        _follow(SeveralCounts(counts, changed), notices, printer, resource)


def _say_unknown_paths(informers: Sequence[GenericInformer], paths: Texts) -> None:
    """Warn of paths that no object can have."""
    sources = [(each.lister.held.known, each.lister) for each in informers]
    for line in unknown_paths(sources, paths):
        say(visible(line))


def _say_if_none(tallies: Sequence[Tally], informers: Sequence[GenericInformer]) -> None:
    """Say that there are objects, and that none of them meets ``--where``."""
    total = sum(len(each.lister) for each in informers)
    if total and not any(each.total for each in tallies):
        say(none_match(total))


def _counted(informer: GenericInformer, tally: Tally, fits: Filter) -> Rows:
    """The groups of what is there now."""
    for obj in informer.lister:
        if fits(obj):
            tally.add(obj)
    return tally.rows()


def _headings(paths: Texts) -> Texts:
    return [_COUNT, *map(_heading, paths)]


class Tally:
    """Groups, and how many objects are in each. For one thread at a time.

    An object counts once under each value that a path finds, and under ``<none>`` where it
    finds nothing.

    >>> tally = Tally([".spec.issuer"])
    >>> for issuer in "ca", "acme", "ca":
    ...     tally.add({"spec": {"issuer": issuer}})
    >>> tally.rows()
    [['2', 'ca'], ['1', 'acme']]
    >>> tally = Tally([".spec.hosts[*]"])
    >>> tally.add({"spec": {"hosts": ["a", "b"]}})
    >>> tally.rows(), tally.total
    ([['1', 'a'], ['1', 'b']], 1)
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = [JSONPath(path) for path in paths]
        self._counts: Counter[tuple[str, ...]] = Counter()
        self.total = 0
        """All objects, each counted once."""

    def add(self, obj: Object) -> None:
        """One more."""
        self._counts.update(self._groups(obj))
        self.total += 1

    def remove(self, obj: Object) -> None:
        """One less. The object is in the state in which it was added: its groups are the same."""
        for group in self._groups(obj):
            self._counts[group] -= 1
            if self._counts[group] <= 0:
                del self._counts[group]
        self.total -= 1

    def rows(self) -> Rows:
        """The number and the values of each group, the largest group first."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        return [[str(count), *(value or "<none>" for value in group)] for group, count in ordered]

    def _groups(self, obj: Object) -> Iterator[tuple[str, ...]]:
        return product(*(_texts(path, obj) for path in self._paths))


def _texts(path: JSONPath, obj: Object) -> Texts:
    """The different values that a path finds; one that is empty if it finds none."""
    try:
        values = path.values(obj)
    except JSONPathError:  # the path does not fit this object
        return [""]
    texts = (index_text(value) for value in values)
    return list(dict.fromkeys(text for text in texts if text is not None)) or [""]


class LiveCount:
    """A tally that an informer's events keep up to date. Its methods are for one thread."""

    def __init__(
        self, informer: GenericInformer, tally: Tally, fits: Filter, changed: Flag | None = None
    ) -> None:
        """``changed`` is set whenever it changes; several may share one."""
        self._tally = tally
        self._lock = ReentrantLock()  # guards _tally
        self._changed = changed or Flag()
        self._changed.set()
        self._registration = informer.informer.add_event_handler(
            on_event=self._count, filter=fits, name="count"
        )

    def wait_for_all(self) -> None:
        """Wait until what was there at the beginning has been counted."""
        self._registration.wait_for_sync()

    def wait(self, timeout: float) -> bool:
        """Wait until there is something that `rows` has not returned."""
        return self._changed.wait(timeout)

    def rows(self) -> tuple[Rows, int]:
        """The groups now, and how many objects there are."""
        self._changed.clear()  # first: what changes from here on is for the next call
        return self.current()

    def current(self) -> tuple[Rows, int]:
        """The same; `wait` goes on to say that it has not been returned."""
        with self._lock:
            return self._tally.rows(), self._tally.total

    def _count(self, event: Event) -> None:
        """On the handler's thread."""
        with self._lock:
            if event.type is EventType.ADDED:
                self._tally.add(event.object)
            elif event.type is EventType.DELETED:
                self._tally.remove(event.object)
            elif event.type is EventType.UPDATED and event.old is not None:
                self._tally.remove(event.old)
                self._tally.add(event.object)
        self._changed.set()


class SeveralCounts:
    """The counts of several clusters, as one."""

    def __init__(self, counts: dict[str, LiveCount], changed: Flag) -> None:
        self._counts = counts
        self._changed = changed

    def wait_for_all(self) -> None:
        """Wait until what was there at the beginning has been counted."""
        for each in self._counts.values():
            each.wait_for_all()

    def wait(self, timeout: float) -> bool:
        """Wait until there is something that `rows` has not returned."""
        return self._changed.wait(timeout)

    def rows(self) -> tuple[Rows, int]:
        """The groups of each cluster now, and how many objects there are in all."""
        self._changed.clear()  # once: the next cluster must not clear what this one has said
        found = {name: each.current() for name, each in self._counts.items()}
        rows = [[name, *row] for name, (of, _) in found.items() for row in of]
        return rows, sum(total for _, total in found.values())


def _follow(
    live_count: LiveCount | SeveralCounts,
    notices: list[ConnectionNotices],
    printer: _Printer,
    name: str,
) -> NoReturn:
    """Show the table, and again when something has changed, until an interrupt."""
    console = canvas(sys.stdout)
    if console is not None and printer.form.is_table:
        _draw(console, live_count, notices, printer, name)
    _print_blocks(live_count, notices, printer)


def _draw(
    console: Console,
    live_count: LiveCount | SeveralCounts,
    notices: list[ConnectionNotices],
    printer: _Printer,
    name: str,
) -> NoReturn:
    """Draw the table anew when something has changed."""
    from rich.live import Live  # noqa: PLC0415 - only a terminal needs it

    with Live(console=console, auto_refresh=False) as live:
        while True:
            for notice in notices:
                notice.look()
            if live_count.wait(LOOK_SECONDS):
                rows, total = live_count.rows()
                live.update(_drawn(printer.headings, rows, f"{name}: {total}"), refresh=True)
                time.sleep(_REDRAW_SECONDS)  # a storm of events is one picture


def _drawn(headings: Texts, rows: Rows, caption: str) -> Any:
    from rich import box  # noqa: PLC0415 - only a terminal needs it
    from rich.console import Group  # noqa: PLC0415
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415 - what is in it is never markup

    table = RichTable(box=box.SIMPLE_HEAD)
    for heading in headings:
        right = heading == _COUNT
        table.add_column(Text(visible(heading).upper()), justify="right" if right else "left")
    for cells in rows:
        table.add_row(*(Text(visible(cell)) for cell in cells))
    # As a caption of the table it would be cut into lines as narrow as that.
    return Group(table, Text(caption, style="italic", no_wrap=True, overflow="ellipsis"))


def _print_blocks(
    live_count: LiveCount | SeveralCounts, notices: list[ConnectionNotices], printer: _Printer
) -> NoReturn:
    """Print the whole table, and again when the counts have changed."""
    screen = Screen()
    live_count.wait_for_all()
    before: Rows | None = None
    while True:
        for notice in notices:
            notice.look()
        screen.check_reader()
        if not live_count.wait(LOOK_SECONDS):
            continue
        rows, _ = live_count.rows()
        if rows != before:
            lines = printer.lines(rows)
            screen.show(Line(line) for line in (lines if before is None else ["", *lines]))
            before = rows
            time.sleep(_BLOCK_SECONDS)  # a storm of events is one block
        else:
            time.sleep(_REDRAW_SECONDS)


@dataclass(frozen=True)
class _Printer:
    """How counts are printed where they are not drawn."""

    form: Form
    headings: Texts
    shows_headings: bool

    def lines(self, rows: Rows) -> list[str]:
        """The whole table."""
        return self.form.table(self.headings, show_headings=self.shows_headings).lines(rows)


def _heading(path: str) -> str:
    """The last names of a path: issuerRef.name for ``.spec.issuerRef.name``."""
    return path.strip("{}$").lstrip(".").removeprefix("spec.").removeprefix("metadata.")
