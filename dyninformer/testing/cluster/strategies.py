"""What the server does to objects of its own kinds as they are written."""

from __future__ import annotations

import base64
from typing import Any, ClassVar, Final

from dyninformer.testing.cluster import events
from dyninformer.testing.cluster.crd_validation import crd_causes, crd_update_causes
from dyninformer.testing.cluster.log import GroupResource
from dyninformer.testing.cluster.resources import Resource
from dyninformer.types import Object, Objects

CRDS: Final = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
NAMESPACES: Final = GroupResource("", "namespaces")
RBAC: Final = "rbac.authorization.k8s.io"
_NAME_LABEL: Final = "kubernetes.io/metadata.name"


class Strategy:
    """The rules of a kind. This one, of most built-ins and all custom resources, has none."""

    blank: ClassVar[Object] = {"metadata": {}}
    """The containers that every object of the kind has: creating them makes no manager an owner."""
    write_only: ClassVar[tuple[str, ...]] = ()
    """Fields that reading turns into others: the manager of an apply owns them as it wrote them."""

    def defaults(self, obj: Object) -> Object:
        """The object with the defaults that reading fills in; its writer owns them."""
        return obj

    def prepare(self, obj: Object, before: Object | None) -> Object:
        """The object with what the server adds on a create (``before`` None) or an update."""
        del before
        return obj

    def causes(self, obj: Object, before: Object | None) -> Objects:
        """What is wrong with the object apart from its schema."""
        del obj, before
        return []


class _Builtin(Strategy):
    blank: ClassVar[Object] = {"metadata": {}, "spec": {}, "status": {}}


class _Defaulting(_Builtin):
    """Fills in fields of spec, as far as kubectl's columns and waits rely on them."""

    def __init__(self, **spec: Any) -> None:
        self._spec = spec

    def defaults(self, obj: Object) -> Object:
        spec = obj.get("spec")
        if spec is not None and not isinstance(spec, dict):
            return obj
        return {**obj, "spec": {**self._spec, **(spec or {})}}


class _Pending(_Builtin):
    """A pod or a volume begins in the phase Pending."""

    def prepare(self, obj: Object, before: Object | None) -> Object:
        return obj if before is not None else {**obj, "status": {"phase": "Pending"}}


class _Namespace(_Builtin):
    def defaults(self, obj: Object) -> Object:
        metadata = obj["metadata"]
        if not metadata.get("name"):
            return obj
        labels = {**metadata.get("labels", {}), _NAME_LABEL: metadata["name"]}
        return {**obj, "metadata": {**metadata, "labels": labels}}

    def prepare(self, obj: Object, before: Object | None) -> Object:
        if before is None:
            finalizers = list(obj.get("spec", {}).get("finalizers", ()))
            if "kubernetes" not in finalizers:
                finalizers.append("kubernetes")
            return {**obj, "spec": {"finalizers": finalizers}, "status": {"phase": "Active"}}
        return {**obj, "spec": before.get("spec", {}), "status": obj.get("status", {})}


class _Secret(Strategy):
    write_only: ClassVar[tuple[str, ...]] = ("stringData",)

    def defaults(self, obj: Object) -> Object:
        found = {name: value for name, value in obj.items() if name != "stringData"}
        plain = obj.get("stringData")
        if plain:
            encoded = {k: base64.b64encode(v.encode()).decode() for k, v in plain.items()}
            found["data"] = {**found.get("data", {}), **encoded}
        return {**found, "type": found.get("type") or "Opaque"}


class _Role(Strategy):
    blank: ClassVar[Object] = {"metadata": {}, "rules": None}

    def defaults(self, obj: Object) -> Object:
        return {"rules": None, **obj}


class _Binding(Strategy):
    """The role is of RBAC's group, and so is every subject except ServiceAccounts."""

    def defaults(self, obj: Object) -> Object:
        ref = obj.get("roleRef") or {}
        subjects = [_with_api_group(each) for each in obj.get("subjects") or ()]
        found = {**obj, "roleRef": {**ref, "apiGroup": ref.get("apiGroup") or RBAC}}
        return {**found, "subjects": subjects} if subjects else found


def _with_api_group(subject: Object) -> Object:
    if subject.get("kind") not in {"User", "Group"}:
        return subject
    return {"kind": subject["kind"], "apiGroup": RBAC, **subject}


