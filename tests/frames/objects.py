"""Certificates in a lister that knows their CRD, without a server."""

from __future__ import annotations

from typing import Any

import msgspec

from dyninformer.discovery.declared import declared
from dyninformer.discovery.known import Known
from dyninformer.lister import GenericLister
from dyninformer.resource import GroupVersionResource
from dyninformer.store.store import Store
from dyninformer.types import Object

CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")
PODS = GroupVersionResource("", "v1", "pods")

_TEXT = {"type": "string"}
_SPEC = {
    "type": "object",
    "properties": {
        "dnsNames": {"type": "array", "items": _TEXT},
        "replicas": {"type": "integer"},
        "cpu": {"x-kubernetes-int-or-string": True},
        "issuerRef": {"type": "object", "properties": {"kind": _TEXT, "name": _TEXT}},
        "config": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "usages": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "weight": {"type": "number"},
    },
}
_CONDITION = {
    "type": "object",
    "properties": {
        "type": _TEXT,
        "status": _TEXT,
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    },
}
_STATUS = {
    "type": "object",
    "properties": {
        "conditions": {"type": "array", "items": _CONDITION},
        "notAfter": {"type": "string", "format": "date-time"},
        "renewed": _TEXT,
    },
}
CRD: Object = {
    "spec": {
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "additionalPrinterColumns": [
                    {
                        "name": "Ready",
                        "type": "string",
                        "jsonPath": '.status.conditions[?(@.type == "Ready")].status',
                    },
                    {"name": "Hosts", "type": "string", "jsonPath": ".spec.dnsNames"},
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Renewed", "type": "date", "jsonPath": ".status.renewed"},
                    {
                        "name": "Status",
                        "type": "string",
                        "jsonPath": ".status.phase",
                        "priority": 1,
                    },
                    {"name": "Broken", "type": "string", "jsonPath": ".spec["},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _SPEC, "status": _STATUS, "metadata": {}},
                    }
                },
            }
        ],
    }
}


def certificate(name: str, namespace: str = "prod", **fields: Any) -> Object:
    """A certificate; ``spec``, ``status`` and ``labels`` may be given."""
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"u-{namespace}-{name}",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": fields.pop("labels", {}),
        },
        **fields,
    }


def holding(
    *objects: Object,
    gvr: GroupVersionResource = CERTIFICATES,
    crd: Object | None = CRD,
    **options: Any,
) -> GenericLister:
    """A lister of these objects, of which the CRD is known, or nothing."""
    store = Store(gvr, **options)
    store.apply([("ADDED", store.receive(msgspec.json.encode(each))) for each in objects])
    known = Known(gvr) if crd is None else Known(gvr, lambda _: declared(crd, gvr))
    return GenericLister(store, lambda: True, known=known)
