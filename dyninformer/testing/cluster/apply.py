"""Server-side apply: a configuration, the owners of its fields, its merge into an object."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dyninformer.testing.cluster.bodies import (
    BodyError,
    UnreadableError,
    check_depth,
    decode_yaml,
    type_name,
)
from dyninformer.testing.cluster.causes import shown
from dyninformer.testing.cluster.incoming import (
    placed,
    read_object,
    read_typed,
    require_name,
    wrong_uid,
)
from dyninformer.testing.cluster.log import Key
from dyninformer.testing.cluster.managed_fields import (
    Fields,
    ManagedFields,
    Manager,
    Path,
    difference,
    mentioned,
    same_value,
    shown_path,
    with_parents,
)
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import prepare_for_read
from dyninformer.testing.cluster.shapes import Shape, item_element, shape_of
from dyninformer.testing.cluster.strategies import strategy_of
from dyninformer.testing.cluster.timestamps import timestamp
from dyninformer.testing.cluster.write_options import WriteOptions, WriteResult
from dyninformer.testing.cluster.writes import Draft, create, update
from dyninformer.testing.status import ApiError, bad_request, not_found, warned
from dyninformer.types import Object

if TYPE_CHECKING:
    from dyninformer.testing.cluster.cluster import Cluster


def apply_request(  # noqa: PLR0917  what, where, with what, how: in the order of a request
    cluster: Cluster,
    resource: Resource,
    key: Key,
    body: bytes | object,
    options: WriteOptions,
    subresource: str,
) -> WriteResult:
    """Apply a configuration: create what is not there, else merge and take what it names."""
    config = _read_config(body, resource)
    for complaint in _structural_complaints(resource, config):
        kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
        where = f"{_location(config)}; {kind}"
        raise ApiError(500, None, f"failed to create typed patch object ({where}): {complaint}")
    read, warnings = read_object(resource, config, options)
    with warned(warnings):
        draft = Draft(resource, read, options, warnings, subresource)
        return _merge_and_write(cluster, draft, key, config)


def _merge_and_write(cluster: Cluster, draft: Draft, key: Key, config: Object) -> WriteResult:
    """Merge a configuration, read into ``draft``, with what is there."""
    resource, read, options = draft.resource, draft.object, draft.options
    subresource = draft.subresource
    read["metadata"].setdefault("name", key.name)
    require_name(read, key)
    config = _configured(resource, config, placed(resource, read, key.namespace), subresource)
    live = cluster.log.get(resource.collection, key)
    manager = Manager(options.manager, "Apply", resource.api_version, subresource)
    shape, now = shape_of(resource), timestamp(cluster.now())
    quiet = replace(options, field_validation="Ignore")
    if live is None:
        if subresource:
            raise not_found(resource.group, resource.plural, key.name)
        if config["metadata"].get("uid"):
            raise wrong_uid(resource, key, config["metadata"]["uid"], "")
        managed = ManagedFields()
        managed.applied(manager, config, shape, now)
        obj, _ = read_object(resource, config, quiet)
        return create(cluster, replace(draft, object=obj, managed=managed), key.namespace)
    current = prepare_for_read(resource, live.object)
    managed = ManagedFields(current["metadata"].get("managedFields", ()))
    managed.forget_other_groups(resource.group)
    if not managed:
        # The fields that are there need an owner, or this apply could remove them.
        earlier = Manager(_BEFORE, "Update", resource.api_version)
        managed.updated(earlier, strategy_of(resource).blank, current, shape, now)
    merged = _merged(current, config, shape, managed, manager, time=now, force=options.force)
    obj, _ = read_object(resource, merged, quiet)
    return update(cluster, replace(draft, object=obj, managed=managed), live)


def _location(config: Object) -> str:
    """The object's namespace and name, as an apply's complaints give them."""
    metadata = config.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    return "/".join(str(named.get(name) or "") for name in ("namespace", "name"))


def _read_config(body: bytes | object, resource: Resource) -> Object:
    if isinstance(body, bytes):
        try:
            body, _ = decode_yaml(body)
        except BodyError as error:
            why = f"error decoding YAML: error converting YAML to JSON: {error}"
            raise bad_request(why) from None
    if not isinstance(body, dict):
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
            f"unmarshal {type_name(body)} into Go value of type map[string]interface {{}}"
        )
    check_depth(body)
    version, kind = body.get("apiVersion") or "", body.get("kind") or ""
    if (version, kind) != (resource.api_version, resource.kind):
        raise bad_request(f"invalid object type: {version or '/'}, Kind={kind}")
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    return body


def _structural_complaints(resource: Resource, config: Object) -> Iterator[str]:
    """Why a configuration cannot be merged by its schema; the server gives the first reason."""
    unknown: Iterable[str] = ()
    if resource.builtin:
        with suppress(UnreadableError):  # a value of the wrong type is refused when it is read
            _, unknown = read_typed(resource, config)
    elif resource.structural is not None:
        unknown = resource.structural.unknown(config, root=True)
    for path in unknown:
        yield f".{path}: field not declared in schema"
    yield from _key_complaints(config, shape_of(resource), "")


def _key_complaints(value: Any, shape: Shape, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _key_complaints(below, shape.field(name), f"{where}.{name}")
    elif isinstance(value, list) and (shape.keys or shape.is_set):
        defaults = dict(shape.key_defaults)
        seen = set()
        for index, item in enumerate(value):
            known = item if isinstance(item, dict) else {}
            if shape.keys and not any(key in known or key in defaults for key in shape.keys):
                listed = " ".join(f'"{key}"' for key in shape.keys)
                yield (
                    f"{where}: element {index}: associative list with keys has an element that "
                    f"omits all key fields [{listed}] (and doesn't have default values for any "
                    "key fields)"
                )
            element = item_element(item, shape)
            if element in seen:
                named = shown_path((element,)).removeprefix("[=").removeprefix("[").rstrip("]")
                shown = f"[{named}]" if shape.keys else named
                yield f"{where}: duplicate entries for key {shown}"
            seen.add(element)
            yield from _key_complaints(item, shape.item, f"{where}[{index}]")


def _configured(resource: Resource, config: Object, read: Object, subresource: str) -> Object:
    """The fields of a configuration itself, without the defaults that reading it filled in.

    What the endpoint cannot change is left out, so that an apply does not come to own it.
    """
    kept: Object = _common(config, read)
    kept |= {name: read[name] for name in ("apiVersion", "kind")}
    kept["metadata"] = _configured_metadata(config.get("metadata") or {}, read["metadata"])
    kept |= {name: config[name] for name in strategy_of(resource).write_only if name in config}
    if subresource == "status":
        metadata = {k: v for k, v in read["metadata"].items() if k in _IDENTITY}
        return {
            **{k: v for k, v in kept.items() if k in {"apiVersion", "kind", "status"}},
            "metadata": metadata,
        }
    if resource.status:
        kept.pop("status", None)
    return kept


_BEFORE: Final = "before-first-apply"
"""The manager of fields that were there before any manager was recorded."""
_IDENTITY: Final = frozenset({"name", "namespace", "uid", "resourceVersion"})


def _configured_metadata(given: Object, read: Object) -> Object:
    """Empty labels and annotations are kept: the configuration says that there are none."""
    identity = {name: read[name] for name in ("name", "namespace") if name in read}
    empty: Object = {
        name: {} for name in ("labels", "annotations") if name in given and not given[name]
    }
    return {**empty, **_common(given, read), **identity}


def _common(given: Any, read: Any) -> Any:
    if isinstance(given, dict) and isinstance(read, dict):
        return {name: _common(value, read[name]) for name, value in given.items() if name in read}
    if isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        return [_common(one, other) for one, other in zip(given, read, strict=True)]
    return given if isinstance(given, str) and isinstance(read, str) else read


_Conflicts = dict[Manager, list[Path]]

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Where ``kubectl apply`` without --server-side keeps what it applied."""
_KUBECTL: Final = "kubectl"


