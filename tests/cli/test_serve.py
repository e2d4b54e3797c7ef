"""``dyninformer serve``."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kubernetes.dynamic.exceptions import ForbiddenError

from dyninformer import DynamicSharedInformerFactory, errors
from dyninformer.cli.serve import Manifest, files, inferred_resources, manifests
from dyninformer.cli.terminal import Shutdown
from dyninformer.testing.control_plane import find_assets
from tests.cli.conftest import Run
from tests.cli.terminal import Running, running
from tests.cli.test_main import EXAMPLE, docstring
from tests.documents import ROOT

PODS = """
apiVersion: v1
kind: PodList
items:
- metadata: {name: p, namespace: prod, uid: of-then, creationTimestamp: "2020-01-01T00:00:00Z"}
  status: {phase: Running, containerStatuses: []}
- metadata: {namespace: prod}
"""
MONITORS = """
apiVersion: monitoring.ex.io/v1
kind: ServiceProxy
metadata: {name: a, resourceVersion: "7"}
spec: {of: then}
---
apiVersion: monitoring.ex.io/v1beta1
kind: ServiceProxy
metadata: {name: b}
---
apiVersion: monitoring.ex.io/v1
kind: ServiceProxy
metadata: {name: a, resourceVersion: "6"}
"""


@dataclass
class Served:
    """A running command, and how to reach its server."""

    command: Running
    kubeconfig: Path
    errors: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A must-gather of sorts: CRDs, objects, and files that are something else."""
    root = tmp_path_factory.mktemp("gathered")
    for source in sorted((ROOT / "examples" / "crd").iterdir()):
        (root / source.name).write_bytes(source.read_bytes())
    below = root / "namespaces" / "prod" / "core"
    below.mkdir(parents=True)
    (below / "pods.yaml").write_text(PODS)
    (root / "monitors.yml").write_text(MONITORS)
    (root / "proxy.json").write_text(
        json.dumps(
            {
                "apiVersion": "config.ex.io/v1",
                "kind": "Proxy",
                "metadata": {"name": "x", "uid": "y"},
            }
        )
    )
    (root / "values.yaml").write_text("replicas: 3\n")
    (root / "template.yaml").write_text("kind: {{ .Values.kind }}\n")
    (root / "notes.txt").write_text("kind: Pod\n")
    (root / "old.yaml").write_text(
        "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: \x1b[31m}\n"
        "---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n"
    )
    return root


