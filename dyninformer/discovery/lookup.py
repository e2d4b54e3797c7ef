"""`Discovery`: what a server serves, asked on demand, and kept for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeAlias, TypeVar, cast

import msgspec
from cachetools import TLRUCache

from dyninformer.checked import checked
from dyninformer.discovery.catalog import Catalog, carried_over
from dyninformer.discovery.declared import Declared, Defaults, declared
from dyninformer.discovery.discovery_client import DiscoveryClient, get, refusal_error
from dyninformer.discovery.resources import PrinterColumns, ResolvedResource
from dyninformer.errors import (
    DynInformerError,
    UnauthorizedError,
    UnknownResourceError,
    UnreachableError,
)
from dyninformer.resource import GroupVersionResource, checked_spelling
from dyninformer.threads import Deadline, ReentrantLock, in_forked_child, spawn
from dyninformer.transport.requests import DocumentSource
from dyninformer.types import ListKeys, Object

KEPT = 300.0
"""Seconds for which what was found is believed."""
MISS_KEPT = 2.0
"""Seconds until a CRD that was absent, or could not be read by this user, is asked for again."""

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
_DECLARED_KEPT = 512  # resources
_NO_CRD = frozenset({403, 404})  # this user may not see the CRD, or there is none

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ResolvedResources: TypeAlias = list[ResolvedResource]
Problems: TypeAlias = dict[str, str]


@dataclass(frozen=True, slots=True)
class _Kept:
    catalog: Catalog
    epoch: int
    asked_at: float


class Discovery:
    """Knows the resources of one API server. Every method may be called from any thread.

    Nothing is asked when it is made. However many threads ask at once, one asks the server;
    with the aggregated form, and an answer that has not changed, that costs two small
    requests. ``owner`` is whose code its threads run (S11). ``patience`` is how many seconds a
    call waits for the server at most, whatever the server does; without it a request ends after
    30 s of silence.

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     found = factory.discovery.resolve("deploy")
    >>> str(found.gvr), found.namespaced
    ('deployments.v1.apps', True)
    """

    def __init__(
        self,
        source: DocumentSource,
        *,
        owner: object = None,
        clock: Callable[[], float] = time.monotonic,
        patience: float | None = None,
    ) -> None:
        self._source = source
        self._clock = clock
        self._patience = patience
        self._owner = self if owner is None else owner
        self._client = DiscoveryClient(source, self._owner)
        # The turn to ask the server: one thread asks at a time, also across invalidate().
        self._turn = ReentrantLock()
        self._catalogs: SingleFlight[int, _Kept] = SingleFlight()
        self._crds: SingleFlight[tuple[GroupVersionResource, int], Declared] = SingleFlight()
        self._lock = ReentrantLock()  # guards the three below; held for no I/O
        self._kept: _Kept | None = None
        self._epoch = 0
        kept = partial(TLRUCache, _DECLARED_KEPT, _believed_until, timer=clock)
        self._declared: TLRUCache[GroupVersionResource, Declared] = kept()
        in_forked_child(self, "_turn", "_lock", _declared=kept)

    def resolve(self, text: str, *, timeout: float | None = None) -> ResolvedResource:
        """The resource that any spelling means.

        ``cert``, ``certificate``, ``Certificate``, ``certificates.cert-manager.io``,
        ``certificates.v1.cert-manager.io``, ``cert-manager.io/v1/certificates``, ``pods.v1``.
        `UnknownResourceError` says what is close, `AmbiguousResourceError` names the groups,
        `UnreachableError` says why the server could not be asked, or that it has not answered
        within ``timeout`` seconds, `UnauthorizedError` that it refuses the credentials.
        """
        checked_spelling(text)
        deadline = Deadline(self._patience if timeout is None else timeout)
        called_at = self._clock()
        try:
            catalog = self._catalog(called_at - KEPT, deadline)
            found = catalog.find(text)
            if found is None:  # its CRD may have been installed since the catalog was read
                catalog = self._catalog(called_at, deadline)
                found = catalog.find(text)
        except (UnreachableError, UnauthorizedError) as error:
            raise type(error)(f"cannot look up {text!r}: {error}") from error
        if found is None:
            raise UnknownResourceError(catalog.miss(text))
        return found

    def resources(self) -> ResolvedResources:
        """Each resource once, in the version that the server prefers, in the server's order."""
        return self._all().resources()

    def all_versions(self) -> ResolvedResources:
        """Each resource in each version that is served, the preferred one first.

        An API group that cannot be asked now has what was known of it before.
        """
        return self._all().all_versions()

    def problems(self) -> Problems:
        """The group-versions of which something could not be learned, and why."""
        return {each.name: each.problem for each in self._all().served if each.problem}

    def scope(self, gvr: GroupVersionResource, *, seconds: float | None = None) -> bool | None:
        """Tell whether it is namespaced; None if that cannot be learned now. Never raises.

        A resource that is not known yet is looked up on the server, for ``seconds`` at most.
        """
        checked("gvr", gvr, GroupVersionResource, "a GroupVersionResource")
        with self._lock:
            kept = self._kept
        found = kept.catalog.get(gvr) if kept is not None else None
        if found is None:
            try:
                deadline = None if seconds is None else Deadline(seconds)
                found = self._catalog(self._clock(), deadline).get(gvr)
            except DynInformerError:
                return None
        return None if found is None else found.namespaced

    def columns(self, gvr: GroupVersionResource) -> PrinterColumns:
        """The printer columns that its CRD declares; none if this user may not read the CRD.

        `UnreachableError` or `UnauthorizedError` if the server could not be asked.
        """
        return self._of_crd(gvr).columns

    def list_keys(self, gvr: GroupVersionResource) -> ListKeys:
        """The keys of lists that its CRD declares (``x-kubernetes-list-map-keys``), by path.

        `Event.changes` takes them. Empty, and errors, as `columns`.
        """
        return self._of_crd(gvr).list_keys

    def defaults(self, gvr: GroupVersionResource) -> Defaults:
        """What the server fills in where an object has nothing, as its CRD declares, by path.

        Empty, and errors, as `columns`.
        """
        return self._of_crd(gvr).defaults

    def schema(self, gvr: GroupVersionResource) -> Object:
        """The ``openAPIV3Schema`` of its version, as its CRD declares it.

        Empty, and errors, as `columns`.
        """
        schema = self._of_crd(gvr).schema
        return cast(Object, msgspec.json.decode(schema)) if schema else {}

    def declared(self, gvr: GroupVersionResource, seconds: float | None = None) -> Declared:
        """All that its CRD declares, waited for so many seconds at most. Not for import."""
        return self._of_crd(gvr, seconds)

    def _of_crd(self, gvr: GroupVersionResource, seconds: float | None = None) -> Declared:
        checked("gvr", gvr, GroupVersionResource, "a GroupVersionResource")
        if "." not in gvr.group:
            return Declared()  # every CRD's group has a dot
        with self._lock:
            if gvr in self._declared:
                return self._declared[gvr]
            epoch = self._epoch
        return self._within(
            self._patience if seconds is None else seconds,
            lambda: self._crds.share((gvr, epoch), lambda: self._read_crd(gvr, epoch)),
        )

    def invalidate(self) -> None:
        """Forget every earlier answer; the next lookup goes to the server."""
        with self._lock:
            self._epoch += 1
            self._declared.clear()

    def _all(self) -> Catalog:
        try:
            return self._catalog(self._clock() - KEPT)
        except (UnreachableError, UnauthorizedError) as error:
            raise type(error)(f"cannot tell what the server serves: {error}") from error

    def _within(self, seconds: float | None, work: Callable[[], V]) -> V:
        """What ``work`` returns, if it does in time; else it goes on, for those that come later.

        No limit of a request's silence would do: a server can also answer a byte at a time, and
        nothing interrupts the lookup of a name.
        """
        if seconds is None:
            return work()
        done: Future[V] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except Exception as error:  # noqa: BLE001 - told to the thread that waits for it
                done.set_exception(error)

        host = self._source.host
        spawn(self._owner, f"dyninformer discovery of {host}", run)
        try:
            return done.result(seconds)
        except TimeoutError:
            raise UnreachableError(f"{host} has not answered within {seconds:.3g} s.") from None

    def _catalog(self, since: float, deadline: Deadline | None = None) -> Catalog:
        """Return what the server said to a request that was sent at ``since`` or later."""
        while True:
            with self._lock:
                kept, epoch = self._kept, self._epoch
            if kept is not None and kept.epoch == epoch and kept.asked_at >= since:
                return kept.catalog
            limit = self._patience if deadline is None else deadline.left
            look = partial(self._catalogs.share, epoch, partial(self._ask, kept))
            found = self._within(limit, look)
            if found.asked_at >= since:  # else another thread had sent that request before
                return found.catalog

    def _ask(self, seen: _Kept | None) -> _Kept:
        """What the server says now, or has said to another thread since ``seen`` was kept."""
        with self._turn:
            asked_at = self._clock()
            with self._lock:
                epoch, kept = self._epoch, self._kept
            if kept is not None and kept is not seen and kept.epoch == epoch:
                return kept
            served = self._client.served()
            with self._lock:
                before = self._kept
            catalog = Catalog(carried_over(served, before.catalog if before is not None else None))
            fresh = _Kept(catalog, epoch, asked_at)
            with self._lock:
                self._kept = fresh
        return fresh

    def _read_crd(self, gvr: GroupVersionResource, epoch: int) -> Declared:
        path = _CRDS + gvr.group_resource
        reply = get(self._source, path)
        if reply.status == 200:
            found = declared(reply.body, gvr)
        elif reply.status in _NO_CRD:
            found = Declared()
        else:
            head = f"cannot tell the columns of {gvr}: "
            raise refusal_error(self._source.host, path, reply, head)
        with self._lock:
            if epoch == self._epoch:
                self._declared[gvr] = found
        return found


