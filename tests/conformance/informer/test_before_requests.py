"""What goes before a request is tried no more often than requests are: S29, S34."""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kubernetes
import pytest
import yaml

from dyninformer import DynamicSharedInformerFactory
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import HttpStatus, Reset
from dyninformer.watching import pulse
from tests.conformance.informer.recorders import CONFIG_MAPS, PATIENCE, WIDGETS
from tests.conformance.shapes import WIDGETS as CRD
from tests.conformance.wire import until

TOO_MANY = 12
"""More than what waits between its tries makes in a second: no need to wait for the end."""


@pytest.fixture(autouse=True)
def unprobed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks whether the server is back: that is a try of its own, and ends waits."""
    monkeypatch.setattr(pulse, "_SOON", float("inf"))


class Tries:
    """Counts how often something is tried; ``failing`` says whether it fails."""

    def __init__(self) -> None:
        self.failing = True
        self._lock = threading.Lock()
        self._moments: list[float] = []

    def note(self) -> bool:
        """One more; what is returned says whether it fails."""
        with self._lock:
            self._moments.append(time.monotonic())
        return self.failing

    @property
    def count(self) -> int:
        """How many so far."""
        with self._lock:
            return len(self._moments)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A server with custom resources, and connections by TLS."""
    with ApiServer(tls=True) as found:
        found.install(CRD)
        yield found


@contextmanager
def port_that(answers: Callable[[socket.socket], None], tries: Tries) -> Iterator[int]:
    """A port that counts its connections, and does this with each."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    taken, _ = listener.accept()
                except OSError:
                    return
                with taken:
                    tries.note()
                    answers(taken)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE)


def reset(connection: socket.socket) -> None:
    """Break it off."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def reset_when_asked(connection: socket.socket) -> None:
    """Break it off once something was said."""
    connection.recv(65_536)
    reset(connection)


def kubeconfig(path: Path, url: str, user: dict[str, Any], **cluster: Any) -> Path:
    """For one user of one cluster."""
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "only",
                "clusters": [{"name": "c", "cluster": {"server": url, **cluster}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "only", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    return path


def client(url: str, **settings: Any) -> Any:
    """An official client with these settings."""
    configuration = kubernetes.client.Configuration()
    configuration.host, configuration.proxy = url, None
    for name, value in settings.items():
        setattr(configuration, name, value)
    return kubernetes.client.ApiClient(configuration)


# What can fail before a request: each gives the factory's arguments, or takes them away.

Case = Iterator[dict[str, Any]]
Cases = Callable[[ApiServer, Tries, Path, pytest.MonkeyPatch], Case]


def hook_that_raises(error: BaseException) -> Cases:
    """A refresh hook that fails, whatever the error says."""

    def case(server: ApiServer, tries: Tries, *_: object) -> Case:
        def hook(_: object) -> None:
            if tries.note():
                raise error

        key = {"authorization": f"Bearer {server.token}"}
        ca = str(server.ca)
        yield {"client": client(server.url, refresh_api_key_hook=hook, api_key=key, ssl_ca_cert=ca)}

    return case


def plugin(server: ApiServer, tries: Tries, folder: Path, _: object) -> Case:
    """A credential plugin that breaks off, counted by what it leaves behind."""
    log = folder / "runs"
    code = f"open({str(log)!r}, 'a').write('.'); import sys; sys.exit('reset by peer')"
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["-c", code],
            "interactiveMode": "Never",
        }
    }
    yield {"kubeconfig": kubeconfig(folder / "config", server.url, user)}
    for _ in log.read_text():
        tries.note()


def token_file(server: ApiServer, tries: Tries, folder: Path, patch: pytest.MonkeyPatch) -> Case:
    """A token file that is not there."""
    load: Any = kubernetes.config.load_kube_config_from_dict

    def counted(*args: Any, **options: Any) -> None:
        tries.note()
        load(*args, **options)

    patch.setattr(kubernetes.config, "load_kube_config_from_dict", counted)
    user = {"tokenFile": str(folder / "none")}
    yield {"kubeconfig": kubeconfig(folder / "config", server.url, user)}


def broken_kubeconfig(
    server: ApiServer, tries: Tries, folder: Path, patch: pytest.MonkeyPatch
) -> Case:
    """A token that is refused, and settings that cannot be read anew."""
    path = kubeconfig(
        folder / "config", server.url, {"token": "old"}, **{"certificate-authority": str(server.ca)}
    )
    load: Any = kubernetes.config.load_kube_config_from_dict

    def counted(*args: Any, **options: Any) -> None:
        tries.note()
        load(*args, **options)
        path.write_text("{")

    patch.setattr(kubernetes.config, "load_kube_config_from_dict", counted)
    yield {"kubeconfig": path}


def name_lookup(_: ApiServer, tries: Tries, __: Path, patch: pytest.MonkeyPatch) -> Case:
    """A resolver that breaks off."""
    resolve = socket.getaddrinfo

    def counted(host: Any, *args: Any, **options: Any) -> Any:
        if host != "cluster.example":
            return resolve(host, *args, **options)
        tries.note()
        raise ConnectionResetError(104, "Connection reset by peer")

    patch.setattr(socket, "getaddrinfo", counted)
    yield {"client": client("https://cluster.example")}


