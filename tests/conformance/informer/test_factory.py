"""One informer per resource: S1-S5."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from dyninformer import (
    CacheSyncError,
    DynamicSharedInformerFactory,
    EventType,
    GenericInformer,
    GroupVersionResource,
    InformerState,
    InformerTrouble,
    ListOptions,
    OptionsConflictError,
    ResourceOptions,
    StoppedError,
    UnauthorizedError,
    UnknownResourceError,
    UnreachableError,
    open_informer,
)
from dyninformer.testing.api_server import ApiServer
from dyninformer.testing.faults import BlackHole, Faults, HttpStatus
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.conftest import Factories
from tests.conformance.informer.recorders import (
    BLOBS,
    GLOBES,
    NODES,
    PATIENCE,
    WIDGETS,
    Counts,
    Heard,
    on_embedded,
    reason_of,
    rights_of_alice,
    seen,
)
from tests.conformance.informer.relay import Relay
from tests.conformance.shapes import widget
from tests.conformance.wire import until


@on_embedded
def test_s01_threads_that_ask_at_once_get_one_informer(factories: Factories) -> None:
    """However many threads ask, and however they spell it, there is one informer."""
    factory = factories()
    spellings = [WIDGETS, "widgets.v1.ex.io", "ex.io/v1/widgets", "wd", "Widget"] * 6
    gate = threading.Barrier(len(spellings))
    found: list[Any] = []

    def ask(spelling: Any) -> None:
        gate.wait()
        found.append(factory.for_resource(spelling))

    threads = [threading.Thread(target=ask, args=(each,)) for each in spellings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(spellings)
    assert len({id(each) for each in found}) == 1


def test_s02_namespace_and_selector_hold_for_list_and_watch(
    factories: Factories, widgets: Collection, other: Collection
) -> None:
    """What is not selected is neither listed nor heard of later."""
    other.create(widget("else", labels={"app": "shop"}))
    widgets.create(widget("before", labels={"app": "shop"}))
    widgets.create(widget("unmeant", labels={"app": "mail"}))

    def tweak(options: ListOptions) -> None:
        options.label_selector = "app=shop"

    factory = factories(tweak_list_options=tweak)
    found, heard = factory.for_resource(WIDGETS), Heard()
    found.informer.add_event_handler(heard)
    factory.sync(PATIENCE)
    other.create(widget("elsewhere", labels={"app": "shop"}))
    widgets.create(widget("unmeant-too", labels={"app": "mail"}))
    seen(found.informer, widgets.create(widget("after", labels={"app": "shop"})))
    heard.wait("ADDED", "after")
    assert heard.told == [("ADDED", "before"), ("ADDED", "after")]
    assert sorted(found.lister.keys()) == [
        f"{widgets.namespace}/after",
        f"{widgets.namespace}/before",
    ]


@on_embedded
def test_s02_list_and_watch_ask_with_the_same_selectors(
    server: ApiServer, factories: Factories, widgets: Collection
) -> None:
    """Every request for the collection carries both selectors, and the tweak runs once."""
    tweaked: list[ListOptions] = []

    def tweak(options: ListOptions) -> None:
        tweaked.append(options)
        options.field_selector = "spec.color=red"

    factory = factories(tweak_list_options=tweak)
    factory.for_resource(WIDGETS, label_selector="a=b", watch_list=False)
    factory.sync(PATIENCE)
    path = widgets.path
    until(lambda: any(r.verb == "watch" and r.path == path for r in server.requests))
    asked = [r for r in server.requests if r.path == path]
    assert {r.verb for r in asked} == {"list", "watch"}
    assert {(r.param("labelSelector"), r.param("fieldSelector")) for r in asked} == {
        ("a=b", "spec.color=red")
    }
    assert len(tweaked) == 1


def test_s02_several_namespaces_are_one_informer(
    factories: Factories, widgets: Collection, other: Collection
) -> None:
    """Objects of all of them are in one cache, each told once, though one was named twice."""
    widgets.fill("a")
    other.fill("b")
    spaces = [widgets.namespace, other.namespace, widgets.namespace]
    factory = factories(namespace=spaces)
    found, heard = factory.for_resource(WIDGETS), Heard()
    found.informer.add_event_handler(heard)
    factory.sync(PATIENCE)
    other.fill("c")
    heard.wait("ADDED", "c")
    assert sorted(heard.told) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    assert [o["metadata"]["name"] for o in found.lister.by_namespace(widgets.namespace)] == ["a"]


@on_embedded
def test_s02_a_namespace_that_fails_touches_no_other(
    faults: Faults, factories: Factories, widgets: Collection, other: Collection
) -> None:
    """While one is refused the other is watched; synced, and a version, come with the last."""
    widgets.fill("a")
    other.fill("b")
    factory = factories(namespace=[widgets.namespace, other.namespace])
    found, heard = factory.for_resource(WIDGETS), Heard()
    found.informer.add_event_handler(heard)
    with faults.add(HttpStatus(403), namespace=other.namespace):
        factory.start()
        heard.wait("ADDED", "a")
        reason_of(found.informer, "forbidden")
        widgets.fill("c")
        heard.wait("ADDED", "c")
        assert not found.informer.has_synced()
        assert found.informer.last_sync_resource_version() == ""
    assert factory.wait_for_cache_sync(PATIENCE)
    assert found.informer.last_sync_resource_version()
    assert heard.wait("ADDED", "b").object["metadata"]["namespace"] == other.namespace


@on_embedded
def test_s03_start_again_starts_only_what_is_new(
    server: ApiServer, factories: Factories, widgets: Collection
) -> None:
    """A second start asks nothing more for what runs."""
    factory = factories()
    factory.for_resource(WIDGETS)
    factory.sync(PATIENCE)

    def asked() -> int:
        return sum(r.path == widgets.path for r in server.requests)

    before = asked()
    factory.for_resource(BLOBS)
    assert factory.status()[BLOBS].state is InformerState.WAITING
    factory.start()
    assert factory.sync(PATIENCE) == {WIDGETS: True, BLOBS: True}
    assert asked() == before


def test_s03_after_shutdown_reads_work_and_starts_do_not(
    factories: Factories, widgets: Collection
) -> None:
    """What was held is there; who asks for more is told that the factory has ended."""
    widgets.fill("a")
    factory = factories()
    found = factory.for_resource(WIDGETS)
    factory.sync(PATIENCE)
    assert factory.shutdown(5)
    assert factory.for_resource(WIDGETS) is found
    assert found.lister.get("a", widgets.namespace)["kind"] == "Widget"
    with pytest.raises(StoppedError):
        factory.start()
    with pytest.raises(StoppedError):
        factory.for_resource(BLOBS)


@pytest.mark.parametrize(
    ("asked", "trouble"),
    [
        (lambda f: f.for_resource(WIDGETS, label_selector="a in b"), InformerTrouble.BAD_REQUEST),
        (lambda f: f.for_resource(WIDGETS, field_selector="a=b"), InformerTrouble.BAD_REQUEST),
        (lambda f: f.for_resource(GLOBES), InformerTrouble.CLUSTER_SCOPED),
        (lambda f: f.for_resource(NODES), InformerTrouble.CLUSTER_SCOPED),
        (lambda f: f.for_resource(WIDGETS, transform=lambda _: None), InformerTrouble.TRANSFORM),
    ],
    ids=["label selector", "field selector", "cluster-scoped", "built-in", "transform"],
)
def test_s03_what_time_does_not_mend_is_not_waited_for(
    factories: Factories,
    widgets: Collection,
    asked: Callable[[DynamicSharedInformerFactory], GenericInformer],
    trouble: InformerTrouble,
) -> None:
    """Two tries, and sync raises, though its timeout is far; one that syncs is waited for."""
    widgets.fill("a", "b")
    factory = factories()
    lost, fine = asked(factory).gvr, factory.for_resource(BLOBS).gvr
    with pytest.raises(CacheSyncError, match="more time would not help") as caught:
        factory.sync(timeout=600)
    assert (caught.value.status[lost].trouble, caught.value.status[lost].lasting) == (trouble, 2)
    assert caught.value.status[fine].synced


def test_s03_rights_that_are_granted_later_are_waited_for_with_patience(
    cluster: Cluster, factories: Factories, widgets: Collection
) -> None:
    """Without it two tries are enough; all the while it is tried on, and syncs in the end."""
    widgets.fill("a")
    factory = factories(cluster.server.client(token=cluster.alice._token))
    found = factory.for_resource(WIDGETS)
    with pytest.raises(CacheSyncError, match="forbidden") as caught:
        factory.sync(timeout=600)
    assert "patient=True" in str(caught.value)
    with pytest.raises(CacheSyncError) as caught:
        factory.sync(timeout=0.1, patient=True)
    assert "patient=True" not in str(caught.value)
    for each in rights_of_alice(widgets.namespace):
        cluster.server.create(each, widgets.namespace)
    assert factory.sync(timeout=PATIENCE, patient=True) == {WIDGETS: True}
    assert found.informer.status().lasting == 0


@pytest.mark.parametrize("resource", ["wd", "widgets.ex.io", "ex.io/v1/widgets"])
def test_s03_refused_credentials_are_an_error_at_once(
    cluster: Cluster, namespace: str, resource: str
) -> None:
    """Whether the name is looked up or not, although the timeout is far."""
    client = cluster.server.client(token="top-secret-token")
    with pytest.raises(UnauthorizedError, match=r"credentials.*401.*Renew") as caught:
        open_informer(resource, client=client, namespace=namespace, timeout=600)
    assert not isinstance(caught.value, UnreachableError)  # which callers wait for
    assert "top-secret" not in str(caught.value)


def test_s03_a_sync_without_good_credentials_says_how_each_informer_stands(
    cluster: Cluster, factories: Factories
) -> None:
    """The UnauthorizedError is a CacheSyncError, too; with patience the timeout counts."""
    factory = factories(cluster.server.client(token="wrong"))
    for each in (WIDGETS, BLOBS):
        factory.for_resource(each)
    with pytest.raises(UnauthorizedError, match=r"2 of 2 caches.*more time would not") as caught:
        factory.sync(timeout=600)
    assert isinstance(caught.value, CacheSyncError)
    troubles = {status.trouble for status in caught.value.status.values()}
    assert troubles == {InformerTrouble.UNAUTHORIZED}
    with pytest.raises(UnauthorizedError, match="did not sync in 0"):
        factory.sync(timeout=0.1, patient=True)


@on_embedded
def test_s28_informers_go_on_trying_after_sync_has_given_up_on_the_credentials(
    server: ApiServer, factories: Factories, widgets: Collection
) -> None:
    """They sync once the server takes the token, and their error handlers got the same error."""
    widgets.fill("a")
    token = f"later-{widgets.namespace}"
    factory = factories(server.client(token=token))
    found = factory.for_resource(WIDGETS)
    errors: list[Exception] = []
    found.informer.set_watch_error_handler(errors.append)
    with pytest.raises(UnauthorizedError):
        factory.sync(timeout=600)
    assert isinstance(errors[0], UnauthorizedError)
    server.access.add_user("later", groups=["system:masters"], token=token)
    assert factory.sync(PATIENCE, patient=True)
    assert found.lister.keys() == [f"{widgets.namespace}/a"]
    assert found.informer.status().lasting == 0


@on_embedded
def test_s03_credentials_that_are_refused_for_some_informers_only_are_named_for_those(
    faults: Faults, factories: Factories, widgets: Collection
) -> None:
    """The error is a CacheSyncError that has another reason for the other one."""
    factory = factories()
    for each in (WIDGETS, BLOBS):
        factory.for_resource(each)
    refusals = [(401, "widgets"), (403, "blobs")]
    for code, resource in refusals:
        faults.add(HttpStatus(code), namespace=widgets.namespace, resource=resource)
    with pytest.raises(CacheSyncError, match=r"(?s)credentials.*forbidden") as caught:
        factory.sync(timeout=600)
    assert not isinstance(caught.value, UnauthorizedError)


@on_embedded
def test_s03_a_second_sync_waits_for_another_try(
    faults: Faults, factories: Factories, widgets: Collection
) -> None:
    """What was wrong at the last try may have been mended since then."""
    widgets.fill("a")
    factory = factories()
    factory.for_resource(WIDGETS)
    with faults.add(HttpStatus(403), namespace=widgets.namespace) as refusal:
        with pytest.raises(CacheSyncError):
            factory.sync(timeout=600)
        tries = refusal.hits
    assert tries == 2
    assert factory.sync(timeout=PATIENCE)


@on_embedded
def test_s03_one_namespace_that_is_lost_is_enough(
    faults: Faults, factories: Factories, widgets: Collection, other: Collection
) -> None:
    """An informer of several namespaces is synced when all are; a synced one counts no more."""
    factory = factories(namespace=[widgets.namespace, other.namespace])
    factory.for_resource(WIDGETS)
    refusal = faults.add(HttpStatus(403), namespace=other.namespace)
    with pytest.raises(CacheSyncError, match=other.namespace):
        factory.sync(timeout=600)
    refusal.remove()
    assert factory.sync(timeout=PATIENCE, patient=True)


def test_s03_a_short_name_is_looked_up_once_the_server_is_back(
    factories: Factories, relay: Relay, relayed: Any
) -> None:
    """For as long as was given; without a timeout it is an error at once."""
    factory = factories(relayed)
    found: list[GroupVersionResource] = []

    def look_up() -> None:
        found.append(factory.for_resource("wd", timeout=PATIENCE).gvr)

    thread = threading.Thread(target=look_up)
    with relay.away():
        with pytest.raises(UnreachableError, match="cannot look up 'wd'"):
            factory.for_resource("wd")
        before = relay.turned_away
        thread.start()
        until(lambda: relay.turned_away > before)
        assert found == []
    thread.join(PATIENCE)
    assert found == [WIDGETS]


def test_s03_a_name_that_the_server_has_not_is_not_waited_for(factories: Factories) -> None:
    """A misspelt one would never come, and the likely one is named."""
    with pytest.raises(UnknownResourceError, match="did you mean widgets"):
        factories().for_resource("widgetz", timeout=600)


@on_embedded
def test_s11_a_shutdown_ends_the_wait_for_a_name(
    factories: Factories, relay: Relay, relayed: Any
) -> None:
    """It is a wait as any other."""
    factory = factories(relayed)
    said: list[Exception] = []

    def look_up() -> None:
        try:
            factory.for_resource("wd", timeout=600)
        except StoppedError as error:
            said.append(error)

    thread = threading.Thread(target=look_up)
    with relay.away():
        thread.start()
        until(lambda: relay.turned_away)
        factory.shutdown(5)
        thread.join(PATIENCE)
    assert len(said) == 1


def test_s04_a_removed_informer_can_be_asked_for_anew(
    factories: Factories, widgets: Collection
) -> None:
    """Other options conflict while it runs; once it is removed there is a fresh one with them."""
    widgets.create(widget("a", labels={"app": "shop"}))
    widgets.fill("b")
    factory = factories()
    first = factory.for_resource(WIDGETS)
    factory.sync(PATIENCE)
    with pytest.raises(OptionsConflictError, match=r"factory\.remove"):
        factory.for_resource(WIDGETS, label_selector="app=shop")
    assert factory.remove(WIDGETS)
    second = factory.for_resource(WIDGETS, label_selector="app=shop")
    factory.sync(PATIENCE)
    assert second is not first
    assert len(first.lister) == 2
    assert second.lister.keys() == [f"{widgets.namespace}/a"]


@on_embedded
def test_s04_a_stopped_informer_is_replaced_by_a_fresh_one(
    factories: Factories, widgets: Collection
) -> None:
    """Who asks after an informer was stopped by itself gets one that runs."""
    factory = factories()
    first = factory.for_resource(WIDGETS)
    factory.sync(PATIENCE)
    assert first.informer.stop(5)
    second = factory.for_resource(WIDGETS)
    factory.sync(PATIENCE)
    widgets.fill("a")
    until(lambda: f"{widgets.namespace}/a" in second.lister)
    assert second is not first


@on_embedded
def test_s05_each_handler_is_told_again_at_its_own_period(
    server: ApiServer, factories: Factories, widgets: Collection
) -> None:
    """The factory's period holds where the handler names none, 0 is off, nothing is asked."""
    widgets.fill("a", "b")
    factory = factories(resync=1)
    informer = factory.for_resource(WIDGETS).informer
    usual, never, own = Heard(), Heard(), Heard()
    informer.add_event_handler(usual)
    informer.add_event_handler(never, resync=0)
    informer.add_event_handler_with_resync_period(own, 1.5)
    factory.sync(PATIENCE)
    before = len([r for r in server.requests if r.path == widgets.path])
    own.wait("SYNC", "b")
    usual.wait("SYNC", "b")
    assert never.told == [("ADDED", "a"), ("ADDED", "b")]
    sync = own.wait("SYNC", "a")
    assert sync.object == sync.old
    assert len([r for r in server.requests if r.path == widgets.path]) == before


