"""What the server says it serves, the old way and the aggregated one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.conformance.shapes import ANYTHING, CRDS, crd
from tests.conformance.wire import Wire, until

AGGREGATED = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"
VERBS = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]


def _aggregated(api: Wire, group: str, path: str = "/apis") -> dict[str, Any]:
    found = api.get(path, accept=f"{AGGREGATED},application/json").json
    return next((item for item in found["items"] if item["metadata"].get("name", "") == group), {})


def test_a_group_version_lists_its_resources(api: Wire) -> None:
    """Resources and subresources, with what can be done to each."""
    found = api.get("/apis/ex.io/v1").json
    assert {key: found[key] for key in ("kind", "apiVersion", "groupVersion")} == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "ex.io/v1",
    }
    entries = {entry["name"]: entry for entry in found["resources"]}
    widgets = entries["widgets"]
    assert re.fullmatch(r"[A-Za-z0-9+/]{11}=", widgets.pop("storageVersionHash"))
    assert widgets == {
        "name": "widgets",
        "singularName": "widget",
        "namespaced": True,
        "kind": "Widget",
        "verbs": VERBS,
        "shortNames": ["wd"],
        "categories": ["all"],
    }
    assert entries["widgets/status"] == {
        "name": "widgets/status",
        "singularName": "",
        "namespaced": True,
        "kind": "Widget",
        "verbs": ["get", "patch", "update"],
    }
    assert entries["widgets/scale"] == {
        "name": "widgets/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    }
    assert entries["globes"]["namespaced"] is False


def test_a_group_lists_its_versions(api: Wire) -> None:
    """`/apis/G` is an APIGroup."""
    version = {"groupVersion": "ex.io/v1", "version": "v1"}
    assert api.get("/apis/ex.io").json == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "ex.io",
        "versions": [version],
        "preferredVersion": version,
    }


def test_all_groups_are_listed(api: Wire) -> None:
    """`/apis` holds the built-in groups and those of the CRDs."""
    found = api.get("/apis").json
    assert found["kind"] == "APIGroupList"
    names = {group["name"] for group in found["groups"]}
    assert {"apiextensions.k8s.io", "rbac.authorization.k8s.io", "ex.io", "loose.io"} <= names


def test_the_core_group_is_under_api(api: Wire) -> None:
    """`/api` names v1, which has namespaces."""
    found = api.get("/api").json
    assert (found["kind"], found["versions"]) == ("APIVersions", ["v1"])
    resources = {entry["name"]: entry for entry in api.get("/api/v1").json["resources"]}
    assert resources["namespaces"]["kind"] == "Namespace"
    assert resources["namespaces"]["shortNames"] == ["ns"]
    assert resources["configmaps"]["namespaced"] is True


def test_aggregated_discovery_tells_everything_at_once(api: Wire) -> None:
    """One item per group, with resources, scopes, short names and subresources."""
    group = _aggregated(api, "ex.io")
    (version,) = group["versions"]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    widgets = next(r for r in version["resources"] if r["resource"] == "widgets")
    kind = {"group": "ex.io", "version": "v1", "kind": "Widget"}
    doable = ["get", "patch", "update"]
    assert widgets == {
        "resource": "widgets",
        "responseKind": kind,
        "scope": "Namespaced",
        "singularResource": "widget",
        "verbs": VERBS,
        "shortNames": ["wd"],
        "categories": ["all"],
        "subresources": [
            {"subresource": "status", "responseKind": kind, "verbs": doable},
            {
                "subresource": "scale",
                "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                "verbs": doable,
            },
        ],
    }
    globes = next(r for r in version["resources"] if r["resource"] == "globes")
    assert globes["scope"] == "Cluster"


def test_aggregated_core_kinds_have_no_group(api: Wire) -> None:
    """The core group has no name, and its kinds neither group nor version."""
    core = _aggregated(api, "", "/api")
    namespaces = next(r for r in core["versions"][0]["resources"] if r["resource"] == "namespaces")
    assert namespaces["responseKind"] == {"group": "", "version": "", "kind": "Namespace"}


def test_aggregated_discovery_says_what_it_is(api: Wire) -> None:
    """The content type carries the parameters in its own order, and the answer an Etag."""
    answer = api.get("/apis", accept=f"{AGGREGATED},application/json")
    assert answer.headers["Content-Type"] == (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    )
    assert answer.headers["Cache-Control"] == "public"
    assert answer.headers["Vary"] == "Accept"
    assert re.fullmatch(r'"[0-9A-F]{128}"', answer.headers["Etag"])


def test_aggregated_discovery_need_not_be_sent_twice(api: Wire) -> None:
    """If-None-Match with the Etag, quotes included, is a 304 without a body."""
    etag = api.get("/apis", accept=AGGREGATED).headers["Etag"]
    known = api.get("/apis", accept=AGGREGATED, headers={"If-None-Match": etag})
    assert (known.status, known.body, known.headers["Etag"]) == (304, b"", etag)
    unquoted = api.get("/apis", accept=AGGREGATED, headers={"If-None-Match": etag.strip('"')})
    assert unquoted.status == 200


def test_the_beta_of_aggregated_discovery_is_gone(api: Wire) -> None:
    """v2beta1 alone is a 406; with plain JSON beside it, the old list."""
    beta = AGGREGATED.replace("v=v2;", "v=v2beta1;")
    assert api.get("/apis", accept=beta).status == 406
    assert api.get("/apis", accept=f"{beta},application/json").json["kind"] == "APIGroupList"


def test_discovery_below_a_group_is_never_aggregated(api: Wire) -> None:
    """`/apis/G/V` gives the old list whatever is asked."""
    answer = api.get("/apis/ex.io/v1", accept=f"{AGGREGATED},application/json")
    assert answer.json["kind"] == "APIResourceList"
    assert "Etag" not in answer.headers


def test_a_crd_shows_in_all_of_them_and_goes_from_all(
    api: Wire, group: str, install: Callable[..., None]
) -> None:
    """A new resource is discovered within a moment, and forgotten within one."""
    install(crd(group, "rows", "Row", ANYTHING))

    def places() -> set[str]:
        found = set()
        if api.get(f"/apis/{group}/v1").status == 200:
            found.add("version")
        if api.get(f"/apis/{group}").status == 200:
            found.add("group")
        if group in {entry["name"] for entry in api.get("/apis").json["groups"]}:
            found.add("list")
        if _aggregated(api, group):
            found.add("aggregated")
        return found

    until(lambda: places() == {"version", "group", "list", "aggregated"})
    api.delete(f"{CRDS}/rows.{group}")
    until(lambda: not places())


def test_the_newest_version_is_preferred(
    api: Wire, group: str, install: Callable[..., None]
) -> None:
    """v2 before v1 before v1beta1, whatever their order in the CRD."""
    shape = crd(group, "rows", "Row", ANYTHING)
    (first,) = shape["spec"]["versions"]
    shape["spec"]["versions"] = [
        {**first, "name": "v1beta1", "storage": False},
        first,
        {**first, "name": "v2", "storage": False},
    ]
    install(shape)
    found = until(lambda: _if_served(api, group, 3))
    assert [version["version"] for version in found["versions"]] == ["v2", "v1", "v1beta1"]
    assert found["preferredVersion"]["version"] == "v2"


def _if_served(api: Wire, group: str, count: int) -> dict[str, Any] | None:
    answer = api.get(f"/apis/{group}")
    if answer.status != 200 or len(answer.json["versions"]) != count:
        return None
    found: dict[str, Any] = answer.json
    return found


def test_the_version_is_that_of_kubernetes(api: Wire) -> None:
    """/version tells major, minor and git version, indented."""
    answer = api.get("/version")
    assert (answer.json["major"], answer.json["minor"]) == ("1", "36")
    assert answer.json["gitVersion"].startswith("v1.36.")


def test_the_health_paths_say_ok(api: Wire) -> None:
    """Probes get two letters of text."""
    for path in ("/healthz", "/livez", "/readyz"):
        answer = api.get(path)
        assert (answer.status, answer.text) == (200, "ok")
