"""Go types as their JSON is read: the fields of each struct in its order, and their types.

Only the kinds that the cluster itself reads, and the ones that tests write most, are
described. Only the metadata of other built-in kinds is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Fields = Mapping[str, str]

_STRINGS = "[]string"
_MAP = "map[string]string"
_ASKED = {
    "resourceAttributes": "v1.ResourceAttributes",
    "nonResourceAttributes": "v1.NonResourceAttributes",
}
STRUCTS: Final[Mapping[str, Fields]] = {
    # By kind; of two groups that have a kind of the same name, one is named with it.
    "ObjectMeta": {
        "name": "string", "generateName": "string", "namespace": "string", "selfLink": "string",
        "uid": "types.UID", "resourceVersion": "string", "generation": "int64",
        "creationTimestamp": "time", "deletionTimestamp": "time",
        "deletionGracePeriodSeconds": "int64", "labels": _MAP, "annotations": _MAP,
        "ownerReferences": "[]v1.OwnerReference", "finalizers": _STRINGS,
        "managedFields": "[]v1.ManagedFieldsEntry",
    },
    "OwnerReference": {
        "apiVersion": "string", "kind": "string", "name": "string", "uid": "types.UID",
        "controller": "bool", "blockOwnerDeletion": "bool",
    },
    "ManagedFieldsEntry": {
        "manager": "string", "operation": "v1.ManagedFieldsOperationType",
        "apiVersion": "string", "time": "time", "fieldsType": "string", "fieldsV1": "any",
        "subresource": "string",
    },
    "CustomResourceDefinition": {
        "spec": "v1.CustomResourceDefinitionSpec", "status": "v1.CustomResourceDefinitionStatus",
    },
    "CustomResourceDefinitionSpec": {
        "group": "string", "names": "v1.CustomResourceDefinitionNames",
        "scope": "v1.ResourceScope",
        "versions": "[]v1.CustomResourceDefinitionVersion",
        "conversion": "v1.CustomResourceConversion", "preserveUnknownFields": "bool",
    },
    "CustomResourceDefinitionNames": {
        "plural": "string", "singular": "string", "shortNames": _STRINGS, "kind": "string",
        "listKind": "string", "categories": _STRINGS,
    },
    "CustomResourceDefinitionVersion": {
        "name": "string", "served": "bool", "storage": "bool", "deprecated": "bool",
        "deprecationWarning": "string", "schema": "v1.CustomResourceValidation",
        "subresources": "v1.CustomResourceSubresources",
        "additionalPrinterColumns": "[]v1.CustomResourceColumnDefinition",
        "selectableFields": "[]v1.SelectableField",
    },
    "CustomResourceConversion": {"strategy": "v1.ConversionStrategyType", "webhook": "any"},
    "CustomResourceValidation": {"openAPIV3Schema": "v1.JSONSchemaProps"},
    "CustomResourceSubresources": {
        "status": "v1.CustomResourceSubresourceStatus",
        "scale": "v1.CustomResourceSubresourceScale",
    },
    "CustomResourceSubresourceStatus": {},
    "CustomResourceSubresourceScale": {
        "specReplicasPath": "string", "statusReplicasPath": "string",
        "labelSelectorPath": "string",
    },
    "CustomResourceColumnDefinition": {
        "name": "string", "type": "string", "format": "string", "description": "string",
        "priority": "int32", "jsonPath": "string",
    },
    "SelectableField": {"jsonPath": "string"},
    "CustomResourceDefinitionStatus": {
        "conditions": "[]v1.CustomResourceDefinitionCondition",
        "acceptedNames": "v1.CustomResourceDefinitionNames", "storedVersions": _STRINGS,
        "observedGeneration": "int64",
    },
    "CustomResourceDefinitionCondition": {
        "type": "string", "status": "string", "lastTransitionTime": "string", "reason": "string",
        "message": "string", "observedGeneration": "int64",
    },
    "JSONSchemaProps": {
        "id": "string", "$schema": "string", "$ref": "string", "description": "string",
        "type": "string", "format": "string", "title": "string", "default": "any",
        "maximum": "float64", "exclusiveMaximum": "bool", "minimum": "float64",
        "exclusiveMinimum": "bool", "maxLength": "int64", "minLength": "int64",
        "pattern": "string", "maxItems": "int64", "minItems": "int64", "uniqueItems": "bool",
        "multipleOf": "float64", "enum": "[]any", "maxProperties": "int64",
        "minProperties": "int64", "required": _STRINGS, "items": "v1.JSONSchemaProps",
        "allOf": "[]v1.JSONSchemaProps", "oneOf": "[]v1.JSONSchemaProps",
        "anyOf": "[]v1.JSONSchemaProps", "not": "v1.JSONSchemaProps",
        "properties": "map[string]v1.JSONSchemaProps",
        "additionalProperties": "v1.JSONSchemaPropsOrBool",
        "patternProperties": "map[string]v1.JSONSchemaProps", "dependencies": "any",
        "additionalItems": "any", "definitions": "any", "externalDocs": "any", "example": "any",
        "nullable": "bool", "x-kubernetes-preserve-unknown-fields": "bool",
        "x-kubernetes-embedded-resource": "bool", "x-kubernetes-int-or-string": "bool",
        "x-kubernetes-list-map-keys": _STRINGS, "x-kubernetes-list-type": "string",
        "x-kubernetes-map-type": "string", "x-kubernetes-validations": "[]any",
    },
    "Namespace": {"spec": "v1.NamespaceSpec", "status": "v1.NamespaceStatus"},
    "NamespaceSpec": {"finalizers": "[]v1.FinalizerName"},
    "NamespaceStatus": {"phase": "v1.NamespacePhase", "conditions": "[]any"},
    "ConfigMap": {"data": _MAP, "binaryData": "map[string][]uint8", "immutable": "bool"},
    "Secret": {
        "data": "map[string][]uint8", "stringData": _MAP, "immutable": "bool",
        "type": "v1.SecretType",
    },
    "Event": {
        "involvedObject": "v1.ObjectReference", "reason": "string", "message": "string",
        "source": "v1.EventSource", "firstTimestamp": "time", "lastTimestamp": "time",
        "count": "int32", "type": "string", "eventTime": "microtime", "series": "v1.EventSeries",
        "action": "string", "related": "v1.ObjectReference", "reportingComponent": "string",
        "reportingInstance": "string",
    },
    "events.k8s.io/Event": {
        "eventTime": "microtime", "series": "v1.EventSeries", "reportingController": "string",
        "reportingInstance": "string", "action": "string", "reason": "string",
        "regarding": "v1.ObjectReference", "related": "v1.ObjectReference", "note": "string",
        "type": "string", "deprecatedSource": "v1.EventSource",
        "deprecatedFirstTimestamp": "time", "deprecatedLastTimestamp": "time",
        "deprecatedCount": "int32",
    },
    "Role": {"rules": "[]v1.PolicyRule"},
    "ClusterRole": {"rules": "[]v1.PolicyRule", "aggregationRule": "any"},
    "PolicyRule": dict.fromkeys(
        ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"), _STRINGS
    ),
    "RoleBinding": {"subjects": "[]v1.Subject", "roleRef": "v1.RoleRef"},
    "ClusterRoleBinding": {"subjects": "[]v1.Subject", "roleRef": "v1.RoleRef"},
    "Subject": dict.fromkeys(("kind", "apiGroup", "name", "namespace"), "string"),
    "RoleRef": dict.fromkeys(("apiGroup", "kind", "name"), "string"),
    "TokenReview": {"spec": "v1.TokenReviewSpec", "status": "any"},
    "TokenReviewSpec": {"token": "string", "audiences": _STRINGS},
    "SelfSubjectReview": {"status": "any"},
    "SelfSubjectRulesReview": {"spec": "v1.SelfSubjectRulesReviewSpec", "status": "any"},
    "SelfSubjectRulesReviewSpec": {"namespace": "string"},
    "SelfSubjectAccessReview": {"spec": "v1.SelfSubjectAccessReviewSpec", "status": "any"},
    "SelfSubjectAccessReviewSpec": _ASKED,
    "SubjectAccessReview": {"spec": "v1.SubjectAccessReviewSpec", "status": "any"},
    "LocalSubjectAccessReview": {"spec": "v1.SubjectAccessReviewSpec", "status": "any"},
    "SubjectAccessReviewSpec": {
        **_ASKED, "user": "string", "groups": _STRINGS, "extra": "map[string]v1.ExtraValue",
        "uid": "string",
    },
    "ResourceAttributes": {
        **dict.fromkeys(
            ("namespace", "verb", "group", "version", "resource", "subresource", "name"), "string"
        ),
        "fieldSelector": "v1.FieldSelectorAttributes",
        "labelSelector": "v1.LabelSelectorAttributes",
    },
    "NonResourceAttributes": {"path": "string", "verb": "string"},
    "FieldSelectorAttributes": {"rawSelector": "string", "requirements": "[]any"},
    "LabelSelectorAttributes": {"rawSelector": "string", "requirements": "[]any"},
    "ObjectReference": {
        "kind": "string", "namespace": "string", "name": "string", "uid": "types.UID",
        "apiVersion": "string", "resourceVersion": "string", "fieldPath": "string",
    },
    "EventSource": {"component": "string", "host": "string"},
    "EventSeries": {"count": "int32", "lastObservedTime": "microtime"},
    "ServiceAccount": {
        "secrets": "[]any", "imagePullSecrets": "[]any", "automountServiceAccountToken": "bool",
    },
}  # fmt: skip
SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,), "bool": (bool,), "int32": (int,), "int64": (int,), "float64": (int, float),
    **dict.fromkeys(
        (
            "types.UID", "v1.ManagedFieldsOperationType", "v1.ResourceScope", "v1.FinalizerName",
            "v1.NamespacePhase", "v1.SecretType", "v1.ConversionStrategyType",
        ),
        (str,),
    ),
}  # fmt: skip
"""What a value of JSON must be for a type other than a struct, list or map."""
