"""``replay``: a recording, played on an embedded server."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, Final

import typer

from dyninformer.cli.arguments import panel, seconds
from dyninformer.cli.embedded import (
    KubeconfigOut,
    Loader,
    NotLoadedError,
    Port,
    Skipped,
    announced,
    serving,
)
from dyninformer.cli.errors import FAILED, CommandError
from dyninformer.cli.terminal import Shutdown, canvas, say, shutdown_on_signals
from dyninformer.display.text import visible
from dyninformer.moments.recorded import (
    BrokenRecordingError,
    RecordingLine,
    RecordingReader,
    ResourceDefinition,
)
from dyninformer.printable import counted

_playback_option: Final = panel("How it is played")

_LONGEST_WAIT: Final = 60.0  # without a look at the clock


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `record` wrote.")],
    *,
    speed: Annotated[
        str, _playback_option(metavar="TIMES", help="1 is as it was, 10 ten times as fast; or max.")
    ] = "1",
    start: Annotated[
        str,
        _playback_option(
            metavar="DURATION", help="Begin with the state after the first 30s, 5m or 1h30m."
        ),
    ] = "0s",
    exit_at_end: Annotated[
        bool,
        _playback_option(
            "--exit", help="End when all is played; otherwise serve the last state until Ctrl-C."
        ),
    ] = False,
    port: Port = 0,
    kubeconfig_out: KubeconfigOut = None,
) -> None:
    """Play a recording on an API server of its own.

    kubectl, a notebook or an operator can use it like a cluster: first they see what was there,
    then each change in its time. Names, uids, labels and times are those recorded; the
    resourceVersions are the server's own. It can be written to. The line to type in another
    terminal goes to stdout.

    Exit codes: 0 all is played; 1 the file is not a recording, or it breaks off, and what can be
    read is played; 2 wrong usage; 130 interrupted.

    For example:

    ```console
    $ dyninformer replay incident.ndjson.zst
    $ dyninformer replay incident.ndjson.zst --speed 10 --start 5m
    $ dyninformer replay incident.ndjson.zst --speed max --exit
    ```
    """
    times, begin = _speed(speed), _offset(start)
    path = file.expanduser()
    with (
        RecordingReader(path) as reader,
        serving(port) as server,
        shutdown_on_signals() as shutdown,
    ):
        skipped = Skipped()
        replay = _Replay(reader, Loader(server), skipped, shutdown)
        rest = replay.apply_until(begin)
        moment = reader.header.time.astimezone().isoformat(" ", "seconds")
        what = f"{visible(str(path))}, begun at {moment}: {replay.summary}"
        with announced(server, kubeconfig_out, what):
            with _progress(reader) as show:
                replay.play(rest, begin, times, show)
            skipped.end()
            if not shutdown.requested:
                end = str(replay.broken) if replay.broken else "all is played"
                say(f"{visible(end)} ({counted(replay.changes, 'change')} made, {replay.summary})")
            if not exit_at_end:
                shutdown.wait()
        shutdown.exit()
        if replay.broken:
            raise CommandError(f"{path} is not whole", code=FAILED)


class _Replay:
    """Applies a recording's lines to a server. For one thread."""

    def __init__(
        self, reader: RecordingReader, loader: Loader, skipped: Skipped, shutdown: Shutdown
    ) -> None:
        self._reader = reader
        self._loader = loader
        self._skipped = skipped
        self._shutdown = shutdown
        self._served: set[str] = set()
        self._refused: set[str] = set()
        self._there: set[tuple[str, str, str]] = set()
        self.changes = 0
        """Lines that have been applied."""
        self.broken: BrokenRecordingError | None = None
        """Why the lines ended before the recording's end."""

    @property
    def summary(self) -> str:
        """What there is now."""
        objects = counted(len(self._there), "object")
        return f"{objects} of {counted(len(self._served), 'resource')}"

    def apply_until(self, start: float) -> Iterator[RecordingLine]:
        """Apply at once what happened up to a second; returns the lines that are left."""
        for resource in self._reader.header.resources:
            self._serve(resource)
        lines = self._lines()
        for line in lines:
            if self._shutdown.requested:
                break
            if not line.initial and self._second(line) > start:
                return chain((line,), lines)
            self._apply(line)
        return iter(())

    def play(
        self,
        lines: Iterator[RecordingLine],
        start: float,
        speed: float,
        show: Callable[[datetime], None],
    ) -> None:
        """Apply the others in their time, until a signal ends it."""
        began = time.monotonic()
        for line in lines:
            due = began + (self._second(line) - start) / speed
            while not self._shutdown.requested and (left := due - time.monotonic()) > 0:
                self._shutdown.wait(min(left, _LONGEST_WAIT))
            if self._shutdown.requested:
                return
            self._apply(line)
            show(line.time)

    def _lines(self) -> Iterator[RecordingLine]:
        try:
            yield from self._reader.lines()
        except BrokenRecordingError as error:
            self.broken = error

    def _second(self, line: RecordingLine) -> float:
        return (line.time - self._reader.header.time).total_seconds()

    def _serve(self, resource: ResourceDefinition) -> None:
        """Have a resource served; if that cannot be, its objects are skipped."""
        if resource.gvr in self._served:
            return
        try:
            self._loader.serve(resource)
        except ValueError as error:
            self._refused.add(resource.gvr)
            self._skipped.add(str(error))
        else:
            self._refused.discard(resource.gvr)
            self._served.add(resource.gvr)

    def _apply(self, line: RecordingLine) -> None:
        if line.resource is not None:
            self._serve(line.resource)
        if not line.gvr:
            return
        metadata = line.object["metadata"]
        if line.gvr not in self._served | self._refused:
            kind, namespaced = str(line.object.get("kind")), bool(metadata.get("namespace"))
            self._serve(ResourceDefinition(line.gvr, kind, namespaced))
        if line.gvr in self._refused:
            return
        key = (line.gvr, str(metadata.get("namespace")), str(metadata.get("name")))
        try:
            if line.type == "DELETED":
                self._loader.unload(line.object)
                self._there.discard(key)
            else:
                self._loader.load(line.object)
                self._there.add(key)
        except NotLoadedError as error:
            self._skipped.add(str(error))
        else:
            self.changes += 1


@contextmanager
def _progress(reader: RecordingReader) -> Iterator[Callable[[datetime], None]]:
    """A bar on stderr, drawn anew at each call of what this yields; only on a terminal."""
    console = canvas(sys.stderr)
    if console is None:
        yield lambda _: None
        return
    from rich.progress import (  # noqa: PLC0415 - only a terminal needs it
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
    )

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=reader.size)

        def show(moment: datetime) -> None:
            description = moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
            progress.update(task, completed=reader.position, description=description)

        yield show


def _speed(text: str) -> float:
    if text == "max":
        return math.inf
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = math.nan
    if not 0 < speed < math.inf:
        raise ValueError(f"--speed {text}: give a number above 0, as in 10 or 0.5, or max")
    return speed


def _offset(text: str) -> float:
    start = seconds(text)
    if start < 0:
        raise ValueError(f"--start {text}: there is nothing before the beginning")
    return start
