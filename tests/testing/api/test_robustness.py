"""Whatever is asked, there is an answer, and it is none of this server's mistakes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dyninformer.testing.api.router import Api
from dyninformer.testing.clock import ManualClock
from dyninformer.testing.cluster.cluster import Cluster
from dyninformer.testing.messages import Request, Response
from tests.testing.api.conftest import CRDS
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
    {"apiVersion": st.sampled_from(["ex.io/v1", "v1", "apps/v1"]),
     "kind": st.sampled_from(["Widget", "ConfigMap", "Deployment", "Scale", "DeleteOptions"]),
     "metadata": _JSON | st.fixed_dictionaries({"name": st.sampled_from(["a", "w"])})},
    optional={"spec": _JSON, "status": _JSON, "data": _JSON},
)  # fmt: skip
_BODIES = (
    st.just(b"")
    | st.binary(max_size=20)
    | st.binary(max_size=20).map(lambda tail: b"k8s\x00" + tail)
    | (_JSON | _OBJECTS).map(lambda value: json.dumps(value).encode())
)


def _api() -> Api:
    api = Api(Cluster(ManualClock(), seed=1))
    for path, obj in (
        (CRDS, custom_resource("ex.io", "widgets", "Widget", scale=True)),
        ("/api/v1/namespaces", {"metadata": {"name": "ns1"}}),
        ("/apis/ex.io/v1/namespaces/ns1/widgets",
         {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}}),
        ("/api/v1/namespaces/ns1/configmaps", {"metadata": {"name": "w"}}),
    ):  # fmt: skip
        answer = api.handle(Request("POST", path, body=json.dumps(obj).encode()))
        assert isinstance(answer, Response)
        assert answer.status == 201, body_text(answer)
    return api


_API = _api()


def _check(request: Request) -> None:
    answer = _API.handle(request)
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
    _QUERY, _HEADERS, _BODIES,
)  # fmt: skip
def test_any_path_is_answered(
    method: str, segments: list[str], query: dict[str, str], headers: dict[str, str], body: bytes
) -> None:
    """Any method on any path, with any query and body, is answered and is no 500 of ours."""
    _check(Request(method, "/" + "/".join(segments), tuple(query.items()), headers, body))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    st.sampled_from(
        [f"{root}/namespaces/ns1/{name}"
         for root, name in (("/apis/ex.io/v1", "widgets"), ("/api/v1", "configmaps"))]
    ),
    st.sampled_from(["", "/w", "/w/status", "/w/scale"]),
    _QUERY, _HEADERS, _BODIES,
)  # fmt: skip
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
