"""A real control plane that is written to, and informers that follow it through faults.

After each round of faults all that must be so is waited for, as a condition with an end, and said
in one line: how long it took until all was current again, and what became of the writes.
"""

from __future__ import annotations

import base64
import gc
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import urllib3

from dyninformer.testing import ApiError, ControlPlane
from dyninformer.types import Object
from tests.conformance.informer.relay import Relay
from tests.conformance.shapes import ANYTHING, crd
from tests.conformance.wire import until
from tests.real_faults import credentials
from tests.real_faults.credentials import (
    Account,
    Certified,
    Rotation,
    may_read,
    user,
    write_kubeconfig,
)
from tests.real_faults.faults import FAULTS
from tests.real_faults.schedule import Round
from tests.real_faults.watched import (
    EVEN,
    MARKER,
    PATIENCE,
    WIDGETS,
    Complaints,
    Hearing,
    Watched,
    WatchedOnLoop,
    Watching,
    by_key,
    differing,
)
from tests.real_faults.writer import NAMESPACES

RATE: Final = 200
THREADS: Final = 3
DESCRIPTORS: Final = 15
"""So many may be more than after the first round: of a question that is under way, and of
connections that are kept for the next one, with three sockets each, as the relay is here, too."""

_STORED = b"/registry/faults.example.com/widgets/"


class LostError(AssertionError):
    """Something was not as it must be."""


@dataclass(frozen=True)
class Written:
    """What a writer has done since it was asked last."""

    count: int
    acknowledged: list[tuple[str, str | None]]
    """Key, and version; None for a deletion. Of what a restore has undone there is nothing."""
    unsure: set[str]
    """Keys of whose last write nobody knows what became of it."""


