"""The same faults for this package and its peers: ``python -m tests.real_faults.peers``.

client-go's dynamic informer, the official Python client's Watch and kube-rs's reflector stand
beside an informer of ours, on a real API server. After each fault objects are changed, and it is
measured when what each of them holds is what the server has; a case is printed as the row of a
table. It needs what KUBEBUILDER_ASSETS names, Go, and for the first case the right to make a
network namespace; kube-rs is left out where it cannot be built.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, cast

from kubernetes import client as official
from kubernetes import config as official_config
from kubernetes import watch as official_watch

from benchmarks.peers.installed import MissingError, kube_rs_program
from dyninformer import open_informer
from dyninformer.testing import ApiError, ControlPlane
from dyninformer.testing.control_plane import Process
from dyninformer.types import Object
from tests.conformance import go_program, shapes
from tests.conformance.go_program import GoProgram
from tests.conformance.informer.lossy import LossyProxy
from tests.conformance.informer.recorders import WIDGETS
from tests.conformance.informer.relay import Relay
from tests.conformance.informer.test_vanished import Island, ip
from tests.conformance.wire import until
from tests.real_faults.credentials import may_read, user, write_kubeconfig
from tests.real_faults.rig import pause

COUNT = 50
STEADY_SECONDS = 3.0
"""For which all of them watch before anything goes wrong."""
AUDIT_SECONDS = 20.0
"""How often our cache is audited, where that is what a case is about."""

PEER = "peer"
"""Who they are, where that is what a case is about."""

State = dict[str, str]
"""Versions by name."""


class Peer(Protocol):
    """Something that holds what a server has."""

    name: str

    def held(self) -> State:
        """What it holds now."""


class Ours:
    """dyninformer."""

    name = "dyninformer"

    def __init__(self, kubeconfig: Path, stack: ExitStack, audit: float = 0) -> None:
        self._found = stack.enter_context(
            open_informer(WIDGETS, kubeconfig=kubeconfig, namespace="default", audit=audit)
        )

    def held(self) -> State:
        """What it holds now."""
        return versions(self._found.lister.list())


class ClientGo:
    """client-go's dynamic shared informer, in a process of its own."""

    name = "client-go"

    def __init__(self, kubeconfig: Path, stack: ExitStack) -> None:
        arguments = ("inform", "widgets.v1.ex.io", "default")
        self._program = stack.enter_context(
            GoProgram(go_program.build(), kubeconfig, *arguments, watch_list=True)
        )
        self._held: State = {}
        self._over = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        stack.callback(self._over.set)

    def held(self) -> State:
        """What its handler was told of."""
        return dict(self._held)

    def _read(self) -> None:
        while not self._over.is_set():
            with suppress(TimeoutError):
                report = self._program.report(1)
                if report["type"] == "DELETED":
                    self._held.pop(report["name"], None)
                elif report["type"] in {"ADDED", "UPDATED"}:
                    self._held[report["name"]] = report["version"]


class OfficialWatch:
    """The official Python client as it is used for this: list, watch, and again after any error."""

    name = "kubernetes.watch"

    def __init__(self, kubeconfig: Path, stack: ExitStack) -> None:
        config: Any = official_config  # some of it has types, in some versions
        self._api = official.CustomObjectsApi(config.new_client_from_config(str(kubeconfig)))
        self._held: State = {}
        self._over = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()
        stack.callback(self._over.set)

    def held(self) -> State:
        """What it was told of."""
        return dict(self._held)

    def _run(self) -> None:
        what = (WIDGETS.group, WIDGETS.version, "default", WIDGETS.resource)
        list_them, watching = self._api.list_namespaced_custom_object, cast("Any", official_watch)
        while not self._over.is_set():
            try:
                found: Any = list_them(*what)
                self._held = versions(found["items"])
                version = found["metadata"]["resourceVersion"]
                for event in watching.Watch().stream(list_them, *what, resource_version=version):
                    self._take(event)
            except Exception:  # noqa: BLE001 - whatever it is, it begins again
                self._over.wait(1)

    def _take(self, event: Any) -> None:
        name, version = _named(event["object"])
        if event["type"] == "DELETED":
            self._held.pop(name, None)
        else:
            self._held[name] = version


