"""The front door: resources by any spelling, options, errors that say why, and the end."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import dyninformer
from dyninformer import (
    AmbiguousResourceError,
    CacheSyncError,
    DynamicSharedInformerFactory,
    DynInformerError,
    Event,
    GroupVersionResource,
    ListOptions,
    OptionsConflictError,
    ResourceOptions,
    SharedIndexInformer,
    StoppedError,
    SyncResult,
    UnknownResourceError,
    UnreachableError,
    open_informer,
)
from dyninformer.factory import Registry
from dyninformer.informer import Runtime
from dyninformer.testing import ApiServer
from dyninformer.testing.client import dynamic_client
from dyninformer.testing.faults import BlackHole, HttpStatus
from tests.conformance.shapes import ANYTHING, crd
from tests.conformance.wire import until

CRDS = Path(__file__).parent.parent / "examples" / "crd"
CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")
BLOCKS = GroupVersionResource("crd.projectcalico.org", "v1", "ipamblocks")
PODS = GroupVersionResource("", "v1", "pods")
PATIENCE = 20.0


@pytest.fixture(scope="module")
def furnished() -> Iterator[ApiServer]:
    """A server with the example CRDs, and a few objects of them."""
    with ApiServer(tls=True) as server:
        yield server


@pytest.fixture
def server(furnished: ApiServer) -> ApiServer:
    """The same, as new."""
    furnished.reset()
    furnished.install(CRDS)
    return furnished


@pytest.fixture
def factory(server: ApiServer) -> Iterator[DynamicSharedInformerFactory]:
    """A factory on it."""
    with DynamicSharedInformerFactory(server.client()) as factory:
        yield factory


@pytest.mark.parametrize(
    "spelling",
    [
        CERTIFICATES,
        "certificates.v1.cert-manager.io",
        "cert-manager.io/v1/certificates",
        "cert",
        "certificate",
        "Certificate",
        "certificates",
        "certificates.cert-manager.io",
    ],
    ids=str,
)
def test_any_spelling_is_the_same_informer(
    factory: DynamicSharedInformerFactory, spelling: Any
) -> None:
    """A short name, a kind, with or without version and group."""
    found = factory.for_resource(spelling)
    assert found.gvr == CERTIFICATES
    assert factory.for_resource(CERTIFICATES) is found


def test_a_full_spelling_asks_nothing_of_the_network(server: ApiServer) -> None:
    """Neither a kubeconfig, nor a factory, nor an informer that is not started."""
    before = len(server.requests)
    with DynamicSharedInformerFactory(kubeconfig=server.kubeconfig()) as factory:
        for each in (CERTIFICATES, "pods.v1", "v1/pods", "apps/v1/deployments"):
            factory.for_resource(each)
        assert len(server.requests) == before


def test_a_name_that_nobody_knows_says_what_is_close(
    factory: DynamicSharedInformerFactory,
) -> None:
    """The error names the resource that was probably meant."""
    with pytest.raises(UnknownResourceError, match=r"certificates\.cert-manager\.io"):
        factory.for_resource("certificatse")


def test_a_name_of_several_groups_is_ambiguous(
    server: ApiServer, factory: DynamicSharedInformerFactory
) -> None:
    """The error names the groups, and with one of them there is an answer."""
    server.install(crd("other.io", "certificates", "Certificate", ANYTHING))
    with pytest.raises(AmbiguousResourceError, match=r"(?s)cert-manager\.io.*other\.io"):
        factory.for_resource("certificates")
    assert factory.for_resource("certificates.other.io").gvr.group == "other.io"


@pytest.fixture
def nowhere() -> str:
    """A URL where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_is_not_there_is_unreachable(nowhere: str) -> None:
    """For discovery at once, for a sync in the report."""
    with DynamicSharedInformerFactory(dynamic_client(nowhere, "token", None)) as factory:
        with pytest.raises(UnreachableError, match="connection refused"):
            factory.for_resource("cert")
        factory.for_resource(PODS)
        with pytest.raises(CacheSyncError, match="connection refused") as caught:
            factory.sync(2)
        assert caught.value.status[PODS].attempts >= 1


