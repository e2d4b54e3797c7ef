"""Plain kubeconfigs, read without the official client."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from dyninformer.errors import UnreachableError
from dyninformer.testing import ApiServer
from dyninformer.watching.client import Source
from dyninformer.watching.plain import plain_configuration

SERVER = {"server": "http://127.0.0.1:1"}


def test_a_brief_source_asks_without_the_official_client(tmp_path: Path) -> None:
    """Over TLS and with a token, as the kubeconfig has them."""
    with ApiServer(tls=True) as server:
        config = server.kubeconfig(tmp_path / "config")
        script = (
            "import sys; from dyninformer.watching.client import Source\n"
            "source = Source(kubeconfig=sys.argv[1], brief=True)\n"
            "print(source.get_json('/version').status, 'kubernetes' in sys.modules)\n"
            "source.close()"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(config)], capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["200", "False"]


def test_a_certificate_that_is_not_trusted_is_refused(tmp_path: Path) -> None:
    """Verification is what the official client would do, not less."""
    with ApiServer(tls=True) as server:
        config = server.kubeconfig(tmp_path / "config")
        said = yaml.safe_load(config.read_text())
        cluster = said["clusters"][0]["cluster"]
        cluster.pop("certificate-authority", None)
        another = trustme.CA().cert_pem.bytes()
        cluster["certificate-authority-data"] = base64.b64encode(another).decode()
        config.write_text(yaml.safe_dump(said))
        source = Source(kubeconfig=config, brief=True)
        with pytest.raises(UnreachableError, match=r"(?i)certificate"):
            source.get_json("/version")
        source.close()


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({**SERVER, "proxy-url": "http://proxy"}, {}),
        (SERVER, {"exec": {"command": "aws"}}),
        (SERVER, {"auth-provider": {"name": "oidc"}}),
        (SERVER, {"username": "a", "password": "b"}),
        (SERVER, {"tokenFile": "token"}),
        (SERVER, {"token": 7}),
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
    assert (found.pool["server_hostname"], found.pool["assert_hostname"]) == ("localhost",) * 2
    assert found.auth_settings()["BearerToken"]["value"] == "Bearer t"
    assert "t'" not in repr(found)
    insecure = {"server": "https://x", "insecure-skip-tls-verify": True}
    lax = plain_configuration(insecure, {"token": base64.b64encode(b"x").decode()}, "")
    assert lax is not None
    assert lax.pool["cert_reqs"] == 0
