"""What is of the wrong type is refused where it comes in, in words: at every public door."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import dyninformer
import dyninformer.jsonpath
from dyninformer.moments.recorded import RecordingLine, RecordingWriter, ResourceDefinition, now
from dyninformer.moments.snapshot import snapshot_of
from dyninformer.store.store import Store
from dyninformer.testing import ApiServer
from tests.doors import SECONDS, TEXT, Door, doors, shown

public: Any = dyninformer  # a type checker would find all that follows
paths: Any = dyninformer.jsonpath
PODS = dyninformer.GroupVersionResource("", "v1", "pods")
THING = {"kind": "Thing", "metadata": {"name": "a", "uid": "a-uid"}}
NEW = "v1/secrets"
"""A resource that no test has asked for."""


class World:
    """A server, a factory, and a synced informer of its namespaces."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.client = server.client()
        self.kubeconfig = server.kubeconfig()
        self.factory = public.DynamicSharedInformerFactory(self.client)
        self.generic = self.factory.for_resource("v1/namespaces")
        self.factory.sync(timeout=30)
        self.informer, self.lister = self.generic.informer, self.generic.lister
        self.store, self.indexer = self.informer.store, self.informer.indexer
        self.discovery = self.factory.discovery
        self.event = next(self.informer.events())
        self.resolved = self.discovery.resolve("pods")
        self.snapshot = self.lister.snapshot()
        self.difference = self.snapshot.diff(public.Snapshot.load(_empty(folder)))
        self.recording = public.open_recording(_recorded(folder))
        self.versions = self.factory.for_resource("v1/limitranges", history=5)
        self.version = next(iter(self.recording))
        self.fleet = public.Fleet({"eu": self.client})
        self.namespaces = self.fleet.for_resource("v1/namespaces")
        self.fleet.sync(timeout=30)

    @property
    def fresh(self) -> Any:
        """An informer that is not started."""
        return public.SharedIndexInformer(self.client, PODS)


def _empty(folder: Path) -> Path:
    """A snapshot of no namespaces."""
    path = folder / "empty"
    namespaces = dyninformer.GroupVersionResource("", "v1", "namespaces")
    snapshot_of(Store(namespaces), ("",)).save(path)
    return path


