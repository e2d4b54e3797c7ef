"""Forks, interrupts and ends: S22, S23, S34."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import dyninformer
from dyninformer import (
    DynamicSharedInformerFactory,
    GenericInformer,
    GroupVersionResource,
    InformerState,
    StoppedError,
)
from dyninformer.testing.client import dynamic_client
from dyninformer.testing.control_plane import ControlPlane
from dyninformer.testing.faults import (
    BlackHole,
    EndlessHeaders,
    Fault,
    Faults,
    HttpStatus,
    SlowDrip,
)
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.conftest import Factories, Running
from tests.conformance.informer.recorders import (
    CONFIG_MAPS,
    PATIENCE,
    WIDGETS,
    Heard,
    on_embedded,
    on_real,
)
from tests.conformance.informer.relay import Relay
from tests.conformance.wire import until

_LIBRARY = Path(dyninformer.__file__).parent

# -- S22: forks ---


def in_child(work: Callable[[], object]) -> int:
    """What a forked child says of the work: 0 it is true, 1 it is not, other it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # this process has threads: that is it
        child = os.fork()
    if child == 0:
        code = 2
        try:
            signal.alarm(30)  # a child that hangs ends with another code
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refused(act: Callable[[], object]) -> bool:
    """It raises StoppedError."""
    try:
        act()
    except StoppedError:
        return True
    return False


def test_s22_a_forked_child_has_stopped_informers_that_answer(
    factories: Factories, widgets: Collection
) -> None:
    """Reads work, nothing can be added, and the parent's stream goes on."""
    widgets.fill("a")
    factory = factories()
    found, heard = factory.for_resource(WIDGETS), Heard()
    found.informer.add_event_handler(heard)
    factory.sync(PATIENCE)
    heard.wait("ADDED", "a")
    informer = found.informer

    def stopped() -> bool:
        return (
            found.lister.get("a", widgets.namespace)["kind"] == "Widget"
            and informer.is_stopped()
            and informer.status().state is InformerState.STOPPED
            and refused(informer.start)
            and refused(informer.events)
            and refused(lambda: informer.add_event_handler(Heard()))
            and factory.shutdown(5)
        )

    assert in_child(stopped) == 0
    widgets.fill("b")
    heard.wait("ADDED", "b")


@on_embedded
def test_s22_a_child_closes_what_it_inherited_and_ends_no_connection(
    running: Running, widgets: Collection, relay: Relay, relayed: Any
) -> None:
    """No socket to the server is left there, and the parent's stream goes on over its own."""
    found, heard = running(client=relayed), Heard()
    found.informer.add_event_handler(heard)
    port = int(relay.url.rpartition(":")[2])
    ours = connections_to(port)
    assert ours
    assert in_child(lambda: not connections_to(port)) == 0
    widgets.fill("a")
    heard.wait("ADDED", "a")
    assert connections_to(port) >= ours


def connections_to(port: int) -> set[int]:
    """The local ports of this process's connections to a port."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            copy = socket.socket(fileno=os.dup(int(name)))
        except OSError:  # the folder's own descriptor, or one that is closed meanwhile
            continue
        with copy, suppress(OSError):
            if copy.family == socket.AF_INET and copy.getpeername()[1] == port:
                found.add(copy.getsockname()[1])
    return found


# -- S23: interrupts ---


@pytest.fixture
def interrupt(unmeasured: None) -> Iterator[Callable[[str], None]]:
    """Interrupts the main thread as Ctrl-C does, once it is in this function of the library."""
    main = threading.main_thread()
    if threading.current_thread() is not main:
        pytest.skip("interrupts come to the main thread, and this is another one")
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    threads: list[threading.Thread] = []

    def waits_in(name: str) -> bool:
        frame: FrameType | None = sys._current_frames()[main.ident or 0]
        while frame is not None:
            code = frame.f_code
            if code.co_name == name and Path(code.co_filename).is_relative_to(_LIBRARY):
                return True
            frame = frame.f_back
        return False

    def later(name: str) -> None:
        def send_interrupts() -> None:
            until(lambda: waits_in(name), PATIENCE)
            signal.pthread_kill(main.ident or 0, signal.SIGUSR1)

        threads.append(threading.Thread(target=send_interrupts, daemon=True))
        threads[-1].start()

    yield later
    for thread in threads:
        thread.join(PATIENCE)
    signal.signal(signal.SIGUSR1, before)


WAITS: dict[str, Callable[[DynamicSharedInformerFactory, GenericInformer, Any], object]] = {
    "__next__": lambda factory, found, handler: next(found.informer.events()),
    "wait_for_version": lambda factory, found, handler: found.informer.wait_for_version("9" * 15),
    "wait_for": lambda factory, found, handler: found.informer.wait_for("create", name="never"),
    "wait_for_sync": lambda factory, found, handler: handler.wait_for_sync(),
    "wait": lambda factory, found, handler: factory.wait(),
}


@on_embedded
@pytest.mark.parametrize("waiting", WAITS)
def test_s23_an_interrupt_ends_a_wait_and_not_the_factory(
    factories: Factories,
    widgets: Collection,
    interrupt: Callable[[str], None],
    waiting: str,
) -> None:
    """The wait raises KeyboardInterrupt; the informer and its handlers go on."""
    factory = factories()
    found, heard = factory.for_resource(WIDGETS), Heard()
    found.informer.add_event_handler(heard)
    factory.sync(PATIENCE)
    stuck = threading.Event()
    registration = None
    if waiting == "wait_for_sync":
        widgets.fill("first")
        heard.wait("ADDED", "first")
        registration = found.informer.add_event_handler(on_add=lambda obj: stuck.wait(PATIENCE))
    interrupt(waiting)
    with pytest.raises(KeyboardInterrupt):
        WAITS[waiting](factory, found, registration)
    stuck.set()
    widgets.fill("a")
    heard.wait("ADDED", "a")


@on_embedded
def test_s23_an_interrupt_ends_a_sync_that_waits(
    faults: Faults, factories: Factories, widgets: Collection, interrupt: Callable[[str], None]
) -> None:
    """The factory goes on to sync by itself."""
    factory = factories()
    factory.for_resource(WIDGETS)
    with faults.add(HttpStatus(503), namespace=widgets.namespace):
        interrupt("sync")
        with pytest.raises(KeyboardInterrupt):
            factory.sync()
    assert factory.wait_for_cache_sync(PATIENCE)


# -- S34: stopping ---


def threads_of_informers() -> set[threading.Thread]:
    """Every thread of the library's; the embedded server is another matter."""
    return {
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("dyninformer ") and thread.name != "dyninformer API server"
    }


