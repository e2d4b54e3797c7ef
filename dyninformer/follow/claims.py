"""Who uses an informer that following brought into a factory."""

from __future__ import annotations

import weakref

from dyninformer.follow.needs import Informer
from dyninformer.store.fork_safety import fork_safe_lock


class Claims:
    """Which followers use an informer that a follower brought; the last one removes it."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()  # guards _users
        self._users: weakref.WeakKeyDictionary[Informer, set[int]] = weakref.WeakKeyDictionary()

    def make(self, informer: Informer) -> None:
        """A follower had it made."""
        with self._lock:
            self._users.setdefault(informer, set())

    def take(self, informer: Informer, follower: object) -> None:
        """This follower uses it."""
        with self._lock:
            if informer in self._users:
                self._users[informer].add(id(follower))

    def let_go(self, informer: Informer, follower: object) -> bool:
        """It does no longer; true if no follower does now, and a follower had it made."""
        with self._lock:
            users = self._users.get(informer)
            if users is None:
                return False
            users.discard(id(follower))
            return not users
