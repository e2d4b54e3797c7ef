"""Signals that ask a run of a work queue to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def ended_by_signals(end: Callable[[], object]) -> Iterator[None]:
    """Call ``end`` at the first SIGTERM or Ctrl-C instead of ending the program.

    From then on, and at the end of the block, the previous handlers are back, so that a second
    signal has its usual effect. A handler of the program's own is called after ``end``. A signal
    that is ignored stays so. Python lets the main thread alone handle signals: in any other thread
    this does nothing.
    """
    previous: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in previous.items():
            if signal.getsignal(number) is hear:  # else the program has set another one meanwhile
                signal.signal(number, handler)

    def hear(number: int, frame: FrameType | None) -> None:
        restore()
        end()
        handler = previous[number]
        if callable(handler) and handler is not signal.default_int_handler:
            handler(number, frame)

    try:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                # None stands for a handler that was not set in Python, and cannot be put back.
                if handler not in (None, signal.SIG_IGN):
                    previous[number] = handler  # first: the signal may come at once
                    signal.signal(number, hear)
        yield
    finally:
        restore()
