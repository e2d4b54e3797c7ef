"""What is served, as clients ask for it first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.testing.api.conftest import CRDS, Asker
from tests.testing.api.golden import body_text, custom_resource

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def _groups(document: dict[str, Any]) -> list[str]:
    return [item["metadata"].get("name", "") for item in document["items"]]


def test_core_resources_are_found_in_both_forms(ask: Asker) -> None:
    """The core group is described by ``/api``, ``/api/v1`` and the aggregated ``/api``."""
    assert ask.get("/api")["versions"] == ["v1"]
    old = {each["name"]: each for each in ask.get("/api/v1")["resources"]}
    assert old["configmaps"]["storageVersionHash"] == "qFsyl6wFWjQ="
    assert "apiVersion" not in ask.get("/api/v1")
    assert old["namespaces/finalize"]["verbs"] == ["update"]
    (item,) = ask.get("/api", _AGGREGATED)["items"]
    found = {each["resource"]: each for each in item["versions"][0]["resources"]}
    assert item["metadata"] == {}
    assert found["configmaps"] == {
        "resource": "configmaps",
        "responseKind": {"group": "", "version": "", "kind": "ConfigMap"},
        "scope": "Namespaced",
        "singularResource": "configmap",
        "verbs": [
            "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
        ],
        "shortNames": ["cm"],
    }  # fmt: skip


def test_versions_come_in_order_of_preference(ask: Asker) -> None:
    """v2 comes before v1 before v1beta1, and the first is preferred."""
    crd = custom_resource("many.io", "manys", "Many", versions=("v1", "v2", "v1beta1"))
    ask.create(CRDS, crd)

    group = ask.get("/apis/many.io")
    assert [each["version"] for each in group["versions"]] == ["v2", "v1", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v2"
    aggregated = ask.get("/apis", _AGGREGATED)["items"]
    (found,) = [item for item in aggregated if item["metadata"]["name"] == "many.io"]
    assert [each["version"] for each in found["versions"]] == ["v2", "v1", "v1beta1"]
    hashes = {
        ask.get(f"/apis/many.io/{version}")["resources"][0]["storageVersionHash"]
        for version in ("v1", "v2")
    }
    assert len(hashes) == 1  # that of the version in which objects are stored


def test_a_crd_comes_and_goes_with_another_etag(ask: Asker) -> None:
    """A CRD is found as soon as it is served and not after; the Etag tells."""
    headers = {"accept": _AGGREGATED}
    etags = [dict(ask("GET", "/apis", headers=headers).headers)["Etag"]]
    ask.create(CRDS, custom_resource("new.io", "news", "New"))
    assert "new.io" in _groups(ask.get("/apis", _AGGREGATED))
    assert ask.get("/apis/new.io/v1")["resources"][0]["name"] == "news"
    etags.append(dict(ask("GET", "/apis", headers=headers).headers)["Etag"])

    assert ask("DELETE", f"{CRDS}/news.new.io").status == 200
    assert "new.io" not in _groups(ask.get("/apis", _AGGREGATED))
    assert ask("GET", "/apis/new.io").status == 404
    etags.append(dict(ask("GET", "/apis", headers=headers).headers)["Etag"])
    assert etags[0] != etags[1]
    assert etags[0] == etags[2]


def test_only_the_quoted_etag_spares_the_document(ask: Asker) -> None:
    """``If-None-Match`` must repeat the Etag with its quotes."""
    etag = dict(ask("GET", "/api", headers={"accept": _AGGREGATED}).headers)["Etag"]
    for sent, status in ((etag, 304), (etag.strip('"'), 200), ('"x"', 200)):
        headers = {"accept": _AGGREGATED, "if-none-match": sent}
        assert ask("GET", "/api", headers=headers).status == status


def test_reviews_can_be_created_and_nothing_else(ask: Asker) -> None:
    """Reviews are listed with the one verb they have."""
    found = ask.get("/apis/authorization.k8s.io/v1")["resources"]

    assert {each["name"]: each["verbs"] for each in found} == {
        "localsubjectaccessreviews": ["create"],
        "selfsubjectaccessreviews": ["create"],
        "selfsubjectrulesreviews": ["create"],
        "subjectaccessreviews": ["create"],
    }


@pytest.mark.parametrize("accept", ["application/json", "*/*", f"{_AGGREGATED},application/json"])
def test_a_group_version_has_one_form(ask: Asker, accept: str) -> None:
    """``/apis/G/V`` is the same for whoever asks for the aggregated form too."""
    answer = ask("GET", "/apis/ex.io/v1", headers={"accept": accept})

    assert dict(answer.headers)["Content-Type"] == "application/json"
    assert json.loads(body_text(answer))["kind"] == "APIResourceList"
