"""Threads that know whose code they run, so that stopping never waits for itself."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dyninformer.waking import bearable


class OwnThread(threading.Thread):
    """A named daemon thread that works for ``owner``, a factory's or an informer's lifetime."""

    def __init__(self, owner: object, name: str, target: Callable[[], None]) -> None:
        super().__init__(name=name, target=target, daemon=True)
        self.owner = owner

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, with any timeout, ``inf`` too.

        Not for one that has not begun: a signal handler may come in the middle of its start.
        """
        if self.is_alive():
            super().join(bearable(timeout))


def spawn(owner: object, name: str, target: Callable[[], None]) -> OwnThread:
    """Start a daemon thread for ``owner``. Its name is what a stack dump or a report shows."""
    thread = OwnThread(owner, name, target)
    thread.start()
    return thread


def runs_for(owner: object) -> bool:
    """This thread runs code of ``owner``: a callback, a transform, a condition.

    Whoever stops something from such a thread signals and returns: waiting could be
    waiting for itself (S11).
    """
    thread = threading.current_thread()
    return isinstance(thread, OwnThread) and thread.owner is owner
