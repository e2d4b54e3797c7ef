"""What the server with sockets and the one without have in common: the state and its handles."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dyninformer.testing.api.access import Access
from dyninformer.testing.backend import Backend
from dyninformer.testing.cluster.cluster import Snapshot
from dyninformer.testing.faults.injection import Faults
from dyninformer.testing.object_door import ObjectDoor
from dyninformer.testing.objects import Objects
from dyninformer.testing.request_log import LoggedRequest

T = TypeVar("T")
RequestLogList = list[LoggedRequest]


class Door(ObjectDoor):
    """A cluster, and the means to set it up, change it, break it, and see what was asked of it."""

    _backend: Backend

    @abstractmethod
    def _call(self, function: Callable[[], T]) -> T:
        """Run a function on the thread that owns the state."""

    def _with_objects(self, act: Callable[[Objects], T]) -> T:
        return self._call(lambda: act(self._backend.objects))

    # -- objects as they are -------------------------------------------------------------

    def load(self, obj: Mapping[str, Any]) -> None:
        """Put an object in place just as it is; what is there is written over.

        Its uid, creationTimestamp, status and all else that a create would not take are
        kept; only the resourceVersion is this server's. ValueError if it cannot be held.
        CRDs are for `install`.
        """
        self._call(lambda: self._backend.load(obj))

    def unload(self, obj: Mapping[str, Any]) -> bool:
        """Take an object out at once, whatever finalizers it has; False if it is not there."""
        return self._call(lambda: self._backend.unload(obj))

    # -- the state -----------------------------------------------------------------------

    def compact(self, revision: int | None = None) -> int:
        """Forget every state before ``revision``, and return it.

        Without one, every resourceVersion and continue token handed out so far is too old.
        """
        return self._call(lambda: self._backend.compact(revision))

    def snapshot(self) -> Snapshot:
        """The state as it is now, a backup for `restore`; it costs little."""
        return self._call(self._backend.snapshot)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a state of before, as a cluster restored from a backup.

        resourceVersions are those of then, and will be used again. Connections end.
        """
        self._call(lambda: self._backend.restore(snapshot))

    def restart(self) -> None:
        """End every connection, and forget what is only in memory, as a restart does.

        Objects and resourceVersions stay; a watch from before must list again.
        """
        self._call(self._backend.restart)

    def reset(self) -> None:
        """Make it as new: no objects, CRDs, faults, rules or requests. Connections end.

        Users and their tokens stay.
        """
        self._call(self._backend.reset)

    # -- who may, what goes wrong, what was asked --------------------------------------

    @property
    def access(self) -> Access:
        """Users with their tokens, and rules of what they may do beside RBAC's."""
        return self._backend.access

    @property
    def token(self) -> str:
        """The bearer token of a user who may do all. A client without a token may do little."""
        return self._backend.token

    @property
    def faults(self) -> Faults:
        """What goes wrong; see `dyninformer.testing.faults`."""
        return self._backend.faults

    @property
    def requests(self) -> RequestLogList:
        """What clients asked since the start or `reset`, oldest first, at most 10,000."""
        return self._call(self._backend.requests.all)