@pytest.fixture(scope="module")
def served(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """What serves it."""
    kubeconfig = tmp_path_factory.mktemp("kube") / "config"
    args = ("serve", str(folder), "-n", "shop", "--kubeconfig-out", str(kubeconfig))
    with running(kubeconfig, *args) as command:
        assert command.shows("\n") == f"export KUBECONFIG={kubeconfig}\n"
        yield Served(command, kubeconfig, command.shows(r"read-only, on .+\n", on_stderr=True))


@pytest.fixture
def factory(served: Served) -> Iterator[DynamicSharedInformerFactory]:
    """A client of its."""
    with DynamicSharedInformerFactory(kubeconfig=str(served.kubeconfig)) as made:
        yield made


def keys(factory: DynamicSharedInformerFactory, resource: str) -> list[str]:
    """What a resource has."""
    lister = factory.for_resource(resource).lister
    factory.sync(60)
    return sorted(lister.keys())


def test_objects_are_served_by_the_crds_among_the_files(
    factory: DynamicSharedInformerFactory,
) -> None:
    """With their short names and columns."""
    assert keys(factory, "cert") == ["prod/mail", "prod/shop"]
    assert keys(factory, "IPAMBlock") == ["10-0-0-0-26", "10-0-0-64-26"]
    gvr = factory.discovery.resolve("cert").gvr
    assert [each.name for each in factory.discovery.columns(gvr)][:2] == ["Ready", "Secret"]


def test_other_kinds_are_told_from_their_objects(factory: DynamicSharedInformerFactory) -> None:
    """In each of their versions; without a namespace, what was in a cluster had none there."""
    assert keys(factory, "serviceproxies.monitoring.ex.io") == ["shop/a", "shop/b"]
    assert keys(factory, "monitoring.ex.io/v1beta1/serviceproxies") == ["shop/a", "shop/b"]
    assert keys(factory, "proxies.config.ex.io") == ["x"]


def test_an_object_that_is_there_twice_is_the_newer_one(
    factory: DynamicSharedInformerFactory,
) -> None:
    """By its resourceVersion."""
    lister = factory.for_resource("monitoring.ex.io/v1/serviceproxies").lister
    factory.sync(60)
    assert lister.get("a", "shop")["spec"] == {"of": "then"}


def test_objects_are_as_they_were(factory: DynamicSharedInformerFactory) -> None:
    """Items of a typed list, too; namespaces are there, whether a file has them or not."""
    pods = factory.for_resource("pods").lister
    assert keys(factory, "pods") == ["prod/p"]
    pod = pods.get("p", "prod")
    assert (pod["metadata"]["uid"], pod["status"]["phase"]) == ("of-then", "Running")
    assert {"prod", "shop"} <= set(keys(factory, "namespaces"))


def test_nobody_can_write(factory: DynamicSharedInformerFactory) -> None:
    """The refusal says why."""
    api = factory.client.resources.get(api_version="v1", kind="Pod")
    body = {"metadata": {"name": "p", "labels": {"a": "b"}}}
    with pytest.raises(ForbiddenError, match="this server is read-only: it serves files"):
        api.patch(body=body, name="p", namespace="prod")
    with pytest.raises(ForbiddenError, match="read-only"):
        api.delete(name="p", namespace="prod")
    with pytest.raises(ForbiddenError, match="read-only"):
        api.create(body=body, namespace="prod")


def test_a_write_of_an_informer_says_that_the_server_is_read_only(
    factory: DynamicSharedInformerFactory,
) -> None:
    """No right could be given, so the error does not ask for one."""
    certificates = factory.for_resource("cert")
    wanted = {"kind": "Certificate", "metadata": {"name": "shop", "namespace": "prod"}}
    writes: list[Callable[[], object]] = [
        lambda: certificates.patch("shop", "prod", {"spec": {"duration": "24h"}}),
        lambda: certificates.patch_status("shop", "prod", {"phase": "x"}),
        lambda: certificates.apply(wanted),
        lambda: certificates.delete("shop", "prod"),
    ]
    for write in writes:
        with pytest.raises(errors.ForbiddenError, match="this server is read-only") as caught:
            write()
        assert "Give" not in str(caught.value)


def test_what_is_passed_over_is_named(served: Served, folder: Path) -> None:
    """And nothing else, and nothing that acts on a terminal."""
    told = [each for each in served.errors.splitlines() if each.startswith("skipped: ")]
    assert told == [
        f"skipped: {folder}/old.yaml: yaml: control characters are not allowed",
        f"skipped: {folder}/template.yaml: yaml: invalid map key",
        f"skipped: {folder}/values.yaml: no Kubernetes object: it has no kind and apiVersion",
        f"skipped: {folder}/namespaces/prod/core/pods.yaml: a Pod without a name",
        "skipped: 1 object: PodDisruptionBudget of policy/v1beta1: another version is served",
    ]
    assert "13 objects of 8 kinds, read-only, on https://127.0.0.1:" in served.errors
    assert stat.S_IMODE(served.kubeconfig.stat().st_mode) == 0o600


@pytest.mark.real
def test_kubectl_reads_and_is_refused(served: Served) -> None:
    """It shows the columns, and the words of the refusal."""
    kubectl = [str(find_assets() / "kubectl"), "--kubeconfig", str(served.kubeconfig)]
    shown = subprocess.run(
        [*kubectl, "get", "pods,cert", "-A"], capture_output=True, text=True, check=True
    )
    assert [each.split()[:3] for each in shown.stdout.splitlines() if each] == [
        ["NAMESPACE", "NAME", "READY"],
        ["prod", "pod/p", "0/0"],
        ["NAMESPACE", "NAME", "READY"],
        ["prod", "certificate.cert-manager.io/mail", "mail-tls"],
        ["prod", "certificate.cert-manager.io/shop", "shop-tls"],
    ]
    refused = subprocess.run(
        [*kubectl, "label", "cert", "shop", "-n", "prod", "a=b"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "this server is read-only" in refused.stderr
    may = subprocess.run(
        [*kubectl, "auth", "can-i", "create", "pods"], capture_output=True, text=True, check=False
    )
    assert may.stdout.startswith("no")


def test_stdin_is_served_until_it_is_ended(tmp_path: Path) -> None:
    """What Helm renders, say."""
    command = [sys.executable, "-m", "dyninformer.cli.main", "serve", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdin
            assert process.stdout
            process.stdin.write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
            process.stdin.close()
            (path,) = shlex.split(process.stdout.readline().partition("=")[2])
            with DynamicSharedInformerFactory(kubeconfig=path) as factory:
                assert keys(factory, "configmaps") == ["default/a"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 143
            assert not Path(path).parent.exists()
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["empty"], 1, "there is no Kubernetes object in empty"),
        (["nothing"], 1, "nothing"),
        (["a.yaml", "--port", "65536"], 2, "65535"),
        (["a.yaml", "--kubeconfig-out", "a.yaml"], 2, "it exists already"),
    ],
)
def test_what_cannot_be_served_is_said(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], code: int, said: str
) -> None:
    """At once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.yaml").write_text(PODS)
    result = run("serve", *args)
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr


@pytest.mark.parametrize("example", EXAMPLE.findall(docstring("serve")))
def test_an_example_of_the_help_serves(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    """The files that it names; here it is ended at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Shutdown, "wait", lambda self: True)
    for name in ("must-gather.local.1234", "deploy"):
        os.mkdir(tmp_path / name)
        (tmp_path / name / "pods.yaml").write_text(PODS)
    (tmp_path / "crds.yaml").write_bytes((ROOT / "examples/crd/certificates.yaml").read_bytes())
    result = run(*shlex.split(example))
    assert (result.exit_code, "export KUBECONFIG=" in result.stdout) == (0, True), result.stderr