class Writing:
    """The process that writes."""

    def __init__(self, server: ControlPlane, seed: int) -> None:
        command = [sys.executable, "-m", "tests.real_faults.writer"]
        self._process = subprocess.Popen(
            [*command, server.url, str(server.ca), str(RATE), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._say(server.token)

    def go(self) -> None:
        """Write."""
        self._say("go")

    def pause(self) -> Written:
        """Write no more; what was written since the last time."""
        self._say("pause")
        assert self._process.stdout is not None
        found = json.loads(self._process.stdout.readline())
        acknowledged = [(key, version) for key, version in found["acknowledged"]]
        return Written(found["count"], acknowledged, set(found["unsure"]))

    def forget(self) -> None:
        """What was acknowledged so far is so no more."""
        self._say("forget")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()


class Rig:
    """All of it, for rounds of faults. Used by one thread."""

    def __init__(self, seed: int) -> None:
        with ExitStack() as stack:
            self._build(seed, stack)
            self._closing = stack.pop_all()

    def _build(self, seed: int, stack: ExitStack) -> None:
        self.complaints = Complaints()
        logger = logging.getLogger("dyninformer")
        logger.addHandler(self.complaints)
        stack.callback(logger.removeHandler, self.complaints)
        logger.propagate = False
        stack.callback(setattr, logger, "propagate", True)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-")))
        certified = Certified("certified", folder)
        flags = ["--client-ca-file", str(certified.authority)]
        self.server = stack.enter_context(
            ControlPlane(users={"plain": [], "paged": []}, apiserver_flags=flags)
        )
        self.relay: Relay = Relay(self.server.url)
        stack.callback(self.relay.close)
        self.account = Account(self.server, "by-file", folder)
        plugged = Account(self.server, "by-plugin", folder)
        self.rotation = Rotation(
            {"token file": self.account, "plugin": plugged, "certificate": certified}
        )
        stack.callback(self.rotation.close)
        self._furnish(self.account.subject, plugged.subject, certified.subject)
        users = {
            "token-file": credentials.by_token_file(self.account),
            "plugin": credentials.by_plugin(plugged, folder),
            "certificate": certified.user,
            "plain": {"token": self.server.token_for("plain")},
            "paged": {"token": self.server.token_for("paged")},
        }
        cluster = {"server": self.relay.url, "certificate-authority": str(self.server.ca)}
        files = {
            name: write_kubeconfig(folder / name, cluster, user) for name, user in users.items()
        }
        self._writing = stack.enter_context(Writing(self.server, seed))
        self.restores = 0
        self._size = 1
        self._quiet: tuple[int, int] | None = None
        self._mark()
        self._writing.go()
        self._watch(files, stack)

    def _watch(self, files: dict[str, Any], stack: ExitStack) -> None:
        """Informers of every kind, with handlers of every kind."""
        indexers = {"size": "{.spec.size}", "odd": lambda obj: [str(obj["spec"]["size"] % 2)]}
        self.all = Watched("all", files["token-file"], indexers=indexers)
        two = Watched(
            "two namespaces",
            files["plugin"],
            lambda obj: obj["metadata"]["namespace"] in NAMESPACES[:2],
            namespaces=NAMESPACES[:2],
        )
        selected = Watched(
            "selected",
            files["certificate"],
            lambda obj: obj["metadata"]["labels"]["even"] == "1",
            label_selector=EVEN,
            indexers={"size": "{.spec.size}"},
        )
        paged = Watched("paged", files["paged"], page_size=40, watch_list=False, compress=False)
        self.first = Hearing("handler")
        for hearing in (
            self.first,
            Hearing("coalescing handler", coalesces=True),
            Hearing("slow coalescing handler", coalesces=True, seconds=0.004),
            Hearing("slow handler with a bound", backlog=50, seconds=0.004),
            Hearing("raising handler", raises=True),
        ):
            self.all.add(hearing)
        self.all.stream()
        two.add(Hearing("handler of two namespaces"))
        selected.add(Hearing("handler of selected"))
        selected.add(Hearing("coalescing handler of selected", coalesces=True))
        selected.stream()
        paged.add(Hearing("handler of paged"))
        self.watched: list[Watching] = [
            self.all,
            two,
            selected,
            paged,
            WatchedOnLoop("loop", files["plain"]),
        ]
        for each in self.watched:
            stack.callback(each.close)
            each.start()

    def _furnish(self, *subjects: Object) -> None:
        self.server.install(crd(WIDGETS.group, "widgets", "Widget", ANYTHING))
        for name in NAMESPACES:
            self.server.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )
        users = [user(name) for name in ("plain", "paged")]
        self._binding = may_read("widgets", WIDGETS.group, "widgets", [*subjects, *users])[1]
        # One of them is not told of CRDs.
        seeing = may_read(
            "crds", "apiextensions.k8s.io", "customresourcedefinitions", [*subjects, users[0]]
        )
        self.server.install(may_read("widgets", WIDGETS.group, "widgets", [])[0], *seeing)
        self.permit()

    def close(self) -> None:
        """End it: informers within their time, and without a thread or descriptor that stays."""
        for each in self.watched:
            if not each.close():
                raise LostError(f"{each.name} does not end")
        self._until(lambda: not _threads(), lambda: f"{_threads()} threads have not ended")
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    # -- what faults do ---------------------------------------------------------------------

    def revoke(self) -> None:
        """Nobody may list and watch widgets any more."""
        self.server.delete(self._binding)

    def permit(self) -> None:
        """They may again."""
        self.server.install(self._binding)

    def was_restored(self) -> None:
        """What was acknowledged before is no longer so, and versions go back."""
        self.restores += 1
        self._writing.forget()

    # -- a round -------------------------------------------------------------------------------

    def run(self, planned: Round) -> str:
        """Faults, their end, and all that must be so then: in a line."""
        restores = self.restores
        late, gone = Hearing("late handler"), Hearing("handler that is removed")
        leaving = self.all.add(gone)
        self.all.hearing.remove(gone)
        with ExitStack() as faults:
            for name in planned.faults:
                faults.enter_context(FAULTS[name](self))
            pause(planned.late)
            joining = self.all.add(late)
            pause(planned.seconds - planned.late)
            leaving.remove()
            gone.over = True
        ended = time.monotonic()
        self._size += 1
        self._mark()
        there = time.monotonic() - ended
        current = self._until_current(ended)
        restored = self.restores > restores
        written = self._writing.pause()
        settled, found = self._settle()
        self._check(gone, restored=restored)
        wrote = self._check_writes(written, found)
        joining.remove()
        self.all.hearing.remove(late)
        late.over = True
        self._begin_again(restored=restored)
        self._check_growth()
        slowest = max(current, key=lambda name: current[name])
        return (
            f"the server takes writes after {there:.1f} s, all caches are current after "
            f"{current[slowest]:.1f} s ({slowest} last); of {wrote.acknowledged} writes "
            f"acknowledged {wrote.told} were told one by one, 0 lost; "
            f"all equal {settled:.1f} s after the last, with {len(found)} objects"
        )

    def _mark(self) -> None:
        """Write the marker, as soon as the server takes it."""
        namespace, _, name = MARKER.partition("/")
        key, _, value = EVEN.partition("=")
        marker = {
            "apiVersion": f"{WIDGETS.group}/{WIDGETS.version}",
            "kind": "Widget",
            "metadata": {"name": name, "namespace": namespace, "labels": {key: value}},
            "spec": {"size": self._size},
        }

        def written() -> bool:
            with suppress(ApiError, urllib3.exceptions.HTTPError):
                self.server.install(marker)
                return True
            return False

        until(written, PATIENCE, "the server takes writes")

    def _until_current(self, ended: float) -> dict[str, float]:
        """When each cache had the marker, in seconds after the faults had ended."""
        current: dict[str, float] = {}

        def all_current() -> bool:
            for each in self.watched:
                if each.name not in current and each.has(self._size):
                    current[each.name] = time.monotonic() - ended
            return len(current) == len(self.watched)

        self._until(all_current, lambda: self._states(current))
        return current

    def _settle(self) -> tuple[float, dict[str, Object]]:
        """Wait until all hold what etcd itself holds; nobody writes."""
        began = time.monotonic()
        found = self._stored()

        def wrong() -> list[str]:
            complaints = []
            for each in self.watched:
                expected = {key: obj for key, obj in found.items() if each.wants(obj)}
                if differs := differing(each.held(), expected):
                    complaints.append(f"the cache of {each.name}: {differs[:5]}")
                complaints += [
                    f"{hearing.name}: {differs[:5]}"
                    for hearing in each.hearing
                    if (differs := differing(dict(hearing.held), expected))
                ]
            return complaints

        self._until(lambda: not wrong(), lambda: f"not as etcd has it: {'; '.join(wrong())}")
        took = time.monotonic() - began
        listed = by_key(self.server.list("widgets.faults.example.com"))
        if differs := differing(listed, found):
            raise LostError(f"the API server lists something else than etcd has: {differs[:5]}")
        return took, found

    def _check(self, gone: Hearing, *, restored: bool) -> None:
        objections = list(gone.objections)
        for each in self.watched:
            objections += each.wrong_indexes()
            for hearing in each.hearing:
                objections += hearing.objections
                if hearing.went_back and not restored:
                    objections.append(f"{hearing.name}: versions went back: {hearing.went_back}")
                registration = hearing.registration
                if registration is not None and not registration.has_synced():
                    objections.append(f"{hearing.name} never synced")
        objections += self.complaints.found
        if objections:
            raise LostError("; ".join(objections[:5]))

    def _check_writes(self, written: Written, found: dict[str, Object]) -> Wrote:
        """What was acknowledged last of each object is there."""
        for key, version in dict(written.acknowledged).items():
            there = found.get(key)
            is_there = None if there is None else there["metadata"]["resourceVersion"]
            if key not in written.unsure and is_there != version:
                raise LostError(f"{key} was acknowledged at {version}, and is there at {is_there}")
        told = sum(each in self.first.stored for each in written.acknowledged)
        return Wrote(written.count, told)

    def _begin_again(self, *, restored: bool) -> None:
        for each in self.watched:
            for hearing in each.hearing:
                hearing.begin_again(went_back=restored)
        self._writing.go()

    def _check_growth(self) -> None:
        gc.collect()
        self._quiet = self._quiet or (_threads(), _descriptors())
        threads, descriptors = self._quiet

        def grown() -> bool:
            return _threads() > threads + THREADS or _descriptors() > descriptors + DESCRIPTORS

        self._until(lambda: not grown(), lambda: f"{_threads()} threads, {_descriptors()} fds")

    def _states(self, current: Iterable[str]) -> str:
        return "; ".join(
            f"{each.name} is not current: {each.informer.status()}"
            for each in self.watched
            if each.name not in current
        )

    def _until(self, condition: Callable[[], bool], why: Callable[[], str]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise LostError(f"after {PATIENCE:g} s {why()}")
            pause(0.05)

    def _stored(self) -> dict[str, Object]:
        """What etcd has, by key, as an API server would give it."""
        question: dict[str, object] = {
            "key": base64.b64encode(_STORED).decode(),
            "range_end": base64.b64encode(_STORED[:-1] + b"0").decode(),
        }
        found = self.server._etcd._ask("/v3/kv/range", question).get("kvs", [])
        objects = []
        for entry in found:
            obj = json.loads(base64.b64decode(entry["value"]))
            obj["metadata"]["resourceVersion"] = entry["mod_revision"]
            objects.append(obj)
        return by_key(objects)


@dataclass(frozen=True)
class Wrote:
    """What became of a round's writes."""

    acknowledged: int
    told: int


def _threads() -> int:
    """Those of the package."""
    return sum(each.name.startswith("dyninformer") for each in threading.enumerate())


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def pause(seconds: float) -> None:
    """Let time pass: how long a fault goes on, or until something is looked at again."""
    threading.Event().wait(max(0.0, seconds))
