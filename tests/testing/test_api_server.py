"""The server as a test uses it: its life, its objects, its clients."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import urllib3
from urllib3.exceptions import HTTPError, NewConnectionError

from dyninformer.testing import ApiError, ApiServer, Limits
from tests.conformance.shapes import GLOBES, WIDGETS
from tests.testing.conftest import WIDGETS_PATH, Client, widget

# Its life.


@pytest.mark.parametrize("tls", [False, True])
def test_a_server_serves_as_soon_as_it_is_made(connect: Callable[..., Client], tls: bool) -> None:
    """With TLS or without, no waiting is needed."""
    with ApiServer(tls=tls) as server:
        assert server.url.startswith("https://" if tls else "http://")
        assert (server.ca is not None) == tls
        assert connect(server).ask("GET", "/readyz").data == b"ok"


def test_a_closed_server_leaves_no_thread_file_or_connection(
    connect: Callable[..., Client],
) -> None:
    """Whatever its clients were doing."""
    gc.collect()
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    server = ApiServer(tls=True)
    folder = server.kubeconfig().parent
    client = connect(server)
    watch = client.ask("GET", "/api/v1/namespaces?watch=1", stream=True)
    server.close()
    server.close()
    with pytest.raises(HTTPError):
        list(watch.stream())
    client.pool.clear()
    watch.close()
    gc.collect()
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == files
    assert not folder.exists()
    with pytest.raises(RuntimeError, match="has been closed"):
        server.list("namespaces")


def test_a_server_listens_where_it_is_told() -> None:
    """A port that is taken is an error, which leaves nothing behind."""
    threads = threading.active_count()
    with ApiServer() as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"):
            ApiServer(port=port)
    with ApiServer(port=port) as second:
        assert second.url == first.url
    assert threading.active_count() == threads


def test_a_stopped_server_is_killed_and_starts_again_on_its_port(
    server: ApiServer, client: Client
) -> None:
    """Connections end without a goodbye, the state stays, also while nobody can connect."""
    server.create(widget("a"))
    url, watch = server.url, client.watch()
    server.stop()
    with pytest.raises(HTTPError):
        list(watch.stream())
    with pytest.raises(NewConnectionError):
        client.list()
    server.create(widget("b"))
    server.start()
    assert server.url == url
    assert len(json.loads(client.list().data)["items"]) == 2


def test_a_restart_makes_watches_list_again(server: ApiServer, client: Client) -> None:
    """What was only in memory is gone: the version of an object is too old to watch from."""
    version = server.create(widget("a"))["metadata"]["resourceVersion"]
    server.create(widget("b"))
    watch = client.watch()
    server.restart()
    with pytest.raises(HTTPError):
        list(watch.stream())
    lines = client.watch(f"&resourceVersion={version}").read().splitlines()
    assert json.loads(lines[0])["object"]["code"] == 410


def test_a_reset_makes_it_as_new(server: ApiServer, client: Client) -> None:
    """Nothing that was installed, written, declared or asked is left; users stay."""
    alice = server.access.add_user("alice")
    server.access.allow("alice", verbs="list", resources="widgets")
    assert client.ask("GET", WIDGETS_PATH, token=alice).status == 200
    server.reset()
    assert server.requests == []
    assert client.list().status == 404
    assert client.ask("GET", "/api/v1/namespaces", token=alice).status == 403
    server.install(WIDGETS)
    assert json.loads(client.list().data)["items"] == []


def test_a_reset_makes_a_stopped_server_listen(server: ApiServer, client: Client) -> None:
    """A test that stopped its server leaves a working one to the next."""
    server.stop()
    server.reset()
    assert client.ask("GET", "/readyz").status == 200


def test_a_restored_cluster_goes_back_in_time(server: ApiServer, client: Client) -> None:
    """Objects and versions are those of the snapshot, and connections end."""
    server.create(widget("a"))
    backup = server.snapshot()
    server.delete("widgets/a")
    server.create(widget("b"))
    watch = client.watch()
    server.restore(backup)
    assert [obj["metadata"]["name"] for obj in server.list("widgets")] == ["a"]
    with pytest.raises(HTTPError):
        list(watch.stream())


def test_a_compaction_expires_what_was_handed_out(server: ApiServer, client: Client) -> None:
    """Continue tokens, and versions to watch from."""
    for name in "ab":
        server.create(widget(name))
    page = json.loads(client.list("?limit=1").data)["metadata"]
    server.compact()
    assert client.list(f"?limit=1&continue={page['continue']}").status == 410
    line = client.watch(f"&resourceVersion={page['resourceVersion']}").read().splitlines()[0]
    assert json.loads(line)["object"]["reason"] == "Expired"


def test_it_can_be_used_from_many_threads_at_once(server: ApiServer) -> None:
    """Every write is done once, by whomever."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: server.create(widget(f"w{number}")), range(100)))
    assert len(server.list("widgets")) == 100