def test_a_sync_that_fails_says_why_for_each(server: ApiServer) -> None:
    """Forbidden and absent, each with its resource, and nothing of the one that synced."""
    token = server.access.add_user("dev")
    server.access.allow("dev", verbs=["list", "watch"], resources="configmaps", groups="")
    with DynamicSharedInformerFactory(server.client(token=token)) as factory:
        for each in ("v1/configmaps", CERTIFICATES, "ex.io/v1/widgets"):
            factory.for_resource(each)
        factory.start()
        until(lambda: all(s.synced or s.reason for s in factory.status().values()))
        with pytest.raises(CacheSyncError) as caught:
            factory.sync(0)
    text = str(caught.value)
    assert text.startswith("2 of 3 caches did not sync")
    assert 'User "dev" cannot' in text
    assert "Give it list and watch" in text
    assert "ex.io/v1/widgets" in text or "widgets.v1.ex.io" in text
    assert "configmaps" not in text


def test_a_sync_that_fails_counts_one_cache_and_one_try_of_one(server: ApiServer) -> None:
    """The server says when to try again, which is later than this looks."""
    away = HttpStatus(503, retry_after=60)
    with (
        server.faults.add(away, resource="configmaps"),
        DynamicSharedInformerFactory(server.client()) as factory,
    ):
        factory.for_resource("v1/configmaps")
        factory.start()
        until(lambda: all(status.attempts for status in factory.status().values()))
        with pytest.raises(CacheSyncError) as caught:
            factory.sync(0)
    assert str(caught.value).startswith("1 of 1 cache did not sync")
    assert str(caught.value).endswith("(1 try failed)")


def test_the_result_of_a_sync_is_true_if_all_are_synced() -> None:
    """It is a dict by resource."""
    assert SyncResult({PODS: True})
    assert not SyncResult({PODS: True, CERTIFICATES: False})
    assert SyncResult()


def test_options_of_a_resource_are_over_those_of_the_factory(server: ApiServer) -> None:
    """And those of for_resource are over both."""
    resources = {CERTIFICATES: ResourceOptions(label_selector="a=b", page_size=7)}
    with DynamicSharedInformerFactory(
        server.client(), namespace="prod", resync=30, resources=resources
    ) as factory:
        used = factory.for_resource(CERTIFICATES, page_size=9).informer.options
        assert (used.namespaces, used.resync) == (("prod",), 30)
        assert (used.label_selector, used.page_size) == ("a=b", 9)
        assert factory.for_resource(BLOCKS).informer.options.label_selector == ""


def test_other_options_conflict_and_the_same_do_not(
    factory: DynamicSharedInformerFactory,
) -> None:
    """The error names both values and the way out; saying less is no conflict."""
    found = factory.for_resource(CERTIFICATES, label_selector="a=b", page_size=7)
    assert factory.for_resource(CERTIFICATES, label_selector="a=b") is found
    assert factory.for_resource(CERTIFICATES) is found
    with pytest.raises(OptionsConflictError, match=r"'a=c'.*'a=b'.*factory\.remove"):
        factory.for_resource(CERTIFICATES, label_selector="a=c")


@pytest.mark.parametrize(
    "same",
    [
        {"namespaces": ""},
        {"label_selector": ""},
        {"field_selector": ""},
        {"page_size": 500},
        {"compress": True},
        {"watch_list": True},
        {"metadata_only": False},
        {"resync": 0},
    ],
    ids=str,
)
def test_what_is_meant_anyway_is_no_conflict(
    factory: DynamicSharedInformerFactory, same: dict[str, Any]
) -> None:
    """To say it, or not to say it, before or after, is one and the same."""
    found = factory.for_resource(BLOCKS)
    assert factory.for_resource(BLOCKS, **same) is found
    said = factory.for_resource(CERTIFICATES, **same)
    assert factory.for_resource(CERTIFICATES) is said


def test_indexers_of_later_calls_are_added(factory: DynamicSharedInformerFactory) -> None:
    """Of one that runs, too."""
    found = factory.for_resource(CERTIFICATES, indexers={"issuer": ".spec.issuerRef.name"})
    factory.sync(PATIENCE)
    factory.for_resource(CERTIFICATES, indexers={"secret": ".spec.secretName"})
    (shop,) = found.lister.by_index("secret", "shop-tls")
    assert found.lister.by_index("issuer", "letsencrypt") == [shop]


