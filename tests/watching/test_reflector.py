"""The thread that asks, on a real server: it follows, and it ends."""

from __future__ import annotations

import socket
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dyninformer import errors
from dyninformer.resource import GroupVersionResource
from dyninformer.store.store import Store
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import (
    BlackHole,
    Delay,
    EndlessHeaders,
    Fault,
    HttpStatus,
    Refuse,
    SlowDrip,
)
from dyninformer.transport.requests import JsonReply, Request
from dyninformer.types import Object
from dyninformer.watching import reflector as module
from dyninformer.watching.client import Source
from dyninformer.watching.reflector import Reflector, SteadyClock
from dyninformer.watching.states import CrdSeen, Scope
from dyninformer.watching.status import InformerState, InformerTrouble
from dyninformer.watching.witness import KEPT
from tests.conformance.shapes import WIDGETS as CRD
from tests.conformance.shapes import widget
from tests.store.objects import Counted

WIDGETS = GroupVersionResource("ex.io", "v1", "widgets")
Make = Callable[..., Reflector]


class News:
    """A CRD watch that says what a test has it say."""

    def __init__(self) -> None:
        self.available = True
        self.now: int | None = None
        self.callbacks: list[Callable[[], None]] = []

    def seen(self, group_resource: str) -> CrdSeen:
        """Of any CRD."""
        del group_resource
        return CrdSeen(self.available, self.now)

    def subscribe(self, callback: Callable[[], None], group_resource: str) -> Callable[[], None]:
        """Remember it."""
        del group_resource
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)

    def tell(self) -> None:
        """Something may have changed."""
        for callback in list(self.callbacks):
            callback()