def test_it_works_inside_somebody_elses_asyncio_test(server: ApiServer) -> None:
    """It has a loop of its own on a thread of its own."""

    async def test() -> bytes:
        server.create(widget("a"))
        port = int(server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            f"GET {WIDGETS_PATH} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
            f"Authorization: Bearer {server.token}\r\n\r\n".encode()
        )
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    assert b'"name":"a"' in asyncio.run(test())


# Its objects.


def test_objects_are_installed_from_files_folders_lists_and_dicts(
    server: ApiServer, tmp_path: Path
) -> None:
    """CRDs first, whatever the order in which they come, and more than once."""
    folder = tmp_path / "manifests"
    folder.mkdir()
    objects = [widget("a"), widget("b")]
    (folder / "a.yaml").write_text("\n---\n".join(json.dumps(each) for each in (*objects, GLOBES)))
    (tmp_path / "one.json").write_text(json.dumps(widget("c")))
    for _ in range(2):
        server.install(folder, str(tmp_path / "one.json"), [widget("d"), WIDGETS])
    assert [obj["metadata"]["name"] for obj in server.list("widgets")] == ["a", "b", "c", "d"]
    assert server.list("globes") == []


def test_objects_are_written_and_read_by_what_they_are(server: ApiServer) -> None:
    """create, get, patch, replace, delete: by a word as in kubectl, or by the object itself."""
    created = server.create(widget("a", size=1))
    assert server.get("widgets/a") == server.get("Widget/a") == server.get(created) == created
    assert server.get("widgets.ex.io/a")["spec"]["size"] == 1
    server.patch("widgets/a", {"spec": {"size": 2}})
    server.patch(created, [{"op": "add", "path": "/spec/note", "value": "hi"}])
    server.patch("widgets/a", {"status": {"phase": "Ready"}}, subresource="status")
    changed = server.get("widgets/a")
    assert (changed["spec"]["size"], changed["spec"]["note"]) == (2, "hi")
    assert changed["status"] == {"phase": "Ready"}
    changed["spec"]["size"] = 3
    assert server.replace(changed)["spec"]["size"] == 3
    assert server.delete("widgets/a")["status"] == "Success"
    assert server.list("widgets") == []


@pytest.mark.parametrize("name", ["system:node", "a b", "a$b", "ä"])
def test_a_name_may_have_what_a_url_may_not(server: ApiServer, name: str) -> None:
    """Roles and some others are named freely."""
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}
    made = server.create({**role, "metadata": {"name": name}})
    assert server.get(f"clusterroles/{name}") == server.get(made) == made
    server.patch(f"clusterroles/{name}", {"metadata": {"labels": {"seen": "yes"}}})
    assert server.delete(f"clusterroles/{name}")["status"] == "Success"
    assert server.list("clusterroles", field_selector=f"metadata.name={name}") == []


def test_lists_are_of_all_namespaces_or_one_and_selected(server: ApiServer) -> None:
    """The items say what they are, built-in ones too."""
    for namespace in ("one", "two"):
        server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        server.create(
            {**widget(namespace), "metadata": {"name": "w", "labels": {"in": namespace}}},
            namespace=namespace,
        )
    assert len(server.list("widgets")) == 2
    assert len(server.list("widgets", "one")) == 1
    (found,) = server.list("widgets", label_selector="in=two")
    assert found["metadata"]["namespace"] == "two"
    (one,) = server.list("namespaces", field_selector="metadata.name=one")
    assert (one["apiVersion"], one["kind"]) == ("v1", "Namespace")


