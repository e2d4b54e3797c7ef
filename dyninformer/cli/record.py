"""``record``: what happens to resources, kept in a file with its times."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from dyninformer.cli import arguments
from dyninformer.cli.arguments import seconds
from dyninformer.cli.connection import Cluster, Target, with_target
from dyninformer.cli.errors import WRONG_USAGE, CommandError
from dyninformer.cli.events import (
    ADDED,
    DELETED,
    MODIFIED,
    watch_type,
)
from dyninformer.cli.sources import (
    EventSource,
    TimedEvent,
    received_events,
    say_unknown_paths,
    watched,
)
from dyninformer.cli.terminal import Shutdown, say, shutdown_on_signals
from dyninformer.cli.where import Filter, Where
from dyninformer.delivery.events import Event
from dyninformer.discovery import Discovery
from dyninformer.display.text import visible
from dyninformer.errors import DynInformerError, UnauthorizedError, UnreachableError
from dyninformer.moments.recorded import (
    ColumnDefinition,
    RecordingLine,
    RecordingWriter,
    ResourceDefinition,
    now,
)
from dyninformer.moments.saved import require_replaceable
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource, of_secrets

_FLUSH_SECONDS: Final = 0.5  # that a recorder which is killed loses
_FLUSH_LINES: Final = 500


@with_target("contexts", "all_contexts")
def command(
    resources: arguments.Resources,
    *,
    output: Annotated[
        Path,
        arguments.action_option(
            "-o",
            "--output",
            metavar="FILE",
            help="FILE.ndjson.zst, or FILE.ndjson for plain text.",
        ),
    ],
    length: Annotated[
        str | None,
        arguments.action_option(
            "--for",
            metavar="DURATION",
            help="End after 30, 30s, 5m or 1h30m; otherwise with Ctrl-C.",
        ),
    ] = None,
    force: Annotated[
        bool, arguments.action_option("--force", help="Replace a file that exists.")
    ] = False,
    target: Target,
    where: arguments.Where = None,
) -> None:
    """Keep what happens in a file, to be played again.

    The file begins with what is there, and goes on with each change and its time, through
    restarts of the server and deletions of CRDs. Only you can read the file, and what has been
    written can be read even if the recorder is killed. `dyninformer replay` plays it.

    Exit codes: 0 the time is over; 1 the file cannot be written; 2 wrong usage; 3 the server
    cannot be reached or refuses; 130 interrupted, which is a good end too, and 143 terminated.

    For example:

    ```console
    $ dyninformer record certificates -n prod -o certs.ndjson.zst --for 1s
    $ dyninformer record '*.cert-manager.io' -A -o incident.ndjson.zst --for 1
    $ dyninformer record cert -A --where .metadata.name=shop -o s.ndjson --for 1
    ```
    """
    fits = Where(where) if where else None
    duration = seconds(length) if length is not None else math.inf
    if duration < 0:
        raise CommandError(f"--for {length}: leave it out to record until Ctrl-C", code=WRONG_USAGE)
    path = output.expanduser()
    require_replaceable(path)
    if not force and os.path.lexists(path):
        raise CommandError(f"{path} exists already: give --force to replace it", code=WRONG_USAGE)
    with target.connected() as cluster:
        source = EventSource(cluster, watched(cluster, resources))
        source.begin(say)
        say_unknown_paths([(cluster, source)], fits.paths if fits else ())
        first = source.followed
        described = tuple(_described(cluster.discovery, gvr) for gvr in first)
        with (
            RecordingWriter(path, described, force=force) as writer,
            shutdown_on_signals() as shutdown,
        ):
            recorder = _Recorder(cluster, fits, writer, set(first))
            _warn_of_secrets(first)
            try:
                recorder.run(source, duration, shutdown)
            finally:
                say(
                    f"{counted(recorder.events, 'event')} of "
                    f"{counted(len(recorder.keys), 'object')}, "
                    f"{counted(writer.written, 'byte')} in {visible(str(path))}"
                )
            shutdown.exit()


@dataclass
class _Recorder:
    """Writes events as lines, on the command's own thread."""

    cluster: Cluster
    fits: Filter | None
    writer: RecordingWriter
    known: set[GroupVersionResource]
    keys: set[tuple[GroupVersionResource, str]] = field(default_factory=set)
    events: int = 0

    def run(self, source: EventSource, length: float, shutdown: Shutdown) -> None:
        """Record until the time is over, or a signal ends it."""
        flushed, waiting = -math.inf, 0
        for received in received_events([(self.cluster, source)], length):
            moment = time.monotonic()
            if received is not None:
                self._write(received)
                waiting += 1
            if waiting and (waiting >= _FLUSH_LINES or moment - flushed >= _FLUSH_SECONDS):
                self.writer.flush()
                waiting, flushed = 0, moment
            if shutdown.requested:
                break
        self.writer.close(events=self.events, objects=len(self.keys))

    def _write(self, received: TimedEvent) -> None:
        event = received.event
        if event.gvr not in self.known:
            self.known.add(event.gvr)
            _warn_of_secrets([event.gvr])
            resource = _described(self.cluster.discovery, event.gvr, event)
            self.writer.write(RecordingLine(now(), "RESOURCE", resource=resource))
        type_ = watch_type(event, self.fits)
        if type_ is None:
            return
        gvr, when = str(event.gvr), received.when
        if type_ == MODIFIED and event.recreated:
            # A server never changes a uid: one object went, and another came.
            old = event.old or {}
            self.writer.write(RecordingLine(when, DELETED, gvr, missed=True, object=old))
            type_ = ADDED
        missed = type_ == DELETED and event.final_state_unknown
        self.writer.write(
            RecordingLine(
                when, type_, gvr, initial=received.existing, missed=missed, object=event.object
            )
        )
        self.keys.add((event.gvr, event.key))
        self.events += 1


def _warn_of_secrets(gvrs: list[GroupVersionResource]) -> None:
    if any(map(of_secrets, gvrs)):
        say("warning: Secrets are recorded with what they hold; only you can read the file")


def _described(
    discovery: Discovery, gvr: GroupVersionResource, event: Event | None = None
) -> ResourceDefinition:
    """What a server must know to serve the resource; for one that is gone, what the event says."""
    try:
        found = discovery.resolve(f"{gvr.group_version}/{gvr.resource}")
    except DynInformerError:
        if event is None:
            raise
        return ResourceDefinition(
            str(gvr), str(event.object.get("kind", "")), bool(event.namespace)
        )
    try:
        columns = discovery.columns(gvr)
    except (UnreachableError, UnauthorizedError):
        columns = ()
    return ResourceDefinition(
        str(gvr),
        found.kind,
        found.namespaced,
        found.singular,
        found.short_names,
        found.categories,
        tuple(ColumnDefinition(*each) for each in columns),
    )
