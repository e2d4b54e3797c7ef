"""What each thing shows, on a cluster with hostile names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dyninformer import (
    DynamicSharedInformerFactory,
    GenericInformer,
    SharedIndexInformer,
    aio,
    open_informer,
    open_recording,
    show,
)
from dyninformer.display.notebook import page
from dyninformer.moments.recorded import RecordingLine, RecordingWriter, ResourceDefinition
from dyninformer.moments.recording import Recording
from dyninformer.moments.version import Versions
from dyninformer.relations.tree import Tree, TreeNode
from dyninformer.testing import ApiServer
from dyninformer.threads import Deadline, Waiting, waited
from tests.display.test_html import Reader, check
from tests.frames.objects import certificate, holding

EVIL = "<img src=x onerror=alert(1)>"
CERT: dict[str, Any] = {
    "apiVersion": "cert-manager.io/v1",
    "kind": "Certificate",
    "metadata": {"name": "evil", "namespace": "prod", "annotations": {"note": EVIL}},
    "spec": {"secretName": EVIL, "issuerRef": {"name": EVIL}},
}
SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "token",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"},
    },
    "data": {"password": "aHVudGVyMg=="},
    "stringData": {"plain": "hunter2"},
}


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """A cluster with a certificate that somebody has named badly."""
    with ApiServer() as found:
        found.install("examples/crd")
        found.create(CERT)
        found.create(SECRET, namespace="default")
        yield found


@pytest.fixture(scope="module")
def factory(server: ApiServer) -> Iterator[DynamicSharedInformerFactory]:
    """Of certificates and Secrets, synced."""
    with DynamicSharedInformerFactory(server.client()) as found:
        found.for_resource("cert", indexers={"by-issuer": ".spec.issuerRef.name"})
        found.for_resource("v1/secrets")
        found.sync(timeout=30)
        yield found


@pytest.fixture(scope="module")
def certs(factory: DynamicSharedInformerFactory) -> GenericInformer:
    """Its certificates."""
    return factory.for_resource("cert")


def texts(thing: Any) -> str:
    """What it shows as text, if its HTML says the same and is harmless."""
    bundle = thing._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    read = Reader(bundle["text/html"])
    check(read)
    words = "".join(read.text.split()).lower()
    for word in str(bundle["text/plain"]).lower().split():
        assert word in words
    assert thing.__rich__() is not None
    return str(bundle["text/plain"])


def test_a_lister_shows_its_objects_in_the_columns_of_kubectl(certs: GenericInformer) -> None:
    """And in one line how it stands; the informer does, too, and each namespace."""
    shown = texts(certs.lister)
    first, standing, headings, *rows, count = shown.split("\n")
    assert first == "Lister of certificates.v1.cert-manager.io"
    assert standing.startswith("live for ")
    assert "· 3 objects ·" in standing
    assert standing.endswith("B held · indexes: by-issuer")
    assert headings.split() == ["NAMESPACE", "NAME", "READY", "SECRET", "AGE"]
    assert [row.split()[1] for row in rows] == ["evil", "mail", "shop"]
    assert count == "3 objects"
    assert texts(certs).startswith("GenericInformer of certificates.v1.cert-manager.io\nlive for ")
    assert texts(certs.lister.by_namespace("prod")).endswith("\n3 objects")
    assert texts(certs.lister.by_namespace("nope")).endswith("\n0 objects")


def test_of_many_objects_the_first_are_shown() -> None:
    """Nobody walks over the others."""
    lister = holding(*(certificate(f"c{n}") for n in range(50)))
    assert texts(lister).endswith("\n20 of 50 objects")
    assert len(lister.held.store.first(20)) == 20


def test_an_informer_shows_what_it_asks_for_and_its_handlers(certs: GenericInformer) -> None:
    """With their backlogs, and its status in words."""
    handler = certs.informer.add_event_handler(on_add=lambda obj: None, name="mine")
    assert handler.wait_for_sync(20)
    shown = texts(certs.informer)
    assert "namespaces  all" in shown
    assert "mine      0" in shown
    assert "fresh as of" in shown
    assert texts(handler) == "Registration mine\nsynced · 0 events to be handled"
    handler.remove()
    assert texts(handler).split("\n")[1].startswith("removed")


def test_a_factory_shows_its_informers(factory: DynamicSharedInformerFactory) -> None:
    """And so do their statuses, and what a sync returned."""
    shown = texts(factory)
    assert shown.split("\n")[1].startswith("live · http")
    assert "secrets.v1                        live       1" in shown
    assert "WHY" not in shown
    assert "certificates.v1.cert-manager.io   live       3" in texts(factory.status())
    assert "2 caches" in texts(factory.wait_for_cache_sync())
    assert repr(factory).endswith("2 informers, live>")


def test_what_is_a_dict_as_well_is_shown_in_words_by_ipython(
    factory: DynamicSharedInformerFactory,
) -> None:
    """In a terminal too, where IPython has text of its own for dicts; within others it is one."""
    formatter = pytest.importorskip("IPython.core.formatters").DisplayFormatter()
    result = factory.wait_for_cache_sync()
    for thing in (factory.status(), result):
        data, _ = formatter.format(thing)
        assert data["text/plain"] == thing._repr_mimebundle_()["text/plain"]
    data, _ = formatter.format([result])
    assert data["text/plain"] == repr([result])


def test_an_indexer_shows_its_indexes(certs: GenericInformer) -> None:
    """What they are of, and the first values with how many objects each has."""
    shown = texts(certs.informer.indexer)
    assert "namespace   namespace_index        1        prod: 3" in shown
    assert f"{EVIL}: 1" in shown
    assert texts(certs.informer.store).endswith("\n3 objects")


def test_events_show_what_they_changed(certs: GenericInformer) -> None:
    """An addition its object; a stream how much waits in it."""
    with certs.informer.events() as events:
        assert texts(events) == "EventStream of certificates.v1.cert-manager.io\nopen · 3 events"
        added = next(events)
        assert texts(added).startswith("ADDED certificates.v1.cert-manager.io prod/evil\nversion ")
        certs.patch("shop", "prod", {"metadata": {"labels": {"tier": EVIL[5:8]}}}, wait=True)
        changed = next(event for event in events if event.type == "UPDATED")
    assert f'+ .metadata.labels.tier: "{EVIL[5:8]}"' in texts(changed)
    assert texts(events).split("\n")[1].startswith("closed")
    assert '.metadata.labels.tier: "src"' in texts(show(changed.changes()))


def test_rows_a_queue_a_follower_and_an_audit_show_themselves(
    factory: DynamicSharedInformerFactory, certs: GenericInformer
) -> None:
    """In words and tables."""
    rows = certs.lister.select({"hosts": ".spec.dnsNames[*]"}, selector="app.kubernetes.io/name")
    assert '["shop.example.com"]' in texts(rows)
    with certs.work_queue(name="mine") as queue:
        assert texts(queue).startswith("WorkQueue mine\nopen · ")
    assert texts(queue).split("\n")[1].startswith("closed")
    with factory.follow("secrets") as follower:
        assert follower.wait_for_sync(20)
        assert texts(follower).split("\n")[-1] == "1 resource"
    assert "3 objects are as the server has them" in texts(certs.informer.audit())


def test_show_is_for_plain_objects_and_lists(certs: GenericInformer) -> None:
    """Which stay what they are."""
    found = certs.lister.list()
    assert type(found) is list
    assert "KIND" in texts(show(found))
    assert "SECRET" in texts(show(found, of=certs))
    assert "SECRET" in texts(show(found, of=certs.lister))
    shown = texts(show(certs.lister.get("evil", "prod")))
    assert shown.startswith("Certificate prod/evil\napiVersion: cert-manager.io/v1\n")
    assert "managedFields" not in shown
    assert str(show(certs)) == str(page(certs))
    assert texts(show({"metadata": None})) == "\nmetadata: null".strip()
    assert texts(show([])) == "0 objects"


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "a", "creationTimestamp": "yesterday"},
        {"name": "a", "creationTimestamp": "2026-01-01T00:00:00"},
        {"name": "a", "creationTimestamp": "9999-99-99T99:99:99Z"},
        {"name": "a", "creationTimestamp": 5},
        "none",
        None,
    ],
)
def test_show_takes_objects_that_no_server_would_give(metadata: Any) -> None:
    """What cannot be read of one is left out, alone and in a list, with columns and without."""
    obj = {"kind": "Certificate", "metadata": metadata}
    assert "Certificate" in texts(show(obj))
    assert texts(show([obj])).endswith("1 object")
    assert texts(show([obj], of=holding())).endswith("1 object")


def _without_kind(obj: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name not in {"apiVersion", "kind"}}


@pytest.mark.parametrize("options", [{"metadata_only": True}, {"transform": _without_kind}])
def test_of_a_secret_that_does_not_say_so_no_value_is_shown(options: dict[str, Any]) -> None:
    """The informer knows; and an annotation of kubectl's holds all of one that was applied."""
    with ApiServer() as server:
        server.create(SECRET, namespace="default")
        with (
            open_informer("v1/secrets", client=server.client(), history=5, **options) as secrets,
            secrets.informer.events() as events,
        ):
            before = secrets.snapshot()
            applied = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2 again"}
            patch = {"metadata": {"annotations": applied}, "data": {"password": "aHVudGVyMjI="}}
            secrets.patch("token", "default", patch, wait=True)
            difference = secrets.snapshot().diff(before)
            held = secrets.lister.get("token", "default")
            history = secrets.history("default/token")
            things = [show(held, of=secrets), history, *history, difference, *difference]
            shown = "".join(map(texts, [*things, next(events), next(events)])) + str(difference)
    assert "(not shown)" in shown
    for hidden in ("hunter2", "aHVudGVyMg", "aHVudGVyMjI"):
        assert hidden not in shown
    if "metadata_only" in options:
        assert "hunter2" not in texts(show(held))


