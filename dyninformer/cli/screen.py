"""Where a live command prints: in colours on a terminal, and aware of a reader that leaves."""

from __future__ import annotations

import select
import sys
from typing import TYPE_CHECKING, TextIO

import typer
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from dyninformer.cli.event_lines import Line, Lines


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


def canvas(where: TextIO) -> Console | None:
    """A console on which a picture can be drawn anew, None where that cannot be.

    A pipe has no use for one, and a dumb terminal (TERM=dumb) cannot take back what it shows.
    """
    console = Console(file=where, highlight=False) if where.isatty() else None
    return console if console is not None and not console.is_dumb_terminal else None


def coloured(line: Line) -> Text:
    """A line as a terminal shows it."""
    text = Text(line.text)
    if line.colour:
        text.stylize(line.colour, line.start, line.end)
    return text
