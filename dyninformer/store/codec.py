"""Objects as bytes: packed for the store, plain, decoded whole or in part for readers.

An entry's first byte tells its form: ``{`` is plain JSON, 0x28 a zstd frame (the first byte of
zstd's magic number), 0x01 an identity, as in ``_with_identity``, followed by either of them. Behind
a frame stands a `Stamp`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec
import zstandard
from msgspec import UNSET

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath import JSONPath, PathIndex, Projection
from dyninformer.jsonpath.compiling import UNFIT, compiled
from dyninformer.jsonpath.json_bytes import decoded
from dyninformer.store.collector import made_at_once
from dyninformer.threads import in_forked_child
from dyninformer.types import Object, Objects, Texts

Result = TypeVar("Result")

Entry: TypeAlias = bytes
"""What the store holds of one object: its JSON, as the codec packed it."""
EntryList: TypeAlias = list[Entry]
Samples: TypeAlias = list[bytes | bytearray | memoryview]
Values: TypeAlias = tuple[str, ...]
"""What one object is found under in one index."""
IndexRow: TypeAlias = list[Values]
"""The values of one object in each index, in the order of the index functions."""
Head: TypeAlias = tuple[Any, ...]
"""Name, namespace, uid, resourceVersion, apiVersion, kind: what stands there, which may be
anything in a malformed object, and something other than a text where there is nothing."""

Stamp: TypeAlias = bytes
"""What an update asks of the state before it, in 16 bytes: a hash of uid and index values, and the
version. Of two that begin alike the greater is the newer."""
STAMP_SIZE: Final = 16
NO_STAMP: Final[Stamp] = bytes(STAMP_SIZE)
"""Nothing is known: it is like no other, and newer than none."""

SAMPLE_SIZE = 1000
"""From so many objects on, a store is worth a dictionary."""

_MARK_SIZE = 8  # of a stamp, in front of the version
_FRAME = 0x28
_IDENTITY = 0x01
_SAMPLE_PART = 8192  # of a large object the beginning is enough to learn from
_SAMPLE_BYTES = 1 << 20  # in all: more takes longer, and the dictionary gets no better
_DICTIONARY_BYTES = 16384
_WORD, _TRIES = 8, 1  # of what else zstd tries, nothing made it better, and all of it slower
_LARGE = 16384  # compresses well without a dictionary
_LEVEL = 1  # with a dictionary the higher ones take longer and gain nothing

_HEAD: Final = (
    ".metadata.name",
    ".metadata.namespace",
    ".metadata.uid",
    ".metadata.resourceVersion",
    ".apiVersion",
    ".kind",
)
_HEAD_SIZE: Final = len(_HEAD)

_decode = msgspec.json.Decoder().decode


class Identity(NamedTuple):
    """Which object, and which state of it; "" where the server did not say."""

    uid: str
    version: str

    def is_of_another_object(self, other: Identity) -> bool:
        """Both uids are known, and differ."""
        return bool(self.uid and other.uid and self.uid != other.uid)


class Codec:
    """Packs and unpacks the entries of one store. Any thread may use it.

    A zstd compressor or decompressor that two threads use at once crashes the process: each
    thread has its own (``_Contexts``). The dictionary is trained once, and then kept for as
    long as the codec is, so that every entry can be read with the codec.
    """

    def __init__(self, compress: bool = True) -> None:
        self._compress = compress
        # Held by the thread that trains the dictionary. No other thread waits for it.
        self._learning = threading.Lock()
        self._contexts = _Contexts(None)  # replaced by others once there is a dictionary
        self.wants_sample = compress
        """A sample of `SAMPLE_SIZE` objects would make entries smaller."""
        in_forked_child(self, "_learning")

    def pack(self, data: bytes, identity: Identity | None = None, stamp: Stamp = NO_STAMP) -> Entry:
        """The entry for an object's plain JSON.

        ``identity`` is given where the JSON does not say it as the server did. What is not
        compressed has no stamp: it is quickly read.
        """
        entry = data
        # Until the dictionary is there, only what is large is compressed.
        if self._compress and (not self.wants_sample or len(data) >= _LARGE):
            # zstandard returns a shrunken allocation of the worst case's size. Kept, those tear
            # the heap to pieces; what is joined here is of just the size it needs.
            packed = self._contexts.compress(data) + stamp
            if len(packed) < len(data):
                entry = packed
        return entry if identity is None else _with_identity(identity, entry)

    def pack_all(self, several: Iterable[bytes], stamps: Iterable[Stamp]) -> EntryList:
        """`pack` for each of many, in less time."""
        if not self._compress or self.wants_sample:
            return [self.pack(data) for data in several]
        compress = self._contexts.compress
        return [
            packed if len(packed := compress(data) + stamp) < len(data) else data
            for data, stamp in zip(several, stamps, strict=True)
        ]

    def plain(self, entry: Entry) -> bytes:
        """An entry's plain JSON."""
        first = entry[0]
        if first == _FRAME:
            return self._contexts.decompress(entry)
        if first == _IDENTITY:
            return self.plain(entry.split(b"\0", 2)[2])
        return entry

    def decode(self, entry: Entry) -> Object:
        """An entry as a new dict, which is the caller's own."""
        return read(self.plain(entry))

    def decode_all(self, entries: Iterable[Entry]) -> Objects:
        """`decode` for each of many, in less time: see `collector`."""
        return made_at_once(lambda: [*map(self.decode, entries)])

    def identity(self, entry: Entry) -> Identity:
        """The uid and version that the server gave the object."""
        packed = packed_identity(entry)
        if packed is not None:
            return packed
        head = HEAD_READER.read_accepted(self.plain(entry))[0]
        return Identity(text(head[2]), text(head[3]))

    def repacked(self, entry: Entry) -> Entry:
        """The entry as it would be packed now; itself if it is compressed or stays as large."""
        if entry[0] == _FRAME:
            return entry
        packed = self.pack(self.plain(entry), packed_identity(entry))
        return packed if len(packed) < len(entry) else entry

    def learn(self, sample: Callable[[], Iterable[Entry]]) -> bool:
        """Train the dictionary on some entries; False if that is done, or under way elsewhere.

        Takes tens of milliseconds, so it is called with no lock held.
        """
        if not self._learning.acquire(blocking=False):
            return False
        try:
            if not self.wants_sample:
                return False
            parts: Samples = [self.plain(entry)[:_SAMPLE_PART] for entry in sample()]
            stride = 1 + sum(map(len, parts)) // _SAMPLE_BYTES
            self._contexts = _Contexts(_trained(parts[::stride]))
            self.wants_sample = False
        finally:
            self._learning.release()
        return True


