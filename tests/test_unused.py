"""An informer that nobody holds is closed: a notebook's cell that is run twice leaves one."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from dyninformer import OpenInformer, open_informer
from dyninformer.testing import ApiServer

OURS = ("dyninformer reflector", "dyninformer CRD", "dyninformer timers", "dyninformer handler")


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """One for all tests."""
    with ApiServer() as started:
        yield started


_before: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def _of_others() -> Iterator[None]:
    """What tests before have left, and may be about to end, is theirs."""
    _before.update(threading.enumerate())
    yield
    _before.clear()


def watchers() -> list[threading.Thread]:
    """The threads of informers that this test has opened."""
    found = [each for each in threading.enumerate() if each.name.startswith(OURS)]
    return [each for each in found if each not in _before]


def watching() -> list[str]:
    """Their names."""
    return [each.name for each in watchers()]


def stands(use: weakref.ref[object]) -> str:
    """Whether an informer is held, and where each of its threads stands: what a failure says."""
    frames = sys._current_frames()
    stacks = [
        "".join(traceback.format_stack(frames[each.ident]))
        for each in watchers()
        if each.ident in frames
    ]
    return "\n".join(["not held" if use() is None else "still held", *stacks])


def until(condition: Callable[[], bool]) -> bool:
    """Whether it comes true, in good time."""
    end = time.monotonic() + 20
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


@contextmanager
def uncollected() -> Iterator[None]:
    """Nothing is found by the garbage collector meanwhile."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def opened(server: ApiServer, **options: Any) -> OpenInformer:
    """An informer of namespaces."""
    return open_informer("v1/namespaces", client=server.client(), **options)


def test_s42_what_the_name_held_is_closed_at_once(server: ApiServer) -> None:
    """Threads, objects and connections; without a collection, with a warning that says how."""
    with uncollected(), pytest.warns(ResourceWarning, match=r"with open_informer\(") as warned:  # noqa: PT031 - the end of its use is in it
        found = opened(server)
        use: weakref.ref[object] = weakref.ref(found.informer.use)
        store = found.informer._store
        source = weakref.ref(found.informer.runtime.source)
        found = opened(server)
        assert until(lambda: len(watching()) == 1), stands(use)
        assert until(lambda: len(store) == store.held_bytes == 0)
        assert store.index_values("namespace") == []
    assert [each.filename for each in warned] == [__file__]
    # Once its last thread is gone, which may be after this has begun to look.
    assert until(lambda: bool(gc.collect() >= 0) and source() is None)
    assert found.informer.status().live
    assert len(found.lister) >= 4
    found.close()
    assert until(lambda: not watching())


def test_s42_what_is_read_of_it_goes_on(server: ApiServer) -> None:
    """A loop over its objects, and a snapshot, have what there was when they were begun."""
    with pytest.warns(ResourceWarning):  # noqa: PT031 - the end of its use is in it
        found = opened(server, history=2)
        store, objects = found.informer._store, iter(found.lister)
        snapshot, keys = found.snapshot(), found.lister.keys()
        del found
        assert until(lambda: len(store) == 0)
    assert {each["metadata"]["name"] for each in objects} == set(keys)
    assert snapshot.get("default")["kind"] == "Namespace"


@pytest.mark.parametrize(
    "part",
    [
        lambda found: found.informer,
        lambda found: found.lister,
        lambda found: found.informer.store,
        lambda found: found.informer.indexer,
        lambda found: found.informer.events(),
        lambda found: found.informer.add_event_handler(on_add=len),
        lambda found: found.informer.work_queue(),
        lambda found: found.lister.by_namespace("default"),
        lambda found: found.snapshot,
    ],
    ids=lambda part: "",
)
def test_s42_what_somebody_holds_a_part_of_stays(
    server: ApiServer, part: Callable[[OpenInformer], object]
) -> None:
    """Until that goes, too."""
    held: object = part(opened(server))
    gc.collect()
    assert len(watching()) >= 1
    with pytest.warns(ResourceWarning):  # noqa: PT031 - the end of its use is in it
        del held
        gc.collect()
    assert until(lambda: not watching())


def test_s42_what_was_closed_says_nothing(server: ApiServer) -> None:
    """By ``close`` or ``with``; and a snapshot holds no informer."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = opened(server)
        snapshot = found.snapshot()
        assert found.close()
        del found
        with opened(server):
            pass
        gc.collect()
    assert len(snapshot) >= 4
    assert not watching()


def test_s42_it_ends_from_a_finalizer_whatever_lock_is_held(server: ApiServer) -> None:
    """The thread that drops it holds the store's lock, and another waits for that."""
    found = opened(server)
    lock = found.informer._store.lock
    begun, done = threading.Event(), threading.Event()

    def wait_for_it() -> None:
        begun.set()
        with lock:
            done.set()

    with pytest.warns(ResourceWarning):  # noqa: PT031 - the end of its use is in it
        with lock:
            threading.Thread(target=wait_for_it).start()
            begun.wait(10)
            del found
            gc.collect()
        assert done.wait(10)
    assert until(lambda: not watching())


def test_s42_opened_a_hundred_times_nothing_is_left(server: ApiServer) -> None:
    """No thread and no connection more than before."""
    files = Path("/proc/self/fd")
    before = len(os.listdir(files)) if files.exists() else 0
    client = server.client()
    with pytest.warns(ResourceWarning):  # noqa: PT031 - the end of its use is in it
        for _ in range(30):
            found = open_informer("v1/namespaces", client=client)
        del found
        gc.collect()
    assert until(lambda: not watching())
    if before:
        assert until(lambda: len(os.listdir(files)) <= before + 2)


CELL = """
import os, sys, time
from dyninformer import open_informer
found = open_informer("v1/namespaces", kubeconfig=sys.argv[1])
stream = found.informer.events()
next(stream)
print("open", flush=True)
{end}
time.sleep(60)
"""


ENDS = ("SIGTERM", "SIGKILL", "os._exit(3)", "sys.exit()")


@pytest.mark.skipif(sys.platform == "win32", reason="it has other signals")
def test_s42_a_process_that_ends_leaves_nothing_behind(server: ApiServer) -> None:
    """A kernel that is restarted, however: no connection at the server, and no helper process."""
    kubeconfig = str(server.kubeconfig())
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", CELL.format(end=end), kubeconfig],
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                    text=True,
                )
            )
            for end in (*("" for each in ENDS if each.startswith("SIG")), *ENDS[2:])
        ]
        for process, end in zip(processes, ENDS, strict=True):
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            if end.startswith("SIG"):
                process.send_signal(getattr(signal, end))
        for process in processes:
            process.wait(20)
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    connections = Path("/proc/net/tcp")
    if connections.exists():
        port = f":{int(server.url.rpartition(':')[2].rstrip('/')):04X} "

        def is_open(line: str) -> bool:
            return port in line and " 01 " in line

        assert until(lambda: not any(map(is_open, connections.read_text().splitlines())))
