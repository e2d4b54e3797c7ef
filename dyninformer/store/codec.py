"""Objects as bytes: packed for the store, plain, decoded whole or in part for readers.

An entry's first byte tells its form: ``{`` is plain JSON, 0x28 a zstd frame (the first byte of
zstd's magic number), 0x01 an identity, as in ``_with_identity``, followed by either of them. Behind
a frame stands a `Stamp`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
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
from dyninformer.store.dictionaries import (
    SAMPLE_PART,
    Contexts,
    Dictionary,
    Parameters,
    Plain,
    average,
    better,
    divided,
    first,
    in_a_hurry,
    pays,
    sample_size,
    tried_step,
    without,
)
from dyninformer.threads import in_forked_child
from dyninformer.types import Object, Objects, Texts

Result = TypeVar("Result")

Entry: TypeAlias = bytes
"""What the store holds of one object: its JSON, as the codec packed it."""
EntryList: TypeAlias = list[Entry]
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

FIRST_LOOK: Final = 30_000
"""From so many objects on, it is looked how what is held is smaller than as it came: what the other
thread needs for that leaves 3.5 MB in the process, as much as 25,000 applications save..."""
LOOK_AGAIN: Final = 10
"""...and then whenever there are so many times more."""

_AT_ONCE = 64  # objects that are unpacked and decoded without a look at each
_MARK_SIZE = 8  # of a stamp, in front of the version
_FRAME = 0x28
_CARE = 0x10  # of a frame's fifth byte, which is zero in all that zstd writes, and is not read
_IDENTITY = 0x01
_LARGE = 16384  # compresses well without a dictionary
_SAMPLED = 16384  # so much of each object is tried
_MUCH_MORE = 1.3  # of what an object took when that was last looked at
_MOST_DICTIONARIES = 6  # in the life of a codec: each stays for those who kept an entry

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

    Each frame names its dictionary. One is trained when there are enough objects, and perhaps a few
    more later, each better than the one before: an entry of any of them, wherever it is kept, can
    be read for as long as the codec is there.
    """

    def __init__(self, compress: bool = True) -> None:
        self._compress = compress
        # Held by the thread that trains a dictionary. No other thread waits for it.
        self._learning = threading.Lock()
        self._now = without()  # replaced by others once there is a dictionary
        self._contexts = self._now.contexts
        # By the number of the dictionary; none is ever taken out.
        self._readers: dict[int, Contexts] = {0: self._contexts}
        self._retired = 0  # the bytes of dictionaries that nothing is packed with any more
        self._way: Parameters | None = None  # how what stays is matched; None if as it came
        self._average = 1.0  # bytes of an object of the last sample, plain
        self._hurried = math.inf  # bytes of an entry as it comes
        self._longer = 1.0  # so many times longer objects are than what was sampled of them
        self.wants_sample = compress
        """A sample of `SAMPLE_SIZE` objects would make entries smaller."""
        self.pays = compress
        """What comes is compressed, except while a sample is wanted."""
        self.next_look: float = math.inf
        """From so many objects on, `improve` may find a better dictionary."""
        self.usual_size: float = math.inf
        """Entries of more bytes than that, on average, are compressed worse than they were."""
        in_forked_child(self, "_learning")

    def pack(self, data: bytes, identity: Identity | None = None, stamp: Stamp = NO_STAMP) -> Entry:
        """The entry for an object's plain JSON.

        ``identity`` is given where the JSON does not say it as the server did. What is not
        compressed has no stamp: it is quickly read.
        """
        entry = data
        # Until the dictionary is there, only what is large is compressed.
        if self.pays and (not self.wants_sample or len(data) >= _LARGE):
            # zstandard returns a shrunken allocation of the worst case's size. Kept, those tear
            # the heap to pieces; what is joined here is of just the size it needs.
            packed = self._contexts.compress(data) + stamp
            if len(packed) < len(data):
                entry = packed
        return entry if identity is None else _with_identity(identity, entry)

    def pack_all(self, several: Collection[bytes], stamps: Iterable[Stamp]) -> EntryList:
        """`pack` for each of many, in less time."""
        if not self.pays or self.wants_sample:
            return [self.pack(data) for data in several]
        # First all frames, then all entries: the holes that frames leave then lie side by side.
        frames = [*map(self._contexts.compress, several)]
        return [
            packed if len(packed := frame + stamp) < len(data) else data
            for data, frame, stamp in zip(several, frames, stamps, strict=True)
        ]

    def plain(self, entry: Entry) -> bytes:
        """An entry's plain JSON."""
        first = entry[0]
        if first == _FRAME:
            try:  # a frame of another dictionary raises: quicker than to look at each
                return self._contexts.decompress(entry)
            except zstandard.ZstdError:
                return self._readers[_dictionary_of(entry)].decompress(entry)
        if first == _IDENTITY:
            return self.plain(entry.split(b"\0", 2)[2])
        return entry

    def plain_all(self, entries: EntryList) -> Plain:
        """`plain` of each of a few, in less time. They are all there at once."""
        try:
            # A frame says which dictionary it needs: with another one this raises.
            return [*map(self._contexts.decompress, entries)]
        except zstandard.ZstdError:  # one of them is plain, or of an older dictionary
            return [*map(self.plain, entries)]

    def decode(self, entry: Entry) -> Object:
        """An entry as a new dict, which is the caller's own."""
        try:  # a frame of the newest dictionary, or plain JSON
            found: Object = _decode(
                self._contexts.decompress(entry) if entry[0] == _FRAME else entry
            )
        except (zstandard.ZstdError, *UNFIT):
            found = read(self.plain(entry))
        return found

    def decode_all(self, entries: EntryList) -> Objects:
        """`decode` for each of many, in less time: see `collector`."""
        return made_at_once(lambda: self._decoded(entries))

    def _decoded(self, entries: EntryList) -> Objects:
        found: Objects = []
        for start in range(0, len(entries), _AT_ONCE):
            part = self.plain_all(entries[start : start + _AT_ONCE])
            try:
                found += [*map(_decode, part)]
            except UNFIT:  # one of them is unusual
                found += map(read, part)
        return found

    def plain_size(self, entry: Entry) -> int:
        """How many bytes of JSON an entry is; nothing is unpacked."""
        first = entry[0]
        if first == _FRAME:
            return zstandard.frame_content_size(entry)
        if first == _IDENTITY:
            return self.plain_size(entry.split(b"\0", 2)[2])
        return len(entry)

    def identity(self, entry: Entry) -> Identity:
        """The uid and version that the server gave the object."""
        packed = packed_identity(entry)
        if packed is not None:
            return packed
        head = HEAD_READER.read_accepted(self.plain(entry))[0]
        return Identity(text(head[2]), text(head[3]))

    def repacked(self, entry: Entry) -> Entry:
        """An entry that came before there was a dictionary, as it would be packed now.

        Itself if it would be as large.
        """
        if entry[0] == _FRAME and _dictionary_of(entry) == self._now.number:
            return entry
        stamp = entry[-STAMP_SIZE:] if entry[0] == _FRAME else NO_STAMP
        packed = self.pack(self.plain(entry), packed_identity(entry), stamp)
        return packed if len(packed) < len(entry) else entry

    def mover(self) -> Mover:
        """Packs again what stays, with the dictionary of now."""
        return Mover(self, self._now, self._way)

    # Dictionaries.

    @property
    def dictionary(self) -> int:
        """The number of the one that is used now; of two the greater is the newer."""
        return self._now.number

    @property
    def memory(self) -> int:
        """The bytes of dictionaries, and of their tables. Those of each thread are not counted."""
        return self._now.memory + self._retired

    def learn(self, sample: Callable[[], Iterable[Entry]]) -> bool:
        """Train the first dictionary on some entries; False if that is done, or under way.

        Takes ten milliseconds, so it is called with no lock held.
        """
        if not self._learning.acquire(blocking=False):
            return False
        try:
            if not self.wants_sample:
                return False
            objects = self._sampled(sample())
            if objects:
                self._take(first(objects, len(self._readers)), objects)
            self.next_look = FIRST_LOOK
            self.wants_sample = False
        finally:
            self._learning.release()
        return True

    def sample_size(self, count: int, held: float) -> int:
        """Of how many of so many objects, of so many bytes each, `improve` makes the best."""
        return sample_size(count, self._average, held)

    def improve(self, sample: Iterable[Entry], count: int, held: float) -> bool:
        """Find how what is held is smaller: by another dictionary, by care, or by both.

        True if it is to be moved. There are ``count`` objects, of ``held`` bytes on average, of
        which ``sample`` has some: it may miss the few that take most. Takes up to three tenths of a
        second, so it is called with no lock held. False if that is under way.
        """
        if not self._learning.acquire(blocking=False):
            return False
        try:
            if len(self._readers) > _MOST_DICTIONARIES:
                return False
            entries = list(sample)
            objects = self._sampled(entries)
            each = max(0.0, average(entries) / self._longer - STAMP_SIZE)
            found = better(objects, count, each, self._now, len(self._readers)) if objects else None
            # Not looked at again before it is much worse: what is to be moved is not moved yet.
            self.next_look, self.usual_size = count * LOOK_AGAIN, _MUCH_MORE * held
            if found is None:
                return False
            self._way = found.way
            if found.dictionary is self._now:  # the beginnings that were tried may be smaller
                self._hurried = max(self._hurried, held)
            else:
                self._take(found.dictionary, objects)
                self.usual_size = _MUCH_MORE * held
            if len(self._readers) > _MOST_DICTIONARIES:
                self.next_look = self.usual_size = math.inf
            return True
        finally:
            self._learning.release()

    def is_moved(self, held: float) -> None:
        """What is held is so many bytes on average, now that it is moved."""
        if self.usual_size < math.inf:
            self.usual_size = _MUCH_MORE * max(held, self._hurried)

    def _sampled(self, entries: Iterable[Entry]) -> Plain:
        """The beginnings of objects: enough to learn from, and not all there is of large ones."""
        held = [*entries]
        step = tried_step(len(held))
        sample: Plain = []
        whole = begun = 0
        for at, entry in enumerate(held):
            plain = self.plain(entry)
            whole += len(plain)
            begun += min(len(plain), _SAMPLED)
            sample.append(plain[: SAMPLE_PART if at % step else _SAMPLED])
        self._longer = whole / max(1, begun)
        self._average = begun / max(1, len(sample))
        return sample

    def _take(self, taken: Dictionary | None, objects: Plain) -> None:
        """Pack what comes with another dictionary; the same with `_learning` held."""
        before = self._now
        tried = divided(objects)[1]
        if taken is not None:
            # In this order: what is packed can be read.
            self._readers[taken.number] = taken.contexts
            self._contexts, self._now = taken.contexts, taken
            self._readers[before.number] = before.reading()
            self._retired += before.content_size
        size, plain = in_a_hurry(self._now, tried), average(tried)
        self.pays = pays(size, plain)
        self._hurried = ((size + STAMP_SIZE) if self.pays else plain) * self._longer
        self.usual_size = _MUCH_MORE * self._hurried


