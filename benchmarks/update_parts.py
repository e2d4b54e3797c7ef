"""One part of what an update costs here, so many times: for bench_update, which counts it.

``python -m benchmarks.update_parts dicts 1000``
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks.certificates import certificate
from benchmarks.own_informer import INDEXERS
from dyninformer.store.codec import SAMPLE_SIZE, STAMP_SIZE, Codec, Entry
from dyninformer.store.indexes import IndexFunctions

PARTS = {
    "dicts": "both states decoded and freed",
    "pack": "the new state compressed",
    "unpack": "both states unpacked",
    "read": "key, version and index values of the new state read",
}


def main(name: str, times: int) -> None:
    """Do one of the parts."""
    codec = Codec()
    sample = [certificate(number, 1 + number) for number in range(SAMPLE_SIZE)]
    codec.learn(lambda: sample)
    entry = codec.pack(sample[0])
    read = IndexFunctions(INDEXERS, lambda _index, _error: None).read

    def dicts(data: bytes, _: Entry) -> None:
        codec.decode(data)
        codec.decode(data)

    def unpack(_: bytes, entry: Entry) -> None:
        codec.plain(entry)
        codec.plain(entry)

    parts: dict[str, Callable[[bytes, Entry], object]] = {
        "dicts": dicts,
        "pack": lambda data, _: codec.pack(data, None, bytes(STAMP_SIZE)),
        "unpack": unpack,
        "read": lambda data, _: read(data),
    }
    part = parts[name]
    for turn in range(times):
        part(sample[turn % SAMPLE_SIZE], entry)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
