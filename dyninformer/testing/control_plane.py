"""The real thing: etcd and kube-apiserver as child processes, up in three seconds.

`ControlPlane` has the same doors as `ApiServer`, so a test can run on either.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from urllib3.exceptions import HTTPError

from dyninformer.errors import DynInformerError
from dyninformer.testing.etcd import Etcd
from dyninformer.testing.processes import Processes, ReservedPort
from dyninformer.testing.rest import Rest, Source
from dyninformer.testing.status import ApiError

Object = dict[str, Any]
Process = Literal["etcd", "kube-apiserver"]

ASSETS = "KUBEBUILDER_ASSETS"
_KEPT = (
    b"/registry/leases/", b"/registry/masterleases/", b"/registry/peerserverleases/",
    b"/registry/apiregistration.k8s.io/",
)  # fmt: skip
"""What the API server writes for itself as long as it lives."""
_BINARIES: tuple[Process, ...] = ("etcd", "kube-apiserver")


class ControlPlaneError(DynInformerError, RuntimeError):
    """The control plane cannot be started, or does not come up; the message quotes its log."""


def find_assets(assets: str | os.PathLike[str] | None = None) -> Path:
    """The folder of etcd and kube-apiserver; a ControlPlaneError says what is missing.

    ``assets`` None asks the environment variable KUBEBUILDER_ASSETS, as envtest does.
    """
    named = os.fspath(assets) if assets is not None else os.environ.get(ASSETS, "")
    if not named:
        raise ControlPlaneError(
            f"{ASSETS} is not set: it names the folder of etcd and kube-apiserver. "
            "Build them with `make kube` in a clone of dyninformer, or get them with setup-envtest."
        )
    folder = Path(named)
    missing = [name for name in _BINARIES if not os.access(folder / name, os.X_OK)]
    if missing:
        raise ControlPlaneError(
            f"{ASSETS}={named} has no executable {' and no '.join(missing)}. "
            "Build them with `make kube` in a clone of dyninformer, or get them with setup-envtest."
        )
    return folder


class ControlPlane:
    """etcd and kube-apiserver on loopback, started by the constructor, killed for sure at the end.

    No controller manager runs: namespaces do not finish terminating, and owners do
    not take their dependents along. Compaction happens only when `compact` asks for
    it. Every method may be called from any thread, the process doors
    (``kill``, ``stop``, ``start``, ``restart``) from one thread at a time.

    ``users`` maps names to their groups; `token_for` gives each one's bearer token.
    ``apiserver_flags`` are added to the command line of kube-apiserver.
    """

    def __init__(
        self,
        assets: str | os.PathLike[str] | None = None,
        *,
        users: Mapping[str, Sequence[str]] | None = None,
        apiserver_flags: Sequence[str] = (),
        timeout: float = 60,
    ) -> None:
        self._assets = find_assets(assets)
        self._flags = tuple(apiserver_flags)
        self._timeout = timeout
        self._tokens = {name: secrets.token_urlsafe(24) for name in ("admin", *(users or {}))}
        self._ports = {name: ReservedPort() for name in ("etcd", "peer", "kube-apiserver")}
        self.directory = Path(tempfile.mkdtemp(prefix="dyninformer-control-plane-"))
        """Certificates, data and the log of each process; removed by `close`."""
        self.ca = self.directory / "ca.crt"
        """The certificate authority that clients must trust, as a PEM file."""
        self._write_credentials(users or {})
        self._processes = Processes(self.directory)
        self._etcd = Etcd(f"http://127.0.0.1:{self._ports['etcd'].number}")
        self._rest = Rest(self.url, self.token, str(self.ca))
        try:
            self.start("etcd")
            self.start("kube-apiserver")
            self._wait_for("the service default/kubernetes", self._is_furnished)
            self._pristine = self._etcd.keys()
            self._pristine_groups = self._groups()
        except BaseException:
            self._processes.close()
            self._etcd.close()
            self._rest.close()
            raise

    # -- what a client needs to know --------------------------------------------------

    @property
    def url(self) -> str:
        """Where the API server listens; the same after a restart."""
        return f"https://127.0.0.1:{self._ports['kube-apiserver'].number}"

    @property
    def token(self) -> str:
        """The bearer token of a member of system:masters."""
        return self._tokens["admin"]

    def token_for(self, user: str) -> str:
        """The bearer token of one of ``users``."""
        return self._tokens[user]

    # -- the processes ------------------------------------------------------------------

    def start(self, process: Process) -> None:
        """Start a process that is not running, on its old port and data, and wait for it.

        Raises ControlPlaneError, with the end of its log, if it does not come up.
        """
        self._processes.start(process, self._command(process))
        ready = self._etcd.healthy if process == "etcd" else self._ready
        self._wait_for(process, ready, process)

    def stop(self, process: Process, timeout: float = 70) -> None:
        """SIGTERM, and wait for the end; SIGKILL after ``timeout`` seconds.

        kube-apiserver keeps serving its open watches for up to 60 s after SIGTERM.
        """
        self._processes.terminate(process, timeout)

    def kill(self, process: Process) -> None:
        """SIGKILL, and wait until it is gone: connections end without a goodbye."""
        self._processes.kill(process)

    def pause(self, process: Process) -> None:
        """SIGSTOP: connections stay open, and nothing answers."""
        self._processes.send(process, signal.SIGSTOP)

    def resume(self, process: Process) -> None:
        """SIGCONT: go on after `pause`."""
        self._processes.send(process, signal.SIGCONT)

    def restart(self) -> None:
        """Kill the API server and start it again: same port, same data, empty watch caches."""
        self.kill("kube-apiserver")
        self.start("kube-apiserver")

    def log(self, process: Process) -> str:
        """What a process has printed since the beginning."""
        return self._processes.log(process).read_text(errors="replace")

    def close(self) -> None:
        """Kill the processes and remove the folder. Idempotent."""
        self._processes.close()
        self._etcd.close()
        self._rest.close()
        for port in self._ports.values():
            port.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ControlPlane {self.url}>"

    # -- the objects ---------------------------------------------------------------------

    def install(self, *sources: Source) -> None:
        """Create what YAML files, folders of them, or dicts hold; CRDs are served on return."""
        self._rest.install(*sources)

    def create(self, obj: Mapping[str, Any], namespace: str | None = None) -> Object:
        """Create an object, and return it as the server stored it."""
        return self._rest.create(obj, namespace)

    # -- the state ------------------------------------------------------------------------

    def compact(self, revision: int | None = None) -> int:
        """Forget every state before ``revision`` (None: the newest), and return that revision.

        etcd forgets at once. The API server goes on answering from the snapshots in
        its watch caches until it polls for compactions, up to 15 s later.
        """
        chosen = self._etcd.revision() if revision is None else revision
        self._etcd.compact(chosen)
        return chosen

    def reset(self) -> None:
        """Remove everything that was created since the start, and wait until it is gone.

        Objects go straight from etcd, so neither finalizers nor a missing controller
        can hold them back. What was there from the start is left as it is.
        """
        for key in sorted(self._etcd.keys() - self._pristine):
            if not key.startswith(_KEPT):
                self._etcd.delete(key)
        self._rest.forget()
        self._wait_for(
            "the removal of all custom resources",
            lambda: self._groups() <= self._pristine_groups,
        )

    # -- inside -----------------------------------------------------------------------------

    def _command(self, process: Process) -> list[str]:
        client = f"http://127.0.0.1:{self._ports['etcd'].number}"
        peer = f"http://127.0.0.1:{self._ports['peer'].number}"
        here = self.directory
        if process == "etcd":
            return [
                str(self._assets / "etcd"), "--name", "test", "--data-dir", str(here / "etcd"),
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", f"test={peer}", "--socket-reuse-port=true",
                "--unsafe-no-fsync", "--log-level", "warn",
            ]  # fmt: skip
        return [
            str(self._assets / "kube-apiserver"), "--etcd-servers", client,
            "--bind-address", "127.0.0.1", "--permit-port-sharing",
            "--secure-port", str(self._ports["kube-apiserver"].number),
            "--tls-cert-file", str(here / "server.crt"),
            "--tls-private-key-file", str(here / "server.key"),
            "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-signing-key-file", str(here / "service-accounts.key"),
            "--service-account-key-file", str(here / "service-accounts.key"),
            "--token-auth-file", str(here / "tokens.csv"), "--authorization-mode", "RBAC",
            "--service-cluster-ip-range", "10.0.0.0/24",
            "--disable-admission-plugins", "ServiceAccount",
            "--enable-priority-and-fairness=false", "--etcd-compaction-interval=0",
            *self._flags,
        ]  # fmt: skip

    def _write_credentials(self, users: Mapping[str, Sequence[str]]) -> None:
        authority = trustme.CA()
        certificate = authority.issue_cert("127.0.0.1", "localhost")
        chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
        key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        groups = {"admin": ("system:masters",), **(users or {})}
        rows = [
            f'{token},{name},{name},"{",".join(groups[name])}"\n'
            for name, token in self._tokens.items()
        ]
        self.ca.write_bytes(authority.cert_pem.bytes())
        (self.directory / "server.crt").write_bytes(chain)
        for name, content in (
            ("server.key", certificate.private_key_pem.bytes()),
            ("service-accounts.key", key),
            ("tokens.csv", "".join(rows).encode()),
        ):
            _write_private(self.directory / name, content)

    def _ready(self) -> bool:
        return self._answers("/readyz")

    def _is_furnished(self) -> bool:
        return self._answers("/api/v1/namespaces/default/services/kubernetes")

    def _answers(self, path: str) -> bool:
        try:
            self._rest.ask("GET", path, timeout=5)
        except (ApiError, HTTPError):
            return False
        return True

    def _groups(self) -> set[str]:
        return {group["name"] for group in self._rest.ask("GET", "/apis")["groups"]}

    def _wait_for(
        self, what: str, condition: Callable[[], bool], process: Process = "kube-apiserver"
    ) -> None:
        deadline = time.monotonic() + self._timeout
        while not condition():
            code = self._processes.exit_code(process)
            if code is None and time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            state = "runs" if code is None else f"ended with code {code}"
            raise ControlPlaneError(
                f"{process} {state}, and after at most {self._timeout:g} s there is no sign of "
                f"{what}. The end of its log:\n{self._processes.tail(process)}"
            )


def _write_private(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