def open_files() -> int:
    """How many file descriptors this process has."""
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def nothing_left(widgets: Collection) -> Iterator[None]:
    """After the test no thread, socket or file of an informer is left."""
    widgets.version()  # the test's own connection is open
    threads, files = threads_of_informers(), open_files()
    yield
    assert threads_of_informers() <= threads
    until(lambda: open_files() <= files, PATIENCE, "files are left open")


STATES = {
    "silent": BlackHole(),
    "silent in the middle": BlackHole(after_lines=1),
    "dripping": SlowDrip(size=1, seconds=0.2),
    "endless headers": EndlessHeaders(),
    "backing off": HttpStatus(503),
    "told to come back later": HttpStatus(429, retry_after=60),
}


@on_embedded
@pytest.mark.parametrize("verb", ["watch", "list"])
@pytest.mark.parametrize("state", STATES)
def test_s34_a_stop_takes_effect_within_a_second(
    faults: Faults,
    widgets: Collection,
    cluster: Cluster,
    nothing_left: None,
    state: str,
    verb: str,
) -> None:
    """Whatever the server does to the streaming list, or to the list."""
    fault: Fault = STATES[state]
    if verb == "list" and state == "silent in the middle":
        fault = BlackHole()
    widgets.fill("a", "b")
    factory = DynamicSharedInformerFactory(cluster.server.client(), namespace=widgets.namespace)
    factory.for_resource(WIDGETS, watch_list=verb == "watch")
    with faults.add(fault, verb=verb, namespace=widgets.namespace) as injection:
        factory.start()
        assert injection.wait_hit()
        assert factory.shutdown(1)


def test_s34_a_stop_while_watching_leaves_nothing(
    widgets: Collection, cluster: Cluster, nothing_left: None
) -> None:
    """Neither a thread nor a socket nor a file, after handlers, indexes and two resources."""
    widgets.fill("a")
    factory = DynamicSharedInformerFactory(cluster.server.client(), namespace=widgets.namespace)
    heard = Heard()
    factory.for_resource(WIDGETS).informer.add_event_handler(heard, resync=1)
    factory.for_resource(CONFIG_MAPS)
    factory.sync(PATIENCE)
    heard.wait("ADDED", "a")
    assert factory.shutdown(1)


def test_s34_a_stop_while_the_resource_is_absent(
    widgets: Collection, cluster: Cluster, group: str, nothing_left: None
) -> None:
    """The wait for the CRD ends at once."""
    factory = DynamicSharedInformerFactory(cluster.server.client())
    informer = factory.for_resource(GroupVersionResource(group, "v1", "rows")).informer
    factory.start()
    until(lambda: informer.status().state is InformerState.ABSENT, PATIENCE)
    assert factory.shutdown(1)


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    """A port where connections are accepted by nobody, after a first one not even by the kernel."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        yield listener


@on_embedded
@pytest.mark.parametrize("full", [False, True], ids=["handshaking", "connecting"])
def test_s34_a_stop_before_there_is_a_connection(
    cluster: Cluster, widgets: Collection, deaf: socket.socket, full: bool, nothing_left: None
) -> None:
    """In the middle of a TLS handshake, or of a TCP connect."""
    port = deaf.getsockname()[1]
    with ExitStack() as stack:
        for _ in range(2 if full else 0):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        client = dynamic_client(f"https://127.0.0.1:{port}", "token", cluster.server.ca)
        factory = DynamicSharedInformerFactory(client)
        factory.for_resource(CONFIG_MAPS)
        factory.start()
        until(lambda: [t for t in threads_of_informers() if "connect" in t.name] or not full)
        assert factory.shutdown(1)
        until(lambda: not threads_of_informers(), PATIENCE)


@on_real
def test_s34_a_stop_while_the_server_is_frozen(
    cluster: Cluster, widgets: Collection, nothing_left: None
) -> None:
    """A process under SIGSTOP keeps its connections open, and says nothing more."""
    assert isinstance(cluster.server, ControlPlane)
    factory = DynamicSharedInformerFactory(cluster.server.client(), namespace=widgets.namespace)
    factory.for_resource(WIDGETS)
    factory.sync(PATIENCE)
    cluster.server.pause("kube-apiserver")
    try:
        factory.for_resource(CONFIG_MAPS)
        factory.start()
        assert factory.shutdown(1)
    finally:
        cluster.server.resume("kube-apiserver")
