"""Right and wrong calls, as type checkers see them; nothing here is run.

mypy and pyright find every right call right. A wrong one says what each of them calls it, and
both complain if it is no error: a mistake that is no longer found is one here.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Unpack

from dyninformer import (
    DROP,
    AuditReport,
    Drop,
    DynamicSharedInformerFactory,
    Event,
    GenericInformer,
    GroupVersionResource,
    History,
    OpenInformer,
    ResourceOptions,
    ResourceOptionsDict,
    Snapshot,
    Version,
    aio,
    compound,
    jsonpath_index,
    open_informer,
    open_recording,
    strip,
)

PODS = GroupVersionResource("", "v1", "pods")


def by_image(pod: dict[str, Any]) -> Iterable[str]:
    """An index function of a user's."""
    return [container["image"] for container in pod["spec"]["containers"]]


def without_finished(pod: dict[str, Any]) -> dict[str, Any] | Drop:
    """A transform of a user's."""
    return DROP if pod["status"]["phase"] == "Succeeded" else pod


def hear(event: Event) -> None:
    """A handler of a user's."""


def right(factory: DynamicSharedInformerFactory) -> None:
    """Each option, with each type that it takes."""
    factory.for_resource(PODS)
    found: GenericInformer = factory.for_resource(
        "pods",
        namespaces=["prod", "dev"],
        label_selector="app=shop",
        field_selector="spec.nodeName=worker-1",
        transform=without_finished,
        resync=30,
        metadata_only=False,
        indexers={
            "node": "{.spec.nodeName}",
            "image": by_image,
            "phase": jsonpath_index(".status.phase"),
            "place": compound(".metadata.namespace", ".spec.nodeName"),
        },
        page_size=100,
        watch_list=False,
        compress=False,
        audit=3600,
        max_backlog=10_000,
    )
    report: AuditReport = found.informer.audit(timeout=60)
    assert not report.differs
    found.lister.by_index("node", "worker-1")
    factory.for_resource("pods", namespaces="prod", transform=strip("metadata.managedFields"))
    factory.for_resource("pods", namespaces=None, label_selector=None, resync=None)
    factory.follow("*.cert-manager.io", on_event=hear, metadata_only=True)
    opened: OpenInformer = open_informer(
        PODS, namespace="prod", timeout=5, indexers={"node": ".spec.nodeName"}, compress=True
    )
    opened.close()
    DynamicSharedInformerFactory(resources={PODS: ResourceOptions(page_size=10)})


def handed_on(factory: DynamicSharedInformerFactory, **options: Unpack[ResourceOptionsDict]) -> int:
    """A user's own function takes the same options."""
    return len(factory.for_resource(PODS, **options).lister)


def handed_on_wrong(factory: DynamicSharedInformerFactory) -> None:
    """And its callers are told."""
    handed_on(factory, page_size=10)
    handed_on(factory, size=10)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def options_that_do_not_exist(factory: DynamicSharedInformerFactory) -> None:
    """A letter too many or too few."""
    factory.for_resource(PODS, indexer={"node": ".spec.nodeName"})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    factory.for_resource(PODS, label_selectors="app=shop")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    factory.for_resource(PODS, namespace="prod")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    factory.follow("*.cert-manager.io", label_selectors="app=shop")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    open_informer("pods", indexer={"node": ".spec.nodeName"})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ResourceOptions(indexer={"node": ".spec.nodeName"})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def options_of_another_type(factory: DynamicSharedInformerFactory) -> None:
    """A list for a mapping, a text for a bool, and so on."""
    factory.for_resource(PODS, indexers=[".spec.nodeName"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    factory.for_resource(PODS, indexers={"node": 1})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    factory.for_resource(PODS, metadata_only="yes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    factory.for_resource(PODS, max_backlog="many")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    factory.for_resource(PODS, audit="hourly")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    factory.for_resource(PODS, page_size="all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    factory.for_resource(PODS, transform="strip")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    factory.for_resource(("", "v1", "pods"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    factory.follow("*.cert-manager.io", on_event=by_image)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    factory.follow("*.cert-manager.io", compress=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    open_informer("pods", indexers=[".spec.nodeName"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    open_informer(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    open_informer("pods", namespaces=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def handlers(factory: DynamicSharedInformerFactory) -> None:
    """The callbacks and options of a handler."""
    informer = factory.for_resource(PODS).informer
    informer.add_event_handler(
        on_add=print, on_update=lambda old, new: None, when_changed=".spec", resync=60, name="mine"
    )
    informer.add_event_handler(object(), coalesce=True)
    informer.add_event_handler(on_updated=print)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    informer.add_event_handler(on_event=by_image)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    informer.add_event_handler(resync="60")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def in_a_loop(informer: aio.SharedIndexInformer) -> None:
    """The same, and the same writes, awaited."""

    async def told(event: Event) -> None: ...

    informer.add_event_handler(on_event=told, coalesce=True)
    informer.add_event_handler(on_updated=print)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    changed: dict[str, Any] = await informer.patch("web", "prod", {"spec": {}}, wait=True)
    await informer.apply(changed, force=True, field_manager="mine")
    await informer.delete("web", "prod", uids="1")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def moments(factory: DynamicSharedInformerFactory, obj: dict[str, Any]) -> list[str]:
    """What was, and what belongs to what."""
    factory.for_resource(PODS, history=20)
    factory.for_resource(PODS, history=History(versions=5, most_bytes=1 << 20, seconds=3600))
    factory.for_resource(PODS, history="20")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    found = factory.for_resource(PODS)
    before: Snapshot = found.snapshot()
    before.save("pods")
    difference = found.informer.snapshot().diff(Snapshot.load("pods"))
    before.diff(found.lister)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    versions: list[Version] = found.history("prod/shop")
    moment: Snapshot = open_recording("night.ndjson.zst").at(60, "pods")
    owned: list[dict[str, Any]] = factory.owned_by(obj, fetch=True)
    print(factory.tree(obj), factory.owners(obj), factory.events_of(obj), owned, moment)
    return [*(each.key for each in difference.changed), *(each.key for each in versions)]


def freshness(factory: DynamicSharedInformerFactory) -> datetime | None:
    """Seconds, and a moment."""
    factory.require_fresh(5)
    factory.require_fresh(0.5, timeout=None)
    informer = factory.for_resource(PODS).informer
    informer.wait_fresh()
    informer.wait_fresh(5, timeout=1)
    factory.require_fresh("5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    informer.wait_fresh(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    live: bool = informer.status().live
    return informer.status().fresh_as_of if live else None
