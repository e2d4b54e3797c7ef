"""The scripts under examples/ do what they say, run as a user runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dyninformer.testing import ApiServer
from dyninformer.types import Object
from tests.documents import ROOT

Run = Callable[..., "Script"]

ISSUERS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "issuers.cert-manager.io"},
    "spec": {
        "group": "cert-manager.io",
        "scope": "Namespaced",
        "names": {"plural": "issuers", "kind": "Issuer"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


class Script:
    """A running example and what it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.printed: list[str] = []

    def until(self, text: str) -> str:
        """The next line that has this text in it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed.append(line.rstrip())
            if text in line:
                return self.printed[-1]
        pytest.fail(f"it never printed {text!r}, but:\n" + "\n".join(self.printed))

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> list[str]:
        """All that it has printed, once it has ended, which has to be without an error."""
        assert self.process.stdout is not None
        self.printed += [line.rstrip() for line in self.process.stdout]
        assert self.process.wait() == 0, "\n".join(self.printed)
        return self.printed


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server with what examples/crd has."""
    with ApiServer() as server:
        server.install(ROOT / "examples" / "crd")
        yield server


@pytest.fixture
def run(server: ApiServer, tmp_path: Path) -> Iterator[Run]:
    """Start an example by its name, with arguments, against the server."""
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig(tmp_path / "kubeconfig"))}
    started = []

    def start(name: str, *arguments: str) -> Script:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "examples" / f"{name}.py"), *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return Script(process)

    yield start
    for process in started:
        process.kill()
        process.communicate()


@contextmanager
def interrupted(script: Script) -> Iterator[Script]:
    """End a script by Ctrl-C, and see that it ends well."""
    yield script
    script.interrupt()
    assert "Traceback" not in "\n".join(script.end())


