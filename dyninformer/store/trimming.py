"""Memory given back to the system after a large state was built."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, Final

WORTH_IT: Final = 10_000
"""Objects that came new by one relist: with fewer there is little to give back."""


def give_back_memory() -> None:
    """Let the C library return what it has free; elsewhere than in glibc, do nothing.

    Tables that were outgrown are freed in pieces of megabytes. glibc takes the sizes it has seen
    freed for those that will be wanted again and keeps as much, for ever: 8 MB after 100,000
    objects, a fifth of what those need. It takes a few milliseconds, so: not under a lock.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
