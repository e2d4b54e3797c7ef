"""Owners, what is owned, trees and events, from the caches of a factory and from its server."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from dyninformer import (
    DynamicSharedInformerFactory,
    ForbiddenError,
    NotKeptError,
    StoppedError,
    UnauthorizedError,
    UnreachableError,
)
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import BlackHole, Fault, HttpStatus, Reset
from dyninformer.types import Object, Objects
from tests.conformance.shapes import ANYTHING, crd
from tests.conformance.wire import until


def named(objects: Objects) -> list[str]:
    """Kind and name of each."""
    return [f"{each['kind']}/{each['metadata']['name']}" for each in objects]


class Family:
    """A ConfigMap that owns a Secret, which owns another ConfigMap and a ServiceAccount."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.top = self.made("ConfigMap", "top")
        self.middle = self.made("Secret", "middle", self.top)
        self.low = self.made("ConfigMap", "low", self.middle)
        self.account = self.made("ServiceAccount", "account", self.middle)
        for number, time in enumerate(("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z")):
            server.create(self.event(f"ev-{number}", time))

    def made(self, kind: str, name: str, *owners: Object) -> Object:
        """An object, with its owners."""
        refs = [
            {
                "apiVersion": each["apiVersion"],
                "kind": each["kind"],
                "name": each["metadata"]["name"],
                "uid": each["metadata"]["uid"],
            }
            for each in owners
        ]
        metadata = {"name": name, "namespace": "default", "ownerReferences": refs}
        return self.server.create({"apiVersion": "v1", "kind": kind, "metadata": metadata})

    def event(self, name: str, time: str) -> Object:
        """One about the Secret."""
        about = {"kind": "Secret", "name": "middle", "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {**about, "uid": self.middle["metadata"]["uid"]},
            "reason": name,
            "lastTimestamp": time,
        }


def lists(server: ApiServer) -> int:
    """How many collections were read. Watches, and what they need, are asked for at any time."""
    beside = ("/api", "/apis", "/readyz")
    return sum(
        ("watch", "true") not in each.query
        and each.path not in beside
        and "customresourcedefinitions" not in each.path
        for each in server.requests
    )


@pytest.fixture(scope="module")
def family() -> Iterator[Family]:
    """One for all tests; nothing changes it, but for what a test makes."""
    with ApiServer() as server:
        yield Family(server)


@pytest.fixture
def factory(family: Family) -> Iterator[DynamicSharedInformerFactory]:
    """It caches ConfigMaps and Secrets."""
    with DynamicSharedInformerFactory(family.server.client()) as made:
        made.for_resource("v1/configmaps")
        made.for_resource("v1/secrets")
        made.sync(timeout=30)
        yield made


def test_s41_what_is_cached_is_found(family: Family, factory: DynamicSharedInformerFactory) -> None:
    """Owners and owned, of whatever cached kinds; nothing is asked of the server."""
    before = lists(family.server)
    assert named(factory.owners(family.middle)) == ["ConfigMap/top"]
    assert named(factory.owned_by(family.middle)) == ["ConfigMap/low"]
    assert factory.owners(family.top) == factory.owned_by(family.low) == []
    (top,) = factory.tree(family.low).data()
    assert top["owned"][0]["owned"][0]["name"] == "low"
    assert lists(family.server) == before


def test_s41_what_is_not_cached_is_fetched_when_asked(
    family: Family, factory: DynamicSharedInformerFactory
) -> None:
    """Whole objects; kinds of which all is cached are not asked for."""
    before = len(family.server.requests)
    found = factory.owned_by(family.middle, fetch=True)
    assert named(found) == ["ConfigMap/low", "ServiceAccount/account"]
    assert found[1] == family.account
    asked = {each.path for each in family.server.requests[before:]}
    assert "/api/v1/namespaces/default/serviceaccounts" in asked
    assert not any("configmaps" in each or "secrets" in each for each in asked)
    with DynamicSharedInformerFactory(family.server.client()) as empty:
        assert named(empty.owners(family.account, fetch=True)) == ["Secret/middle"]
        tree = empty.tree(family.account, fetch=True)
        (top,) = tree.data()
        assert top["name"] == "top"
        assert top["owned"][0]["owned"][0]["name"] == "account"
        assert empty.owners(family.account) == []
        (alone,) = empty.tree(family.account).data()
        assert (alone["name"], alone["note"]) == ("middle", "not cached")


