"""What the demo shows: informers on its cluster, live or line by line, and a summary."""

from __future__ import annotations

import math
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import typer
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.layout import Layout
from rich.live import Live
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from dyninformer.cli.connection import Cluster, ConnectionNotices, Target, lost_since
from dyninformer.cli.demo.cluster import (
    BLOCKS_CRD,
    CERTIFICATES_CRD,
    READY,
    Story,
    StoryThread,
    address_count,
    addresses_in_use,
    certificate_status,
)
from dyninformer.cli.errors import FAILED, WRONG_USAGE, CommandError
from dyninformer.cli.events import (
    ADDED,
    COLOURS,
    DELETED,
    MODIFIED,
    EventDiffs,
    EventFilter,
    ShownEvent,
)
from dyninformer.cli.sources import EventSource
from dyninformer.cli.terminal import Shutdown, canvas, coloured, shutdown_on_signals
from dyninformer.display.table import Table
from dyninformer.display.text import Line, visible
from dyninformer.factory import GenericInformer
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource
from dyninformer.testing import ApiServer
from dyninformer.types import Object

_MANIFESTS: Final = Path(__file__).with_name("manifests")
_LOOK_SECONDS: Final = 0.1
_DRAW_SECONDS: Final = 0.15
_LIVE_SECONDS: Final = 60.0
_ONCE_SECONDS: Final = 8.0
_KEPT: Final = 100  # of each that can be shown
_INDEXES: Final = {
    CERTIFICATES_CRD: {"issuer": ".spec.issuerRef.name", "ready": READY},
    BLOCKS_CRD: {"host": ".spec.affinity"},
}
_INDEX: Final = 6  # lines: a title, headings, three rows, and one between
_FOOT: Final = 2
_FAINT: Final = "dim"
_TITLE: Final = "bold cyan"
_QUIET_SECONDS: Final = 3.0  # without an event, while all is connected: nothing is on its way
_PATIENCE_SECONDS: Final = 15.0
_DIFFERENCES: Final = 10  # that are shown
_DIFF: Final = 12  # lines of it


def show(manifests: Path | None, *, once: bool, seconds: float | None, objects: int) -> None:
    """Show it; exit with 1 if the caches are not as the server is at the end."""
    console = None if once else canvas(sys.stdout)
    length = seconds or (_LIVE_SECONDS if console is not None else _ONCE_SECONDS)
    with ApiServer() as server:
        server.install(manifests or _MANIFESTS)
        resources = _resources(server)
        story = Story(server, objects)
        story.begin()
        kubeconfig = server.kubeconfig()
        hint = f"kubectl --kubeconfig {kubeconfig} get certificates -A"
        typer.echo(f"An API server listens on {server.url}. Another terminal can look on:\n")
        typer.echo(f"  {hint}\n")
        target = Target(kubeconfig=str(kubeconfig), all_namespaces=True)
        with target.connected() as cluster:
            watcher = Watcher(cluster, resources)
            watcher.begin()
            with shutdown_on_signals() as shutdown, StoryThread(story, length) as thread:
                if console is not None:
                    view = Dashboard(watcher, thread, hint)
                    _show_live(console, view, watcher, thread, shutdown)
                else:
                    _show_lines(watcher, thread, shutdown)
            found = differences(server, watcher)
        for line in summary(watcher, thread, found):
            typer.echo(line)
    if found:
        raise typer.Exit(FAILED)


def _resources(server: ApiServer) -> list[str]:
    """Every custom resource that is installed; the story needs two of them."""
    found = [crd["metadata"]["name"] for crd in server.list("customresourcedefinitions")]
    missing = [name for name in (CERTIFICATES_CRD, BLOCKS_CRD) if name not in found]
    if missing:
        raise CommandError(
            f"the demo is about {' and '.join(missing)}: let --manifests have the CRDs, as "
            "examples/crd does, or leave it out",
            code=WRONG_USAGE,
        )
    return found


def _show_live(
    console: Console, view: Dashboard, watcher: Watcher, thread: StoryThread, shutdown: Shutdown
) -> None:
    """Draw it anew as things change."""
    drawn = -math.inf
    with Live(view, console=console, screen=True, auto_refresh=False) as live:
        while not (shutdown.requested or thread.is_over()):
            watcher.look(_LOOK_SECONDS)
            for line in thread.news():
                view.tell(line)
            now = time.monotonic()
            if now - drawn >= _DRAW_SECONDS:
                drawn = now
                live.refresh()


