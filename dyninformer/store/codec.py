"""Objects as bytes: packed for the store, plain and decoded for readers.

An entry's first byte tells its form: ``{`` is plain JSON, 0x28 a zstd frame (the first byte of
zstd's magic number), 0x01 an identity, as in ``_with_identity``, followed by either of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import msgspec
import zstandard

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.json_bytes import decoded
from dyninformer.store.changes import Payload
from dyninformer.store.fresh_stack import on_fresh_stack
from dyninformer.store.reading import PartialReader, text
from dyninformer.threads import in_forked_child
from dyninformer.types import Object

Payloads: TypeAlias = list[Payload]
Samples: TypeAlias = list[bytes | bytearray | memoryview]

SAMPLE_SIZE = 1000
"""From so many objects on, a store is worth a dictionary."""

_FRAME = 0x28
_IDENTITY = 0x01
_SAMPLE_PART = 8192  # of a large object the beginning is enough to learn from
_SAMPLE_BYTES = 1 << 20  # in all: more takes longer, and the dictionary gets no better
_DICTIONARY_BYTES = 16384
_WORD, _TRIES = 8, 1  # of what zstd tries else, nothing made it better, and all of it slower
_LARGE = 16384  # compresses well without a dictionary
_LEVEL = 1  # with a dictionary the higher ones take longer and gain nothing

_decode = msgspec.json.Decoder().decode
_reader = PartialReader()


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
    long as the codec is, so that every entry can be read by whoever holds the codec.
    """

    def __init__(self, compress: bool = True) -> None:
        self._compress = compress
        self._learning = threading.Lock()  # held by the one who trains; nobody waits for it
        self._contexts = _Contexts(None)  # replaced by others once there is a dictionary
        self.wants_sample = compress
        """A sample of `SAMPLE_SIZE` objects would make entries smaller."""
        in_forked_child(self, "_learning")

    def pack(self, data: bytes, identity: Identity | None = None) -> Payload:
        """The entry for an object's plain JSON.

        ``identity`` is given where the JSON does not say it as the server did.
        """
        entry = data
        # Until the dictionary is there, only what is large is compressed.
        if self._compress and (not self.wants_sample or len(data) >= _LARGE):
            entry = _compressed(data, self._contexts.compress)
        return entry if identity is None else _with_identity(identity, entry)

    def pack_all(self, several: Iterable[bytes]) -> Payloads:
        """``pack`` for each of many, in less time."""
        if not self._compress or self.wants_sample:
            return [self.pack(data) for data in several]
        compress = self._contexts.compress
        return [_compressed(data, compress) for data in several]

    def plain(self, payload: Payload) -> bytes:
        """An entry's plain JSON."""
        first = payload[0]
        if first == _FRAME:
            return self._contexts.decompress(payload)
        if first == _IDENTITY:
            return self.plain(payload.split(b"\0", 2)[2])
        return payload

    def decode(self, payload: Payload) -> Object:
        """An entry as a new dict, which is the caller's own."""
        return read(self.plain(payload))

    def identity(self, payload: Payload) -> Identity:
        """The uid and version that the server gave the object."""
        aside = identity_aside(payload)
        if aside is not None:
            return aside
        head = _reader.read_accepted(self.plain(payload))[0]
        return Identity(text(head[2]), text(head[3]))

    def repacked(self, payload: Payload) -> Payload:
        """The entry as it would be packed now; itself if it is compressed or stays as large."""
        if payload[0] == _FRAME:
            return payload
        packed = self.pack(self.plain(payload), identity_aside(payload))
        return packed if len(packed) < len(payload) else payload

    def learn(self, sample: Callable[[], Iterable[Payload]]) -> bool:
        """Train the dictionary on some entries; False if that is done, or under way elsewhere.

        Takes tens of milliseconds, so it is called with no lock held.
        """
        if not self._learning.acquire(blocking=False):
            return False
        try:
            if not self.wants_sample:
                return False
            parts: Samples = [self.plain(payload)[:_SAMPLE_PART] for payload in sample()]
            stride = 1 + sum(map(len, parts)) // _SAMPLE_BYTES
            self._contexts = _Contexts(_trained(parts[::stride]))
            self.wants_sample = False
        finally:
            self._learning.release()
        return True


def _compressed(data: bytes, compress: Callable[[bytes], bytes]) -> bytes:
    """The data in a frame, if that is smaller.

    zstandard returns a shrunken allocation of the worst case's size. Kept, those tear the heap to
    pieces; a copy is of just the size it needs.
    """
    packed = bytes(memoryview(compress(data)))
    return packed if len(packed) < len(data) else data


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


def _with_identity(identity: Identity, entry: bytes) -> Payload:
    """The entry behind its uid and version, each ended by a zero byte."""
    uid, version = (part.replace("\0", "").encode(errors="replace") for part in identity)
    return b"\1" + uid + b"\0" + version + b"\0" + entry


def identity_aside(payload: Payload) -> Identity | None:
    """The identity that was packed beside the object, if one was."""
    if payload[0] != _IDENTITY:
        return None
    uid, version, _ = payload[1:].split(b"\0", 2)
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
