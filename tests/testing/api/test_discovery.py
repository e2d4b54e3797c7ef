"""Discovery, OpenAPI, health and version."""

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
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ],
        "shortNames": ["cm"],
    }


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


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping", "/livez/etcd"])
def test_a_healthy_server_says_ok(ask: Asker, path: str) -> None:
    """The probes say ok, as a whole and one by one."""
    answer = ask("GET", path)

    assert (answer.status, answer.body) == (200, b"ok")


def test_verbose_probes_name_their_checks(ask: Asker) -> None:
    """``?verbose`` lists the checks, also those that were excluded, and what is no check."""
    text = body_text(ask("GET", "/readyz", verbose="", exclude="etcd"))
    assert text.startswith("[+]ping ok\n")
    assert "[+]etcd excluded: ok\n" in text
    assert text.endswith("readyz check passed\n")

    text = body_text(ask("GET", "/livez", verbose="1", exclude="nope"))
    assert 'cannot be excluded: no matches for "nope"\nlivez check passed\n' in text


def test_an_unknown_check_is_a_404(ask: Asker) -> None:
    """A check that is none is not found."""
    assert ask("GET", "/readyz/nope").status == 404


def test_the_version_is_that_of_the_server_it_stands_for(ask: Asker) -> None:
    """``/version`` says 1.36, indented for everybody, and cannot be had as YAML."""
    answer = ask("GET", "/version/")
    assert json.loads(body_text(answer))["gitVersion"] == "v1.36.3"
    assert body_text(answer).startswith('{\n  "major": "1"')

    assert ask("GET", "/version", headers={"accept": "application/yaml"}).status == 406


def test_the_root_lists_paths(ask: Asker) -> None:
    """``/`` lists what can be asked."""
    assert "/apis/ex.io/v1" in ask.get("/")["paths"]


class TestOpenApi:
    """OpenAPI, as kubectl asks for it before it writes."""

    def test_the_index_leads_to_documents_that_never_change(self, ask: Asker) -> None:
        """Each group version has an address with the hash of its document."""
        index = json.loads(body_text(ask("GET", "/openapi/v3")))["paths"]
        url, _, digest = index["apis/ex.io/v1"]["serverRelativeURL"].partition("?hash=")

        answer = ask("GET", url, hash=digest)
        headers = dict(answer.headers)
        assert headers["Cache-Control"] == "public, immutable"
        assert headers["Etag"] == f'"{digest}"'
        again = ask("GET", url, headers={"if-none-match": f'"{digest}"'})
        assert (again.status, again.body) == (304, b"")
        assert ask("GET", "/openapi/v3/apis/nope.io/v1").status == 404

    def test_patches_are_said_to_validate_fields(self, ask: Asker) -> None:
        """A patch that takes ``fieldValidation`` is why kubectl leaves validation to the server."""
        for document, path, kind in (
            ("apis/ex.io/v1", "/apis/ex.io/v1/namespaces/{namespace}/widgets/{name}", "Widget"),
            ("api/v1", "/api/v1/namespaces/{namespace}/configmaps/{name}", "ConfigMap"),
            ("api/v1", "/api/v1/namespaces/{name}", "Namespace"),
        ):
            paths = ask.get(f"/openapi/v3/{document}")["paths"]
            patch = paths[path]["patch"]
            assert "fieldValidation" in [each["name"] for each in patch["parameters"]]
            assert patch["x-kubernetes-group-version-kind"]["kind"] == kind

    def test_schemas_are_those_of_the_crds(self, ask: Asker) -> None:
        """A CRD's schema is found under its reversed group, with standard metadata."""
        schema = {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        }
        ask.create(CRDS, custom_resource("sch.io", "shapes", "Shape", schema))

        found = ask.get("/openapi/v3/apis/sch.io/v1")["components"]["schemas"]["io.sch.v1.Shape"]
        assert found["properties"]["spec"] == schema["properties"]["spec"]  # type: ignore[index]
        assert set(found["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
        expected = {"group": "sch.io", "version": "v1", "kind": "Shape"}
        assert found["x-kubernetes-group-version-kind"] == [expected]

    def test_version_2_as_protobuf_describes_nothing(self, ask: Asker) -> None:
        """Kubectl asks for version 2 as protobuf when version 3 does not know a kind."""
        accept = {"accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}
        answer = ask("GET", "/openapi/v2", headers=accept)
        assert answer.status == 200
        assert answer.body == b"\n\x032.0\x12\x12\n\nKubernetes\x12\x041.36B\x00"

    def test_version_2_is_not_offered_as_text(self, ask: Asker) -> None:
        """What is neither JSON nor version 2's protobuf is a 406."""
        assert ask("GET", "/openapi/v2", headers={"accept": "text/plain"}).status == 406
        assert ask.get("/openapi/v2")["swagger"] == "2.0"
