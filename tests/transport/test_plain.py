"""Plain kubeconfigs, read without the official client."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from dyninformer.testing import ApiServer
from dyninformer.transport.plain import plain_configuration

SERVER = {"server": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({**SERVER, "proxy-url": "http://proxy"}, {}),
        (SERVER, {"exec": {"command": "aws"}}),
        (SERVER, {"auth-provider": {"name": "oidc"}}),
        (SERVER, {"username": "a", "password": "b"}),
        (SERVER, {"tokenFile": "token"}),
        (SERVER, {"token": 7}),
        (SERVER, {"token": "two\nlines"}),
        ({"server": "https://user:password@x"}, {}),
        ({"server": "unix:///x"}, {}),
        ({"server": "https://x", "certificate-authority": "nowhere.crt"}, {}),
        ({"server": "https://x", "certificate-authority-data": "!"}, {}),
        (
            {"server": "https://x"},
            {"client-certificate-data": "eA==", "client-key-data": "eA=="},
        ),
    ],
)
def test_what_is_not_plain_is_left_to_the_official_client(
    cluster: dict[str, Any], user: dict[str, Any], tmp_path: Path
) -> None:
    """It knows more, and says what is wrong."""
    assert plain_configuration(cluster, user, str(tmp_path)) is None


def test_a_proxy_of_the_environment_is_left_to_the_official_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It knows which hosts go past it."""
    assert plain_configuration(SERVER, {}, "") is not None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    assert plain_configuration(SERVER, {}, "") is None


def test_a_name_to_verify_is_taken(tmp_path: Path) -> None:
    """It is for both: which certificate the server shows, and whose it has to be."""
    with ApiServer(tls=True) as server:
        said = yaml.safe_load(server.kubeconfig(tmp_path / "config").read_text())
    cluster = {**said["clusters"][0]["cluster"], "tls-server-name": "localhost"}
    found = plain_configuration(cluster, {"token": "t"}, str(tmp_path))
    assert found is not None
    assert found.server_name == "localhost"
    assert found.headers["Authorization"] == "Bearer t"
    assert "t'" not in repr(found)
    insecure = {"server": "https://x", "insecure-skip-tls-verify": True}
    lax = plain_configuration(insecure, {"token": base64.b64encode(b"x").decode()}, "")
    assert lax is not None
    assert lax.tls is not None
    assert lax.tls.verify_mode == ssl.CERT_NONE
