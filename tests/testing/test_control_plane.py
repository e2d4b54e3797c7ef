"""A real control plane: up, used, broken, emptied, and gone for sure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dyninformer.testing.control_plane import ControlPlane, ControlPlaneError, find_assets
from dyninformer.testing.status import ApiError
from tests.conformance.shapes import GLOBES, WIDGETS, widget
from tests.conformance.wire import Wire, until

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}


@pytest.fixture(scope="module")
def shared() -> Iterator[ControlPlane]:
    """One control plane for this module."""
    with ControlPlane(users={"alice": ["devs", "ops"]}) as control_plane:
        yield control_plane


@pytest.fixture
def plane(shared: ControlPlane) -> ControlPlane:
    """The control plane, emptied."""
    shared.reset()
    return shared


def wire(plane: ControlPlane) -> Wire:
    """Raw HTTP to it."""
    return Wire(plane.url, plane.token, str(plane.ca))


def gone(pid: int) -> bool:
    """Whether no such process is left, apart from a zombie that its parent has yet to bury."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.real
def test_objects_are_put_in_and_read_back(plane: ControlPlane) -> None:
    """install, create, get, list, patch, replace and delete, as on the embedded server."""
    plane.install(WIDGETS, NAMESPACE)
    created = plane.create(widget("a", size=1), "ns")
    assert plane.get("widgets/a", "ns") == created
    assert plane.patch("wd/a", {"spec": {"size": 2}}, "ns")["spec"]["size"] == 2
    held = plane.get(created)
    assert plane.replace({**held, "spec": {"size": 3}})["spec"]["size"] == 3
    assert [item["metadata"]["name"] for item in plane.list("Widget", "ns")] == ["a"]
    assert plane.delete("widgets.ex.io/a", "ns")["status"] == "Success"
    assert plane.list("widgets") == []


@pytest.mark.real
def test_a_refusal_is_the_servers_status(plane: ControlPlane) -> None:
    """What the server says no to is an ApiError with its words."""
    plane.install(WIDGETS, NAMESPACE)
    with pytest.raises(ApiError, match=r"spec\.color: Unsupported value") as refused:
        plane.create(widget("a", color="pink"), "ns")
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")


@pytest.mark.real
def test_an_installed_crd_takes_objects_at_once(plane: ControlPlane) -> None:
    """The first create is not held back for the two seconds that other servers would need."""
    plane.install(GLOBES)
    plane.create({"apiVersion": "ex.io/v1", "kind": "Globe", "metadata": {"name": "g"}})
    established = plane.get("customresourcedefinitions/globes.ex.io")["status"]["conditions"]
    assert {each["lastTransitionTime"] for each in established} == {"2000-01-01T00:00:00Z"}


@pytest.mark.real
def test_reset_leaves_a_new_cluster(plane: ControlPlane) -> None:
    """CRDs, objects with finalizers and namespaces are gone, and can come back at once."""
    for _ in range(2):
        plane.install(WIDGETS, NAMESPACE)
        held = widget("a")
        held["metadata"]["finalizers"] = ["x.io/never"]
        plane.create(held, "ns")
        plane.reset()
        assert {ns["metadata"]["name"] for ns in plane.list("namespaces")} == {
            "default",
            "kube-node-lease",
            "kube-public",
            "kube-system",
        }
        assert plane.list("customresourcedefinitions") == []
        with pytest.raises(LookupError, match="widgets"):
            plane.list("widgets")


@pytest.mark.real
def test_users_have_tokens_of_their_own(plane: ControlPlane) -> None:
    """A declared user is known by name and groups, and may do nothing yet."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    alice = Wire(plane.url, plane.token_for("alice"), str(plane.ca))
    found = alice.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert found.json["status"]["userInfo"]["username"] == "alice"
    assert {"devs", "ops"} <= set(found.json["status"]["userInfo"]["groups"])
    assert alice.get("/api/v1/namespaces").status == 403


@pytest.mark.real
def test_the_kubeconfig_is_private_and_works(plane: ControlPlane, tmp_path: Path) -> None:
    """Only its owner can read it, and kubectl can use it."""
    path = plane.kubeconfig(tmp_path / "config")
    assert path.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["server"] == plane.url
    kubectl = find_assets() / "kubectl"
    if not kubectl.exists():
        pytest.skip(f"{kubectl} is not there")
    said = subprocess.run(
        [kubectl, f"--kubeconfig={path}", "get", "namespace", "default", "-o", "name"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "namespace/default\n"


@pytest.mark.real
def test_the_official_client_is_connected(plane: ControlPlane) -> None:
    """client() is a DynamicClient with the administrator's token."""
    namespaces = plane.client().resources.get(api_version="v1", kind="Namespace")
    assert namespaces.get(name="default").status.phase == "Active"


