"""`CrdWatch`: the one watch on CRDs that all informers of a factory share (S33).

It wakes up informers that may want to ask again; it never changes what an informer holds. It is a
reflector like any other, of metadata only, so that it finds its way through every failure
that they do, and says itself whether it can be relied on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from dyninformer.metrics.told import NO_METRICS, Metrics
from dyninformer.resource import GroupVersionResource
from dyninformer.store.codec import Codec
from dyninformer.store.decide import Deltas
from dyninformer.store.store import Store
from dyninformer.store.transforms import strip
from dyninformer.threads import ReentrantLock, in_forked_child
from dyninformer.watching.client import Source
from dyninformer.watching.prober import Prober
from dyninformer.watching.reflector import Reflector
from dyninformer.watching.states import CrdSeen, Scope
from dyninformer.watching.status import InformerState, InformerStatus

__all__ = ["CrdWatch"]

CRDS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")

_logger = logging.getLogger(__name__)
_WITHOUT_RIGHT = (
    "Without it, informers notice up to 30 s later that a CRD was installed or removed, and list "
    "all objects again when a changed CRD ends their watch."
)
_ENDED = (InformerState.BACKING_OFF, InformerState.ABSENT, InformerState.STOPPED)

Callback = Callable[[], None]


class _Metadata(msgspec.Struct, rename={"version": "resourceVersion"}):
    generation: int | None = None
    version: str = ""


class _Definition(msgspec.Struct):
    metadata: _Metadata


_definition = msgspec.json.Decoder(_Definition)


class CrdWatch:
    """Knows which CRDs there are, and in which generation; tells when one comes, changes, goes.

    It makes no request before the first subscription. A CRD is named ``plural.group``. Every
    method may be called from any thread.
    """

    def __init__(
        self,
        source: Source,
        *,
        owner: object,
        prober: Prober | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self._store = Store(
            CRDS,
            # The thread of each informer reads one of them: to unpack, each would need 30 kB.
            codec=Codec(compress=False),
            transform=strip("metadata.managedFields", "metadata.annotations", "metadata.labels"),
            metadata_only=True,
            on_changes=self._note,
        )
        self._reflector = Reflector(
            Scope(gvr=CRDS, metadata_only=True, without_right=_WITHOUT_RIGHT),
            source.channel(),
            self._store,
            owner=owner,
            on_status=self._tell,
            prober=prober,
            metrics=metrics,
        )
        self._lock = ReentrantLock()  # guards _subscribers, _started and _stopped
        self._subscribers: dict[object, tuple[str | None, Callback]] = {}
        self._started = False
        self._stopped = False
        # Of the reflector's thread alone:
        self._changed: set[str] = set()
        self._told_available = False
        in_forked_child(self, "_lock", _stopped=True)

    @property
    def available(self) -> bool:
        """CRDs can be watched at present: one that comes or changes will be told."""
        status = self._reflector.status()
        return status.synced and status.state not in _ENDED

    def seen(self, group_resource: str) -> CrdSeen:
        """What can be told of this CRD at present."""
        if not self.available:
            return CrdSeen(available=False, generation=None)
        payload = self._store.get(group_resource)
        if payload is None:
            return CrdSeen(available=True, generation=None)
        try:
            metadata = _definition.decode(self._store.codec.plain(payload)).metadata
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return CrdSeen(available=True, generation=None)
        return CrdSeen(available=True, generation=metadata.generation, version=metadata.version)

    def status(self) -> InformerStatus:
        """How the watch stands; its ``reason`` says why it is not available."""
        return self._reflector.status()

    def subscribe(self, callback: Callback, group_resource: str | None = None) -> Callback:
        """Be called when this CRD, or any, may have come, changed or gone; end it by the result.

        Called too when CRDs can be watched from now on, or no more. On the watch's own
        thread, with no lock held; it must not take long. The first subscriber starts the
        watch.
        """
        token = object()
        with self._lock:
            self._subscribers[token] = (group_resource, callback)
            starts = not (self._started or self._stopped)
            self._started = self._started or starts
            if starts:
                # Under the lock, so that `stop` finds it started or not to be started.
                self._reflector.start()

        def unsubscribe() -> None:
            with self._lock:
                self._subscribers.pop(token, None)

        return unsubscribe

    def stop(self) -> None:
        """Have it end; returns at once. Idempotent."""
        with self._lock:
            self._stopped = True
        self._reflector.stop()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until it has ended; false if it has not in time."""
        return self._reflector.join(timeout)

    # -- on the reflector's thread ---------------------------------------------------------

    def _note(self, changes: Deltas) -> None:
        """Under the store's lock, after which `_tell` comes."""
        self._changed.update(change.key for change in changes)

    def _tell(self) -> None:
        changed, self._changed = self._changed, set()
        available = self.available
        turned, self._told_available = available != self._told_available, available
        if not changed and not turned:
            return
        with self._lock:
            subscribers = list(self._subscribers.values())
        for name, callback in subscribers:
            if turned or name is None or name in changed:
                try:
                    callback()
                except Exception:
                    _logger.exception("a subscriber to CRD %s failed", name or "changes")
