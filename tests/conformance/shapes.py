"""The custom resources that the conformance tests are about."""

from __future__ import annotations

from typing import Any

from dyninformer.types import Object

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

PASSING = "conformance.test"
"""What the groups end in that one test alone has to do with."""

_TEXT = {"type": "string"}
_INTEGER = {"type": "integer", "format": "int64"}


def crd(
    group: str,
    plural: str,
    kind: str,
    schema: Object,
    *,
    scope: str = "Namespaced",
    **version: object,
) -> Object:
    """A CRD with one version, v1."""
    served = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **version,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [served],
        },
    }


def of_object(**properties: Object) -> Object:
    """The schema of an object with these properties."""
    return {"type": "object", "properties": properties}


ANYTHING: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

WIDGET_SCHEMA = of_object(
    spec=of_object(
        color={**_TEXT, "enum": ["red", "green", "blue"]},
        size={**_INTEGER, "minimum": 0, "maximum": 100},
        on={"type": "boolean"},
        replicas={**_INTEGER, "default": 1},
        code={**_TEXT, "pattern": "^[a-z]+$", "maxLength": 8},
        note=_TEXT,
        parts={
            "type": "array",
            "maxItems": 5,
            "items": {**of_object(name=_TEXT, value=_INTEGER), "required": ["name"]},
        },
    ),
    status=of_object(replicas=_INTEGER, phase=_TEXT, selector=_TEXT),
)

WIDGETS = crd(
    "ex.io",
    "widgets",
    "Widget",
    WIDGET_SCHEMA,
    subresources={
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    },
    additionalPrinterColumns=[
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How big"},
        {"name": "Note", "type": "string", "jsonPath": ".spec.note", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
    selectableFields=[
        {"jsonPath": ".spec.color"},
        {"jsonPath": ".spec.size"},
        {"jsonPath": ".spec.on"},
    ],
)
WIDGETS["spec"]["names"] |= {"shortNames": ["wd"], "categories": ["all"]}

LOOSE = crd("loose.io", "blobs", "Blob", ANYTHING)
"""Everything is kept, and status is a field like any other."""

GLOBES = crd("ex.io", "globes", "Globe", ANYTHING, scope="Cluster")


def widget(name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """A Widget."""
    metadata: Object = {"name": name}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": metadata, "spec": spec}