def _show_lines(watcher: Watcher, thread: StoryThread, shutdown: Shutdown) -> None:
    """Tell the story, and what becomes of the connection, line by line."""
    while not (shutdown.requested or thread.is_over()):
        watcher.look(_LOOK_SECONDS)
        for line in thread.news():
            typer.echo(f"{datetime.now().astimezone():%H:%M:%S} {line}")
        for line in watcher.news():
            typer.echo(line)


class Watcher:
    """Watches resources through informers, and knows what there is to show. For one thread."""

    def __init__(self, cluster: Cluster, resources: list[str]) -> None:
        self._factory = cluster.factory
        self._source = EventSource(cluster, dict.fromkeys(resources, ()))
        self._filter = EventFilter(lambda _: True, initial=False)
        self._notices = ConnectionNotices(cluster.factory.status, self._say)
        self._recent: dict[tuple[GroupVersionResource, str], ShownEvent] = {}
        self._updates: deque[ShownEvent] = deque(maxlen=_KEPT)
        self._news: list[str] = []
        self.events: Counter[str] = Counter()
        """How many have come, by type."""
        self.missed = 0
        """Deletions that nobody saw, and that were told all the same."""
        self.last_event = time.monotonic()
        """When the last one came."""
        self.informers: list[GenericInformer] = []

    def begin(self) -> None:
        """Start, and return when the informers have synced."""
        self._source.begin(self._say)
        for resource in self._source.resources:
            indexers = _INDEXES.get(resource.gvr.group_resource, {})
            self.informers.append(self._factory.for_resource(resource.gvr, indexers=indexers))

    def look(self, timeout: float) -> None:
        """Take what has come, and wait for something if nothing has."""
        self._notices.look()
        received = self._source.get(timeout)
        while received is not None:
            shown = self._filter.shown(received)
            if shown is not None:
                self._take(shown)
            received = self._source.get(0)

    def news(self) -> list[str]:
        """What happened to the connection since the last time."""
        news, self._news = self._news, []
        return news

    def recent(self, count: int) -> list[ShownEvent]:
        """The last event of each object, the newest first."""
        return list(reversed(self._recent.values()))[:count]

    def updates(self, count: int) -> list[ShownEvent]:
        """The last updates, the newest first."""
        return list(reversed(self._updates))[:count]

    def by_issuer(self) -> list[list[str]]:
        """Certificates by issuer, and of each how many are ready: all of it from indexes."""
        indexer = self._of(CERTIFICATES_CRD).informer.indexer
        ready, failing = (set(indexer.index_keys("ready", each)) for each in ("True", "False"))
        rows = []
        for issuer in sorted(indexer.list_index_func_values("issuer")):
            keys = set(indexer.index_keys("issuer", issuer))
            rows.append(
                [issuer, *(str(len(each)) for each in (keys, keys & ready, keys & failing))]
            )
        return rows

    def by_host(self) -> list[list[str]]:
        """Blocks by host, and how many of their addresses are in use."""
        informer = self._of(BLOCKS_CRD)
        rows = []
        for host in sorted(informer.informer.indexer.list_index_func_values("host")):
            blocks = informer.lister.by_index("host", host)
            used, all_ = sum(map(addresses_in_use, blocks)), sum(map(address_count, blocks))
            rows.append([host.removeprefix("host:"), str(len(blocks)), f"{used} of {all_}"])
        return rows

    def connection(self) -> tuple[bool, str]:
        """Whether all is well, and how the informers stand, in words."""
        statuses = self._factory.status()
        lost = {gvr.resource: status for gvr, status in statuses.items() if lost_since(status)}
        if lost:
            # One that has heard nothing for longer knows less.
            latest = max(lost.values(), key=lost_since)
            return False, f"{', '.join(lost)} {lost_since(latest)}: {latest.reason}"
        since = max(each.since for each in statuses.values() if each.since is not None)
        return True, f"connected since {since.astimezone():%H:%M:%S}"

    def figures(self) -> str:
        """How many objects and events, and how much memory."""
        objects = sum(len(each.lister) for each in self.informers)
        figures = f"{objects} objects, {self.events.total()} events"
        memory = _memory()
        return f"{figures}, {memory / 1e6:.0f} MB with the server" if memory else figures

    def _take(self, shown: ShownEvent) -> None:
        self.last_event = time.monotonic()
        self.events[shown.type] += 1
        self.missed += shown.missed
        key = (shown.event.gvr, shown.event.key)
        self._recent.pop(key, None)
        self._recent[key] = shown
        if len(self._recent) > _KEPT:
            del self._recent[next(iter(self._recent))]
        if shown.type == MODIFIED:
            self._updates.append(shown)

    def _say(self, line: str) -> None:
        self._news.append(line)

    def _of(self, name: str) -> GenericInformer:
        return next(each for each in self.informers if each.gvr.group_resource == name)


