"""kubectl 1.36 says the same on the embedded server as on a real one."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dyninformer.testing.client import kubeconfig_text, write_private
from dyninformer.testing.control_plane import find_assets
from tests.conformance.shapes import PASSING

if TYPE_CHECKING:
    from tests.conformance.cluster import Cluster

_FILES = Path(__file__).parents[1] / "data" / "kubectl"

# One command a line, run one after another in one namespace. "&" starts a command in the
# background and goes on when it watches or polls, "wait" ends when all those have. A file is named
# as in tests/data/kubectl.
_READY = '{"status":{"replicas":2,"conditions":[{"type":"Ready","status":"True"}]}}'
_SCRIPT = r"""
create -f crd.yaml
wait --for=condition=Established crd/gears.kubectl.example --timeout=20s
get gears
create -f gears.yaml
create -f gears.yaml
create -f bad-gear.yaml
create -f bad-gear.yaml --validate=false
create -f gears.yaml --dry-run=server -o name
get gears
get gears.v1.kubectl.example
get gr/big gr/small
get gear big -o wide
get gears -o wide --show-labels
get gears --no-headers
get gears -A
get gears -L app
get gears -l app=mill
get gears -l 'app in (mill,clock),!tier'
get gears -l 'app=('
get gears --field-selector metadata.name=small
get gears --field-selector spec.color=blue
get gears --field-selector spec.color!=blue
get gears --field-selector spec.teeth=24
get gears --sort-by=.spec.teeth
get gears --sort-by=.metadata.name -o name
get gears --chunk-size=1
get gears --chunk-size=2 -o name
get gears -o name
get gears -o json
get gears -o yaml
get gear big -o yaml --show-managed-fields
get gears -o jsonpath='{range .items[*]}{.metadata.name}={.spec.teeth}{"\n"}{end}'
get gears -o jsonpath-as-json='{.items[*].spec.color}'
get gears -o custom-columns=NAME:.metadata.name,TEETH:.spec.teeth,NONE:.spec.none
get gears -o go-template='{{range .items}}{{.metadata.name}} {{end}}'
get gears --subresource=status
get gear big --subresource=scale -o yaml
get gear nope
get gear nope --ignore-not-found
get nopes
get all
get gears,configmaps
describe gear big
apply -f gears.yaml
apply -f gears.yaml
apply -f gears-later.yaml
get gear big -o yaml
diff -f gears-later.yaml
diff -f gears.yaml
apply -f gears.yaml --dry-run=server
apply -f gears-later.yaml --prune -l app=mill
apply view-last-applied gear/big
apply -f config.yaml
apply -f config.yaml
apply -f config-later.yaml
get configmap conf -o yaml
apply --server-side -f config.yaml
apply --server-side --force-conflicts -f config.yaml
apply --server-side -f gears.yaml
apply --server-side -f gears-later.yaml --field-manager=other
apply --server-side -f gears-later.yaml --field-manager=other --force-conflicts
apply --server-side --field-manager=other -f gears-later.yaml
get gear big -o yaml --show-managed-fields
patch gear big --type=merge -p '{"spec":{"teeth":50}}'
patch gear big --type=merge -p '{"spec":{"teeth":50}}'
patch gear big --type=json -p '[{"op":"replace","path":"/spec/teeth","value":51}]'
patch gear big --type=json -p '[{"op":"test","path":"/spec/teeth","value":1}]'
patch gear big --type=merge -p '{"spec":{"color":"pink"}}'
patch gear big -p '{"spec":{"teeth":50}}'
patch gear nope --type=merge -p '{}'
patch configmap conf -p '{"data":{"d":"4"}}'
patch gear big --subresource=status --type=merge -p '{ready}'
get gears
get gear big -o yaml
label gear big color=green
label gear big color=green
label gear big color=red
label gear big color=red --overwrite
label gear big color-
label gears --all all=yes
label gears -l app=mill mill=yes
label gear big 'bad key=x'
annotate gear big note=hello
annotate gear big note=hello
annotate gear big note-
get gears --show-labels
scale gear big --replicas=5
scale gear big --replicas=6 --current-replicas=4
get gear big -o jsonpath='{.spec.replicas} {.metadata.generation}'
replace -f gears-later.yaml
replace --force -f gears-later.yaml
wait --for=condition=Ready gear/big --timeout=0s
wait --for=jsonpath='{.spec.color}'=green gear/big --timeout=10s
wait --for=jsonpath='{.spec.teeth}' gear/big --timeout=10s
wait --for=jsonpath='{.spec.color}'=blue gear/big --timeout=200ms
& wait --for=condition=Ready gear/big --timeout=20s
patch gear big --subresource=status --type=merge -p '{ready}'
wait
& wait --for=create gear/late --timeout=20s
create -f late-gear.yaml
wait
& wait --for=delete gear/late --timeout=20s
delete gear late
wait
wait --for=delete gear/late --timeout=10s
apply -f unknown.yaml
create deployment web --image=nginx --replicas=2 --port=80
get deployment web -o wide
set image deployment/web nginx=nginx:2
scale deployment web --replicas=3
expose deployment web --port=80 --name=front
get deployment web -o jsonpath={.spec.replicas}{.spec.selector}{.spec.template.metadata.labels}
create job once --image=busybox -- sleep 1
create cronjob often --image=busybox --schedule=@daily
create service clusterip back --tcp=80:8080
get service back -o jsonpath={.spec.ports}
create ingress way --rule=example.com/path=back:80
create poddisruptionbudget some --selector=app=web --min-available=1
create quota few --hard=cpu=1,pods=3
get quota few -o jsonpath={.spec}
run pod --image=nginx
delete deployment,service,ingress,poddisruptionbudget,quota --all
delete job,cronjob,pod --all --grace-period=0 --force
create configmap lit --from-literal=a=b
create secret generic sec --from-literal=a=b
create serviceaccount robot
create role reader --verb=get,list --resource=configmaps
create rolebinding readers --role=reader --serviceaccount=default:robot
create clusterrole kubectl-example --verb=get --resource=gears.kubectl.example
create clusterrolebinding kubectl-example --clusterrole=kubectl-example --user=bob
get configmaps
get secrets
get secret sec -o yaml
get configmap lit -o yaml
get rolebindings -o wide
get clusterrolebinding kubectl-example -o wide
get role reader -o yaml
describe configmap lit
describe namespace {namespace}
auth can-i list gears
auth whoami
auth can-i get gears --as=bob
auth can-i list gears --as=bob
auth can-i list gears --as=robot --as-group=system:masters
get gear big --as=bob -o name
get gears --as=bob
get events --field-selector reason!=ClusterIPNotAllocated
api-resources --api-group=kubectl.example
api-resources --api-group=rbac.authorization.k8s.io -o wide
api-resources --namespaced=true --api-group=apps
explain gear.spec.teeth
explain gears.spec.mates --recursive
version
get --raw /apis/kubectl.example
get --raw /apis/kubectl.example/v1
get --raw /apis/kubectl.example/v1/namespaces/{namespace}/gears/big
get --raw /apis/kubectl.example/v1/namespaces/{namespace}/gears?limit=1
get --raw /apis/nope.example/v1
get --raw /healthz
delete gear big middle
delete gear nope
delete -f gears.yaml --ignore-not-found
delete gears --all
delete configmap lit conf
delete secret,role,rolebinding --all
delete clusterrole,clusterrolebinding kubectl-example
get gears
create namespace kubectl-other
get namespace kubectl-other
get namespace kubectl-other -o yaml
delete crd gears.kubectl.example
get gears
"""

_WAITS = re.compile(r"watch=true|404 Not Found")
_LOG_LINE = re.compile(r"^[EIW]\d{4} .*\n", re.MULTILINE)
_MASKS = (
    (re.compile(r"https?://127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "TIME"),
    (re.compile(r'(resourceVersion"?: ?"?)\d+'), r"\1N"),
    (re.compile(r"(Resource Version: +)\d+"), r"\1N"),
    (re.compile(r'("continue":")[^"]+'), r"\1TOKEN"),
    (re.compile(r"^[EIW]\d{4} [\d:.]+ +\d+ ", re.MULTILINE), "LOG "),
    (re.compile(r"/tmp/(?:LIVE|MERGED)-\d+"), "TMP"),
    (re.compile(r"\b\d+[smh](?:\d+s)?\b"), "AGE"),
    (re.compile(r" +(?=AGE)|(?<=AGE) +"), " "),
    (re.compile(r"^(\+\+\+|---) .*$", re.MULTILINE), r"\1 FILE"),
)


@dataclass(frozen=True)
class _Said:
    """What a command said: where it differs, that is shown."""

    command: str
    status: int
    text: str


class _Kubectl:
    """kubectl with a configuration of its own, on one server and namespace."""

    def __init__(self, cluster: Cluster, home: Path, namespace: str) -> None:
        home.mkdir()
        self._namespace = namespace
        self._home = home
        self._binary = find_assets() / "kubectl"
        config, server = home / "config", cluster.server
        ca = server.ca.read_bytes() if server.ca else None
        write_private(config, kubeconfig_text(server.url, server.token, ca).encode())
        own = {"HOME": home, "KUBECONFIG": config, "KUBECTL_EXTERNAL_DIFF": "diff -u"}
        self._environment = {**os.environ, **{name: str(value) for name, value in own.items()}}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self._binary, "--namespace", self._namespace, *arguments],
            cwd=_FILES,
            env=self._environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        text, _ = process.communicate(timeout=60)
        return process.returncode, text


def _in_order(text: str) -> str:
    """Managers stand in the order of their times: within one second in another than across two."""

    def ordered(value: Any) -> Any:
        if isinstance(value, list):
            return [ordered(each) for each in value]
        if not isinstance(value, dict):
            return value
        found = {name: ordered(each) for name, each in value.items()}
        if "managedFields" in found:
            found["managedFields"].sort(key=lambda entry: (entry["manager"], json.dumps(entry)))
        return found

    if not text.startswith('{"') or "managedFields" not in text:
        return text
    return json.dumps(ordered(json.loads(text)), separators=(",", ":")) + "\n"


def _masked(text: str) -> str:
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return _in_order(text)


def _play(kubectl: _Kubectl, namespace: str) -> Iterator[_Said]:
    running: list[tuple[str, subprocess.Popen[str]]] = []
    kubectl.run("create", "namespace", namespace)
    for line in _SCRIPT.strip().splitlines():
        command = line.replace("{namespace}", namespace).replace("{ready}", _READY)
        if command == "wait":
            for earlier, process in running:
                text, _ = process.communicate(timeout=60)
                yield _Said(earlier, process.returncode, _masked(_LOG_LINE.sub("", text)))
            running.clear()
        elif command.startswith("& "):
            process = kubectl.start(*shlex.split(command[2:]), "-v=6")
            assert process.stdout is not None
            assert any(_WAITS.search(line) for line in process.stdout), command
            running.append((command, process))
        else:
            status, text = kubectl.run(*shlex.split(command))
            yield _Said(command, status, _masked(text))


@pytest.mark.real
def test_every_command_of_the_script_says_the_same(
    embedded: Cluster, real: Cluster, tmp_path: Path
) -> None:
    """Every command of the script ends alike and prints alike on both servers."""

    def play(cluster: Cluster) -> list[_Said]:
        namespace = "kubectl-script"
        kubectl = _Kubectl(cluster, tmp_path / cluster.kind, namespace)
        return list(_play(kubectl, namespace))

    with ThreadPoolExecutor(2) as pool:
        here, there = pool.map(play, (embedded, real))

    differences = [
        f"$ kubectl {ours.command}\n{ours.text}({ours.status})\n"
        f"but really\n{theirs.text}({theirs.status})"
        for ours, theirs in zip(here, there, strict=True)
        if ours != theirs
    ]
    assert not differences, "\n\n".join(differences)


@pytest.mark.real
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((), id="table"),
        pytest.param(("--output-watch-events",), id="events"),
        pytest.param(("--watch-only", "-o", "name"), id="names"),
        pytest.param(("-l", "app=mill", "--output-watch-events"), id="selector"),
    ],
)
def test_a_watch_prints_the_same(
    embedded: Cluster,
    real: Cluster,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    flags: tuple[str, ...],
) -> None:
    """``kubectl get -w`` prints the same lines while an object is created, changed and deleted."""

    def play(cluster: Cluster) -> list[str]:
        namespace = f"kubectl-watch-{request.node.callspec.id}"
        kubectl = _Kubectl(cluster, tmp_path / cluster.kind, namespace)
        kubectl.run("create", "namespace", namespace)
        for name in ("old", "conf"):
            kubectl.run("create", "configmap", name, "--from-literal=a=b")
            kubectl.run("label", "configmap", name, "app=mill")
        kubectl.run("delete", "configmap", "conf")
        watch = kubectl.start("get", "configmaps", "--watch", "-v=6", *flags)
        assert watch.stdout is not None
        try:
            lines: list[str] = []
            for line in watch.stdout:
                if "watch=true" in line:
                    break
                if not _LOG_LINE.match(line):
                    lines.append(_masked(line))
            for command in (
                "create -f config.yaml",
                "label configmap conf x=y",
                "label configmap conf app-",
                "label configmap conf app=mill",
                "delete configmap conf",
                "create configmap last --from-literal=a=b",
                "label configmap last app=mill",
            ):
                status, text = kubectl.run(*shlex.split(command))
                assert status == 0, text
            for line in watch.stdout:
                if not _LOG_LINE.match(line):
                    lines.append(_masked(line))
                if "last" in line:
                    return lines
            return lines
        finally:
            watch.kill()
            watch.communicate()

    with ThreadPoolExecutor(2) as pool:
        here, there = pool.map(play, (embedded, real))

    assert here == there


_NOT_SERVED = {
    "bindings",
    "componentstatuses",
    "deviceclasses",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourceslices",
}
"""Built-in resources that the embedded server leaves out."""


@pytest.mark.real
@pytest.mark.parametrize("command", ["api-resources --no-headers", "api-versions"])
def test_what_is_served_is_listed_the_same(
    embedded: Cluster, real: Cluster, tmp_path: Path, command: str
) -> None:
    """The same resources and versions are listed, but for the few that are known to be missing."""

    def play(cluster: Cluster) -> list[str]:
        kubectl = _Kubectl(cluster, tmp_path / cluster.kind, "default")
        status, text = kubectl.run(*shlex.split(command))
        assert status == 0, text
        lines = [" ".join(line.split()) for line in text.splitlines()]
        passing = ("kubectl.example", PASSING)
        return [line for line in lines if not any(domain in line for domain in passing)]

    here, there = play(embedded), play(real)
    left_out = ("resource.k8s.io/v1",)
    expected = [
        line for line in there if line.split()[0] not in _NOT_SERVED and line not in left_out
    ]
    assert here == expected