def until(condition: Callable[[], object], timeout: float = 20) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.005)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A server with two widgets."""
    with ApiServer() as found:
        found.install(CRD)
        for name in "ab":
            found.create(widget(name))
        yield found


@pytest.fixture
def store() -> Store:
    """An empty store."""
    return Store(WIDGETS)


@pytest.fixture
def make(server: ApiServer, store: Store) -> Iterator[Make]:
    """Reflectors that are started, and stopped afterwards."""
    source = Source(server.client())
    made: list[Reflector] = []

    def make(namespace: str = "", **options: Any) -> Reflector:
        scope = Scope(gvr=WIDGETS, namespace=namespace)
        made.append(Reflector(scope, source.channel(), store, owner=made, **options))
        made[-1].start()
        return made[-1]

    yield make
    for reflector in made:
        reflector.stop()
    for reflector in made:
        assert reflector.join(5)
    source.close()


def test_it_syncs_and_follows(server: ApiServer, store: Store, make: Make) -> None:
    """What is written is in the store a moment later."""
    reflector = make()
    until(lambda: reflector.synced)
    assert sorted(store.keys()) == ["default/a", "default/b"]
    server.create(widget("c"))
    server.delete("widgets/a")
    until(lambda: sorted(store.keys()) == ["default/b", "default/c"])
    newest = server.list("widgets")[-1]["metadata"]["resourceVersion"]
    assert int(reflector.status().resource_version) > int(newest), (
        "the delete came after the last write"
    )


def test_its_status_says_how_it_stands(server: ApiServer, make: Make) -> None:
    """State, version, when it heard of the server."""
    reflector = make()
    until(lambda: reflector.status().state is InformerState.WATCHING)
    status = reflector.status()
    assert (status.synced, status.objects, status.reason) == (True, 2, "")
    assert status.resource_version != ""
    assert status.last_contact is not None
    assert status.since is not None


def test_synced_is_told_when_the_store_has_the_state(store: Store, make: Make) -> None:
    """Not a moment before (S7)."""
    seen: list[int] = []
    made: list[Reflector] = []

    def on_status() -> None:
        if made and made[0].synced:
            seen.append(len(store))

    made.append(make(on_status=on_status))
    until(lambda: made[0].synced)
    until(lambda: seen or made[0].status().state is InformerState.WATCHING)
    assert all(count == 2 for count in seen)


def test_a_failure_is_told_with_its_reason(server: ApiServer, make: Make) -> None:
    """To the watch error handler, in a sentence; and it goes on."""
    failures: list[Exception] = []
    server.faults.add(HttpStatus(503, "down"), resource="widgets", times=1)
    reflector = make(on_failure=failures.append)
    until(lambda: reflector.synced)
    (failure,) = failures
    assert isinstance(failure, errors.DynInformerError)
    assert str(failure).startswith("cannot list widgets.v1.ex.io: the server failed (503: down)")


def test_a_server_that_is_not_there_is_an_unreachable_error(server: ApiServer, make: Make) -> None:
    """Then it comes, and all is well."""
    failures: list[Exception] = []
    with server.faults.add(Refuse()):
        reflector = make(on_failure=failures.append)
        until(lambda: failures)
        assert isinstance(failures[0], errors.UnreachableError)
        assert reflector.status().state is InformerState.BACKING_OFF
        assert reflector.status().next_try is not None
    until(lambda: reflector.synced)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), KeyboardInterrupt()])
def test_a_failure_handler_that_raises_harms_nobody(
    server: ApiServer, make: Make, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    """Whatever it raises; it is logged."""

    def on_failure(_: Exception) -> None:
        raise error

    server.faults.add(HttpStatus(503), resource="widgets", times=1)
    reflector = make(on_failure=on_failure)
    until(lambda: reflector.synced)
    assert "the watch error handler failed" in caplog.text


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit(1)])
def test_an_error_that_nobody_expected_ends_no_reflector(
    server: ApiServer,
    store: Store,
    make: Make,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
) -> None:
    """It is logged, shown in the status, told to the handler, and all is read anew after a wait."""
    failures: list[Exception] = []
    armed = threading.Event()

    def on_status() -> None:
        if armed.is_set():
            armed.clear()
            raise error

    reflector = make(on_status=on_status, on_failure=failures.append)
    until(lambda: reflector.status().state is InformerState.WATCHING)
    armed.set()
    server.restart()
    until(lambda: failures and "the reflector of widgets.v1.ex.io failed" in str(failures[-1]))
    status = reflector.status()
    assert (status.trouble, status.state) == (InformerTrouble.INTERNAL, InformerState.BACKING_OFF)
    server.create(widget("late"))
    until(lambda: "default/late" in store)
    until(lambda: reflector.status().reason == "")
    assert "Traceback" in caplog.text


def test_news_of_crds_that_cannot_be_had_at_first_are_asked_for_again(make: Make) -> None:
    """As where the system has no more threads for a moment."""

    class Exhausted(News):
        def subscribe(self, callback: Callable[[], None], group_resource: str) -> Any:
            self.subscribe = super().subscribe  # type: ignore[method-assign]
            raise RuntimeError("can't start new thread")

    news = Exhausted()
    reflector = make(crds=news)
    until(lambda: reflector.synced)
    assert len(news.callbacks) == 1


class Hooked:
    """A transport whose first watch meets a hook of the user's that exits."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.exited = 0

    def watch(self, request: Any) -> Any:
        """The first one exits."""
        self.exited += 1
        if self.exited == 1:
            raise SystemExit(1)
        return self._transport.watch(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def test_a_hook_that_exits_ends_no_reflector(server: ApiServer, store: Store) -> None:
    """It counts as a try without an answer."""
    source = Source(server.client())
    hooked: Any = Hooked(source.channel())
    reflector = Reflector(Scope(gvr=WIDGETS), hooked, store, owner=store)
    reflector.start()
    until(lambda: reflector.synced)
    assert hooked.exited == 2
    reflector.stop()
    assert reflector.join(5)
    source.close()


@pytest.mark.parametrize(
    ("fault", "verb"),
    [
        (BlackHole(), None),
        (BlackHole(after_lines=1), "watch"),
        (SlowDrip(size=1, seconds=0.2), None),
        (EndlessHeaders(seconds=0.01), None),
        (Delay(60), None),
        (HttpStatus(429, retry_after=60), None),
        (HttpStatus(403), None),
        (HttpStatus(404), None),
        (Refuse(), None),
    ],
    ids=repr,
)
def test_a_stop_takes_effect_within_a_second_wherever_it_is(
    server: ApiServer, make: Make, fault: Fault, verb: str | None
) -> None:
    """Silent, dripping, endless, refused, waiting (S34)."""
    if isinstance(fault, Refuse):
        injection = server.faults.add(fault)
    else:
        injection = server.faults.add(fault, verb=verb, resource="widgets")
    failures: list[Exception] = []
    reflector = make(on_failure=failures.append)
    until(lambda: failures if isinstance(fault, Refuse) else injection.hits)
    begin = time.monotonic()
    reflector.stop()
    assert reflector.join(5)
    assert time.monotonic() - begin < 1
    assert reflector.status().state is InformerState.STOPPED


def test_a_stop_while_it_watches_takes_effect_within_a_second(make: Make) -> None:
    """Nothing comes, and it ends all the same (S34)."""
    reflector = make()
    until(lambda: reflector.status().state is InformerState.WATCHING)
    begin = time.monotonic()
    reflector.stop()
    assert reflector.join(5)
    assert time.monotonic() - begin < 1


def test_a_server_that_accepts_and_says_nothing_does_not_hold_up_a_stop(store: Store) -> None:
    """Not even HTTP is spoken (S34)."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        source = Source(_client(f"http://127.0.0.1:{port}"))
        reflector = Reflector(Scope(gvr=WIDGETS), source.channel(), store, owner=store)
        reflector.start()
        connection, _ = listener.accept()
        with connection:
            connection.recv(10)
            begin = time.monotonic()
            reflector.stop()
            assert reflector.join(5)
            assert time.monotonic() - begin < 1
        source.close()


def _client(host: str) -> Any:
    from kubernetes import client  # noqa: PLC0415 - it costs a quarter of a second

    return client.ApiClient(client.Configuration(host=host))


def test_after_its_end_the_store_keeps_what_it_holds(store: Store, make: Make) -> None:
    """It answers from the last state (S19)."""
    reflector = make()
    until(lambda: reflector.synced)
    reflector.stop()
    reflector.join()
    assert len(store) == 2
    assert reflector.synced
    reflector.stop()


def test_its_thread_is_named_and_owned(make: Make) -> None:
    """A stack dump shows whose it is."""
    reflector = make("default")
    name = "dyninformer reflector widgets.v1.ex.io in namespace default"
    until(lambda: name in [thread.name for thread in threading.enumerate()])
    reflector.stop()
    reflector.join()
    assert name not in [thread.name for thread in threading.enumerate()]


def test_it_touches_its_own_namespace_alone(server: ApiServer, store: Store, make: Make) -> None:
    """Two reflectors, one store (S2)."""
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    server.create(widget("z"), "other")
    first = make("default")
    until(lambda: first.synced)
    assert sorted(store.keys()) == ["default/a", "default/b"]
    second = make("other")
    until(lambda: second.synced)
    server.compact()
    server.restart()
    server.delete("widgets/z", "other")
    until(lambda: sorted(store.keys()) == ["default/a", "default/b"])


def test_news_of_a_crd_are_acted_on_at_once(server: ApiServer, store: Store, make: Make) -> None:
    """What was absent is asked for as soon as it comes (S33)."""
    server.delete("customresourcedefinitions/widgets.ex.io")
    news = News()
    reflector = make(crds=news)
    until(lambda: reflector.status().state is InformerState.ABSENT)
    assert "no CustomResourceDefinition widgets.ex.io" in reflector.status().reason
    server.install(CRD)
    news.now = 1
    news.tell()
    until(lambda: reflector.synced, timeout=5)


def test_a_crd_that_goes_takes_its_objects_along(
    server: ApiServer, store: Store, make: Make
) -> None:
    """Told as deleted (S33)."""
    news = News()
    news.now = 1
    reflector = make(crds=news)
    until(lambda: len(store) == 2)
    server.delete("customresourcedefinitions/widgets.ex.io")
    news.now = None
    news.tell()
    until(lambda: reflector.status().state is InformerState.ABSENT)
    assert len(store) == 0
    assert reflector.synced


def test_a_transform_that_raises_on_much_fails_the_first_sync_until_it_is_mended(
    server: ApiServer, make: Make, store: Store
) -> None:
    """The reason says so; of a watch event the state that is held stays instead (S17)."""

    def picky(obj: Object) -> Object:
        if obj["spec"].get("note") == "bad":
            raise ValueError("no notes")
        return obj

    store.set_transform(picky)
    server.create(widget("bad", note="bad"))
    server.create(widget("bad-too", note="bad"))
    reflector = make()
    until(lambda: reflector.status().state is InformerState.BACKING_OFF)
    assert "default/bad" in reflector.status().reason
    assert len(store) == 0
    server.patch("widgets/bad", {"spec": {"note": "good"}})
    server.patch("widgets/bad-too", {"spec": {"note": "good"}})
    until(lambda: reflector.synced)
    server.patch("widgets/bad", {"spec": {"note": "bad"}})
    server.create(widget("next"))
    until(lambda: "default/next" in store)
    assert reflector.status().state is InformerState.WATCHING
    payload = store.get("default/bad")
    assert payload is not None
    assert store.codec.decode(payload)["spec"]["note"] == "good"


def test_a_fault_of_the_library_itself_is_logged_and_tried_again(
    make: Make, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread does not die of it, and its answer is over, even if the traceback is kept."""
    store.on_changes = _Once(ValueError("a bug"))
    reflector = make()
    until(lambda: reflector.synced)
    assert "a bug" in caplog.text
    failed = next(record for record in caplog.records if record.exc_info)
    _, _, where = failed.exc_info or (None, None, None)
    kept = [frame.f_locals for frame, _ in traceback.walk_tb(where)]
    (chunks,) = [found["chunks"] for found in kept if "chunks" in found]
    assert chunks.gi_frame is None


class _Once:
    """Raises the first time it is called."""

    def __init__(self, error: Exception) -> None:
        self._error: Exception | None = error

    def __call__(self, _: object) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


class Canned:
    """An answer that is there already."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.headers = {"Content-Type": "application/json"}
        self._body = body

    def chunks(self) -> Generator[bytes, None, None]:
        """All at once."""
        yield self._body

    def allow_silence(self, seconds: float) -> None:
        """There is none."""

    def body(self) -> bytes:
        """The same."""
        return self._body

    def close(self) -> None:
        """Nothing to end."""


class OnlyLists:
    """A transport that has one list, and no streams."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def list(self, request: Request) -> Canned:
        """Always the same."""
        del request
        return Canned(200, self._body)

    def watch(self, request: Request) -> Canned:
        """Not understood."""
        del request
        return Canned(400, b"")

    def get_json(self, path: str, *_: object, **__: object) -> JsonReply:
        """Nothing is there."""
        del path
        return JsonReply(404, {}, None)

    def reload_credentials(self) -> None:
        """There are none."""

    def close(self) -> None:
        """Nothing to end."""


class StopsAtFirst(Counted):
    """Stops the reflector as soon as an object cannot be used."""

    reflector: Reflector

    def count(self, name: str, *labels: Any, **more: Any) -> None:
        """Count, and stop."""
        super().count(name, *labels, **more)
        self.reflector.stop()


def test_s34_a_stop_is_heard_in_the_middle_of_a_list_of_nothing_useful() -> None:
    """Of many items, each of which takes a while to refuse, some thousand are looked at."""
    metrics = StopsAtFirst()
    store = Store(WIDGETS, metrics=metrics)
    body = b'{"kind":"WidgetList","metadata":{},"items":[' + b"0," * 50_000 + b"0]}"
    metrics.reflector = Reflector(Scope(gvr=WIDGETS), OnlyLists(body), store, owner=object())
    metrics.reflector.start()
    assert metrics.reflector.join(30)
    assert 0 < len(metrics.counts) <= 5000


class Breaks(OnlyLists):
    """A transport whose first answer breaks off; it notes what goes over a new connection."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self.anew: list[bool] = []

    def list(self, request: Request) -> Canned:
        """A list, the second time."""
        self.anew.append(request.anew)
        if len(self.anew) == 1:
            raise errors.UnreachableError("the connection broke")
        return super().list(request)


def test_s35_after_a_connection_that_broke_the_next_request_goes_over_a_new_one() -> None:
    """Those that lie idle may lead where it did. After that any will do."""
    body = b'{"kind":"WidgetList","metadata":{"resourceVersion":"7"},"items":[]}'
    transport, store = Breaks(body), Store(WIDGETS)
    scope = Scope(gvr=WIDGETS, watch_list=False)
    reflector = Reflector(scope, transport, store, owner=object())
    reflector.start()
    until(lambda: len(transport.anew) >= 3)
    reflector.stop()
    assert reflector.join(30)
    assert transport.anew[:3] == [False, True, False]


def test_s35_a_second_watch_that_is_stopped_with_its_reflector_has_not_ended_at_its_time(
    make: Make, store: Store
) -> None:
    """So its connection, which is no more, is known to be so, and another one is kept."""
    reflector = make()
    until(lambda: len(store) == 2 and reflector.status().state is InformerState.WATCHING)
    heard, found = threading.Event(), list[errors.StoppedError]()

    def hold() -> None:
        try:
            reflector.listen(30, heard.set, lambda *_: None, KEPT)
        except errors.StoppedError as error:
            found.append(error)

    thread = threading.Thread(target=hold)
    thread.start()
    assert heard.wait(30)
    reflector.stop()
    thread.join(30)
    assert len(found) == 1


def test_s35_the_clock_goes_on_while_a_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """And knows how far the wall's clock was set since it was made."""
    clock = SteadyClock()
    made = clock.now()
    monkeypatch.setattr(module, "since_boot", lambda: made + 3600 - clock.booted)
    assert clock.now() == pytest.approx(made + 3600)
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: made + 3600 + 7))
    assert clock.wall == pytest.approx(7)


class Reloading:
    """A channel that says when credentials are read anew."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        """What else a channel does, and `asked` says that it did."""
        if name != "close":
            self.asked.append(name)
        return getattr(self._channel, name)


def test_s28_a_401_is_followed_by_credentials_that_are_read_anew(
    server: ApiServer, store: Store
) -> None:
    """Once, before the next try."""
    server.faults.add(HttpStatus(401), resource="widgets", times=1)
    source = Source(server.client())
    channel = Reloading(source.channel())
    reflector = Reflector(Scope(gvr=WIDGETS), channel, store, owner=channel)
    try:
        reflector.start()
        until(lambda: reflector.synced)
        assert channel.asked == ["watch", "reload_credentials", "watch"]
    finally:
        reflector.stop()
        assert reflector.join(5)
        source.close()
