"""One embedded cluster: its log, what it serves, its clock and its controllers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Final
from uuid import UUID

from dyninformer.testing.clock import Clock
from dyninformer.testing.cluster.bodies import UnreadableError, check_depth
from dyninformer.testing.cluster.builtins import BUILTINS
from dyninformer.testing.cluster.crds import CustomResources
from dyninformer.testing.cluster.incoming import placed, read_typed
from dyninformer.testing.cluster.log import GroupResource, Image, Key, Log
from dyninformer.testing.cluster.metadata import ordered
from dyninformer.testing.cluster.namespaces import Namespaces
from dyninformer.testing.cluster.resources import Resource, ResourceTable
from dyninformer.testing.cluster.strategies import CRDS
from dyninformer.testing.cluster.timestamps import timestamp
from dyninformer.testing.cluster.watch_cache import ReadSettings, WatchCaches
from dyninformer.testing.cluster.write_options import WriteOptions
from dyninformer.testing.cluster.writer import Writer
from dyninformer.testing.status import bad_request
from dyninformer.types import Object

_Action = Callable[[], None]

COMPACTION_INTERVAL: Final = 300.0
"""Seconds between compactions, each to the revision of the one before."""
INITIAL_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")

_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The whole stored state of a cluster at one moment. It is never changed.

    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     before = server.snapshot()
    ...     server.install({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}})
    ...     server.restore(before)
    ...     len(server.list("namespaces"))
    4
    """

    image: Image


