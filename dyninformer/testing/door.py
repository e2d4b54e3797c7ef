"""What the server with sockets and the one without have in common: the state and its handles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from dyninformer.testing.api.access import Access
from dyninformer.testing.backend import Backend
from dyninformer.testing.cluster.cluster import Snapshot
from dyninformer.testing.faults.injection import Faults
from dyninformer.testing.objects import Names, Object, ObjectList, Patch, Reference
from dyninformer.testing.request_log import LoggedRequest

if TYPE_CHECKING:
    from dyninformer.testing.rest import Source

T = TypeVar("T")
RequestLogList = list[LoggedRequest]


class Door(ABC):
    """A cluster, and the means to set it up, change it, break it, and see what was asked of it.

    References to objects read as in kubectl: ``"widgets/a"``, ``"widgets.ex.io/a"``,
    ``"Widget/a"``, or the object itself. Without a namespace, "default" is meant.
    Refusals are ApiErrors with the message of the server's Status.
    """

    _backend: Backend

    @abstractmethod
    def _call(self, function: Callable[[], T]) -> T:
        """Run a function on the thread that owns the state."""

    @abstractmethod
    def _wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Let time pass until ``condition`` holds; false if it does not in time."""

    # -- objects -------------------------------------------------------------------------

    def install(self, *sources: Source, timeout: float = 10) -> None:
        """Put in place what YAML or JSON files, folders of them, or dicts hold.

        CRDs come first, then namespaces, and every CRD is served before the rest is
        written. What is there already is written over.
        """
        from dyninformer.testing.rest import manifests  # noqa: PLC0415 - YAML, needed only here

        objects = [obj for source in sources for obj in manifests(source)]
        objects.sort(key=_precedence)
        crds = [obj["metadata"]["name"] for obj in objects if _precedence(obj) == 0]
        for obj in objects[: len(crds)]:
            self._put_in_place(obj)
        waiting = self._unestablished(crds)
        if not self._wait_until(lambda: not self._unestablished(waiting), timeout):
            names = ", ".join(self._unestablished(waiting))
            raise TimeoutError(
                f"not established after {timeout:g} s: {names}; their status.conditions say why"
            )
        for obj in objects[len(crds) :]:
            self._put_in_place(obj)

    def create(self, obj: Mapping[str, Any], namespace: str | None = None) -> Object:
        """Create an object, and return it as it is stored."""
        return self._call(lambda: self._backend.objects.create(obj, namespace))

    def get(self, reference: Reference, namespace: str | None = None) -> Object:
        """One object as it is now."""
        return self._call(lambda: self._backend.objects.get(reference, namespace))

    def list(
        self,
        reference: str,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> ObjectList:
        """The objects of a collection, in one namespace or in all."""
        return self._call(
            lambda: self._backend.objects.list(
                reference, namespace, label_selector=label_selector, field_selector=field_selector
            )
        )

    def replace(self, obj: Mapping[str, Any]) -> Object:
        """Write an object over the one that is there; it must carry its resourceVersion."""
        return self._call(lambda: self._backend.objects.replace(obj))

    def patch(
        self,
        reference: Reference,
        patch: Patch,
        namespace: str | None = None,
        *,
        kind: str | None = None,
        subresource: str = "",
    ) -> Object:
        """Change an object: a dict is a merge patch, a list the operations of a JSON patch.

        ``kind="apply"`` applies the dict, as a server-side apply that wins conflicts.
        """
        return self._call(
            lambda: self._backend.objects.patch(
                reference, patch, namespace, kind=kind, subresource=subresource
            )
        )

    def delete(self, reference: Reference, namespace: str | None = None) -> Object:
        """Delete an object; the answer is a Status, or the object if finalizers hold it."""
        return self._call(lambda: self._backend.objects.delete(reference, namespace))

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

    def _put_in_place(self, obj: Mapping[str, Any]) -> None:
        self._call(lambda: self._backend.objects.put_in_place(obj))

    def _unestablished(self, crds: Names) -> Names:
        return self._call(lambda: self._backend.objects.unestablished(crds))


def _precedence(obj: Mapping[str, Any]) -> int:
    return {"CustomResourceDefinition": 0, "Namespace": 1}.get(obj.get("kind", ""), 2)
