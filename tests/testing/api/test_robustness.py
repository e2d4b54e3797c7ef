"""Whatever is asked, there is an answer, and it is none of this server's mistakes."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dyninformer.testing.api.router import Api
from dyninformer.testing.clock import ManualClock
from dyninformer.testing.cluster.cluster import Cluster
from dyninformer.testing.messages import Request, Response
from tests.testing.api.conftest import CRDS, open_to_all
from tests.testing.api.golden import body_text, custom_resource

_SEGMENTS = [
    "", "api", "apis", "v1", "v9", "ex.io", "apps", "watch", "namespaces", "ns1", "default",
    "widgets", "configmaps", "deployments", "customresourcedefinitions", "apiextensions.k8s.io",
    "a", "w", "status", "scale", "finalize", "openapi", "v2", "v3", "healthz", "version",
    "authorization.k8s.io", "selfsubjectaccessreviews", "..", "%", "\x00", "é",
]  # fmt: skip
_VALUES = st.sampled_from(
    ["", "0", "1", "-1", "true", "false", "abc", "99999999999999999999", "All", "NotOlderThan",
     "Exact", "a=b", "metadata.name=w", "a in (b", "Strict", "Foreground", "Object", "e30"]
) | st.text(max_size=8)  # fmt: skip
_QUERY = st.dictionaries(
    st.sampled_from(
        ["watch", "limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector",
         "fieldSelector", "sendInitialEvents", "allowWatchBookmarks", "timeoutSeconds", "pretty",
         "dryRun", "fieldManager", "force", "fieldValidation", "includeObject",
         "propagationPolicy", "verbose", "exclude", "hash", "shardSelector", "gracePeriodSeconds"]
    ),
    _VALUES,
    max_size=3,
)  # fmt: skip
_HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "accept": st.sampled_from(
            ["*/*", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io", "text/html",
             "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", ";;,=", "a/b;q=x",
             "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
             "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"]
        ),
        "content-type": st.sampled_from(
            ["application/json", "application/yaml", "application/merge-patch+json",
             "application/json-patch+json", "application/apply-patch+yaml", "text/plain",
             "application/strategic-merge-patch+json", "application/vnd.kubernetes.protobuf"]
        ),
        "accept-encoding": st.just("gzip"),
        "if-none-match": st.just('"x"'),
        "user-agent": st.sampled_from(["curl/8", "kubectl/v1.36", ""]),
    },
)  # fmt: skip
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(
            ["kind", "apiVersion", "metadata", "name", "namespace", "spec", "status", "labels",
             "finalizers", "data", "op", "path", "value", "from", "$patch", "rules", "versions"]
        ), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
_OBJECTS = st.fixed_dictionaries(
    {
        "apiVersion": st.sampled_from(["ex.io/v1", "v1", "apps/v1"]),
        "kind": st.sampled_from(["Widget", "ConfigMap", "Deployment", "Scale", "DeleteOptions"]),
        "metadata": _JSON | st.fixed_dictionaries({"name": st.sampled_from(["a", "w"])}),
    },
    optional={"spec": _JSON, "status": _JSON, "data": _JSON},
)
_BODIES = (
    st.just(b"")
    | st.binary(max_size=20)
    | st.binary(max_size=20).map(lambda tail: b"k8s\x00" + tail)
    | (_JSON | _OBJECTS).map(lambda value: json.dumps(value).encode())
)


def _api() -> Api:
    api = Api(Cluster(ManualClock(), seed=1), open_to_all())
    for path, obj in (
        (CRDS, custom_resource("ex.io", "widgets", "Widget", scale=True)),
        ("/api/v1/namespaces", {"metadata": {"name": "ns1"}}),
        (
            "/apis/ex.io/v1/namespaces/ns1/widgets",
            {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}},
        ),
        ("/api/v1/namespaces/ns1/configmaps", {"metadata": {"name": "w"}}),
    ):
        answer = api.handle(Request("POST", path, body=json.dumps(obj).encode()))
        assert isinstance(answer, Response)
        assert answer.status == 201, body_text(answer)
    return api


_API = _api()

_GIZMOS = "/apis/fz.io/v1/namespaces/ns1/gizmos"
_RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/ns1"
_REVIEWS = "/apis/authorization.k8s.io/v1"
_GIZMO = {
    "apiVersion": "fz.io/v1", "kind": "Gizmo",
    "metadata": {
        "name": "o", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x.y/z"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
        "managedFields": [{
            "manager": "q", "operation": "Apply", "apiVersion": "fz.io/v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:a": {}, "f:l": {'k:{"name":"x"}': {".": {}, "f:v": {}}}}},
        }],
    },
    "spec": {"a": 2, "s": "a", "l": [{"name": "x", "v": 1.5}], "set": ["t"], "any": [{"x": None}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}  # fmt: skip
_GIZMO_SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "format": "int32", "minimum": 0, "default": 1},
        "s": {"type": "string", "pattern": "^a+$", "maxLength": 5, "enum": ["a", "aa"]},
        "l": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "v": {"type": "number"}},
            },
        },
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
    },
}
_GIZMO_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "gizmos.fz.io"},
    "spec": {
        "group": "fz.io", "scope": "Namespaced", "conversion": {"strategy": "None"},
        "names": {"plural": "gizmos", "kind": "Gizmo", "shortNames": ["gz"], "categories": ["all"]},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": _GIZMO_SPEC,
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            }}},
            "subresources": {
                "status": {},
                "scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.r"},
            },
            "additionalPrinterColumns": [{"name": "A", "type": "integer", "jsonPath": ".spec.a"}],
            "selectableFields": [{"jsonPath": ".spec.s"}],
        }],
    },
}  # fmt: skip
_EVENT = {
    "metadata": {"name": "o"},
    "involvedObject": {"kind": "Pod", "namespace": "ns1"},
    "source": {"component": "c"},
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "count": 1,
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "series": {"count": 2},
    "message": "m",
}
_ASKED = {"verb": "get", "resource": "pods", "group": "", "namespace": "ns1"}
_ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "o"}
_VALID: list[tuple[str, dict[str, Any]]] = [
    (CRDS, _GIZMO_CRD),
    (_GIZMOS, _GIZMO),
    ("/api/v1/namespaces/ns1/pods", {
        "metadata": {"name": "o"},
        "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1}]}]},
        "status": {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "X"}}}]},
    }),
    ("/api/v1/namespaces/ns1/secrets", {
        "metadata": {"name": "o"}, "data": {"a": "YQ=="}, "stringData": {"b": "c"},
    }),
    ("/api/v1/namespaces/ns1/events", _EVENT),
    ("/apis/events.k8s.io/v1/namespaces/ns1/events", {
        "metadata": {"name": "p"}, "regarding": {"kind": "Pod"}, "deprecatedSource": {},
    }),
    (f"{_RBAC}/roles", {
        "metadata": {"name": "o"},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
    }),
    (f"{_RBAC}/rolebindings", {
        "metadata": {"name": "o"}, "roleRef": _ROLE_REF,
        "subjects": [{"kind": "User", "name": "u"}],
    }),
    (f"{_REVIEWS}/subjectaccessreviews", {
        "spec": {"user": "u", "groups": ["g"], "extra": {"a": ["b"]}, "resourceAttributes": _ASKED},
    }),
    (f"{_REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "ns1"}}),
    ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x", "audiences": ["a"]}}),
]  # fmt: skip
"""Requests that are in order, each with an object that has what its kind can have."""
_ODD: list[Any] = [
    None, True, 0, -1, 1.5, 1e30, 2**70, "", "x", "\x00", "é", "0001-01-01T00:00:00+23:59", [], {},
    [None], [[]], [{}], {"": None}, {"a": None}, "a" * 300, ".a[", ".a[?(@.b==", "$.a", "(",
    {"k:{": {}}, {"k:5": {}}, {"v:{": {}}, {".": {}}, {"$patch": "x"}, {"$patch": None},
]  # fmt: skip
_PATCHES = [
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/json-patch+json",
]
_TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


def _places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield here
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _places(value[key], (*here, key))


def _with(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    changed = copy.copy(value)
    changed[place[0]] = _with(value[place[0]], place[1:], new)
    return changed


@st.composite
def _mutated(draw: st.DrawFn) -> tuple[str, str, Any]:
    """A path, the name of its object, and that object with one to three odd values in it."""
    path, obj = draw(st.sampled_from(_VALID))
    name = str(obj.get("metadata", {}).get("name", "o"))
    changed: Any = obj
    for _ in range(draw(st.sampled_from([1, 1, 2, 3]))):
        place = draw(st.sampled_from(list(_places(changed))))
        changed = _with(changed, place, draw(st.sampled_from(_ODD)))
    return path, name, changed


def _check(request: Request, api: Api | None = None) -> None:
    answer = (api or _API).handle(request)
    if not isinstance(answer, Response):
        for line in answer.take():
            assert line.endswith(b"\n")
        answer.close()
        return
    assert 200 <= answer.status < 600
    text = body_text(answer) if "Content-Encoding" not in dict(answer.headers) else ""
    assert "Internal error occurred: " not in text or "does not exist" in text, text


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "X"]),
    st.lists(st.sampled_from(_SEGMENTS), max_size=7),
    _QUERY,
    _HEADERS,
    _BODIES,
)
def test_any_path_is_answered(
    method: str, segments: list[str], query: dict[str, str], headers: dict[str, str], body: bytes
) -> None:
    """Any method on any path, with any query and body, is answered and is no 500 of ours."""
    _check(Request(method, "/" + "/".join(segments), tuple(query.items()), headers, body))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    st.sampled_from(
        [
            f"{root}/namespaces/ns1/{name}"
            for root, name in (("/apis/ex.io/v1", "widgets"), ("/api/v1", "configmaps"))
        ]
    ),
    st.sampled_from(["", "/w", "/w/status", "/w/scale"]),
    _QUERY,
    _HEADERS,
    _BODIES,
)
def test_any_request_for_a_resource_is_answered(
    method: str,
    path: str,
    rest: str,
    query: dict[str, str],
    headers: dict[str, str],
    body: bytes,
) -> None:
    """Any query, header and body on a resource that is there is answered, and is no 500 of ours."""
    _check(Request(method, path + rest, tuple(query.items()), headers, body))


def _valid_api() -> Api:
    api = _api()
    for path, obj in _VALID:
        answer = api.handle(Request("POST", path, body=json.dumps(obj).encode()))
        assert isinstance(answer, Response)
        assert answer.status == 201, body_text(answer)
    return api


_FULL = _valid_api()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    _mutated(),
    st.sampled_from(["PUT", *_PATCHES]),
    st.sampled_from(["", "/status", "/scale"]),
    st.sampled_from([(), (("dryRun", "All"),), (("fieldValidation", "Strict"),)]),
)
def test_odd_values_in_a_valid_object_are_refused_or_stored(
    mutated: tuple[str, str, Any], how: str, rest: str, query: tuple[tuple[str, str], ...]
) -> None:
    """Whichever way they are written; what was stored can be read and told as a table."""
    path, name, changed = mutated
    method = "PUT" if how == "PUT" else "PATCH"
    patches = (
        [{"op": "add", "path": f"/{key}", "value": changed[key]} for key in changed]
        if how == _PATCHES[-1] and isinstance(changed, dict)
        else changed
    )
    body = json.dumps(patches).encode()
    headers = {} if how == "PUT" else {"content-type": how}
    options = (*query, ("fieldManager", "m"), *((("force", "true"),) if "apply" in how else ()))
    _check(Request(method, f"{path}/{name}{rest}", options, headers, body), _FULL)
    _check(Request("GET", path, (), _TABLE), _FULL)


@pytest.mark.parametrize(("path", "obj"), _VALID, ids=[path for path, _ in _VALID])
def test_an_odd_value_anywhere_in_a_new_object_is_refused_or_stored(
    path: str, obj: dict[str, Any]
) -> None:
    """Each in each place; a CRD with it is served, described, and takes objects, or is refused."""
    cluster = Cluster(ManualClock(), seed=1)
    api = Api(cluster, open_to_all())
    _check(Request("POST", "/api/v1/namespaces", body=b'{"metadata":{"name":"ns1"}}'), api)
    if path == _GIZMOS:
        _check(Request("POST", CRDS, body=json.dumps(_GIZMO_CRD).encode()), api)
    empty = cluster.snapshot()
    for place in _places(obj):
        for odd in _ODD:
            body = json.dumps(_with(obj, place, odd)).encode()
            _check(Request("POST", path, body=body), api)
            if cluster.log.revision == empty.image.revision:
                continue
            _check(Request("GET", path, (), _TABLE), api)
            if path == CRDS:
                _check(Request("POST", _GIZMOS, body=json.dumps(_GIZMO).encode()), api)
                for shown in ("/openapi/v2", "/openapi/v3/apis/fz.io/v1", "/apis/fz.io/v1"):
                    _check(Request("GET", shown), api)
                _check(Request("GET", "/apis/fz.io/v1/gizmos", (), _TABLE), api)
            cluster.restore(empty)
