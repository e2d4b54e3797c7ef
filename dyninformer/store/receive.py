"""From an object's bytes as they came to what the store keeps of it."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import msgspec

from dyninformer.errors import DynInformerError, JSONPathError
from dyninformer.jsonpath.json_bytes import (
    DEEPEST,
    MOST_VALUES,
    check_depth,
    shallow,
    too_many_values,
)
from dyninformer.options import Transform
from dyninformer.shard import Part
from dyninformer.store.codec import HEAD_READER, Head, Identity, IndexRow, read, text
from dyninformer.store.indexes import IndexFunctions
from dyninformer.store.transforms import transformed
from dyninformer.types import Key

if TYPE_CHECKING:
    from dyninformer.store.store import Entries

Named: TypeAlias = tuple[Key, str, str, str, str]

_NESTING = 500  # what lies deeper than this is not looked at to find an object's key
# An object that is refused has its key looked for in so much of its beginning, which is where API
# servers write the metadata.
_LOOKED_AT = 1 << 18
_TEXT_PIECE = 1 << 16
_PERHAPS_DEEP = 2 * DEEPEST  # a level is two brackets at least

_BRACE = 0x7B
_PARTIAL = "PartialObjectMetadata"

# What an excerpt shows of a refused object.
_BEFORE, _AFTER = 24, 40  # 64 bytes in all
_FOLLOWED = 1 << 16  # from the beginning: a place further on is looked at without what is before
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_PERHAPS_BEFORE = (b"", b'"', b'"\\')
_MASKED = re.compile(rb'"[^"]*"?|true|false|null|[^\s{}\[\]:,]')


class _Metadata(msgspec.Struct, gc=False, frozen=True):
    metadata: msgspec.Raw


_metadata = msgspec.json.Decoder(_Metadata)


class UnusableObjectError(DynInformerError, ValueError):
    """A well-formed frame whose object cannot be kept (S32).

    ``key`` is the object's key where it could be read, else None; ``version`` its
    resourceVersion, "" where that could not be read.
    """

    def __init__(self, message: str, *, key: Key | None = None, version: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.version = version


class Received(msgspec.Struct, frozen=True, gc=False):
    """One object as it came, ready to be stored."""

    key: Key
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
    row: IndexRow
    functions: IndexFunctions
    """What made the row: the store may have others by the time this is stored."""
    failure: str = ""
    """What the transform did, if it failed: there is no data, and what is held stays (S17)."""
    foreign: bool = False
    """It is in no shard that is watched (S49): there is no data, and nothing of it is held."""


class Receiver:
    """Reads objects as one resource's server sends them; immutable, for any thread."""

    def __init__(
        self,
        entries: Entries,
        transform: Transform | None,
        metadata_only: bool,
        shard: Part | None = None,
    ) -> None:
        self._entries = entries  # they know which index functions there are now
        self._transform = transform
        self._metadata_only = metadata_only
        self._shard = shard
        self._keeps_all = transform is None and not metadata_only

    def receive(
        self, data: bytes, api_version: str = "", kind: str = "", *, deleted: bool = False
    ) -> Received:
        """Read an object as it came, outside the store's lock.

        ``api_version`` and ``kind`` are filled in where it has none (S31). ``deleted``: it came
        as DELETED, so that no transform sees it (S17). Raises UnusableObjectError (S32).
        """
        functions = self._entries.functions
        # The decode of a part does not look at the text in the rest.
        if not data.isascii():
            _check_text(data)
        try:
            if len(data) >= _PERHAPS_DEEP:
                _check_extent(data)
            head, row = functions.read(data)
        except JSONPathError as error:
            _refuse(data, str(error))
        if self._shard is not None and not self._shard.owns(text(head[2])):
            return self._left_out(data, head, row, functions)
        name, namespace, uid, version, said_version, said_kind = head[:6]
        if (
            type(name) is type(namespace) is type(uid) is type(version) is str
            and type(said_version) is type(said_kind) is str
            and name
            and namespace
            and said_version
            and said_kind
            and "/" not in name
            and "/" not in namespace
            and data[0] == _BRACE
            and self._keeps_all
            and not deleted
        ):  # what nearly every object is: nothing is missing, and it is kept as it came
            key = f"{namespace}/{name}"
            if not functions.only_paths:
                row = functions.call(data, row)
            return Received(key, namespace, name, uid, version, data, None, row, functions)
        named = _named(head)
        if named is None:
            raise _unusable(data, "it is no object with a name in metadata.name", None, head)
        key, namespace, name, uid, version = named
        kept = None if deleted else self._whole(data, head, api_version, kind)
        if kept is not None and self._transform is not None:
            try:
                kept = transformed(self._transform, kept, namespace, name)
            except BaseException as error:  # noqa: BLE001 - it is the user's
                failure = f"the transform failed on {key}: {type(error).__name__}: {error}"
                return Received(
                    key, namespace, name, uid, version, None, None, row, functions, failure
                )
        if kept is None:
            return Received(key, namespace, name, uid, version, None, None, row, functions)
        return _kept(named, kept, kept is data, row, functions)

    def _left_out(
        self, data: bytes, head: Head, row: IndexRow, functions: IndexFunctions
    ) -> Received:
        """An object of another shard, as if the transform had dropped it (S49).

        It is foreign, unless another object of its key is held: that is no more, then.
        """
        named = _named(head)
        if named is None:
            raise _unusable(data, "it is no object with a name in metadata.name", None, head)
        key, namespace, name, uid, version = named
        foreign = self._entries.get(key) is None
        return Received(key, namespace, name, uid, version, None, None, row, functions, "", foreign)

    def _whole(self, data: bytes, head: Head, api_version: str, kind: str) -> bytes:
        """The object with its apiVersion and kind; of its parts only what was asked for (S31)."""
        if data[0] != _BRACE:  # what is stored begins with it
            data = data.lstrip()
        said_version, said_kind = text(head[4]), text(head[5])
        if self._metadata_only and said_kind != _PARTIAL:
            raw = _metadata_of(data)
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


