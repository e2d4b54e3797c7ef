"""Where settings come from: the caller's client, kubeconfigs, a pod; and what is said without."""

from __future__ import annotations

import errno
import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from kubernetes import client as official
from kubernetes import config as official_config

from dyninformer.errors import ConfigError, UnreachableError
from dyninformer.testing import ApiServer
from dyninformer.transport.config import Environment, KubeconfigFiles
from dyninformer.watching.client import Source
from tests.mutated import mutated
from tests.transport.conftest import Make
from tests.transport.wires import LIST, config_map, kubeconfig, names, whole


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment without any configuration."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return monkeypatch


def test_a_dynamic_client_an_api_client_and_a_kubeconfig_all_do(
    server: ApiServer, secure: ApiServer, make: Make, nowhere: pytest.MonkeyPatch
) -> None:
    """With and without TLS; $KUBECONFIG is found too."""
    for each in (server, secure):
        dynamic = each.client()
        nowhere.setenv("KUBECONFIG", str(each.kubeconfig()))
        for source in (
            make(dynamic),
            make(dynamic.client),
            make(kubeconfig=each.kubeconfig()),
            make(),
        ):
            reply = source.list(LIST)
            assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
            assert names(whole(reply)) == ["a"]
            assert source.host == each.url


def test_a_token_that_the_caller_replaces_is_used(server: ApiServer, make: Make) -> None:
    """As programs do that get their tokens by themselves."""
    api = server.client(token="wrong").client
    source = make(api)
    assert source.list(LIST).status == 401
    api.configuration.api_key["authorization"] = f"Bearer {server.token}"
    assert source.list(LIST).status == 200


def test_something_else_than_a_client_is_refused() -> None:
    """At once, and by name."""
    with pytest.raises(ConfigError, match=r"not CoreV1Api"):
        Source(cast(Any, official.CoreV1Api()))
    with pytest.raises(ConfigError, match="not both"):
        Source(official.ApiClient(), context="x")


