"""From an object's bytes as they came to what the store keeps of it."""

from __future__ import annotations

import re
from typing import NoReturn, TypeAlias

import msgspec

from dyninformer.errors import JSONPathError
from dyninformer.options import Transform
from dyninformer.store.codec import Identity, text_of
from dyninformer.store.indexers import HEAD, Found, Indexing, Row
from dyninformer.store.jsonpath import Projection
from dyninformer.store.refused import TransformError, UnusableObjectError, excerpt
from dyninformer.store.transforms import transformed

_NESTING = 500
"""A part of an object that lies deeper than this is not looked at to find its key."""

_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)

Named: TypeAlias = tuple[str, str, str, str, str]

_BRACE = 0x7B
_PARTIAL = "PartialObjectMetadata"


class _Metadata(msgspec.Struct, gc=False, frozen=True):
    metadata: msgspec.Raw


_metadata = msgspec.json.Decoder(_Metadata)
_head = Projection(HEAD)


class Received(msgspec.Struct, frozen=True):
    """One object as it came, ready to be stored."""

    key: str
    """``namespace/name``, or the name of a cluster-scoped object."""
    namespace: str
    name: str
    uid: str
    version: str
    """The resourceVersion that the server sent."""
    data: bytes | None
    """Plain JSON, filled in and transformed. None where the transform said DROP, and for what
    is deleted."""
    identity: Identity | None
    """Uid and version, where the data says otherwise than the server did."""
    row: Row
    indexing: Indexing
    """What made the row: the store may have another by the time this is stored."""


class Receiver:
    """Reads objects as one resource's server sends them; immutable, for any thread."""

    def __init__(self, transform: Transform | None, metadata_only: bool) -> None:
        self._transform = transform
        self._metadata_only = metadata_only

    def receive(
        self, data: bytes, api_version: str, kind: str, deleted: bool, indexing: Indexing
    ) -> Received:
        """See ``Store.receive``."""
        # The decode of a part does not look at the text in the rest.
        if not data.isascii():
            _check_text(data)
        try:
            found = indexing.found(data)
        except JSONPathError:
            _refuse(data)
        key, namespace, name, uid, version = _named(found) or _refuse(data)
        kept = None if deleted else self._whole(data, found, api_version, kind)
        if kept is not None and self._transform is not None:
            kept = self._transformed(self._transform, kept, namespace, name, version)
        identity: Identity | None = None
        row: Row = ()
        if kept is data:
            row = indexing.row(found, data)
        elif kept is not None:
            said_uid, said_version, _ = indexing.held(kept)
            if (said_uid, said_version) != (uid, version):
                identity = Identity(uid, version)
            row = indexing.row_of(kept)
        return Received(key, namespace, name, uid, version, kept, identity, row, indexing)

    def _whole(self, data: bytes, found: Found, api_version: str, kind: str) -> bytes:
        """The object with its apiVersion and kind; of its parts only what was asked for (S31)."""
        if data[0] != _BRACE:  # what is stored begins with it
            data = data.lstrip()
        said_version, said_kind = text_of(found[4]), text_of(found[5])
        if self._metadata_only and said_kind != _PARTIAL:
            raw = bytes(_metadata.decode(data).metadata)
            return b'{"kind":"%b","apiVersion":"meta.k8s.io/v1","metadata":%b}' % (
                _PARTIAL.encode(),
                raw,
            )
        if said_version and said_kind:
            return data
        # In the order in which the server's own encoder puts them, as the watch shows it.
        missing = [
            msgspec.json.encode(field) + b":" + msgspec.json.encode(text) + b","
            for field, text, said in (
                ("kind", kind, said_kind),
                ("apiVersion", api_version, said_version),
            )
            if text and not said
        ]
        return b"{" + b"".join(missing) + data[1:] if missing else data

    def _transformed(
        self, transform: Transform, data: bytes, namespace: str, name: str, version: str
    ) -> bytes | None:
        try:
            return transformed(transform, data, namespace, name)
        except BaseException as error:
            key = f"{namespace}/{name}" if namespace else name
            raise TransformError(
                f"the transform failed on {key}: {type(error).__name__}: {error}",
                key=key,
                version=version,
            ) from error


def _named(found: Found) -> Named | None:
    """Key, namespace, name, uid and version; None where one is no text, or no name."""
    named, placed, known, versioned = found[:4]
    name = named[0] if named else ""
    namespace = placed[0] if placed else ""
    uid = known[0] if known else ""
    version = versioned[0] if versioned else ""
    if not (type(name) is type(namespace) is type(uid) is type(version) is str and name):
        return None
    if namespace:
        key = f"{namespace}/{name}"
        return (key, namespace, name, uid, version) if key.count("/") == 1 else None
    return (name, "", name, uid, version) if "/" not in name else None


def _check_text(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        _refuse(data, f"byte {error.start} is no UTF-8", error.start)


def _refuse(data: bytes, complaint: str = "", offset: int = 0) -> NoReturn:
    """Say what is wrong with an object, and of whose key it is if that can be told."""
    shallow, depth = _without_depths(data)
    try:
        found = _head.rows(shallow.decode(errors="replace").encode())
    except JSONPathError as error:
        found, complaint = [], complaint or str(error)
    named = _named(found) if found else None
    if not complaint and depth > _NESTING:
        complaint = f"it is nested {depth} deep"
    if not complaint:
        complaint = "it is no object with a name in metadata.name"
    raise UnusableObjectError(
        f"an object of {len(data)} bytes cannot be used: {complaint}; "
        f"near byte {offset}: {excerpt(data, offset)}",
        key=named[0] if named else None,
        version=named[4] if named else "",
    )


def _without_depths(data: bytes) -> tuple[bytes, int]:
    """The JSON with null for whatever lies too deep to be decoded, and how deep it was."""
    parts: list[bytes] = []
    depth = deepest = copied = 0
    for found in _BRACKETS.finditer(data):
        token = found[0]
        if token in (b"{", b"["):
            depth += 1
            deepest = max(deepest, depth)
            if depth == _NESTING + 1:
                parts += (data[copied : found.start()], b"null")
        elif token in (b"}", b"]"):
            depth -= 1
            if depth == _NESTING:
                copied = found.end()
    return (b"".join((*parts, data[copied:])), deepest) if parts else (data, deepest)
