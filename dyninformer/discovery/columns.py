"""The columns in which kubectl shows a custom resource, as its CRD declares them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from dyninformer.resource import GroupVersionResource

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"


class PrinterColumn(NamedTuple):
    """One column. A priority above 0 is for wide tables.

    >>> PrinterColumn("Ready", "string", ".status.ready").priority
    0
    """

    name: str
    type: str
    path: str
    priority: int = 0


Columns = tuple[PrinterColumn, ...]


class _Column(msgspec.Struct, rename="camel"):
    name: str
    type: str
    json_path: str
    priority: int = 0


class _Version(msgspec.Struct, rename="camel"):
    name: str
    additional_printer_columns: list[_Column] | None = None


class _Spec(msgspec.Struct):
    versions: list[_Version]


class _Crd(msgspec.Struct):
    spec: _Spec


def columns_of(crd: object, gvr: GroupVersionResource) -> Columns:
    """Those of one version; none where it declares none, or cannot be read."""
    try:
        versions = msgspec.convert(crd, _Crd).spec.versions
    except msgspec.ValidationError:
        return ()
    return tuple(
        PrinterColumn(each.name, each.type, each.json_path, each.priority)
        for version in versions
        if version.name == gvr.version
        for each in version.additional_printer_columns or ()
    )
