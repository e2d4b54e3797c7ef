"""The loop of a live command: events to lines, on the command's own thread, until somebody ends it."""

from __future__ import annotations

import math
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import typer
from rich.console import Console
from rich.text import Text

from dyninformer.cli.connection import ConnectionNotices
from dyninformer.cli.errors import OUT_OF_TIME, CommandError
from dyninformer.cli.events import EventFilter, EventFormat, EventSource, Line, Lines, ShownEvent
from dyninformer.cli.watch import ExecCommand
from dyninformer.conditions import Met
from dyninformer.delivery.events import Event
from dyninformer.factory import DynamicSharedInformerFactory
from dyninformer.waking import Flag

# ----------------------------------------------------------------------------------------
# Where a live command prints: in colours on a terminal, and aware of a reader that leaves.


class Screen:
    """stdout. Lines are told at once."""

    def __init__(self) -> None:
        self._console = Console(highlight=False) if sys.stdout.isatty() else None

    def show(self, lines: Lines) -> None:
        """Print lines; BrokenPipeError if nobody reads them any more."""
        for line in lines:
            if self._console is None:
                typer.echo(line.text)
                continue
            self._console.print(coloured(line), soft_wrap=True)

    def check_reader(self) -> None:
        """BrokenPipeError if the reader of a pipe has gone, though there is nothing to print."""
        if self._console is not None or not hasattr(select, "poll"):
            return
        try:
            number = sys.stdout.fileno()
        except (OSError, ValueError):
            return  # no file of the system
        poll = select.poll()
        poll.register(number, 0)  # errors and ends are told unasked
        if any(told & (select.POLLERR | select.POLLNVAL) for _, told in poll.poll(0)):
            raise BrokenPipeError


def coloured(line: Line) -> Text:
    """A line as a terminal shows it."""
    text = Text(line.text)
    if line.colour:
        text.stylize(line.colour, line.start, line.end)
    return text


# ----------------------------------------------------------------------------------------
# Ends of a command that runs until somebody ends it, in order.


class Shutdown:
    """Whether somebody wants the command to end. Waited for by the main thread."""

    def __init__(self) -> None:
        self._asked = Flag()
        self._number = 0

    @property
    def asked(self) -> bool:
        """Somebody does."""
        return self._asked.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until somebody does; False if nobody does in time."""
        return self._asked.wait(seconds)

    def ask(self, number: int, frame: FrameType | None) -> None:
        """A signal has come; the second one does not wait for an orderly end."""
        del frame
        if self._asked.is_set():
            raise KeyboardInterrupt
        self._number = number
        self._asked.set()

    def exit(self) -> None:
        """End with the exit code that the signal asks for, if there was one."""
        if self._number:
            raise typer.Exit(128 + self._number)


@contextmanager
def shutdown_on_signals() -> Iterator[Shutdown]:
    """Ctrl-C and SIGTERM interrupt nothing within: they are told, and looked at where it suits."""
    ending = Shutdown()
    before = {
        number: signal.signal(number, ending.ask) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# ----------------------------------------------------------------------------------------
# The loop of a live command: events to lines, on the command's own thread.


_LOOK_SECONDS = 0.2  # between two looks at the connection and at the reader of the pipe


@dataclass
class EventLoop:
    """What is listened to, chosen, shown and done."""

    factory: DynamicSharedInformerFactory
    source: EventSource
    choosing: EventFilter
    lined: EventFormat
    executing: ExecCommand | None = None
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

    def _execute(self, seen: ShownEvent) -> None:
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
