"""What a path, a method and a query ask for."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.testing.messages import Request, RequestInfo, read_request_info

_W = {"is_resource": True, "group": "ex.io", "version": "v1", "resource": "widgets"}
_NS1: dict[str, Any] = {**_W, "namespace": "ns1"}


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/apis/ex.io/v1/widgets", {**_W, "verb": "list"}),
        ("GET", "/apis/ex.io/v1/widgets/", {**_W, "verb": "list"}),
        ("HEAD", "/apis/ex.io/v1/widgets/a", {**_W, "verb": "get", "name": "a"}),
        ("GET", "/apis/ex.io/v1/namespaces//widgets", {**_W, "verb": "list"}),
        ("GET", "/apis/ex.io/v1/namespaces/ns1/widgets", {**_NS1, "verb": "list"}),
        ("POST", "/apis/ex.io/v1/namespaces/ns1/widgets", {**_NS1, "verb": "create"}),
        ("DELETE", "/apis/ex.io/v1/namespaces/ns1/widgets", {**_NS1, "verb": "deletecollection"}),
        ("GET", "/apis/ex.io/v1/watch/widgets", {**_W, "verb": "watch"}),
        ("GET", "/apis/ex.io/v1/watch/namespaces/ns1/widgets", {**_NS1, "verb": "watch"}),
        (
            "PATCH",
            "/apis/ex.io/v1/namespaces/ns1/widgets/a/status",
            {**_NS1, "verb": "patch", "name": "a", "subresource": "status"},
        ),
        ("OPTIONS", "/apis/ex.io/v1/widgets", {**_W, "verb": ""}),
    ],
)
def test_a_resource_path_is_taken_apart(method: str, path: str, expected: dict[str, Any]) -> None:
    """A resource's path is taken apart."""
    assert read_request_info(Request(method, path)) == RequestInfo(path, **expected)


@pytest.mark.parametrize(
    ("path", "name", "subresource"),
    [
        ("/api/v1/namespaces", "", ""),
        ("/api/v1/namespaces/a", "a", ""),
        ("/api/v1/namespaces/a/status", "a", "status"),
        ("/api/v1/namespaces/a/finalize", "a", "finalize"),
    ],
)
def test_namespaces_are_resources_themselves(path: str, name: str, subresource: str) -> None:
    """Namespaces are resources themselves, with subresources of their own."""
    info = read_request_info(Request("GET", path))

    assert (info.resource, info.name, info.subresource) == ("namespaces", name, subresource)


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/apis", "/apis/ex.io", "/apis/ex.io/v1", "/version", "/x/y/z"]
)
def test_other_paths_are_no_resources(path: str) -> None:
    """Other paths are no resources, and their verb is the method."""
    assert read_request_info(Request("GET", path)) == RequestInfo(path, "get")


@pytest.mark.parametrize("value", ["1", "", "no", "maybe", "TRUE"])
def test_any_watch_but_0_and_false_is_a_watch(value: str) -> None:
    """Any value of ``watch`` but 0 and false asks for a watch."""
    for off in ("0", "false", "FALSE"):
        listing = Request("GET", "/apis/ex.io/v1/widgets", (("watch", off),))
        assert read_request_info(listing).verb == "list"

    watching = Request("GET", "/apis/ex.io/v1/widgets", (("watch", value),))
    assert read_request_info(watching).verb == "watch"
    one = Request("GET", "/apis/ex.io/v1/widgets/a", (("watch", value),))
    assert read_request_info(one).verb == "get"


@pytest.mark.parametrize(
    ("selector", "name"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name==a,spec.x=1", "a"),
        ("metadata.name!=a", ""),
        ("spec.name=a", ""),
    ],
)
def test_a_list_of_one_name_is_authorised_as_that_name(selector: str, name: str) -> None:
    """A list or watch that selects one name is judged as that name."""
    request = Request("GET", "/apis/ex.io/v1/widgets", (("fieldSelector", selector),))
    info = read_request_info(request)

    assert (info.name, info.authorised_name) == ("", name)
