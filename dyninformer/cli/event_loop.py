"""The loop of a live command: events to lines, on the command's own thread."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import typer

from dyninformer.cli.choosing import Choosing, Seen
from dyninformer.cli.connection_notices import ConnectionNotices
from dyninformer.cli.event_lines import Lined
from dyninformer.cli.event_source import EventSource
from dyninformer.cli.executing import Executing
from dyninformer.cli.failing import OUT_OF_TIME, CommandError
from dyninformer.cli.screen import Screen
from dyninformer.conditions import Met
from dyninformer.delivery.events import Event
from dyninformer.factory import DynamicSharedInformerFactory

_LOOK_SECONDS = 0.2  # between two looks at the connection and at the reader of the pipe


@dataclass
class EventLoop:
    """What is listened to, chosen, shown and done."""

    factory: DynamicSharedInformerFactory
    source: EventSource
    choosing: Choosing
    lined: Lined
    executing: Executing | None = None
    met: Met | None = None

    def run(self, length: float = math.inf) -> None:
        """Show events until the time is over, or one meets what is waited for."""
        screen = Screen()
        notices = ConnectionNotices(self.factory.status, say)
        until, looked = time.monotonic() + length, -math.inf
        while True:
            now = time.monotonic()
            if now - looked >= _LOOK_SECONDS:
                looked = now
                notices.look()
                self.source.look(say)
                screen.check_reader()
            watched = self.source.get(min(_LOOK_SECONDS, until - now))
            if watched is not None:
                seen = self.choosing.seen(watched)
                if seen is not None:
                    screen.show(self.lined.lines(seen))
                    self._execute(seen)
                if self._ends(watched.event):
                    return
            # What was there already is shown whole; a stream without a pause ends in time.
            if time.monotonic() >= until and (watched is None or not watched.first):
                break
        if self.met is not None:
            raise CommandError("timed out: no object has met --until", code=OUT_OF_TIME)

    def _execute(self, seen: Seen) -> None:
        if self.executing is not None:
            event = seen.event
            facts = {
                "namespace": event.namespace,
                "name": event.name,
                "event": seen.type,
                "kind": str(seen.object.get("kind") or ""),
                "resource": event.gvr.group_resource,
            }
            self.executing.run(seen.object, facts)

    def _ends(self, event: Event) -> bool:
        return self.met is not None and self.choosing.fits(event) and self.met(event.object)


def say(line: str) -> None:
    """Tell people, beside what is shown."""
    typer.echo(line, err=True)
