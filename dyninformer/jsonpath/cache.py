"""Expressions that were read before: parsing costs a hundred times what evaluating does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from cachetools import LRUCache

from dyninformer.threads import in_forked_child

_SIZE = 1024

Parsed = TypeVar("Parsed")


class ExpressionCache:
    """The last thousand expressions, by their text; may be used from any thread.

    The lock guards the cache alone. Two threads that miss at the same time both parse, and
    either result is as good: parsed expressions are immutable.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: LRUCache[tuple[object, str, bool], object] = LRUCache(_SIZE)
        in_forked_child(self, "_lock", _known=partial(LRUCache, _SIZE))

    def get(
        self, parse: Callable[[str, bool], Parsed], expression: str, flag: bool = True
    ) -> Parsed:
        """What ``parse`` makes of the expression and the flag, now or at an earlier call."""
        key = (parse, expression, flag)
        with self._lock:
            known = self._known.get(key)
        if known is None:
            known = parse(expression, flag)
            with self._lock:
                self._known[key] = known
        return known  # type: ignore[return-value] # the key holds the function that made it
