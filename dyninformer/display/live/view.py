"""One thread that follows an informer and paints: what every live view has behind it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from functools import partial
from typing import Final, Protocol
from weakref import WeakValueDictionary

from dyninformer.display.live.rows import Found
from dyninformer.display.live.screens import NewThread, on_rerun
from dyninformer.display.live.source import Headings, Source
from dyninformer.display.live.standing import Standing, standing_of
from dyninformer.threads import Flag, OwnThread, ReentrantLock, in_forked_child
from dyninformer.types import Key

_logger = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 0.2
"""Between two paintings, however much happens."""
_FIRST_SECONDS: Final = 0.5
_JOIN_SECONDS: Final = 2.0


class Painter(Protocol):
    """What is painted, and where. All of it is called by the view's thread, and by no other."""

    def begin(self, headings: Headings, found: Found) -> None:
        """Take the columns, and what is there at the beginning."""

    def change(self, found: Found, now: float) -> object:
        """Take what became of objects."""

    def keys(self) -> Iterable[Key]:
        """The keys of all objects that it knows of."""

    def paint(self, standing: Standing, now: float) -> bool:
        """Show it, if there is something to be shown; False if nobody looks any more."""

    def wanted(self) -> bool:
        """Somebody looks. By any thread."""

    def due(self, now: float) -> float | None:
        """When to paint again although nothing has happened; None if never."""


class View:
    """Follows an informer from `start` on, until `stop`, the informer's end, or nobody looks.

    What happens between two paintings is one painting; without anything to show there is none.
    The thread sleeps meanwhile, and holds up neither the informer nor who looks. Any thread may
    call the methods.
    """

    def __init__(
        self,
        source: Source,
        painter: Painter,
        name: str | None,
        like: str,
        new_thread: NewThread | None = None,
    ) -> None:
        """It takes the place of the one of the same name.

        Where a kernel does not tell that a cell is run again, and no name is given, it is called
        ``like`` what it shows, so that the same call takes its own place.
        """
        self._source = source
        self._painter = painter
        self._new_thread = new_thread or partial(OwnThread, self)
        self._wake = Flag()  # there is something to look at
        self._soon = Flag()  # and somebody waits for it
        self._painted = Flag()
        # Guards _thread, and the decision to start one; nothing is called under it.
        self._lock = ReentrantLock()
        self._stopped = False
        self._over = False  # it has ended with its informer
        self._failed: Exception | None = None  # why it has ended: by the thread, before _painted
        self._thread: threading.Thread | None = None
        source.on_news(self._wake.set)
        told = on_rerun(self.stop)
        self.name = name or ("" if told else like)
        if self.name:
            before = _named.pop(self.name, None)
            _named[self.name] = self
            if before is not None:
                before.stop()
        in_forked_child(self, "_lock", "_wake", "_soon", "_painted", _stopped=True, _thread=None)

    @property
    def running(self) -> bool:
        """It follows the informer."""
        return self._thread is not None

    @property
    def begun(self) -> bool:
        """It was started, and has painted, and it has not failed."""
        return self._painted.is_set() and self._failed is None

    @property
    def over(self) -> bool:
        """It has ended for good: nothing changes any more in what it has painted."""
        return self._over

    def start(self) -> bool:
        """`begin`; True if it has painted in the half second that this waits for the first time.

        If it has failed instead, as it does for a column that is not there, this raises the error.
        """
        self.begin()
        painted = self._painted.wait(_FIRST_SECONDS)
        if self._failed is not None:
            raise self._failed
        return painted

    def begin(self) -> None:
        """Follow the informer, and paint, unless it was stopped. Idempotent.

        A view that nobody looked at any more begins anew.
        """
        with self._lock:
            if self._stopped or self._over or self._thread is not None:
                return
            name = f"dyninformer live {self._source.gvr}"
            thread = self._thread = self._new_thread(name, self._run)
        thread.start()

    def stop(self) -> None:
        """End it: the last picture stays. Idempotent."""
        thread = self._thread
        self._stopped = True
        self.look()
        if thread is None:
            self._source.let_go()
        elif thread is not threading.current_thread():
            thread.join(_JOIN_SECONDS)

    def look(self) -> None:
        """Have it look at once: somebody has asked for something."""
        self._wake.set()
        self._soon.set()

    def _run(self) -> None:
        try:
            with self._source as source:
                self._painter.begin(source.headings(), source.all())
                while self._paint(source):
                    self._wait()
        except Exception as error:
            _logger.exception("the live view of %s has failed", self._source.gvr)
            self._failed = error.with_traceback(None)  # its frames hold what is to go
            self._stopped = True
        finally:
            with self._lock:
                self._thread = None
                self._over = self._stopped or self._source.ended
            if self._over:
                self._source.let_go()
            elif self._painter.wanted():
                self.begin()  # somebody has asked while this was about to end
            self._painted.set()  # if it has failed: whoever waits for it finds it ended

    def _paint(self, source: Source) -> bool:
        """Take what has come, and paint; whether it goes on."""
        self._wake.clear()  # first: what comes from here on is for the next time
        self._soon.clear()
        ended = self._stopped or source.closed
        found = source.take()
        if ended and source.closed:  # what its queue still had is lost: look at the cache itself
            found = {**dict.fromkeys(self._painter.keys()), **source.all()}
        now = time.monotonic()
        if found:
            self._painter.change(found, now)
        closed = ended and source.closed
        standing = standing_of(source.status(), stopped=self._stopped, closed=closed)
        looks = self._painter.paint(standing, now)
        self._painted.set()
        return looks and not ended

    def _wait(self) -> None:
        """A fifth of a second, unless somebody asks; then until there is something to look at."""
        self._soon.wait(PAUSE_SECONDS)
        due = self._painter.due(time.monotonic())
        self._wake.wait(None if due is None else max(0.0, due - time.monotonic()))


class LiveView:
    """A live view as its user has it: behind each is one `View`."""

    _view: View

    @property
    def name(self) -> str:
        """By which another one takes its place; empty if its cell decides."""
        return self._view.name

    @property
    def running(self) -> bool:
        """Whether it follows the cluster."""
        return self._view.running

    def stop(self) -> None:
        """End it: what is on the screen stays, and says so. Idempotent."""
        self._view.stop()


_named: WeakValueDictionary[str, View] = WeakValueDictionary()