def _recorded(folder: Path) -> Path:
    """A recording of two resources, with an object."""
    path = folder / "night.ndjson"
    defined = [ResourceDefinition(f"{each}.v1", "Thing", False) for each in ("things", "others")]
    with RecordingWriter(path, tuple(defined), force=False) as writer:
        writer.write(RecordingLine(now(), "ADDED", "things.v1", object=THING))
        writer.close(events=1, objects=1)
    return path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One for all: nothing here changes it."""
    with ApiServer() as server:
        made = World(server, tmp_path_factory.mktemp("world"))
        yield made
        made.factory.shutdown(5)
        made.fleet.shutdown(5)


async def asynchronous(*_: object) -> None:
    """A coroutine function."""


def related(world: World, *, name: str, given: object, **more: Any) -> object:
    """Ask a factory what an object has to do with others."""
    return getattr(world.factory, name)(given, **more)


class Handler:
    """It has the right methods."""

    def on_event(self, event: object) -> None:
        """Hear it."""


COLUMNS = "give a mapping from names to paths, such as {'issuer': '.spec.issuerRef.name'}"
F = "DynamicSharedInformerFactory"
I = "SharedIndexInformer"  # noqa: E741 - read in a table
L, N = "GenericLister", "GenericNamespaceLister"
M = "ShardMembership"
make = public.DynamicSharedInformerFactory
ns: Callable[[Any], Any] = lambda w: w.lister.by_namespace("prod")  # noqa: E731
add: Callable[..., Any] = lambda w, **wrong: w.informer.add_event_handler(**wrong)  # noqa: E731
ask: Callable[..., Any] = lambda w, **wrong: w.factory.for_resource(NEW, **wrong)  # noqa: E731


FI, FL, FN = "FleetInformer", "FleetLister", "FleetNamespaceLister"
prod: Callable[[Any], Any] = lambda w: w.namespaces.lister.by_namespace("prod")  # noqa: E731
hear: Callable[..., Any] = lambda w, **wrong: w.namespaces.informer.add_event_handler(**wrong)  # noqa: E731
heard: Callable[[Any], Any] = lambda w: hear(w, on_event=lambda event: None)  # noqa: E731


def handled(w: Any, given: Any) -> object:
    """A handler is added."""
    return add(w, **given)


def shared(w: World, **options: Any) -> Any:
    """A membership that has not begun."""
    return public.ShardMembership(w.client, **{"name": "certs", "namespace": "default", **options})


DOORS = [
    Door(F, lambda w: make("client"), "client must be a kubernetes.dynamic.DynamicClient"),
    Door(F, lambda w: make(kubeconfig=5), "kubeconfig is 5: give the path of a file"),
    Door(F, lambda w: make(kubeconfig=w.kubeconfig, context=5), "context is 5: give the name"),
    Door(F, lambda w: make(w.client, resync="10"), "resync is '10': give seconds, 0 for never"),
    Door(F, lambda w: make(w.client, resync=None), "resync is None: give seconds, 0 for never"),
    Door(F, lambda w: make(w.client, namespace=5), "namespace is 5: give a name, or several"),
    Door(F, lambda w: make(w.client, namespace=["a", 5]), "an element of namespace is 5"),
    Door(F, lambda w: make(w.client, tweak_list_options="x"), "tweak_list_options is 'x': give a"),
    Door(F, lambda w: make(w.client, transform="x"), "transform is 'x': give a function"),
    Door(F, lambda w: make(w.client, resources=["pods"]), "resources is ['pods']: give a mapping"),
    Door(
        F,
        lambda w: make(w.client, resources={PODS: {}}),
        "is {}: give a ResourceOptions(...)",
    ),
    Door(
        F,
        lambda w: make(w.client, resources={5: public.ResourceOptions()}),
        "a resource is 5: give a",
    ),
    Door(F, lambda w: make(w.client, metrics="x"), "metrics is 'x': give what has count and gauge"),
    *(
        Door(
            name,
            partial(call, given=given),
            f"a resource is {given!r}: {give}",
        )
        for given, give in [
            (None, "give a GroupVersionResource, or a name such as 'certificates'"),
            (5, "give a GroupVersionResource, or a name such as 'certificates'"),
            (b"v1/pods", "give a GroupVersionResource, or a name such as 'certificates'"),
            (["v1/pods"], "give a GroupVersionResource, or a name such as 'certificates'"),
            (("", "v1", "pods"), "give GroupVersionResource('', 'v1', 'pods'), or a name"),
        ]
        for name, call in [
            (f"{F}.for_resource", lambda w, given: w.factory.for_resource(given)),
            (f"{F}.remove", lambda w, given: w.factory.remove(given)),
            (f"{F}.informer_for", lambda w, given: w.factory.informer_for(given, print)),
            ("open_informer", lambda w, given: public.open_informer(given, client=w.client)),
            ("Discovery.resolve", lambda w, given: w.discovery.resolve(given)),
            (
                "GroupVersionResource.parse",
                lambda w, given: public.GroupVersionResource.parse(given),
            ),
        ]
    ),
    Door(f"{F}.for_resource", lambda w: ask(w, namespaces=5), "namespace is 5: give a name"),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, label_selector={"a": "b"}),
        "give text as of kubectl's -l",
    ),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, field_selector=5),
        "field_selector is 5: give text as of",
    ),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, transform=asynchronous),
        "transform is a coroutine function",
    ),
    Door(f"{F}.for_resource", lambda w: ask(w, resync="5"), "resync is '5': give seconds"),
    Door(f"{F}.for_resource", lambda w: ask(w, audit="5"), "audit is '5': give seconds, 0 for"),
    Door(f"{F}.for_resource", lambda w: ask(w, audit=0.5), "audit is 0.5: give 0 for none"),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, max_backlog=True),
        "max_backlog is True: give a whole number of events, 0 for no bound",
    ),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, metadata_only="yes"),
        "metadata_only is 'yes': give True or False",
    ),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, watch_list="no"),
        "watch_list is 'no': give True or False",
    ),
    Door(f"{F}.for_resource", lambda w: ask(w, compress=1), "compress is 1: give True or False"),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, page_size="5"),
        "page_size is '5': give a whole number",
    ),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, page_size=1.5),
        "page_size is 1.5: give a whole number",
    ),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, page_size=True),
        "page_size is True: give a whole number",
    ),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, indexers=[".spec.x"]),
        "indexers is ['.spec.x']: give a mapping",
    ),
    Door(f"{F}.for_resource", lambda w: ask(w, indexers=None), "indexers is None: give a mapping"),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, indexers={5: ".x"}),
        "indexers is {5: '.x'}: give a mapping",
    ),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, indexers={"x": 5}),
        "5 is no index function: give a path",
    ),
    Door(
        f"{F}.for_resource",
        lambda w: ask(w, indexers={"x": asynchronous}),
        "indexers['x'] is a coroutine function, which nobody awaits",
    ),
    Door(f"{F}.for_resource", lambda w: ask(w, indexer={}), "no option 'indexer'"),
    Door(f"{F}.for_resource", lambda w: w.factory.for_resource("x", timeout="5"), SECONDS),
    Door("ResourceOptions", lambda w: public.ResourceOptions(compress="no"), "compress is 'no'"),
    Door(
        f"{F}.informer_for",
        lambda w: w.factory.informer_for(NEW, "x"),
        "new_informer is 'x': give a function",
    ),
    Door(
        f"{F}.informer_for",
        lambda w: w.factory.informer_for(NEW, lambda c, r: None),
        "what new_informer returned is None",
    ),
    Door(f"{F}.sync", lambda w: w.factory.sync("5"), SECONDS),
    Door(f"{F}.sync", lambda w: w.factory.sync(float("nan")), "a timeout is nan: give seconds"),
    Door(f"{F}.wait_for_cache_sync", lambda w: w.factory.wait_for_cache_sync("5"), SECONDS),
    Door(f"{F}.wait", lambda w: w.factory.wait("5"), SECONDS),
    Door(f"{F}.remove", lambda w: w.factory.remove(NEW, "5"), SECONDS),
    Door(f"{F}.shutdown", lambda w: make(w.client).shutdown("5"), SECONDS),
    Door(
        "open_informer", lambda w: public.open_informer("ns", client=w.client, timeout="5"), SECONDS
    ),
    Door(
        "open_informer",
        lambda w: public.open_informer("ns", client=w.client, namespace=5),
        "namespace is 5",
    ),
    Door(
        "OpenInformer.close",
        lambda w: public.open_informer("ns", client=w.client).close("5"),
        SECONDS,
    ),
    Door(
        f"{F}.follow",
        lambda w: w.factory.follow(),
        "follow needs patterns like '*.cert-manager.io'",
    ),
    Door(
        f"{F}.follow", lambda w: w.factory.follow(5), "a pattern is 5: give text, each for itself"
    ),
    Door(
        f"{F}.follow",
        lambda w: w.factory.follow(["*"]),
        "a pattern is ['*']: give text, each for itself",
    ),
    Door(
        f"{F}.follow",
        lambda w: w.factory.follow("*", on_event="x"),
        "on_event is 'x': give a function of one Event",
    ),
    Door(
        f"{F}.follow",
        lambda w: w.factory.follow("*", on_event=asynchronous),
        "on_event is a coroutine function",
    ),
    Door(
        f"{F}.follow",
        lambda w: w.factory.follow("*", compress="no"),
        "compress is 'no': give True or False",
    ),
    Door("Follower.wait_for_sync", lambda w: w.factory.follow("x").wait_for_sync("5"), SECONDS),
    Door(
        I,
        lambda w: public.SharedIndexInformer("x", PODS),
        "client must be a kubernetes.dynamic.DynamicClient",
    ),
    Door(
        I,
        lambda w: public.SharedIndexInformer(w.client, "v1/pods"),
        "gvr is 'v1/pods': give a GroupVersionResource",
    ),
    Door(
        I,
        lambda w: public.SharedIndexInformer(w.client, PODS, {"x": 1}),
        "options is {'x': 1}: give ResourceOptions(...)",
    ),
    *(
        Door(
            f"{I}.add_event_handler",
            partial(handled, given=given),
            said,
        )
        for each in ("on_add", "on_update", "on_delete", "on_event", "filter")
        for given, said in [
            ({"on_event": print, each: "x"}, f"{each} is 'x': give a function"),
            (
                {"on_event": print, each: asynchronous},
                f"{each} is a coroutine function, and a handler's thread runs no",
            ),
            ({"on_event": print, each: lambda: None}, f"{each} is called as {each}("),
        ]
    ),
    Door(
        f"{I}.add_event_handler",
        lambda w: w.informer.add_event_handler(),
        "a handler needs one of on_add, on_update, on_delete",
    ),
    Door(
        f"{I}.add_event_handler",
        lambda w: add(w, handler=print),
        "for a function, say for what: on_event=",
    ),
    Door(
        f"{I}.add_event_handler",
        lambda w: add(w, handler=5),
        "5 has none of the methods on_add, on_update",
    ),
    Door(
        f"{I}.add_event_handler",
        lambda w: add(w, handler=Handler),
        "give an object of that class, not the class",
    ),
    Door(
        f"{I}.add_event_handler",
        lambda w: add(w, on_event=print, when_changed=5),
        "when_changed is 5: give a path, or several",
    ),
    Door(
        f"{I}.add_event_handler",
        lambda w: add(w, on_event=print, when_changed=[5]),
        f"a path is 5: {TEXT}",
    ),
    Door(
        f"{I}.add_event_handler",
        lambda w: add(w, on_event=print, resync="5"),
        "resync is '5': give seconds",
    ),
    Door(
        f"{I}.add_event_handler",
        lambda w: add(w, on_event=print, coalesce="yes"),
        "coalesce is 'yes': give True or False",
    ),
    Door(
        f"{I}.add_event_handler",
        lambda w: add(w, on_event=print, max_backlog="many"),
        "max_backlog is 'many': give a whole number of events, 0 for no bound",
    ),
    Door(
        f"{I}.add_event_handler",
        lambda w: add(w, on_event=print, max_backlog=-1),
        "max_backlog is -1: give a whole number of events, 0 for no bound",
    ),
    Door(
        f"{I}.add_event_handler",
        lambda w: add(w, on_event=print, coalesce=True, max_backlog=10),
        "coalesce merges events however few wait, and max_backlog from so many on",
    ),
    Door(
        f"{I}.add_event_handler",
        lambda w: add(w, on_event=print, name=5),
        "name is 5: give a name for the handler",
    ),
    Door(
        f"{I}.add_event_handler_with_resync_period",
        lambda w: w.informer.add_event_handler_with_resync_period(Handler(), "5"),
        "resync is '5': give seconds",
    ),
    Door(
        f"{I}.remove_event_handler",
        lambda w: w.informer.remove_event_handler("x"),
        "a registration is 'x': give what add_event_handler returned",
    ),
    Door(
        "Registration.wait_for_sync",
        lambda w: w.fresh.add_event_handler(on_event=print).wait_for_sync("5"),
        SECONDS,
    ),
    Door(
        f"{I}.events",
        lambda w: w.informer.events(idle_timeout="5"),
        "idle_timeout is '5': give seconds",
    ),
    Door(
        f"{I}.events",
        lambda w: w.informer.events(coalesce="yes"),
        "coalesce is 'yes': give True or False",
    ),
    Door(
        f"{I}.events",
        lambda w: w.informer.events(max_backlog=1.5),
        "max_backlog is 1.5: give a whole number of events, 0 for no bound",
    ),
    Door(
        f"{I}.events",
        lambda w: w.informer.events(initial="no"),
        "initial is 'no': give True or False",
    ),
    Door("EventStream.take", lambda w: w.informer.events(initial=False).take("5"), SECONDS),
    Door(
        f"{I}.set_transform", lambda w: w.fresh.set_transform(5), "transform is 5: give a function"
    ),
    Door(
        f"{I}.set_watch_error_handler",
        lambda w: w.fresh.set_watch_error_handler(5),
        "a watch error handler is 5: give a function",
    ),
    Door(
        f"{I}.add_indexers",
        lambda w: w.informer.add_indexers(["x"]),
        "indexers is ['x']: give a mapping",
    ),
    Door(
        f"{I}.add_indexers", lambda w: w.informer.add_indexers({"x": 5}), "5 is no index function"
    ),
    Door(f"{I}.run", lambda w: w.fresh.run(5), "stop is 5: give a threading.Event"),
    Door(
        "Controller.run", lambda w: w.fresh.controller.run(5), "stop is 5: give a threading.Event"
    ),
    Door(f"{I}.stop", lambda w: w.fresh.stop("5"), SECONDS),
    Door(f"{I}.wait_stopped", lambda w: w.fresh.wait_stopped("5"), SECONDS),
    Door(f"{I}.wait_synced", lambda w: w.fresh.wait_synced("5"), SECONDS),
    Door(
        f"{I}.wait_for",
        lambda w: w.informer.wait_for(5, name="a"),
        "a condition is 5: give text such as 'condition=Ready'",
    ),
    Door(
        f"{I}.wait_for",
        lambda w: w.informer.wait_for("Ready", name="a"),
        "'Ready' is nothing to wait for: expected",
    ),
    Door(
        f"{I}.wait_for",
        lambda w: w.informer.wait_for(asynchronous, name="a"),
        "a condition is a coroutine function",
    ),
    Door(
        f"{I}.wait_for", lambda w: w.informer.wait_for("create", name=5), "name is 5: give a name"
    ),
    Door(
        f"{I}.wait_for",
        lambda w: w.informer.wait_for("create", name=""),
        "name is empty: give a name",
    ),
    Door(
        f"{I}.wait_for",
        lambda w: w.informer.wait_for("create", name="a", namespace=5),
        "namespace is 5: give a name, or None",
    ),
    Door(f"{I}.wait_for", lambda w: w.informer.wait_for("create", name="a", timeout="5"), SECONDS),
    Door(
        f"{I}.wait_for_version",
        lambda w: w.informer.wait_for_version(5),
        "a int without metadata.resourceVersion is neither",
    ),
    Door(
        f"{I}.wait_for_version",
        lambda w: w.informer.wait_for_version(""),
        "a version is empty: give a resourceVersion",
    ),
    Door(f"{I}.wait_for_version", lambda w: w.informer.wait_for_version("5", "5"), SECONDS),
    Door(f"{I}.audit", lambda w: w.informer.audit("5"), SECONDS),
    *(
        Door(f"{I}.{name}", partial(call, given=given), said)
        for given, said in [
            ({"selector": 5}, "selector is 5: give text such as 'app=shop', or a mapping"),
            ({"field_selector": 5}, "field_selector is 5: give text such as"),
            ({"name": 5}, "name is 5: give a name"),
        ]
        for name, call in [
            ("live", lambda w, given: w.informer.live(**given)),
            ("live_widget", lambda w, given: w.informer.live_widget(**given)),
            ("live_plot", lambda w, given: w.informer.live_plot(".kind", **given)),
        ]
    ),
    *(
        Door(f"{I}.{name}", partial(call, given=given), said)
        for given, said in [
            ({"columns": ".kind"}, "columns is '.kind': give a mapping from names to paths"),
            ({"by": 5}, "by is 5: give a path such as"),
            ({"sort_by": 5}, "sort_by is 5: give a column"),
            ({"rows": "5"}, "rows is '5': give how many rows are shown"),
            ({"row": 5}, "did you mean rows?"),
        ]
        for name, call in [
            ("live", lambda w, given: w.informer.live(**given)),
            ("live_widget", lambda w, given: w.informer.live_widget(**given)),
        ]
    ),
    Door(f"{I}.live_plot", lambda w: w.informer.live_plot(5), "by is 5: give a path such as"),
    Door(
        f"{I}.wait_for_version",
        lambda w: w.informer.wait_for_version("5", 1, namespace=5),
        "namespace is 5: give a name",
    ),
    *(
        Door(name, partial(call, given=given), said)
        for given, said in [
            (("5",), "max_age is '5': give seconds, 0 for now"),
            ((None,), "max_age is None: give seconds, 0 for now"),
            ((-1,), "max_age is -1: give seconds, 0 for now"),
            ((float("nan"),), "max_age is nan: give seconds, 0 for now"),
            ((5, "5"), SECONDS),
        ]
        for name, call in [
            (f"{I}.wait_fresh", lambda w, given: w.informer.wait_fresh(*given)),
            (f"{F}.require_fresh", lambda w, given: w.factory.require_fresh(*given)),
        ]
    ),
    Door(f"{L}.get", lambda w: w.lister.get(5), "name is 5: give a name"),
    Door(f"{L}.get", lambda w: w.lister.get(None, default=None), "name is None: give a name"),
    Door(f"{L}.get", lambda w: w.lister.get(""), "name is empty: give a name"),
    Door(f"{L}.get", lambda w: w.lister.get("a", 5), "namespace is 5: give a name, or None"),
    Door(
        f"{L}.find",
        lambda w: w.lister.find(5),
        "what is looked for is 5: give a name, or a function of one object",
    ),
    Door(
        f"{L}.find",
        lambda w: w.lister.find(asynchronous),
        "what is looked for is a coroutine function",
    ),
    Door(f"{L}.find", lambda w: w.lister.find("a", 5), "namespace is 5: give a name, or None"),
    Door(
        f"{L}.list",
        lambda w: w.lister.list(5),
        "selector is 5: give text such as 'app=shop', or a mapping",
    ),
    Door(f"{L}.list", lambda w: w.lister.list(["a=b"]), "selector is ['a=b']: give text"),
    Door(f"{L}.list", lambda w: w.lister.list(field_selector=5), "field_selector is 5: give text"),
    Door(f"{L}.by_namespace", lambda w: w.lister.by_namespace(5), "namespace is 5: give a name"),
    Door(
        f"{L}.by_namespace", lambda w: w.lister.by_namespace(None), "namespace is None: give a name"
    ),
    Door(
        f"{L}.by_index",
        lambda w: w.lister.by_index(["x"], "x"),
        "the name of an index is ['x']: give text",
    ),
    Door(
        f"{L}.by_index",
        lambda w: w.lister.by_index("namespace", 5),
        "in index 'namespace' is 5: give '5'",
    ),
    Door(
        f"{L}.select", lambda w: w.lister.select([".spec.x"]), f"columns is ['.spec.x']: {COLUMNS}"
    ),
    Door(f"{L}.select", lambda w: w.lister.select(".spec.x"), f"columns is '.spec.x': {COLUMNS}"),
    Door(f"{L}.select", lambda w: w.lister.select({"x": 5}), f"a path is 5: {TEXT}"),
    Door(
        f"{L}.to_frame",
        lambda w: w.lister.to_frame([".spec.x"]),
        f"columns is ['.spec.x']: {COLUMNS}",
    ),
    Door(
        f"{L}.select",
        lambda w: w.lister.select(index="by-node"),
        "index is 'by-node': give the name of an index and a value, such as",
    ),
    Door(f"{L}.select", lambda w: w.lister.select(namespace=5), "namespace is 5: give a name"),
    Door(f"{L}.select", lambda w: w.lister.select(sort_by=5), "sort_by is 5: give a column or"),
    Door(f"{L}.select", lambda w: w.lister.select(labels=5), "labels is 5: give labels, such as"),
    Door(
        f"{L}.select",
        lambda w: w.lister.select(labels={"app": 5}),
        "a label is 5: give its key, such as",
    ),
    Door(f"{L}.select", lambda w: w.lister.select(quantity=5), "quantity is 5: give names of"),
    Door(
        f"{L}.select",
        lambda w: w.lister.select({"cpu": ".spec.cpu"}, quantity=["memory"]),
        "quantity names 'memory', which is no column: there are",
    ),
    Door(f"{L}.select", lambda w: w.lister.select(selector=5), "selector is 5: give text"),
    Door(
        f"{L}.to_frame",
        lambda w: w.lister.to_frame(sort="age"),
        "no option 'sort': a table has selector",
    ),
    Door(f"{N}.get", lambda w: ns(w).get(5), "name is 5: give a name"),
    Door(f"{N}.find", lambda w: ns(w).find(5), "what is looked for is 5: give a name"),
    Door(f"{N}.list", lambda w: ns(w).list(5), "selector is 5: give text"),
    Door(f"{N}.by_index", lambda w: ns(w).by_index(5, "x"), "the name of an index is 5: give text"),
    Door(f"{N}.select", lambda w: ns(w).select([".x"]), f"columns is ['.x']: {COLUMNS}"),
    Door(f"{N}.to_frame", lambda w: ns(w).to_frame([".x"]), f"columns is ['.x']: {COLUMNS}"),
    Door(
        "Store.get", lambda w: w.store.get(5), "obj is 5: give an object; get_by_key takes its key"
    ),
    Door(
        "Store.get",
        lambda w: w.store.get("default"),
        "obj is 'default': give an object; get_by_key takes",
    ),
    Door("Store.get", lambda w: w.store.get({}), "obj has no metadata.name: give an object"),
    Door(
        "Store.get_by_key",
        lambda w: w.store.get_by_key(5),
        "key is 5: give a key such as 'namespace/name'",
    ),
    Door("Indexer.index", lambda w: w.indexer.index("namespace", 5), "obj is 5: give an object"),
    Door(
        "Indexer.by_index",
        lambda w: w.indexer.by_index(5, "x"),
        "the name of an index is 5: give text",
    ),
    Door(
        "Indexer.index_keys",
        lambda w: w.indexer.index_keys("namespace", 5),
        "in index 'namespace' is 5: give '5'",
    ),
    Door(
        "Indexer.list_index_func_values",
        lambda w: w.indexer.list_index_func_values(5),
        "the name of an index is 5",
    ),
    Door(
        "Indexer.add_indexers",
        lambda w: w.indexer.add_indexers(["x"]),
        "indexers is ['x']: give a mapping",
    ),
    Door("Event.changes", lambda w: w.event.changes(5), "ignore is 5: give paths"),
    Door(
        "GroupVersionResource",
        lambda w: public.GroupVersionResource(None, "v1", "pods"),
        "group is None: give an API group, '' for the core one",
    ),
    Door(
        "GroupVersionResource",
        lambda w: public.GroupVersionResource("", 1, "pods"),
        "version is 1: give an API version",
    ),
    Door(
        "GroupVersionResource",
        lambda w: public.GroupVersionResource("", "v1", 5),
        "resource is 5: give a plural in lower case",
    ),
    Door(
        "ListOptions",
        lambda w: public.ListOptions(label_selector=5),
        "label_selector is 5: give text as of kubectl's -l",
    ),
    Door(
        "ListOptions",
        lambda w: public.ListOptions(limit="5"),
        "limit is '5': give a whole number from 1",
    ),
    Door("JSONPath", lambda w: public.JSONPath(5), f"a path is 5: {TEXT}"),
    Door("JSONPath.template", lambda w: public.JSONPath.template(5), f"a template is 5: {TEXT}"),
    Door("JSONPath.relaxed", lambda w: public.JSONPath.relaxed(5), f"a path is 5: {TEXT}"),
    Door("JSONPath.column", lambda w: public.JSONPath.column(5), f"a path is 5: {TEXT}"),
    Door("JSONPath.extended", lambda w: public.JSONPath.extended(5), f"a path is 5: {TEXT}"),
    Door("jsonpath_index", lambda w: public.jsonpath_index(5), f"a path is 5: {TEXT}"),
    Door("compound", lambda w: public.compound([".a", ".b"]), f"a path is ['.a', '.b']: {TEXT}"),
    Door("compound", lambda w: public.compound(), "an index needs at least one path"),
    Door("Discovery.scope", lambda w: w.discovery.scope("v1/pods"), "gvr is 'v1/pods': give a"),
    Door("Discovery.columns", lambda w: w.discovery.columns("v1/pods"), "gvr is 'v1/pods': give a"),
    Door("Discovery.list_keys", lambda w: w.discovery.list_keys(5), "gvr is 5: give a"),
    Door("Discovery.defaults", lambda w: w.discovery.defaults(5), "gvr is 5: give a"),
    Door("Discovery.schema", lambda w: w.discovery.schema(5), "gvr is 5: give a"),
    Door("Discovery.declared", lambda w: w.discovery.declared(5), "gvr is 5: give a"),
    Door(f"{F}.sql", lambda w: w.factory.sql(5), "a query is 5: give SQL, such as"),
    Door(f"{F}.sql", lambda w: w.factory.sql(""), "a query is empty: give SQL, such as"),
    Door("show", lambda w: public.show(5), "what is to be shown is 5: give an object, several"),
    Door("show", lambda w: public.show("a"), "what is to be shown is 'a': give an object, several"),
    Door("show", lambda w: public.show([], of=5), "of is 5: give the informer or the lister"),
    Door("Follower.wait_stopped", lambda w: w.factory.follow("x").wait_stopped("5"), SECONDS),
    Door(
        "GroupVersionResource.path",
        lambda w: public.GroupVersionResource("", "v1", "pods").path(5),
        "namespace is 5: give a name, '' for all",
    ),
    Door("PathCondition", lambda w: paths.PathCondition(5), "a condition is 5: give text such as"),
    Door(
        "PathIndex.key", lambda w: public.compound(".a", ".b").key("a", 5), f"a part is 5: {TEXT}"
    ),
    Door(
        "PathIndex.key",
        lambda w: public.compound(".a", ".b").key("a"),
        "2 parts are wanted, one for each path",
    ),
    Door(f"{I}.patch", lambda w: w.informer.patch(5, None, {}), "name is 5: give a name"),
    Door(f"{I}.patch", lambda w: w.informer.patch("a", 5, {}), "namespace is 5: give a name"),
    Door(f"{I}.patch", lambda w: w.informer.patch("a", None, "x"), "the patch is str: give a"),
    Door(
        f"{I}.patch",
        lambda w: w.informer.patch("a", None, {}, field_manager=5),
        "field_manager is 5: give a name for what writes",
    ),
    Door(f"{I}.patch_status", lambda w: w.informer.patch_status("a", None, 5), "the patch is int"),
    Door(f"{I}.apply", lambda w: w.informer.apply(5), "the object has no metadata.name: give"),
    Door(
        f"{I}.apply",
        lambda w: w.informer.apply({"metadata": {"name": "a"}}, field_manager=""),
        "field_manager is empty: give a name for what writes",
    ),
    Door(
        f"{I}.apply",
        lambda w: w.informer.apply({"metadata": {"name": "a"}}, force="yes"),
        "force is 'yes': give True or False",
    ),
    Door(
        f"{I}.apply",
        lambda w: w.informer.apply({"metadata": {"name": "a"}}, subresource=5),
        "subresource is 5: give its name",
    ),
    Door(f"{I}.delete", lambda w: w.informer.delete(5), "name is 5: give a name"),
    Door(f"{I}.delete", lambda w: w.informer.delete("a", uid=5), "uid is 5: give the object's"),
    Door(f"{I}.delete", lambda w: w.informer.delete("a", wait="x"), "wait is 'x': give True"),
    Door(f"{I}.delete", lambda w: w.informer.delete("a", propagation=5), "propagation is 5: give"),
    Door(f"{I}.work_queue", lambda w: w.informer.work_queue(workers="4"), "workers is '4': give a"),
    Door("WorkQueue.add", lambda w: w.fresh.work_queue().add(5), "5 is no key: give"),
    Door(
        "WorkQueue.add_after", lambda w: w.fresh.work_queue().add_after(5, 1), "5 is no key: give"
    ),
    Door(
        "WorkQueue.add_rate_limited",
        lambda w: w.fresh.work_queue().add_rate_limited(5),
        "5 is no key: give",
    ),
    Door("WorkQueue.take", lambda w: w.fresh.work_queue().take("5"), SECONDS),
    Door(
        f"{I}.work_queue",
        lambda w: w.fresh.work_queue(lambda: None),
        "keys is called as keys(event), and takes ()",
    ),
    Door(
        "WorkQueue.run",
        lambda w: w.fresh.work_queue().run("x"),
        "reconcile is 'x': give a function",
    ),
    Door("PathIndex", lambda w: paths.PathIndex(5), f"a path is 5: {TEXT}"),
    Door("Projection", lambda w: paths.Projection(".a"), "paths is '.a': give several, in a list"),
    Door(f"{F}.for_resource", lambda w: ask(w, history="20"), "history is '20': give a number of"),
    Door(f"{F}.for_resource", lambda w: ask(w, history=True), "history is True: give a number of"),
    Door(f"{F}.for_resource", lambda w: ask(w, history=1), "versions is 1: give a whole number"),
    Door("History", lambda w: public.History(versions=2000), "versions is 2000: give a whole"),
    Door("History", lambda w: public.History(versions="2"), "versions is '2': give a whole"),
    Door("History", lambda w: public.History(most_bytes=1), "most_bytes is 1: give a whole number"),
    Door("History", lambda w: public.History(most_bytes="1"), "most_bytes is '1': give a whole"),
    Door("History", lambda w: public.History(seconds="1"), "history's seconds is '1': give sec"),
    Door("History", lambda w: public.History(seconds=0), "history's seconds is 0: give seconds"),
    Door(f"{I}.history", lambda w: w.versions.informer.history(5), "name is 5: give a name"),
    Door(f"{I}.history", lambda w: w.versions.informer.history("a", 5), "namespace is 5: give a"),
    Door("Version.changes", lambda w: w.version.changes(5), "ignore is 5: give paths"),
    *(
        Door(f"{F}.{each}", partial(related, name=each, given=given), said)
        for each in ("owners", "owned_by", "tree", "events_of")
        for given, said in [
            ("shop", "obj is 'shop': give an object that the server has"),
            ({"metadata": {}}, "obj has no metadata.uid"),
        ]
    ),
    *(
        Door(f"{F}.{each}", partial(related, name=each, given=THING, fetch=1), "fetch is 1: give T")
        for each in ("owners", "owned_by", "tree")
    ),
    Door("Snapshot.diff", lambda w: w.snapshot.diff(w.lister), "give a Snapshot, as certs.snap"),
    Door("Snapshot.save", lambda w: w.snapshot.save(5), "path is 5: give the name of a file"),
    Door("Snapshot.save", lambda w: w.snapshot.save(""), "path is empty: give the name"),
    Door("Snapshot.load", lambda w: public.Snapshot.load(""), "path is empty: give"),
    Door("open_recording", lambda w: public.open_recording(""), "path is empty: give"),
    Door("Snapshot.load", lambda w: public.Snapshot.load(5), "path is 5: give the name of a file"),
    Door(
        "Snapshot.load",
        lambda w: public.Snapshot.load("x", most_bytes="1G"),
        "most_bytes is '1G': give a whole number of bytes",
    ),
    Door(
        "Snapshot.add_indexers",
        lambda w: w.snapshot.add_indexers([".x"]),
        "indexers is ['.x']: give a mapping",
    ),
    Door(
        "ObjectDifference.changes",
        lambda w: w.difference.added[0].changes(5),
        "ignore is 5: give paths",
    ),
    Door(
        "open_recording", lambda w: public.open_recording(5), "path is 5: give the name of a file"
    ),
    Door("Recording.at", lambda w: w.recording.at(None), "time is None: give a datetime, its text"),
    Door("Recording.at", lambda w: w.recording.at("noon"), "time is 'noon': give a datetime, its"),
    Door("Recording.at", lambda w: w.recording.at(0), "has several resources"),
    Door("Recording.history", lambda w: w.recording.history(5), "key is 5: give a key such as"),
    Door("Recording.rows", lambda w: w.recording.rows(5), "resource is 5: give a name such as"),
    Door(
        "Recording.to_frame", lambda w: w.recording.to_frame(5), "resource is 5: give a name such"
    ),
    Door(
        "Recording.resource", lambda w: w.recording.resource(5), "resource is 5: give a name such"
    ),
    Door("Fleet", lambda w: public.Fleet(), "a fleet needs contexts, such as contexts=['eu-*']"),
    Door("Fleet", lambda w: public.Fleet(["eu"]), "clusters is ['eu']: give a mapping from names"),
    Door("Fleet", lambda w: public.Fleet({5: w.client}), "clusters is {5: "),
    Door("Fleet", lambda w: public.Fleet({"eu": 5}), "client must be a kubernetes.dynamic"),
    Door("Fleet", lambda w: public.Fleet(contexts=5), "contexts is 5: give names or patterns"),
    Door("Fleet", lambda w: public.Fleet({}, resync="10"), "resync is '10': give seconds"),
    Door("Fleet", lambda w: public.Fleet({}, namespace=5), "namespace is 5: give a name, or"),
    Door("Fleet", lambda w: public.Fleet({}, transform="x"), "transform is 'x': give a function"),
    Door("Fleet", lambda w: public.Fleet({}, metrics="x"), "metrics is 'x': give what has count"),
    Door("Fleet", lambda w: public.Fleet({}, tweak_list_options=5), "tweak_list_options is 5"),
    Door("Fleet", lambda w: public.Fleet({}, resources=5), "resources is 5: give a mapping"),
    Door("Fleet", lambda w: public.Fleet({}, watch_kubeconfig=1), "watch_kubeconfig is 1: give T"),
    Door("Fleet", lambda w: public.Fleet({}, keep_removed=1), "keep_removed is 1: give True or"),
    Door("Fleet.for_resource", lambda w: w.fleet.for_resource(5), "a resource is 5: give a"),
    Door("Fleet.for_resource", lambda w: w.fleet.for_resource("cm", x=1), "no option 'x': a"),
    Door("Fleet.remove_resource", lambda w: w.fleet.remove_resource(5), "a resource is 5: give a"),
    Door("Fleet.follow", lambda w: w.fleet.follow(5), "a pattern is 5: give text, each for"),
    Door("Fleet.follow", lambda w: w.fleet.follow("x", on_event=5), "on_event is 5: give a"),
    Door("Fleet.cluster", lambda w: w.fleet.cluster(5), "name is 5: give the name of a cluster"),
    Door("Fleet.add", lambda w: w.fleet.add(5, w.client), "name is 5: give a name for the cluster"),
    Door("Fleet.add", lambda w: w.fleet.add("x", "y"), "client is 'y': give a client, or kubec"),
    Door("Fleet.remove", lambda w: w.fleet.remove(5), "name is 5: give the name of a cluster"),
    Door("Fleet.remove", lambda w: w.fleet.remove("x", keep="y"), "keep is 'y': give True or Fal"),
    Door("Fleet.sync", lambda w: w.fleet.sync("5"), SECONDS),
    Door("Fleet.sync", lambda w: w.fleet.sync(5, require="some"), "require is 'some': give 'all',"),
    Door("Fleet.sync", lambda w: w.fleet.sync(5, require=0), "require is 0: give 'all', 'reach"),
    Door("Fleet.wait_for_cache_sync", lambda w: w.fleet.wait_for_cache_sync("5"), SECONDS),
    Door("Fleet.wait", lambda w: w.fleet.wait("5"), SECONDS),
    Door("Fleet.shutdown", lambda w: public.Fleet({}).shutdown("5"), SECONDS),
    Door(f"{FI}.add_event_handler", lambda w: hear(w, on_event=5), "on_event is 5: give a funct"),
    Door(f"{FI}.add_event_handler", lambda w: hear(w, name=5, on_event=print), "name is 5: give"),
    Door(
        f"{FI}.add_event_handler_with_resync_period",
        lambda w: w.namespaces.informer.add_event_handler_with_resync_period(Handler(), "5"),
        "resync is '5': give seconds",
    ),
    Door(
        f"{FI}.remove_event_handler",
        lambda w: w.namespaces.informer.remove_event_handler(5),
        "a registration is 5: give what add_event_handler returned",
    ),
    Door(
        f"{FI}.events",
        lambda w: w.namespaces.informer.events(idle_timeout="5"),
        "idle_timeout is '5': give seconds",
    ),
    Door(f"{FI}.events", lambda w: w.namespaces.informer.events(initial=5), "initial is 5: give T"),
    Door(
        f"{FI}.add_indexers",
        lambda w: w.namespaces.informer.add_indexers([".x"]),
        "indexers is ['.x']: give a mapping",
    ),
    Door(
        f"{FI}.work_queue",
        lambda w: w.namespaces.informer.work_queue(None),
        "a work queue has keys of one cluster",
    ),
    Door(f"{FI}.by_cluster", lambda w: w.namespaces.informer.by_cluster(5), "cluster is 5: give"),
    Door(
        f"{FI}.wait_for",
        lambda w: w.namespaces.informer.wait_for("create", name="a", cluster=5),
        "cluster is 5: give the name of a cluster of the fleet",
    ),
    Door(
        "FleetGenericInformer.by_cluster",
        lambda w: w.namespaces.by_cluster(5),
        "cluster is 5: give the name of a cluster",
    ),
    Door(f"{FL}.by_cluster", lambda w: w.namespaces.lister.by_cluster(5), "cluster is 5: give"),
    Door(f"{FL}.get", lambda w: w.namespaces.lister.get(5), "name is 5: give a name"),
    Door(f"{FL}.get", lambda w: w.namespaces.lister.get("a", cluster=5), "cluster is 5: give"),
    Door(f"{FL}.find", lambda w: w.namespaces.lister.find(5), "what is looked for is 5: give a"),
    Door(f"{FL}.find", lambda w: w.namespaces.lister.find("a", 5), "namespace is 5: give a name"),
    Door(f"{FL}.list", lambda w: w.namespaces.lister.list(["a"]), "selector is ['a']: give"),
    Door(f"{FL}.items", lambda w: list(w.namespaces.lister.items(["a"])), "selector is ['a']: g"),
    Door(f"{FL}.by_index", lambda w: w.namespaces.lister.by_index(5, "a"), "the name of an index"),
    Door(
        f"{FL}.by_namespace", lambda w: w.namespaces.lister.by_namespace(5), "namespace is 5: give"
    ),
    Door(f"{FL}.select", lambda w: w.namespaces.lister.select([".a"]), COLUMNS),
    Door(f"{FL}.select", lambda w: w.namespaces.lister.select(namespace=5), "namespace is 5: give"),
    Door(f"{FL}.select", lambda w: w.namespaces.lister.select(index=5), "index is 5: give the na"),
    Door(f"{FL}.to_frame", lambda w: w.namespaces.lister.to_frame([".a"]), COLUMNS),
    Door(f"{FN}.list", lambda w: prod(w).list(["a"]), "selector is ['a']: give"),
    Door(f"{FN}.get", lambda w: prod(w).get(5), "name is 5: give a name"),
    Door(f"{FN}.find", lambda w: prod(w).find(5), "what is looked for is 5: give a"),
    Door(f"{FN}.by_index", lambda w: prod(w).by_index(5, "a"), "the name of an index is 5"),
    Door(f"{FN}.select", lambda w: prod(w).select([".a"]), COLUMNS),
    Door(f"{FN}.to_frame", lambda w: prod(w).to_frame([".a"]), COLUMNS),
    Door("FleetRegistration.has_synced", lambda w: heard(w).has_synced(5), "cluster is 5: give"),
    Door("FleetRegistration.wait_for_sync", lambda w: heard(w).wait_for_sync("5"), SECONDS),
    Door("FleetEventStream.take", lambda w: w.namespaces.informer.events().take("5"), SECONDS),
    Door("FleetFollower.wait_for_sync", lambda w: w.fleet.follow("x").wait_for_sync("5"), SECONDS),
    Door("strip", lambda w: public.strip(["status"]), f"a path is ['status']: {TEXT}"),
    Door("strip", lambda w: public.strip(), "strip needs at least one path"),
    Door("Shard", lambda w: public.Shard("1", 2), "a shard's index is '1': give a whole number"),
    Door("Shard.from_ordinal", lambda w: public.Shard.from_ordinal(5, 2), "hostname is 5: give"),
    Door("Shard.of_pod", lambda w: public.Shard.of_pod("5"), "replicas is '5': give"),
    Door("Shard.owns", lambda w: public.Shard(0, 2).owns(5), "a uid is 5: give text"),
    Door(f"{F}.for_resource", lambda w: ask(w, shard=3), "shard is 3: give a Shard(index, count)"),
    Door("Leader", lambda w: public.Leader(5, client=w.client), "name is 5: give a name for the"),
    Door(
        "Leader",
        lambda w: public.Leader("job", client=w.client, on_elected=lambda: None),
        "on_elected is called as on_elected(fence), and takes ()",
    ),
    Door(
        "Leader",
        lambda w: public.Leader("job", client=w.client, on_lost=lambda fence: None),
        "on_lost is called as on_lost(), and takes (fence)",
    ),
    Door(
        "Leader",
        lambda w: public.Leader("job", client=w.client, renew_deadline="5"),
        "renew_deadline is '5': give seconds",
    ),
    Door("Leader.close", lambda w: public.Leader("job", client=w.client).close("5"), SECONDS),
    Door(
        "Leader.elected",
        lambda w: public.Leader("job", client=w.client).elected("5").__enter__(),
        SECONDS,
    ),
    Door(M, lambda w: shared(w, name=5), "name is 5: give a name for the leases"),
    Door(M, lambda w: shared(w, shards="64"), "shards is '64': give a whole number"),
    Door(M, lambda w: shared(w, lease_duration=1.5), "lease_duration is 1.5: give whole seconds"),
    Door(f"{M}.informer", lambda w: shared(w).informer(5), "a resource is 5: give a"),
    Door(f"{M}.run", lambda w: shared(w).run(NEW, on_add=5), "on_add is 5: give a function"),
    Door(
        f"{M}.fence", lambda w: shared(w).fence(5), "an object is 5: give one with a metadata.uid"
    ),
    Door(f"{M}.owned", lambda w: shared(w).owned({}).__enter__(), "an object is {}: give one with"),
    Door(f"{M}.wait", lambda w: shared(w).wait("5"), SECONDS),
    Door(f"{M}.wait_shared", lambda w: shared(w).wait_shared("5"), SECONDS),
    Door(f"{M}.close", lambda w: shared(w).close("5"), SECONDS),
    Door(
        "ShardedInformer.add_event_handler",
        lambda w: shared(w).informer(NEW).add_event_handler(on_add="x"),
        "on_add is 'x': give a function",
    ),
    Door(
        "ShardedInformer.get",
        lambda w: shared(w).informer(NEW).get(5),
        "name is 5: give a name",
    ),
    Door(
        "ShardedInformer.list",
        lambda w: shared(w).informer(NEW).list(5),
        "selector is 5: give text such as 'app=shop', or a mapping",
    ),
    Door(
        "ShardedRegistration.wait_for_sync",
        lambda w: shared(w).informer(NEW).add_event_handler(on_add=print).wait_for_sync("5"),
        SECONDS,
    ),
    Door(
        "ShardedInformer.wait_synced", lambda w: shared(w).informer(NEW).wait_synced("5"), SECONDS
    ),
]


@pytest.mark.parametrize("door", DOORS, ids=shown)
def test_what_is_wrong_is_said_in_words(world: World, door: Door) -> None:
    """What it is called, what was given, and what to give; never what Python made of it."""
    with pytest.raises((TypeError, ValueError), match=re.escape(door.said)):
        door.call(world)


ANY_JSON = {"JSONPath.values", "JSONPath.groups", "JSONPath.text", "JSONPath.json_text"}
ANY_JSON |= {"JSONPath.first", "PathCondition.met", "Projection.rows", "index_text"}
OF_THE_PACKAGE = {"ResourceOptions.over", "ResourceOptions.conflicts", "PathIndex.values_of"}
OF_THE_PACKAGE |= {"Metrics.count", "Metrics.gauge", "Registration.ring"}
OF_THE_QUEUE = {"WorkQueue", "RateLimited", "RateLimited.delay", "WorkItem.again"}
OF_THE_QUEUE |= {f"WorkQueue.{name}" for name in ("close", "forget", "retries", "start", "watch")}
"""What its own tests are for."""


def test_every_public_door_is_in_the_table() -> None:
    """Each function, method and class that users call with arguments, of the package itself."""
    tried = {door.name for door in DOORS} | ANY_JSON | OF_THE_PACKAGE | OF_THE_QUEUE
    assert {
        name for name in doors("dyninformer", "dyninformer.jsonpath") if name not in tried
    } == set()