@on_embedded
def test_s05_a_period_below_a_second_is_a_mistake(factories: Factories) -> None:
    """On the factory, on the resource, on the handler."""
    factory = factories()
    informer = factory.for_resource(WIDGETS).informer
    for attempt in (
        lambda: factories(resync=0.5),
        lambda: ResourceOptions(resync=0.5),
        lambda: informer.add_event_handler(Heard(), resync=0.5),
    ):
        with pytest.raises(ValueError, match="1 second"):
            attempt()


@on_embedded
def test_s05_a_handler_that_is_still_busy_skips_the_next_resync(
    factories: Factories, widgets: Collection
) -> None:
    """It is counted, and the handler is told once more when it is through."""
    widgets.fill("a")
    counts, free = Counts(), threading.Event()

    def block(event: Any) -> None:
        if event.type is EventType.SYNC:
            free.wait(PATIENCE)

    factory = factories(metrics=counts)
    heard = Heard(block)
    factory.for_resource(WIDGETS).informer.add_event_handler(heard, resync=1)
    factory.sync(PATIENCE)
    until(lambda: counts["resyncs_skipped"], PATIENCE)
    free.set()
    heard.wait("SYNC", "a")


def test_s33_a_custom_resource_that_is_not_installed_may_be_asked_for(
    factories: Factories, group: str
) -> None:
    """It is no error; the status says that it does not exist."""
    factory = factories()
    missing = GroupVersionResource(group, "v1", "rows")
    informer = factory.for_resource(missing).informer
    factory.start()
    until(lambda: informer.status().state is InformerState.ABSENT, PATIENCE)
    assert f"no CustomResourceDefinition rows.{group}" in informer.status().reason


@on_embedded
def test_s02_versions_are_unknown_until_every_namespace_is_synced(
    faults: Faults, factories: Factories, widgets: Collection, other: Collection
) -> None:
    """A namespace whose server says nothing keeps the informer unsynced."""
    factory = factories(namespace=[widgets.namespace, other.namespace])
    informer = factory.for_resource(WIDGETS).informer
    with faults.add(BlackHole(), namespace=other.namespace) as silence:
        factory.start()
        assert silence.wait_hit()
        until(lambda: informer.status().last_contact)
        assert not factory.wait_for_cache_sync(0)
        assert informer.last_sync_resource_version() == ""
