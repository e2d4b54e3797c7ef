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
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from dyninformer.testing.api.access import MASTERS
from dyninformer.testing.assets import ControlPlaneError, find_assets
from dyninformer.testing.etcd import Etcd
from dyninformer.testing.kubeconfig import kubeconfig_text, write_private
from dyninformer.testing.launching import (
    CA_FILE,
    apiserver_command,
    etcd_command,
    write_credentials,
)
from dyninformer.testing.object_door import ObjectDoor
from dyninformer.testing.objects import Objects
from dyninformer.testing.processes import Processes, ReservedPort
from dyninformer.testing.remote import RemoteApi
from dyninformer.types import Names, Object

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

T = TypeVar("T")
Process = Literal["etcd", "kube-apiserver"]

_KEPT = (
    b"/registry/leases/", b"/registry/masterleases/", b"/registry/peerserverleases/",
    b"/registry/apiregistration.k8s.io/",
)  # fmt: skip
"""What the API server writes for itself as long as it lives."""
_LONG_AGO = "2000-01-01T00:00:00Z"
_POLL_SECONDS = 0.01


class ControlPlane(ObjectDoor):
    """etcd and kube-apiserver on loopback, started by the constructor, killed for sure at the end.

    No controller manager runs: namespaces do not finish terminating, and owners do
    not take their dependents along. Compaction happens only when `compact` asks for
    it. Every method may be called from any thread, the process doors
    (``kill``, ``stop``, ``start``, ``restart``) from one thread at a time.

    ``users`` maps names to their groups; `token_for` gives each one's bearer token.
    ``apiserver_flags`` are added to the command line of kube-apiserver.

    >>> def test_a_namespace_is_there():
    ...     with ControlPlane() as server:  # needs the programs that KUBEBUILDER_ASSETS names
    ...         assert server.get("namespaces/default")["status"]["phase"] == "Active"
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
        self.ca = self.directory / CA_FILE
        """The certificate authority that clients must trust, as a PEM file."""
        write_credentials(self.directory, self._tokens, {"admin": [MASTERS], **(users or {})})
        self._processes = Processes(self.directory)
        self._etcd = Etcd(f"http://127.0.0.1:{self._ports['etcd'].number}")
        self._remote = RemoteApi(self.url, self.token, str(self.ca))
        self._objects = Objects(self._remote.handle, self._remote, self.token)
        try:
            self.start("etcd")
            self.start("kube-apiserver")
            self._wait_for("the service default/kubernetes", self._is_furnished)
            self._pristine = self._etcd.keys()
            self._pristine_groups = self._groups()
        except BaseException:
            self.close()
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

    def kubeconfig(self, path: Path | str | None = None, *, token: str | None = None) -> Path:
        """Write a kubeconfig that only its owner can read, and return where it is.

        Without ``path`` it lies in the folder that `close` removes. ``token`` is that
        of another user, by default the one who may do all.
        """
        chosen = token or self.token
        if path is None:
            users = [name for name, known in self._tokens.items() if known == chosen]
            path = self.directory / f"kubeconfig-{users[0] if users else 'other'}"
        text = kubeconfig_text(self.url, chosen, self.ca.read_bytes())
        write_private(Path(path), text.encode())
        return Path(path)

    def client(self, *, token: str | None = None) -> DynamicClient:
        """The official DynamicClient, connected; it asks nothing before it is used."""
        from dyninformer.testing.client import dynamic_client  # noqa: PLC0415 - 0.25 s of import

        return dynamic_client(self.url, token or self.token, self.ca)

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

    def pid(self, process: Process) -> int:
        """The process id, also of a process that has ended."""
        return self._processes.pid(process)

    def log(self, process: Process) -> str:
        """What a process has printed since the beginning."""
        return self._processes.log(process).read_text(errors="replace")

    def close(self) -> None:
        """Kill the processes and remove the folder. Idempotent."""
        self._processes.close()
        self._etcd.close()
        self._remote.close()
        for port in self._ports.values():
            port.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ControlPlane {self.url}>"

    # -- the state ------------------------------------------------------------------------

    def compact(self, revision: int | None = None) -> int:
        """Forget every state before ``revision`` (None: the newest), and return that revision.

        etcd forgets at once. The API server goes on answering from the snapshots in
        its watch caches until it polls for compactions, up to 15 s later.
        """
        chosen = self._etcd.revision() if revision is None else revision
        self._etcd.compact(chosen)
        return chosen

    def snapshot(self) -> Path:
        """The state as it is now, a backup for `restore`; etcd is away for a moment."""
        number = len(list(self.directory.glob("snapshot-*")))
        target = self.directory / f"snapshot-{number}"
        self.kill("etcd")
        shutil.copytree(self.directory / "etcd", target)
        self.start("etcd")
        return target

    def restore(self, snapshot: Path) -> None:
        """Go back to a state of before, as a cluster restored from a backup.

        resourceVersions are those of then, and will be used again. Connections end.
        """
        self.kill("kube-apiserver")
        self.kill("etcd")
        shutil.rmtree(self.directory / "etcd")
        shutil.copytree(snapshot, self.directory / "etcd")
        self.start("etcd")
        self.start("kube-apiserver")

    def reset(self) -> None:
        """Remove everything that was created since the start, and wait until it is gone.

        Objects go straight from etcd, so neither finalizers nor a missing controller
        can hold them back. What was there from the start is left as it is.
        """
        for key in sorted(self._etcd.keys() - self._pristine):
            if not key.startswith(_KEPT):
                self._etcd.delete(key)
        self._wait_for(
            "the removal of all custom resources",
            lambda: self._groups() <= self._pristine_groups,
        )

    # -- inside -----------------------------------------------------------------------------

    def _command(self, process: Process) -> list[str]:
        ports = {name: port.number for name, port in self._ports.items()}
        if process == "etcd":
            return etcd_command(self._assets, self.directory, ports["etcd"], ports["peer"])
        command = apiserver_command(
            self._assets, self.directory, ports["etcd"], ports["kube-apiserver"]
        )
        return [*command, *self._flags]

    def _ready(self) -> bool:
        return self._remote.answers("/readyz")

    def _is_furnished(self) -> bool:
        return self._remote.answers("/api/v1/namespaces/default/services/kubernetes")

    def _groups(self) -> set[str]:
        return {resource.group for resource in self._remote.all()}

    def _with_objects(self, act: Callable[[Objects], T]) -> T:
        return act(self._objects)

    def _wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _unestablished(self, crds: Names) -> Names:
        """Those of the CRDs that are not established, not discovered, or not yet listed."""
        waiting = set(super()._unestablished(crds))
        return [name for name in crds if name in waiting or not self._is_served(name)]

    def _is_served(self, name: str) -> bool:
        crd = self._objects.get(f"customresourcedefinitions/{name}")
        self._let_creates_through(crd)
        spec = crd["spec"]
        group, plural = spec["group"], spec["names"]["plural"]
        versions = {version["name"] for version in spec["versions"] if version["served"]}
        known = {each.version for each in self._remote.all() if each.full_name == name}
        return versions == known and all(
            self._remote.answers(f"/apis/{group}/{version}/{plural}") for version in versions
        )

    def _let_creates_through(self, crd: Object) -> None:
        """Make the CRD look long established.

        For 2 s after it was established a server holds every create back, so that
        other servers learn of the CRD first. Here there is only one.
        """
        conditions = crd["status"]["conditions"]
        if any(each["lastTransitionTime"] != _LONG_AGO for each in conditions):
            aged = [{**each, "lastTransitionTime": _LONG_AGO} for each in conditions]
            self._objects.patch(crd, {"status": {"conditions": aged}}, subresource="status")

    def _wait_for(
        self, what: str, condition: Callable[[], bool], process: Process = "kube-apiserver"
    ) -> None:
        deadline = time.monotonic() + self._timeout
        while not condition():
            code = self._processes.exit_code(process)
            if code is None and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
                continue
            state = "runs" if code is None else f"ended with code {code}"
            raise ControlPlaneError(
                f"{process} {state}, and after at most {self._timeout:g} s there is no sign of "
                f"{what}. The end of its log:\n{self._processes.tail(process)}"
            )
