"""The command lines of a control plane, and the credentials they point to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from dyninformer.testing.kubeconfig import write_private

CA_FILE = "ca.crt"


def etcd_command(assets: Path, directory: Path, port: int, peer_port: int) -> list[str]:
    """One etcd that may lose its data when the machine does, and is quick for it."""
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    return [
        str(assets / "etcd"), "--name", "test", "--data-dir", str(directory / "etcd"),
        "--listen-client-urls", client, "--advertise-client-urls", client,
        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
        "--initial-cluster", f"test={peer}", "--socket-reuse-port=true",
        "--unsafe-no-fsync", "--log-level", "warn",
    ]  # fmt: skip


def apiserver_command(assets: Path, directory: Path, etcd_port: int, port: int) -> list[str]:
    """A kube-apiserver with RBAC, the tokens of `write_credentials`, and no compaction."""
    return [
        str(assets / "kube-apiserver"), "--etcd-servers", f"http://127.0.0.1:{etcd_port}",
        "--bind-address", "127.0.0.1", "--secure-port", str(port), "--permit-port-sharing",
        "--tls-cert-file", str(directory / "server.crt"),
        "--tls-private-key-file", str(directory / "server.key"),
        "--service-account-issuer", "https://kubernetes.default.svc",
        "--service-account-signing-key-file", str(directory / "service-accounts.key"),
        "--service-account-key-file", str(directory / "service-accounts.key"),
        "--token-auth-file", str(directory / "tokens.csv"), "--authorization-mode", "RBAC",
        "--service-cluster-ip-range", "10.0.0.0/24",
        "--disable-admission-plugins", "ServiceAccount",
        "--enable-priority-and-fairness=false", "--etcd-compaction-interval=0",
    ]  # fmt: skip


def write_credentials(
    directory: Path, tokens: Mapping[str, str], groups: Mapping[str, Sequence[str]]
) -> None:
    """A certificate for loopback, a key for service accounts, and a token for each user."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    service_accounts = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,  # what kube-apiserver can read
        serialization.NoEncryption(),
    )
    rows = [f'{token},{name},{name},"{",".join(groups[name])}"\n' for name, token in tokens.items()]
    files = {
        CA_FILE: authority.cert_pem.bytes(),
        "server.crt": b"".join(blob.bytes() for blob in certificate.cert_chain_pems),
        "server.key": certificate.private_key_pem.bytes(),
        "service-accounts.key": service_accounts,
        "tokens.csv": "".join(rows).encode(),
    }
    for name, content in files.items():
        write_private(directory / name, content)
