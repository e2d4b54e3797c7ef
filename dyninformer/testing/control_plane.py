"""The real thing: etcd and kube-apiserver as child processes, up in three seconds.

`ControlPlane` has the same methods as `ApiServer`, so a test can run on either.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args
from urllib.parse import quote, urlencode

import urllib3

from dyninformer.checked import (
    checked_mapping,
    checked_number,
    checked_or_none,
    checked_path,
    checked_text,
    checked_texts,
    wrong,
)
from dyninformer.errors import DynInformerError
from dyninformer.testing.api.access import MASTERS
from dyninformer.testing.client import (
    checked_token,
    dynamic_client,
    kubeconfig_text,
    write_private,
)
from dyninformer.testing.cluster.resources import Resource, Resources
from dyninformer.testing.messages import Request, Response, body_of
from dyninformer.testing.objects import ObjectMethods
from dyninformer.testing.processes import Processes, ReservedPort
from dyninformer.types import Names, Object

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

T = TypeVar("T")
Process = Literal["etcd", "kube-apiserver"]

_KEPT = (
    b"/registry/leases/",
    b"/registry/masterleases/",
    b"/registry/peerserverleases/",
    b"/registry/apiregistration.k8s.io/",
)
"""What the API server writes for itself as long as it lives."""
EMBEDDED_ALONE = frozenset({"access", "faults", "load", "requests", "unload"})
"""What `ApiServer` has, and no server whose insides are not ours."""
_LONG_AGO = "2000-01-01T00:00:00Z"
_POLL_SECONDS = 0.01


class ControlPlane(ObjectMethods):
    """etcd and kube-apiserver on loopback, started by the constructor, killed for sure at the end.

    No controller manager runs: namespaces do not finish terminating, and owners do
    not take their dependents along. Compaction happens only when `compact` asks for
    it. Every method may be called from any thread, the methods for processes
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
        if users is not None:
            give = "a mapping from names to lists of groups"
            for name, groups in checked_mapping("users", users, give).items():
                if isinstance(groups, str):
                    raise wrong(f"users[{name!r}]", groups, "several groups, in a list")
                checked_texts(f"users[{name!r}]", groups, "several groups, in a list")
        if isinstance(apiserver_flags, str):
            raise wrong("apiserver_flags", apiserver_flags, "several, in a list")
        checked_number("timeout", timeout, "seconds")
        self._flags = checked_texts("apiserver_flags", apiserver_flags, "several, in a list")
        self._timeout = timeout
        self._tokens = {name: secrets.token_urlsafe(24) for name in ("admin", *(users or {}))}
        self._ports = {name: ReservedPort() for name in ("etcd", "peer", "kube-apiserver")}
        self.directory = Path(tempfile.mkdtemp(prefix="dyninformer-control-plane-"))
        """Certificates, data and the log of each process; removed by `close`."""
        self.ca = self.directory / _CA_FILE
        """The certificate authority that clients must trust, as a PEM file."""
        _write_credentials(self.directory, self._tokens, {"admin": [MASTERS], **(users or {})})
        self._processes = Processes(self.directory)
        self._etcd = _Etcd(f"http://127.0.0.1:{self._ports['etcd'].number}")
        self._remote = _RemoteApi(self.url, self.token, str(self.ca))
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
        token = self._tokens.get(checked_text("user", user, "the name of a user"))
        if token is None:
            known = ", ".join(self._tokens)
            raise LookupError(f"this control plane has no user {user!r}, but {known}")
        return token

    def kubeconfig(self, path: Path | str | None = None, *, token: str | None = None) -> Path:
        """Write a kubeconfig that only its owner can read, and return where it is.

        Without ``path`` it lies in the folder that `close` removes. ``token`` is that
        of another user, by default one that may do all.
        """
        chosen = checked_token(token) or self.token
        if path is None:
            users = [name for name, known in self._tokens.items() if known == chosen]
            path = self.directory / f"kubeconfig-{users[0] if users else 'other'}"
        text = kubeconfig_text(self.url, chosen, self.ca.read_bytes())
        written = Path(checked_path("path", path))
        write_private(written, text.encode())
        return written

    def client(self, *, token: str | None = None) -> DynamicClient:
        """The official DynamicClient, connected; it asks nothing before it is used."""
        return dynamic_client(self.url, checked_token(token) or self.token, self.ca)

    # -- the processes ------------------------------------------------------------------

    def start(self, process: Process) -> None:
        """Start a process that is not running, on its old port and data, and wait for it.

        Raises ControlPlaneError, with the end of its log, if it does not come up.
        """
        self._processes.start(_known(process), self._command(process))
        ready = self._etcd.healthy if process == "etcd" else self._ready
        self._wait_for(process, ready, process)

    def stop(self, process: Process, timeout: float = 70) -> None:
        """SIGTERM, and wait for the end; SIGKILL after ``timeout`` seconds.

        kube-apiserver keeps serving its open watches for up to 60 s after SIGTERM.
        """
        checked_number("timeout", timeout, "seconds")
        self._processes.terminate(_known(process), timeout)

    def kill(self, process: Process) -> None:
        """SIGKILL, and wait until it is gone: connections end without a goodbye."""
        self._processes.kill(_known(process))

    def pause(self, process: Process) -> None:
        """SIGSTOP: connections stay open, and nothing answers."""
        self._processes.send(_known(process), signal.SIGSTOP)

    def resume(self, process: Process) -> None:
        """SIGCONT: go on after `pause`."""
        self._processes.send(_known(process), signal.SIGCONT)

    def restart(self) -> None:
        """Kill the API server and start it again: same port, same data, empty watch caches."""
        self.kill("kube-apiserver")
        self.start("kube-apiserver")

    def pid(self, process: Process) -> int:
        """The process id, also of a process that has ended."""
        return self._processes.pid(_known(process))

    def log(self, process: Process) -> str:
        """What a process has printed since the beginning."""
        return self._processes.log(_known(process)).read_text(errors="replace")

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

    if not TYPE_CHECKING:  # a type checker knows without it what is not there

        def __getattr__(self, name: str) -> Any:
            """Say of what only the embedded server has that it is so."""
            if name not in EMBEDDED_ALONE:
                raise AttributeError(f"a ControlPlane has no attribute {name!r}")
            raise AttributeError(
                f"a real API server has no {name!r}: only the embedded one, ApiServer, does"
            )

    # -- the state ------------------------------------------------------------------------

    def compact(self, revision: int | None = None) -> int:
        """Forget every state before ``revision`` (None: the newest), and return that revision.

        etcd forgets at once. The API server goes on answering from the snapshots in
        its watch caches until it polls for compactions, up to 15 s later.
        """
        checked_or_none("revision", revision, int, "a whole number, or None for the newest")
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
        source = Path(checked_path("a snapshot", snapshot, "what snapshot() returned"))
        if not source.is_dir():  # before anything is lost
            raise ValueError(f"{source} is no snapshot: give what snapshot() returned")
        self.kill("kube-apiserver")
        self.kill("etcd")
        shutil.rmtree(self.directory / "etcd")
        shutil.copytree(source, self.directory / "etcd")
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
            return _etcd_command(self._assets, self.directory, ports["etcd"], ports["peer"])
        command = _apiserver_command(
            self._assets, self.directory, ports["etcd"], ports["kube-apiserver"]
        )
        return [*command, *self._flags]

    def _ready(self) -> bool:
        return self._remote.answers("/readyz")

    def _is_furnished(self) -> bool:
        return self._remote.answers("/api/v1/namespaces/default/services/kubernetes")

    def _groups(self) -> set[str]:
        return {resource.group for resource in self._remote.all()}

    def _call(self, function: Callable[[], T]) -> T:
        return function()

    def _handle(self, request: Request) -> Response:
        return self._remote.handle(request)

    def _served(self) -> Resources:
        return self._remote.all()

    def _wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _unestablished(self, crds: Iterable[str]) -> Names:
        """Those of the CRDs that are not established, not discovered, or not yet listed."""
        names = list(crds)
        waiting = set(super()._unestablished(names))
        return [name for name in names if name in waiting or not self._is_served(name)]

    def _is_served(self, name: str) -> bool:
        crd = self.get(f"customresourcedefinitions/{name}")
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
            self.patch(crd, {"status": {"conditions": aged}}, subresource="status")

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