def _merged(
    live: Object,
    config: Object,
    shape: Shape,
    managed: ManagedFields,
    manager: Manager,
    *,
    time: str,
    force: bool,
) -> Object:
    """``live`` with ``config`` merged in, without what ``manager`` gave up.

    ``managed`` is brought up to date. Raises the 409 of a conflict unless ``force``.
    """
    merged = _merge(live, config, shape)
    change = difference(live, merged, shape)
    found = managed.conflicts(manager, change.taken)
    if found and not force and not _was_kubectls_own(manager, live, shape, found):
        raise managed.conflict_error(found)
    managed.take(manager, change.taken)
    last_time = managed.time_of(manager)
    _, given_up = managed.applied(manager, config, shape, time)
    result: Object = _without(merged, shape, (), given_up)
    if same_value(result, live):
        managed.set_time(manager, last_time)  # owning alone is no write
    if manager.name == _KUBECTL and _LAST_APPLIED in _annotations(result):
        return _with_last_applied(result, config)
    return result


def _was_kubectls_own(manager: Manager, live: Object, shape: Shape, found: _Conflicts) -> bool:
    """Whether kubectl conflicts only with what it has itself applied from the client's side."""
    if manager.name != _KUBECTL:
        return False
    try:
        applied = json.loads(_annotations(live).get(_LAST_APPLIED, ""))
    except ValueError:
        return False
    if not isinstance(applied, dict):
        return False
    own = with_parents(mentioned(applied, shape))
    return all(path in own for paths in found.values() for path in paths)


def _with_last_applied(obj: Object, config: Object) -> Object:
    """``obj`` with ``config`` in its annotation, for a later apply from the client's side."""
    metadata = dict(config["metadata"])
    annotations = {k: v for k, v in _annotations(config).items() if k != _LAST_APPLIED}
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    applied = {**config, "metadata": metadata}
    kept = {**_annotations(obj), _LAST_APPLIED: f"{shown(applied)}\n"}
    return {**obj, "metadata": {**obj["metadata"], "annotations": kept}}


def _annotations(obj: Object) -> Object:
    found: Object = obj.get("metadata", {}).get("annotations") or {}
    return found


def _merge(old: Any, new: Any, shape: Shape) -> Any:
    if isinstance(old, dict) and isinstance(new, dict) and not shape.atomic:
        result = dict(old)
        for name, value in new.items():
            result[name] = _merge(old.get(name), value, shape.field(name))
        return result
    if isinstance(old, list) and isinstance(new, list) and (shape.keys or shape.is_set):
        wanted = {item_element(item, shape): item for item in new}
        kept = [
            _merge(item, wanted.pop(element), shape.item) if element in wanted else item
            for item, element in ((item, item_element(item, shape)) for item in old)
        ]
        return kept + list(wanted.values())
    return new


def _without(value: Any, shape: Shape, path: Path, gone: Fields) -> Any:
    if not gone:
        return value
    if isinstance(value, dict) and not shape.atomic:
        return {
            name: _without(below, shape.field(name), (*path, f"f:{name}"), gone)
            for name, below in value.items()
            if (*path, f"f:{name}") not in gone
        }
    if isinstance(value, list) and (shape.keys or shape.is_set):
        named = [((*path, item_element(item, shape)), item) for item in value]
        return [
            _without(item, shape.item, where, gone) for where, item in named if where not in gone
        ]
    return value
