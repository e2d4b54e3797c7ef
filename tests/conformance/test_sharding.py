"""Sharded lists and watches: a part of the objects by the hash of a field.

The real server runs with its gate ShardedListAndWatch.
"""

from __future__ import annotations

import pytest

from tests.conformance.cluster import Collection

HALF = "0x8000000000000000"
LOW = f"shardRange(object.metadata.uid, '0x0000000000000000', '{HALF}')"
HIGH = f"shardRange(object.metadata.uid, '{HALF}', '0x10000000000000000')"


def fnv1a(text: str) -> int:
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


@pytest.fixture
def many(widgets: Collection) -> Collection:
    """Twenty widgets, of which almost surely some are in either half."""
    widgets.fill(*(f"n{number:02d}" for number in range(20)))
    return widgets


def _low(many: Collection) -> list[str]:
    """The names whose uid lies in the lower half."""
    items = many.api.get(many.path).json["items"]
    chosen = [item for item in items if fnv1a(item["metadata"]["uid"]) < int(HALF, 16)]
    return [item["metadata"]["name"] for item in chosen]


def test_a_shard_is_the_objects_whose_hash_is_in_range(many: Collection) -> None:
    """Both halves together are everything, and none is in both."""
    low = many.api.get(many.path, {"shardSelector": LOW}).names
    high = many.api.get(many.path, {"shardSelector": HIGH}).names
    assert low == _low(many)
    assert sorted([*low, *high]) == many.api.get(many.path).names


def test_ranges_can_be_joined(many: Collection) -> None:
    """Two ranges that cover everything select everything."""
    both = many.api.get(many.path, {"shardSelector": f"{LOW} || {HIGH}"}).names
    assert both == many.api.get(many.path).names


def test_a_shard_of_namespaces_is_all_or_nothing(many: Collection) -> None:
    """Objects of one namespace share a hash."""
    low = LOW.replace("metadata.uid", "metadata.namespace")
    expected = 20 if fnv1a(many.namespace) < int(HALF, 16) else 0
    assert len(many.api.get(many.path, {"shardSelector": low}).names) == expected


def test_a_sharded_watch_sees_its_shard(many: Collection) -> None:
    """State and events of the shard alone, then the usual mark."""
    low = _low(many)
    params = {
        "shardSelector": LOW,
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    with many.api.watch(many.path, params) as watch:
        assert watch.take(len(low)) == [("ADDED", name) for name in low]
        assert watch.event()["type"] == "BOOKMARK"
        many.api.delete(many.path)
        assert watch.changes(len(low)) == [("DELETED", name) for name in low]


_PREFIX = "invalid shard selector: "


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (
            LOW.replace("object.metadata", "metadata"),
            (
                'unsupported field path "metadata.uid"; supported: '
                "object.metadata.uid, object.metadata.namespace"
            ),
        ),
        (
            LOW.replace(f"'{HALF}'", "'0x0'"),
            (
                'hexEnd must be a 0x-prefixed 16-digit hex value, got "0x0" '
                '(did you mean "0x0000000000000000"?)'
            ),
        ),
        (
            f"shardRange(object.metadata.uid, '{HALF}', '0x0000000000000000')",
            f"shard range start {HALF} must be less than end 0x0000000000000000",
        ),
        (
            f"{LOW} || {HIGH.replace('uid', 'namespace')}",
            (
                'all shard ranges must use the same field, got "object.metadata.uid" and '
                '"object.metadata.namespace"'
            ),
        ),
    ],
    ids=["field", "digits", "order", "two fields"],
)
@pytest.mark.parametrize("watch", ["0", "1"])
def test_a_selector_that_cannot_be_is_refused(
    widgets: Collection, selector: str, message: str, watch: str
) -> None:
    """A 500 without a reason, before any stream."""
    answer = widgets.api.get(widgets.path, {"shardSelector": selector, "watch": watch})
    assert answer.status == 500
    assert message in answer.json["message"]
    assert _PREFIX in answer.json["message"]
    assert "reason" not in answer.json