def follows(stamp: Stamp, entry: Entry) -> bool:
    """The stamp says a newer state of the same object than the entry's, with the same index values.

    False where that is not known.
    """
    if entry[0] != _FRAME:
        return False
    before = entry[-STAMP_SIZE:]
    return before < stamp and before[:_MARK_SIZE] == stamp[:_MARK_SIZE]


def _trained(samples: Samples) -> zstandard.ZstdCompressionDict | None:
    """A dictionary that is ready for use, or None if these samples have nothing in common."""
    try:
        dictionary = zstandard.train_dictionary(
            _DICTIONARY_BYTES, samples, dict_id=1, d=_WORD, steps=_TRIES
        )
        dictionary.precompute_compress(level=_LEVEL)
    except zstandard.ZstdError:
        return None
    return dictionary


class _Contexts(threading.local):
    """This thread's compressor and decompressor, made when it first asks for one.

    With a dictionary it reads frames that were made without one, too.
    """

    def __init__(self, dictionary: zstandard.ZstdCompressionDict | None) -> None:
        compressor = zstandard.ZstdCompressor(
            level=_LEVEL, dict_data=dictionary, write_content_size=True
        )
        self.compress = compressor.compress
        self.decompress = zstandard.ZstdDecompressor(dict_data=dictionary).decompress


def _with_identity(identity: Identity, entry: Entry) -> Entry:
    """The entry behind its uid and version, each ended by a zero byte."""
    uid, version = (part.replace("\0", "").encode(errors="replace") for part in identity)
    return b"\1" + uid + b"\0" + version + b"\0" + entry


