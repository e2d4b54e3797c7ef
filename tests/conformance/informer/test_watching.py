"""The watch, its ends and its errors: S26-S30, S32."""

from __future__ import annotations

import itertools
import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dyninformer import DynamicSharedInformerFactory, InformerState
from dyninformer.testing.api_server import ApiServer
from dyninformer.testing.client import kubeconfig_text
from dyninformer.testing.faults import (
    BlackHole,
    CutChunks,
    EndEarly,
    Faults,
    HttpStatus,
    InjectLine,
    OversizedLine,
    Reset,
    StreamError,
    Truncate,
)
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.conftest import Asked, Factories, Running
from tests.conformance.informer.recorders import (
    CONFIG_MAPS,
    PATIENCE,
    WIDGETS,
    Counts,
    Heard,
    form,
    on_embedded,
    reason_of,
    rights_of_alice,
    seen,
)
from tests.conformance.informer.relay import Relay
from tests.conformance.wire import until


def list_of(collection: Collection) -> set[str]:
    """The names that the server has."""
    return set(collection.api.get(collection.path).names)


# -- S26: the watch ---


@on_embedded
def test_s26_a_watch_goes_on_from_the_last_version_with_bookmarks(
    asked: Asked, running: Running, widgets: Collection
) -> None:
    """It asks for a timeout that is not the same for all, well below the server's own."""
    version = widgets.version()
    running(watch_list=False)
    until(lambda: len(asked()) >= 2)
    watch = asked()[1]
    assert watch.param("resourceVersion") == version
    assert watch.param("allowWatchBookmarks") == "true"
    assert 200 <= int(watch.param("timeoutSeconds") or 0) <= 240


@on_embedded
def test_s26_chunks_may_cut_lines_and_characters_anywhere(
    faults: Faults, running: Running, widgets: Collection
) -> None:
    """What comes in pieces of a few bytes is read like any other."""
    faults.add(CutChunks(7), verb="watch", namespace=widgets.namespace)
    widgets.fill("a", note="zażółć gęślą jaźń 🐍")
    found = running()
    seen(found.informer, widgets.fill("b", note="日本語")[0])
    notes = {o["spec"]["note"] for o in found.lister}
    assert notes == {"zażółć gęślą jaźń 🐍", "日本語"}


@on_embedded
def test_s26_a_line_of_many_megabytes_is_read(
    faults: Faults, running: Running, widgets: Collection
) -> None:
    """There is no bound on an event but memory."""
    faults.add(OversizedLine(8 << 20), verb="watch", namespace=widgets.namespace, times=1)
    widgets.fill("a")
    assert running().lister.keys() == [f"{widgets.namespace}/a"]


# -- S27: clean ends ---


@on_embedded
def test_s27_a_stream_of_a_built_in_resource_that_ends_early_is_watched_on(
    faults: Faults, server: ApiServer, running: Running, namespace: str
) -> None:
    """No list is needed: the next watch begins at the last version."""
    add = partial(faults.add, verb="watch", resource="configmaps", namespace=namespace, times=1)
    add(EndEarly(after_lines=2))
    found, heard = running(CONFIG_MAPS), Heard()
    found.informer.add_event_handler(heard)
    made = {"apiVersion": "v1", "kind": "ConfigMap"}
    server.create({**made, "metadata": {"name": "a"}}, namespace)
    server.create({**made, "metadata": {"name": "b"}}, namespace)
    heard.wait("ADDED", "b")
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    until(lambda: len([r for r in server.requests if r.path == path]) >= 2)
    forms = [form(each) for each in server.requests if each.path == path]
    assert forms == ["streaming list", "watch"]
    assert heard.told == [("ADDED", "a"), ("ADDED", "b")]


@on_embedded
def test_s27_a_stream_that_ends_at_once_without_events_is_a_failure(
    faults: Faults, asked: Asked, running: Running, widgets: Collection
) -> None:
    """The server is not asked again at once: the moments of its requests show it."""
    faults.add(EndEarly(), verb="watch", namespace=widgets.namespace, times=1)
    running(watch_list=False)
    until(lambda: len(asked()) >= 3)
    _, first, second = asked()[:3]
    assert second.at - first.at >= 0.8


# -- S28: errors ---


@on_embedded
@pytest.mark.parametrize(
    "error",
    [StreamError(410, after_lines=2), StreamError(None, reason="Expired", after_lines=2)],
    ids=["410", "Expired"],
)
def test_s28_too_old_in_the_stream_makes_it_list_at_once(
    faults: Faults, asked: Asked, running: Running, widgets: Collection, error: StreamError
) -> None:
    """With or without a code; what is held stays, and nobody hears of it."""
    widgets.fill("a")
    faults.add(error, verb="watch", namespace=widgets.namespace, times=1)
    found, heard = running(watch_list=False), Heard()
    found.informer.add_event_handler(heard)
    widgets.fill("b", "c", "d")
    heard.wait("ADDED", "d")
    assert [form(each) for each in asked()[:3]] == ["list", "watch", "list"] or [
        form(each) for each in asked()[:3]
    ] == ["list", "watch", "streaming list"]
    assert sorted(heard.told) == [("ADDED", name) for name in "abcd"]


