"""``replay``: a recording, played on an embedded server."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from dyninformer.cli.arguments import seconds
from dyninformer.cli.embedded import (
    KubeconfigOut,
    Loader,
    Port,
    RefusedError,
    Skipped,
    announced,
    counted,
    serving,
)
from dyninformer.cli.errors import FAILED, CommandError
from dyninformer.cli.live import Shutdown, shutdown_on_signals
from dyninformer.cli.recording import BrokenRecordingError, Line, Lines, RecordingReader, Resource
from dyninformer.display.text import visible

# ----------------------------------------------------------------------------------------
# Lines of a recording, put on a stage one after the other, and how far that has come.


Show: TypeAlias = Callable[[datetime], None]
Names: TypeAlias = set[str]
_Keys: TypeAlias = set[tuple[str, str, str]]


class Reel:
    """The lines of a recording up to where it breaks off."""

    def __init__(self, player: RecordingReader) -> None:
        self._player = player
        self.broken: BrokenRecordingError | None = None
        """Why the lines ended before the recording's end."""

    def __iter__(self) -> Lines:
        try:
            yield from self._player.lines()
        except BrokenRecordingError as error:
            self.broken = error


class _Applier:
    """Does to a stage what lines say. For one thread."""

    def __init__(self, stage: Loader, complaints: Skipped) -> None:
        self._stage = stage
        self._complaints = complaints
        self._served: Names = set()
        self._refused: Names = set()
        self._there: _Keys = set()
        self.changes = 0
        """Lines that have been done."""

    @property
    def summary(self) -> str:
        """What there is now."""
        objects = counted(len(self._there), "object")
        return f"{objects} of {counted(len(self._served), 'resource')}"

    def serve(self, resource: Resource) -> None:
        """Have a resource served; if that cannot be, its objects are passed over."""
        if resource.gvr in self._served:
            return
        try:
            self._stage.serve(resource)
        except ValueError as error:
            self._refused.add(resource.gvr)
            self._complaints.add(str(error))
        else:
            self._refused.discard(resource.gvr)
            self._served.add(resource.gvr)

    def do(self, line: Line) -> None:
        """What a line says."""
        if line.resource is not None:
            self.serve(line.resource)
        if not line.gvr:
            return
        metadata = line.object["metadata"]
        if line.gvr not in self._served | self._refused:
            kind, namespaced = str(line.object.get("kind")), bool(metadata.get("namespace"))
            self.serve(Resource(line.gvr, kind, namespaced))
        if line.gvr in self._refused:
            return
        key = (line.gvr, str(metadata.get("namespace")), str(metadata.get("name")))
        try:
            if line.type == "DELETED":
                self._stage.remove(line.object)
                self._there.discard(key)
            else:
                self._stage.put(line.object)
                self._there.add(key)
        except RefusedError as error:
            self._complaints.add(str(error))
        else:
            self.changes += 1


@contextmanager
def shown_while_playing(player: RecordingReader) -> Iterator[Show]:
    """A bar on stderr, drawn anew at each call of what this yields; only on a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=player.size)

        def show(moment: datetime) -> None:
            told = moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
            progress.update(task, completed=player.position, description=told)

        yield show


# ----------------------------------------------------------------------------------------
# ``replay``: a recording, played on an embedded server.


_PLAYING = "How it is played"
_LOOK_SECONDS = 60.0  # at the clock, in long silences


def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `record` wrote.", show_default=False)
    ],
    *,
    speed: Annotated[
        str,
        typer.Option(
            metavar="TIMES",
            help="1 is as it was, 10 ten times as fast; or max.",
            rich_help_panel=_PLAYING,
        ),
    ] = "1",
    start: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="Begin with the state after the first 30s, 5m or 1h30m.",
            rich_help_panel=_PLAYING,
        ),
    ] = "0s",
    exit_at_end: Annotated[
        bool,
        typer.Option(
            "--exit",
            help="End when all is played; else serve the last state until Ctrl-C.",
            rich_help_panel=_PLAYING,
        ),
    ] = False,
    port: Port = 0,
    kubeconfig_out: KubeconfigOut = None,
) -> None:
    """Play a recording on an API server of its own.

    kubectl, a notebook or an operator can look at it as at a cluster: first at what was there,
    then at each change in its time. Names, uids, labels and times are those recorded; the
    resourceVersions are the server's own. It can be written to. What to type in another
    terminal goes to stdout.

    Exit codes: 0 all is played; 1 the file is no recording, or breaks off, and what can be read
    is played; 2 wrong usage; 130 interrupted.

    For example:

    ```console
    $ dyninformer replay incident.ndjson.zst
    $ dyninformer replay incident.ndjson.zst --speed 10 --start 5m
    $ dyninformer replay incident.ndjson.zst --speed max --exit
    ```
    """
    timing = _Timing(_speed(speed), _offset(start))
    path = file.expanduser()
    with RecordingReader(path) as player, serving(port) as server, shutdown_on_signals() as ending:
        complaints = Skipped()
        playing = _Applier(Loader(server), complaints)
        for resource in player.header.resources:
            playing.serve(resource)
        reel = Reel(player)
        performance = _Performance(player, playing, timing, ending)
        rest = performance.begin(iter(reel))
        moment = player.header.time.astimezone().isoformat(" ", "seconds")
        what = f"{visible(str(path))}, begun at {moment}: {playing.summary}"
        with announced(server, kubeconfig_out, what):
            with shown_while_playing(player) as show:
                performance.play(rest, show)
            complaints.end()
            if not ending.asked:
                told = str(reel.broken) if reel.broken else "all is played"
                done = f"{counted(playing.changes, 'change')} made, {playing.summary}"
                typer.echo(f"{visible(told)} ({done})", err=True)
            if not exit_at_end:
                ending.wait()
        ending.exit()
        if reel.broken:
            raise CommandError(f"{path} is not whole", code=FAILED)


@dataclass(frozen=True)
class _Timing:
    """How many times as fast, and from which second on."""

    speed: float
    start: float


@dataclass
class _Performance:
    """Lines in their time."""

    player: RecordingReader
    playing: _Applier
    timing: _Timing
    ending: Shutdown

    def begin(self, lines: Lines) -> Lines:
        """Do at once what was there at the start; returns the lines that are left."""
        for line in lines:
            if self.ending.asked:
                break
            if not line.initial and self._second(line) > self.timing.start:
                return chain((line,), lines)
            self.playing.do(line)
        return iter(())

    def play(self, lines: Lines, show: Show) -> None:
        """Do the others in their time, until somebody wants an end."""
        began = time.monotonic()
        for line in lines:
            due = began + (self._second(line) - self.timing.start) / self.timing.speed
            while not self.ending.asked and (left := due - time.monotonic()) > 0:
                self.ending.wait(min(left, _LOOK_SECONDS))
            if self.ending.asked:
                return
            self.playing.do(line)
            show(line.time)

    def _second(self, line: Line) -> float:
        return (line.time - self.player.header.time).total_seconds()


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