def test_s41_the_index_is_kept_up_to_date(
    family: Family, factory: DynamicSharedInformerFactory
) -> None:
    """What comes later is found; and what is shown by a stopped factory is what it had."""
    assert factory.owned_by(family.low) == []
    made = family.made("ConfigMap", "late", family.low)
    maps = factory.for_resource("v1/configmaps").informer
    maps.wait_for_version(made, timeout=30)
    assert named(factory.owned_by(family.low)) == ["ConfigMap/late"]
    factory.shutdown(5)
    assert named(factory.owned_by(family.low)) == ["ConfigMap/late"]


def test_s41_a_stopped_informer_is_asked_as_well(family: Family) -> None:
    """Also for the first time: an index that is made then is a read (S19)."""
    with DynamicSharedInformerFactory(family.server.client()) as factory:
        factory.for_resource("v1/secrets")
        factory.sync(timeout=30)
    assert named(factory.owned_by(family.top)) == ["Secret/middle"]


def test_s41_an_owner_of_another_uid_is_none(
    family: Family, factory: DynamicSharedInformerFactory
) -> None:
    """It is an older object of the same name."""
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "top", "uid": "an-older-one"}
    orphan = {
        "kind": "Pod",
        "metadata": {"namespace": "default", "uid": "x", "ownerReferences": [reference]},
    }
    assert factory.owners(orphan) == factory.owners(orphan, fetch=True) == []
    assert "(not there any more)" in str(factory.tree(orphan, fetch=True))


def test_s41_an_owner_in_another_namespace_is_none(family: Family) -> None:
    """Both ways, cached or not: it owns nothing there, nor what is in no namespace."""
    server = family.server
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "top"}
    reference["uid"] = family.top["metadata"]["uid"]
    metadata = {"name": "stray", "ownerReferences": [reference]}
    strays = [
        server.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, namespace="kube-public"
        ),
        server.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata}),
    ]
    with DynamicSharedInformerFactory(server.client()) as factory:
        for resource in ("v1/configmaps", "v1/secrets", "v1/nodes"):
            factory.for_resource(resource)
        factory.sync(timeout=30)
        for fetch in (False, True):
            assert named(factory.owned_by(family.top, fetch=fetch)) == ["Secret/middle"]
            assert [factory.owners(each, fetch=fetch) for each in strays] == [[], []]
            assert "stray" not in str(factory.tree(family.top, fetch=fetch))


def test_s41_events_about_an_object(family: Family, factory: DynamicSharedInformerFactory) -> None:
    """Oldest first, from the cache or from the server."""
    with pytest.raises(NotKeptError, match=r"for_resource\('v1/events'\)"):
        factory.events_of(family.middle)
    assert [each["reason"] for each in factory.events_of(family.middle, fetch=True)] == [
        "ev-1",
        "ev-0",
    ]
    factory.for_resource("v1/events")
    factory.for_resource("events.k8s.io/v1/events")
    factory.sync(timeout=30)
    before = lists(family.server)
    assert [each["metadata"]["name"] for each in factory.events_of(family.middle)] == [
        "ev-1",
        "ev-0",
    ]
    assert factory.events_of(family.low) == factory.events_of(family.low, fetch=True) == []
    assert lists(family.server) == before


def test_s41_events_with_microseconds_come_after_their_second(family: Family) -> None:
    """New events have such times, old ones whole seconds."""
    about = family.made("ConfigMap", "told-of")
    metadata = about["metadata"]
    times = ("2026-01-01T00:00:05.500000Z", "2026-01-01T00:00:05Z", "2026-01-01T00:00:04.900000Z")
    for number, time in enumerate(times):
        event = family.event(f"told-{number}", time)
        event["involvedObject"] |= {"kind": "ConfigMap", "name": metadata["name"]}
        event["involvedObject"]["uid"] = metadata["uid"]
        if "." in time:
            event["eventTime"] = event.pop("lastTimestamp")
        family.server.create(event)
    with DynamicSharedInformerFactory(family.server.client()) as factory:
        found = [each["reason"] for each in factory.events_of(about, fetch=True)]
    assert found == ["told-2", "told-1", "told-0"]


