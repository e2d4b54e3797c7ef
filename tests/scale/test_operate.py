"""What examples/operate/ has is taken by the real API server, and its rights are enough."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dyninformer import ShardMembership
from dyninformer.testing import ControlPlane
from tests.documents import ROOT

MANIFESTS = ROOT / "examples" / "operate" / "controller.yaml"
CRDS = ROOT / "examples" / "crd"
PATIENCE = 30.0

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def server() -> Iterator[ControlPlane]:
    """With the CRDs, and a user that has the controller's rights and no others."""
    with ControlPlane(users={"controller": []}) as started:
        started.install(CRDS)
        started.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}})
        for obj in yaml.safe_load_all(MANIFESTS.read_text("utf-8")):
            if obj["kind"].endswith("RoleBinding"):
                group = "rbac.authorization.k8s.io"
                obj["subjects"] = [{"kind": "User", "name": "controller", "apiGroup": group}]
            if "Role" in obj["kind"]:
                started.create(obj, obj["metadata"].get("namespace"))
        yield started


def test_the_manifests_are_valid(server: ControlPlane, tmp_path: Path) -> None:
    """As kubectl apply would send them, with every field known."""
    kubectl = Path(os.environ["KUBEBUILDER_ASSETS"]) / "kubectl"
    command = [str(kubectl), "--kubeconfig", str(server.kubeconfig(tmp_path / "config"))]
    command += ["apply", "--dry-run=server", "--validate=strict", "-f", str(MANIFESTS)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("(server dry run)") == 7
    assert "deprecated" not in ran.stderr
    assert "unknown field" not in ran.stderr


def test_the_rights_are_enough(server: ControlPlane) -> None:
    """For the leases, and for what is watched."""
    client = server.client(token=server.token_for("controller"))
    with ShardMembership(client, name="certs", namespace="ops", retry_period=0.2) as membership:
        certificates = membership.informer("certificates.v1.cert-manager.io")
        assert membership.wait_shared(PATIENCE), membership.status()
        assert certificates.wait_synced(PATIENCE), certificates.statuses()
        assert len(certificates) > 0
