"""The garbage collector, while many objects are made of which none can be garbage yet.

Python looks for garbage after every 700 containers that were made and kept, and walks what it has
found alive again and again: a list of 50,000 objects, of 35 containers each, took five to seven
times as long as walking over the same objects one at a time. Here the first of its thresholds is
raised meanwhile, and put back. The alternatives are worse:

- To undo a `gc.disable` may undo the same call of somebody else. A threshold of ours is known by
  its number; if there is another one at the end, that one stays.
- However this ends, by an interrupt or in the child of a fork, the collector goes on working, at
  worst with a threshold that lets four million containers wait, until the next call puts it back.
- `gc.freeze` would hide from the collector what other threads have made, too.

The threshold is the interpreter's: what other threads leave in cycles waits as well, for the second
that a large list takes. The objects are walked once, by the first collection after that, which
costs about as much as walking over them one at a time.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
Thresholds: TypeAlias = tuple[int, int, int]

_RAISED: Final = 4_000_003
"""As many containers as 110,000 certificates have; a number that nobody else would choose."""

_usual: Thresholds | None = None  # what was found at last; written and read in one step


def made_at_once(make: Callable[[], T]) -> T:
    """What ``make`` returns, made without the collector where that can be had.

    Any thread may call it, also while another one does: the first to end puts the threshold back,
    and the others are only slower. A collector that is switched off, or has a higher threshold,
    stays as it is.
    """
    global _usual  # noqa: PLW0603 - the threshold is the interpreter's, and there is one of it
    found = gc.get_threshold()
    if found[0] != _RAISED:
        if not 0 < found[0] < _RAISED:
            return make()
        _usual = found
    usual = _usual
    if usual is None:  # the number is the user's own
        return make()
    try:
        gc.set_threshold(_RAISED, *usual[1:])
        return make()
    finally:
        if gc.get_threshold()[0] == _RAISED:
            gc.set_threshold(*usual)
