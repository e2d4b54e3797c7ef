"""The event loop in a thread."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from dyninformer.errors import StoppedError
from dyninformer.transport.loop import LoopThread, in_thread


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    """A loop that is stopped afterwards."""
    found = LoopThread("dyninformer loop of a test")
    yield found
    found.stop()
    assert found.join(10)


async def forever(begun: threading.Event, ended: threading.Event) -> None:
    """A coroutine that ends only when it is cancelled."""
    begun.set()
    try:
        await asyncio.sleep(3600)
    finally:
        ended.set()


def test_the_thread_starts_with_the_first_use(loop: LoopThread) -> None:
    """A factory that is made and never used costs no thread."""

    async def name() -> str:
        return threading.current_thread().name

    before = threading.active_count()
    assert threading.active_count() == before
    assert loop.run(name()) == "dyninformer loop of a test"


def test_an_error_of_a_coroutine_is_raised_where_it_is_waited_for(loop: LoopThread) -> None:
    """As if it had been called there."""

    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        loop.run(fail())


def test_a_wait_that_times_out_cancels_its_coroutine(loop: LoopThread) -> None:
    """Nothing is left of it."""
    begun, ended = threading.Event(), threading.Event()
    with pytest.raises(TimeoutError):
        loop.run(forever(begun, ended), timeout=0.05)
    assert ended.wait(10) or not begun.is_set()


def test_stopping_cancels_what_runs_and_refuses_what_comes(loop: LoopThread) -> None:
    """The thread ends."""
    begun, ended = threading.Event(), threading.Event()
    future = loop.begin(forever(begun, ended))
    assert begun.wait(10)
    loop.stop()
    loop.stop()
    assert ended.wait(10)
    assert loop.join(10)
    assert future.cancelled()
    with pytest.raises(StoppedError):
        loop.run(asyncio.sleep(0))
    loop.post(lambda: None)


def test_what_blocks_runs_on_a_thread_and_is_named(loop: LoopThread) -> None:
    """The loop goes on meanwhile."""
    go_on = threading.Event()
    future = loop.begin(in_thread(lambda: go_on.wait(10), "dyninformer blocking in a test"))
    loop.run(asyncio.sleep(0))
    loop.run(asyncio.sleep(0))
    assert loop.under_way() == ["dyninformer blocking in a test"]
    go_on.set()
    assert future.result(10) is True


def test_a_blocked_thread_holds_up_neither_the_end_of_the_loop_nor_of_the_program() -> None:
    """A credential plugin that hangs must not keep a script from ending."""
    script = (
        "import threading\n"
        "from dyninformer.transport.loop import LoopThread, in_thread\n"
        "loop = LoopThread('loop')\n"
        "loop.begin(in_thread(threading.Event().wait, 'hangs'))\n"
        "import time\n"
        "while not loop.under_way(): time.sleep(0.001)\n"
        "loop.stop()\n"
        "print(loop.join(10))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_s22_a_forked_child_has_a_stopped_loop(loop: LoopThread) -> None:
    """Its thread is the parent's."""
    loop.run(asyncio.sleep(0))
    child = os.fork()
    if not child:
        try:
            loop.run(asyncio.sleep(0))
        except StoppedError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    loop.run(asyncio.sleep(0))
