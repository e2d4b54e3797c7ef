"""Credential plugins of many connections: few at a time, and of one configuration one.

A fleet of fifty clusters whose user entries name one plugin would start it fifty times at once. So
those that come while it runs take what it says; others wait for a place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from dyninformer.threads import ReentrantLock, in_forked_child

MOST: Final = 8
"""Plugins that run at a time, if none of them hangs."""
_PATIENCE: Final = 10.0  # seconds that a place is waited for: one that hangs may never give its own


class PluginRuns:
    """What loads a configuration, by running a plugin. Any thread."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = ReentrantLock()  # guards _flights
        self._flights: dict[str, Future[Any]] = {}
        self._places = threading.Semaphore(most)
        in_forked_child(
            self, "_lock", _flights=dict, _places=lambda: threading.Semaphore(self._most)
        )

    def load(self, key: str | None, load: Callable[[], Any]) -> tuple[Any, bool]:
        """What ``load`` returns, and whether another call of the same key has made it.

        Without a key it is nobody else's. What another call raises is raised here as well.
        """
        with self._lock:
            flight = self._flights.get(key) if key is not None else None
            mine = flight is None
            if flight is None:
                flight = Future()
                if key is not None:
                    self._flights[key] = flight
        if not mine:
            return flight.result(), True
        placed = self._places.acquire(timeout=_PATIENCE)
        try:
            flight.set_result(load())
        except BaseException as error:
            flight.set_exception(error)
            raise
        finally:
            with self._lock:
                if key is not None:
                    self._flights.pop(key, None)
            if placed:
                self._places.release()
        return flight.result(), False


RUNS: Final = PluginRuns()
"""Of all connections of this process."""