@pytest.mark.parametrize("missing", ["h11", "trustme", "jsonpatch"])
def test_a_missing_extra_is_named(tmp_path: Path, missing: str) -> None:
    """With the command that brings it."""
    (tmp_path / "a.yaml").write_text(PODS)
    script = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from dyninformer.cli.main import app; app(['serve', sys.argv[1]])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "pip install 'dyninformer[cli,testing]'" in done.stderr.splitlines()[-1]


MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


def read(path: Path) -> tuple[list[str], list[str]]:
    """The names of the objects, and the complaints, without the path."""
    complaints: list[str] = []
    names = [each.object["metadata"]["name"] for each in manifests(path, complaints.append)]
    return names, [each.removeprefix(str(path)) for each in complaints]


@pytest.mark.parametrize(
    ("text", "names", "complaints"),
    [
        ("", [], []),
        ("# nothing\n---\n---\n...\n", [], []),
        (MAP % "a" + "--- # next\n" + MAP % "b", ["a", "b"], []),
        (MAP % "a" + "data:\n  x: |\n    a\n    ---\n    b\n", ["a"], []),
        ("%YAML 1.1\n---\n" + MAP % "a", ["a"], []),
        (
            MAP % "a" + "---\nx: y: z\n---\n" + MAP % "b",
            ["a", "b"],
            [", from line 4: yaml: line 5: mapping values are not allowed in this context"],
        ),
        ('{"apiVersion":"v1","kind":"A","metadata":{"name":"j"}}', ["j"], []),
        ("[1]", [], [": no Kubernetes object: it has no kind and apiVersion"]),
        (
            "{apiVersion: v1, kind: AList, items: [7, {metadata: {name: x}}]}",
            ["x"],
            [": no Kubernetes object: it has no kind and apiVersion"],
        ),
        ("apiVersion: v1\nkind: A\nmetadata: {name: 7}", [], [": a A without a name"]),
        ("a: &a [1]\nb: *c", [], [": yaml: unknown anchor 'c' referenced"]),
        (
            "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(
                f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n"
                for a, b in zip("abcdef", "bcdefg", strict=True)
            ),
            [],
            [": yaml: document contains excessive aliasing"],
        ),
    ],
)
def test_a_file_is_read_document_by_document(
    tmp_path: Path, text: str, names: list[str], complaints: list[str]
) -> None:
    """One that cannot be read does not hide the others, nor exhaust anything."""
    path = tmp_path / "a.yaml"
    path.write_text(text)
    assert read(path) == (names, complaints)