def test_a_refusal_is_an_error_with_the_servers_words(server: ApiServer) -> None:
    """The message, the reason and the code of the Status."""
    server.create(widget("a"))
    with pytest.raises(ApiError, match=r'widgets\.ex\.io "a" already exists') as caught:
        server.create(widget("a"))
    assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")
    with pytest.raises(ApiError, match=r"spec\.size"):
        server.create(widget("b", size=1000))


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda server: server.get("gadgets/a"), "no 'gadgets'.*widgets.ex.io"),
        (lambda server: server.get("widgets"), "names no object.*widgets/NAME"),
        (lambda server: server.create({"metadata": {"name": "a"}}), "apiVersion and kind"),
        (lambda server: server.create({**widget("a"), "kind": "Gadget"}), "no Gadget in ex.io/v1"),
        (lambda server: server.patch("widgets/a", {}, kind="strange"), "merge, json, apply"),
    ],
)
def test_a_mistake_in_a_test_is_told_with_the_remedy(
    server: ApiServer, act: Callable[[ApiServer], object], says: str
) -> None:
    """What is there, or what to say instead."""
    with pytest.raises((LookupError, ValueError), match=says):
        act(server)


def test_a_crd_that_is_never_established_is_told(server: ApiServer) -> None:
    """By its name, once its time is over."""
    clash = json.loads(json.dumps(WIDGETS))
    clash["metadata"]["name"] = "wodgets.ex.io"
    clash["spec"]["names"] = {**clash["spec"]["names"], "plural": "wodgets"}
    with pytest.raises(TimeoutError, match=r"wodgets\.ex\.io"):
        server.install(clash, timeout=0.05)


OLD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "uid": "of-then",
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "finalizers": ["ex.io/held"],
        "resourceVersion": "99",
        "generation": 7,
    },
    "status": {"phase": "Failed"},
}


def test_an_object_is_loaded_as_it_is(server: ApiServer, client: Client) -> None:
    """What a create would not take is kept; only the resourceVersion is the server's own."""
    pods = "/api/v1/namespaces/default/pods"
    watch = client.ask("GET", f"{pods}?watch=1&timeoutSeconds=1", stream=True)
    server.load(OLD)
    held = server.get("pods/a")
    metadata = held["metadata"]
    assert held["status"] == OLD["status"]
    assert metadata.pop("resourceVersion") != "99"
    assert metadata.pop("namespace") == "default"
    assert metadata == {k: v for k, v in OLD["metadata"].items() if k != "resourceVersion"}
    assert server.unload(OLD)
    assert not server.unload(OLD)
    assert server.list("pods") == []
    types = [json.loads(line)["type"] for line in b"".join(watch.stream()).splitlines()]
    assert types == ["ADDED", "DELETED"]


@pytest.mark.parametrize(
    ("metadata", "more", "why"),
    [
        ({"name": "a/b"}, {}, "is no name"),
        ({"name": ""}, {}, "is no name"),
        ({"name": 5}, {}, "cannot unmarshal number"),
        ({"name": "a", "labels": []}, {}, "cannot unmarshal array"),
        ({"name": "a", "creationTimestamp": "soon"}, {}, "parsing time"),
        ({"name": "a"}, {"data": float("inf")}, "not JSON compliant"),
        ({"name": "a"}, {"kind": "CustomResourceDefinition"}, "installed, not loaded"),
    ],
)
def test_what_a_server_could_not_hold_is_not_loaded(
    server: ApiServer, metadata: dict[str, object], more: dict[str, object], why: str
) -> None:
    """The complaint says why."""
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **more}
    if "kind" in more:
        obj["apiVersion"] = "apiextensions.k8s.io/v1"
    with pytest.raises(ValueError, match=why):
        server.load(obj)
    assert server.list("pods") == []


def test_a_loaded_object_gets_what_it_lacks(server: ApiServer) -> None:
    """A uid, a time, a namespace; and the caller's object stays the caller's."""
    obj = {**OLD, "metadata": {"name": "a"}, "spec": {"tolerations": ["red"]}}
    server.load(obj)
    obj["spec"]["tolerations"].append("blue")
    held = server.get("pods/a")
    assert held["spec"] == {"tolerations": ["red"]}
    assert {"uid", "creationTimestamp", "generation"} <= held["metadata"].keys()
    assert "uid" not in obj["metadata"]


