"""When the server wrote an object, as far as the object says it.

That is the newest time in ``metadata.managedFields``, which a write sets for the fields that it
changes; of a new object also its creation, of an Event the time of its own. Most of these have
whole seconds, and all are by the server's clock. A transform may have taken them away.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType


class _Managed(msgspec.Struct, gc=False):
    time: datetime | UnsetType | None = UNSET


class _Metadata(msgspec.Struct, gc=False):
    creation: datetime | UnsetType | None = msgspec.field(name="creationTimestamp", default=UNSET)
    managed: list[_Managed] | UnsetType | None = msgspec.field(name="managedFields", default=UNSET)


class _Series(msgspec.Struct, gc=False):
    observed: datetime | UnsetType | None = msgspec.field(name="lastObservedTime", default=UNSET)


class _Timed(msgspec.Struct, gc=False):
    metadata: _Metadata
    kind: str | UnsetType = UNSET
    event: datetime | UnsetType | None = msgspec.field(name="eventTime", default=UNSET)
    last: datetime | UnsetType | None = msgspec.field(name="lastTimestamp", default=UNSET)
    series: _Series | UnsetType | None = UNSET


_decode: Final = msgspec.json.Decoder(_Timed).decode


def written_at(data: bytes, *, new: bool) -> datetime | None:
    """When this state of an object was written; ``new``: it was added. None if it does not say.

    >>> written_at(b'{"metadata": {"creationTimestamp": "2026-11-19T12:00:00Z"}}', new=True)
    datetime.datetime(2026, 11, 19, 12, 0, tzinfo=datetime.timezone.utc)
    """
    try:
        found = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    moments: list[datetime | UnsetType | None] = []
    if isinstance(found.metadata.managed, list):
        moments += [each.time for each in found.metadata.managed]
    if new:
        moments.append(found.metadata.creation)
    if found.kind == "Event":
        moments += [found.event, found.last]
        if isinstance(found.series, _Series):
            moments.append(found.series.observed)
    known = [each for each in moments if isinstance(each, datetime) and each.tzinfo is not None]
    return max(known, default=None)


def lag(data: bytes, *, new: bool) -> float | None:
    """How many seconds ago that was, by our clock; 0 if by ours it is yet to come."""
    moment = written_at(data, new=new)
    return None if moment is None else max(0.0, (datetime.now(UTC) - moment).total_seconds())
