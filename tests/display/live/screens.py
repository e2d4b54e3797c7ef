"""A screen that keeps what it is shown, for tests."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from dyninformer.display.live.screens import Bundle
from dyninformer.threads import OwnThread

_PATIENCE = 20.0


class FakeScreen:
    """Keeps the text of every picture; a test waits for one that it wants."""

    look_every: float | None = None

    def __init__(self) -> None:
        self.pictures: queue.Queue[Bundle] = queue.Queue()
        self.looked_at = True

    def new_thread(self, name: str, run: Callable[[], None]) -> threading.Thread:
        """A plain one."""
        return OwnThread(self, name, run)

    def show(self, bundle: Bundle) -> None:
        """Keep the first."""
        self.pictures.put(bundle)

    def update(self, bundle: Bundle) -> None:
        """Keep the next."""
        self.pictures.put(bundle)

    def gone(self) -> bool:
        """Whether the test has looked away."""
        return not self.looked_at

    def until(self, condition: Callable[[str], bool]) -> Bundle:
        """The next picture with a text of which this is true."""
        while True:
            bundle = self.pictures.get(timeout=_PATIENCE)
            if condition(bundle["text/plain"]):
                return bundle
