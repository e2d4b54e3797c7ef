"""`ApiServer`: the embedded Kubernetes API server, on a port of loopback."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from dyninformer.testing.api.access import UNSECURED
from dyninformer.testing.backend import Backend
from dyninformer.testing.clock import SystemClock
from dyninformer.testing.cluster.cluster import Cluster
from dyninformer.testing.cluster.watch_cache import ReadSettings
from dyninformer.testing.door import Door
from dyninformer.testing.exchange import Exchange
from dyninformer.testing.http.limits import Limits
from dyninformer.testing.http.listener import Listener
from dyninformer.testing.http.tls import authority_pem, server_context
from dyninformer.testing.kubeconfig import kubeconfig_text, write_private
from dyninformer.testing.messages import Request
from dyninformer.testing.owner_thread import OwnerThread

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

T = TypeVar("T")

_POLL_SECONDS = 0.002


class ApiServer(Door):
    """A Kubernetes API server in this process, for tests: real HTTP, no cluster, no binaries.

    It listens on 127.0.0.1 from construction to `close`, serves what kube-apiserver
    serves as far as clients of collections can tell, and runs on one daemon thread of
    its own. Every method may be called from any thread.

    >>> with ApiServer() as server:
    ...     _ = server.create({"apiVersion": "v1", "kind": "ConfigMap",
    ...                        "metadata": {"name": "colours"}, "data": {"sky": "blue"}})
    ...     client = server.client().resources.get(api_version="v1", kind="ConfigMap")
    ...     client.get("colours", "default").data.sky
    'blue'

    ``tls`` serves HTTPS with a certificate that `ca` vouches for. ``settings`` are those
    of kube-apiserver that clients can tell (bookmarks, timeouts, feature gates),
    ``limits`` those of connections. ``seed`` makes uids and generated names the same in
    every run; ``controllers`` removes namespaces that are deleted, as a cluster does and
    a bare API server does not; ``controller_delay`` is how long CRDs and namespaces take
    to follow what is written. ``port`` is the one to listen on, by default any that is
    free; one that is taken is an OSError.
    """

    def __init__(
        self,
        *,
        tls: bool = False,
        settings: ReadSettings | None = None,
        limits: Limits | None = None,
        seed: int | None = None,
        controllers: bool = True,
        controller_delay: float = 0.0,
        port: int = 0,
    ) -> None:
        self._clock = SystemClock()
        self._tls = tls
        self._guard = threading.Lock()  # guards _directory
        self._directory: Path | None = None
        self._numbers = itertools.count(1)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due: float | None = None
        cluster = Cluster(
            self._clock, settings,
            seed=seed, controllers=controllers, controller_delay=controller_delay,
        )  # fmt: skip
        self._thread = OwnerThread("dyninformer API server")
        try:
            self._listener = Listener(
                self._thread.loop, self._handle, self._clock.now,
                limits=limits, tls=server_context() if tls else None, port=port,
            )  # fmt: skip
        except BaseException:
            self._thread.close()
            raise
        self._backend = Backend(
            cluster, settings, run=self._call, gate=self._gate, sever=self._listener.sever
        )
        if not tls:
            self.access.anonymous = UNSECURED
        self._call(self._listener.open)

    # -- its life ------------------------------------------------------------------------

    def stop(self) -> None:
        """Close the port and every connection, as if it were killed. The state stays."""

        async def stop() -> None:
            self._listener.refuse()
            await self._listener.drop_connections()

        self._thread.run(stop)

    def start(self) -> None:
        """Listen again, on the same port, after `stop`. Caches are cold, as after any start."""
        self._call(self._backend.restart)
        self._call(self._listener.open)

    def reset(self) -> None:
        """Make it as new, and listen: no objects, CRDs, faults, rules, requests or connections.

        The port stays, and users with their tokens.
        """
        super().reset()
        self._call(self._listener.open)

    def close(self) -> None:
        """End it, and remove the files it has written. Idempotent."""
        if not self._thread.closed:
            self._thread.run(self._listener.close)
            self._thread.close()
        with self._guard:
            directory, self._directory = self._directory, None
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ApiServer {self.url}>"

    # -- what a client needs to know -----------------------------------------------------

    @property
    def url(self) -> str:
        """Where it listens; the same after a restart."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._listener.port}"

    @property
    def ca(self) -> Path | None:
        """The certificate authority that clients must trust, as a PEM file; None without TLS."""
        return self._file("ca.crt", authority_pem()) if self._tls else None

    def kubeconfig(self, path: Path | str | None = None, *, token: str | None = None) -> Path:
        """Write a kubeconfig that only its owner can read, and return where it is.

        Without ``path`` it lies in a folder that `close` removes. ``token`` is that of
        another user, by default the one who may do all.
        """
        ca = authority_pem() if self._tls else None
        content = kubeconfig_text(self.url, token or self.token, ca).encode()
        if path is None:
            return self._file(f"kubeconfig-{next(self._numbers)}", content)
        write_private(Path(path), content)
        return Path(path)

    def client(self, *, token: str | None = None) -> DynamicClient:
        """The official DynamicClient, connected; it asks nothing before it is used."""
        from dyninformer.testing.client import dynamic_client  # noqa: PLC0415 - 0.25 s of import

        return dynamic_client(self.url, token or self.token, self.ca)

    # -- inside --------------------------------------------------------------------------

    def _call(self, function: Callable[[], T]) -> T:
        def act() -> T:
            try:
                return function()
            finally:
                self._set_timer()

        return self._thread.call(act)

    def _wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _handle(self, request: Request) -> Exchange:
        try:
            return self._backend.handle(request)
        finally:
            self._set_timer()

    def _set_timer(self) -> None:
        """Have the loop come back when something is due that nobody asks for."""
        due = self._backend.next_deadline()
        if self._timer is not None:
            if due == self._timer_due:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer_due = due
            delay = max(0.0, due - self._clock.now())
            self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._backend.run_due()
        self._set_timer()

    def _gate(self, refusing: bool) -> None:
        """Close the port, or open it again, from the loop's thread."""
        if refusing:
            self._listener.refuse()
        else:
            self._listener.open()

    def _file(self, name: str, content: bytes) -> Path:
        """A file of this server's own, readable by its owner alone."""
        with self._guard:
            if self._directory is None:
                self._directory = Path(tempfile.mkdtemp(prefix="dyninformer-"))
            path = self._directory / name
        write_private(path, content)
        return path
