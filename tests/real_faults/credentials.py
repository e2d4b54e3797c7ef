"""Users of a real API server whose credentials run out, and are rotated: tokens and certificates.

The tokens are those of service accounts, signed here with the control plane's own key, since a
server makes none that lives for less than ten minutes. That they have run out is the server's own
finding.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from dyninformer.testing import ControlPlane
from dyninformer.testing.client import write_private
from dyninformer.types import Object

_RBAC = "rbac.authorization.k8s.io"

ISSUER = "https://kubernetes.default.svc"
LIFE = 10.0
"""Seconds that a token or a certificate is good for."""
SERVER_REMEMBERS = 2.0
"""Seconds that are given to clocks and caches until what has run out is refused."""


def write_kubeconfig(path: Path, cluster: Object, user: Object) -> Path:
    """Write a kubeconfig of this user, for this cluster, and return where it is."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    write_private(path, json.dumps(config).encode())
    return path


def user(name: str) -> Object:
    """Who a binding is for."""
    return {"kind": "User", "name": name, "apiGroup": _RBAC}


def may_read(name: str, group: str, resource: str, subjects: list[Object]) -> list[Object]:
    """A ClusterRole to read a resource, and its binding."""
    rules = [{"apiGroups": [group], "resources": [resource], "verbs": ["get", "list", "watch"]}]
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
    return [
        {**role, "rules": rules},
        {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects},
    ]


class Rotation:
    """Rotates credentials long before they run out, as kubelets do, until it is told not to."""

    def __init__(self, rotated: Mapping[str, Account | Certified]) -> None:
        self._rotated = rotated
        self._lock = threading.Lock()  # guards _halted, and the files of credentials
        self._halted: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rotation")
        self._thread.start()

    @contextmanager
    def halted(self, name: str) -> Iterator[None]:
        """The credentials have run out when the block begins, and are new when it is left."""
        with self._lock:
            self._halted.add(name)
        self._over.wait(LIFE + SERVER_REMEMBERS)
        try:
            yield
        finally:
            with self._lock:
                self._halted.remove(name)
                self._rotated[name].rotate()

    def close(self) -> None:
        """End it."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(LIFE / 5):
            with self._lock:
                for name in self._rotated.keys() - self._halted:
                    self._rotated[name].rotate()


class Account:
    """A service account, its tokens, and a file that has the current one."""

    def __init__(self, server: ControlPlane, name: str, folder: Path) -> None:
        self.subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        self.file = folder / f"token-of-{name}"
        self._server = server
        self._name = name
        pem = (server.directory / "service-accounts.key").read_bytes()
        key = serialization.load_pem_private_key(pem, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key
        self.create()

    def create(self) -> None:
        """Create the account: no token of an earlier one of its name is good any more."""
        metadata = {"name": self._name, "namespace": "default"}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        self._uid = self._server.create(account)["metadata"]["uid"]
        self.rotate()

    def delete(self) -> None:
        """Delete the account: its tokens are refused."""
        self._server.delete(f"serviceaccounts/{self._name}")

    def rotate(self) -> None:
        """Put a new token in place of the one in the file."""
        _replace(self.file, self._token().encode())

    def _token(self) -> str:
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": ISSUER,
            "aud": [ISSUER],
            "iat": now,
            "nbf": now,
            "exp": now + int(LIFE),
            "jti": secrets.token_hex(8),
            "sub": f"system:serviceaccount:default:{self._name}",
            "kubernetes.io": {
                "namespace": "default",
                "serviceaccount": {"name": self._name, "uid": self._uid},
            },
        }
        signed = f"{_part({'alg': 'ES256', 'typ': 'JWT'})}.{_part(claims)}"
        r, s = utils.decode_dss_signature(
            self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        )
        return f"{signed}.{_base64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def by_token_file(account: Account) -> Object:
    """A user whose token is in a file."""
    return {"tokenFile": str(account.file)}


def by_plugin(account: Account, folder: Path) -> Object:
    """A user whose token a credential plugin prints: a program that reads the file."""
    version = "client.authentication.k8s.io/v1"
    plugin = folder / "plugin.sh"
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": "%s"}}
    plugin.write_text(f'printf \'{json.dumps(credential)}\' "$(cat "$1")"\n')
    arguments = [str(plugin), str(account.file)]
    asked = {"command": "/bin/sh", "args": arguments, "interactiveMode": "Never"}
    return {"exec": {"apiVersion": version, **asked}}


class Certified:
    """A user with a client certificate, in files."""

    def __init__(self, name: str, folder: Path) -> None:
        self.subject = user(name)
        self.authority = folder / "clients.crt"
        self._ca = trustme.CA()
        self._name = name
        self._certificate = folder / f"{name}.crt"
        self._key = folder / f"{name}.key"
        write_private(self.authority, self._ca.cert_pem.bytes())
        self.rotate()

    @property
    def user(self) -> Object:
        """The user's entry of a kubeconfig."""
        return {"client-certificate": str(self._certificate), "client-key": str(self._key)}

    def rotate(self) -> None:
        """Put a new certificate and its key in place of those in the files."""
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=LIFE)
        issued = self._ca.issue_cert(self._name, common_name=self._name, not_after=end)
        _replace(self._key, issued.private_key_pem.bytes())
        _replace(self._certificate, issued.cert_chain_pems[0].bytes())


def _replace(path: Path, content: bytes) -> None:
    """At once: whoever reads has the old content or the new."""
    new = path.with_suffix(".new")
    write_private(new, content)
    os.replace(new, path)


def _part(claims: dict[str, Any]) -> str:
    return _base64(json.dumps(claims).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
