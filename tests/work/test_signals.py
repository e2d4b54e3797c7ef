"""`WorkQueue.run` on the main thread, and the signals that ask a program to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from dyninformer import WorkQueue
from tests.config_maps import PATIENCE

BOTH = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture
def queue() -> Iterator[WorkQueue]:
    """A queue with two keys, for one worker."""
    with WorkQueue() as found:
        found.add("a")
        found.add("b")
        yield found


@pytest.fixture
def handle() -> Iterator[Callable[..., object]]:
    """Sets signal handlers, and puts the previous ones back afterwards."""
    before = {number: signal.getsignal(number) for number in BOTH}
    yield signal.signal
    for number, handler in before.items():
        signal.signal(number, handler)


def kill(number: int) -> None:
    """Send a signal to this process, which Python handles on the main thread."""
    os.kill(os.getpid(), number)


_PROGRAM = """
import signal, threading, time
from dyninformer import WorkQueue
queue = WorkQueue()
queue.add("a")
queue.add("b")
def reconcile(key):
    print("at work on", key, flush=True)
    while signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        time.sleep(0.01)  # the first signal puts the previous handlers back
    print("heard", flush=True)
    %s
    print("finished", key, flush=True)
queue.run(reconcile, grace=30)
print("returned, left:", queue.depth, queue.closed, flush=True)
"""


def program(last: str) -> subprocess.Popen[str]:
    """A program that is at work, and does this after the first signal."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM % last],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at work on a\n"
    return process


@pytest.mark.parametrize("number", BOTH)
def test_a_signal_ends_the_run_when_the_key_at_work_is_finished(number: int) -> None:
    """The program goes on after it; what waits stays in the queue."""
    process = program("pass")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (out, err) == ("heard\nfinished a\nreturned, left: 1 False\n", "")
    assert process.returncode == 0


@pytest.mark.parametrize("number", BOTH)
def test_a_second_signal_ends_the_program_at_once(number: int) -> None:
    """As it would without `grace`."""
    process = program("threading.Event().wait()")
    assert process.stdout is not None
    process.send_signal(number)
    assert process.stdout.readline() == "heard\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert out == ""
    assert ("KeyboardInterrupt" in err) is (number == signal.SIGINT)
    assert process.returncode == -number


def test_a_run_returns_when_the_grace_is_over(
    queue: WorkQueue, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the key that is still at work."""
    before = signal.getsignal(signal.SIGTERM)
    go_on = threading.Event()

    def reconcile(key: str) -> None:
        kill(signal.SIGTERM)
        go_on.wait(PATIENCE)

    queue.run(reconcile, grace=0.05)
    assert "still at work after 0.05 s: a" in caplog.text
    assert signal.getsignal(signal.SIGTERM) is before
    go_on.set()


@pytest.mark.parametrize("number", BOTH)
def test_a_handler_of_the_program_is_called_and_what_it_raises_comes_after_the_work(
    queue: WorkQueue, handle: Callable[..., object], number: int
) -> None:
    """It is called at the signal, and is back afterwards."""
    heard = threading.Event()
    finished: list[str] = []

    def own(number: int, frame: FrameType | None) -> None:
        heard.set()
        raise SystemExit(3)

    def reconcile(key: str) -> None:
        kill(number)
        assert heard.wait(PATIENCE)
        finished.append(key)

    handle(number, own)
    with pytest.raises(SystemExit):
        queue.run(reconcile, grace=PATIENCE)
    assert finished == ["a"]
    assert signal.getsignal(number) is own


def test_an_ignored_signal_stays_ignored(queue: WorkQueue, handle: Callable[..., object]) -> None:
    """As Ctrl-C is in a program that a shell has put into the background."""
    done: list[str] = []

    def reconcile(key: str) -> None:
        kill(signal.SIGINT)
        done.append(key)
        if not queue.depth:
            queue.close()

    handle(signal.SIGINT, signal.SIG_IGN)
    queue.run(reconcile, grace=PATIENCE)
    assert done == ["a", "b"]
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.parametrize(("grace", "on_main"), [(None, True), (PATIENCE, False)])
def test_handlers_are_left_alone_without_grace_and_in_other_threads(
    queue: WorkQueue, grace: float | None, on_main: bool
) -> None:
    """Python lets the main thread alone handle signals."""
    before = [signal.getsignal(number) for number in BOTH]
    seen: list[object] = []

    def reconcile(key: str) -> None:
        seen.append([signal.getsignal(number) for number in BOTH])
        queue.close()

    def run() -> None:
        queue.run(reconcile, grace=grace)

    if on_main:
        run()
    else:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join(PATIENCE)
    assert seen == [before]


def test_grace_is_a_number_of_seconds(queue: WorkQueue) -> None:
    """Anything else is refused before any work begins."""
    with pytest.raises(ValueError, match="grace is -1: give a number of seconds from 0 on"):
        queue.run(print, grace=-1)