def test_an_option_that_does_not_exist_is_refused_by_name(
    factory: DynamicSharedInformerFactory,
) -> None:
    """And those that do are listed."""
    with pytest.raises(TypeError, match=r"no option 'selector': .*label_selector"):
        factory.for_resource(CERTIFICATES, selector="a=b")  # type: ignore[call-arg]


def test_an_informer_can_be_made_by_the_caller(
    server: ApiServer, factory: DynamicSharedInformerFactory
) -> None:
    """Once, with the factory's client and resync; it is started and stopped with the others."""
    made: list[SharedIndexInformer] = []

    def new_informer(client: Any, resync: float) -> SharedIndexInformer:
        made.append(SharedIndexInformer(client, CERTIFICATES, ResourceOptions(resync=resync)))
        return made[-1]

    found = factory.informer_for(CERTIFICATES, new_informer)
    assert factory.informer_for(CERTIFICATES, new_informer) is found
    assert factory.for_resource(CERTIFICATES) is found
    factory.sync(PATIENCE)
    assert len(found.lister) == 2
    assert factory.shutdown(5)
    assert [informer.is_stopped() for informer in made] == [True]


def test_an_informer_of_another_resource_is_refused(
    factory: DynamicSharedInformerFactory,
) -> None:
    """The error names both."""
    with pytest.raises(ValueError, match=r"certificates.*pods"):
        factory.informer_for(PODS, lambda client, resync: SharedIndexInformer(client, CERTIFICATES))


def test_the_callers_client_stays_as_it_is(server: ApiServer) -> None:
    """Its settings are the same, and it works after the factory has ended."""
    client = server.client()
    configuration = client.configuration
    settings = {name: value for name, value in vars(configuration).items() if name != "logger"}
    with DynamicSharedInformerFactory(client) as factory:
        factory.for_resource(CERTIFICATES)
        factory.sync(PATIENCE)
        pool = client.client.rest_client.pool_manager
    assert {n: v for n, v in vars(configuration).items() if n != "logger"} == settings
    assert client.client.rest_client.pool_manager is pool
    assert client.resources.get(api_version="v1", kind="Namespace").get("prod").metadata.name


def test_its_client_writes_with_the_same_settings(server: ApiServer) -> None:
    """What it writes is what the cache then has."""
    with DynamicSharedInformerFactory(kubeconfig=server.kubeconfig()) as factory:
        maps = factory.for_resource("v1/configmaps", namespaces="prod")
        factory.sync(PATIENCE)
        kind = factory.client.resources.get(api_version="v1", kind="ConfigMap")
        made = kind.create({"metadata": {"name": "mine"}, "data": {"a": "b"}}, namespace="prod")
        maps.informer.wait_for_version(made.metadata.resourceVersion, PATIENCE)
        assert maps.lister.get("mine", "prod")["data"] == {"a": "b"}


def test_resources_are_followed_as_crds_come_and_go(
    server: ApiServer, factory: DynamicSharedInformerFactory
) -> None:
    """Each matching one has an informer, and its events say whose they are."""
    events: list[Event] = []
    follower = factory.follow("*.cert-manager.io", "gadgets.new.io", on_event=events.append)
    until(lambda: {e.gvr for e in events} == {CERTIFICATES}, PATIENCE)
    server.install(crd("new.io", "gadgets", "Gadget", ANYTHING))
    server.create({"apiVersion": "new.io/v1", "kind": "Gadget", "metadata": {"name": "g"}}, "prod")
    gadgets = GroupVersionResource("new.io", "v1", "gadgets")
    until(lambda: (gadgets, "g") in {(e.gvr, e.name) for e in events}, PATIENCE)
    server.delete("customresourcedefinitions/gadgets.new.io")
    until(lambda: [e.type for e in events if e.gvr == gadgets] == ["ADDED", "DELETED"], PATIENCE)
    follower.close()


def test_wait_ends_with_the_factory(factory: DynamicSharedInformerFactory) -> None:
    """False at a timeout, true once somebody has shut it down."""
    assert not factory.wait(0)
    thread = threading.Thread(target=factory.shutdown)
    thread.start()
    assert factory.wait(PATIENCE)
    thread.join()
    assert repr(factory) == "<DynamicSharedInformerFactory of 0 informers, closed>"


