"""What an official Configuration says about connections."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from kubernetes.client import Configuration

from dyninformer.transport.settings import TlsContexts, settings_of


def configuration(**values: Any) -> Configuration:
    """An official Configuration."""
    found = Configuration()
    found.host = "https://server.example:6443"
    for name, value in values.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize(
    ("host", "no_proxy", "past"),
    [
        ("https://server.example:6443", "server.example", True),
        ("https://server.example:6443", ".example", True),
        ("https://server.example:6443", "example", True),
        ("https://server.example:6443", "server.example:6443", True),
        ("https://server.example:6443", "other, *", True),
        ("https://server.example:6443", "ample", False),
        ("https://server.example:6443", "other", False),
        ("https://10.1.2.3", "10.0.0.0/8", True),
        ("https://10.1.2.3", "11.0.0.0/8,x/y", False),
        ("https://[fd00::1]:443", "fd00::/16", True),
    ],
)
def test_no_proxy_names_hosts_domains_and_networks(host: str, no_proxy: str, past: bool) -> None:
    """As the official client reads it."""
    found = settings_of(configuration(host=host, proxy="http://proxy:3128", no_proxy=no_proxy), {})
    assert found.endpoint.proxy == ("" if past else "http://proxy:3128")


def test_the_name_of_the_certificate_can_be_another_one() -> None:
    """`tls_server_name`, or `assert_hostname`, says which."""
    assert settings_of(configuration(tls_server_name="a"), {}).endpoint.server_name == "a"
    assert settings_of(configuration(assert_hostname="b"), {}).endpoint.server_name == "b"


def test_the_token_is_read_with_each_request() -> None:
    """A user may put another one into the Configuration at any time."""
    given = configuration(api_key={"authorization": "Bearer one"})
    found = settings_of(given, {})
    assert list(found.auth()) == [("authorization", "Bearer one")]
    given.api_key["authorization"] = "Bearer two"
    assert list(found.auth()) == [("authorization", "Bearer two")]
    assert not found.blocks


def test_a_hook_is_run_where_it_may_block() -> None:
    """It may run a plugin, for seconds."""

    def hook(given: Configuration) -> None:
        given.api_key["authorization"] = "Bearer new"

    found = settings_of(
        configuration(api_key={"authorization": "Bearer old"}, refresh_api_key_hook=hook), {}
    )
    assert found.blocks
    assert list(found.auth()) == [("authorization", "Bearer new")]


def test_a_certificate_that_is_not_verified_is_so_only_if_asked_for() -> None:
    """Neither is the name that it is for."""
    strict = TlsContexts(configuration())()
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert strict.minimum_version == ssl.TLSVersion.TLSv1_2
    loose = TlsContexts(configuration(verify_ssl=False))()
    assert (loose.verify_mode, loose.check_hostname) == (ssl.CERT_NONE, False)
    other_name = TlsContexts(configuration(assert_hostname=False))()
    assert (other_name.verify_mode, other_name.check_hostname) == (ssl.CERT_REQUIRED, False)


def test_a_context_is_made_again_only_when_a_file_has_changed(tmp_path: Path) -> None:
    """A rotated authority is trusted by the next connection."""
    path = tmp_path / "ca.crt"
    trustme.CA().cert_pem.write_to_path(path)
    contexts = TlsContexts(configuration(ssl_ca_cert=str(path)))
    first = contexts()
    assert contexts() is first
    other = tmp_path / "other.crt"
    trustme.CA().cert_pem.write_to_path(other)
    os.replace(other, path)
    assert contexts() is not first


def test_an_encrypted_key_asks_no_terminal(tmp_path: Path) -> None:
    """It is an error, which says what it is."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415

    certificate = trustme.CA().issue_cert("me")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "me.crt")
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    (tmp_path / "me.key").write_bytes(key)
    contexts = TlsContexts(
        configuration(cert_file=str(tmp_path / "me.crt"), key_file=str(tmp_path / "me.key"))
    )
    with pytest.raises(ValueError, match="encrypted"):
        contexts()
