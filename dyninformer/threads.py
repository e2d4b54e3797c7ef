"""Threads that know whose code they run, so that stopping never waits for itself."""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable

from dyninformer.forks import ended_in_child
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


def is_interrupt(error: BaseException) -> bool:
    """It may be a signal's, and not of the code that it came out of.

    Ctrl-C, and what a signal handler raises, SystemExit above all, strike the main thread alone.
    Elsewhere the code that ran has raised it.
    """
    return (
        not isinstance(error, Exception) and threading.current_thread() is threading.main_thread()
    )


class Aside:
    """Work that is done soon, on a thread of the moment, once for all who ask before it begins."""

    def __init__(self, work: Callable[[], None]) -> None:
        """``work`` sees for itself what there is to do."""
        self._work = work
        self._asked = False
        ended_in_child(self)

    def ask(self) -> None:
        """Have it done. It takes no lock and waits for nobody, unlike ``Thread.start``.

        So it may be called with locks held, and by a finalizer, which runs in the middle of
        anything. Where the system has no more threads it is not done: the next who asks tries.
        """
        if self._asked or sys.is_finalizing():
            return
        self._asked = True
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError:
            self._asked = False

    def _run(self) -> None:
        self._asked = False  # before looking: who comes later asks again
        self._work()

    def _after_fork(self) -> None:
        self._asked = False