@on_embedded
def test_s28_another_error_in_the_stream_backs_off_and_lists(
    faults: Faults, asked: Asked, running: Running, widgets: Collection
) -> None:
    """A 500 inside of a stream says nothing of what was missed."""
    faults.add(
        StreamError(500, "etcd is away", after_lines=2),
        verb="watch",
        namespace=widgets.namespace,
        times=1,
    )
    found = running()
    widgets.fill("a")
    assert "etcd is away" in reason_of(found.informer, "ended with an error")
    until(lambda: len(asked()) >= 2)
    first, second = asked()[:2]
    assert (form(first), form(second)) == ("streaming list", "streaming list")
    assert second.at - first.at >= 0.8


@on_embedded
@pytest.mark.parametrize("code", [429, 503])
def test_s28_retry_after_is_honoured(
    faults: Faults, asked: Asked, running: Running, widgets: Collection, code: int
) -> None:
    """The server is asked again no sooner than it said."""
    faults.add(HttpStatus(code, retry_after=2), verb="watch", namespace=widgets.namespace, times=1)
    running()
    first, second = asked()
    assert second.at - first.at >= 2


def test_s28_a_right_that_is_taken_away_and_given_back(
    cluster: Cluster, factories: Factories, widgets: Collection
) -> None:
    """Forbidden is never permanent: the status says why, and what is held stays."""
    widgets.fill("a")
    server = cluster.server
    factory = factories(server.client(token=cluster.alice._token))
    found, heard = factory.for_resource(WIDGETS), Heard()
    found.informer.add_event_handler(heard)
    factory.start()
    assert 'User "alice"' in reason_of(found.informer, "forbidden")
    for each in rights_of_alice(widgets.namespace):
        server.create(each, widgets.namespace)
    assert factory.wait_for_cache_sync(PATIENCE)
    heard.wait("ADDED", "a")


