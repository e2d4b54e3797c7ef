"""Real interrupts, again and again, for what has to bear them at whatever bytecode they come."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

Interrupted = Callable[[Callable[[], object]], bool]


def _run(work: Callable[[], object]) -> None:
    work()


def _interrupted(work: Callable[[], object]) -> bool:
    """Run it; whether an interrupt ended it."""
    try:
        _run(work)
    except KeyboardInterrupt:
        return True
    return False


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Only what runs there: one that came a moment later would end pytest."""
    while frame is not None:
        if frame.f_code is _run.__code__:
            raise KeyboardInterrupt
        frame = frame.f_back


@contextmanager
def storm(pause: float) -> Iterator[Interrupted]:
    """What is run with what this gives is interrupted so often; it says whether it was.

    Interrupts that come in a finalizer end nothing, as always; nor are they told.
    """
    if not hasattr(signal, "pthread_kill"):
        pytest.skip("no signals to threads here")
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals come to the main thread")
    main, over = threading.main_thread().ident or 0, threading.Event()

    def strike() -> None:
        while not over.wait(pause):
            signal.pthread_kill(main, signal.SIGUSR2)

    before, hook = signal.signal(signal.SIGUSR2, _interrupt), sys.unraisablehook
    thread = threading.Thread(target=strike)
    thread.start()
    sys.unraisablehook = lambda _: None
    try:
        yield _interrupted
    finally:
        sys.unraisablehook = hook
        over.set()
        thread.join()
        signal.signal(signal.SIGUSR2, before)