def packed_identity(entry: Entry) -> Identity | None:
    """The identity that was packed with the object's JSON, if one was."""
    if entry[0] != _IDENTITY:
        return None
    uid, version, _ = entry[1:].split(b"\0", 2)
    return Identity(uid.decode(), version.decode())


def read(data: bytes) -> Object:
    """An accepted object's JSON as a dict.

    A number that msgspec refuses (``1e999``) and half of a surrogate pair are read as
    ``jsonpath.json_bytes.decoded`` does.
    """
    try:
        found: Object = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            found = decoded(data)
        except JSONPathError:
            found = on_fresh_stack(decoded, data)
    return found


class PartialReader:
    """Reads the head and the values of some path indexes; immutable, for any thread.

    It gives what `Projection` gives for the paths of the head and the indexes. This decode is
    most of what an object costs when it comes in, hence the shorter way for paths of nothing but
    keys.
    """

    def __init__(self, indexes: Sequence[PathIndex] = ()) -> None:
        paths: list[JSONPath | str] = [*_HEAD]
        self._indexes: list[tuple[Callable[[list[list[Any]]], Texts], int, int]] = []
        for index in indexes:
            self._indexes.append((index.values_of, len(paths), len(paths) + len(index.paths)))
            paths += index.paths
        self._projection = Projection(paths)
        plan = compiled([path.parsed for path in self._projection.paths])
        ways = [way for way in plan.ways if way is not None]
        self._decode = plan.decode
        # All values by one call; None if some path is not of keys alone.
        self._values = (
            attrgetter(*ways) if len(ways) == len(paths) == _HEAD_SIZE + len(indexes) else None
        )
        heads = [way for way in plan.ways[:_HEAD_SIZE] if way is not None]
        self._heads = attrgetter(*heads) if len(heads) == _HEAD_SIZE else None
        self._extracts = plan.extracts

    def read(self, data: bytes) -> tuple[Head, IndexRow]:
        """The head of an object, and its values in each index.

        Raises JSONPathError for what is no JSON or nested too deep.
        """
        try:
            if self._values is not None:
                values = self._values(self._decode(data))
                row: IndexRow = []
                for value in values[_HEAD_SIZE:]:
                    row.append((value,) if type(value) is str else self._other(len(row), value))
                return values, row
            if self._heads is not None:
                root = self._decode(data)
                head = self._heads(root)
                return head, [
                    tuple(values_of([extract(root) for extract in self._extracts[start:end]]))
                    for values_of, start, end in self._indexes
                ]
        except (AttributeError, JSONPathError, *UNFIT):
            # A null on the way, a path that does not fit this object, an unusual number.
            pass
        found = self._projection.rows(data)
        head = tuple([values[0] if values else None for values in found[:_HEAD_SIZE]])
        return head, [tuple(values_of(found[start:end])) for values_of, start, end in self._indexes]

    def read_accepted(self, data: bytes) -> tuple[Head, IndexRow]:
        """The same for an object that was read before: however deep it is, it can be again."""
        try:
            return self.read(data)
        except JSONPathError:
            return on_fresh_stack(self.read, data)

    def _other(self, at: int, value: Any) -> Values:
        """The index values of something that is missing, or is not text."""
        return () if value is UNSET else tuple(self._indexes[at][0]([[value]]))


def text(value: Any) -> str:
    """A value of a head as text, "" if it is none."""
    return value if type(value) is str else ""


def on_fresh_stack(function: Callable[[bytes], Result], data: bytes) -> Result:
    """What the function gives for the bytes, with almost the whole recursion limit to itself.

    Python 3.11 counts the levels of a decode as calls: of its 1,000 an object of 700 levels leaves
    a reader 300. One object that anybody in the cluster may have made would end every walk over the
    cache that begins deeper. So what a thread with few calls on its stack has accepted is
    read on such a stack again, by a caller of any depth. Python 3.12 counts the two apart.
    """
    results: list[Result] = []
    raised: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function(data))
        except BaseException as error:  # noqa: BLE001 - it is raised again, on the caller's thread
            raised.append(error)

    thread = threading.Thread(target=call, name="dyninformer-deep-read", daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return results[0]


HEAD_READER: Final = PartialReader()
"""Reads the head alone."""
