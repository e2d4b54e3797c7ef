"""Requests that write: create, replace, patch and delete, as the API server answers them.

Everything is decided before the one append that makes a write visible: a refused write
has changed nothing. Objects are stored in the version they were written through, and
never changed after that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dyninformer.testing.cluster import scale
from dyninformer.testing.cluster.apply import apply_request
from dyninformer.testing.cluster.incoming import (
    placed,
    read_object,
    read_patched,
    require_name,
    require_revision,
    wrong_uid,
)
from dyninformer.testing.cluster.log import Key, Version
from dyninformer.testing.cluster.patches import (
    json_patch,
    merge_patch,
    read_patch,
    require_object,
    strategic_merge,
)
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import prepare_for_read
from dyninformer.testing.cluster.shapes import shape_of
from dyninformer.testing.cluster.strategies import NAMESPACES
from dyninformer.testing.cluster.write_options import (
    APPLY,
    JSON,
    MERGE,
    STRATEGIC,
    DeleteOptions,
    WriteOptions,
    WriteResult,
    wrong_patch_type,
)
from dyninformer.testing.cluster.writes import Draft, create, delete, update
from dyninformer.testing.status import cause, invalid, not_found, warned
from dyninformer.types import Object

if TYPE_CHECKING:
    from dyninformer.testing.cluster.cluster import Cluster


class Writer:
    """The one way in which requests change a cluster's objects. Owned by the cluster's thread.

    Each method either returns after its write, and whatever controllers do at once in
    answer to it, or raises an ApiError and has changed nothing.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def create(
        self, resource: Resource, namespace: str, body: Object, options: WriteOptions
    ) -> WriteResult:
        """Create an object in a namespace ("" for a cluster-scoped resource)."""
        with self._cluster.writing():
            obj, warnings = read_object(resource, body, options)
            with warned(warnings):
                return create(self._cluster, Draft(resource, obj, options, warnings), namespace)

    def replace(
        self,
        resource: Resource,
        key: Key,
        body: Object,
        options: WriteOptions,
        subresource: str = "",
    ) -> WriteResult:
        """Replace an object, or through ``subresource`` its status, scale or finalizers."""
        with self._cluster.writing():
            _require_subresource(resource, key, subresource)
            if subresource == "scale":
                return self._replace_scale(resource, key, body, options)
            obj, warnings = read_object(resource, body, options)
            with warned(warnings):
                draft = Draft(resource, obj, options, warnings, subresource)
                return self._replace(draft, key)

    def patch(  # noqa: PLR0917  what, where, how, with what: in the order of a request
        self,
        resource: Resource,
        key: Key,
        patch_type: str,
        body: bytes | object,
        options: WriteOptions,
        subresource: str = "",
    ) -> WriteResult:
        """Patch an object or a subresource; an apply creates what is not there."""
        accepted = (JSON, MERGE, *((STRATEGIC,) if resource.builtin else ()), APPLY)
        if patch_type not in accepted:
            raise wrong_patch_type(accepted)
        with self._cluster.writing():
            _require_subresource(resource, key, subresource)
            if patch_type == APPLY and subresource != "scale":
                return apply_request(self._cluster, resource, key, body, options, subresource)
            patch, duplicates = read_patch(body)
            options = replace(options, duplicates=duplicates)
            live = self._live(resource, key)
            current = prepare_for_read(resource, live.object)
            if subresource == "scale":
                shown = scale.scale_of(resource, current)
                changed = _patched(resource, shown, patch_type, patch)
                return self._replace_scale(resource, key, changed, options)
            changed = _patched(resource, current, patch_type, patch)
            obj, warnings = read_patched(resource, changed, options)
            with warned(warnings):
                require_name(obj, key)
                obj = placed(resource, obj, key.namespace)
                draft = Draft(resource, obj, options, warnings, subresource)
                return update(self._cluster, draft, live)

    def delete(self, resource: Resource, key: Key, options: DeleteOptions) -> Object:
        """Delete an object, or mark it until its finalizers are done with it.

        Returns the Status of a deletion, or the object if it stays until then.
        """
        with self._cluster.writing():
            return delete(self._cluster, resource, self._live(resource, key), options)

    def delete_collection(
        self,
        resource: Resource,
        namespace: str,
        options: DeleteOptions,
        versions: Iterable[Version],
    ) -> None:
        """Delete each of ``versions`` that is still there, in order; one revision each."""
        with self._cluster.writing():
            for version in list(versions):
                live = self._cluster.log.get(resource.collection, version.key)
                if live is not None and namespace in {"", live.key.namespace}:
                    delete(self._cluster, resource, live, options)

    def get_scale(self, resource: Resource, key: Key) -> Object:
        """The Scale of an object; ApiError 404 if there is no such object or subresource."""
        _require_subresource(resource, key, "scale")
        obj = prepare_for_read(resource, self._live(resource, key).object)
        scale.require_replicas(resource, obj)
        return scale.scale_of(resource, obj)

    def _live(self, resource: Resource, key: Key) -> Version:
        live = self._cluster.log.get(resource.collection, key)
        if live is None:
            raise not_found(resource.group, resource.plural, key.name)
        return live

    def _replace(self, draft: Draft, key: Key) -> WriteResult:
        resource = draft.resource
        require_name(draft.object, key)
        draft = replace(draft, object=placed(resource, draft.object, key.namespace))
        metadata = draft.object["metadata"]
        uid = metadata.get("uid")
        live = self._cluster.log.get(resource.collection, key)
        if live is None and resource.creates_on_update and not draft.subresource:
            if uid:
                raise wrong_uid(resource, key, uid, "")
            # A version is ignored: what was removed is made anew by whoever has not heard of it.
            draft.object["metadata"] = {**metadata, "resourceVersion": ""}
            return create(self._cluster, draft, key.namespace)
        live = self._live(resource, key)
        if require_revision(draft.object) is None and not resource.builtin:
            why = "Invalid value: 0: must be specified for an update"
            found = cause("FieldValueInvalid", why, "metadata.resourceVersion")
            raise invalid(resource.group, resource.plural, key.name, [found])
        actual = live.object["metadata"]["uid"]
        if uid and uid != actual:
            raise wrong_uid(resource, key, uid, actual)
        return update(self._cluster, draft, live)

    def _replace_scale(
        self, resource: Resource, key: Key, body: Object, options: WriteOptions
    ) -> WriteResult:
        live = self._live(resource, key)
        obj = scale.scaled(resource, prepare_for_read(resource, live.object), body)
        result = update(self._cluster, Draft(resource, obj, options, subresource="scale"), live)
        return WriteResult(scale.scale_of(resource, result.object), 200, result.warnings)


def _patched(resource: Resource, current: Object, patch_type: str, patch: Any) -> Any:
    """The whole object after the patch; a JSON patch can make anything of it."""
    if patch_type == JSON:
        return json_patch(current, patch)
    if patch_type == STRATEGIC:
        return strategic_merge(current, require_object(patch), shape_of(resource))
    return merge_patch(current, patch)


def _require_subresource(resource: Resource, key: Key, subresource: str) -> None:
    """A subresource that is not there is reported as if the object were not."""
    there = {
        "": True,
        "status": resource.status,
        "scale": resource.scale is not None,
        "finalize": resource.collection == NAMESPACES,
    }
    if not there.get(subresource):
        raise not_found(resource.group, resource.plural, key.name)