def _named(head: Head) -> Named | None:
    """Key, namespace, name, uid and version; None where there is no usable name."""
    name, namespace, uid, version = head[:4]
    if type(name) is not str or not name or "/" in name:
        return None
    uid, version = text(uid), text(version)
    if not namespace:  # it is not there, null or empty
        return name, "", name, uid, version
    if type(namespace) is not str or "/" in namespace:
        return None
    return f"{namespace}/{name}", namespace, name, uid, version


def _kept(
    named: Named, data: bytes, as_it_came: bool, row: IndexRow, functions: IndexFunctions
) -> Received:
    """What is kept of an object, which may be other than what came."""
    key, namespace, name, uid, version = named
    identity: Identity | None = None
    if not as_it_came:
        head, row = functions.read_accepted(data)
        if (text(head[2]), text(head[3])) != (uid, version):
            identity = Identity(uid, version)
    row = functions.call(data, row)
    return Received(key, namespace, name, uid, version, data, identity, row, functions)


def _metadata_of(data: bytes) -> bytes:
    try:
        return bytes(_metadata.decode(data).metadata)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # What the rest has is unusual: half of a surrogate pair, say.
        return msgspec.json.encode(read(data)["metadata"])


def _check_extent(data: bytes) -> None:
    check_depth(data)
    if too_many_values(data):
        raise JSONPathError(f"it holds more than {MOST_VALUES:,} values")


def _check_text(data: bytes) -> None:
    """Refuse what is no UTF-8. In pieces: decoded, the whole may be four times as large."""
    decode = getincrementaldecoder("utf-8")().decode
    for start in range(0, len(data), _TEXT_PIECE):
        end = start + _TEXT_PIECE
        try:
            decode(data[start:end], end >= len(data))
        except UnicodeDecodeError as error:
            # What the error's place is counted from begins with what the last piece left over.
            place = min(end, len(data)) - len(error.object) + error.start
            _refuse(data, f"byte {place} is no UTF-8", place)


def _refuse(data: bytes, complaint: str, offset: int = 0) -> NoReturn:
    """Say what is wrong with an object, and of whose key it is if that can be told."""
    named, head = None, ()
    try:
        beginning = shallow(data, _NESTING, _LOOKED_AT)
        head = HEAD_READER.read(beginning.decode(errors="replace").encode())[0]
        named = _named(head)
    except JSONPathError:
        pass  # its key cannot be told
    raise _unusable(data, complaint, named, head, offset) from None


def _unusable(
    data: bytes, complaint: str, named: Named | None, head: Head, offset: int = 0
) -> UnusableObjectError:
    return UnusableObjectError(
        f"an object of {len(data)} bytes cannot be used: {complaint}; "
        f"near byte {offset}: {excerpt(data, offset)}",
        key=named[0] if named else None,
        version=text(head[3]) if head else "",  # a stream advances without a name too
    )


def excerpt(data: bytes | bytearray, offset: int) -> str:
    """At most 64 bytes of JSON around a place, with only its structure to be seen.

    What is inside quotes, and whatever else is no bracket, comma, colon, ``true``, ``false`` or
    ``null``, is masked: malformed JSON may have its quotes the wrong way round.

    >>> excerpt(b'{"token": "s3cr3t", "n": 12, "ok": true}', 20)
    '{"*****": "******", "*": **, "**": true}'
    """
    start = max(0, offset - _BEFORE)
    end = offset + _AFTER
    if end <= _FOLLOWED:
        # Strings are found from the beginning, so that a window into one is known to be inside.
        return _masked(bytes(data[:end]))[start:].decode("ascii", "replace")
    # It may begin outside of a string, inside, or there behind a backslash. What is shown is no
    # content in any of these cases.
    window = bytes(data[start:end])
    cases = [_masked(before + window)[len(before) :] for before in _PERHAPS_BEFORE]
    return "".join(
        chr(each[0]) if len(set(each)) == 1 else "*" for each in zip(*cases, strict=True)
    )


def _masked(data: bytes) -> bytes:
    return _MASKED.sub(_mask_rest, _STRING.sub(_mask_string, data))


def _mask_string(found: re.Match[bytes]) -> bytes:
    text = found[0]
    closed = len(text) > 1 and text.endswith(b'"')
    return b'"' + b"*" * (len(text) - 1 - closed) + b'"' * closed


def _mask_rest(found: re.Match[bytes]) -> bytes:
    text = found[0]
    return text if text[:1] == b'"' or len(text) > 1 else b"*"
