"""PartialObjectMetadata: objects cut to their metadata, in the field order of a Go struct."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dyninformer.testing.api.encoding import encode
from dyninformer.testing.cluster.go_types import STRUCTS
from dyninformer.testing.cluster.lists import Page
from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.status import ApiError
from dyninformer.types import Object

INITIAL_END = "k8s.io/initial-events-end"


def partial_object(metadata: Object, api_version: str = "meta.k8s.io/v1") -> bytes:
    """The bytes of one PartialObjectMetadata."""
    return encode(
        {
            "kind": "PartialObjectMetadata",
            "apiVersion": api_version,
            "metadata": in_struct_order(metadata),
        },
        sort=False,
    )


def partial_bookmark(revision: int, *, initial_end: bool) -> bytes:
    """The object of a bookmark: a version, and the mark that ends the initial events."""
    metadata: Object = {"resourceVersion": str(revision)}
    if initial_end:
        metadata["annotations"] = {INITIAL_END: "true"}
    return partial_object(metadata)


def in_struct_order(metadata: Object) -> Object:
    """Metadata with its keys as Go's struct has them, maps sorted, empty fields left out."""
    found = {name: metadata[name] for name in STRUCTS["ObjectMeta"] if _kept(metadata.get(name))}
    for name in ("labels", "annotations"):
        if name in found:
            found[name] = dict(sorted(found[name].items()))
    for name, item in (
        ("ownerReferences", "OwnerReference"),
        ("managedFields", "ManagedFieldsEntry"),
    ):
        if name in found:
            found[name] = [
                {field: each[field] for field in STRUCTS[item] if field in each}
                for each in found[name]
            ]
    for entry in found.get("managedFields", ()):
        if "fieldsV1" in entry:
            entry["fieldsV1"] = _sorted(entry["fieldsV1"])
    return found


def list_metadata(page: Page) -> Object:
    """The metadata of a list in struct order: no continue and no remainder at the end."""
    metadata: Object = {"resourceVersion": str(page.revision)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


class MetadataOnly:
    """The representation of clients that ask ``as=PartialObjectMetadata`` or its list.

    ``of_lists`` tells which: a list can only be asked as the list kind, an object only
    as the other, and a watch as the list kind ends at its first event.
    """

    first_line_differs = False

    def __init__(self, api_version: str, *, of_lists: bool) -> None:
        self._api_version = api_version
        self._of_lists = of_lists

    def item(self, version: Version, resource: Resource) -> bytes:  # noqa: ARG002  metadata is the same in every version
        """One object's metadata as it stands in a list."""
        found = version.encoded.get(self)
        if found is None:
            found = partial_object(version.object["metadata"], self._api_version)
            version.encoded[self] = found
        return found

    def single(self, version: Version, resource: Resource) -> bytes:
        """One object's metadata, unless the list kind was asked for."""
        if self._of_lists:
            raise ApiError(500, None, "content is not a list")
        return self.item(version, resource) + b"\n"

    def list_(self, page: Page, resource: Resource) -> Iterable[bytes]:
        """The list, unless the object kind was asked for."""
        if not self._of_lists:
            message = (
                "you requested PartialObjectMetadata, but the requested object is a list "
                f"({list_type(resource)})"
            )
            raise ApiError(406, "NotAcceptable", message)
        return self._pieces(page, resource)

    def event(
        self, kind: str, version: Version, resource: Resource, *, first: bool = False
    ) -> bytes | None:  # fmt: skip
        """One watch line; None, which ends the stream, if the list kind was asked for."""
        del first
        if self._of_lists:
            return None
        key = (self, kind)
        found = version.encoded.get(key)
        if found is None:
            item = self.item(version, resource)
            found = b'{"type":"%b","object":%b}\n' % (kind.encode(), item)
            version.encoded[key] = found
        return found

    def bookmark(
        self, revision: int, resource: Resource, *, initial_end: bool = False, first: bool = False
    ) -> bytes | None:
        """A BOOKMARK line; None as in `event`."""
        del resource, first
        if self._of_lists:
            return None
        item = partial_bookmark(revision, initial_end=initial_end)
        return b'{"type":"BOOKMARK","object":%b}\n' % item

    def _pieces(self, page: Page, resource: Resource) -> Iterator[bytes]:
        head = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": self._api_version,
            "metadata": list_metadata(page),
        }
        yield encode(head, sort=False)[:-1] + b',"items":['
        yield b",".join([self.item(version, resource) for version in page.versions])
        yield b"]}\n"


def list_type(resource: Resource) -> str:
    """What Go calls the list of a resource, as some refusals do."""
    if not resource.builtin:
        return "*unstructured.UnstructuredList"
    package = resource.group.partition(".")[0] or "core"
    return f"*{package}.{resource.list_kind or resource.kind + 'List'}"


def _kept(value: Any) -> bool:
    """What Go's omitempty keeps; a grace period of 0 is a pointer's and stays."""
    return value is not None and value not in ("", {}, [])


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return value