class Cluster:
    """The pure state behind an embedded API server. One thread owns it.

    Nothing happens by itself: requests come in through `Writer` and the read side, and
    the owner of the cluster calls ``run_due`` when ``next_deadline`` has passed.

    ``controllers``: a real API server alone leaves deleted namespaces Terminating for ever.
    With controllers (the default, since ``kubectl delete namespace`` waits for the end)
    the cluster empties and removes them; without, it is as bare as a real one.
    CRDs are looked after in either case, as the API server does that itself.

    ``controller_delay``: seconds until controllers act on a write. The default is at once,
    within the write: a CRD is served when its POST is answered.

    ``seed`` makes uids and generated names the same in every run.
    """

    def __init__(
        self,
        clock: Clock,
        settings: ReadSettings | None = None,
        *,
        seed: int | None = None,
        controllers: bool = True,
        controller_delay: float = 0.0,
    ) -> None:
        self.clock = clock
        self.log = Log()
        self.resources = ResourceTable()
        self._random = random.Random(seed)  # noqa: S311  names and uids, no secrets
        self.caches = WatchCaches(self.log, clock, settings, seed=self._random.getrandbits(32))
        self.crds = CustomResources(self)
        self.namespaces = Namespaces(self, remove=controllers)
        self.writer = Writer(self)
        self._delay = controller_delay
        self._timers: list[tuple[float, int, _Action]] = []
        self._numbers = count()
        self._deferred: list[_Action] = []
        self._writing = 0
        for resource in BUILTINS:
            served = self.resources.of(resource.group_resource)
            self.resources.put(resource.group_resource, (*served, resource))
        self.crds.watch_log()
        self.namespaces.watch_log()
        self._compact_regularly()
        self._create_namespaces()
        self._initial = self.snapshot()

    def now(self) -> float:
        """The clock's time."""
        return self.clock.now()

    def uid(self) -> str:
        """A new uid."""
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Five characters for a generated name."""
        return "".join(self._random.choices(_SUFFIX_LETTERS, k=5))

    def call_at(self, when: float, action: _Action) -> None:
        """Run ``action`` in the first ``run_due`` at or after ``when``."""
        heappush(self._timers, (when, next(self._numbers), action))

    def next_deadline(self) -> float | None:
        """When ``run_due`` next has something to do, None if never."""
        return self._timers[0][0] if self._timers else None

    def run_due(self, now: float | None = None) -> None:
        """Do what is due, in order of its time."""
        now = self.now() if now is None else now
        while self._timers and self._timers[0][0] <= now:
            action = heappop(self._timers)[2]
            with self.writing():
                action()

    def defer(self, action: _Action) -> None:
        """A controller has something to do: after the write that is under way, or later."""
        if self._delay > 0:
            self.call_at(self.now() + self._delay, action)
        else:
            self._deferred.append(action)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A request's writes; when the outermost ends, controllers act on them."""
        self._writing += 1
        try:
            yield
            if self._writing == 1:
                self._run_deferred()
        except RecursionError:
            raise bad_request("the object nests too deeply") from None
        finally:
            self._writing -= 1

    def remove(self, collection: GroupResource, key: Key) -> None:
        """Remove an object for good, and tell the controllers that wait for it."""
        self.log.append(collection, key, None)
        self.crds.object_gone(collection)
        self.namespaces.object_gone(key.namespace)

    def load(self, resource: Resource, obj: Object) -> None:
        """Write an object over what is there, with a new resourceVersion.

        Only its metadata and the types of its fields are looked at. It gets a uid and a
        creationTimestamp if it has none, and a namespace if it needs one. ValueError if it
        cannot be held. CRDs are not loaded: they have to be accepted, and then served.
        """
        if resource.collection == CRDS:
            raise ValueError(
                "a CustomResourceDefinition is served once it is installed, not loaded"
            )
        check_depth(obj)
        obj = json.loads(json.dumps(obj, allow_nan=False))  # a copy that can be sent to clients
        try:
            typed, _ = read_typed(resource, obj)
        except UnreadableError as error:
            raise ValueError(str(error)) from None
        metadata = typed["metadata"]
        name, namespace = metadata.get("name", ""), ""
        if resource.namespaced:
            namespace = metadata.get("namespace") or "default"
        for each in (name, *([namespace] if resource.namespaced else ())):
            if not _is_segment(each):
                raise ValueError(f"{each!r} is no name: a path could not hold it")
        filled = {
            "uid": self.uid(),
            "creationTimestamp": timestamp(self.now()),
            **({"generation": 1} if resource.generation else {}),
            **metadata,
        }
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        whole = {
            **kind,
            **obj,
            "metadata": {**filled, **({"namespace": namespace} if namespace else {})},
        }
        with self.writing():
            whole = placed(resource, whole, namespace)
            whole = {**whole, "metadata": ordered(whole["metadata"])}
            self.log.append(resource.collection, Key(namespace, name), whole)

    def unload(self, resource: Resource, key: Key) -> bool:
        """Remove an object, whatever finalizers it has; returns whether it was there."""
        if self.log.get(resource.collection, key) is None:
            return False
        with self.writing():
            self.remove(resource.collection, key)
        return True

    def snapshot(self) -> Snapshot:
        """The stored state as it is now."""
        return Snapshot(self.log.image())

    def restore(self, snapshot: Snapshot) -> None:
        """Take over a stored state, of this cluster or another: revisions may go back.

        Open watches end, every cache is cold, controllers take up what they find.
        """
        self.log.load(snapshot.image)
        self._timers.clear()
        self._deferred.clear()
        self.restart()
        self._compact_regularly()
        with self.writing():
            self.crds.take_up()
            self.namespaces.take_up()

    def restart(self) -> None:
        """The API server was restarted: open watches end, caches are cold, nothing is lost."""
        self.caches.reset_all()

    def reset(self) -> None:
        """A clean cluster, as it was made, with the initial namespaces and no more."""
        self.restore(self._initial)

    def compact(self, revision: int | None = None) -> None:
        """Forget history before ``revision``, or before now: continue tokens and watches expire."""
        revision = self.log.revision if revision is None else revision
        self.log.compact(revision)
        self.caches.forget_events(revision)

    def _compact_regularly(self) -> None:
        """Every five minutes, the history from before the last time is forgotten."""
        upto = self.log.revision

        def compact() -> None:
            self.log.compact(upto)
            self._compact_regularly()

        self.call_at(self.now() + COMPACTION_INTERVAL, compact)

    def _run_deferred(self) -> None:
        while self._deferred:
            self._deferred.pop(0)()

    def _create_namespaces(self) -> None:
        namespaces = self.resources.of(GroupResource("", "namespaces"))[0]
        for name in INITIAL_NAMESPACES:
            body = {"metadata": {"name": name}}
            options = WriteOptions(field_manager="kube-apiserver")
            self.writer.create(namespaces, "", body, options)


def _is_segment(name: str) -> bool:
    """Whether a name can be one part of a path."""
    return bool(name) and name not in {".", ".."} and not set(name) & set("/%\0")
