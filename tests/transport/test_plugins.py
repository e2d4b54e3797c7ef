"""Credential plugins of many connections at a time."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from dyninformer import Fleet, UnreachableError
from dyninformer.testing import ApiServer
from dyninformer.transport.config import Environment, KubeconfigFiles, official
from dyninformer.transport.plugins import PluginRuns

Fields: TypeAlias = dict[str, Any]

PATIENCE = 20.0


def test_those_that_come_while_it_runs_take_what_it_says() -> None:
    """The next one after that runs it again; without a key each runs its own."""
    runs, begun, go_on = PluginRuns(), threading.Event(), threading.Event()
    found: list[tuple[object, bool]] = []
    made: list[object] = []

    def load() -> object:
        begun.set()
        go_on.wait(PATIENCE)
        made.append(object())
        return made[-1]

    threads = [
        threading.Thread(target=lambda: found.append(runs.load("k", load))) for _ in range(5)
    ]
    threads[0].start()
    assert begun.wait(PATIENCE)
    for each in threads[1:]:
        each.start()
    while any(each.is_alive() for each in threads):
        if len(runs._flights) == 1 and all(each.is_alive() for each in threads):
            go_on.set()
        threads[0].join(0.01)
    assert {id(value) for value, _ in found} <= {id(value) for value in made}
    assert sum(shared for _, shared in found) == 5 - len(made)
    before = len(made)
    assert runs.load("k", load)[1] is False
    assert runs.load(None, load)[1] is False
    assert len(made) == before + 2


def test_few_run_at_a_time() -> None:
    """Of different keys, so many as there are places."""
    runs, running, most = PluginRuns(2), threading.Semaphore(0), [0, 0]
    lock = threading.Lock()

    def load() -> None:
        with lock:
            most[0] += 1
            most[1] = max(most)
        running.release()
        threading.Event().wait(0.01)
        with lock:
            most[0] -= 1

    threads = [threading.Thread(target=runs.load, args=(str(at), load)) for at in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE)
    assert most[1] <= 2


def test_what_it_raises_is_raised_to_all_that_wait() -> None:
    """And the next one tries again."""
    runs = PluginRuns()

    def fail() -> None:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            runs.load("k", fail)


def test_the_clusters_of_one_user_run_its_plugin_once(tmp_path: Path) -> None:
    """Each with its own server, and the credentials of that one run."""
    log, script = tmp_path / "log", tmp_path / "plugin.py"
    servers = [ApiServer() for _ in range(4)]
    for each in servers:
        each.access.add_user("shared", groups=["system:masters"], token="shared-token")
    script.write_text(
        "import json, sys, time\n"
        "open(sys.argv[1], 'a').write('run\\n')\n"
        "time.sleep(1)\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', "
        "'kind': 'ExecCredential', 'status': {'token': 'shared-token'}}))\n"
    )
    call = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script), str(log)],
        "interactiveMode": "Never",
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": str(at), "cluster": {"server": each.url}} for at, each in enumerate(servers)
        ],
        "users": [{"name": "u", "user": {"exec": call}}],
        "contexts": [
            {"name": f"c{at}", "context": {"cluster": str(at), "user": "u"}}
            for at in range(len(servers))
        ],
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    try:
        with Fleet(contexts="*", kubeconfig=path) as fleet:
            fleet.for_resource("v1/namespaces")
            assert fleet.sync(PATIENCE)
            users = [{request.user for request in each.requests} for each in servers]
        assert users == [{"shared"}] * len(servers)
        assert log.read_text() == "run\n"
    finally:
        for each in servers:
            each.close()


# -- of more than one context at a time, on the way to one run ------------------------------


def _plugin(directory: Path, token: str) -> None:
    """One that runs for long enough for others to come meanwhile, and then says a token."""
    directory.mkdir(exist_ok=True)
    said = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token},
    }
    script = directory / "plugin"
    script.write_text(f"#!/bin/sh\nsleep 0.5\necho '{json.dumps(said)}'\n")
    script.chmod(0o755)


_CALL = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "./plugin",
    "interactiveMode": "Never",
}


def _config(path: Path, clusters: dict[str, Fields], users: dict[str, Fields]) -> Path:
    """A context for each cluster, with the user of its name, or else the only one."""
    only = next(iter(users))
    config = {
        "clusters": [{"name": name, "cluster": each} for name, each in clusters.items()],
        "users": [{"name": name, "user": each} for name, each in users.items()],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name if name in users else only}}
            for name in clusters
        ],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def _loaded_together(paths: list[Path], *contexts: str) -> dict[str, Any]:
    """What each of the contexts has, or the error: the first one's plugin runs meanwhile."""
    official()  # not while the plugin runs
    found: dict[str, Any] = {}

    def load(name: str) -> None:
        made = Environment(KubeconfigFiles(tuple(map(str, paths)), name))
        try:
            made.load()
            found[name] = made._loaded
        except UnreachableError as error:
            found[name] = error

    threads = [threading.Thread(target=load, args=(name,)) for name in contexts]
    for each in threads:
        each.start()
        each.join(0.1)
    for each in threads:
        each.join(PATIENCE)
    return found