def node(name: str, ready: str) -> Object:
    """A node with its one condition that matters here."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def pod(name: str, namespace: str, owner: str = "") -> Object:
    """A running pod, of an owner or of nobody."""
    made: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": "worker-1", "containers": [{"name": "main", "image": "main"}]},
        "status": {"phase": "Running"},
    }
    if owner:
        made["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "shop", "uid": owner}
        ]
    return made


def test_pods_are_shown_under_the_stateful_set_that_owns_them(server: ApiServer, run: Run) -> None:
    """The listers of both are joined by an index on the owner."""
    labels = {"app": "shop"}
    shop = server.create(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "shop", "namespace": "prod"},
            "spec": {
                "replicas": 2,
                "serviceName": "shop",
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "main", "image": "main"}]},
                },
            },
        }
    )
    for name, owner in (("shop-0", shop["metadata"]["uid"]), ("other", "")):
        server.create(pod(name, "prod", owner))
        server.patch(f"pods/{name}", {"status": {"phase": "Running"}}, "prod", subresource="status")
    printed = run("pods_and_statefulsets").end()
    assert printed[0] == "prod/shop: 0 of 2 ready"
    assert printed[1].split() == ["shop-0", "Running", "worker-1"]
    assert printed[2:] == ["1 StatefulSets, 2 pods in the cache"]


def test_nodes_are_told_when_their_readiness_changes_and_not_before(
    server: ApiServer, run: Run
) -> None:
    """An update that changes nothing of what is asked for is not told."""
    server.create(node("worker-1", "True"))
    server.patch("nodes/worker-1", {"status": node("", "True")["status"]}, subresource="status")
    with interrupted(run("nodes")) as script:
        script.until("now watching")
        server.patch("nodes/worker-1", {"metadata": {"labels": {"zone": "a"}}})
        server.patch(
            "nodes/worker-1", {"status": node("", "False")["status"]}, subresource="status"
        )
        server.patch("nodes/worker-1", {"spec": {"unschedulable": True}})
        server.delete("nodes/worker-1")
        script.until("is gone")
    assert script.printed == [
        "worker-1 is Ready",
        "1 nodes; now watching",
        "worker-1 was Ready, is NotReady",
        "worker-1 was NotReady, is NotReady,SchedulingDisabled",
        "worker-1 is gone, was NotReady,SchedulingDisabled",
    ]


def test_blocks_and_policies_are_filtered_each_in_its_own_way(server: ApiServer, run: Run) -> None:
    """The cluster-scoped blocks have a selector, the policies a namespace and a selector."""
    server.patch("ipamblocks/10-0-0-0-26", {"metadata": {"labels": {"zone": "a"}}})
    policy = {"apiVersion": "crd.projectcalico.org/v1", "kind": "NetworkPolicy"}
    for name, namespace in (("shop", "default"), ("unlabelled", "prod")):
        server.create({**policy, "metadata": {"name": name, "namespace": namespace}, "spec": {}})
    selector = "app.kubernetes.io/name=shop"
    asked = ("--namespace", "prod", "--selector", selector, "--block-selector", "zone=a")
    with interrupted(run("ipam_blocks", *asked)) as script:
        script.until("host:worker-1 has 10.0.0.0/26")
        script.until("SYNC")
    assert {
        line.partition("10.0.0.0/26")[0].strip() for line in script.printed if "in use" in line
    } == {
        "ADDED",
        "SYNC",
    }
    assert "ADDED   10.0.0.0/26        worker-1   1 of 4 in use" in script.printed
    assert [line for line in script.printed if "is for" in line] == [
        "ADDED   prod/shop-from-anywhere is for app == 'shop'"
    ]


def test_each_resource_has_its_own_namespaces_and_selectors(server: ApiServer, run: Run) -> None:
    """What a selector or a namespace leaves out is not in the cache."""
    for name, namespace, kind in (
        ("shop-tls", "prod", "kubernetes.io/tls"),
        ("password", "prod", "Opaque"),
        ("far-away", "kube-system", "kubernetes.io/tls"),
    ):
        server.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": namespace},
                "type": kind,
                "data": {"tls.crt": "", "tls.key": ""} if "tls" in kind else {},
            }
        )
    printed = run("per_resource_selectors", "--namespaces", "prod,default", "--seconds", "0").end()
    assert {" ".join(line.split()) for line in printed} == {
        "ADDED secrets prod/shop-tls",
        "ADDED certificates prod/shop",
        "ADDED ipamblocks 10-0-0-0-26",
        "ADDED ipamblocks 10-0-0-64-26",
        "pods.v1: 0 in the cache",
        "secrets.v1: 1 in the cache",
        "certificates.v1.cert-manager.io: 1 in the cache",
        "ipamblocks.v1.crd.projectcalico.org: 2 in the cache",
    }


def test_a_resource_that_is_installed_later_is_followed_until_it_goes(
    server: ApiServer, run: Run
) -> None:
    """Its objects are told as they come, and as deleted with their CRD."""
    with interrupted(run("follow_cert_manager")) as script:
        script.until("certificates.cert-manager.io        prod/mail")
        server.install(ISSUERS)
        server.create(
            {
                "apiVersion": "cert-manager.io/v1",
                "kind": "Issuer",
                "metadata": {"name": "ca", "namespace": "prod"},
            }
        )
        added = script.until("issuers.cert-manager.io")
        server.delete("crd/issuers.cert-manager.io")
        deleted = script.until("issuers.cert-manager.io")
    assert added.split() == ["ADDED", "issuers.cert-manager.io", "prod/ca"]
    assert deleted.split() == ["DELETED", "issuers.cert-manager.io", "prod/ca"]


def test_a_key_that_failed_is_tried_again_until_the_work_is_done(
    server: ApiServer, run: Run
) -> None:
    """Each failure puts it off for longer; a change or a deletion brings it back at once."""
    with interrupted(run("retry_queue", "--namespace", "prod")) as script:
        script.until("prod/shop: not ready yet; again in 0.5 s")
        script.until("prod/shop: not ready yet; again in 1 s")
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        server.patch("certificates/shop", ready, "prod", subresource="status")
        script.until("prod/shop: ready")
        server.delete("certificates/mail", "prod")
        script.until("prod/mail: gone")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_controller_hands_its_shards_over_when_it_is_told_to_end(
    server: ApiServer, run: Run, number: signal.Signals
) -> None:
    """By Ctrl-C as well as by SIGTERM."""
    script = run("operate/controller")
    script.until("shop: shard")
    script.process.send_signal(number)
    assert "Traceback" not in "\n".join(script.end())
    names = [lease["metadata"]["name"] for lease in server.list("leases", namespace="default")]
    assert [name for name in names if "-shard-" not in name] == []  # no member is left
