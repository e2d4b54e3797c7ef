"""An informer that nobody holds any more is ended, and what it held is let go of (S42)."""

from __future__ import annotations

import _thread
import sys
import warnings
import weakref
from contextlib import suppress
from typing import TypeAlias

from dyninformer.informer import Ending, SharedIndexInformer, Use

Unused: TypeAlias = "weakref.finalize[[Ending, str, str, int], Use]"

_endings: set[Ending] = set()
"""Of those that are neither closed nor ended. Any thread, and a finalizer, changes it."""


def when_unused(informer: SharedIndexInformer, ending: Ending) -> Unused:
    """Have an informer ended once its user holds nothing of it any more.

    The line that is warned of is the first outside of this package.
    """
    caller = sys._getframe(1)  # noqa: SLF001 - to show the line that opened it
    while caller.f_back is not None and _is_ours(caller.f_globals.get("__name__", "")):
        caller = caller.f_back
    where = caller.f_code.co_filename, caller.f_lineno
    _endings.add(ending)
    unused = weakref.finalize(informer.use, _end_unused, ending, str(informer.gvr), *where)
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


def _is_ours(module: str) -> bool:
    return module in (__name__, "dyninformer.factory")


def _end_unused(ending: Ending, name: str, file: str, line: int) -> None:
    """Nobody holds it. This may run in the middle of anything, whatever locks its thread holds.

    So it takes none, waits for nobody, and has another thread do the rest. Where the system has no
    more threads it goes on until the interpreter exits.
    """
    with suppress(RuntimeError):
        _thread.start_new_thread(_end_now, (ending,))
    warnings.warn_explicit(
        f"nobody holds this informer of {name} any more, so it is closed. Close it yourself: "
        "`with open_informer(...) as opened:`, or `opened.close()`",
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
