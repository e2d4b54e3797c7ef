"""A cluster to write to in tests, and the recorded exchanges of a real one to compare with."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dyninformer.testing.clock import ManualClock
from dyninformer.testing.cluster.bodies import decode_object, require_kind
from dyninformer.testing.cluster.cluster import Cluster
from dyninformer.testing.cluster.log import GroupResource, Key
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.write_options import (
    APPLY,
    JSON,
    MERGE,
    DeleteOptions,
    WriteOptions,
    WriteResult,
    delete_options,
    write_options,
)
from dyninformer.testing.status import ApiError
from dyninformer.types import Object

CRDS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
THINGS = GroupResource("wr.io", "things")
OPTIONS = WriteOptions()

THING_SPEC: Object = {
    "type": "object",
    "x-kubernetes-validations": [{"rule": "self.replicas != 13", "message": "unlucky"}],
    "properties": {
        "replicas": {"type": "integer", "minimum": 0},
        "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "list": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "v": {"type": "integer"}},
            },
        },
    },
}
"""The schema of the recorded exchanges of writes, deletes and errors."""
THING: Object = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": THING_SPEC,
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
SUBRESOURCES: Object = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}
OPEN: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def crd(
    plural: str,
    kind: str,
    schema: Object | None = None,
    *,
    group: str = "wr.io",
    scope: str = "Namespaced",
    subresources: Object | None = None,
    **version: Any,
) -> Object:
    """A CRD of one version v1."""
    v1 = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema or OPEN},
        **({"subresources": subresources} if subresources else {}),
        **version,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [v1],
        },
    }


class SmallCluster:
    """A cluster, a clock moved by hand, and short ways to write."""

    def __init__(self, **options: Any) -> None:
        self.clock = ManualClock(1794994667.0)  # when the writes were recorded
        self.cluster = Cluster(self.clock, seed=1, **options)
        self.writer = self.cluster.writer
        self._stand_ins: dict[str, str] = {}
        self.add("namespaces", {"metadata": {"name": "ns1"}})

    def things(self) -> Resource:
        """The resource of the recorded writes."""
        self.install(crd("things", "Thing", THING, subresources=SUBRESOURCES))
        return self.resource("things", "wr.io")

    def resource(self, plural: str, group: str = "", version: str = "v1") -> Resource:
        """A served resource."""
        found = self.cluster.resources.find(group, version, plural)
        assert found is not None
        return found

    def serves(self, plural: str, group: str, version: str = "v1") -> bool:
        """Whether a resource is served."""
        return self.cluster.resources.find(group, version, plural) is not None

    def install(self, body: Object) -> Object:
        """Create a CRD; what the POST answers."""
        return self.writer.create(
            self.resource(CRDS.resource, CRDS.group), "", body, OPTIONS
        ).object

    def add(self, plural: str, body: Object, namespace: str = "", group: str = "") -> Object:
        """Create an object."""
        return self.writer.create(self.resource(plural, group), namespace, body, OPTIONS).object

    def thing(self, name: str, spec: Object | None = None, **metadata: Any) -> Object:
        """Create a Thing in ns1."""
        body = {
            "apiVersion": "wr.io/v1",
            "kind": "Thing",
            "metadata": {"name": name, **metadata},
            "spec": spec or {},
        }
        return self.writer.create(self.resource("things", "wr.io"), "ns1", body, OPTIONS).object

    def merge(self, resource: Resource, key: Key, patch: Object, subresource: str = "") -> Object:
        """A JSON merge patch."""
        return self.writer.patch(resource, key, MERGE, patch, OPTIONS, subresource).object

    def json(self, resource: Resource, key: Key, operations: Any) -> Object:
        """A JSON patch."""
        return self.writer.patch(resource, key, JSON, operations, OPTIONS).object

    def apply(
        self,
        resource: Resource,
        key: Key,
        config: Object,
        manager: str = "me",
        *,
        force: bool = False,
        subresource: str = "",
    ) -> WriteResult:
        """A server-side apply."""
        options = WriteOptions(field_manager=manager, force=force)
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **config}
        return self.writer.patch(resource, key, APPLY, body, options, subresource)

    def delete(self, resource: Resource, key: Key, **options: Any) -> Object:
        """Delete an object."""
        return self.writer.delete(resource, key, DeleteOptions(**options))

    def live(self, collection: GroupResource, name: str, namespace: str = "") -> Object | None:
        """The stored state of an object, None if it is gone."""
        version = self.cluster.log.get(collection, Key(namespace, name))
        return None if version is None else version.object

    def events(self, collection: GroupResource, after: int = 0) -> list[tuple[str, Object]]:
        """What a watch of the collection would say."""
        found = []
        for version in self.cluster.log.since(collection, after):
            kind = "MODIFIED" if version.previous is not None else "ADDED"
            found.append(("DELETED" if version.deleted else kind, version.object))
        return found

    def replay(self, recording: Object) -> tuple[int, Object]:
        """The answer to a recorded write: status and body.

        Uids and resourceVersions of earlier recorded answers stand for those given here.
        """
        try:
            status, body = self._replay(recording)
        except ApiError as error:
            status, body = error.code, error.body()
        theirs = recording["response"]["body"]
        if isinstance(theirs, dict):
            ours = body.get("metadata", {})
            for field in ("uid", "resourceVersion"):
                if field in theirs.get("metadata", {}) and field in ours:
                    self._stand_ins[theirs["metadata"][field]] = ours[field]
        return status, body

    def _translated(self, text: str) -> bytes:
        for theirs, ours in self._stand_ins.items():
            text = text.replace(f'"{theirs}"', f'"{ours}"')
        return text.encode()

    def _replay(self, recording: Object) -> tuple[int, Object]:
        request = recording["request"]
        url = urlsplit(request["path"])
        query = dict(parse_qsl(url.query))
        found = re.fullmatch(
            r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<ns>[^/]+))?"
            r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?",
            url.path,
        )
        assert found is not None, url.path
        part = found.groupdict(default="")
        if part["plural"] == "finalize":
            part = {**part, "plural": "namespaces", "name": part["ns"], "ns": "", "sub": "finalize"}
        resource = self.resource(part["plural"], part["group"], part["version"])
        key, body = Key(part["ns"], part["name"]), request.get("body")
        raw = self._translated(body if isinstance(body, str) else json.dumps(body))
        if request["method"] == "DELETE":
            options = delete_options(query.get, json.loads(raw) if body else None)
            return 200, self.writer.delete(resource, key, options)
        kinds: Any = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
        form = request["headers"].get("Content-Type", "")
        write = write_options(kinds[request["method"]], query.get, {}, patch_type=form)
        if request["method"] == "PATCH":
            result = self.writer.patch(resource, key, form, raw, write, part["sub"])
            return result.status, result.object
        obj, _ = decode_object(raw, resource.kind)
        require_kind(obj, resource.kind, raw)
        if request["method"] == "POST":
            result = self.writer.create(resource, part["ns"], obj, write)
        else:
            result = self.writer.replace(resource, key, obj, write, part["sub"])
        return result.status, result.object


def without_chance(value: Any) -> Any:
    """A body with what differs from run to run made the same."""
    if isinstance(value, dict):
        return {
            name: "<chance>" if name in _CHANCE else without_chance(below)
            for name, below in value.items()
        }
    if isinstance(value, list):
        return [without_chance(each) for each in value]
    if isinstance(value, str):
        value = re.sub(r"\bgen-[a-z0-9]{5}\b", "gen-<chance>", value)
        value = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>", value)
        return re.sub(r"(record \()\d+", r"\1<rv>", value)
    return value


_CHANCE = {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time"}
_CHANCE |= {"lastTransitionTime"}