@pytest.mark.parametrize("kind", ["SecretList", "List"])
def test_of_secrets_in_a_list_no_value_is_shown(kind: str) -> None:
    """As a client gives them: items of a SecretList do not say their kind."""
    secret = dict(SECRET)
    if kind == "SecretList":
        del secret["kind"], secret["apiVersion"]
    listed = {"apiVersion": "v1", "kind": kind, "items": [secret, {"data": {"a": "b"}}, None]}
    shown = texts(show(listed))
    assert "password: (7 bytes, not shown)" in shown
    assert "hunter2" not in shown
    assert SECRET["data"]["password"] not in shown
    assert ("a: b" in shown) == (kind == "List")
    assert secret["data"] == SECRET["data"]


def test_of_a_secret_no_value_is_shown(factory: DynamicSharedInformerFactory) -> None:
    """Notebooks are kept, and passed on."""
    secrets = factory.for_resource("v1/secrets")
    with secrets.informer.events() as events:
        added = next(events)
        patch = {"data": {"password": "c3dvcmRmaXNo", "new": "c3dvcmRmaXNo"}}
        secrets.patch("token", "default", patch, wait=True)
        changed = next(event for event in events if event.type == "UPDATED")
    shown = texts(show(secrets.lister.get("token", "default"))) + texts(added) + texts(changed)
    shown += texts(show(SECRET))
    assert "password: (9 bytes, not shown)" in shown
    assert '+ .data.new: "(not shown)"' in shown
    for secret in ("c3dvcmRmaXNo", "swordfish", "aHVudGVyMg", "hunter2"):
        assert secret not in shown


