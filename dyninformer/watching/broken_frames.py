"""`BrokenFrameError`: bytes that are not what a list or a watch is made of."""

from __future__ import annotations

import json
import re
from typing import NoReturn

import msgspec

from dyninformer.errors import DynInformerError
from dyninformer.store.refused import excerpt

__all__ = ["BrokenFrameError", "broken", "check_value"]

_OFFSET = re.compile(r" \(byte (\d+)\)\Z")
_raw = msgspec.json.Decoder(msgspec.Raw)


class BrokenFrameError(DynInformerError, ValueError):
    """The bytes make no sense (S32). The message has their length, the place, the complaint.

    Of the content it has at most 64 bytes, with all but the structure masked.
    """


def broken(what: str, data: bytes, complaint: str, offset: int = 0) -> BrokenFrameError:
    """The error to raise for ``data``."""
    return BrokenFrameError(
        f"{what} of {len(data):,} bytes: {complaint} at byte {offset}, near {excerpt(data, offset)}"
    )


def check_value(data: bytes, what: str) -> None:
    """Raise `BrokenFrameError` unless ``data`` is exactly one JSON value.

    One that is nested too deep to be read is not refused here, and neither is text that is
    no UTF-8: whoever reads the value finds out.
    """
    try:
        _raw.decode(data)
    except RecursionError:
        return
    except msgspec.DecodeError as refused:
        # Half of a surrogate pair, for one, is JSON to the standard library.
        try:
            json.loads(data.decode("utf-8", "replace"), parse_constant=_refuse_constant)
        except RecursionError:
            return
        except ValueError:
            complaint, place = str(refused), _OFFSET.search(str(refused))
            offset = int(place[1]) if place else len(data)
            raise broken(
                what, data, complaint[: place.start() if place else None], offset
            ) from None


def _refuse_constant(name: str) -> NoReturn:
    """``NaN`` and the like are JSON to the standard library alone."""
    raise ValueError(name)
