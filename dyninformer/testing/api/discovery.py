"""Discovery, old and aggregated: what is served, as clients ask for it first."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from dyninformer.testing.api.encoding import encode
from dyninformer.testing.api.negotiation import Conversion
from dyninformer.testing.api.reviews import REVIEWS
from dyninformer.testing.cluster.resources import Resource, ResourceTable
from dyninformer.types import Object, Objects

AGGREGATED_GROUP = "apidiscovery.k8s.io"
AGGREGATED_KIND = "APIGroupDiscoveryList"
_SUBRESOURCE_VERBS = ["get", "patch", "update"]
_SCALE = ("autoscaling", "v1", "Scale")

StorageVersion = Callable[[Resource], str]


def aggregated_kind(conversion: Conversion) -> bool:
    """The one other form of ``/api`` and ``/apis``; its v2beta1 is gone."""
    asked = (conversion.group, conversion.version, conversion.kind)
    return asked == (AGGREGATED_GROUP, "v2", AGGREGATED_KIND)


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregated document and its Etag, quotes included."""

    document: Object
    etag: str


class Discovery:
    """Documents made from the table of what is served, and kept until that changes."""

    def __init__(self, table: ResourceTable, storage_version: StorageVersion) -> None:
        self._table = table
        self._storage_version = storage_version
        self._aggregated: dict[bool, Aggregated] = {}
        table.listen(self._aggregated.clear)

    def groups(self) -> list[str]:
        """Every group but the core one, in discovery's order."""
        served = [group for group in self._table.groups() if group]
        return list(dict.fromkeys([*served, *(review.group for review in REVIEWS)]))

    def versions(self, group: str) -> list[str]:
        """The versions of a group, the preferred one first; empty if it is unknown."""
        reviews = (review.version for review in REVIEWS if review.group == group)
        return list(dict.fromkeys([*self._table.versions_of(group), *reviews]))

    def group_list(self) -> Object:
        """``/apis``."""
        groups = [self._group(group) for group in self.groups()]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def group(self, group: str) -> Object | None:
        """``/apis/GROUP``, None if it is unknown."""
        if not group or not self.versions(group):
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}

    def resource_list(self, group: str, version: str) -> Object | None:
        """``/apis/GROUP/VERSION`` or ``/api/v1``, None if it is unknown."""
        if version not in self.versions(group):
            return None
        # The core group's list is the one document without an apiVersion.
        head = {"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {})}
        name = f"{group}/{version}" if group else version
        entries = [
            entry
            for each in self._table.all()
            if (each.group, each.version) == (group, version)
            for entry in self._entries(each)
        ]
        entries += [
            {
                "name": review.plural, "singularName": review.kind.lower(),
                "namespaced": review.namespaced, "kind": review.kind, "verbs": ["create"],
            }
            for review in REVIEWS
            if (review.group, review.version) == (group, version)
        ]  # fmt: skip
        return {**head, "groupVersion": name, "resources": entries}

    def aggregated(self, *, core: bool) -> Aggregated:
        """``/api`` (``core``) or ``/apis`` in their aggregated form."""
        found = self._aggregated.get(core)
        if found is None:
            groups = [""] if core else self.groups()
            document = {
                "kind": AGGREGATED_KIND,
                "apiVersion": f"{AGGREGATED_GROUP}/v2",
                "metadata": {},
                "items": [self._aggregated_group(group) for group in groups],
            }
            digest = hashlib.sha512(encode(document, sort=False)).hexdigest().upper()
            found = self._aggregated[core] = Aggregated(document, f'"{digest}"')
        return found

    def _group(self, group: str) -> Object:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self.versions(group)
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _entries(self, resource: Resource) -> Objects:
        key = f"{resource.group}/{self._storage_version(resource)}/{resource.kind}"
        digest = hashlib.sha256(key.encode()).digest()[:8]
        main: Object = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": _verbs(resource),
            **_names(resource),
            "storageVersionHash": base64.b64encode(digest).decode(),
        }
        return [main, *(_subentry(resource, name) for name in _subresources(resource))]

    def _aggregated_group(self, group: str) -> Object:
        versions = [
            {
                "version": version,
                "resources": [
                    *(
                        _aggregated_resource(each)
                        for each in self._table.all()
                        if (each.group, each.version) == (group, version)
                    ),
                    *(
                        {
                            "resource": review.plural,
                            "responseKind": {"group": "", "version": "", "kind": review.kind},
                            "scope": "Namespaced" if review.namespaced else "Cluster",
                            "singularResource": review.kind.lower(),
                            "verbs": ["create"],
                        }
                        for review in REVIEWS
                        if (review.group, review.version) == (group, version)
                    ),
                ],
                "freshness": "Current",
            }
            for version in self.versions(group)
        ]
        return {"metadata": {"name": group} if group else {}, "versions": versions}


def _aggregated_resource(resource: Resource) -> Object:
    entry: Object = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource, ""),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
        **_names(resource),
    }
    subresources = [
        {
            "subresource": name,
            "responseKind": _response_kind(resource, name),
            "verbs": _subresource_verbs(name),
        }
        for name in _subresources(resource)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry


def _subentry(resource: Resource, name: str) -> Object:
    entry: Object = {
        "name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced
    }  # fmt: skip
    if name == "scale":
        entry |= dict(zip(("group", "version", "kind"), _SCALE, strict=True))
    else:
        entry["kind"] = resource.kind
    entry["verbs"] = _subresource_verbs(name)
    return entry


def _response_kind(resource: Resource, subresource: str) -> Object:
    if subresource == "scale":
        group, version, kind = _SCALE
    elif resource.builtin:
        group, version, kind = "", "", resource.kind
    else:
        group, version, kind = resource.group, resource.version, resource.kind
    return {"group": group, "version": version, "kind": kind}


def _subresources(resource: Resource) -> list[str]:
    """Those of CRDs in the order status, scale; those of built-ins by name."""
    found = ["status"] * resource.status + ["scale"] * (resource.scale is not None)
    if resource.builtin and resource.collection == ("", "namespaces"):
        found.append("finalize")
    return sorted(found) if resource.builtin else found


def _subresource_verbs(name: str) -> list[str]:
    return ["update"] if name == "finalize" else list(_SUBRESOURCE_VERBS)


def _verbs(resource: Resource) -> list[str]:
    if resource.builtin:
        return sorted(resource.verbs)
    if not resource.creatable:
        return ["delete", "deletecollection", "get", "list", "watch"]
    return list(resource.verbs)


def _names(resource: Resource) -> Object:
    found: Object = {}
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    return found
