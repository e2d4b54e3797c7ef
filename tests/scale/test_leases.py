"""What leases say, and for how long they are believed (S51)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dyninformer.scale.leases import CLOCK_ERROR, Lease, LeaseTimes, read, written

WALL = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


def test_a_lease_is_read_as_it_was_written() -> None:
    """By whatever replica."""
    lease = Lease("a-shard-3-of-8", "7", "", "me", 15.0, 4, 3, 8, "2026-01-02T03:04:05.000678Z")
    found = read(written(lease, "ops", "a", WALL))
    assert found._replace(others=()) == lease
    assert read(written(found, "ops", "a", WALL)) == found


def test_what_others_say_of_a_lease_stays() -> None:
    """A label of an installer, or an owner: it is written back as it was found."""
    metadata = {
        "labels": {"app": "x"},
        "annotations": {"helm.sh/resource-policy": "keep"},
        "ownerReferences": [{"kind": "Deployment", "name": "d", "uid": "1"}],
        "finalizers": ["example.com/kept"],
    }
    lease = read({"metadata": {"name": "a", "resourceVersion": "1", **metadata}, "spec": {}})
    again = written(lease._replace(shards=8, shard=3), "ops", "a", WALL)["metadata"]
    assert {**metadata, "labels": again["labels"]} == {name: again[name] for name in metadata}
    assert again["labels"] == {
        "app": "x",
        "dyninformer/group": "a",
        "dyninformer/shard": "3",
        "dyninformer/shards": "8",
    }


def test_times_are_micro_times_as_client_go_writes_them() -> None:
    """With six digits, in UTC."""
    spec = written(Lease("a", "", holder="me", duration=15), "ops", "a", WALL)["spec"]
    assert spec["renewTime"] == spec["acquireTime"] == "2026-01-02T03:04:05.000678Z"
    assert spec["leaseDurationSeconds"] == 15


@pytest.mark.parametrize("odd", [None, 3, "x", [], {"leaseTransitions": "x"}])
def test_what_is_odd_in_a_lease_is_not_said(odd: Any) -> None:
    """Whoever wrote it."""
    metadata = {"name": "a", "resourceVersion": "1", "labels": odd}
    found = read({"metadata": metadata, "spec": odd})
    kept = (("labels", odd),) if isinstance(odd, dict) else ()
    assert found == Lease("a", "1", others=kept)


def test_a_holder_has_stopped_before_another_can_begin() -> None:
    """Whosever clock is wrong, by this much."""
    times = LeaseTimes()
    assert times.margin == pytest.approx(15 / 1.05 - 10 / 0.95)
    slow, fast = 1 - CLOCK_ERROR, 1 + CLOCK_ERROR
    assert times.renew_deadline / slow + times.margin == times.lease_duration / fast


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"renew_deadline": 14}, "give less than 13.6 s"),
        ({"retry_period": 6}, "give half of renew_deadline"),
        ({"retry_period": 0}, "give seconds, more than 0"),
        ({"lease_duration": 1}, "give less than 0.9 s"),
    ],
)
def test_times_that_would_not_be_safe_are_refused(given: dict[str, Any], said: str) -> None:
    """With what would be."""
    with pytest.raises(ValueError, match=said):
        LeaseTimes(**given)
