"""kubectl's flags for every command: which cluster, as whom, and how loudly."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dyninformer.cli.main import app
from dyninformer.testing import ApiServer
from dyninformer.testing.control_plane import ControlPlane
from tests.cli.conftest import CRDS, SERVERS, Either
from tests.conformance.wire import until

GROUP = "rbac.authorization.k8s.io"
ASKING = [
    ["get", "cert"],
    ["get", "cert", "-w"],
    ["watch", "cert"],
    ["wait", "cert", "--all", "--for", "create"],
    ["count", "cert", "--once"],
    ["record", "cert", "-o", "never.ndjson"],
    ["doctor", "cert"],
]


@pytest.fixture(scope="module", params=SERVERS)
def secured(request: pytest.FixtureRequest) -> Iterator[Either]:
    """Each of the two servers with TLS and the examples; who is a reader may list certificates."""
    made: Either = ApiServer(tls=True) if request.param == "embedded" else ControlPlane()
    with made as server:
        server.install(CRDS)
        rule = {"apiGroups": ["cert-manager.io"], "resources": ["*"], "verbs": ["list"]}
        head = {"apiVersion": f"{GROUP}/v1", "metadata": {"name": "readers"}}
        server.create({**head, "kind": "ClusterRole", "rules": [rule]})
        server.create(
            {
                **head,
                "kind": "ClusterRoleBinding",
                "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": "readers"}],
                "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "readers"},
            }
        )
        yield server


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """A command in this process leaves its loggers as it set them."""
    requests = logging.getLogger("dyninformer.requests")
    both = [requests, requests.getChild("headers")]
    levels = [each.level for each in both]
    yield
    requests.handlers = []
    for each, level in zip(both, levels, strict=True):
        each.setLevel(level)


@pytest.fixture
def config(secured: Either, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The server's kubeconfig, which is in use; files are made in a folder of the test's own."""
    path = secured.kubeconfig(tmp_path / "config")
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.chdir(tmp_path)
    return path


def run(*args: str) -> Result:
    """The command, in this process."""
    return CliRunner().invoke(app, list(args))


@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_every_command_asks_as_the_user_that_is_named(
    config: Path, words: list[str], before: bool
) -> None:
    """Before the subcommand as behind it; alice may nothing."""
    flags = ["--as", "alice", "--as-group", "devs", "--as-group=ops"]
    result = run(*flags, *words) if before else run(*words, *flags)
    assert result.exit_code == 3, result.output
    assert "alice" in result.output


def test_rights_of_a_group_are_had_with_it(config: Path) -> None:
    """Each group is one of its own."""
    until(lambda: run("get", "cert", "-A", "--as", "a", "--as-group", "readers").exit_code == 0)
    several = ["--as", "a", "--as-group", "devs", "--as-group", "readers"]
    assert "mail-tls" in run("get", "cert", "-A", *several).stdout
    assert run("get", "cert", "-A", "--as", "a", "--as-group", "devs").exit_code == 3


def test_a_kubeconfig_may_say_whom_to_act_as(config: Path) -> None:
    """As kubectl reads it: as, as-groups; the flags count before it."""
    held = yaml.safe_load(config.read_text("utf-8"))
    held["users"][0]["user"] |= {"as": "bob", "as-groups": ["devs"]}
    config.write_text(yaml.safe_dump(held), "utf-8")
    assert 'User "bob" cannot list' in run("get", "cert").stderr
    assert 'User "eve" cannot list' in run("get", "cert", "--as", "eve").stderr
    assert run("doctor", "--as", "eve").stdout.count("knows them as eve") == 1


def test_a_group_without_a_user_is_wrong_usage(config: Path) -> None:
    """In words, and nothing is asked."""
    result = run("get", "cert", "--as-group", "devs")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: --as-group and --as-uid are for --as USER\n",
    )


