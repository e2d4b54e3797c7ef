"""Threads that are wanted, started where nobody waits with the informer's lock."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from weakref import WeakSet

from dyninformer.store.store import Store
from dyninformer.threads import in_forked_child

if TYPE_CHECKING:
    from dyninformer.delivery.worker import Worker

_log = logging.getLogger(__name__)


class Summons:
    """The workers of one informer, and those of them that have work and no thread.

    The informer's lock guards all of it. Starting a thread waits until that runs, which on a
    busy machine has taken half a second: so it is done without the lock.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._all: WeakSet[Worker] = WeakSet()
        self._wanted: set[Worker] = set()
        self.due = False
        """There are threads to start: call `start`."""
        in_forked_child(self, _wanted=set, due=False)

    def summon(self, worker: Worker) -> None:
        """Want a thread for a worker. Under the lock."""
        self._all.add(worker)
        self._wanted.add(worker)
        self.due = True

    def claim(self, worker: Worker) -> None:
        """The worker has its thread. Under the lock."""
        self._wanted.discard(worker)

    def dismiss(self) -> None:
        """Start no more threads; all queues are closed. Under the lock."""
        for worker in self._wanted:
            worker.dismissed()
        self._wanted.clear()
        self.due = False

    def unfinished(self) -> list[Worker]:
        """The workers that have a thread, or were promised one."""
        with self._store.lock:
            return [worker for worker in self._all if not worker.ended]

    def start(self) -> None:
        """Start what is wanted. Without the lock; it may be called by several at a time.

        One that is started twice is no harm: the second thread ends at once. Where the system
        has no more threads the work waits until the next change asks again; so it does when an
        interrupt comes between.
        """
        if not self.due:
            return
        try:
            with self._store.lock:
                self.due = False
                wanted = tuple(self._wanted)
            for worker in wanted:
                worker.start()
        except RuntimeError as error:
            self.due = True
            _log.warning("%s: no thread for a handler: %s", self._store.gvr, error)
        except BaseException:
            self.due = True
            raise