def object_status(shown: ShownEvent) -> Line:
    """How the object of an event stands, in a few words, and whether that is good."""
    obj = shown.object
    if shown.type == DELETED:
        return Line("missed while the server was away" if shown.missed else "gone", "red")
    if shown.event.gvr.group_resource == BLOCKS_CRD:
        return Line(f"{addresses_in_use(obj)} of {address_count(obj)} addresses in use")
    return certificate_status(obj)


def _memory() -> int:
    """Bytes of this process, with the server; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Dashboard:
    """The demo on a terminal: one picture, fitted to its size. For the thread of the watcher."""

    def __init__(self, watcher: Watcher, story: StoryThread, hint: str) -> None:
        self._watcher = watcher
        self._story = story
        self._hint = Text(hint, style=_FAINT, overflow="fold")
        self._text = ""

    def tell(self, line: str) -> None:
        """Show a line of the story until another one follows."""
        self._text = line

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        top = 1 + math.ceil(len(self._hint) / options.max_width)
        left = max(4, (options.height or console.height) - top - _INDEX - _FOOT)
        changed = (left + 1) // 2
        layout = Layout()
        layout.split_column(
            Layout(self._title(), size=1),
            Layout(self._hint, size=top - 1),
            Layout(self._changed(changed - 2), size=changed),
            Layout(name="indexes", size=_INDEX),
            Layout(self._diffs(left - changed - 1), size=left - changed),
            Layout(self._foot(), size=_FOOT),
        )
        layout["indexes"].split_row(
            Layout(self._by_issuer(), ratio=4), Layout(self._by_host(), ratio=3)
        )
        yield layout

    def _title(self) -> RenderableType:
        played, whole = int(self._story.elapsed), round(self._story.seconds)
        parts = (("dyninformer demo", _TITLE), f"  {played} of {whole} s  ")
        return _lines([Text.assemble(*parts, ("Ctrl-C ends it", _FAINT))])

    def _changed(self, count: int) -> RenderableType:
        table = _rich_table("LAST CHANGED", expand=True)
        for heading, ratio in ("TIME", None), ("EVENT", None), ("OBJECT", 4), ("STATUS", 5):
            table.add_column(heading, no_wrap=True, overflow="ellipsis", ratio=ratio)
        for shown in self._watcher.recent(count):
            inside = f"{shown.event.namespace}/" if shown.event.namespace else ""
            name = f"{shown.object.get('kind', '')} {inside}{shown.event.name}"
            status = object_status(shown)
            table.add_row(
                f"{shown.when:%H:%M:%S}",
                Text(shown.type, COLOURS[shown.type]),
                Text(visible(name)),
                Text(visible(status.text), status.colour),
            )
        return table

    def _by_issuer(self) -> RenderableType:
        headings = ("ISSUER", "CERTIFICATES", "READY", "NOT READY")
        table = _numbers("INDEX BY .spec.issuerRef.name", headings)
        for issuer, all_, ready, failing in self._watcher.by_issuer()[: _INDEX - 3]:
            table.add_row(Text(visible(issuer)), all_, Text(ready, "green"), Text(failing, "red"))
        return table

    def _by_host(self) -> RenderableType:
        table = _numbers("INDEX BY .spec.affinity", ("HOST", "BLOCKS", "IN USE"))
        for host, blocks, used in self._watcher.by_host()[: _INDEX - 3]:
            table.add_row(Text(visible(host)), blocks, used)
        return Padding(table, (0, 0, 0, 2))

    def _diffs(self, count: int) -> RenderableType:
        return _lines([Text("LAST DIFFS", style=_TITLE), *self._newest_diffs(count)])

    def _newest_diffs(self, count: int) -> Iterator[Text]:
        """As many as there is room for, the newest first."""
        for shown in self._watcher.updates(count):
            if count < 2:  # a heading without a diff says nothing
                return
            lines = [coloured(line) for line in EventDiffs().lines(shown)][:count]
            yield from lines
            count -= len(lines)

    def _foot(self) -> RenderableType:
        well, connection = self._watcher.connection()
        status = Text(visible(connection), "green" if well else "red")
        figures = f" - {self._watcher.figures()}" if well else ""
        return _lines([Text(self._text, style="bold"), Text.assemble(status, figures)])


def _rich_table(title: str, *, expand: bool) -> RichTable:
    return RichTable(
        title=Text(title, style=_TITLE),
        title_justify="left",
        box=None,
        expand=expand,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="bold",
    )


def _numbers(title: str, headings: Iterable[str]) -> RichTable:
    """A table of numbers behind names."""
    table = _rich_table(title, expand=False)
    first, *others = headings
    table.add_column(first, no_wrap=True, overflow="ellipsis")
    for heading in others:
        table.add_column(heading, no_wrap=True, justify="right")
    return table


def _lines(lines: Iterable[Text]) -> RenderableType:
    """Lines that end at the edge."""
    grid = RichTable.grid(expand=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for line in lines:
        grid.add_row(line)
    return grid


def differences(server: ApiServer, watcher: Watcher) -> list[str]:
    """What differs once everything has arrived; nothing if cache and server agree.

    Nothing may write meanwhile. What is on its way is waited for.
    """
    begun = time.monotonic()
    while found := _differences_now(server, watcher.informers):
        watcher.look(0.1)
        now = time.monotonic()
        connected, _ = watcher.connection()
        quiet = now - max(begun, watcher.last_event) > _QUIET_SECONDS
        if (connected and quiet) or now - begun > _PATIENCE_SECONDS:
            break
    return found


def _differences_now(server: ApiServer, informers: list[GenericInformer]) -> list[str]:
    found = []
    for each in informers:
        cached = {_key(obj): obj for obj in each.lister}
        served = {_key(obj): obj for obj in _listed(server, each.gvr.group_resource)}
        for key in sorted(cached.keys() | served.keys()):
            if key not in served:
                found.append(f"{each.gvr.resource} {key}: only the cache has it")
            elif key not in cached:
                found.append(f"{each.gvr.resource} {key}: the cache does not have it")
            elif cached[key] != served[key]:
                found.append(f"{each.gvr.resource} {key}: the cache has another state of it")
    return found


def _listed(server: ApiServer, resource: str) -> list[Object]:
    """A fresh LIST, which is empty for a resource whose CRD is away."""
    try:
        return server.list(resource)
    except LookupError:
        return []


def _key(obj: Object) -> str:
    metadata = obj["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def summary(watcher: Watcher, story: StoryThread, differences: list[str]) -> Iterator[str]:
    """The lines. ``differences`` are those between the caches and the server."""
    events = watcher.events
    yield ""
    yield (
        f"{story.elapsed:.0f} of {story.seconds:.0f} s were played: {events.total()} events, "
        f"{events[ADDED]} added, {events[MODIFIED]} modified, {events[DELETED]} deleted "
        f"({watcher.missed} while the server was away)."
    )
    yield "\nCertificates by issuer, from an index of .spec.issuerRef.name:"
    yield from _indented(["issuer", "certificates", "ready", "not ready"], watcher.by_issuer())
    yield "\nIP blocks by host, from an index of .spec.affinity:"
    yield from _indented(["host", "blocks", "addresses in use"], watcher.by_host())
    updates = watcher.updates(1)
    if updates:
        yield "\nThe last update:"
        lines = [f"  {line.text}" for line in EventDiffs().lines(updates[0])]
        yield from lines[:_DIFF]
        if len(lines) > _DIFF:
            yield f"    ... ({len(lines) - _DIFF} more)"
    yield ""
    cached = ", ".join(f"{each.gvr.resource}: {len(each.lister)}" for each in watcher.informers)
    if not differences:
        yield f"The cache and the server agree, object for object ({cached})."
        return
    yield f"The cache and the server DIFFER in {counted(len(differences), 'object')} ({cached}):"
    yield from (f"  {visible(each)}" for each in differences[:_DIFFERENCES])


def _indented(headings: list[str], rows: list[list[str]]) -> Iterator[str]:
    return (f"  {line}" for line in Table(headings).lines(rows))