@on_embedded
def test_s28_a_right_lost_later_keeps_what_is_held(
    faults: Faults, running: Running, widgets: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    """403 on a watch backs off with the reason, logged once; then it goes on."""
    widgets.fill("a")
    add = partial(faults.add, verb="watch", namespace=widgets.namespace, times=1)
    add(Reset(after_lines=3))
    add(HttpStatus(403, "not any more"), skip=1)
    found, heard = running(), Heard()
    found.informer.add_event_handler(heard)
    widgets.fill("b")
    reason_of(found.informer, "not any more")
    assert found.informer.status().state is InformerState.BACKING_OFF
    assert found.informer.has_synced()
    assert len(found.lister) == 2
    widgets.fill("c")
    heard.wait("ADDED", "c")
    assert found.informer.status().reason == ""
    assert caplog.text.count("not any more") == 1


@on_embedded
def test_s28_a_token_that_was_rotated_is_read_anew(
    cluster: Cluster, server: ApiServer, widgets: Collection, tmp_path: Path
) -> None:
    """401 has the kubeconfig read again, and the next request carries the new token."""
    old = server.access.add_user("rotating", groups=["system:masters"])
    path, ca = tmp_path / "kubeconfig", server.ca
    assert ca is not None
    path.write_text(kubeconfig_text(server.url, old, ca.read_bytes()))
    with DynamicSharedInformerFactory(kubeconfig=path, namespace=widgets.namespace) as factory:
        found, heard = factory.for_resource(WIDGETS), Heard()
        found.informer.add_event_handler(heard)
        factory.sync(PATIENCE)
        server.access.remove_token(old)
        new = server.access.add_user("rotating", groups=["system:masters"])
        path.write_text(kubeconfig_text(server.url, new, ca.read_bytes()))
        server.restart()
        widgets.fill("a")
        heard.wait("ADDED", "a")


@on_embedded
def test_s28_a_kubeconfig_that_is_repaired_later_is_read_then(
    cluster: Cluster, server: ApiServer, widgets: Collection, tmp_path: Path
) -> None:
    """The token was refused twice before: it is read again with each further try."""
    old = server.access.add_user("late", groups=["system:masters"])
    path, ca = tmp_path / "kubeconfig", server.ca
    assert ca is not None
    path.write_text(kubeconfig_text(server.url, old, ca.read_bytes()))
    with DynamicSharedInformerFactory(kubeconfig=path, namespace=widgets.namespace) as factory:
        found, heard = factory.for_resource(WIDGETS), Heard()
        found.informer.add_event_handler(heard)
        factory.sync(PATIENCE)
        server.access.remove_token(old)
        server.restart()
        until(lambda: found.informer.status().trouble == "unauthorized")
        new = server.access.add_user("late", groups=["system:masters"])
        path.write_text(kubeconfig_text(server.url, new, ca.read_bytes()))
        widgets.fill("a")
        heard.wait("ADDED", "a")


@on_embedded
def test_s28_a_client_whose_token_is_refused_says_so(
    cluster: Cluster, factories: Factories
) -> None:
    """The reason speaks of the credentials, and holds nothing of them."""
    factory = factories(cluster.server.client(token="top-secret-token"))
    informer = factory.for_resource(WIDGETS).informer
    factory.start()
    reason = reason_of(informer, "401")
    assert "top-secret" not in reason


# -- S29: how often it asks ---


@on_embedded
def test_s29_tries_grow_apart(
    faults: Faults, asked: Asked, factories: Factories, widgets: Collection
) -> None:
    """The first comes after at least 0.8 s, the second after 1.6; next_try says when."""
    factory = factories()
    informer = factory.for_resource(WIDGETS).informer
    with faults.add(HttpStatus(503), namespace=widgets.namespace):
        factory.start()
        until(lambda: informer.status().attempts >= 3, PATIENCE)
        status = informer.status()
    moments = [each.at for each in asked()]
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert gaps[0] >= 0.8
    assert gaps[1] >= 1.6
    assert status.next_try is not None
    assert status.since is not None
    assert (status.next_try - status.since).total_seconds() >= 3.2


# -- S30: versions ---


@on_embedded
def test_s30_events_older_than_what_is_held_are_dropped(
    faults: Faults, running: Running, widgets: Collection
) -> None:
    """A stream that goes back in time for a moment changes nothing."""
    widgets.fill("a", size=1)
    old = widgets.api.get(widgets.at("a")).body.strip()
    widgets.merge("a", {"spec": {"size": 2}})
    faults.add(
        InjectLine(b'{"type":"MODIFIED","object":' + old + b"}", after_lines=2),
        verb="watch",
        namespace=widgets.namespace,
        times=1,
    )
    found, heard = running(), Heard()
    found.informer.add_event_handler(heard)
    widgets.fill("b")
    heard.wait("ADDED", "b")
    assert heard.told == [("ADDED", "a"), ("ADDED", "b")]
    assert found.lister.get("a", widgets.namespace)["spec"]["size"] == 2


def test_s30_a_cluster_restored_from_a_backup_is_taken_as_it_is(
    cluster: Cluster,
    running: Running,
    widgets: Collection,
    relay: Relay,
    relayed: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What was written since is deleted, though versions went back; and it is logged."""
    server = cluster.server
    widgets.fill("kept", "changed")
    snapshot = server.snapshot()
    found, heard = running(client=relayed), Heard()
    found.informer.add_event_handler(heard)
    widgets.merge("changed", {"spec": {"size": 5}})
    names = [f"lost{number}" for number in range(8)]
    widgets.fill(*names)
    heard.wait("ADDED", names[-1])
    with caplog.at_level(logging.WARNING, "dyninformer"):
        with relay.holding():
            server.restore(snapshot)  # type: ignore[arg-type]
        heard.wait("DELETED", names[-1])
    held = {o["metadata"]["name"]: o["spec"].get("size") for o in found.lister}
    assert held == {"kept": None, "changed": None}
    assert "restored from a backup" in caplog.text
    widgets.fill("new")
    heard.wait("ADDED", "new")


def test_s30_a_restore_that_later_writes_have_hidden_is_found(
    cluster: Cluster, running: Running, widgets: Collection, relay: Relay, relayed: Any
) -> None:
    """The server has passed what is held by the time it is asked: it has another past."""
    server = cluster.server
    widgets.fill("kept", "changed", "deleted")
    snapshot = server.snapshot()
    found, heard = running(client=relayed), Heard()
    found.informer.add_event_handler(heard)
    heard.wait_count(3)
    widgets.merge("changed", {"spec": {"size": 5}})
    widgets.api.delete(widgets.at("deleted"))
    widgets.fill("lost")
    heard.wait("ADDED", "lost")
    before = int(found.informer.last_sync_resource_version())
    with relay.holding():
        server.restore(snapshot)  # type: ignore[arg-type]
        until(lambda: widgets.api.get(f"{widgets.path}?resourceVersion=0").status == 200)
        written = 0
        while int(widgets.version()) <= before + 1:
            written += 1
            widgets.fill(f"new{written}")
    heard.wait("DELETED", "lost")
    names = {"kept", "changed", "deleted", *(f"new{n}" for n in range(1, written + 1))}
    until(lambda: {each["metadata"]["name"] for each in found.lister} == names)
    assert found.lister.get("changed", widgets.namespace)["spec"].get("size") is None
    assert {name for type_, name in heard.told if type_ == "DELETED"} == {"deleted", "lost"}


def test_s30_a_server_that_was_killed_is_watched_on(
    cluster: Cluster, running: Running, widgets: Collection, relay: Relay, relayed: Any
) -> None:
    """After kill -9 and a restart, only what changed is told."""
    widgets.fill("a", "b")
    found, heard = running(client=relayed), Heard()
    found.informer.add_event_handler(heard)
    heard.wait_count(2)
    with relay.holding():
        cluster.server.restart()
        until(lambda: widgets.api.get(widgets.path).status == 200)
        widgets.api.delete(widgets.at("a"))
        widgets.fill("c")
    heard.wait("ADDED", "c")
    assert heard.told[2:] == [("DELETED", "a"), ("ADDED", "c")]
    assert list_of(widgets) == {o["metadata"]["name"] for o in found.lister}


# -- S32: what makes no sense ---


@on_embedded
@pytest.mark.parametrize(
    "obj",
    [
        b'{"metadata":{"resourceVersion":"%d"}}',
        b'{"metadata":{"name":"a/b","resourceVersion":"%d"}}',
        b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d"}}',
    ],
    ids=["no name", "a slash", "table"],
)
def test_s32_an_object_that_cannot_be_used_is_counted_and_skipped(
    faults: Faults, asked: Asked, running: Running, widgets: Collection, obj: bytes
) -> None:
    """The stream goes on, over the same connection."""
    counts = Counts()
    (held,) = widgets.fill("a")
    line = b'{"type":"ADDED","object":' + obj % (int(held["metadata"]["resourceVersion"]) + 1)
    faults.add(
        InjectLine(line + b"}", after_lines=2),
        verb="watch",
        namespace=widgets.namespace,
        times=1,
    )
    found, heard = running(metrics=counts), Heard()
    found.informer.add_event_handler(heard)
    widgets.fill("b")
    heard.wait("ADDED", "b")
    assert heard.told == [("ADDED", "a"), ("ADDED", "b")]
    assert counts["unusable_objects"] == 1
    assert len(asked()) == 1


@on_embedded
@pytest.mark.parametrize(
    "broken",
    [InjectLine(after_lines=2), Truncate(after_lines=2), InjectLine(b"[]", after_lines=2)],
    ids=["garbage", "half a line", "no event"],
)
def test_s32_a_broken_frame_reopens_the_stream(
    faults: Faults, running: Running, widgets: Collection, broken: InjectLine | Truncate
) -> None:
    """From the last version, once; nothing is lost."""
    widgets.fill("a")
    faults.add(broken, verb="watch", namespace=widgets.namespace, times=1)
    found, heard = running(), Heard()
    found.informer.add_event_handler(heard)
    widgets.fill("b")
    heard.wait("ADDED", "b")
    widgets.fill("c")
    heard.wait("ADDED", "c")
    assert heard.told == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


@on_embedded
def test_s32_reports_show_nothing_of_what_is_inside_quotes(
    faults: Faults, running: Running, widgets: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    """A Secret in a broken line does not get into the log or the status."""
    line = b'{"type":"ADDED","object":{"data":{"password":"aHVudGVyMg=="}, oops'
    faults.add(InjectLine(line, after_lines=1), verb="watch", namespace=widgets.namespace, times=1)
    found = running()
    reason = reason_of(found.informer, "malformed")
    until(lambda: "malformed" in caplog.text)
    assert "aHVudGVyMg" not in reason + caplog.text


# -- watch disruption ---


@on_embedded
@pytest.mark.parametrize(
    "disruption",
    [Reset(after_lines=3), BlackHole(after_lines=3), EndEarly(after_lines=3)],
    ids=["reset", "silence and a restart", "end"],
)
def test_s14_a_disrupted_watch_tells_only_what_changed(
    faults: Faults,
    server: ApiServer,
    running: Running,
    widgets: Collection,
    disruption: Reset | BlackHole | EndEarly,
) -> None:
    """Whatever ended the stream, unchanged objects are not told again."""
    widgets.fill("a", "b")
    injection = faults.add(disruption, verb="watch", namespace=widgets.namespace, times=1)
    found, heard = running(), Heard()
    found.informer.add_event_handler(heard)
    assert injection.wait_hit()
    widgets.merge("b", {"spec": {"size": 3}})
    if isinstance(disruption, BlackHole):
        server.restart()
    heard.wait("UPDATED", "b")
    assert heard.told == [("ADDED", "a"), ("ADDED", "b"), ("UPDATED", "b")]