WIDGETS = ResourceDefinition("widgets.v1.ex.io", "Widget", True)
SECRETS = ResourceDefinition("secrets.v1", "Secret", True)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def widget(version: int, name: str = EVIL, **spec: object) -> dict[str, Any]:
    """An object of the namespace ns."""
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)}
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def recorded(folder: Path, *told: tuple[str, dict[str, Any]]) -> Recording:
    """One line a second."""
    resources, path = (WIDGETS, SECRETS), folder / "night.ndjson"
    with (
        mock.patch("dyninformer.moments.recorded.now", return_value=BEGAN),
        RecordingWriter(path, resources, force=False) as writer,
    ):
        for second, (type_, obj) in enumerate(told, 1):
            gvr = resources[obj["kind"] == "Secret"].gvr
            writer.write(RecordingLine(BEGAN + timedelta(seconds=second), type_, gvr, object=obj))
        writer.close(events=len(told), objects=0)
    return open_recording(path)


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """Of a widget that somebody has named badly: it comes, changes and goes, and another comes."""
    return recorded(
        tmp_path,
        ("ADDED", widget(1, n=1)),
        ("MODIFIED", widget(2, n=2, **{EVIL: EVIL})),
        ("ADDED", widget(3, "other")),
        ("DELETED", widget(4, n=2)),
    )


