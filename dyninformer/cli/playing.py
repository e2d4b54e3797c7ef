"""Lines of a recording, put on a stage one after the other, and how far that has come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeAlias

from dyninformer.cli.player import BrokenError, Lines, Player
from dyninformer.cli.recording import Line, Resource
from dyninformer.cli.screen import canvas
from dyninformer.cli.serving import Complaints, counted
from dyninformer.cli.staging import RefusedError, Stage

Show: TypeAlias = Callable[[datetime], None]
Names: TypeAlias = set[str]
Keys: TypeAlias = set[tuple[str, str, str]]


class Reel:
    """The lines of a recording up to where it breaks off."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.broken: BrokenError | None = None
        """Why the lines ended before the recording's end."""

    def __iter__(self) -> Lines:
        try:
            yield from self._player.lines()
        except BrokenError as error:
            self.broken = error


class Playing:
    """Does to a stage what lines say. For one thread."""

    def __init__(self, stage: Stage, complaints: Complaints) -> None:
        self._stage = stage
        self._complaints = complaints
        self._served: Names = set()
        self._refused: Names = set()
        self._there: Keys = set()
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
def shown_while_playing(player: Player) -> Iterator[Show]:
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
        task = progress.add_task("", total=player.size)

        def show(moment: datetime) -> None:
            told = moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
            progress.update(task, completed=player.position, description=told)

        yield show