@pytest.mark.real
def test_tokens_stay_out_of_sight(plane: ControlPlane) -> None:
    """Neither the repr nor a command line shows a token, and their files are private."""
    assert plane.token not in repr(plane)
    commands = subprocess.run(
        ["ps", "ax", "-o", "args"], capture_output=True, text=True, check=True
    )
    assert plane.token not in commands.stdout
    for name in ("tokens.csv", "server.key", "service-accounts.key"):
        assert (plane.directory / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.real
def test_a_restart_keeps_address_and_data(plane: ControlPlane) -> None:
    """Same port, same objects; a watch from before is expired."""
    url, before = plane.url, wire(plane).get("/api/v1/namespaces").version
    plane.install(NAMESPACE)
    plane.restart()
    assert plane.url == url
    assert plane.get("namespaces/ns")["status"]["phase"] == "Active"
    with wire(plane).watch("/api/v1/namespaces", {"resourceVersion": before}) as watch:
        assert watch.event()["object"]["code"] == 410


@pytest.mark.real
def test_a_paused_server_is_silent_and_goes_on(plane: ControlPlane) -> None:
    """While it is paused a watch hears nothing; afterwards it hears what was written."""
    api = wire(plane)
    version = api.get("/api/v1/namespaces").version
    params = {"resourceVersion": version}
    with api.watch("/api/v1/namespaces", params, patience=0.5) as watch:
        plane.pause("kube-apiserver")
        with pytest.raises(TimeoutError):
            watch.event()
        plane.resume("kube-apiserver")
    with api.watch("/api/v1/namespaces", params) as watch:
        plane.install(NAMESPACE)
        assert watch.take(1) == [("ADDED", "ns")]


@pytest.mark.real
def test_a_killed_server_refuses_until_it_is_started(plane: ControlPlane) -> None:
    """After kill nothing listens; start brings it back on the same port."""
    plane.kill("kube-apiserver")
    api = wire(plane)
    with pytest.raises(Exception, match="Connection refused"):
        api.get("/readyz")
    plane.start("kube-apiserver")
    assert api.get("/readyz").text == "ok"


@pytest.mark.real
def test_etcd_can_go_and_come_back(plane: ControlPlane) -> None:
    """Without etcd reads from the cache go on, and writes succeed once it is back."""
    api = wire(plane)
    assert api.get("/api/v1/namespaces").status == 200
    plane.kill("etcd")
    assert api.get("/api/v1/namespaces", {"resourceVersion": "0"}).status == 200
    plane.start("etcd")
    until(lambda: api.get("/readyz").status == 200, 30)
    plane.install(NAMESPACE)


@pytest.mark.real
def test_compaction_forgets_what_etcd_held(plane: ControlPlane) -> None:
    """The answer is the revision up to which everything is forgotten."""
    before = int(wire(plane).get("/api/v1/namespaces").version)
    plane.install(NAMESPACE)
    assert plane.compact() > before


@pytest.mark.real
def test_a_snapshot_can_be_gone_back_to(plane: ControlPlane) -> None:
    """After restore what came later is unknown, and its versions are given out again."""
    plane.install(NAMESPACE)
    backup = plane.snapshot()
    for number in range(100):
        plane.patch("namespaces/ns", {"metadata": {"labels": {"n": str(number)}}})
    after = int(plane.get("namespaces/ns")["metadata"]["resourceVersion"])
    plane.restore(backup)
    assert "n" not in plane.get("namespaces/ns")["metadata"]["labels"]
    assert int(wire(plane).get("/api/v1/namespaces").version) < after


@pytest.mark.real
def test_the_log_of_each_process_can_be_read(plane: ControlPlane) -> None:
    """What a process prints is kept."""
    assert "Version: v1." in plane.log("kube-apiserver")
    with pytest.raises(ValueError, match="give 'etcd' or 'kube-apiserver'"):
        plane.log("kubelet")  # type: ignore[arg-type]


@pytest.mark.real
def test_a_server_that_does_not_come_up_says_why() -> None:
    """The error quotes the end of its log, and nothing is left running."""
    with pytest.raises(ControlPlaneError, match="unknown flag: --nonsense") as error:
        ControlPlane(apiserver_flags=["--nonsense"])
    assert "kube-apiserver ended with code 1" in str(error.value)


@pytest.mark.real
def test_close_leaves_nothing_behind() -> None:
    """Processes, port and folder are gone, and closing again is fine."""
    plane = ControlPlane()
    pids = [plane.pid("etcd"), plane.pid("kube-apiserver")]
    plane.close()
    plane.close()
    assert [gone(pid) for pid in pids] == [True, True]
    assert not plane.directory.exists()


_STARTER = """
    import signal, sys
    from dyninformer.testing.control_plane import ControlPlane
    plane = ControlPlane()
    print(plane.pid("etcd"), plane.pid("kube-apiserver"), plane.directory, flush=True)
    signal.pause()
"""


@pytest.mark.real
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_dies_with_its_starter(number: signal.Signals) -> None:
    """However the Python process ends, its servers and their folder go too."""
    starter = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_STARTER)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with starter:
        assert starter.stdout is not None
        etcd, apiserver, directory = starter.stdout.readline().split()
        starter.send_signal(number)
    until(lambda: gone(int(etcd)) and gone(int(apiserver)) and not Path(directory).exists())


def test_without_assets_the_error_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An unset variable, and a folder without the binaries, name the way out."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    with pytest.raises(ControlPlaneError, match=r"KUBEBUILDER_ASSETS is not set.*`make kube`"):
        find_assets()
    (tmp_path / "etcd").write_text("#!/bin/sh\n")
    os.chmod(tmp_path / "etcd", 0o755)
    with pytest.raises(ControlPlaneError, match="has no executable kube-apiserver"):
        find_assets(tmp_path)
