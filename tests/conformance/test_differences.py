"""docs/differences.md is true: each row is tried on both servers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dyninformer.testing import ApiServer
from tests.conformance.cluster import Cluster
from tests.conformance.shapes import ANYTHING, CRDS, WIDGETS, crd, of_object, widget
from tests.conformance.wire import TABLE, Wire, until

WORDS = "## What is answered in other words"
PAGE = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


@dataclass(frozen=True)
class Place:
    """Where a row is tried: a server, a group and a namespace of its own."""

    cluster: Cluster
    group: str
    namespace: str

    @property
    def api(self) -> Wire:
        """The administrator's connection."""
        return self.cluster.admin

    def core(self, tail: str) -> str:
        """A path of the core group in the namespace."""
        return f"/api/v1/namespaces/{self.namespace}/{tail}"

    def things(self, version: str = "v1") -> str:
        """The path of the group's things."""
        return f"/apis/{self.group}/{version}/namespaces/{self.namespace}/things"

    def thing(self, name: str, **spec: object) -> dict[str, Any]:
        """A Thing."""
        metadata = {"name": name}
        version = f"{self.group}/v1"
        return {"apiVersion": version, "kind": "Thing", "metadata": metadata, "spec": spec}


def _cel(place: Place) -> object:
    rule = {"rule": "self.a < 5", "message": "too big"}
    spec = {**of_object(a={"type": "integer"}), "x-kubernetes-validations": [rule]}
    place.cluster.server.install(crd(place.group, "things", "Thing", of_object(spec=spec)))
    return place.api.post(place.things(), place.thing("t", a=9)).status


def _cel_compile(place: Place) -> object:
    spec = {"type": "object", "x-kubernetes-validations": [{"rule": "self.nope < 5"}]}
    shape = crd(place.group, "things", "Thing", of_object(spec=spec))
    return place.api.post(CRDS, shape, {"dryRun": "All"}).status


def _conversion_webhook(place: Place) -> object:
    shape = crd(place.group, "things", "Thing", ANYTHING)
    (first,) = shape["spec"]["versions"]
    shape["spec"]["versions"] = [first, {**first, "name": "v2", "storage": False}]
    nobody = {"clientConfig": {"url": "https://127.0.0.1:1/"}, "conversionReviewVersions": ["v1"]}
    shape["spec"]["conversion"] = {"strategy": "Webhook", "webhook": nobody}
    place.cluster.server.install(shape)
    assert place.api.post(place.things(), place.thing("t")).status == 201
    return place.api.get(f"{place.things('v2')}/t").status


def _admission_webhook(place: Place) -> object:
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    here = {"kubernetes.io/metadata.name": place.namespace}
    webhook = {
        "name": "nobody.ex.io",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [
            {
                "apiGroups": ["ex.io"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["widgets"],
            }
        ],
        "namespaceSelector": {"matchLabels": here},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": place.namespace},
        "webhooks": [webhook],
    }
    assert place.api.post(path, configuration).status == 201
    widgets = f"/apis/ex.io/v1/namespaces/{place.namespace}/widgets"
    try:
        if place.cluster.kind == "real":  # it learns of the configuration in a moment
            until(lambda: place.api.post(widgets, widget("w"), {"dryRun": "All"}).status == 500)
        return place.api.post(widgets, widget("w")).status
    finally:
        place.api.delete(f"{path}/{place.namespace}")


def _built_in_validation(place: Place) -> object:
    return place.api.post(place.core("pods"), {**POD, "spec": {}}).status


def _built_in_defaults(place: Place) -> object:
    return place.api.post(place.core("pods"), POD).json["spec"].get("restartPolicy")


def _built_in_columns(place: Place) -> object:
    table = place.api.get("/apis/batch/v1/jobs", accept=TABLE).json
    return [column["name"] for column in table["columnDefinitions"]][:3]


def _autoscaling_versions(place: Place) -> object:
    path = f"/apis/autoscaling/{{}}/namespaces/{place.namespace}/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"scaleTargetRef": target, "maxReplicas": 4, "targetCPUUtilizationPercentage": 50}
    assert (
        place.api.post(path.format("v1"), {"metadata": {"name": "h"}, "spec": spec}).status == 201
    )
    return "metrics" in place.api.get(path.format("v2") + "/h").json["spec"]


def _service_address(place: Place) -> object:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}]},
    }
    answer = place.api.post(place.core("services"), service)
    return answer.json["spec"].get("clusterIP", "").startswith("10.0.0.")


