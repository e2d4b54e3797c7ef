"""Discovery documents of both forms, and CRDs: read as what they are, data from another program.

What is wrong in one entry costs that entry, and is told as the problem of its
group-version; nothing else is harmed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec

from dyninformer.discovery.resources import (
    ResolvedResource,
    ServedVersion,
)
from dyninformer.resource import GroupVersionResource

STALE = "its API server is not available"
_Name = Annotated[str, msgspec.Meta(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")]
_Kind = Annotated[str, msgspec.Meta(max_length=253, pattern=r"^[A-Za-z][-A-Za-z0-9]*\Z")]
_Text = Annotated[str, msgspec.Meta(max_length=253)]
_Entries = list[Any] | None  # Go writes an empty list as null now and then
_Names = list[_Name] | None


class MalformedError(ValueError):
    """The document as a whole is none of discovery's."""


class _ResponseKind(msgspec.Struct):
    kind: _Kind


class _AggregatedResource(msgspec.Struct, rename="camel"):
    resource: _Name
    response_kind: _ResponseKind
    scope: Literal["Namespaced", "Cluster"]
    singular_resource: _Text = ""
    verbs: _Names = None
    short_names: _Names = None
    categories: _Names = None


class _AggregatedVersion(msgspec.Struct):
    version: _Name
    resources: _Entries = None
    freshness: str = ""


class _AggregatedName(msgspec.Struct):
    name: _Name | None = None  # the core group has none


class _AggregatedGroup(msgspec.Struct):
    metadata: _AggregatedName
    versions: _Entries = None


class _Listed(msgspec.Struct, rename="camel"):
    name: _Text
    kind: _Kind
    namespaced: bool
    singular_name: _Text = ""
    verbs: _Names = None
    short_names: _Names = None
    categories: _Names = None


class _GroupVersion(msgspec.Struct):
    version: _Name


class _Group(msgspec.Struct, rename="camel"):
    name: _Name
    versions: list[_GroupVersion]
    preferred_version: _GroupVersion | None = None


class _CoreVersions(msgspec.Struct):
    versions: list[_Name]


class _Bodies(msgspec.Struct):
    items: _Entries = None
    groups: _Entries = None
    resources: _Entries = None


def is_aggregated(body: object) -> bool:
    """Whether an answer to ``/api`` or ``/apis`` is the aggregated form."""
    return isinstance(body, dict) and body.get("kind") == "APIGroupDiscoveryList"


def aggregated(body: object) -> list[ServedVersion]:
    """Everything that the aggregated form of ``/api`` or ``/apis`` tells."""
    found = []
    for item in _body(body).items or ():
        try:
            group = msgspec.convert(item, _AggregatedGroup)
        except msgspec.ValidationError:
            continue  # it does not even say which group it is
        for each in group.versions or ():
            try:
                version = msgspec.convert(each, _AggregatedVersion)
            except msgspec.ValidationError:
                continue
            found.append(_aggregated_version(group.metadata.name or "", version))
    return found


def group_versions(body: object) -> list[tuple[str, str]]:
    """Group and version of what the old form of ``/api`` or ``/apis`` names, preferred first."""
    kind = body.get("kind") if isinstance(body, dict) else None
    if kind == "APIVersions":
        try:
            core = msgspec.convert(body, _CoreVersions)
        except msgspec.ValidationError as error:
            raise MalformedError(str(error)) from None
        return [("", version) for version in core.versions]
    if kind != "APIGroupList":
        raise MalformedError("it is neither an APIGroupList nor an APIGroupDiscoveryList")
    found = []
    for item in _body(body).groups or ():
        try:
            group = msgspec.convert(item, _Group)
        except msgspec.ValidationError:
            continue
        versions = [each.version for each in group.versions]
        if group.preferred_version is not None and group.preferred_version.version in versions:
            versions.insert(0, group.preferred_version.version)
        found += [(group.name, version) for version in dict.fromkeys(versions)]
    return found


def resource_list(group: str, version: str, body: object) -> ServedVersion:
    """What the old form of ``/apis/GROUP/VERSION`` tells."""
    if not isinstance(body, dict) or body.get("kind") != "APIResourceList":
        raise MalformedError("it is no APIResourceList")
    entries = _body(body).resources or []
    good: list[ResolvedResource] = []
    bad = 0
    for entry in entries:
        try:
            listed = msgspec.convert(entry, _Listed)
            if "/" in listed.name:  # a subresource is nobody's collection
                continue
            good.append(
                _resolved(
                    GroupVersionResource(group, version, listed.name),
                    kind=listed.kind,
                    namespaced=listed.namespaced,
                    singular=listed.singular_name,
                    names=listed,
                )
            )
        except (msgspec.ValidationError, ValueError):
            bad += 1
    return ServedVersion(group, version, tuple(good), _malformed(bad))


def _body(body: object) -> _Bodies:
    try:
        return msgspec.convert(body, _Bodies)
    except msgspec.ValidationError as error:
        raise MalformedError(str(error)) from None


def _aggregated_version(group: str, version: _AggregatedVersion) -> ServedVersion:
    stale = STALE if version.freshness == "Stale" else ""
    if version.resources is None and stale:
        return ServedVersion(group, version.version, problem=stale, known=False)
    entries = list(_aggregated_resources(group, version.version, version.resources or ()))
    good = tuple(each for each in entries if each is not None)
    problem = stale or _malformed(len(entries) - len(good))
    return ServedVersion(group, version.version, good, problem)


def _aggregated_resources(
    group: str, version: str, entries: Sequence[Any]
) -> Iterator[ResolvedResource | None]:
    """Each entry's resource, None for what cannot be read."""
    for entry in entries:
        try:
            found = msgspec.convert(entry, _AggregatedResource)
            yield _resolved(
                GroupVersionResource(group, version, found.resource),
                kind=found.response_kind.kind,
                namespaced=found.scope == "Namespaced",
                singular=found.singular_resource,
                names=found,
            )
        except (msgspec.ValidationError, ValueError):
            yield None


def _resolved(
    gvr: GroupVersionResource,
    *,
    kind: str,
    namespaced: bool,
    singular: str,
    names: _AggregatedResource | _Listed,
) -> ResolvedResource:
    return ResolvedResource(
        gvr=gvr,
        kind=kind,
        namespaced=namespaced,
        singular=singular or kind.lower(),
        short_names=tuple(names.short_names or ()),
        verbs=tuple(names.verbs or ()),
        categories=tuple(names.categories or ()),
    )


def _malformed(entries: int) -> str:
    return f"malformed entries in its discovery: {entries}" if entries else ""