class KubeRs:
    """kube-rs's reflector over its watcher with its default backoff, in a process of its own."""

    name = "kube-rs"

    def __init__(self, kubeconfig: Path, stack: ExitStack, program: Path) -> None:
        kind = shapes.WIDGETS["spec"]["names"]["kind"]
        what = (WIDGETS.group, WIDGETS.version, kind, WIDGETS.resource)
        self._process = subprocess.Popen(
            [str(program), "hold", *what, "default"],
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._held: State = {}
        stack.callback(self._process.wait)
        stack.callback(self._process.kill)
        threading.Thread(target=self._read, daemon=True).start()

    def held(self) -> State:
        """What was in its store after its last event."""
        return self._held

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._held = json.loads(line)


@cache
def kube_rs() -> Path | None:
    """Its program; None, and a line that says why, where it cannot be had."""
    try:
        return kube_rs_program()
    except MissingError as missing:
        print(f"{KubeRs.name} is left out: {missing}\n")
        return None


PEERS = (Ours.name, ClientGo.name, OfficialWatch.name, KubeRs.name)


class Stage:
    """A server with widgets, and peers that look at it through something that may fail."""

    def __init__(
        self,
        server: ControlPlane,
        url: str,
        stack: ExitStack,
        *,
        token: str | None = None,
        audit: float = 0,
    ) -> None:
        self.server = server
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="peers-")))
        cluster: Object = {"server": url}
        if url.startswith("https:"):
            # What the certificate is for, whatever the address.
            tls = {"certificate-authority": str(server.ca), "tls-server-name": "127.0.0.1"}
            cluster = {**cluster, **tls}
        path = folder / "kubeconfig"
        kubeconfig = write_kubeconfig(path, cluster, {"token": token or server.token})
        for number in range(COUNT):
            server.install(widget(f"w{number}", 0))
        self.peers: list[Peer] = [
            Ours(kubeconfig, stack, audit),
            ClientGo(kubeconfig, stack),
            OfficialWatch(kubeconfig, stack),
            *([KubeRs(kubeconfig, stack, program)] if (program := kube_rs()) else []),
        ]
        for each in self.peers:
            until(lambda each=each: each.held() == self.there(), 60, f"{each.name} begins")
        pause(STEADY_SECONDS)

    def there(self) -> State:
        """What the server has."""
        return versions(self.server.list("widgets.ex.io", "default"))

    def _answered(self) -> State:
        """What it has, nothing while it begins."""
        try:
            return self.there()
        except ApiError:
            return {}

    def change(self, size: int) -> None:
        """Change one, delete one, create one."""
        self.server.patch("widgets.ex.io/w1", {"spec": {"size": size}}, "default")
        self.server.delete("widgets.ex.io/w2", "default")
        self.server.install(widget("later", size))

    def measure(self, patience: float) -> dict[str, float]:
        """After how many seconds each held what the server has."""
        began, found = time.monotonic(), dict[str, float]()
        expected = until(self._answered, 60, "the server lists them")
        while len(found) < len(self.peers) and time.monotonic() - began < patience:
            for each in self.peers:
                if each.name not in found and each.held() == expected:
                    found[each.name] = time.monotonic() - began
            pause(0.05)
        return found


def vanished(server: ControlPlane, stack: ExitStack, patience: float) -> dict[str, float]:
    """The machine at the other end is gone for a minute without a word, and comes back as new."""
    island = Island()
    stack.callback(island.close)
    relay = Relay(server.url, island.listen())
    stack.callback(relay.close)
    stage = Stage(server, relay.url, stack)
    island.vanish()
    relay.reset()  # nobody hears of it
    pause(60)
    stage.change(1)
    ip("-n", island.name, "addr", "add", f"{island.address}/24", "dev", island.far)
    return stage.measure(patience)


def stands_still(server: ControlPlane, stack: ExitStack, patience: float) -> dict[str, float]:
    """kube-apiserver is stopped (SIGSTOP) for 70 s, and goes on."""
    stage = _behind_relay(server, stack)[0]
    server.pause("kube-apiserver")
    pause(70)
    server.resume("kube-apiserver")
    stage.change(1)
    return stage.measure(patience)


def dead_streams(server: ControlPlane, stack: ExitStack, patience: float) -> dict[str, float]:
    """Open connections bring nothing any more, new ones work: a balancer has lost a server."""
    stage, relay = _behind_relay(server, stack)
    relay.forget()
    stage.change(1)
    return stage.measure(patience)


def swallowed(server: ControlPlane, stack: ExitStack, patience: float) -> dict[str, float]:
    """A DELETE and an UPDATE are left out of watches, and later events are told."""
    lost = {("DELETED", "w2"), ("MODIFIED", "w1")}
    proxy = LossyProxy(server.url, server.ca, lambda *event: event in lost, server.token)
    stack.callback(proxy.close)
    stage = Stage(server, proxy.url, stack, audit=AUDIT_SECONDS)
    stage.change(1)
    return stage.measure(patience)


def killed(server: ControlPlane, stack: ExitStack, patience: float) -> dict[str, float]:
    """kube-apiserver is killed, and begins anew after 20 s."""
    return _without(server, "kube-apiserver", stack, patience)


def etcd_killed(server: ControlPlane, stack: ExitStack, patience: float) -> dict[str, float]:
    """The store, etcd, is killed, and begins anew after 20 s."""
    return _without(server, "etcd", stack, patience)