def test_a_snapshot_shows_when_it_was_and_its_objects(recording: Recording) -> None:
    """The first ones and a count, as a lister does; it is neither live nor cut off."""
    title, standing, headings, *rows = texts(recording.at(3.5, "widgets")).split("\n")
    assert title == "Snapshot of widgets.v1.ex.io"
    assert standing == "as of 2026-01-01 00:00:03 UTC · version 3 · 2 objects"
    assert headings.split()[:2] == ["NAMESPACE", "NAME"]
    assert rows[-1] == "2 objects"
    assert any(EVIL in row for row in rows)
    many = holding(*(certificate(f"c{n}") for n in range(50))).snapshot()
    assert texts(many).endswith("\n20 of 50 objects")


def test_a_difference_shows_what_came_went_and_changed(recording: Recording) -> None:
    """A row for each object, with its first changes; and so does each of its objects."""
    difference = recording.at(3.5, "widgets").diff(recording.at(1.5, "widgets"))
    title, standing, _, *rows, count = texts(difference).split("\n")
    assert title == "Difference of widgets.v1.ex.io"
    span = "from 2026-01-01 00:00:01 UTC to 2026-01-01 00:00:03 UTC"
    assert standing == f"1 added, 0 removed, 1 changed · {span}"
    assert rows[0].split() == ["ADDED", "ns/other"]
    assert rows[1].startswith(f"CHANGED   ns/{EVIL}")
    assert ".spec.n: 1 -> 2" in rows[1]
    assert count == "2 objects"
    added, changed = difference
    assert texts(added).startswith("ADDED ns/other\napiVersion: ex.io/v1\n")
    assert texts(changed).startswith(f"CHANGED ns/{EVIL}\nchanged\n")
    same = recording.at(1, "widgets")
    assert texts(same.diff(same)).split("\n")[1].startswith("0 added")


def test_a_history_shows_its_versions_and_what_each_changed(recording: Recording) -> None:
    """Oldest first; it is a list. A version shows its changes, or else its object."""
    found = recording.history(f"ns/{EVIL}")
    assert isinstance(found, list)
    title, headings, *rows, count = texts(found).split("\n")
    assert title == f"History of widgets.v1.ex.io ns/{EVIL}"
    assert headings.split() == ["TIME", "TYPE", "VERSION", "CHANGES"]
    assert [row.split()[3:5] for row in rows] == [
        ["ADDED", "1"],
        ["UPDATED", "2"],
        ["DELETED", "4"],
    ]
    assert ".spec.n: 1 -> 2" in rows[1]
    assert count == "3 versions"
    assert "\nversion 2 · 2026-01-01 00:00:02 UTC\n" in texts(found[1])
    assert "+ .spec" in texts(found[1])
    assert "\nkind: Widget\n" in texts(found[0])
    assert texts(Versions()).endswith("0 versions")


def test_of_many_changes_the_first_are_shown(tmp_path: Path) -> None:
    """And long values are cut: a table is to be looked over."""
    after = {f"f{n}": "x" * 500 for n in range(9)}
    told = recorded(tmp_path, ("ADDED", widget(1)), ("MODIFIED", widget(2, **after)))
    row = texts(told.history(f"ns/{EVIL}")).split("\n")[3]
    assert "x" * 50 in row
    assert "x" * 80 not in row
    assert row.endswith("; and 6 more")


def test_a_recording_shows_what_it_is_of(recording: Recording) -> None:
    """From its first line alone, however long it is."""
    shown = texts(recording).split("\n")
    assert shown[0] == f"Recording {recording.path}"
    assert shown[1].startswith("from 2026-01-01 00:00:00 UTC on · 2 resources")
    assert [row.strip() for row in shown[3:]] == ["widgets.v1.ex.io", "secrets.v1", "2 resources"]


