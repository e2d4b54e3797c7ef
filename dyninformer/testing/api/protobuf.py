"""Protobuf request bodies of the few kinds that kubectl sends so.

kubectl's own generators (``create namespace``, ``create configmap``, ``create role``,
``auth can-i``) and typed Go clients speak Kubernetes' protobuf, with JSON accepted in
answers. The numbers below are those of the published ``generated.proto`` files.
Other kinds are refused with 415, and so are other clients' protobuf answers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from dyninformer.testing.status import bad_request

Object = dict[str, Any]
Fields = dict[int, tuple[str, str]]

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"

# A field is (name, form). Forms: str, int, int? (zero is kept), bool, time, microtime, json,
# a message of _MESSAGES; with [] repeated; {str} and {bytes} are maps from strings.
_MESSAGES: dict[str, Fields] = {
    "Unknown": {1: ("typeMeta", "TypeMeta"), 2: ("raw", "bytes"), 3: ("contentEncoding", "str")},
    "TypeMeta": {1: ("apiVersion", "str"), 2: ("kind", "str")},
    "ObjectMeta": {
        1: ("name", "str"), 2: ("generateName", "str"), 3: ("namespace", "str"), 5: ("uid", "str"),
        6: ("resourceVersion", "str"), 7: ("generation", "int"), 8: ("creationTimestamp", "time"),
        9: ("deletionTimestamp", "time"), 10: ("deletionGracePeriodSeconds", "int?"),
        11: ("labels", "{str}"), 12: ("annotations", "{str}"),
        13: ("ownerReferences", "OwnerReference[]"), 14: ("finalizers", "str[]"),
        17: ("managedFields", "ManagedFieldsEntry[]"),
    },
    "OwnerReference": {
        1: ("kind", "str"), 3: ("name", "str"), 4: ("uid", "str"), 5: ("apiVersion", "str"),
        6: ("controller", "bool"), 7: ("blockOwnerDeletion", "bool"),
    },
    "ManagedFieldsEntry": {
        1: ("manager", "str"), 2: ("operation", "str"), 3: ("apiVersion", "str"),
        4: ("time", "time"), 6: ("fieldsType", "str"), 7: ("fieldsV1", "FieldsV1"),
        8: ("subresource", "str"),
    },
    "FieldsV1": {1: ("Raw", "json")},
    "ObjectReference": {
        1: ("kind", "str"), 2: ("namespace", "str"), 3: ("name", "str"), 4: ("uid", "str"),
        5: ("apiVersion", "str"), 6: ("resourceVersion", "str"), 7: ("fieldPath", "str"),
    },
    "LocalObjectReference": {1: ("name", "str")},
    "NamespaceSpec": {1: ("finalizers", "str[]")},
    "NamespaceStatus": {1: ("phase", "str")},
    "PolicyRule": {
        1: ("verbs", "str[]"), 2: ("apiGroups", "str[]"), 3: ("resources", "str[]"),
        4: ("resourceNames", "str[]"), 5: ("nonResourceURLs", "str[]"),
    },
    "Subject": {
        1: ("kind", "str"), 2: ("apiGroup", "str"), 3: ("name", "str"), 4: ("namespace", "str"),
    },
    "RoleRef": {1: ("apiGroup", "str"), 2: ("kind", "str"), 3: ("name", "str")},
    "AccessSpec": {
        1: ("resourceAttributes", "ResourceAttributes"),
        2: ("nonResourceAttributes", "NonResourceAttributes"),
    },
    "ResourceAttributes": {
        1: ("namespace", "str"), 2: ("verb", "str"), 3: ("group", "str"), 4: ("version", "str"),
        5: ("resource", "str"), 6: ("subresource", "str"), 7: ("name", "str"),
    },
    "NonResourceAttributes": {1: ("path", "str"), 2: ("verb", "str")},
    "RulesSpec": {1: ("namespace", "str")},
    "LeaseSpec": {
        1: ("holderIdentity", "str"), 2: ("leaseDurationSeconds", "int?"),
        3: ("acquireTime", "microtime"), 4: ("renewTime", "microtime"),
        5: ("leaseTransitions", "int?"), 6: ("strategy", "str"), 7: ("preferredHolder", "str"),
    },
    "EventSource": {1: ("component", "str"), 2: ("host", "str")},
    "EventSeries": {1: ("count", "int"), 2: ("lastObservedTime", "microtime")},
    "Preconditions": {1: ("uid", "str"), 2: ("resourceVersion", "str")},
}  # fmt: skip

_META: Fields = {1: ("metadata", "ObjectMeta")}
_ROLE: Fields = {**_META, 2: ("rules", "PolicyRule[]")}
_BINDING: Fields = {**_META, 2: ("subjects", "Subject[]"), 3: ("roleRef", "RoleRef")}
_RBAC = "rbac.authorization.k8s.io/v1"
_KINDS: dict[tuple[str, str], Fields] = {
    ("v1", "Namespace"): {**_META, 2: ("spec", "NamespaceSpec"), 3: ("status", "NamespaceStatus")},
    ("v1", "ConfigMap"): {
        **_META, 2: ("data", "{str}"), 3: ("binaryData", "{bytes}"), 4: ("immutable", "bool"),
    },
    ("v1", "Secret"): {
        **_META, 2: ("data", "{bytes}"), 3: ("type", "str"), 4: ("stringData", "{str}"),
        5: ("immutable", "bool"),
    },
    ("v1", "ServiceAccount"): {
        **_META, 2: ("secrets", "ObjectReference[]"),
        3: ("imagePullSecrets", "LocalObjectReference[]"),
        4: ("automountServiceAccountToken", "bool"),
    },
    ("v1", "Event"): {
        **_META, 2: ("involvedObject", "ObjectReference"), 3: ("reason", "str"),
        4: ("message", "str"), 5: ("source", "EventSource"), 6: ("firstTimestamp", "time"),
        7: ("lastTimestamp", "time"), 8: ("count", "int"), 9: ("type", "str"),
        10: ("eventTime", "microtime"), 11: ("series", "EventSeries"), 12: ("action", "str"),
        13: ("related", "ObjectReference"), 14: ("reportingComponent", "str"),
        15: ("reportingInstance", "str"),
    },
    ("v1", "DeleteOptions"): {
        1: ("gracePeriodSeconds", "int?"), 2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "bool"), 4: ("propagationPolicy", "str"), 5: ("dryRun", "str[]"),
    },
    ("coordination.k8s.io/v1", "Lease"): {**_META, 2: ("spec", "LeaseSpec")},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {**_META, 2: ("spec", "AccessSpec")},
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): {**_META, 2: ("spec", "RulesSpec")},
    ("authentication.k8s.io/v1", "SelfSubjectReview"): _META,
    (_RBAC, "Role"): _ROLE,
    (_RBAC, "ClusterRole"): _ROLE,
    (_RBAC, "RoleBinding"): _BINDING,
    (_RBAC, "ClusterRoleBinding"): _BINDING,
}  # fmt: skip


def read_protobuf(body: bytes) -> Object | None:
    """The object in a body, as its JSON would be read; None if its kind is not known here."""
    if not body.startswith(_MAGIC):
        raise bad_request("the body is not Kubernetes protobuf: it does not begin with k8s and NUL")
    try:
        envelope = _message(body[len(_MAGIC) :], _MESSAGES["Unknown"])
        meta = envelope.get("typeMeta") or {}
        api_version, kind = meta.get("apiVersion", ""), meta.get("kind", "")
        fields = _KINDS.get(("v1" if kind == "DeleteOptions" else api_version, kind))
        if fields is None:
            return None
        raw = base64.b64decode(envelope.get("raw", ""))
        return {"apiVersion": api_version, "kind": kind, **_message(raw, fields)}
    except (IndexError, ValueError) as broken:
        raise bad_request(f"the protobuf body cannot be read: {broken}") from broken


def _message(data: bytes, fields: Fields) -> Object:
    found: Object = {}
    for number, value in _wire(data):
        field = fields.get(number)
        if field is None:
            continue
        name, form = field
        if form.endswith("[]"):
            found.setdefault(name, []).append(_value(value, form[:-2]))
        elif form.startswith("{"):
            key = _message(_bytes(value), {1: ("key", "str"), 2: ("value", form[1:-1])})
            found.setdefault(name, {})[key.get("key", "")] = key.get("value", "")
        else:
            read = _value(value, form)
            # Go writes fields that are no pointers even when they are empty; JSON leaves them out.
            if read not in ("", {}, None) and (form != "int" or read):
                found[name] = read
    return found


def _value(value: int | bytes, form: str) -> Any:
    if form in ("int", "int?"):
        number = _int(value)
        return number - (1 << 64) if number >= 1 << 63 else number
    if form == "bool":
        return bool(_int(value))
    data = _bytes(value)
    if form == "str":
        return data.decode()
    if form == "bytes":
        return base64.b64encode(data).decode()
    if form == "json":
        return json.loads(data)
    if form in ("time", "microtime"):
        return _time(data, micro=form == "microtime")
    read = _message(data, _MESSAGES[form])
    return read.get("Raw") if form == "FieldsV1" else read


def _time(data: bytes, *, micro: bool) -> str | None:
    parts = _message(data, {1: ("seconds", "int"), 2: ("nanos", "int")})
    if not parts:
        return None
    moment = datetime.fromtimestamp(parts.get("seconds", 0), UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{parts.get('nanos', 0) // 1000:06d}Z" if micro else f"{text}Z"


def _wire(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind} at byte {at}")
        if at + size > len(data):
            raise ValueError(f"it ends inside field {number}")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError(f"a number longer than 64 bits at byte {at}")


def _int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("bytes where a number belongs")  # noqa: TRY004  wire data, no argument
    return value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes belong")  # noqa: TRY004  wire data, no argument
    return value
