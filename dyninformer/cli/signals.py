"""Ends of a command that runs until somebody ends it, in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from dyninformer.waking import Flag


class Ending:
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
def ended_by_signals() -> Iterator[Ending]:
    """Ctrl-C and SIGTERM interrupt nothing within: they are told, and looked at where it suits."""
    ending = Ending()
    before = {
        number: signal.signal(number, ending.ask) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
