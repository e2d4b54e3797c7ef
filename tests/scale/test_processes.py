"""Replicas as processes on the real API server: killed, stopped, misled, more and fewer."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from dyninformer.shard import shard_of
from dyninformer.testing import ControlPlane
from tests.conformance.wire import until
from tests.scale.replica import uptime

SHARDS = 24
OBJECTS = 400  # so that no shard is empty, but once in a million runs
NAMESPACE = "default"
TIMES = {"lease_duration": 4, "renew_deadline": 2.5, "retry_period": 0.5}
OPTIONS = {"namespace": NAMESPACE, "shards": SHARDS, **TIMES}
SLOW, FAST = 0.9, 1.1
"""What a replica's clock shows in a true second. The times above allow for more than that."""
STILL = 0.8
"""Seconds for which a clock stands still: less than the margin with a fast one."""
PATIENCE = 60.0
_TICK = 0.02  # what /proc/uptime may be late by, twice

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not Path("/proc/uptime").exists(), reason="needs /proc/uptime"),
]


class Wire:
    """A way to the server that can be cut: nothing passes then, and nobody is told so."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._passing = threading.Event()
        self._passing.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Let nothing pass."""
        self._passing.clear()

    def mend(self) -> None:
        """Let all pass, and what was held back first."""
        self._passing.set()

    def close(self) -> None:
        """End it, and what goes through it."""
        self._passing.set()
        # A close alone would leave the thread in its accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:  # it is about to come back
                client.close()
                continue
            threading.Thread(target=self._relay, args=(client, server), daemon=True).start()

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        """Both ways, until both are over."""
        with client, server:
            back = threading.Thread(target=self._pass, args=(server, client), daemon=True)
            back.start()
            self._pass(client, server)
            back.join()

    def _pass(self, source: socket.socket, to: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                self._passing.wait()
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:  # the other way is over with it
            for each in (source, to):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


class Replicas:
    """Processes, and what they have noted."""

    def __init__(self, server: ControlPlane, folder: Path) -> None:
        self.server = server
        self._folder = folder
        self._kubeconfig = server.kubeconfig(folder / "kubeconfig")
        port = urlsplit(server.url).port
        assert port is not None
        self.wire = Wire(port)
        self._by_wire = folder / "kubeconfig-by-wire"
        text = self._kubeconfig.read_text()
        self._by_wire.write_text(text.replace(f":{port}", f":{self.wire.port}"))
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self,
        *names: str,
        hours: int = 0,
        rate: float = 1.0,
        still: float = 0.0,
        by_wire: bool = False,
    ) -> None:
        """Start some. Their wall clock may be so many hours ahead; others see `replica.misled`."""
        for name in names:
            environment = dict(os.environ)
            kubeconfig = self._by_wire if by_wire else self._kubeconfig
            command = [sys.executable, "-m", "tests.scale.replica", str(kubeconfig)]
            options = OPTIONS | {"rate": rate, "still": still}
            command += [str(self._notes(name)), name, json.dumps(options)]
            if hours and (faketime := shutil.which("faketime")):
                # Not the monotonic clock: it makes waits of Python for locks endless.
                environment["FAKETIME_DONT_FAKE_MONOTONIC"] = "1"
                command = [faketime, "-f", f"+{hours}h", *command]
            # A group of its own, so that what faketime starts is stopped with it.
            self.running[name] = subprocess.Popen(command, env=environment, start_new_session=True)

    def send(self, what: signal.Signals, *names: str) -> None:
        """Send a signal."""
        for name in names:
            os.killpg(self.running[name].pid, what)
            if what in (signal.SIGKILL, signal.SIGTERM):
                self.running.pop(name).wait(PATIENCE)

    def holders(self) -> dict[int, tuple[str, int]]:
        """Of each shard who has it, and in which term, as the server says."""
        found = {}
        for lease in self.server.list("leases.coordination.k8s.io", NAMESPACE):
            shard = lease["metadata"].get("labels", {}).get("dyninformer/shard")
            if shard is not None:
                spec = lease["spec"]
                found[int(shard)] = spec["holderIdentity"], spec["leaseTransitions"]
        return found

    def are_balanced(self, *names: str) -> bool:
        """These have all shards, in equal parts."""
        holders = self.holders()
        parts = Counter(holder.partition("_")[0] for holder, _ in holders.values())
        return (
            len(holders) == SHARDS
            and parts.keys() == set(names)
            and max(parts.values()) - min(parts.values()) <= 1
        )

    def notes(self) -> list[dict[str, Any]]:
        """What all have noted so far."""
        return [
            json.loads(line)
            for path in self._folder.glob("*.ndjson")
            for line in path.read_text().splitlines()
            if line.endswith("}")
        ]

    def until_shared(self, *names: str) -> None:
        """Wait until these have all, were told of each object in their present term, and act."""
        until(lambda: self.are_balanced(*names), PATIENCE, self.holders())
        uids = [
            each["metadata"]["uid"]
            for each in self.server.list("configmaps", NAMESPACE)
            if each["metadata"]["name"].startswith("o")
        ]

        def told() -> bool:
            holders = self.holders()
            notes = [note for note in self.notes() if note["what"] in ("ADDED", "acts")]
            added = {(n.get("uid"), n["holder"], n["term"]) for n in notes}
            acted = {(n["shard"], n["holder"], n["term"]) for n in notes if n["what"] == "acts"}
            return (
                self.are_balanced(*names)
                and all((uid, *holders[shard_of(uid, SHARDS)]) in added for uid in uids)
                and all((shard, *holder) in acted for shard, holder in holders.items())
            )

        until(told, PATIENCE)

    def check_terms(self) -> None:
        """No term of a shard begins before the one before it has ended: never two at once."""
        acts: dict[int, dict[int, list[tuple[float, str]]]] = defaultdict(lambda: defaultdict(list))
        for note in self.notes():
            if note["what"] == "acts":
                acts[note["shard"]][note["term"]].append((note["at"], note["holder"]))
        assert len(acts) == SHARDS
        for shard, terms in acts.items():
            ended = 0.0
            for term in sorted(terms):
                assert len({holder for _, holder in terms[term]}) == 1
                moments = [at for at, _ in terms[term]]
                assert min(moments) >= ended - _TICK, f"shard {shard} in term {term}"
                ended = max(moments)

    def check_cut(self, name: str, uptime: float, seconds: float) -> None:
        """One whose wire was cut then acted for that long, and no longer by its slow clock."""
        longest = TIMES["renew_deadline"] / SLOW + _TICK
        acts = [note["at"] for note in self.notes() if note["what"] == "acts"]
        ours = [
            note["at"] - uptime
            for note in self.notes()
            if note["what"] == "acts" and note["holder"].startswith(f"{name}_")
        ]
        assert max(acts) > uptime + longest + 1
        last = max(each for each in ours if each < longest + 1)
        assert seconds < last < longest

    def end(self) -> None:
        """Kill what still runs."""
        self.wire.close()
        for name in list(self.running):
            self.send(signal.SIGKILL, name)

    def _notes(self, name: str) -> Path:
        return self._folder / f"{name}.ndjson"


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    """None yet."""
    with ControlPlane() as server:
        for number in range(OBJECTS):
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"o{number}"}}
            server.create(obj, NAMESPACE)
        made = Replicas(server, tmp_path)
        try:
            yield made
        finally:
            made.end()


