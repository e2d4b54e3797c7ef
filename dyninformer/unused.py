"""End an informer to which no references remain, and free its objects (S42)."""

from __future__ import annotations

import _thread
import sys
import warnings
import weakref
from contextlib import suppress
from typing import Final, TypeAlias

from dyninformer.informer import Ending, SharedIndexInformer, Use

Unused: TypeAlias = "weakref.finalize[[Ending, str, str, str, int], Use]"
Place: TypeAlias = tuple[str, int]
"""A file and a line in it."""

_HOW: Final = "`with open_informer(...) as opened:`, or `opened.close()`"

_endings: set[Ending] = set()
"""Of those that are neither closed nor ended. Any thread, and a finalizer, changes it."""


def opened_at() -> Place:
    """Return the line of the caller that opens an informer: the first outside this package."""
    caller = sys._getframe(1)  # noqa: SLF001 - to show the line that opened it
    while caller.f_back is not None and caller.f_globals.get("__name__", "") in _OURS:
        caller = caller.f_back
    return caller.f_code.co_filename, caller.f_lineno


def when_unused(
    informer: SharedIndexInformer, ending: Ending, where: Place, how: str = _HOW
) -> Unused:
    """End an informer once no references to it, or to a part of it, remain.

    ``where`` it was opened, and ``how`` to close it, are for the warning.
    """
    _endings.add(ending)
    unused = weakref.finalize(informer.use, _end_unused, ending, str(informer.gvr), how, *where)
    unused.atexit = False  # `end_all` does it, and it is no mistake then
    return unused


def closed(unused: Unused, ending: Ending) -> None:
    """It is closed by its user: nothing is left to be done."""
    unused.detach()
    _endings.discard(ending)


def end_all() -> None:
    """End those that are in use, at exit; wait for nothing."""
    for each in list(_endings):
        each.signal()


_OURS: Final = (__name__, "dyninformer.factory", "dyninformer.aio.factory")


def _end_unused(ending: Ending, name: str, how: str, file: str, line: int) -> None:
    """End an informer, from a finalizer: in the middle of anything, whatever locks are held.

    So it takes none, waits for nobody, and has another thread do the rest. Where the system has no
    more threads it goes on until the interpreter exits.
    """
    with suppress(RuntimeError):
        _thread.start_new_thread(_end_now, (ending,))
    warnings.warn_explicit(
        f"no references to this informer of {name} remain, so it is closed. Close it yourself: "
        f"{how}",
        ResourceWarning,
        file,
        line,
    )


def _end_now(ending: Ending) -> None:
    try:
        ending.signal()
    finally:
        _endings.discard(ending)
    ending.let_go()
