"""The resources that a CustomResourceDefinition asks to be served, version by version."""

from __future__ import annotations

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.cells import check_column
from dyninformer.testing.cluster.resources import (
    ALL_VERBS,
    TERMINATING_VERBS,
    Column,
    Resource,
)
from dyninformer.testing.cluster.structural import Structural
from dyninformer.types import Object

Columns = tuple[Column, ...]


def resources_of(crd: Object) -> tuple[Resource, ...]:
    """The resources that an Established CRD serves."""
    return tuple(
        _resource(crd, version) for version in crd["spec"]["versions"] if version["served"]
    )


def _resource(crd: Object, version: Object) -> Resource:
    spec, names = crd["spec"], crd["status"]["acceptedNames"]
    schema = version.get("schema", {}).get("openAPIV3Schema")
    subresources = version.get("subresources") or {}
    alive = "deletionTimestamp" not in crd["metadata"]
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular", ""),
        list_kind=names.get("listKind", ""),
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        verbs=ALL_VERBS if alive else TERMINATING_VERBS,
        columns=_columns(version),
        selectable_fields=tuple(each["jsonPath"] for each in version.get("selectableFields", ())),
        schema=schema,
        structural=Structural(schema) if schema is not None else None,
        status="status" in subresources,
        scale=subresources.get("scale"),
        creatable=alive,
        siblings=tuple(each["name"] for each in spec["versions"]),
    )


def _columns(version: Object) -> Columns | None:
    """None if the version names no columns; none at all if one of them cannot be used."""
    named = version.get("additionalPrinterColumns")
    if not named:
        return None
    try:
        for column in named:
            check_column(column["jsonPath"])
    except JSONPathError:
        return ()
    return tuple(
        Column(
            name=column["name"],
            type=column["type"],
            path=column["jsonPath"],
            format=column.get("format", ""),
            description=column.get("description", ""),
            priority=column.get("priority", 0),
        )
        for column in named
    )
