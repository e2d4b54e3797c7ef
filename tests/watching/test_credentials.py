"""Credentials are read when they are needed, by one plugin at a time, and held by nobody up."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dyninformer.errors import StoppedError, UnreachableError
from dyninformer.testing import ApiServer
from dyninformer.watching.source import Source
from tests.watching.conftest import Make
from tests.watching.wires import (
    LIST,
    Background,
    client_of,
    eventually,
    kubeconfig,
    names,
    our_threads,
    whole,
)

PLUGIN = """
import json, os, sys, time
folder = sys.argv[1]
mine = os.path.join(folder, f"run-{os.getpid()}")
open(mine, "w").close()
with open(os.path.join(folder, "most"), "a") as most:
    most.write("." if len([n for n in os.listdir(folder) if n.startswith("run-")]) == 1 else "!")
while os.path.exists(os.path.join(folder, "hang")):
    time.sleep(0.01)
time.sleep(0.05)
os.remove(mine)
token = open(os.path.join(folder, "token")).read()
if token == "fail":
    sys.exit("no way, s3cr3t")
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
    "status": {"token": token, "expirationTimestamp": sys.argv[2]}}))
"""
LATER = "2999-01-01T00:00:00Z"
PAST = "2001-01-01T00:00:00Z"


class Plugin:
    """A credential plugin whose token, speed and success the test decides."""

    def __init__(self, folder: Path, expires: str) -> None:
        self.folder = folder
        self.expires = expires
        self.hang = folder / "hang"
        (folder / "plugin.py").write_text(PLUGIN)

    def gives(self, token: str) -> None:
        """What it gives from now on."""
        (self.folder / "token").write_text(token)

    @property
    def runs(self) -> str:
        """A dot for each time it ran, an exclamation mark if it did so beside itself."""
        log = self.folder / "most"
        return log.read_text() if log.exists() else ""

    @property
    def user(self) -> dict[str, Any]:
        """What a kubeconfig says of it."""
        return {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": sys.executable,
                "args": [str(self.folder / "plugin.py"), str(self.folder), self.expires],
                "interactiveMode": "Never",
            }
        }


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[..., Plugin]:
    """Make one."""

    def make(expires: str = LATER) -> Plugin:
        folder = tmp_path / "plugin"
        folder.mkdir()
        return Plugin(folder, expires)

    return make


def settings(server: ApiServer, user: dict[str, Any], folder: Path) -> Path:
    """A kubeconfig for that user."""
    authority = {} if server.ca is None else {"certificate-authority": str(server.ca)}
    return kubeconfig(folder / "kubeconfig", server.url, user, **authority)


def test_a_plugin_is_run_once_for_all_first_requests(
    secure: ApiServer, make: Make, tmp_path: Path, plugin: Callable[..., Plugin]
) -> None:
    """And not before the first of them."""
    mine = plugin()
    mine.gives(secure.token)
    source = make(kubeconfig=settings(secure, mine.user, tmp_path))
    assert mine.runs == ""
    tasks = [Background(lambda: whole(source.list(LIST))) for _ in range(10)]
    for task in tasks:
        task.join(30)
        assert isinstance(task.result, bytes)
        assert names(task.result) == ["a"]
    assert mine.runs == "."


def test_a_plugin_whose_tokens_expire_is_never_run_beside_itself(
    secure: ApiServer, make: Make, tmp_path: Path, plugin: Callable[..., Plugin]
) -> None:
    """Each request finds the token expired; the client for writes uses the same plugin."""
    mine = plugin(PAST)
    mine.gives(secure.token)
    source = make(kubeconfig=settings(secure, mine.user, tmp_path))
    maps = source.writes_client.resources.get(api_version="v1", kind="ConfigMap")
    tasks = [Background(lambda: whole(source.list(LIST))) for _ in range(6)]
    tasks += [Background(lambda: maps.get("a", "default")) for _ in range(2)]
    for task in tasks:
        task.join(60)
        assert task.error is None
    assert len(mine.runs) > 2
    assert "!" not in mine.runs
    source.writes_client.client.close()


def test_s34_a_plugin_that_hangs_holds_nobody_up(
    secure: ApiServer, make: Make, tmp_path: Path, plugin: Callable[..., Plugin]
) -> None:
    """Its thread is named, and outlives `close` alone."""
    mine = plugin()
    mine.gives(secure.token)
    mine.hang.touch()
    source = make(kubeconfig=settings(secure, mine.user, tmp_path))
    task = Background(lambda: source.list(LIST))
    eventually(lambda: mine.runs == ".")
    source.close()
    task.join(1)
    assert isinstance(task.error, StoppedError)
    assert source.under_way() == [f"dyninformer credentials for {secure.url} (reading credentials)"]
    mine.hang.unlink()
    eventually(lambda: source.under_way() == [] and our_threads() == [])


def test_a_plugin_that_fails_is_named(
    secure: ApiServer, make: Make, tmp_path: Path, plugin: Callable[..., Plugin]
) -> None:
    """And tried again by the next request."""
    mine = plugin()
    mine.gives("fail")
    source = make(kubeconfig=settings(secure, mine.user, tmp_path))
    with pytest.raises(
        UnreachableError, match=r"the plugin '.*' failed, named in|failed"
    ) as caught:
        source.list(LIST)
    assert "s3cr3t" not in str(caught.value)
    assert sys.executable in str(caught.value)
    mine.gives(secure.token)
    assert source.list(LIST).status == 200


def test_credentials_are_reloaded_once_for_all_who_were_refused(
    secure: ApiServer, make: Make, tmp_path: Path, plugin: Callable[..., Plugin]
) -> None:
    """A token that was revoked before it expired."""
    mine = plugin()
    mine.gives("revoked")
    source = make(kubeconfig=settings(secure, mine.user, tmp_path))
    assert source.list(LIST).status == 401
    mine.gives(secure.token)
    tasks = [Background(source.reload_credentials) for _ in range(5)]
    for task in tasks:
        task.join(30)
        assert task.error is None
    source.reload_credentials()
    assert source.list(LIST).status == 200
    assert mine.runs == ".."


def test_a_token_file_is_read_anew(secure: ApiServer, make: Make, tmp_path: Path) -> None:
    """The official client reads it once."""
    token = tmp_path / "token"
    token.write_text("old")
    source = make(kubeconfig=settings(secure, {"tokenFile": str(token)}, tmp_path))
    assert source.list(LIST).status == 401
    token.write_text(secure.token)
    source.reload_credentials()
    assert source.list(LIST).status == 200


def test_a_kubeconfig_that_cannot_be_read_any_more_is_told(
    secure: ApiServer, make: Make, tmp_path: Path
) -> None:
    """Without a word of what is in it."""
    path = settings(secure, {"token": "s3cr3t"}, tmp_path)
    source = make(kubeconfig=path)
    assert source.list(LIST).status == 401
    path.write_text("{token: s3cr3t, : [")
    with pytest.raises(UnreachableError, match="cannot read the credentials") as caught:
        source.reload_credentials()
    assert str(path) in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert source.list(LIST).status == 401


def test_the_callers_own_refresh_is_run_for_each_request(secure: ApiServer, make: Make) -> None:
    """On the copy of his Configuration; his own keeps the token it had."""
    dynamic = secure.client(token="old")
    configuration = dynamic.client.configuration
    given = []

    def refresh(its: Any) -> None:
        given.append(its)
        its.api_key["authorization"] = f"Bearer {secure.token}"

    configuration.refresh_api_key_hook = refresh
    source = make(dynamic)
    assert source.list(LIST).status == 200
    assert given[0] is not configuration
    assert configuration.api_key == {"authorization": "Bearer old"}


def test_a_refresh_that_raises_is_told(secure: ApiServer, make: Make) -> None:
    """Where it is an error of the network; anything else is the caller's to see."""

    def refresh(_: Any) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    api = client_of(secure.url, api_key={"authorization": "x"}, refresh_api_key_hook=refresh)
    with pytest.raises(UnreachableError, match="refused"):
        make(api).list(LIST)


def test_a_client_certificate_of_a_kubeconfig_is_shown(
    secure: ApiServer, make: Make, tmp_path: Path
) -> None:
    """A certificate file that is not there is told by its name."""
    path = settings(secure, {"client-certificate": "/no/cert", "client-key": "/no/key"}, tmp_path)
    with pytest.raises(UnreachableError, match="/no/cert"):
        make(kubeconfig=path).list(LIST)


def test_two_sources_of_one_kubeconfig_share_nothing(secure: ApiServer, tmp_path: Path) -> None:
    """Closing one leaves the other."""
    path = settings(secure, {"token": secure.token}, tmp_path)
    one, other = Source(kubeconfig=path), Source(kubeconfig=path)
    assert one.list(LIST).status == other.list(LIST).status == 200
    one.close()
    assert other.list(LIST).status == 200
    other.close()