def port(answers: Callable[[socket.socket], None], scheme: str) -> Cases:
    """A server that does this with each connection."""

    def case(_: object, tries: Tries, *__: object) -> Case:
        with port_that(answers, tries) as number:
            yield {"client": client(f"{scheme}://127.0.0.1:{number}")}

    return case


def proxy(_: object, tries: Tries, *__: object) -> Case:
    """A proxy that breaks off when it is asked for the server."""
    with port_that(reset_when_asked, tries) as number:
        yield {"client": client("https://cluster.example", proxy=f"http://127.0.0.1:{number}")}


RESET = ConnectionResetError(104, "Connection reset by peer")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(hook_that_raises(RESET), id="hook-reset"),
        pytest.param(hook_that_raises(BrokenPipeError(32, "Broken pipe")), id="hook-pipe"),
        pytest.param(hook_that_raises(TimeoutError()), id="hook-timeout"),
        pytest.param(hook_that_raises(ValueError("s3cr3t")), id="hook-bug"),
        pytest.param(hook_that_raises(SystemExit(1)), id="hook-exit"),
        plugin,
        token_file,
        broken_kubeconfig,
        name_lookup,
        pytest.param(port(reset, "http"), id="connect"),
        pytest.param(port(reset, "https"), id="connect-tls"),
        pytest.param(port(reset_when_asked, "http"), id="request"),
        pytest.param(port(reset_when_asked, "https"), id="tls"),
        proxy,
    ],
)
def test_s29_what_fails_before_a_request_is_tried_once_and_then_waits(
    case: Cases, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each failed try is one of the protocol's: counted, told, and followed by a wait."""
    tries = Tries()
    for options in case(server, tries, tmp_path, monkeypatch):
        with DynamicSharedInformerFactory(**options) as factory:
            informer = factory.for_resource(CONFIG_MAPS).informer
            factory.start()
            until(lambda: informer.status().attempts >= 2 or tries.count > TOO_MANY, PATIENCE)  # noqa: B023
            status = informer.status()
            assert status.attempts == 2
            assert status.trouble in ("unreachable", "unauthorized")
            assert "s3cr3t" not in status.reason
    # What is read anew for a try that failed was read for the first one too. A file that cannot be
    # read does not come so far again.
    assert tries.count == (1 if case is broken_kubeconfig else 2)


def test_s29_a_hook_that_fails_after_it_worked_is_not_run_without_end(
    server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Though connections lie idle, any of which may be dead: none was used. It is logged."""
    tries = Tries()
    tries.failing = False
    (options,) = hook_that_raises(RESET)(server, tries, None, None)  # type: ignore[arg-type]
    with DynamicSharedInformerFactory(**options) as factory:
        informer = factory.for_resource(CONFIG_MAPS).informer
        factory.sync(PATIENCE)
        before, tries.failing = tries.count, True
        server.restart()
        until(
            lambda: "hook" in informer.status().reason or tries.count > before + TOO_MANY, PATIENCE
        )
        assert tries.count - before <= 2  # one of ours, one of the watch on CRDs
        assert "refresh_api_key_hook raised ConnectionResetError" in informer.status().reason
        until(lambda: "refresh_api_key_hook" in caplog.text, PATIENCE)  # after the status
        tries.failing = False
        until(lambda: informer.status().state == "watching", PATIENCE)


@pytest.mark.parametrize("verb", ["list", "get"])
def test_s29_documents_that_are_asked_for_beside_the_collection_wait_too(
    verb: str, server: ApiServer
) -> None:
    """The CRD, as a proof that it is gone, and the shared watch on CRDs."""
    crds = "customresourcedefinitions"
    with (
        server.faults.add(HttpStatus(404), resource="widgets"),
        server.faults.add(Reset(), resource=crds),
        DynamicSharedInformerFactory(server.client()) as factory,
    ):
        informer = factory.for_resource(WIDGETS).informer
        factory.start()

        def asked() -> list[float]:
            own = verb == "get"
            paths = [each for each in server.requests if crds in each.path]
            return [each.at for each in paths if each.path.endswith("/widgets.ex.io") == own]

        until(lambda: len(asked()) >= 3, PATIENCE)
        # A connection that had lain idle may be tried and found dead: two make one try.
        assert asked()[2] - asked()[0] >= 0.8
        assert not informer.has_synced()


def test_s29_discovery_that_fails_is_asked_again_after_a_wait(server: ApiServer) -> None:
    """A follower looks at it again and again."""

    def asked() -> list[float]:
        return [each.at for each in server.requests if each.path == "/apis"]

    with server.client().client, DynamicSharedInformerFactory(server.client()) as factory:
        with server.faults.add(Reset(), path="/apis"):
            follower = factory.follow("*.ex.io")
            until(lambda: len(asked()) >= 3, PATIENCE)
            assert asked()[2] - asked()[0] >= 0.8
            assert follower.reason
        assert follower.wait_for_sync(PATIENCE)