@pytest.mark.parametrize("words", [["get", "cert"], ["watch", "cert", "--timeout", "0"]], ids=str)
def test_a_server_and_a_token_are_enough(
    secured: Either, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """There is no kubeconfig anywhere."""
    monkeypatch.setenv("KUBECONFIG", "/nonexistent/config")
    flags = ["-s", secured.url, "--token", secured.token, "--certificate-authority"]
    result = run(*flags, str(secured.ca), *words, "-A", "-o=name")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "certificate.cert-manager.io/shop" in result.stdout.splitlines()


def test_a_token_stands_for_all_that_the_user_has(config: Path) -> None:
    """One that the server does not know is refused, whatever the kubeconfig has."""
    result = run("get", "cert", "--token", "wrong")
    assert result.exit_code == 3
    assert "Unauthorized" in result.stderr


def test_another_cluster_and_another_user_of_the_kubeconfig_are_taken(config: Path) -> None:
    """Paths in its file stay relative to it; names that are not there are told with the others."""
    held = yaml.safe_load(config.read_text("utf-8"))
    cluster, user = held["clusters"][0], held["users"][0]
    held["clusters"] = [{"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}}]
    held["users"] = [{"name": "nobody", "user": {"token": "wrong"}}]
    held["clusters"].append({**cluster, "name": "there"})
    held["users"].append({**user, "name": "me"})
    held["contexts"][0]["context"] |= {"cluster": "gone", "user": "nobody"}
    config.write_text(yaml.safe_dump(held), "utf-8")
    assert run("get", "cert", "-A", "--cluster", "there", "--user", "me").exit_code == 0
    assert run("get", "cert", "-A", "--cluster", "there").exit_code == 3
    unknown = run("get", "cert", "--cluster", "other")
    assert unknown.stderr.endswith("has no cluster 'other'; it has: gone, there\n")


def test_requests_are_shown_with_their_status_and_time(config: Path) -> None:
    """From level 6 on, on stderr."""
    result = run("-v=6", "get", "cert", "-A")
    said = result.stderr.splitlines()
    assert said[-1].endswith(" milliseconds")
    assert "/apis/cert-manager.io/v1/certificates?limit=500 200 OK in " in said[-1]
    assert "headers" not in result.stderr
    assert run("get", "cert", "-A", "-v", "5").stderr == ""
    wrong = run("get", "cert", "-v", "much")
    assert (wrong.exit_code, "'much' is no level" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_headers_are_shown_without_any_token(
    secured: Either, config: Path, words: list[str]
) -> None:
    """Nor is the content of anything; a refusal ends each command here."""
    flags = ["--token", secured.token, "--as", "alice"]
    said = run("-v", "9", *flags, *words).stderr
    assert secured.token not in said
    assert "Impersonate-User: alice" in said
    assert "Bearer <masked>" in said
    assert "response headers:\n    " in said


def test_what_a_secret_holds_is_never_shown(secured: Either, config: Path) -> None:
    """However much is to be shown."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    secured.create({**secret, "stringData": {"password": "hunter2"}})
    result = run("get", "secret", "s", "-v", "10")
    assert result.exit_code == 0
    assert "aHVudGVyMg" not in result.stderr
    assert "hunter2" not in result.stderr


UNVERIFIED = [
    ["get", "cert", "-A"],
    ["watch", "cert", "-A", "--timeout", "0"],
    ["count", "cert", "-A", "--once"],
]


@pytest.mark.parametrize("words", UNVERIFIED, ids=" ".join)
def test_a_server_that_is_not_verified_is_warned_of_once(config: Path, words: list[str]) -> None:
    """In our words, and with no path of another package."""
    command = [sys.executable, "-m", "dyninformer.cli.main", *words, "--insecure-skip-tls-verify"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "mail" in done.stdout or "prod" in done.stdout
    said = done.stderr.splitlines()
    assert len(said) == 1
    assert said[0].startswith("warning: the certificate of https://127.0.0.1:")


def test_a_program_is_warned_of_it_once_by_the_log(config: Path) -> None:
    """Two factories, and writes through the official client; urllib3 warns of each connection."""
    held = yaml.safe_load(config.read_text("utf-8"))
    cluster = held["clusters"][0]["cluster"]
    cluster.pop("certificate-authority", None)
    cluster.pop("certificate-authority-data", None)
    cluster["insecure-skip-tls-verify"] = True
    config.write_text(yaml.safe_dump(held), "utf-8")
    script = (
        "from dyninformer import DynamicSharedInformerFactory as Factory\n"
        "for _ in range(2):\n"
        "    with Factory() as factory:\n"
        "        factory.for_resource('v1/namespaces')\n"
        "        factory.sync(timeout=30)\n"
        "        maps = factory.client.resources.get(api_version='v1', kind='ConfigMap')\n"
        "        maps.get(namespace='default')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    said = done.stderr.splitlines()
    assert len(said) == 1, done.stderr
    assert said[0].startswith("the certificate of https://127.0.0.1:")