def _pod_subresources(place: Place) -> object:
    place.api.post(place.core("pods"), POD)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    return place.api.post(place.core("pods/p/eviction"), eviction).status


def _service_account_token(place: Place) -> object:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    assert place.api.post(place.core("serviceaccounts"), account).status == 201
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return place.api.post(place.core("serviceaccounts/robot/token"), request).status


def _protobuf(place: Place) -> object:
    protobuf = "application/vnd.kubernetes.protobuf"
    return place.api.get(place.core("configmaps"), accept=protobuf).status


def _metrics(place: Place) -> object:
    paths = ("/metrics", "/debug/pprof/", "/.well-known/openid-configuration")
    return {place.api.get(path).status for path in paths}


def _dynamic_resource_allocation(place: Place) -> object:
    return place.api.get("/apis/resource.k8s.io").status


def _compaction(place: Place) -> object:
    place.cluster.server.install(crd(place.group, "things", "Thing", ANYTHING))
    for name in ("a", "b"):
        place.api.post(place.things(), place.thing(name))
    token = place.api.get(place.things(), {"limit": 1}).token
    place.api.post(place.things(), place.thing("c"))
    place.cluster.server.compact()
    return place.api.get(place.things(), {"continue": token}).status


def _cold_cache(place: Place) -> object:
    for attempt in range(20):  # a real cache can be filled before the first question
        group = f"{attempt}.{place.group}"
        assert place.api.post(CRDS, crd(group, "things", "Thing", ANYTHING)).status == 201
        while (status := place.api.get(f"/apis/{group}/v1/things").status) != 200:
            if status == 429:
                return True
    return False


def _namespace_deletion(place: Place) -> object:
    if place.cluster.kind == "embedded":
        with ApiServer() as server:
            server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}})
            server.delete("namespaces/gone")
            return "gone" in {each["metadata"]["name"] for each in server.list("namespaces")}
    place.api.delete(f"/api/v1/namespaces/{place.namespace}")
    return place.api.get(f"/api/v1/namespaces/{place.namespace}").status == 200


def _insecure_port(place: Place) -> object:
    if place.cluster.kind == "embedded":
        with ApiServer() as server:
            server.install(WIDGETS)
            assert server.url.startswith("http://")
            return Wire(server.url, None, None).get("/apis/ex.io/v1/widgets").status
    assert place.cluster.server.url.startswith("https://")
    return place.cluster.anonymous.get("/apis/ex.io/v1/widgets").status


@dataclass(frozen=True)
class Row:
    """What comes out on each server."""

    tried: Callable[[Place], object]
    real: object
    embedded: object


ROWS = {
    "cel": Row(_cel, 422, 201),
    "cel-compile": Row(_cel_compile, 422, 201),
    "conversion-webhook": Row(_conversion_webhook, 500, 200),
    "admission-webhook": Row(_admission_webhook, 500, 201),
    "built-in-validation": Row(_built_in_validation, 422, 201),
    "built-in-defaults": Row(_built_in_defaults, "Always", None),
    "built-in-columns": Row(
        _built_in_columns, ["Name", "Status", "Completions"], ["Name", "Created At"]
    ),
    "autoscaling-versions": Row(_autoscaling_versions, True, False),
    "service-address": Row(_service_address, True, False),
    "pod-subresources": Row(_pod_subresources, 201, 404),
    "service-account-token": Row(_service_account_token, 201, 404),
    "protobuf": Row(_protobuf, 200, 406),
    "metrics": Row(_metrics, {200}, {404}),
    "dynamic-resource-allocation": Row(_dynamic_resource_allocation, 200, 404),
    "compaction": Row(_compaction, 200, 410),
    "cold-cache": Row(_cold_cache, True, False),
    "namespace-deletion": Row(_namespace_deletion, True, False),
    "insecure-port": Row(_insecure_port, 403, 200),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_the_page_is_true(cluster: Cluster, group: str, namespace: str, name: str) -> None:
    """Each server does what the page says of it."""
    row = ROWS[name]
    found = row.tried(Place(cluster, group, namespace))
    assert found == (row.real if cluster.kind == "real" else row.embedded)


def test_every_row_of_the_page_is_tried() -> None:
    """The page and this module name the same rows, in the same order."""
    section = PAGE.partition(WORDS)[0]
    assert re.findall(r"^\| `([a-z0-9-]+)` \|", section, re.MULTILINE) == list(ROWS)