def test_one_that_was_stopped_keeps_no_other_from_starting(
    server: ApiServer, factory: DynamicSharedInformerFactory
) -> None:
    """Nor from being synced, whether it had synced itself or not."""
    stopped = factory.for_resource(CERTIFICATES)
    factory.sync(PATIENCE)
    assert stopped.informer.stop(5)
    with server.faults.add(BlackHole(), resource="ipamblocks"):
        never = factory.for_resource(BLOCKS)
        factory.start()
        assert never.informer.stop(5)
    pods = factory.for_resource(PODS)
    assert dict(factory.sync(PATIENCE)) == {CERTIFICATES: True, PODS: True}
    assert pods.informer.has_synced()


def test_a_start_that_fails_keeps_no_other_from_starting(server: ApiServer) -> None:
    """What the tweak raised is raised, after the others were started."""
    calls: list[ListOptions] = []

    def tweak(options: ListOptions) -> None:
        calls.append(options)
        if len(calls) == 1:
            raise KeyError("tweak")

    with DynamicSharedInformerFactory(server.client(), tweak_list_options=tweak) as factory:
        first, second = factory.for_resource(BLOCKS), factory.for_resource(PODS)
        with pytest.raises(KeyError, match="tweak"):
            factory.start()
        assert (first.informer.is_started(), second.informer.is_started()) == (False, True)
        assert factory.sync(PATIENCE)


def test_what_is_not_there_can_be_removed(factory: DynamicSharedInformerFactory) -> None:
    """It is gone already."""
    assert factory.remove(PODS)


