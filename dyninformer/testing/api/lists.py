"""The plain JSON representation of objects, lists and watch lines.

Custom resources have their keys sorted at every level, as unstructured data has.
Built-in resources come in the order of their Go structs, and their lists leave
apiVersion and kind out of the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dyninformer.testing.api.empty_objects import empty_parts
from dyninformer.testing.api.encoding import encode
from dyninformer.testing.api.metadata_only import INITIAL_END, in_struct_order, list_metadata
from dyninformer.testing.cluster import events
from dyninformer.testing.cluster.go_types import STRUCTS
from dyninformer.testing.cluster.lists import Page, Representation
from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import prepare_for_read
from dyninformer.testing.status import ApiError
from dyninformer.types import Object

__all__ = [
    "Page",
    "PlainJson",
    "Representation",
    "encode_object",
    "error_line",
    "joined",
]


_PIECE = 128 << 10


def encode_object(obj: Object, resource: Resource) -> bytes:
    """An object that is no stored version (a dry run's answer), without a newline."""
    served = prepare_for_read(resource, obj)
    if not resource.builtin:
        return encode(served)
    return _with_kind(_struct(served), resource)


def error_line(error: ApiError) -> bytes:
    """The in-stream ERROR, the same in every representation."""
    return b'{"type":"ERROR","object":%b}\n' % encode(error.body(), sort=False)


def joined(items: Iterable[bytes]) -> Iterator[bytes]:
    """The items with commas between them, in pieces that are worth a write each."""
    ready: list[bytes] = []
    size, before = 0, b""
    for item in items:
        ready.append(item)
        size += len(item)
        if size >= _PIECE:
            yield before + b",".join(ready)
            ready, size, before = [], 0, b","
    if ready:
        yield before + b",".join(ready)


class PlainJson:
    """What a client gets that asks for ``application/json``. One instance serves everything."""

    first_line_differs = False

    def item(self, version: Version, resource: Resource) -> bytes:
        """One object as it stands in a list."""
        key = self, resource
        found = version.encoded.get(key)
        if found is None:
            served = prepare_for_read(resource, version.object)
            found = _struct(served) if resource.builtin else encode(served)
            version.encoded[key] = found
        return found

    def single(self, version: Version, resource: Resource) -> bytes:
        """One object as a GET answers it."""
        return self._object(version, resource) + b"\n"

    def event(
        self, kind: str, version: Version, resource: Resource, *, first: bool = False
    ) -> bytes:
        """One watch line, the same bytes object for every watch."""
        del first
        key = self, resource, kind
        found = version.encoded.get(key)
        if found is None:
            found = _line(kind, self._object(version, resource))
            version.encoded[key] = found
        return found

    def bookmark(
        self, revision: int, resource: Resource, *, initial_end: bool = False, first: bool = False
    ) -> bytes:
        """A BOOKMARK line: an object with nothing but a version."""
        del first
        metadata: Object = {"resourceVersion": str(revision)}
        if initial_end:
            metadata["annotations"] = {INITIAL_END: "true"}
        if not resource.builtin:
            shown = {"apiVersion": resource.api_version, "kind": resource.kind}
            return _line("BOOKMARK", encode({**shown, "metadata": metadata}))
        start = _with_kind(encode({"metadata": metadata}, sort=False), resource)
        rest = empty_parts(resource)
        return _line("BOOKMARK", b"%b,%b}" % (start[:-1], rest) if rest else start)

    def list_(self, page: Page, resource: Resource) -> Iterable[bytes]:
        """The whole list, in pieces."""
        kind = resource.list_kind or f"{resource.kind}List"
        if resource.builtin:
            metadata = list_metadata(page)
            if page.shard_selector is not None:
                metadata["shardInfo"] = {"selector": page.shard_selector}
            shown = {"kind": kind, "apiVersion": resource.api_version, "metadata": metadata}
            head, tail = encode(shown, sort=False)[:-1] + b',"items":[', b"]}\n"
        else:
            metadata = {"continue": page.continue_token, "resourceVersion": str(page.revision)}
            if page.remaining is not None:
                metadata["remainingItemCount"] = page.remaining
            head = encode({"apiVersion": resource.api_version})[:-1] + b',"items":['
            tail = b"]," + encode({"kind": kind, "metadata": metadata})[1:] + b"\n"
        return self._pieces(head, page, resource, tail)

    def _pieces(self, head: bytes, page: Page, resource: Resource, tail: bytes) -> Iterator[bytes]:
        yield head
        key = self, resource
        yield from joined(
            version.encoded.get(key) or self.item(version, resource) for version in page.versions
        )
        yield tail

    def _object(self, version: Version, resource: Resource) -> bytes:
        item = self.item(version, resource)
        return _with_kind(item, resource) if resource.builtin else item


def _line(kind: str, shown: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), shown)


def _with_kind(item: bytes, resource: Resource) -> bytes:
    start = encode({"kind": resource.kind, "apiVersion": resource.api_version}, sort=False)
    return start[:-1] + b"," + item[1:]


# Built-in objects: the order of the members of Go's structs, as far as it is not the
# order in which the members were written. Maps are sorted, as Go sorts them.

_MEMBERS = (
    "metadata", "spec", "status",
    "immutable", "data", "binaryData", "stringData",
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count",
    "type", "eventTime", "series", "action", "related", "reportingComponent", "reportingInstance",
    "rules", "aggregationRule", "subjects", "roleRef",
    "addressType", "endpoints", "ports",
    "provisioner", "parameters", "reclaimPolicy", "mountOptions", "allowVolumeExpansion",
    "volumeBindingMode", "allowedTopologies",
    "value", "globalDefault", "description", "preemptionPolicy",
)  # fmt: skip
_RANKS = {name: rank for rank, name in enumerate(_MEMBERS)}
_EVENT_VERSION = f"{events.GROUP}/v1"
_EVENT_RANKS = {
    name: rank for rank, name in enumerate(("metadata", *STRUCTS[f"{events.GROUP}/Event"]))
}
_MAPS = frozenset({"data", "binaryData", "stringData", "parameters"})


def _struct(obj: Object) -> bytes:
    """A built-in object without apiVersion and kind."""
    names = (name for name in obj if name not in ("apiVersion", "kind"))
    ranks = _EVENT_RANKS if obj.get("apiVersion") == _EVENT_VERSION else _RANKS
    ordered = {
        name: obj[name] for name in sorted(names, key=lambda each: ranks.get(each, len(ranks)))
    }
    ordered["metadata"] = in_struct_order(obj["metadata"])
    for name in _MAPS.intersection(ordered):
        if isinstance(ordered[name], dict):
            ordered[name] = dict(sorted(ordered[name].items()))
    return encode(ordered, sort=False)