def test_a_token_is_not_shown_to_a_cluster_of_another_file(tmp_path: Path) -> None:
    """A command that is relative is another plugin for each directory."""
    paths = []
    for name in ("eu", "us"):
        _plugin(tmp_path / name, f"token-of-{name}")
        server = {"server": f"http://127.0.0.1:1/{name}"}
        paths.append(_config(tmp_path / name / "config", {name: server}, {name: {"exec": _CALL}}))
    found = _loaded_together(paths, "eu", "us")
    tokens = {name: each.auth_settings()["BearerToken"]["value"] for name, each in found.items()}
    assert tokens == {"eu": "Bearer token-of-eu", "us": "Bearer token-of-us"}


def test_a_certificate_is_not_shown_to_a_cluster_of_another_user(tmp_path: Path) -> None:
    """Users whose plugin is the same, and whose certificates are not."""
    _plugin(tmp_path, "token")
    users = {}
    for name in ("eu", "us"):
        (tmp_path / f"{name}.crt").write_text(name)
        (tmp_path / f"{name}.key").write_text(name)
        users[name] = {
            "exec": _CALL,
            "client-certificate": f"{name}.crt",
            "client-key": f"{name}.key",
        }
    clusters = {name: {"server": f"https://127.0.0.1:1/{name}"} for name in users}
    found = _loaded_together([_config(tmp_path / "config", clusters, users)], "eu", "us")
    shown = {name: Path(each.cert_file).read_text() for name, each in found.items()}
    assert shown == {"eu": "eu", "us": "us"}


def test_what_is_wrong_with_one_cluster_is_not_said_of_another(tmp_path: Path) -> None:
    """Both have one user, whose plugin runs for the one that names a file that is not there."""
    _plugin(tmp_path, "token")
    clusters = {
        "broken": {"server": "https://127.0.0.1:1", "certificate-authority": "nowhere.crt"},
        "good": {"server": "https://127.0.0.1:2"},
    }
    path = _config(tmp_path / "config", clusters, {"u": {"exec": _CALL}})
    found = _loaded_together([path], "broken", "good")
    assert isinstance(found["broken"], UnreachableError)
    assert found["good"].auth_settings()["BearerToken"]["value"] == "Bearer token"


def test_a_kubeconfig_that_the_official_client_writes_is_loaded_by_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes the file anew when it has a new token: two at once would lose one's."""
    users: dict[str, Fields] = {name: {"auth-provider": {"name": "oidc"}} for name in ("eu", "us")}
    clusters = {name: {"server": f"https://127.0.0.1:1/{name}"} for name in users}
    path = _config(tmp_path / "config", clusters, users)
    alone, met = threading.Lock(), []

    def load(**_: object) -> None:
        if not alone.acquire(blocking=False):
            met.append(True)
            return
        threading.Event().wait(0.3)
        alone.release()

    monkeypatch.setattr(official().config, "load_kube_config", load)
    assert len(_loaded_together([path], *users)) == 2
    assert not met
