"""When the server wrote an object."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dyninformer.watching.written import lag, written_at

EARLY, LATE = "2026-11-19T12:00:00Z", "2026-11-19T12:00:07Z"
AT_LATE = datetime(2026, 11, 19, 12, 0, 7, tzinfo=UTC)


def bytes_of(metadata: Any, **fields: Any) -> bytes:
    """An object."""
    return json.dumps({"metadata": metadata, **fields}).encode()


def test_it_is_the_newest_time_of_the_managed_fields() -> None:
    """In whatever order they are."""
    managed = [{"manager": "a", "time": LATE}, {"manager": "b", "time": EARLY}, {"manager": "c"}]
    data = bytes_of({"creationTimestamp": EARLY, "managedFields": managed})
    assert written_at(data, new=False) == AT_LATE


def test_of_a_new_object_its_creation_counts_and_of_an_old_one_it_does_not() -> None:
    """An update of what has no managed fields says nothing of when it was."""
    data = bytes_of({"creationTimestamp": LATE})
    assert written_at(data, new=True) == AT_LATE
    assert written_at(data, new=False) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"eventTime": "2026-11-19T12:00:07.000000Z"},
        {"eventTime": None, "lastTimestamp": LATE},
        {"eventTime": EARLY, "series": {"count": 2, "lastObservedTime": LATE}},
    ],
)
def test_an_event_has_times_of_its_own(fields: dict[str, Any]) -> None:
    """Of either group."""
    assert written_at(bytes_of({}, kind="Event", **fields), new=False) == AT_LATE
    assert written_at(bytes_of({}, kind="Pod", **fields), new=False) is None


@pytest.mark.parametrize(
    "data",
    [b"{}", b"no JSON", b'{"metadata": 1}', b'{"metadata": {"managedFields": [{"time": "soon"}]}}'],
)
def test_what_cannot_be_read_says_nothing(data: bytes) -> None:
    """Anybody may have written it."""
    assert written_at(data, new=True) is None


def test_a_time_that_is_yet_to_come_is_no_lag() -> None:
    """The two clocks differ, then."""
    future = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert lag(bytes_of({"creationTimestamp": future}), new=True) == 0
