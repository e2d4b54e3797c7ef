"""One object that is waited for: a bell that rings when it changes, and what became of it."""

from __future__ import annotations

from collections.abc import Callable

from dyninformer.delivery.events import Event
from dyninformer.delivery.queue import merged
from dyninformer.store.decide import Delta
from dyninformer.store.store import Store
from dyninformer.threads import Bell, in_forked_child


class KeyWatch:
    """What became of one key since it was last asked. It holds one step, however much happens.

    So a thousand waits cost a change of another key nothing. The informer's lock guards it.
    """

    def __init__(
        self,
        store: Store,
        key: str,
        add: Callable[[KeyWatch], None],
        remove: Callable[[KeyWatch], None],
    ) -> None:
        """``add`` and ``remove`` take the lock, and say so to who publishes."""
        self.key = key
        self.bell = Bell()
        """Rings when there is news."""
        self.closed = False
        """Nothing comes any more."""
        self._store = store
        self._add = add
        self._remove = remove
        self._step: Delta | None = None
        self._told = False
        in_forked_child(self, "bell", closed=True)

    def open(self) -> None:
        """From now on changes count. StoppedError once the informer has stopped."""
        self._add(self)

    def close(self) -> None:
        """No more changes. Idempotent, also after an interrupt."""
        self._remove(self)

    def tell(self, change: Delta) -> None:
        """The key has changed. Under the lock."""
        self._told = True
        try:
            self._step = change if self._step is None else merged(self._step, change)
        finally:  # with no memory for the step, the cache is looked at all the same
            self.bell.ring()

    def end(self) -> None:
        """Nothing will come any more."""
        self.closed = True
        self.bell.ring()

    def has_news(self) -> bool:
        """Something has changed since `take`, or it is closed."""
        return self._told or self.closed

    def take(self) -> Event | None:
        """What has become of the key since the last call: one step; None if it is as it was."""
        with self._store.lock:
            step, self._step = self._step, None
            self._told = False
        return None if step is None else Event(self._store.gvr, self._store.codec, step)