def test_json_that_is_cut_is_complained_of_as_json(tmp_path: Path) -> None:
    """By the file's name."""
    path = tmp_path / "a.json"
    path.write_text('{"apiVersion":')
    assert read(path) == ([], [": unexpected end of JSON input"])


def test_values_are_those_that_a_server_reads(tmp_path: Path) -> None:
    """No dates, and no code."""
    path = tmp_path / "a.yaml"
    path.write_text(MAP % "a" + "at: 2020-01-01\nrun: !!python/object/apply:os.system ['id']\n")
    (found,) = manifests(path, print)
    assert found.object["at"] == "2020-01-01"
    assert found.object["run"] == ["id"]


def test_a_folder_is_not_left(tmp_path: Path) -> None:
    """Links that lead out, pipes and what is hidden are no manifests."""
    outside, inside = tmp_path / "secret.yaml", tmp_path / "in"
    outside.write_text(MAP % "secret")
    (inside / "b").mkdir(parents=True)
    (inside / ".git").mkdir()
    for name in ("b/z.yml", "a.yaml", ".git/h.yaml", ".hidden.yaml", "a.txt"):
        (inside / name).write_text(MAP % "a")
    (inside / "out.yaml").symlink_to(outside)
    (inside / "within.yaml").symlink_to(inside / "a.yaml")
    (inside / "up").symlink_to(tmp_path)
    os.mkfifo(inside / "pipe.yaml")
    complaints: list[str] = []
    found = list(files([inside], complaints.append))
    assert [str(each.relative_to(inside)) for each in found] == [
        "a.yaml",
        "pipe.yaml",
        "within.yaml",
        "b/z.yml",
    ]
    assert complaints == [f"{inside}/out.yaml: a link that leads out of {inside}"]
    assert read(inside / "pipe.yaml") == ([], [": not an ordinary file"])
    assert read(inside / "nothing.yaml") == ([], [": No such file or directory"])


@pytest.mark.parametrize(
    ("metadata", "kind", "folder", "namespaced"),
    [
        ({"namespace": "a"}, "ClusterThing", "x", True),
        ({"uid": "u"}, "Thing", "x", False),
        ({}, "Thing", "cluster-scoped-resources", False),
        ({}, "ClusterThing", "x", False),
        ({}, "Thing", "x", True),
    ],
)
def test_whether_a_kind_is_namespaced_is_told_from_its_objects(
    metadata: dict[str, str], kind: str, folder: str, namespaced: bool
) -> None:
    """What was in a cluster says its namespace, if it had one."""
    obj = {"apiVersion": "ex.io/v1", "kind": kind, "metadata": {"name": "a", **metadata}}
    (resource,) = inferred_resources([Manifest(obj, Path(folder, "a.yaml"))])
    assert resource.namespaced == namespaced