def _known(process: Process) -> Process:
    names = get_args(Process)
    if process not in names:
        raise ValueError(f"a process is {process!r}: give {' or '.join(map(repr, names))}")
    return process


# -- where the programs are, and how they are started -------------------------------------------

_ASSETS = "KUBEBUILDER_ASSETS"
_BINARIES = ("etcd", "kube-apiserver")


class ControlPlaneError(DynInformerError, RuntimeError):
    """The control plane cannot be started, or does not come up; the message quotes its log."""


def find_assets(assets: str | os.PathLike[str] | None = None) -> Path:
    """The folder of etcd and kube-apiserver; a ControlPlaneError says what is missing.

    ``assets`` None asks the environment variable KUBEBUILDER_ASSETS, as envtest does.
    """
    give = "the path of a folder, or None"
    named = checked_path("assets", assets, give) if assets is not None else ""
    environment = os.environ.get(_ASSETS, "")
    named = environment if assets is None else checked_path("assets", assets, give)
    if not named:
        raise ControlPlaneError(
            f"{_ASSETS} is not set: it names the folder of etcd and kube-apiserver. "
            "Build them with `make kube` in a clone of dyninformer, or get them with setup-envtest."
        )
    folder = Path(named)
    missing = [name for name in _BINARIES if not os.access(folder / name, os.X_OK)]
    if missing:
        raise ControlPlaneError(
            f"{_ASSETS}={named} has no executable {' and no '.join(missing)}. "
            "Build them with `make kube` in a clone of dyninformer, or get them with setup-envtest."
        )
    return folder


