"""Memory that was freed, given back to the system.

glibc keeps what was freed for the thread that it was freed in: a process of twenty threads has as
many arenas (eight for each processor, at most), and each keeps what its thread once needed at a
time, megabytes after a list. Measured over 44 rounds of faults: 10 MB were held, and 47 MB free
and kept. A growth that levels off so late looks like a leak, and is none: `malloc_trim` gives
back nearly all of it. What it costs are two milliseconds of CPU time for 16 arenas, more for large
heaps, and page faults later; so it is not done under a lock, and seldom.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from time import monotonic
from typing import Any, Final

EVERY: Final = 10.0
"""Seconds from what was freed to its being given back, so that much is given back at once."""


class Freed:
    """When freed memory is to be given back. For any thread: at worst it is done twice."""

    def __init__(self) -> None:
        self.due: float | None = None

    def note(self) -> None:
        """Some was freed that may be worth it; it is given back in a while."""
        if self.due is None:
            self.due = monotonic() + EVERY

    def give_back(self) -> None:
        """Give back what is due. It is asked often, and does something seldom."""
        if self.due is not None and monotonic() >= self.due:
            give_back_memory()


FREED: Final = Freed()
"""Of this process."""


def give_back_memory() -> None:
    """Let the C library return what it has free; elsewhere than in glibc, do nothing.

    At once: tables that were outgrown are freed in pieces of megabytes. glibc takes the sizes it
    has seen freed for those that will be wanted again and keeps as much, for ever: 8 MB after
    100,000 objects, a fifth of what those need.
    """
    FREED.due = None
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
