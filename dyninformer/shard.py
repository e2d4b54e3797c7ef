"""A part of a collection by the hash of the uid, as the API server divides it: `Shard`."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, TypeAlias

from dyninformer.checked import checked_count, checked_text, wrong

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_BITS: Final = 64
_ALL: Final = (1 << _BITS) - 1
_FIELD: Final = "object.metadata.uid"
# Proxies take request lines of 8 KiB; what is in a URL is half as long again.
_LONGEST_SELECTOR: Final = 4096
_REMEMBERED: Final = 1 << 14  # hashes, 3 MB: those of the objects that change most often
_ORDINAL: Final = re.compile(r"-(0|[1-9][0-9]*)\Z")
_MOST: Final = 1 << 20

Range: TypeAlias = tuple[int, int]


@lru_cache(maxsize=_REMEMBERED)
def uid_hash(uid: str) -> int:
    """FNV-1a of 64 bits, as the API server hashes a uid.

    >>> hex(uid_hash("ns1"))
    '0x20fc0b19253e64d5'
    """
    found = _OFFSET
    for byte in uid.encode("utf-8", "surrogatepass"):
        found = ((found ^ byte) * _PRIME) & _ALL
    return found


def shard_of(uid: str, count: int) -> int:
    """Which of so many shards an object is in."""
    return (uid_hash(uid) * count) >> _BITS


@dataclass(frozen=True)
class Shard:
    """One of ``count`` equal parts of a collection, divided by the uid of the objects (S49).

    As ``shard=`` of a resource: the cache has the objects of this part alone, and hears of no
    other. The server sends no others where it can (its feature ShardedListAndWatch), else they are
    left out here.

    >>> Shard(0, 2).owns("55188545-709b-41e6-95e5-cc18ca262f02")
    True
    >>> Shard.from_ordinal("certs-3", count=5)
    Shard(index=3, count=5)
    """

    index: int
    count: int

    def __post_init__(self) -> None:
        checked_count("a shard's count", self.count, "a whole number from 1")
        if not 1 <= self.count <= _MOST:
            raise ValueError(f"a shard's count is {self.count}: give 1 to {_MOST}")
        if isinstance(self.index, bool) or not isinstance(self.index, int):
            raise wrong("a shard's index", self.index, "a whole number from 0")
        if not 0 <= self.index < self.count:
            raise ValueError(
                f"a shard's index is {self.index}: of {self.count} give 0 to {self.count - 1}"
            )

    @classmethod
    def from_ordinal(cls, hostname: str, count: int) -> Shard:
        """The shard of a StatefulSet's pod, by the number at the end of its name."""
        found = _ORDINAL.search(checked_text("hostname", hostname, "a pod's name, such as 'a-3'"))
        if found is None:
            raise ValueError(
                f"{hostname!r} has no ordinal at its end, as 'certs-3' has: give the name of a "
                "StatefulSet's pod"
            )
        return cls(int(found[1]), count)

    @classmethod
    def of_pod(cls, replicas: int) -> Shard:
        """The shard of the StatefulSet's pod that this runs in, which has so many replicas.

        By the host's name, which is the pod's, unless it has its node's network.
        """
        checked_count("replicas", replicas, "a whole number from 1")
        return cls.from_ordinal(socket.gethostname(), replicas)

    @property
    def indexes(self) -> tuple[int, ...]:
        """Its index alone."""
        return (self.index,)

    @cached_property
    def selector(self) -> str:
        """What the server is asked with; "" where that would select everything."""
        return selector(self.indexes, self.count)

    def owns(self, uid: str) -> bool:
        """Whether an object is in it."""
        if type(uid) is not str:
            raise wrong("a uid", uid, "text")
        return (uid_hash(uid) * self.count) >> _BITS == self.index


@dataclass(frozen=True)
class Shards:
    """Several of ``count`` shards. Not for import."""

    indexes: tuple[int, ...]
    count: int

    @cached_property
    def selector(self) -> str:
        """What the server is asked with; "" where that would select everything, or be too long."""
        return selector(self.indexes, self.count)

    @cached_property
    def _owned(self) -> frozenset[int]:
        return frozenset(self.indexes)

    def owns(self, uid: str) -> bool:
        """Whether an object is in one of them."""
        return (uid_hash(uid) * self.count) >> _BITS in self._owned


Part: TypeAlias = Shard | Shards


def selector(indexes: Iterable[int], count: int) -> str:
    """These shards in the server's words; "" where it need not, or cannot, be said.

    >>> selector([1], 2)
    "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
    """
    ranges = list(_ranges(sorted(indexes), count))
    if ranges == [(0, 1 << _BITS)]:
        return ""
    said = " || ".join(
        f"shardRange({_FIELD}, '0x{start:016x}', '0x{end:016x}')" for start, end in ranges
    )
    return said if len(said) <= _LONGEST_SELECTOR else ""


def _ranges(indexes: Iterable[int], count: int) -> Iterator[Range]:
    """From one hash up to, not including, another; what adjoins is one."""
    begin = end = -1
    for index in indexes:
        first, last = _bound(index, count), _bound(index + 1, count)
        if first != end:
            if end > begin:
                yield begin, end
            begin = first
        end = last
    if end > begin:
        yield begin, end


def _bound(index: int, count: int) -> int:
    """The least hash of a shard: that of `shard_of`, rounded up."""
    return -((-index << _BITS) // count)