def test_s23_what_an_interrupt_leaves_of_a_removal_the_next_one_does(
    factory: DynamicSharedInformerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No informer runs on that nobody can reach any more."""
    pods = factory.for_resource(PODS).informer

    def interrupted() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pods, "signal_stop", interrupted)
        with pytest.raises(KeyboardInterrupt):
            factory.remove(PODS)
    assert factory.remove(PODS)
    assert pods.is_stopped()
    assert PODS not in factory.status()


def test_s23_what_an_interrupt_leaves_of_a_followers_end_the_next_one_does(
    factory: DynamicSharedInformerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only the follower used does not run on."""
    with factory.follow("configmaps") as follower:
        assert follower.wait_for_sync(30)
        (gvr,) = follower.resources()
        (informer,) = (each.informer for each in factory._registry.all())

        def interrupted() -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(informer, "signal_stop", interrupted)
            with pytest.raises(KeyboardInterrupt):
                follower.close()
        follower.close()
        assert informer.is_stopped()
        assert gvr not in factory.status()


# -- signal handlers ---

_LIBRARY = Path(dyninformer.__file__).parent
Place = tuple[str, int]


def interrupted_at(place: Place | None, act: Callable[[], object]) -> Callable[[], set[Place]]:
    """Trace this thread: ``act`` comes in between, as a signal's handler does, before a line.

    What is returned ends that, and gives the library's lines that were come by.
    """
    seen: set[Place] = set()

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(_LIBRARY) or path.is_relative_to(_LIBRARY / "testing"):
            return None
        here = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and here not in seen:
            seen.add(here)
            if here == place:
                act()
        return trace

    def end() -> set[Place]:
        sys.settrace(None)
        return seen

    sys.settrace(trace)
    return end


ACTS: dict[str, Callable[[DynamicSharedInformerFactory, SharedIndexInformer], object]] = {
    "resync": lambda factory, maps: maps.add_event_handler(on_add=print, resync=5).remove(),
    "client": lambda factory, maps: factory.client,
    "follow": lambda factory, maps: factory.follow("*.none").resources(),
    "start": lambda factory, maps: [maps.start(), factory.status()],  # type: ignore[func-returns-value]
    "remove": lambda factory, maps: factory.remove(maps.gvr),
    "indexers": lambda factory, maps: maps.add_indexers({"x": list}),
}


@pytest.mark.parametrize("name", ACTS)
def test_a_signal_handler_may_shut_down_wherever_it_comes(server: ApiServer, name: str) -> None:
    """It runs on the thread that it interrupts, which may hold any lock: nobody waits for itself.

    Shown at every line of the library that a thread comes by.
    """

    def once(place: Place | None) -> set[Place]:
        factory = DynamicSharedInformerFactory(server.client(), metrics=Locked())
        maps = factory.for_resource(PODS).informer
        found: list[set[Place]] = []

        def handle() -> None:
            factory.status()
            factory.remove(BLOCKS)
            factory.shutdown(0)

        def interrupted() -> None:
            end = interrupted_at(place, handle)
            try:
                with suppress(DynInformerError):
                    ACTS[name](factory, maps)
            finally:
                found.append(end())

        thread = threading.Thread(target=interrupted, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive(), f"it waits for itself: interrupted at {place}"
        assert factory.shutdown(5)
        return found[0]

    places = once(None)
    assert places
    for place in sorted(places):
        once(place)


class Locked:
    """Metrics as prometheus-client has them: under locks that cannot be taken twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        """Something happened."""
        with self._lock:
            pass

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Something has this value now."""
        with self._lock:
            pass


def test_a_program_that_forgets_to_shut_down_ends_all_the_same(server: ApiServer) -> None:
    """Its exit code is 0, and it prints nothing."""
    program = """
import sys, warnings
warnings.simplefilter("error")
from dyninformer import DynamicSharedInformerFactory
factory = DynamicSharedInformerFactory(kubeconfig=sys.argv[1])
found = factory.for_resource("certificates.v1.cert-manager.io")
found.informer.add_event_handler(on_event=lambda event: None, resync=1)
factory.sync(20)
assert len(found.lister) == 2
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, str(server.kubeconfig())],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


MAPS = GroupVersionResource("", "v1", "configmaps")
ANY = ResourceOptions()


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    """A connection that nobody uses: no informer here is started."""
    found = Runtime.connect(dynamic_client("http://127.0.0.1:9", "token", None))
    yield found
    found.close()


@pytest.fixture
def registry(runtime: Runtime) -> Registry:
    """One without informers, whose resources have a page size of their own."""
    return Registry(
        lambda gvr, options: SharedIndexInformer(None, gvr, options, runtime=runtime),
        defaults=ResourceOptions(namespaces="prod"),
        resources={PODS: ResourceOptions(page_size=7)},
    )


def test_everybody_has_the_same_informer(registry: Registry) -> None:
    """With what was asked first, over what is said of the resource, over the defaults."""
    found = registry.ask(PODS, ResourceOptions(label_selector="a=b"))
    assert registry.ask(PODS, ANY) is registry.borrow(PODS, ANY, "user") is found
    assert registry.known(PODS) is found
    assert registry.all() == [found]
    used = found.informer.options
    assert (used.namespaces, used.page_size, used.label_selector) == (("prod",), 7, "a=b")


def test_many_threads_that_ask_at_once_have_one(registry: Registry) -> None:
    """However they meet."""
    together = threading.Barrier(8)
    found = []

    def ask() -> None:
        together.wait(30)
        found.append(registry.ask(PODS, ANY))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_what_was_only_borrowed_goes_with_its_last_borrower(registry: Registry) -> None:
    """It is stopped, and forgotten."""
    informer = registry.borrow(PODS, ANY, "first").informer
    registry.borrow(PODS, ANY, "second")
    registry.give_back(informer, "first")
    assert not informer.is_stopped()
    registry.give_back(informer, "second")
    assert informer.is_stopped()
    assert registry.all() == []


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_what_was_asked_for_by_name_stays(registry: Registry, *, first: bool) -> None:
    """Whether it was asked for before somebody borrowed it, or after."""
    if first:
        registry.ask(PODS, ANY)
    informer = registry.borrow(PODS, ANY, "user").informer
    if not first:
        registry.ask(PODS, ANY)
    registry.give_back(informer, "user")
    assert not informer.is_stopped()
    assert registry.ask(PODS, ANY).informer is informer


def test_one_of_the_callers_own_stays_too(registry: Registry, runtime: Runtime) -> None:
    """Unless there is one already: then that is kept in its place."""
    borrowed = registry.borrow(PODS, ANY, "user")
    own = SharedIndexInformer(None, PODS, runtime=runtime)
    assert registry.adopt(own) is borrowed
    registry.give_back(borrowed.informer, "user")
    assert registry.known(PODS) is borrowed
    maps = SharedIndexInformer(None, MAPS, runtime=runtime)
    assert registry.adopt(maps).informer is maps


def test_what_is_given_back_late_harms_nobody(registry: Registry) -> None:
    """It was removed meanwhile, and another one has come."""
    removed = registry.borrow(PODS, ANY, "user")
    old = removed.informer
    registry.forget(removed)
    new = registry.borrow(PODS, ANY, "user").informer
    registry.give_back(old, "user")
    assert not new.is_stopped()
    assert [each.informer for each in registry.all()] == [new]


def test_a_conflict_of_options_is_no_use(registry: Registry) -> None:
    """Who was refused keeps nothing alive."""
    informer = registry.borrow(PODS, ANY, "user").informer
    with pytest.raises(OptionsConflictError, match=r"page_size: now 9, before 7.*factory\.remove"):
        registry.ask(PODS, ResourceOptions(page_size=9))
    registry.give_back(informer, "user")
    assert informer.is_stopped()


def test_a_stopped_one_is_replaced(registry: Registry) -> None:
    """By one that may have other options."""
    first = registry.ask(PODS, ANY)
    first.informer.signal_stop()
    assert registry.known(PODS) is None
    second = registry.ask(PODS, ResourceOptions(page_size=9))
    assert second is not first
    assert second.informer.options.page_size == 9


def test_what_is_closed_keeps_what_it_has(registry: Registry) -> None:
    """For reads, borrowed or not; nothing new comes."""
    found = registry.borrow(PODS, ANY, "user")
    registry.close()
    found.informer.signal_stop()
    registry.give_back(found.informer, "user")
    assert registry.ask(PODS, ANY) is found
    with pytest.raises(StoppedError, match=r"cannot watch configmaps\.v1: this factory has been"):
        registry.ask(MAPS, ANY)


def test_it_is_synced_when_it_is_there(server: ApiServer) -> None:
    """With the options of a resource, and by any spelling."""
    with open_informer(
        "cert",
        kubeconfig=server.kubeconfig(),
        namespace="prod",
        indexers={"s": ".spec.secretName"},
    ) as certs:
        assert certs.informer.has_synced()
        assert [o["metadata"]["name"] for o in certs.lister.by_index("s", "mail-tls")] == ["mail"]
        assert repr(certs) == "<OpenInformer of certificates.v1.cert-manager.io, 2 objects, live>"


def test_what_is_asked_of_the_server_behind_its_end_says_what_to_do(server: ApiServer) -> None:
    """As by a cell below the ``with`` block."""
    with open_informer("certificates", client=server.client(), namespace="prod") as certs:
        pass
    with pytest.raises(StoppedError, match=r"the factory, .* has stopped; make a new one"):
        certs.patch("mail", "prod", {})


def test_its_events_can_be_iterated_over(server: ApiServer) -> None:
    """First what is there."""
    with open_informer("certificates", client=server.client()) as certs:
        events = certs.informer.events()
        assert sorted((next(events).key, next(events).key)) == ["prod/mail", "prod/shop"]


def test_its_client_is_for_writes(server: ApiServer) -> None:
    """It reaches the same server."""
    with open_informer("v1/namespaces", client=server.client()) as namespaces:
        kind = namespaces.client.resources.get(api_version="v1", kind="Namespace")
        assert kind.get("prod").metadata.name == "prod"


def test_after_closing_reads_go_on(server: ApiServer) -> None:
    """Closing again is fine."""
    namespaces = open_informer("ns", client=server.client())
    assert namespaces.close()
    assert namespaces.close()
    assert "prod" in namespaces.lister


@pytest.mark.parametrize(
    ("resource", "error", "complaint"),
    [
        ("ex.io/v1/widgets", CacheSyncError, "does not exist"),
        ("certt", UnknownResourceError, "cert"),
    ],
)
def test_what_cannot_be_opened_leaves_no_thread(
    server: ApiServer, resource: str, error: type[Exception], complaint: str
) -> None:
    """The error says why."""
    before = {thread for thread in threading.enumerate() if thread.name.startswith("dyninformer ")}
    with pytest.raises(error, match=complaint):
        open_informer(resource, client=server.client(), timeout=2)
    after = {thread for thread in threading.enumerate() if thread.name.startswith("dyninformer ")}
    assert after <= before


def test_a_short_name_is_looked_up_within_the_timeout(
    server: ApiServer, factory: DynamicSharedInformerFactory
) -> None:
    """Of a server that takes the request and says nothing, too; then it can be asked again."""
    said = r"has not answered within 0\.\d+ s"  # not 30, for which one request may be silent
    with (
        server.faults.add(BlackHole(), path="/api*"),
        pytest.raises(UnreachableError, match=said),
    ):
        factory.for_resource("cert", timeout=0.2)
