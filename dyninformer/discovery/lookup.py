"""`Discovery`: what a server serves, asked for when somebody wants to know, and kept a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from cachetools import TLRUCache

from dyninformer.discovery.catalog import Catalog, kept
from dyninformer.discovery.columns import CRDS, Columns, columns_of
from dyninformer.discovery.flight import SingleFlight
from dyninformer.discovery.resources import ResolvedResource
from dyninformer.discovery.survey import Server, Survey, asked, refusal
from dyninformer.errors import DynInformerError, UnknownResourceError, UnreachableError
from dyninformer.resource import GroupVersionResource
from dyninformer.threads import in_forked_child

KEPT = 300.0  # seconds for which what was found is believed
MISS_KEPT = 2.0  # seconds for which what was not found is
_COLUMNS_KEPT = 512  # resources
_NO_COLUMNS = frozenset({403, 404})  # not for this user to see, or not by a CRD

ResolvedResources = list[ResolvedResource]
Problems = dict[str, str]


@dataclass(frozen=True, slots=True)
class _Held:
    catalog: Catalog
    epoch: int
    asked_at: float


class Discovery:
    """Knows the resources of one API server. Every method may be called from any thread.

    Nothing is asked when it is made. However many ask at once, one of them asks the server;
    with the aggregated form, and an answer that has not changed, that costs two small
    requests. ``owner`` is whose code the threads of the old form run (S11).

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     found = factory.discovery.resolve("deploy")
    >>> str(found.gvr), found.namespaced
    ('deployments.v1.apps', True)
    """

    def __init__(
        self,
        server: Server,
        *,
        owner: object = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._clock = clock
        self._survey = Survey(server, self if owner is None else owner)
        self._surveying = threading.RLock()  # one survey at a time, also across invalidate()
        self._surveys: SingleFlight[int, _Held] = SingleFlight()
        self._crds: SingleFlight[tuple[GroupVersionResource, int], Columns] = SingleFlight()
        self._lock = threading.RLock()  # guards the three below; held for no I/O
        self._held: _Held | None = None
        self._epoch = 0
        columns = partial(TLRUCache, _COLUMNS_KEPT, _believed_until, timer=clock)
        self._columns: TLRUCache[GroupVersionResource, Columns] = columns()
        in_forked_child(self, "_surveying", "_lock", _columns=columns)

    def resolve(self, text: str) -> ResolvedResource:
        """The resource that any spelling means.

        ``cert``, ``certificate``, ``Certificate``, ``certificates.cert-manager.io``,
        ``certificates.v1.cert-manager.io``, ``cert-manager.io/v1/certificates``, ``pods.v1``.
        `UnknownResourceError` says what is close, `AmbiguousResourceError` names the groups,
        `UnreachableError` says why the server could not be asked.
        """
        try:
            found = self._catalog(KEPT).find(text)
            if found is None:
                catalog = self._catalog(MISS_KEPT)
                found = catalog.find(text)
        except UnreachableError as error:
            raise UnreachableError(f"cannot look up {text!r}: {error}") from error
        if found is None:
            raise UnknownResourceError(catalog.miss(text))
        return found

    def resources(self) -> ResolvedResources:
        """Each resource once, in the version that the server prefers, in the server's order."""
        return self._all().resources()

    def all_versions(self) -> ResolvedResources:
        """Each resource in each version that is served, the preferred one first.

        Of an API group that cannot be asked now, what was known of it before.
        """
        return self._all().all_versions()

    def problems(self) -> Problems:
        """The group-versions of which something could not be learned, and why."""
        return {each.name: each.problem for each in self._all().served if each.problem}

    def scope(self, gvr: GroupVersionResource) -> bool | None:
        """Whether it is namespaced; None if that cannot be learned now. Never raises."""
        with self._lock:
            held = self._held
        found = held.catalog.get(gvr) if held is not None else None
        if found is None:
            try:
                found = self._catalog(MISS_KEPT).get(gvr)
            except DynInformerError:
                return None
        return None if found is None else found.namespaced

    def columns(self, gvr: GroupVersionResource) -> Columns:
        """The printer columns that its CRD declares; none if that is not ours to see.

        `UnreachableError` if the server could not be asked.
        """
        if "." not in gvr.group:
            return ()  # every CRD's group has a dot
        with self._lock:
            if gvr in self._columns:
                return self._columns[gvr]
            epoch = self._epoch
        return self._crds.share((gvr, epoch), lambda: self._read_columns(gvr, epoch))

    def invalidate(self) -> None:
        """Believe nothing that was asked before now; the next question goes to the server."""
        with self._lock:
            self._epoch += 1
            self._columns.clear()

    def _all(self) -> Catalog:
        try:
            return self._catalog(KEPT)
        except UnreachableError as error:
            raise UnreachableError(f"cannot tell what the server serves: {error}") from error

    def _catalog(self, max_age: float) -> Catalog:
        """What is held, if it is young enough, or what the server says now."""
        with self._lock:
            held, epoch = self._held, self._epoch
        if (
            held is not None
            and held.epoch == epoch
            and self._clock() - held.asked_at < max_age
        ):  # fmt: skip
            return held.catalog
        return self._surveys.share(epoch, self._ask).catalog

    def _ask(self) -> _Held:
        with self._surveying:
            asked_at = self._clock()
            with self._lock:
                epoch = self._epoch
            served = self._survey.served()
            with self._lock:
                before = self._held
            catalog = Catalog(kept(served, before.catalog if before is not None else None))
            fresh = _Held(catalog, epoch, asked_at)
            with self._lock:
                self._held = fresh
        return fresh

    def _read_columns(self, gvr: GroupVersionResource, epoch: int) -> Columns:
        path = CRDS + gvr.group_resource
        reply = asked(self._server, path)
        if reply.status == 200:
            found = columns_of(reply.body, gvr)
        elif reply.status in _NO_COLUMNS:
            found = ()
        else:
            raise UnreachableError(
                f"cannot tell the columns of {gvr}: {refusal(self._server.host, path, reply)}"
            )
        with self._lock:
            if epoch == self._epoch:
                self._columns[gvr] = found
        return found


def _believed_until(gvr: GroupVersionResource, found: Columns, now: float) -> float:
    """Columns that are not there may soon be: a CRD, or the right to see it."""
    del gvr
    return now + (KEPT if found else MISS_KEPT)
