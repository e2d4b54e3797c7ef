"""Objects put into a server and taken out of it: the same on every kind of server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from dyninformer.testing.objects import ObjectList, Objects, Patch, Reference
from dyninformer.types import Names, Object

if TYPE_CHECKING:
    from dyninformer.testing.manifests import Source

T = TypeVar("T")


class ObjectDoor(ABC):
    """What a test writes to a server before and while it is tested.

    References to objects read as in kubectl: ``"widgets/a"``, ``"widgets.ex.io/a"``,
    ``"Widget/a"``, or the object itself. Without a namespace, "default" is meant.
    Refusals are ApiErrors with the message of the server's Status.
    """

    @abstractmethod
    def _with_objects(self, act: Callable[[Objects], T]) -> T:
        """Run ``act`` where the server's objects may be touched."""

    @abstractmethod
    def _wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Let time pass until ``condition`` holds; false if it does not in time."""

    def install(self, *sources: Source, timeout: float = 10) -> None:
        """Put in place what YAML or JSON files, folders of them, dicts, or lists of these hold.

        CRDs come first, then namespaces, and every CRD is served before the rest is
        written. What is there already is written over.
        """
        from dyninformer.testing.manifests import manifests  # noqa: PLC0415 - YAML, only here

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
        return self._with_objects(lambda objects: objects.create(obj, namespace))

    def get(self, reference: Reference, namespace: str | None = None) -> Object:
        """One object as it is now."""
        return self._with_objects(lambda objects: objects.get(reference, namespace))

    def list(
        self,
        reference: str,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> ObjectList:
        """The objects of a collection, in one namespace or in all."""
        return self._with_objects(
            lambda objects: objects.list(
                reference, namespace, label_selector=label_selector, field_selector=field_selector
            )
        )

    def replace(self, obj: Mapping[str, Any]) -> Object:
        """Write an object over the one that is there; it must carry its resourceVersion."""
        return self._with_objects(lambda objects: objects.replace(obj))

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
        return self._with_objects(
            lambda objects: objects.patch(
                reference, patch, namespace, kind=kind, subresource=subresource
            )
        )

    def delete(self, reference: Reference, namespace: str | None = None) -> Object:
        """Delete an object; the answer is a Status, or the object if finalizers hold it."""
        return self._with_objects(lambda objects: objects.delete(reference, namespace))

    def _put_in_place(self, obj: Mapping[str, Any]) -> None:
        self._with_objects(lambda objects: objects.put_in_place(obj))

    def _unestablished(self, crds: Names) -> Names:
        return self._with_objects(lambda objects: objects.unestablished(crds))


def _precedence(obj: Mapping[str, Any]) -> int:
    return {"CustomResourceDefinition": 0, "Namespace": 1}.get(obj.get("kind", ""), 2)
