"""One informer per resource: with which options it was asked for, and who still uses it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dyninformer.errors import OptionsConflictError, StoppedError
from dyninformer.informer import SharedIndexInformer
from dyninformer.lister import GenericLister
from dyninformer.options import ResourceOptions
from dyninformer.resource import GroupVersionResource
from dyninformer.threads import in_forked_child

Make: TypeAlias = Callable[[GroupVersionResource, ResourceOptions], SharedIndexInformer]
ByResource: TypeAlias = Mapping[GroupVersionResource, ResourceOptions]
GenericInformers: TypeAlias = "list[GenericInformer]"


class GenericInformer:
    """An informer and its lister, for one resource.

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     namespaces = factory.for_resource("v1/namespaces")
    ...     _ = factory.sync(timeout=30)
    ...     print(namespaces, namespaces.lister.get("default")["kind"])
    <GenericInformer of namespaces.v1, 4 objects> Namespace
    """

    def __init__(self, informer: SharedIndexInformer) -> None:
        self.informer = informer
        self.lister: GenericLister = informer.lister

    @property
    def gvr(self) -> GroupVersionResource:
        """Which resource."""
        return self.informer.gvr

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.gvr}, {len(self.informer.store)} objects>"


@dataclass(slots=True)
class _Entry:
    """An informer that serves; the registry's lock guards what changes."""

    generic: GenericInformer
    options: ResourceOptions
    kept: bool
    """Somebody asked for it by name: it stays until it is removed by name."""
    users: set[object] = field(default_factory=set)
    """The followers that use it."""


class Registry:
    """The informers of a factory (S1). Every method may be called from any thread.

    An informer that was asked for stays until it is removed. One that was only borrowed goes
    with its last borrower. A stopped one is replaced by the next who asks (S4), unless the
    registry is closed: then it goes on answering reads, and no other is made (S3).
    """

    def __init__(self, make: Make, *, defaults: ResourceOptions, resources: ByResource) -> None:
        self._make = make
        self._defaults = defaults
        self._resources = dict(resources)
        # Guards what is below. A signal handler that shuts down may come while its own thread
        # holds it, hence one that can be taken twice.
        self._lock = threading.RLock()
        self._entries: dict[GroupVersionResource, _Entry] = {}
        self._closed = False
        in_forked_child(self, "_lock", _closed=True)

    def ask(self, gvr: GroupVersionResource, asked: ResourceOptions) -> GenericInformer:
        """The informer of a resource, to be kept; OptionsConflictError if it has other options."""
        return self._serving(gvr, asked, user=None)

    def borrow(
        self, gvr: GroupVersionResource, asked: ResourceOptions, user: object
    ) -> GenericInformer:
        """The same, for as long as ``user`` has not given it back, or somebody else needs it."""
        return self._serving(gvr, asked, user=user)

    def give_back(self, informer: SharedIndexInformer, user: object) -> None:
        """``user`` needs it no longer. If nobody does, it is stopped and forgotten.

        Waits for nobody. What is closed forgets nothing, for the sake of reads.
        """
        with self._lock:
            entry = self._entries.get(informer.gvr)
            if entry is None or entry.generic.informer is not informer:
                return  # removed meanwhile, and perhaps another one has come
            entry.users.discard(user)
            if entry.kept or entry.users or self._closed:
                return
            del self._entries[informer.gvr]
        informer.signal_stop()

    def known(self, gvr: GroupVersionResource) -> GenericInformer | None:
        """The informer of a resource, to be kept, if there is one that serves."""
        with self._lock:
            entry = self._current(gvr)
            if entry is None:
                return None
            entry.kept = True
            return entry.generic

    def adopt(self, informer: SharedIndexInformer) -> GenericInformer:
        """Keep an informer that the caller made, unless another one serves by now."""
        with self._lock:
            return self.known(informer.gvr) or self._add(informer, informer.options).generic

    def forget(self, gvr: GroupVersionResource) -> GenericInformer | None:
        """Take an informer out, whoever uses it; it is the caller's to stop."""
        with self._lock:
            entry = self._entries.pop(gvr, None)
        return None if entry is None else entry.generic

    def all(self) -> GenericInformers:
        """Those that are there now, in the order they were asked for."""
        with self._lock:
            return [entry.generic for entry in self._entries.values()]

    def close(self) -> None:
        """Make no informer any more."""
        with self._lock:
            self._closed = True

    # -- inside --------------------------------------------------------------------------

    def _serving(
        self, gvr: GroupVersionResource, asked: ResourceOptions, *, user: object
    ) -> GenericInformer:
        with self._lock:
            entry = self._current(gvr)
            made = entry is None
            if entry is None:
                used = asked.over(self._resources.get(gvr, ResourceOptions()).over(self._defaults))
                self._check_open(gvr)
                entry = self._add(self._make(gvr, used), used, kept=user is None)
            conflicts = asked.conflicts(entry.options)
            if not conflicts:
                if user is None:
                    entry.kept = True
                else:
                    entry.users.add(user)
        if conflicts:
            raise OptionsConflictError(
                f"{gvr} was asked for before with other options: {'; '.join(conflicts)}. "
                f"Ask with the same ones, or call factory.remove({str(gvr)!r}) first"
            )
        if asked.indexers and not made:
            entry.generic.informer.add_indexers(asked.indexers)
        return entry.generic

    def _current(self, gvr: GroupVersionResource) -> _Entry | None:
        """The one that serves; a stopped one only serves where all is over."""
        entry = self._entries.get(gvr)
        if entry is not None and entry.generic.informer.is_stopped() and not self._closed:
            return None
        return entry

    def _add(
        self, informer: SharedIndexInformer, used: ResourceOptions, *, kept: bool = True
    ) -> _Entry:
        self._check_open(informer.gvr)
        entry = _Entry(GenericInformer(informer), used, kept)
        self._entries[informer.gvr] = entry
        return entry

    def _check_open(self, gvr: GroupVersionResource) -> None:
        if self._closed:
            raise StoppedError(
                f"cannot watch {gvr}: this factory has been shut down; make a new one"
            )