def _believed_until(gvr: GroupVersionResource, found: Declared, now: float) -> float:
    """What is not there may soon be: a CRD, or the right to see it."""
    del gvr
    return now + (KEPT if any(found) else MISS_KEPT)


class SingleFlight(Generic[K, V]):
    """One call for all threads that ask for the same thing at the same time.

    The first caller works, on its own thread, and those that come meanwhile share what comes
    of it, an error too. An interrupt (Ctrl-C) is the worker's alone: another of those that
    wait does the work then. Every wait can be interrupted.
    """

    def __init__(self) -> None:
        self._lock = ReentrantLock()  # guards _under_way
        self._under_way: dict[K, tuple[int, Future[V]]] = {}
        in_forked_child(self, "_lock", _under_way=dict)

    def share(self, key: K, work: Callable[[], V]) -> V:
        """What ``work`` returns, called here or by another thread that came before.

        A signal handler that asks in the middle of its own thread's work would wait for
        itself, and so does the work again.
        """
        me = threading.get_ident()
        while True:
            mine: Future[V] | None = None
            with self._lock:
                worker, running = self._under_way.get(key, (me, None))
                if running is None:
                    mine = Future()
                    self._under_way[key] = me, mine
            if mine is not None:
                return self._work(key, mine, work)
            if running is None or worker == me:
                return work()
            try:
                return running.result()
            except CancelledError:
                continue

    def _work(self, key: K, mine: Future[V], work: Callable[[], V]) -> V:
        try:
            result = work()
        except Exception as error:
            self._end(key)
            mine.set_exception(error)
            raise
        except BaseException:
            self._end(key)
            mine.cancel()
            raise
        self._end(key)
        mine.set_result(result)
        return result

    def _end(self, key: K) -> None:
        """Called before the outcome is told, so that a caller that comes later asks anew."""
        with self._lock:
            self._under_way.pop(key, None)