def test_s41_events_about_a_node_are_those_of_its_kubelet_too(family: Family) -> None:
    """A kubelet gives the node's name for its uid; its events are in the namespace default."""
    node = family.server.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}})
    for uid, reason in ((node["metadata"]["uid"], "ByUid"), ("n1", "ByName"), ("n2", "Other")):
        event = family.event(f"node-{reason.lower()}", "2026-01-01T00:00:05Z")
        event["involvedObject"] = {"kind": "Node", "name": "n1", "uid": uid}
        family.server.create(event | {"reason": reason})
    with DynamicSharedInformerFactory(family.server.client()) as factory:
        asked = factory.events_of(node, fetch=True)
        factory.for_resource("v1/events")
        factory.sync(timeout=30)
        for found in (asked, factory.events_of(node)):
            assert sorted(each["reason"] for each in found) == ["ByName", "ByUid"]


def test_s41_a_refusal_is_said(family: Family) -> None:
    """Of what was asked for by itself; a kind that may not be listed is left out."""
    with ApiServer() as server:
        client = server.client(token=server.access.add_user("dev"))
        server.access.allow("dev", verbs=["get", "list"], resources="secrets")
        with DynamicSharedInformerFactory(client) as factory:
            with pytest.raises(ForbiddenError, match="cannot list events: forbidden"):
                factory.events_of(family.middle, fetch=True)
            assert factory.owned_by(family.middle, fetch=True) == []


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Reset(), UnreachableError),
        (HttpStatus(503), UnreachableError),
        (HttpStatus(401), UnauthorizedError),
    ],
    ids=["reset", "503", "401"],
)
def test_s41_a_server_that_is_away_is_no_empty_answer(
    family: Family, fault: Fault, error: type[Exception]
) -> None:
    """Who asks it for owners and what they own is told, and does not take them for gone."""
    with DynamicSharedInformerFactory(family.server.client()) as factory:
        assert named(factory.owners(family.account, fetch=True)) == ["Secret/middle"]
        assert named(factory.owned_by(family.top, fetch=True)) == ["Secret/middle"]
        with family.server.faults.add(fault, path="/api*"):
            for ask in factory.owners, factory.owned_by, factory.tree:
                with pytest.raises(error):
                    ask(family.account, fetch=True)
        with family.server.faults.add(fault, resource="secrets", verb="list"):
            assert named(factory.owned_by(family.middle, fetch=True)) == [
                "ConfigMap/low",
                "ServiceAccount/account",
            ]
    for ask in factory.owners, factory.owned_by, factory.tree:
        with pytest.raises(StoppedError):
            ask(family.account, fetch=True)


def test_s41_a_search_of_all_kinds_logs_no_warning_of_deprecated_ones(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The user did not name them; an informer of one logs it."""
    with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
        warning = f"no more olds at {server.url}"
        shape = crd("old.io", "olds", "Old", ANYTHING)
        shape["spec"]["versions"][0] |= {"deprecated": True, "deprecationWarning": warning}
        server.install(shape)
        family = Family(server)
        assert named(factory.owned_by(family.top, fetch=True)) == ["Secret/middle"]
        assert warning not in caplog.text
        factory.for_resource("olds")
        factory.sync(timeout=30)
    assert warning in caplog.text


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads here")
def test_an_interrupt_ends_what_is_asked_of_a_silent_server(family: Family) -> None:
    """The threads that wait for answers end at once: the exit of Python would wait for them."""
    main = threading.main_thread()

    def searching() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name.startswith("dyninformer tree")]

    with (
        DynamicSharedInformerFactory(family.server.client()) as factory,
        family.server.faults.add(BlackHole(), resource="secrets", verb="list") as silence,
    ):

        def interrupt() -> None:
            assert silence.wait_hit()
            signal.pthread_kill(main.ident or 0, signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            factory.tree(family.top, fetch=True)
        until(lambda: not searching())


def test_what_is_no_object_of_the_server_is_refused(
    factory: DynamicSharedInformerFactory,
) -> None:
    """It has no uid to look for."""
    with pytest.raises(ValueError, match=r"no metadata.uid: give an object that the server has"):
        factory.owned_by({"metadata": {"name": "a"}})
