"""`BrokenFrameError`: bytes that are not what a list or a watch is made of."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from dyninformer.errors import DynInformerError
from dyninformer.store.receive import excerpt

__all__ = ["LONGEST_OBJECT", "BrokenFrameError", "broken", "check_value"]

LONGEST_OBJECT: Final = 16 << 20
"""So many bytes of JSON may an object have, as the item of a list or in the line of a watch.

What a kube-apiserver keeps in etcd has 1.5 MB by etcd's own limit, and 2 MiB at most by that of
the connection to it. As JSON, where each control character becomes six bytes, it may have 12 MiB.
Aggregated API servers have no such limits, but a request to any is refused from 3 MiB on.
"""

_OFFSET = re.compile(r" \(byte (\d+)\)\Z")
_raw = msgspec.json.Decoder(msgspec.Raw)


class BrokenFrameError(DynInformerError, ValueError):
    """The bytes make no sense (S32). The message has their length, the place, the complaint.

    Of the content it has at most 64 bytes, with all but the structure masked.
    """


def broken(what: str, data: bytes | bytearray, complaint: str, offset: int = 0) -> BrokenFrameError:
    """The error to raise for ``data``."""
    return BrokenFrameError(
        f"{what} of {len(data):,} bytes: {complaint} at byte {offset}, near {excerpt(data, offset)}"
    )


def check_value(data: bytes, what: str) -> None:
    """Raise `BrokenFrameError` unless ``data`` is exactly one JSON value.

    One that is nested too deep to be read is not refused here, and neither is text that is
    no UTF-8: whoever reads the value finds out.
    """
    complaint = _complaint(data)
    # Half of a surrogate pair is JSON to others, and the only thing that msgspec alone refuses.
    # These make any other character of it, and leave whatever else is wrong in its place.
    if complaint and _complaint(data.replace(b"\\ud", b"\\u0").replace(b"\\uD", b"\\u0")):
        place = _OFFSET.search(complaint)
        offset = int(place[1]) if place else len(data)
        raise broken(what, data, complaint[: place.start() if place else None], offset)


def _complaint(data: bytes) -> str:
    """What the parser says of it, "" if it is one value."""
    try:
        _raw.decode(data)
    except RecursionError:
        pass
    except msgspec.DecodeError as refused:
        return str(refused)
    return ""
