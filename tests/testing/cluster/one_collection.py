"""A log, its watch caches and a clock that is moved by hand; and the recordings to compare with."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from dyninformer.testing.api.representations import PlainJson
from dyninformer.testing.clock import ManualClock
from dyninformer.testing.cluster.lists import (
    ListOptions,
    Page,
    Representation,
    list_versions,
    parse_list_options,
)
from dyninformer.testing.cluster.log import Key, Log, Version
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.watch_cache import ReadSettings, WatchCaches
from dyninformer.testing.cluster.watches import Watch, open_watch
from dyninformer.testing.messages import Request
from dyninformer.types import Object

WIDGETS = Resource("ex.io", "v1", "widgets", "Widget", namespaced=True)
CLUS = Resource("clu.io", "v1", "clus", "Clu", namespaced=False)
PAINTS = Resource(
    "sel.io",
    "v1",
    "paints",
    "Paint",
    namespaced=True,
    selectable_fields=(".spec.color", ".spec.size", ".spec.on"),
)
NAMESPACES = Resource(
    "",
    "v1",
    "namespaces",
    "Namespace",
    namespaced=False,
    builtin=True,
    selectable_fields=("status.phase",),
)
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True, builtin=True)


class OneCollection:
    """One collection (or more) as a test writes and reads it."""

    def __init__(self, resource: Resource = WIDGETS, **settings: Any) -> None:
        self.resource = resource
        self.clock = ManualClock()
        self.log = Log()
        self.caches = WatchCaches(self.log, self.clock, ReadSettings(**settings))
        self.plain = PlainJson()

    def put(
        self,
        path: str,
        obj: Object | None = None,
        *,
        at: int | None = None,
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> Version:
        """Write ``namespace/name``, or just ``name``; ``at`` is the revision it gets."""
        namespace, _, name = path.rpartition("/")
        if obj is None:
            obj = {
                "apiVersion": self.resource.api_version,
                "kind": self.resource.kind,
                "metadata": {"name": name},
            }
            if namespace:
                obj["metadata"]["namespace"] = namespace
            if labels is not None:
                obj["metadata"]["labels"] = labels
            if spec:
                obj["spec"] = spec
        return self._write(Key(namespace, name), obj, at)

    def delete(self, path: str, *, at: int | None = None) -> Version:
        """Delete ``namespace/name``, or just ``name``."""
        namespace, _, name = path.rpartition("/")
        return self._write(Key(namespace, name), None, at)

    def advance_to(self, revision: int) -> None:
        """Let other writes happen until the log is there."""
        while self.log.revision < revision:
            self.log.advance()

    def options(self, query: str = "", verb: str = "list") -> ListOptions:
        """What a query string asks."""
        pairs = tuple(parse_qsl(query, keep_blank_values=True))
        return parse_list_options(
            Request("GET", "/", pairs), self.resource, verb, self.caches.settings
        )

    def page(self, query: str = "", namespace: str = "") -> Page:
        """The page a LIST with this query gets."""
        return list_versions(self.caches, self.resource, namespace, self.options(query))

    def body(self, page: Page) -> Object:
        """A page as a client reads it."""
        found: Object = json.loads(b"".join(self.plain.list_(page, self.resource)))
        return found

    def watch(
        self, query: str = "", namespace: str = "", representation: Representation | None = None
    ) -> Watch:
        """An open watch."""
        options = self.options(query, "watch")
        shown = representation or self.plain
        return open_watch(self.caches, self.resource, namespace, options, shown)

    def _write(self, key: Key, obj: Object | None, at: int | None) -> Version:
        if at is not None:
            self.advance_to(at - 1)
        version = self.log.append(self.resource.collection, key, obj)
        assert at is None or version.revision == at
        return version


def names(page: Page) -> list[str]:
    """The keys on a page."""
    return [version.key.path for version in page.versions]


def taken(watch: Watch) -> list[tuple[str, str, str]]:
    """What a watch has to send now: type, name and resourceVersion of each line."""
    found = []
    for line in lines(watch):
        event = json.loads(line)
        metadata = event["object"]["metadata"]
        found.append((event["type"], metadata.get("name", ""), metadata.get("resourceVersion", "")))
    return found


def lines(watch: Watch) -> list[str]:
    """The lines a watch has to send now, without their newlines."""
    found: list[str] = []
    while some := watch.take():
        found.extend(line.decode() for line in some)
    assert all(line.endswith("\n") for line in found)
    return [line[:-1] for line in found]