def test_of_a_secret_in_a_moment_no_value_is_shown(tmp_path: Path) -> None:
    """Neither in differences nor in histories."""
    was = {**SECRET, "metadata": {"name": "token", "namespace": "ns", "resourceVersion": "1"}}
    now = {**was, "data": {"password": "c3dvcmRmaXNo", "new": "c3dvcmRmaXNo"}}
    now["metadata"] = {**was["metadata"], "resourceVersion": "2"}
    told = recorded(tmp_path, ("ADDED", was), ("MODIFIED", now))
    history = told.history("ns/token")
    difference = told.at(2, "secrets").diff(told.at(1, "secrets"))
    things = (history, *history, difference, *difference, told.at(2, "secrets"))
    shown = "".join(texts(each) for each in things)
    assert ".data.new" in shown
    for secret in ("c3dvcmRmaXNo", "swordfish", "aHVudGVyMg", "hunter2"):
        assert secret not in shown


def test_a_tree_shows_its_lines() -> None:
    """As the command draws them."""
    root, below, last = (TreeNode(widget(n, f"{EVIL}{n}")) for n in range(3))
    root.owned.append(below)
    below.owned.append(last)
    title, headings, *rows, count = texts(Tree(root, [root])).split("\n")
    assert title == f"Tree of Widget/{EVIL}0"
    assert headings.split() == ["OBJECT", "READY", "STATUS", "AGE"]
    assert [row.rstrip() for row in rows] == [
        f"Widget/{EVIL}0",
        f"└─Widget/{EVIL}1",
        f"  └─Widget/{EVIL}2",
    ]
    assert count == "3 objects"


def test_before_the_start_and_after_the_end_it_says_so(server: ApiServer) -> None:
    """In the repr, too; the columns are still those that were learned."""
    with DynamicSharedInformerFactory(server.client()) as factory:
        assert texts(factory).split("\n")[1].startswith("not started")
        certs = factory.for_resource("cert")
        assert texts(certs).split("\n")[1].startswith("not started")
        assert repr(certs).endswith("0 objects, not started>")
        factory.sync(timeout=30)
        assert repr(certs.informer).endswith("3 objects, live>")
        assert "SECRET" in texts(certs)
    assert texts(certs).split("\n")[1].startswith("closed · ")
    assert "SECRET" in texts(certs)
    assert repr(certs.lister).endswith("3 objects, closed>")
    assert repr(factory).endswith("1 informer, closed>")


def until_cut_off(informer: SharedIndexInformer) -> Waiting[None]:
    """Until it has noticed."""
    yield informer.reflectors.pause(lambda: informer.status().standing == "cut off", Deadline(20))


def test_cut_off_from_its_server_it_says_why() -> None:
    """And what is held is shown as it was."""
    with ApiServer() as server:
        factory = DynamicSharedInformerFactory(server.client())
        spaces = factory.for_resource("v1/namespaces")
        factory.sync(timeout=30)
    try:
        waited(until_cut_off(spaces.informer))
        standing, why = texts(spaces).split("\n")[1:3]
        assert standing.startswith("cut off for ")
        assert "cannot" in why
        assert "cut off" in texts(factory.status())
        assert repr(spaces).endswith("4 objects, cut off>")
    finally:
        factory.shutdown(5)


def test_shells_of_an_event_loop_show_what_they_are_shells_of(server: ApiServer) -> None:
    """The same tables; before there is anything, that."""

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client()) as factory:
            assert texts(factory).split("\n")[1].startswith("not started · ")
            certs = await factory.for_resource("cert")
            await factory.sync(timeout=30)
            assert texts(factory).split("\n")[1].startswith("live · ")
            shown = await asyncio.to_thread(texts, certs)
            assert "SECRET" in shown
            assert texts(certs.informer).startswith("SharedIndexInformer of")
            assert (await factory.sql("select count(*) from certificates")).fetchall() == [(3,)]

    asyncio.run(main())