class _CoreEvent(Strategy):
    blank: ClassVar[Object] = events.BLANK[""]

    def defaults(self, obj: Object) -> Object:
        return events.completed(obj, "")


class _Event(Strategy):
    blank: ClassVar[Object] = events.BLANK[events.GROUP]

    def defaults(self, obj: Object) -> Object:
        return events.completed(obj, events.GROUP)


class _Crd(_Builtin):
    blank: ClassVar[Object] = {"metadata": {}, "spec": {"names": {}}, "status": {}}

    def defaults(self, obj: Object) -> Object:
        spec = obj.get("spec") or {}
        names = dict(spec.get("names") or {})
        kind = names.get("kind")
        if kind:
            names["singular"] = names.get("singular") or kind.lower()
            names["listKind"] = names.get("listKind") or f"{kind}List"
        order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
        names = {field: names[field] for field in order if names.get(field)}
        versions = [self._version(version) for version in spec.get("versions") or ()]
        conversion = spec.get("conversion") or {"strategy": "None"}
        head = {field: spec[field] for field in ("group",) if field in spec}
        scope = {field: spec[field] for field in ("scope",) if field in spec}
        kept = {field: True for field in ("preserveUnknownFields",) if spec.get(field)}
        lists = {"versions": versions, "conversion": conversion}
        return {**obj, "spec": {**head, "names": names, **scope, **lists, **kept}}

    def prepare(self, obj: Object, before: Object | None) -> Object:
        stored = list((before or {}).get("status", {}).get("storedVersions") or ())
        status = _BARE_STATUS
        if before is not None:
            given = obj.get("status") or {}
            status = {**_BARE_STATUS, **{k: v for k, v in given.items() if v is not None}}
            stored = list(status.get("storedVersions") or stored)
        for version in obj["spec"]["versions"]:
            if version.get("storage") and version.get("name") not in stored:
                stored.append(version.get("name", ""))
        storage = [each for each in obj["spec"]["versions"] if each.get("storage")]
        if before is None and len(storage) != 1:
            stored = stored if storage else []
        return {**obj, "status": {**status, "storedVersions": stored or None}}

    def causes(self, obj: Object, before: Object | None) -> Objects:
        return crd_causes(obj) if before is None else crd_update_causes(obj, before)

    def _version(self, version: Object) -> Object:
        """The version with ``served`` and ``storage``, which are always there."""
        found = {"name": version.get("name", ""), **version}
        return {**found, "served": bool(found.get("served")), "storage": bool(found.get("storage"))}


_BARE_STATUS: Final[Object] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}
_NONE: Final = Strategy()
_TYPED: Final = _Builtin()
_STRATEGIES: Final[dict[GroupResource, Strategy]] = {
    NAMESPACES: _Namespace(),
    CRDS: _Crd(),
    GroupResource("", "secrets"): _Secret(),
    GroupResource("", "events"): _CoreEvent(),
    GroupResource(events.GROUP, "events"): _Event(),
    GroupResource(RBAC, "roles"): _Role(),
    GroupResource(RBAC, "clusterroles"): _Role(),
    GroupResource(RBAC, "rolebindings"): _Binding(),
    GroupResource(RBAC, "clusterrolebindings"): _Binding(),
    GroupResource("", "pods"): _Pending(),
    GroupResource("", "persistentvolumes"): _Pending(),
    GroupResource("", "persistentvolumeclaims"): _Pending(),
    GroupResource("", "services"): _Defaulting(type="ClusterIP", sessionAffinity="None"),
    GroupResource("", "replicationcontrollers"): _Defaulting(replicas=1),
    GroupResource("apps", "deployments"): _Defaulting(replicas=1),
    GroupResource("apps", "replicasets"): _Defaulting(replicas=1),
    GroupResource("apps", "statefulsets"): _Defaulting(replicas=1),
    GroupResource("batch", "jobs"): _Defaulting(suspend=False),
    GroupResource("batch", "cronjobs"): _Defaulting(suspend=False, concurrencyPolicy="Allow"),
}


def strategy_of(resource: Resource) -> Strategy:
    """The rules of a resource's kind."""
    return _STRATEGIES.get(resource.group_resource) or (_TYPED if resource.builtin else _NONE)