class Mover:
    """Packs again, with care, what stays in a store. For one thread, and for one dictionary."""

    def __init__(self, codec: Codec, now: Dictionary, way: Parameters | None) -> None:
        self.number = now.number
        self._plain = codec.plain
        self._compress = None if way is None else now.careful(way)

    def repacked(self, entries: Iterable[Entry]) -> EntryList:
        """Each entry as it is smallest; itself if it is so."""
        held = [*entries]
        compress, plain = self._compress, self._plain
        if compress is None:
            return held
        # zstandard returns a shrunken allocation of the worst case's size: see `Codec.pack_all`.
        frames = [None if self._is_done(each) else compress(plain(each)) for each in held]
        return [
            each if frame is None else self._smaller(each, frame)
            for each, frame in zip(held, frames, strict=True)
        ]

    def _is_done(self, entry: Entry) -> bool:
        """It was packed with care, and with this dictionary."""
        if entry[0] == _IDENTITY:
            entry = entry.split(b"\0", 2)[2]
        return (
            entry[0] == _FRAME and bool(entry[4] & _CARE) and _dictionary_of(entry) == self.number
        )

    def _smaller(self, entry: Entry, frame: bytes) -> Entry:
        """The entry, or the frame in its place."""
        framed = entry[0] == _FRAME
        stamp = entry[-STAMP_SIZE:] if framed else NO_STAMP
        packed = b"".join((frame[:4], bytes((frame[4] | _CARE,)), frame[5:], stamp))
        identity = packed_identity(entry)
        if identity is not None:
            packed = _with_identity(identity, packed)
        # Entries of one dictionary are read faster: that is worth the few bytes of one that grows.
        older = framed and _dictionary_of(entry) != self.number
        return packed if older or len(packed) < len(entry) else entry


def follows(stamp: Stamp, entry: Entry) -> bool:
    """The stamp says a newer state of the same object than the entry's, with the same index values.

    False where that is not known.
    """
    if entry[0] != _FRAME:
        return False
    before = entry[-STAMP_SIZE:]
    return before < stamp and before.startswith(stamp[:_MARK_SIZE])


def _dictionary_of(frame: bytes) -> int:
    """The number of the dictionary that a frame needs: at most 255, so that it is one byte."""
    flags = frame[4]
    if not flags & 3:
        return 0
    return frame[5 if flags & 0x20 else 6]


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
