"""The garbage collector, while many objects are made of which none can be garbage yet.

Python looks for garbage after every 700 containers that were made and kept, and walks what it has
found alive again and again: a list of 50,000 objects, of 35 containers each, took five to seven
times as long as walking over the same objects one at a time. Here the first of its thresholds is
raised meanwhile, and put back. The alternatives are worse:

- To undo a `gc.disable` may undo the same call of somebody else. A threshold of ours is known by
  its number; if there is another one at the end, that one stays. A call puts back the thresholds
  that the program set last, not those that it began with: the program may have set others
  since, and another thread may have raised those again.
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
from functools import partial
from operator import call
from typing import Any, Final, TypeAlias, TypeVar, cast

from dyninformer.threads import ReentrantLock, in_forked_child

T = TypeVar("T")
Thresholds: TypeAlias = tuple[int, int, int]

_RAISED: Final = 4_000_003
"""As many containers as 110,000 certificates have; a number that nobody else would choose."""


def made_at_once(make: Callable[[], T]) -> T:
    """Return what ``make`` returns, and keep the collector from running meanwhile if possible.

    Any thread may call it, also while another one does: the first to end puts the thresholds back,
    and the others are only slower. Thresholds that the program sets meanwhile stay. A collector
    that is switched off, or has a higher threshold, stays as it is.
    """
    if not 0 < gc.get_threshold()[0] <= _RAISED:
        return make()
    _collector.wait()
    try:
        return make()
    finally:
        _collector.go_on()


class _Collector:
    """The collector's thresholds, and those of the program while they are raised."""

    def __init__(self) -> None:
        # Guards _usual. Reentrant, since a finalizer may read a list while its thread holds it.
        self._lock = ReentrantLock()
        self._usual: Thresholds | None = None
        in_forked_child(self, "_lock")

    def wait(self) -> None:
        """Raise the thresholds."""
        with self._lock:
            found = _exchange(_RAISED)
            if found[0] != _RAISED:
                self._usual = found

    def go_on(self) -> None:
        """Put the program's thresholds back, unless it has set others meanwhile."""
        with self._lock:
            if self._usual is not None and gc.get_threshold()[0] == _RAISED:
                found = _exchange(*self._usual)
                if found[0] != _RAISED:  # set by the program since the line above
                    gc.set_threshold(*found)


def _exchange(*thresholds: int) -> Thresholds:
    """Set thresholds, and return the ones before, in one step.

    Between two statements another thread could set thresholds, which would be lost. `map` makes
    both calls without going back to the interpreter.
    """
    run: Callable[[Any], Any] = call
    found, _ = map(run, (gc.get_threshold, partial(gc.set_threshold, *thresholds)))
    return cast(Thresholds, found)


_collector: Final = _Collector()
