"""How a command fails: a sentence on stderr, and an exit code that scripts can tell apart."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import typer

from dyninformer import errors
from dyninformer.display.text import visible_lines

FAILED: Final = 1
WRONG_USAGE: Final = 2
UNREACHABLE: Final = 3
OUT_OF_TIME: Final = 4
INTERRUPTED: Final = 130


_IN_A_SHELL: Final = {
    "Set KUBECONFIG, or pass kubeconfig=... or a client.": "Set KUBECONFIG, or give --kubeconfig.",
    "or pass namespace=... to watch one namespace": "or give -n to watch one namespace",
    "Pass context=...; it has": "Give --context; it has",
    ", or a function of the object": "",
    ", or pass a GroupVersionResource, for which nothing is looked up": "",
}
"""What the library advises a programmer, in the words of the command."""


class CommandError(errors.DynInformerError):
    """A failure that a command has worded itself, with its exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def in_a_shell(text: str) -> str:
    """A message of the library as it is said in a shell.

    >>> in_a_shell("Give it list and watch, or pass namespace=... to watch one namespace.")
    'Give it list and watch, or give -n to watch one namespace.'
    """
    for words, spoken in _IN_A_SHELL.items():
        text = text.replace(words, spoken)
    return text


def exit_code(error: BaseException) -> int:
    """The code that a failure ends with."""
    match error:
        case CommandError():
            return error.code
        case errors.UnreachableError() | errors.ConfigError() | PermissionError():
            return UNREACHABLE
        case errors.CacheSyncError() | errors.WaitTimeoutError():
            return OUT_OF_TIME
        case errors.UnreadableFileError():
            return FAILED
        case (
            errors.JSONPathError()
            | errors.SelectorError()
            | errors.UnknownResourceError()
            | errors.AmbiguousResourceError()
            | ValueError()
        ):
            return WRONG_USAGE
        case KeyboardInterrupt():
            return INTERRUPTED
        case _:
            return FAILED


def _said(error: Exception) -> str:
    """A message; of a file that could not be used, which one and why."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error)


@contextmanager
def reported() -> Iterator[None]:
    """Report a failure as one message, without a traceback, and exit with its code.

    An interrupt prints nothing.
    """
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        raise  # `silent_without_reader` ends the program
    except (errors.DynInformerError, ValueError, OSError) as error:
        with suppress(BrokenPipeError):
            typer.echo(f"error: {visible_lines(in_a_shell(_said(error)))}", err=True)
        raise typer.Exit(exit_code(error)) from None


@contextmanager
def silent_without_reader() -> Iterator[None]:
    """Exit silently if the reader of stdout or stderr has left (``| head``): it is no failure."""
    try:
        yield
    except (BrokenPipeError, SystemExit) as end:
        # typer and rich exit with 1 then, whatever they were printing.
        cause = end if isinstance(end, BrokenPipeError) else end.__context__
        if not isinstance(cause, BrokenPipeError):
            raise
        # A wrong usage keeps its code, though its message has no reader.
        raise SystemExit(getattr(cause.__context__, "exit_code", 0)) from None
    finally:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed from the beginning
            try:
                stream.flush()
            except BrokenPipeError:  # Python would flush it once more at exit, and fail
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