_CA_FILE = "ca.crt"


def _etcd_command(assets: Path, directory: Path, port: int, peer_port: int) -> list[str]:
    """One etcd that may lose its data when the machine does, and is quick for it."""
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    return [
        str(assets / "etcd"), "--name", "test", "--data-dir", str(directory / "etcd"),
        "--listen-client-urls", client, "--advertise-client-urls", client,
        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
        "--initial-cluster", f"test={peer}", "--socket-reuse-port=true",
        "--unsafe-no-fsync", "--log-level", "warn",
    ]  # fmt: skip


def _apiserver_command(assets: Path, directory: Path, etcd_port: int, port: int) -> list[str]:
    """A kube-apiserver with RBAC, the tokens of `_write_credentials`, and no compaction."""
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


def _write_credentials(
    directory: Path, tokens: Mapping[str, str], groups: Mapping[str, Sequence[str]]
) -> None:
    """A certificate for loopback, a key for service accounts, and a token for each user."""
    # Here, as `find_assets` is for everybody: 50 ms of cryptography.
    import trustme  # noqa: PLC0415
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    service_accounts = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,  # what kube-apiserver can read
        serialization.NoEncryption(),
    )
    rows = [f'{token},{name},{name},"{",".join(groups[name])}"\n' for name, token in tokens.items()]
    files = {
        _CA_FILE: authority.cert_pem.bytes(),
        "server.crt": b"".join(blob.bytes() for blob in certificate.cert_chain_pems),
        "server.key": certificate.private_key_pem.bytes(),
        "service-accounts.key": service_accounts,
        "tokens.csv": "".join(rows).encode(),
    }
    for name, content in files.items():
        write_private(directory / name, content)


# -- etcd itself, for what no API server offers: revisions, compaction, a clean slate -----------

_PREFIX = b"/registry/"
_COMPACT_KEY = b"compact_rev_key"


class EtcdError(DynInformerError, ConnectionError):
    """etcd refused what was asked, or did not answer."""


