"""What nothing can interrupt runs on threads that nobody has to wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dyninformer.errors import StoppedError
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import BlackHole
from dyninformer.transport.requests import Request, SilentError
from dyninformer.watching.background import BackgroundThreads
from dyninformer.watching.sockets import Call, Wires
from tests.transport.conftest import Make
from tests.transport.wires import (
    LIST,
    MAPS,
    Background,
    eventually,
    our_threads,
    whole,
)


class Gate:
    """An operation that goes on until it is let, and counts itself."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.begun = 0
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def __call__(self) -> str:
        """Wait, and bring something."""
        with self._lock:
            self.begun += 1
            self._now += 1
            self.most = max(self.most, self._now)
        assert self.open.wait(10)
        with self._lock:
            self._now -= 1
        return "brought"


@contextmanager
def background(most: int) -> Iterator[BackgroundThreads]:
    """Threads that are closed afterwards, and leave no thread."""
    found = BackgroundThreads("dyninformer connecting test", most)
    yield found
    found.close()
    eventually(lambda: our_threads() == [])


def test_a_shared_task_is_run_once_for_all_who_want_it() -> None:
    """A caller that comes while it is under way gets its result; a later one has it run anew."""
    gate = Gate()
    with background(most=4) as found:
        tasks = [
            Background(lambda: found.run("read", gate, Call(Wires()), shared=True))
            for _ in range(10)
        ]
        eventually(lambda: gate.begun == 1)
        assert found.under_way() != []
        gate.open.set()
        for task in tasks:
            task.join()
            assert task.result == "brought"
        assert gate.most == 1
        begun = gate.begun
        assert found.run("read", gate, Call(Wires()), shared=True) == "brought"
        assert gate.begun == begun + 1


def test_so_many_tasks_run_at_a_time_and_no_more() -> None:
    """The others wait for their turn."""
    gate = Gate()
    with background(most=3) as found:
        tasks = [Background(lambda: found.run("x", gate, Call(Wires()))) for _ in range(10)]
        eventually(lambda: gate.begun == 3)
        assert len(found.under_way()) == 3
        gate.open.set()
        for task in tasks:
            task.join()
            assert task.result == "brought"
        assert (gate.most, gate.begun) == (3, 10)


def test_a_result_that_nobody_waits_for_is_discarded() -> None:
    """Once, whether it comes before or after the caller that wanted it was ended."""
    for _ in range(50):
        gate, call, discarded = Gate(), Call(Wires()), list[str]()
        with background(most=1) as found:
            task = Background(
                lambda: found.run("x", gate, call, discard=discarded.append)  # noqa: B023
            )
            eventually(lambda: gate.begun == 1)  # noqa: B023
            gate.open.set()
            call.end()
            task.join()
        got = [] if task.error is not None else [task.result]
        assert [*got, *discarded] == ["brought"]


def test_a_task_that_nobody_wants_any_more_is_not_begun() -> None:
    """It was waiting for its turn."""
    gate = Gate()
    with background(most=1) as found:
        first = Background(lambda: found.run("x", gate, Call(Wires())))
        eventually(lambda: gate.begun == 1)
        call = Call(Wires())
        second = Background(lambda: found.run("x", gate, call))
        call.end()
        second.join()
        assert isinstance(second.error, StoppedError)
        gate.open.set()
        first.join()
    assert gate.begun == 1


def test_what_a_task_raises_is_raised_where_it_is_waited_for() -> None:
    """The next one is run all the same."""
    with background(most=1) as found:
        with pytest.raises(ZeroDivisionError):
            found.run("x", lambda: 1 // 0, Call(Wires()))
        assert found.run("x", lambda: 1, Call(Wires())) == 1
    with pytest.raises(StoppedError):
        found.run("x", lambda: 1, Call(Wires()))


def test_a_silent_server_is_given_up_after_the_deadline_and_no_sooner(
    server: ApiServer, make: Make, tmp_path: Path
) -> None:
    """By the request's own clock, on a connection that was used before."""
    source = make(server.client())
    whole(source.list(LIST))
    with server.faults.add(BlackHole()):
        began = time.monotonic()
        with pytest.raises(SilentError):
            source.list(Request(MAPS, deadline=0.3))
        assert time.monotonic() - began >= 0.3