def resets(server: ControlPlane, stack: ExitStack, patience: float) -> dict[str, float]:
    """All connections are reset, and each new one within a second, for 20 s."""
    stage, relay = _behind_relay(server, stack)
    for _ in range(25):
        relay.reset()
        pause(0.8)
    stage.change(1)
    return stage.measure(patience)


def rights(server: ControlPlane, stack: ExitStack, patience: float) -> dict[str, float]:
    """The right to list and watch is taken for a minute, streams are cut, and it is given back."""
    role, binding = may_read("peers", WIDGETS.group, "widgets", [user(PEER)])
    server.install(role, binding)
    stage, relay = _behind_relay(server, stack, server.token_for(PEER))
    server.delete(binding)
    relay.reset()
    pause(60)
    stage.change(1)
    server.install(binding)
    return stage.measure(patience)


def compacted(server: ControlPlane, stack: ExitStack, patience: float) -> dict[str, float]:
    """The version that was held is compacted away while the server is out of reach."""
    stage, relay = _behind_relay(server, stack)
    with relay.away():
        stage.change(1)
        server.kill("kube-apiserver")
        server.compact()
        server.start("kube-apiserver")
    return stage.measure(patience)


def restored(server: ControlPlane, stack: ExitStack, patience: float) -> dict[str, float]:
    """The cluster is restored from an older snapshot of etcd."""
    stage, _ = _behind_relay(server, stack)
    backup = server.snapshot()
    until(lambda: _written(stage, 1), 60)
    server.restore(backup)
    return stage.measure(patience)


def restored_hidden(server: ControlPlane, stack: ExitStack, patience: float) -> dict[str, float]:
    """The same while out of reach, with as many other writes behind it as it undid."""
    stage, relay = _behind_relay(server, stack)
    backup = server.snapshot()
    until(lambda: _written(stage, 1), 60)
    with relay.away():
        server.restore(backup)
        for number in range(20):
            server.install(widget(f"other{number}", 2))
    return stage.measure(patience)


CASES = (
    vanished,
    stands_still,
    dead_streams,
    swallowed,
    compacted,
    restored,
    restored_hidden,
    killed,
    etcd_killed,
    resets,
    rights,
)


def main() -> None:
    """Each case on a server of its own, a row for each."""
    names = [each.__name__ for each in CASES]
    arguments = argparse.ArgumentParser(prog="python -m tests.real_faults.peers")
    arguments.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(names))
    arguments.add_argument("--patience", type=float, default=300)
    chosen = arguments.parse_args()
    if unknown := set(chosen.cases) - set(names):
        arguments.error(f"there is no case {min(unknown)!r}; there are {', '.join(names)}")
    shown = [name for name in PEERS if name != KubeRs.name or kube_rs()]
    print("| case |", " | ".join(shown), "|")
    print("|---|" + "--:|" * len(shown), flush=True)
    for case in [CASES[names.index(name)] for name in chosen.cases] or CASES:
        with ExitStack() as stack:
            server = stack.enter_context(ControlPlane(users={PEER: []}))
            server.install(shapes.WIDGETS)
            found = case(server, stack, chosen.patience)
            cells = [
                f"{found[name]:.1f} s" if name in found else f"not within {chosen.patience:g} s"
                for name in shown
            ]
            print(f"| {case.__doc__} |", " | ".join(cells), "|", flush=True)


def widget(name: str, size: int) -> Object:
    """One in the default namespace."""
    return {**shapes.widget(name, size=size), "metadata": {"name": name, "namespace": "default"}}


def versions(objects: Any) -> State:
    """Their versions by name."""
    return dict(map(_named, objects))


def _named(obj: Any) -> tuple[str, str]:
    return obj["metadata"]["name"], obj["metadata"]["resourceVersion"]


def _behind_relay(
    server: ControlPlane, stack: ExitStack, token: str | None = None
) -> tuple[Stage, Relay]:
    relay = Relay(server.url)
    stack.callback(relay.close)
    return Stage(server, relay.url, stack, token=token), relay


def _without(
    server: ControlPlane, process: Process, stack: ExitStack, patience: float
) -> dict[str, float]:
    stage, _ = _behind_relay(server, stack)
    server.kill(process)
    pause(20)
    server.start(process)
    until(lambda: _changed(stage), 60, "the server takes writes")
    return stage.measure(patience)


def _changed(stage: Stage, size: int = 1) -> bool:
    try:
        stage.change(size)
    except ApiError:
        return False
    return True


def _written(stage: Stage, size: int) -> bool:
    """As soon as the server takes writes; all peers have seen them."""
    if not _changed(stage, size):
        return False
    there = stage.there()
    until(lambda: all(each.held() == there for each in stage.peers), 60)
    return True


if __name__ == "__main__":
    main()
