"""Writes: create, replace, patch and delete, as the API server admits, stores and answers them.

Everything is decided before the one append that makes a write visible: a refused write
has changed nothing. Objects are stored in the version they were written through, and
never changed after that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dyninformer.testing.cluster import deletes, scale
from dyninformer.testing.cluster.apply import apply
from dyninformer.testing.cluster.bodies import BodyError, check_depth, decode_yaml
from dyninformer.testing.cluster.incoming import (
    placed,
    read_object,
    require_name,
    require_revision,
    require_size,
)
from dyninformer.testing.cluster.log import Key, Version
from dyninformer.testing.cluster.managed_fields import ManagedFields, Manager
from dyninformer.testing.cluster.metadata import (
    SYSTEM_FIELDS,
    creation_causes,
    finalizer_warnings,
    ordered,
    update_causes,
)
from dyninformer.testing.cluster.patches import json_patch, merge_patch, read_patch, require_object
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import content_causes, prepare_for_read, with_rules_note
from dyninformer.testing.cluster.shapes import shape_of
from dyninformer.testing.cluster.strategic import strategic_merge
from dyninformer.testing.cluster.strategies import CRDS, NAMESPACES, strategy_of
from dyninformer.testing.cluster.timestamps import timestamp
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
from dyninformer.testing.status import (
    ApiError,
    already_exists,
    bad_request,
    cause,
    conflict,
    forbidden,
    invalid,
    not_found,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dyninformer.testing.cluster.cluster import Cluster

Object = dict[str, Any]
Versions = list[Version]

_STALE: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_SERVERS_OWN: Final = frozenset({"generation", "selfLink", "creationTimestamp"})
"""What an update says of these is not even looked at."""
_KEPT_BY_STATUS: Final = ("status",)


class Writer:
    """The one way in which objects of a cluster change. Owned by the cluster's thread.

    Each method either returns after its write, and whatever controllers do at once in
    answer to it, or raises an ApiError and has changed nothing.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._log = cluster.log

    def create(
        self, resource: Resource, namespace: str, body: Object, options: WriteOptions
    ) -> WriteResult:
        """Create an object in a namespace ("" for a cluster-scoped resource)."""
        with self._cluster.writing():
            obj, warnings = read_object(resource, body, options)
            return self._create(resource, namespace, obj, options, warnings)

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
            self._require_subresource(resource, key, subresource)
            if subresource == "scale":
                return self._replace_scale(resource, key, body, options)
            obj, warnings = read_object(resource, body, options)
            require_name(obj, key)
            obj = placed(resource, obj, key.namespace)
            live = self._live(resource, key)
            revision = require_revision(obj)
            if revision is None and not resource.builtin:
                why = "Invalid value: 0: must be specified for an update"
                found = cause("FieldValueInvalid", why, "metadata.resourceVersion")
                raise invalid(resource.group, resource.plural, key.name, [found])
            uid = obj["metadata"].get("uid")
            if uid and uid != live.object["metadata"]["uid"]:
                raise self._wrong_uid(resource, key, uid, live)
            return self._update(resource, live, obj, options, subresource, warnings)

    def patch(
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
            self._require_subresource(resource, key, subresource)
            if patch_type == APPLY and subresource != "scale":
                return self._apply(resource, key, body, options, subresource)
            patch, duplicates = read_patch(body)
            options = replace(options, duplicates=duplicates)
            live = self._live(resource, key)
            current = prepare_for_read(resource, live.object)
            if subresource == "scale":
                shown = scale.scale_of(resource, current)
                changed = self._patched(resource, shown, patch_type, patch)
                return self._replace_scale(resource, key, changed, options)
            changed = self._patched(resource, current, patch_type, patch)
            obj, warnings = read_object(resource, changed, options, patched=True)
            require_name(obj, key)
            obj = placed(resource, obj, key.namespace)
            return self._update(resource, live, obj, options, subresource, warnings)

    def delete(self, resource: Resource, key: Key, options: DeleteOptions) -> Object:
        """Delete an object, or mark it until its finalizers are done with it.

        Returns the Status of an object that has gone, else the object that stays for now.
        """
        with self._cluster.writing():
            return deletes.delete(self._cluster, resource, self._live(resource, key), options)

    def delete_collection(
        self,
        resource: Resource,
        namespace: str,
        options: DeleteOptions,
        versions: Iterable[Version],
    ) -> None:
        """Delete each of ``versions`` that is still there, in order; one revision each."""
        del namespace  # the versions say where they are
        with self._cluster.writing():
            for version in list(versions):
                live = self._log.get(resource.collection, version.key)
                if live is not None:
                    deletes.delete(self._cluster, resource, live, options)

    def get_scale(self, resource: Resource, key: Key) -> Object:
        """The Scale of an object; ApiError 404 if there is no such object or subresource."""
        self._require_subresource(resource, key, "scale")
        live = self._live(resource, key)
        return scale.scale_of(resource, prepare_for_read(resource, live.object))

    def _live(self, resource: Resource, key: Key) -> Version:
        live = self._log.get(resource.collection, key)
        if live is None:
            raise not_found(resource.group, resource.plural, key.name)
        return live

    def _create(
        self,
        resource: Resource,
        namespace: str,
        obj: Object,
        options: WriteOptions,
        warnings: tuple[str, ...],
        managed: ManagedFields | None = None,
    ) -> WriteResult:
        """Store a new object. ``managed`` are its owners, if an apply has said so."""
        name = obj["metadata"].get("name", "")
        if not resource.creatable:
            why = "create not allowed while custom resource definition is terminating"
            raise forbidden(resource.group, resource.plural, name, why)
        obj = placed(resource, obj, namespace)
        if require_revision(obj) is not None:
            raise ApiError(500, None, "resourceVersion should not be set on objects to be created")
        require_size(options.size)
        if resource.namespaced:
            self._cluster.namespaces.require_open(resource, namespace, name)
        obj = self._new(resource, obj, options, managed)
        metadata = obj["metadata"]
        found = [
            *creation_causes(resource, metadata),
            *(strategy_of(resource).causes(obj, None) if metadata.get("name") else ()),
            *content_causes(resource, obj),
        ]
        if found:
            raise invalid(
                resource.group, resource.kind, metadata.get("name", ""),
                with_rules_note(resource, found),
            )  # fmt: skip
        key = Key(namespace, metadata["name"])
        there = self._log.get(resource.collection, key)
        if there is not None:
            dying = "deletionTimestamp" in there.object["metadata"]
            raise already_exists(resource.group, resource.plural, key.name, deleting=dying)
        warnings += finalizer_warnings(metadata, {})
        if not options.dry_run:
            obj = self._log.append(resource.collection, key, obj).object
        return WriteResult(obj, 201, warnings)

    def _new(
        self, resource: Resource, obj: Object, options: WriteOptions, managed: ManagedFields | None
    ) -> Object:
        """The object with what the server gives every new one."""
        now = timestamp(self._cluster.now())
        given = obj["metadata"]
        metadata = {k: v for k, v in given.items() if k not in SYSTEM_FIELDS}
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"][:58] + self._cluster.suffix()
            obj = strategy_of(resource).defaults({**obj, "metadata": metadata})
            metadata = obj["metadata"]
        metadata["uid"] = self._cluster.uid()
        metadata["creationTimestamp"] = now
        if resource.generation:
            metadata["generation"] = 1
        obj = {**obj, "metadata": metadata}
        if resource.status and resource.plural != "nodes":
            obj.pop("status", None)
        if managed is None:
            managed = ManagedFields(metadata.pop("managedFields", ()))
            manager = Manager(options.manager, "Update", resource.api_version)
            blank = strategy_of(resource).blank
            managed.updated(manager, blank, obj, shape_of(resource), now)
        obj = strategy_of(resource).prepare(obj, None)
        entries = managed.entries()
        return {
            **obj,
            "metadata": ordered({**metadata, **({"managedFields": entries} if entries else {})}),
        }

    def _apply(
        self,
        resource: Resource,
        key: Key,
        body: bytes | object,
        options: WriteOptions,
        subresource: str,
    ) -> WriteResult:
        config, duplicates = _read_config(body)
        options = replace(options, duplicates=duplicates)
        read, warnings = read_object(resource, config, options, patched=True)
        read["metadata"].setdefault("name", key.name)
        require_name(read, key)
        if config.get("metadata", {}).get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")
        config = _spoken(config, placed(resource, read, key.namespace))
        manager = Manager(options.manager, "Apply", resource.api_version, subresource)
        live = self._log.get(resource.collection, key)
        now = timestamp(self._cluster.now())
        managed = ManagedFields(
            live.object["metadata"].get("managedFields", ()) if live is not None else ()
        )
        shape = shape_of(resource)
        if live is None:
            if subresource:
                raise not_found(resource.group, resource.plural, key.name)
            if config["metadata"].get("uid"):
                raise self._wrong_uid(resource, key, config["metadata"]["uid"], None)
            managed.applied(manager, config, shape, now)
            obj, _ = read_object(resource, config, replace(options, field_validation="Ignore"))
            return self._create(resource, key.namespace, obj, options, warnings, managed)
        current = prepare_for_read(resource, live.object)
        merged = apply(current, config, shape, managed, manager, time=now, force=options.force)
        obj, _ = read_object(resource, merged, replace(options, field_validation="Ignore"))
        return self._update(resource, live, obj, options, subresource, warnings, managed)

    def _update(
        self,
        resource: Resource,
        live: Version,
        obj: Object,
        options: WriteOptions,
        subresource: str,
        warnings: tuple[str, ...],
        managed: ManagedFields | None = None,
    ) -> WriteResult:
        """Store a new state of an object that is there."""
        key = live.key
        require_size(options.size)
        revision = require_revision(obj)
        before = prepare_for_read(resource, live.object)
        if revision is not None and str(revision) != before["metadata"]["resourceVersion"]:
            raise conflict(resource.group, resource.plural, key.name, _STALE)
        obj = self._carried(resource, obj, before, subresource)
        obj = self._owned(resource, obj, before, options, subresource, managed)
        if subresource != "finalize":
            obj = strategy_of(resource).prepare(obj, before)
        obj = _with_generation(resource, obj, before)
        metadata = obj["metadata"]
        found = update_causes(metadata, before["metadata"])
        found += found  # the real server looks at metadata twice, and says so
        if not subresource or subresource == "status":
            found += strategy_of(resource).causes(obj, before)
        found += content_causes(resource, obj)
        if found:
            raise invalid(resource.group, resource.kind, key.name, with_rules_note(resource, found))
        warnings += finalizer_warnings(metadata, before["metadata"])
        if _same(obj, before):
            return WriteResult(before, 200, warnings)
        if self._is_done(resource, obj):
            if not options.dry_run:
                self._cluster.remove(resource.collection, key)
            return WriteResult(obj, 200, warnings)
        if not options.dry_run:
            obj = self._log.append(resource.collection, key, obj).object
        return WriteResult(obj, 200, warnings)

    def _carried(self, resource: Resource, obj: Object, before: Object, subresource: str) -> Object:
        """The object with what an update of this kind cannot change taken from before."""
        old = before["metadata"]
        if subresource == "status":
            result = {**before, "status": obj.get("status")}
            entries = obj["metadata"].get("managedFields")
            if result["status"] is None:
                del result["status"]
            metadata = {**old, **({"managedFields": entries} if entries is not None else {})}
            return {**result, "metadata": metadata}
        if subresource == "finalize":
            return {**before, "spec": obj.get("spec") or {}}
        if resource.status and not subresource:
            obj = {name: value for name, value in obj.items() if name != "status"}
            if "status" in before:
                obj["status"] = before["status"]
        metadata = dict(obj["metadata"])
        for name in (*SYSTEM_FIELDS, "resourceVersion"):
            if name in old and (name not in metadata or name in _SERVERS_OWN):
                metadata[name] = old[name]
        for name in ("generation", "selfLink"):
            if name not in old:
                metadata.pop(name, None)
        return {**obj, "metadata": ordered(metadata)}

    def _owned(
        self,
        resource: Resource,
        obj: Object,
        before: Object,
        options: WriteOptions,
        subresource: str,
        managed: ManagedFields | None,
    ) -> Object:
        """The object with its managedFields brought up to date."""
        metadata = obj["metadata"]
        if managed is None:
            given = metadata.get("managedFields")
            entries = before["metadata"].get("managedFields", ()) if given is None else given
            managed = ManagedFields(entries)
            manager = Manager(options.manager, "Update", resource.api_version, subresource)
            blank = strategy_of(resource).blank
            old = {**blank, **before}
            now = timestamp(self._cluster.now())
            managed.updated(manager, old, {**blank, **obj}, shape_of(resource), now)
        metadata = {name: value for name, value in metadata.items() if name != "managedFields"}
        entries = managed.entries()
        if entries:
            metadata["managedFields"] = entries
        return {**obj, "metadata": ordered(metadata)}

    def _is_done(self, resource: Resource, obj: Object) -> bool:
        """Whether nothing holds an object any more that is being deleted."""
        metadata = obj["metadata"]
        if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
            return False
        return resource.collection != NAMESPACES or not obj.get("spec", {}).get("finalizers")

    def _replace_scale(
        self, resource: Resource, key: Key, body: Object, options: WriteOptions
    ) -> WriteResult:
        live = self._live(resource, key)
        before = prepare_for_read(resource, live.object)
        obj = scale.scaled(resource, before, body)
        result = self._update(resource, live, obj, options, "scale", ())
        return WriteResult(scale.scale_of(resource, result.object), 200, result.warnings)

    def _patched(self, resource: Resource, current: Object, patch_type: str, patch: Any) -> Object:
        if patch_type == JSON:
            changed = json_patch(current, patch)
        elif patch_type == STRATEGIC:
            changed = strategic_merge(current, require_object(patch), shape_of(resource))
        else:
            changed = merge_patch(current, patch)
        if not isinstance(changed, dict):
            raise ApiError(422, "Invalid", "the patched object is not an object", details={})
        return changed

    def _require_subresource(self, resource: Resource, key: Key, subresource: str) -> None:
        """A subresource that is not there is reported as if the object were not."""
        there = {
            "": True,
            "status": resource.status,
            "scale": resource.scale is not None,
            "finalize": resource.collection == NAMESPACES,
        }
        if not there.get(subresource):
            raise not_found(resource.group, resource.plural, key.name)

    def _wrong_uid(self, resource: Resource, key: Key, uid: str, live: Version | None) -> ApiError:
        path = "/".join(
            part for part in (resource.group, resource.plural, key.namespace, key.name) if part
        )
        actual = live.object["metadata"]["uid"] if live is not None else ""
        why = (
            f"StorageError: invalid object, Code: 4, Key: /registry/{path}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
            f"UID in object meta: {actual}"
        )
        return conflict(resource.group, resource.plural, key.name, why)


def _read_config(body: bytes | object) -> tuple[Object, tuple[str, ...]]:
    duplicates: tuple[str, ...] = ()
    if isinstance(body, bytes):
        try:
            body, duplicates = decode_yaml(body)
        except BodyError as error:
            raise bad_request(f"error decoding YAML: {error}") from None
    if not isinstance(body, dict):
        raise bad_request("error decoding YAML: an apply patch must be an object")
    check_depth(body)
    return body, duplicates


def _spoken(config: Object, read: Object) -> Object:
    """What a configuration says itself, without the defaults that reading it filled in."""
    kept: Object = _common(config, read)
    return {**kept, **{name: read[name] for name in ("apiVersion", "kind", "metadata")}}


def _common(given: Any, read: Any) -> Any:
    if isinstance(given, dict) and isinstance(read, dict):
        return {name: _common(value, read[name]) for name, value in given.items() if name in read}
    if isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        return [_common(one, other) for one, other in zip(given, read, strict=True)]
    return read


def _with_generation(resource: Resource, obj: Object, before: Object) -> Object:
    """generation counts the changes outside metadata, and outside status where that is apart."""
    old = before["metadata"].get("generation")
    if not resource.generation or old is None or resource.collection == CRDS:
        ignored: frozenset[str] = frozenset({"metadata", "status"})
    else:
        ignored = frozenset({"metadata", *(_KEPT_BY_STATUS if resource.status else ())})
    if old is None or not _differ(obj, before, ignored):
        return obj
    metadata = ordered({**obj["metadata"], "generation": old + 1})
    return {**obj, "metadata": metadata}


def _differ(one: Object, other: Object, ignored: frozenset[str]) -> bool:
    return any(
        one.get(name) != other.get(name)
        for name in one.keys() | other.keys()
        if name not in ignored
    )


def _same(one: Object, other: Object) -> bool:
    """Whether a write changes nothing; when managers last wrote is no change."""
    if _differ(one, other, frozenset({"metadata"})):
        return False
    return _timeless(one["metadata"]) == _timeless(other["metadata"])


def _timeless(metadata: Object) -> Object:
    entries = [
        {name: value for name, value in entry.items() if name != "time"}
        for entry in metadata.get("managedFields", ())
    ]
    return {**metadata, "managedFields": entries}
