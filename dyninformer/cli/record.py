"""``record``: what happens to resources, kept in a file with its times."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from dyninformer.cli import arguments
from dyninformer.cli.arguments import Filter, seconds, where_filter
from dyninformer.cli.connection import ConnectionNotices, Target
from dyninformer.cli.errors import WRONG_USAGE, CommandError
from dyninformer.cli.events import ADDED, DELETED, MODIFIED, EventSource, Received, watch_type
from dyninformer.cli.live import Shutdown, shutdown_on_signals
from dyninformer.cli.recording import (
    Column,
    Line,
    RecordingWriter,
    Resource,
    now,
    require_replaceable,
)
from dyninformer.delivery.events import Event
from dyninformer.discovery import Discovery
from dyninformer.display.text import visible
from dyninformer.errors import DynInformerError, UnreachableError
from dyninformer.factory import DynamicSharedInformerFactory
from dyninformer.resource import GroupVersionResource

Keys: TypeAlias = set[tuple[GroupVersionResource, str]]
Known: TypeAlias = set[GroupVersionResource]

_LOOK_SECONDS = 0.2  # between two looks at the connection and at who wants an end
_FLUSH_SECONDS = 0.5  # that a recorder which is killed loses
_FLUSH_LINES = 500
_SECRETS = GroupVersionResource("", "v1", "secrets")


def command(
    resources: arguments.ResourceArguments,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to: FILE.ndjson.zst, or FILE.ndjson for plain text.",
            rich_help_panel="What is done",
            show_default=False,
        ),
    ],
    length: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="DURATION",
            help="End after 30, 30s, 5m or 1h30m; else with Ctrl-C.",
            rich_help_panel="What is done",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace a file that is there.", rich_help_panel="What is done"
        ),
    ] = False,
    namespace: arguments.Namespace = None,
    all_namespaces: arguments.AllNamespaces = False,
    selector: arguments.Selector = "",
    field_selector: arguments.FieldSelector = "",
    where: arguments.Where = None,
    kubeconfig: arguments.Kubeconfig = None,
    context: arguments.Context = None,
    request_timeout: arguments.SyncTimeout = 30.0,
) -> None:
    """Keep what happens in a file, to be played again.

    The file begins with what is there, and goes on with each change and its time, through
    restarts of the server and deletions of CRDs. Only you can read it; what is written can be
    read even if the recorder is killed. `dyninformer replay` plays it.

    Exit codes: 0 the time is over; 2 wrong usage; 3 the server cannot be reached or refuses;
    130 interrupted, which is a good end too, and 143 terminated.

    For example:

    ```console
    $ dyninformer record certificates -n prod -o certificates.ndjson.zst --for 1s
    $ dyninformer record '*.cert-manager.io' ipamblocks -A -o incident.ndjson.zst --for 1
    $ dyninformer record cert -A --where .metadata.name=shop -o shop.ndjson --force --for 1
    ```
    """
    fits = where_filter(where) if where else None
    until = seconds(length) if length is not None else math.inf
    path = output.expanduser()
    require_replaceable(path)
    if not force and os.path.lexists(path):
        raise CommandError(f"{path} is there already: give --force to replace it", code=WRONG_USAGE)
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
        source = EventSource(target, factory, resources)
        source.begin(_say)
        first = source.followed
        described = tuple(_described(factory.discovery, gvr) for gvr in first)
        with (
            RecordingWriter(path, described, force=force) as recorder,
            shutdown_on_signals() as ending,
        ):
            recording = _Recording(factory, source, fits, recorder, set(first))
            recording.warn(first)
            try:
                recording.run(until, ending)
            finally:
                _say(recording.summary(path))
            ending.exit()


@dataclass
class _Recording:
    """The loop, on the command's own thread."""

    factory: DynamicSharedInformerFactory
    source: EventSource
    fits: Filter | None
    recorder: RecordingWriter
    known: Known
    keys: Keys = field(default_factory=set)
    events: int = 0

    def run(self, length: float, ending: Shutdown) -> None:
        """Record until the time is over, or somebody wants an end."""
        notices = ConnectionNotices(self.factory.status, _say)
        until = time.monotonic() + length
        looked = flushed = -math.inf
        waiting = 0
        while not ending.asked:
            moment = time.monotonic()
            if moment - looked >= _LOOK_SECONDS:
                looked = moment
                notices.look()
                self.source.look(_say)
            watched = self.source.get(min(_LOOK_SECONDS, until - moment))
            if watched is not None:
                self._keep(watched)
                waiting += 1
            if waiting and (waiting >= _FLUSH_LINES or moment - flushed >= _FLUSH_SECONDS):
                self.recorder.flush()
                waiting, flushed = 0, moment
            # What was there already is kept whole.
            if time.monotonic() >= until and (watched is None or not watched.first):
                break
        self.recorder.close(events=self.events, objects=len(self.keys))

    def warn(self, gvrs: list[GroupVersionResource]) -> None:
        """Say what a recording of these should be kept for oneself."""
        if _SECRETS in gvrs:
            _say("warning: Secrets are recorded with what they hold; only you can read the file")

    def summary(self, path: Path) -> str:
        """What has been recorded."""
        return (
            f"{_counted(self.events, 'event')} of {_counted(len(self.keys), 'object')}, "
            f"{_counted(self.recorder.written, 'byte')} in {visible(str(path))}"
        )

    def _keep(self, watched: Received) -> None:
        event = watched.event
        if event.gvr not in self.known:
            self.known.add(event.gvr)
            self.warn([event.gvr])
            resource = _described(self.factory.discovery, event.gvr, event)
            self.recorder.write(Line(now(), "RESOURCE", resource=resource))
        type_ = watch_type(event, self.fits)
        if type_ is None:
            return
        gvr, when = str(event.gvr), watched.when
        if type_ == MODIFIED and event.recreated:
            # A server never changes a uid: one object went, and another came.
            self.recorder.write(Line(when, DELETED, gvr, missed=True, object=event.old or {}))
            type_ = ADDED
        missed = type_ == DELETED and event.final_state_unknown
        line = Line(when, type_, gvr, initial=watched.first, missed=missed, object=event.object)
        self.recorder.write(line)
        self.keys.add((event.gvr, event.key))
        self.events += 1


def _described(
    discovery: Discovery, gvr: GroupVersionResource, event: Event | None = None
) -> Resource:
    """What a server must know to serve the resource; of one that is gone, what the event says."""
    try:
        found = discovery.resolve(f"{gvr.group_version}/{gvr.resource}")
    except DynInformerError:
        if event is None:
            raise
        return Resource(str(gvr), str(event.object.get("kind", "")), bool(event.namespace))
    try:
        columns = discovery.columns(gvr)
    except UnreachableError:
        columns = ()
    return Resource(
        str(gvr),
        found.kind,
        found.namespaced,
        found.singular,
        found.short_names,
        found.categories,
        tuple(Column(*each) for each in columns),
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _say(line: str) -> None:
    typer.echo(line, err=True)