@pytest.mark.timeout(300)
def test_s51_replicas_share_all_and_never_act_at_once(replicas: Replicas) -> None:
    """Three, then five; one is cut off, one killed, one stopped for longer than its lease; two.

    The clock of one goes 10 % slow, of one as much fast; one stands still, one is hours ahead.
    """
    replicas.start("a", still=STILL)
    replicas.start("b", rate=SLOW, by_wire=True)
    replicas.start("c", hours=5)
    replicas.until_shared("a", "b", "c")
    replicas.start("d", rate=FAST)
    replicas.start("e")
    replicas.until_shared("a", "b", "c", "d", "e")
    replicas.wire.cut()
    cut_at = uptime()
    replicas.until_shared("a", "c", "d", "e")
    replicas.wire.mend()
    replicas.until_shared("a", "b", "c", "d", "e")
    replicas.check_cut("b", cut_at, seconds=1)
    replicas.send(signal.SIGKILL, "a")
    replicas.until_shared("b", "c", "d", "e")
    replicas.send(signal.SIGSTOP, "b")
    replicas.until_shared("c", "d", "e")
    replicas.send(signal.SIGCONT, "b")
    replicas.until_shared("b", "c", "d", "e")
    replicas.send(signal.SIGTERM, "b", "d")
    replicas.until_shared("c", "e")
    replicas.server.restart()
    replicas.until_shared("c", "e")
    replicas.check_terms()
