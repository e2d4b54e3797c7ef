"""`ApiServer`: the embedded Kubernetes API server, on a port of loopback."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from dyninformer.checked import checked_count, checked_flag, checked_or_none, checked_path
from dyninformer.testing.api.access import UNSECURED
from dyninformer.testing.client import (
    checked_token,
    dynamic_client,
    kubeconfig_text,
    write_private,
)
from dyninformer.testing.clock import SystemClock
from dyninformer.testing.cluster.watch_cache import ReadSettings
from dyninformer.testing.embedded import EmbeddedServer
from dyninformer.testing.http.listener import Listener, authority_pem, server_context
from dyninformer.testing.http.wire import Limits
from dyninformer.testing.messages import AnswerPlan, Request
from dyninformer.threads import ReentrantLock

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


T = TypeVar("T")

_POLL_SECONDS = 0.002


class ApiServer(EmbeddedServer):
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

    ``tls`` serves HTTPS with a certificate that `ca` vouches for, over HTTP/2 to clients that
    ask for it, unless ``http2`` is False. Plain HTTP is HTTP/1.1. ``settings`` are those
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
        http2: bool = True,
        settings: ReadSettings | None = None,
        limits: Limits | None = None,
        seed: int | None = None,
        controllers: bool = True,
        controller_delay: float = 0.0,
        port: int = 0,
    ) -> None:
        checked_flag("tls", tls)
        checked_flag("http2", http2)
        checked_or_none("limits", limits, Limits, "Limits(...), or None")
        checked_count("port", port, "its number, 0 for any that is free")
        self._clock = SystemClock()
        self._tls = tls
        self._directory_lock = ReentrantLock()  # guards _directory
        self._directory: Path | None = None
        self._numbers = itertools.count(1)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due: float | None = None
        super().__init__(
            self._clock,
            settings,
            seed=seed,
            controllers=controllers,
            controller_delay=controller_delay,
        )
        if not tls:
            self.access.anonymous = UNSECURED
        self._thread = _LoopThread("dyninformer API server")
        try:
            self._listener = Listener(
                self._thread.loop,
                self._plan,
                self._clock.now,
                limits=limits,
                tls=server_context(http2=http2) if tls else None,
                port=port,
            )
        except BaseException:
            self._thread.close()
            raise
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
        self.restart()
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
        with self._directory_lock:
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
        another user, by default one that may do all.
        """
        ca = authority_pem() if self._tls else None
        content = kubeconfig_text(self.url, checked_token(token) or self.token, ca).encode()
        if path is None:
            return self._file(f"kubeconfig-{next(self._numbers)}", content)
        chosen = Path(checked_path("path", path))
        write_private(chosen, content)
        return chosen

    def client(self, *, token: str | None = None) -> DynamicClient:
        """The official DynamicClient, connected; it asks nothing before it is used."""
        return dynamic_client(self.url, checked_token(token) or self.token, self.ca)

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

    def _plan(self, request: Request) -> AnswerPlan:
        try:
            return super()._plan(request)
        finally:
            self._set_timer()

    def _set_timer(self) -> None:
        """Have the loop come back when something is due without a request."""
        due = self._next_deadline()
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
        self._run_due()
        self._set_timer()

    def _sever(self) -> None:
        self._listener.sever()

    def _set_refusing(self, refusing: bool) -> None:
        if refusing:
            self._listener.refuse()
        else:
            self._listener.open()

    def _file(self, name: str, content: bytes) -> Path:
        """A file of this server's own, readable by its owner alone."""
        with self._directory_lock:
            if self._directory is None:
                self._directory = Path(tempfile.mkdtemp(prefix="dyninformer-"))
            path = self._directory / name
        write_private(path, content)
        return path


class _LoopThread:
    """Runs an asyncio loop on one named daemon thread, from construction to `close`.

    Its methods may be called from any thread, the loop's own included.
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._name = name
        self._closed = False
        self._lock = ReentrantLock()  # guards _closed against calls that would never be run
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], T]) -> T:
        """Run ``function`` on the loop's thread, and return what it returns or raises."""
        if self.is_current():
            return function()

        async def once() -> T:
            return function()

        return self.run(once)

    def run(self, coroutine: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the loop to its end; not from the loop's own thread."""
        if self.is_current():
            raise RuntimeError(f"{self._name} cannot wait for itself")
        with self._lock:
            if self._closed:
                raise RuntimeError(f"{self._name} has been closed")
            future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine(), self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # an interrupt ends the wait: nobody needs the answer
            raise

    @property
    def closed(self) -> bool:
        """`close` has been called."""
        return self._closed

    def is_current(self) -> bool:
        """Whether the caller is on the loop's thread."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """End every task, the loop and the thread. Idempotent; not from the loop's own thread."""
        with self._lock:
            already, self._closed = self._closed, True
        if not already:
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            self.loop.close()
