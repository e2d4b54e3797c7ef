"""What passes between a command and its terminal: lines on stdout, notes on stderr, signals."""

from __future__ import annotations

import select
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TextIO

import typer

from dyninformer.display.text import Line
from dyninformer.threads import Flag

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def say(line: str) -> None:
    """Tell people something on stderr, beside what is printed."""
    typer.echo(line, err=True)


def canvas(where: TextIO) -> Console | None:
    """A console on which a picture can be drawn anew, None where that cannot be.

    A pipe has no use for one, and a dumb terminal (TERM=dumb) cannot take back what it shows.
    """
    if not where.isatty():
        return None
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it

    console = Console(file=where, highlight=False)
    return None if console.is_dumb_terminal else console


class StatusLine:
    """A line below all that is printed that says how things stand, on a terminal; else nothing."""

    def __init__(self) -> None:
        self._console = canvas(sys.stderr) if sys.stdout.isatty() else None
        self._shown = ""

    def show(self, text: str) -> None:
        """Show this in place of what is shown."""
        if self._console is None or text == self._shown:
            return
        from rich.text import Text  # noqa: PLC0415 - only a terminal needs it

        self.clear()
        line = Text(text, style="dim")
        line.truncate(self._console.width - 1)  # the terminal's own break could not be taken back
        self._shown = text  # first: an interrupt may come once it is printed, and takes it back
        self._console.print(line, end="")

    def clear(self) -> None:
        """Make room for what is printed."""
        if self._console is None or not self._shown:
            return
        from rich.control import Control  # noqa: PLC0415 - as above
        from rich.segment import ControlType  # noqa: PLC0415

        self._console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))
        self._shown = ""


class Screen:
    """stdout: in colours on a terminal, and aware of a reader that leaves."""

    def __init__(self) -> None:
        self._console: Console | None = None
        if sys.stdout.isatty():
            from rich.console import Console  # noqa: PLC0415 - only a terminal needs it

            self._console = Console(highlight=False)

    def show(self, lines: Iterable[Line]) -> None:
        """Print lines at once; BrokenPipeError if their reader has gone."""
        for line in lines:
            if self._console is None:
                typer.echo(line.text)
            else:
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
        poll.register(number, 0)  # errors and ends are reported without being asked for
        if any(found & (select.POLLERR | select.POLLNVAL) for _, found in poll.poll(0)):
            raise BrokenPipeError


def coloured(line: Line) -> Text:
    """A line as a terminal shows it."""
    from rich.text import Text  # noqa: PLC0415 - only a terminal needs it

    text = Text(line.text)
    if line.colour:
        text.stylize(line.colour, line.start, line.end)
    return text


class Shutdown:
    """Whether a signal asked the command to end. The main thread waits for it."""

    def __init__(self) -> None:
        self._requested = Flag()
        self._number = 0

    @property
    def requested(self) -> bool:
        """Whether one did."""
        return self._requested.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until one does; False if none does in time."""
        return self._requested.wait(seconds)

    def request(self, number: int, frame: FrameType | None) -> None:
        """A signal has come; the second one does not wait for an orderly end."""
        del frame
        if self._requested.is_set():
            raise KeyboardInterrupt
        self._number = number
        self._requested.set()

    def exit(self) -> None:
        """End with the exit code that the signal asks for, if there was one."""
        if self._number:
            raise typer.Exit(128 + self._number)


@contextmanager
def shutdown_on_signals() -> Iterator[Shutdown]:
    """Within, Ctrl-C and SIGTERM interrupt nothing: they only request a shutdown."""
    shutdown = Shutdown()
    before = {
        number: signal.signal(number, shutdown.request)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield shutdown
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