class _Etcd:
    """The key-value store behind a control plane, through its JSON gateway."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool = urllib3.PoolManager(retries=False, timeout=10)

    def revision(self) -> int:
        """The revision of the newest write, which is the newest resourceVersion."""
        answer = self._ask("/v3/kv/range", {"key": _text(_PREFIX), "limit": 1, "keys_only": True})
        return int(answer["header"]["revision"])

    def keys(self) -> set[bytes]:
        """The key of every object of the cluster."""
        question = {"key": _text(_PREFIX), "range_end": _text(_after(_PREFIX)), "keys_only": True}
        found = self._ask("/v3/kv/range", question).get("kvs", [])
        return {base64.b64decode(entry["key"]) for entry in found}

    def delete(self, key: bytes) -> None:
        """Remove one object, past finalizers and everything else that would object."""
        self._ask("/v3/kv/deleterange", {"key": _text(key)})

    def compact(self, revision: int) -> None:
        """Forget every state before ``revision``, and tell API servers so.

        They read the revision of the last compaction from a key of their own; it
        is written first, as they do it themselves.
        """
        self._ask("/v3/kv/put", {"key": _text(_COMPACT_KEY), "value": _text(b"%d" % revision)})
        self._ask("/v3/kv/compaction", {"revision": revision, "physical": True})

    def healthy(self) -> bool:
        """Whether etcd takes writes; False, not an error, while it is down."""
        try:
            return self._pool.request("GET", f"{self._url}/health", timeout=1).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def close(self) -> None:
        """Let the connections go."""
        self._pool.clear()

    def _ask(self, path: str, question: dict[str, object]) -> dict[str, Any]:
        try:
            answer = self._pool.request("POST", self._url + path, json=question)
        except urllib3.exceptions.HTTPError as error:
            raise EtcdError(f"etcd at {self._url} did not answer {path}: {error}") from error
        if answer.status != 200:
            text = answer.data.decode(errors="replace")[:300]
            raise EtcdError(f"etcd refused {path}: HTTP {answer.status}: {text}")
        found: dict[str, Any] = json.loads(answer.data)
        return found


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _after(prefix: bytes) -> bytes:
    return prefix[:-1] + bytes([prefix[-1] + 1])


# -- the API server, over HTTPS ---------------------------------------------------------------

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class _RemoteApi:
    """Carries requests to a server over HTTPS, and knows what it serves."""

    def __init__(self, url: str, token: str, ca: str) -> None:
        self._url = url
        self._token = token
        self._pool = urllib3.PoolManager(ca_certs=ca, retries=False)
        self._discovered: dict[str, tuple[str, Resources]] = {}

    def close(self) -> None:
        """Let the connections go."""
        self._pool.clear()

    def handle(self, request: Request, timeout: float = 60) -> Response:
        """The server's answer; urllib3's HTTPError if it gives none."""
        path = quote(request.path)
        url = f"{self._url}{path}?{urlencode(request.query)}" if request.query else self._url + path
        answer = self._pool.request(
            request.method, url, body=request.body, headers=request.headers, timeout=timeout
        )
        return Response(answer.status, tuple(answer.headers.items()), answer.data)

    def answers(self, path: str) -> bool:
        """Whether the path is answered 200 now."""
        try:
            return self._get(path, "*/*", timeout=5).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def all(self) -> Resources:
        """Every resource in every version, asked anew; the server says if nothing has changed."""
        return self._discover("/api") + self._discover("/apis")

    def _discover(self, path: str) -> Resources:
        etag, known = self._discovered.get(path, ("", ()))
        answer = self._get(path, _AGGREGATED, etag)
        if answer.status == 304:
            return known
        found = tuple(_resources(json.loads(body_of(answer))))
        headers = {name.lower(): value for name, value in answer.headers}
        self._discovered[path] = (headers.get("etag", ""), found)
        return found

    def _get(self, path: str, accept: str, etag: str = "", timeout: float = 60) -> Response:
        headers = {"authorization": f"Bearer {self._token}", "accept": accept}
        if etag:
            headers["if-none-match"] = etag
        return self.handle(Request("GET", path, headers=headers), timeout)


def _resources(discovery: dict[str, Any]) -> Iterator[Resource]:
    for group in discovery["items"]:
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            for entry in version.get("resources", ()):
                yield Resource(
                    name,
                    version["version"],
                    entry["resource"],
                    entry["responseKind"]["kind"],
                    entry["scope"] == "Namespaced",
                    singular=entry.get("singularResource", ""),
                    short_names=tuple(entry.get("shortNames", ())),
                    builtin="." not in name or name.endswith(".k8s.io"),
                )