def test_one_odd_object_does_not_hide_the_others(server: ApiServer, client: Client) -> None:
    """The table of its kind has a row for it, without what cannot be told."""
    server.load({**OLD, "status": ["odd"]})
    server.load({**OLD, "metadata": {"name": "b"}})
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = client.ask("GET", "/api/v1/pods", headers=accept).json()
    assert [row["cells"][0] for row in table["rows"]] == ["a", "b"]
    assert table["rows"][0]["cells"][2] == "<unknown>"


# Its clients.


def test_a_kubeconfig_is_private_and_complete(tmp_path: Path) -> None:
    """0600, with the authority and the token, in one step."""
    with ApiServer(tls=True) as server:
        path = server.kubeconfig(tmp_path / "config")
        assert path == tmp_path / "config"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert os.listdir(tmp_path) == ["config"]
        config = json.loads(path.read_text())
        assert config["clusters"][0]["cluster"]["server"] == server.url
        assert config["clusters"][0]["cluster"]["certificate-authority-data"]
        assert config["users"][0]["user"]["token"] == server.token
        alice = server.access.add_user("alice")
        assert json.loads(server.kubeconfig(token=alice).read_text())["users"][0]["user"] == {
            "token": alice
        }


@pytest.mark.parametrize("tls", [False, True])
def test_the_official_client_works_and_asks_nothing_before_it_is_used(
    tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it leave a file that others can read."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with ApiServer(tls=tls) as server:
        server.install(WIDGETS)
        client = server.client()
        assert server.requests == []
        widgets = client.resources.get(api_version="ex.io/v1", kind="Widget")
        widgets.create(body=widget("a", size=1), namespace="default")
        assert widgets.get("a", "default").spec.size == 1
        assert not list(tmp_path.glob("osrcp-*"))
        client.client.close()


def test_requests_are_noted_without_secrets(server: ApiServer, client: Client) -> None:
    """Who asked for what, with what; never a token."""
    client.ask("GET", f"{WIDGETS_PATH}?limit=5", headers={"User-Agent": "operator/1.0"})
    client.ask("GET", "/version", token="wrong")
    listed, refused = server.requests
    assert (listed.verb, listed.resource, listed.user) == ("list", "widgets", "admin")
    assert (listed.method, listed.path, listed.param("limit")) == ("GET", WIDGETS_PATH, "5")
    assert listed.user_agent == "operator/1.0"
    assert (refused.path, refused.user) == ("/version", "")
    assert server.token not in repr(server.requests)


def test_users_have_what_rules_give_them(server: ApiServer, client: Client) -> None:
    """401 for a token of nobody, 403 without a rule, 200 with one."""
    alice = server.access.add_user("alice")
    assert client.ask("GET", WIDGETS_PATH, token="nobody's").status == 401
    assert client.ask("GET", WIDGETS_PATH, token=alice).status == 403
    rule = server.access.allow("alice", verbs="list", resources="widgets")
    assert client.ask("GET", WIDGETS_PATH, token=alice).status == 200
    server.access.remove(rule)
    assert client.ask("GET", WIDGETS_PATH, token=alice).status == 403


def test_an_idle_connection_ends_when_it_is_told_to() -> None:
    """Limits are the user's to choose: here a keep-alive that goes stale at once."""
    with ApiServer(limits=Limits(idle_seconds=0.01)) as server:
        port = int(server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
            assert sock.recv(1) == b""


@pytest.fixture
def many_files() -> Iterator[None]:
    """Leave to open two thousand sockets."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_a_thousand_watches_are_open_at_once(server: ApiServer) -> None:
    """One event reaches them all."""
    url = f"{server.url}{WIDGETS_PATH}?watch=1"
    headers = {"Authorization": f"Bearer {server.token}"}
    with urllib3.PoolManager(maxsize=1000, block=True, retries=False, timeout=30) as pool:
        watches = [
            pool.request("GET", url, headers=headers, preload_content=False) for _ in range(1000)
        ]
        server.create(widget("a"))
        for watch in watches:
            assert b'"name":"a"' in next(watch.read_chunked())
        for watch in watches:
            watch.close()
