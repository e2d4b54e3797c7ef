"""A 404 for the whole collection: is it gone, not there yet, or is the answer wrong (S33)?

A cache is emptied only on positive proof. The CRD itself is asked for first. Discovery is looked
at where there is no CRD to be seen: for a resource that is not custom, or by a user who may not
see CRDs. Here is what to look at, and what that proves; what follows from it is `protocol`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dyninformer.transport.requests import short
from dyninformer.watching import reasons
from dyninformer.watching.states import Document, Lost, Refused, Scope, StatusError
from dyninformer.watching.status import Reason

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
_GROUPS = "/apis"
MOST_REQUESTS = 3
"""A proof makes at most so many."""

Fields: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LookAt:
    """Nothing is known yet: ask for this next."""

    path: str


@dataclass(frozen=True, slots=True)
class Gone:
    """Proved: there is no such resource."""

    proof: str


@dataclass(frozen=True, slots=True)
class NotSeen:
    """Discovery does not show it, which may be a server that lags behind: look again."""

    found: str


@dataclass(frozen=True, slots=True)
class MayBeThere:
    """It is there, or nothing proves that it is not."""

    reason: Reason


Verdict: TypeAlias = LookAt | Gone | NotSeen | MayBeThere


def first_look(scope: Scope) -> str:
    """What to ask for, when the collection was answered with 404."""
    return _CRDS + scope.gvr.group_resource if scope.may_be_custom else _discovery(scope)


def is_crd(path: str) -> bool:
    """What was asked for is the CRD itself."""
    return path.startswith(_CRDS)


def verdict(scope: Scope, path: str, answer: Document | Refused | Lost) -> Verdict:
    """What an answer to ``path`` proves."""
    match answer:
        case Document(content):
            return _found(scope, path, content)
        case Refused(status):
            return _refused(scope, path, status)
        case Lost(complaint):
            return _unproved(scope, f"and to look why failed: {complaint}")


def _discovery(scope: Scope) -> str:
    return _GROUPS if scope.gvr.group else _resources(scope)


def _resources(scope: Scope) -> str:
    gvr = scope.gvr
    return f"{_GROUPS}/{gvr.group}/{gvr.version}" if gvr.group else f"/api/{gvr.version}"


def _unproved(scope: Scope, found: str) -> MayBeThere:
    return MayBeThere(reasons.unproved(scope, found))


def _refused(scope: Scope, path: str, status: StatusError) -> Verdict:
    if not is_crd(path):
        return _unproved(scope, f"and discovery at {path} is not to be had ({status.code})")
    name = scope.gvr.group_resource
    if status.code == 404 and status.name == name:
        return Gone(f"there is no CustomResourceDefinition {name}")
    return LookAt(_discovery(scope))


def _found(scope: Scope, path: str, content: Fields) -> Verdict:
    gvr, kind = scope.gvr, content.get("kind")
    if is_crd(path):
        if kind != "CustomResourceDefinition":
            return LookAt(_discovery(scope))
        return MayBeThere(_why_not_served(content, scope))
    if path == _GROUPS:
        if kind != "APIGroupList":
            return _unproved(scope, "and discovery at /apis is no APIGroupList")
        if gvr.group_version not in _served_versions(content):
            return NotSeen(f"discovery has no {gvr.group_version}")
        return LookAt(_resources(scope))
    if kind != "APIResourceList":
        return _unproved(scope, f"and discovery at {path} is no APIResourceList")
    entry = _named(content.get("resources"), gvr.resource)
    if entry is None:
        return NotSeen(f"discovery of {gvr.group_version} has no {gvr.resource}")
    if scope.namespace and entry.get("namespaced") is False:
        return MayBeThere(reasons.cluster_scoped(scope))
    return _unproved(scope, "though discovery has it")


def _why_not_served(crd: Fields, scope: Scope) -> Reason:
    """Why a CRD that exists does not serve the collection."""
    spec, name = _fields(crd.get("spec")), scope.gvr.group_resource
    if scope.namespace and spec.get("scope") == "Cluster":
        return reasons.cluster_scoped(scope)
    served = [each.get("name") for each in _entries(spec.get("versions")) if each.get("served")]
    if scope.gvr.version not in served:
        versions = ", ".join(map(str, served)) or "no version"
        return reasons.unproved(
            scope, f"as CustomResourceDefinition {name} serves {versions}; ask for one it serves"
        )
    conditions = _entries(_fields(crd.get("status")).get("conditions"))
    for condition in conditions:
        if condition.get("type") == "Established" and condition.get("status") == "True":
            return reasons.unproved(scope, f"though CustomResourceDefinition {name} is established")
    why = "; ".join(
        f"{each.get('type')}={each.get('status')}: {short(str(each.get('message')))}"
        for each in conditions
        if each.get("type") in ("NamesAccepted", "Established")
    )
    return reasons.unproved(
        scope, f"as CustomResourceDefinition {name} is not established ({why or 'no conditions'})"
    )


def _served_versions(groups: Fields) -> set[Any]:
    return {
        version.get("groupVersion")
        for group in _entries(groups.get("groups"))
        for version in _entries(group.get("versions"))
    }


def _named(entries: object, name: str) -> Fields | None:
    return next((each for each in _entries(entries) if each.get("name") == name), None)


def _entries(value: object) -> list[Fields]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _fields(value: object) -> Fields:
    return value if isinstance(value, dict) else {}
