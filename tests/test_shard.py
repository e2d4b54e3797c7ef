"""Parts of a collection by the hash of the uid (S49)."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from dyninformer.shard import Shard, Shards, selector, shard_of, uid_hash
from tests.documents import ROOT

GOLDEN = ROOT / "tests" / "data" / "golden"
LOW = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"


def golden(name: str) -> dict[str, Any]:
    """What the real server answered, by the name of the recording."""
    recorded = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    return {each["name"]: each for each in recorded["recordings"]}


def test_the_words_are_those_that_the_server_takes() -> None:
    """Sixteen digits, and seventeen for the end of all."""
    assert Shard(0, 2).selector == LOW
    assert Shard(1, 2).selector.endswith("'0x8000000000000000', '0x10000000000000000')")
    assert Shard(2, 3).selector.startswith("shardRange(object.metadata.uid, '0xaaaaaaaaaaaaaaab'")


def test_the_whole_is_not_said() -> None:
    """One shard of one, or all of them."""
    assert Shard(0, 1).selector == ""
    assert Shards(tuple(range(7)), 7).selector == ""


def test_what_adjoins_is_one_range() -> None:
    """Others are joined by the server's or."""
    assert Shards((0, 1), 4).selector == LOW
    assert Shards((0, 2), 4).selector.count("shardRange(") == 2
    assert " || " in Shards((0, 2), 4).selector


def test_what_would_be_too_long_for_a_url_is_left_to_us() -> None:
    """Every second of two hundred shards."""
    assert selector(range(0, 200, 2), 200) == ""


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 64, 100])
def test_each_object_is_in_one_shard(count: int) -> None:
    """Whose range has its hash."""
    for uid in [str(uuid4()) for _ in range(50)]:
        owners = [index for index in range(count) if Shard(index, count).owns(uid)]
        assert owners == [shard_of(uid, count)]
        assert Shards((owners[0],), count).owns(uid)
        if count > 1:
            start, end = (
                int(each, 16) for each in Shard(owners[0], count).selector.split("'")[1::2]
            )
            assert start <= uid_hash(uid) < end


def test_the_hash_is_that_of_the_server() -> None:
    """Of every object that the real one gave for the lower half."""
    items = golden("sharding-on")["list low half"]["response"]["body"]["items"]
    assert items
    assert all(Shard(0, 2).owns(item["metadata"]["uid"]) for item in items)


def test_the_pod_of_a_stateful_set_has_the_shard_of_its_number() -> None:
    """By the end of its name."""
    assert Shard.from_ordinal(hostname="certs-0", count=3) == Shard(0, 3)
    assert Shard.from_ordinal("a-12-4", 5) == Shard(4, 5)


def test_of_pod_goes_by_the_name_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is the pod's."""
    monkeypatch.setattr("socket.gethostname", lambda: "certs-2")
    assert Shard.of_pod(replicas=5) == Shard(2, 5)


@pytest.mark.parametrize("name", ["certs", "certs-", "certs-x", "certs-01", "3"])
def test_a_name_without_a_number_is_refused(name: str) -> None:
    """With what it should look like."""
    with pytest.raises(ValueError, match="has no ordinal at its end"):
        Shard.from_ordinal(name, 5)


def test_a_number_past_the_count_is_refused() -> None:
    """When somebody has scaled the set, and not told the program."""
    with pytest.raises(ValueError, match="a shard's index is 5: of 5 give 0 to 4"):
        Shard.from_ordinal("certs-5", 5)
