"""One request for all who ask for the same thing at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from typing import Generic, TypeVar

from dyninformer.threads import in_forked_child

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Whoever asks first works, on his own thread; who comes meanwhile shares what comes of it.

    An error is shared too. An interrupt (Ctrl-C) is the worker's alone: another of those
    who wait does the work then. Every wait can be interrupted.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # guards _flying
        self._flying: dict[K, tuple[int, Future[V]]] = {}
        in_forked_child(self, "_lock", _flying=dict)

    def share(self, key: K, work: Callable[[], V]) -> V:
        """What ``work`` returns, be it called here or by somebody who came before.

        Not by the same thread: a signal handler that asks in the middle of that one's work
        would wait for itself, and so does its own.
        """
        me = threading.get_ident()
        while True:
            mine: Future[V] | None = None
            with self._lock:
                worker, flying = self._flying.get(key, (me, None))
                if flying is None:
                    mine = Future()
                    self._flying[key] = me, mine
            if mine is not None:
                return self._fly(key, mine, work)
            if flying is None or worker == me:
                return work()
            try:
                return flying.result()
            except CancelledError:
                continue

    def _fly(self, key: K, mine: Future[V], work: Callable[[], V]) -> V:
        try:
            result = work()
        except Exception as error:
            self._land(key)
            mine.set_exception(error)
            raise
        except BaseException:
            self._land(key)
            mine.cancel()
            raise
        self._land(key)
        mine.set_result(result)
        return result

    def _land(self, key: K) -> None:
        """Before the outcome is told, so that who comes later asks anew."""
        with self._lock:
            self._flying.pop(key, None)