def test_where_it_was_looked_for_is_told(nowhere: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """When there is no configuration anywhere."""
    with pytest.raises(ConfigError) as caught:
        Source()
    for part in ("$KUBECONFIG: not set", ".kube", "KUBERNETES_SERVICE_HOST", "dyninformer demo"):
        assert part in str(caught.value)
    nowhere.setenv("KUBECONFIG", "/nowhere/a:/nowhere/b")
    with pytest.raises(ConfigError, match=r"/nowhere/a:/nowhere/b.*no such file"):
        Source()
    with pytest.raises(ConfigError, match=r"no kubeconfig at /nowhere/c"):
        Source(kubeconfig="/nowhere/c")
    with pytest.raises(ConfigError, match="context 'prod'"):
        Source(context="prod")


def test_what_cannot_be_looked_at_is_not_said_to_be_absent(
    nowhere: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It may be there: in another user's home. Nor is a folder."""
    looked_at = os.stat

    def refused(path: Any, **options: Any) -> os.stat_result:
        if str(path) == "/another/home/config":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return looked_at(path, **options)

    with pytest.raises(ConfigError, match="not an ordinary file"):
        Source(kubeconfig=tmp_path)
    nowhere.setattr(os, "stat", refused)
    nowhere.setenv("KUBECONFIG", "/another/home/config")
    with pytest.raises(ConfigError, match="this user may not look there"):
        Source()
    with pytest.raises(ConfigError, match="this user may not look there"):
        Source(kubeconfig="/another/home/config")


def test_the_home_directory_and_several_files_are_found(
    server: ApiServer, make: Make, nowhere: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files of KUBECONFIG are merged; those that are missing are passed over."""
    (tmp_path / ".kube").mkdir()
    server.kubeconfig(tmp_path / ".kube" / "config")
    assert names(whole(make().list(LIST))) == ["a"]
    other = kubeconfig(tmp_path / "other", "http://127.0.0.1:1", {})
    text = other.read_text().replace("only", "other").replace("current-context: other", "")
    other.write_text(text.replace("name: c", "name: d").replace("cluster: c", "cluster: d"))
    nowhere.setenv("KUBECONFIG", f"{other}:/missing:{tmp_path / '.kube' / 'config'}")
    assert make().host == server.url
    assert make(context="other").host == "http://127.0.0.1:1"


def test_a_context_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    """Before anything is asked."""
    path = kubeconfig(tmp_path / "k", "https://127.0.0.1:1", {"token": "s3cr3t"})
    with pytest.raises(ConfigError, match=r"no context 'prod'; it has: only"):
        Source(kubeconfig=path, context="prod")


def test_of_entries_with_one_name_the_first_files_counts(tmp_path: Path, make: Make) -> None:
    """For clusters, contexts and users, as kubectl merges them."""
    paths = [
        kubeconfig(tmp_path / str(number), f"https://host-{number}", {"token": "x"})
        for number in (1, 2)
    ]
    assert make(kubeconfig=":".join(map(str, paths))).host == "https://host-1"
    assert make(kubeconfig=":".join(map(str, reversed(paths)))).host == "https://host-2"


@pytest.mark.parametrize(
    "text",
    [
        "users: [{name: u, user: {token: s3cr3t}}]\n",
        "current-context: x\ncontexts: [{name: x, context: {user: s3cr3t}}]\nclusters: []\n",
        "{token: s3cr3t, : [\n",
        "token: s3cr3t",
        "contexts: s3cr3t\ncurrent-context: x",
        "contexts: [s3cr3t]\ncurrent-context: x",
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: s3cr3t}}]\n"
            "clusters: [{name: c, cluster: {token: s3cr3t}}]\n"
        ),
        "[]",
        "",
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_not_quoted(tmp_path: Path, text: str) -> None:
    """It holds secrets."""
    path = tmp_path / "k"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Source(kubeconfig=path)
    assert str(path) in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_service_account_of_a_pod_is_used(
    secure: ApiServer, make: Make, nowhere: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where there is no kubeconfig; its token is read anew when told to, however fresh."""
    token = tmp_path / "token"
    token.write_text("stale")
    host, _, port = secure.url.removeprefix("https://").partition(":")
    nowhere.setenv("KUBERNETES_SERVICE_HOST", host)
    nowhere.setenv("KUBERNETES_SERVICE_PORT", port)
    nowhere.setattr("dyninformer.transport.config.ACCOUNT", token)
    loader = official_config.incluster_config
    nowhere.setattr(loader, "SERVICE_TOKEN_FILENAME", str(token))
    nowhere.setattr(loader, "SERVICE_CERT_FILENAME", str(secure.ca))
    source = make()
    assert source.host == secure.url
    assert source.list(LIST).status == 401
    token.write_text(secure.token)
    source.reload_credentials()
    assert names(whole(source.list(LIST))) == ["a"]


def test_verification_is_off_only_where_the_kubeconfig_says_so(
    secure: ApiServer, make: Make, tmp_path: Path
) -> None:
    """insecure-skip-tls-verify goes on working; tls-server-name too."""
    user = {"token": secure.token}
    open_ = kubeconfig(tmp_path / "o", secure.url, user, **{"insecure-skip-tls-verify": True})
    unverified = make(kubeconfig=open_)
    assert unverified.list(LIST).status == 200
    assert unverified.doubt.startswith(f"the certificate of {secure.url} is not verified")
    authority = {"certificate-authority": str(secure.ca)}
    named = kubeconfig(
        tmp_path / "n", secure.url, user, **authority, **{"tls-server-name": "localhost"}
    )
    assert make(kubeconfig=named).list(LIST).status == 200
    wrong = kubeconfig(
        tmp_path / "w", secure.url, user, **authority, **{"tls-server-name": "other"}
    )
    with pytest.raises(UnreachableError, match="not trusted"):
        make(kubeconfig=wrong).list(LIST)


def test_the_client_for_writes_writes(
    secure: ApiServer, make: Make, nowhere: pytest.MonkeyPatch
) -> None:
    """The caller's own, or one with the same settings; it outlives the source."""
    dynamic = secure.client()
    assert make(dynamic).writes_client is dynamic
    for source in (make(kubeconfig=secure.kubeconfig()), make(secure.client().client)):
        before = len(secure.requests)
        writes = source.writes_client
        assert len(secure.requests) == before
        assert source.writes_client is writes
        source.close()
        maps = writes.resources.get(api_version="v1", kind="ConfigMap")
        maps.patch(config_map("a", seen="yes"), namespace="default")
        assert secure.get("configmaps/a")["data"]["seen"] == "yes"
        writes.client.close()


KUBECONFIG = b"""apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1", certificate-authority-data: aGVsbG8=}}]
contexts: [{name: c, context: {cluster: c, user: u, namespace: n}}]
users: [{name: u, user: {token: abc, client-certificate-data: aGVsbG8=}}]
"""
KUBECONFIG_TOKENS = [
    b":",
    b"-",
    b"\n",
    b"  ",
    b"null",
    b"[]",
    b"{}",
    b"5",
    b"!!python/object:os.system",
    b"&a",
    b"*a",
    b"\t",
    b"\xff",
    b"\0",
    b'"',
    b"~",
    b"{? [] : 1}",
    b"http://[::1",
    b"http://:x",
    b"\xef\xbb\xbf",
    b"exec: {command: 5}",
    b"auth-provider: {name: gcp}",
    b"server: 5",
    b"proxy-url: 5",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(mutated([KUBECONFIG], KUBECONFIG_TOKENS))
def test_whatever_a_kubeconfig_is_it_is_read_or_refused_in_words(
    tmp_path: Path, data: bytes
) -> None:
    """When it is named, or when it is read for the first request."""
    path = tmp_path / "config"
    path.write_bytes(data)
    with suppress(ConfigError, UnreachableError), closing(Source(kubeconfig=path)) as source:
        Environment(KubeconfigFiles((str(path),))).load()
        assert source.host
