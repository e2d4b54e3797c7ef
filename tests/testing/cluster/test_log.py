"""The log keeps every write until compaction, and shows any moment since then."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.testing.cluster.log import CompactedError, GroupResource, Key, Log, Version

WIDGETS = GroupResource("ex.io", "widgets")


def _obj(**spec: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": spec}


def _names(versions: list[Version]) -> list[str]:
    return [version.key.path for version in versions]


def test_every_write_is_the_next_revision_and_carries_it() -> None:
    """An object's resourceVersion is the log's revision after its write, a delete's too."""
    log = Log()
    created = log.append(WIDGETS, Key("ns", "a"), _obj(n=1))
    deleted = log.append(WIDGETS, Key("ns", "a"), None)
    assert created.object["metadata"]["resourceVersion"] == "2"
    assert deleted.object["metadata"]["resourceVersion"] == "3"
    assert deleted.object["spec"] == {"n": 1}
    assert log.revision == 3


def test_deleting_what_is_not_there_is_a_key_error() -> None:
    """A delete needs a live object."""
    with pytest.raises(KeyError):
        Log().append(WIDGETS, Key("ns", "a"), None)


def test_items_come_in_etcds_order() -> None:
    """Order is by the bytes of namespace/name: "-" sorts before "/"."""
    log = Log()
    for namespace, name in [("b", "a"), ("a", "z"), ("a-b", "a"), ("a", "b"), ("ab", "c")]:
        log.append(WIDGETS, Key(namespace, name), _obj())
    assert _names(log.items(WIDGETS)) == ["a-b/a", "a/b", "a/z", "ab/c", "b/a"]


def test_items_of_a_namespace_leave_out_those_with_a_longer_name() -> None:
    """Neither ``a-b`` nor ``ab`` is in ``a``."""
    log = Log()
    for namespace in ("a-b", "a", "ab", "a0"):
        log.append(WIDGETS, Key(namespace, "x"), _obj())
    assert _names(log.items(WIDGETS, "a")) == ["a/x"]


def test_an_older_revision_shows_what_was_there_then() -> None:
    """Updates, deletes and creations since then do not show."""
    log = Log()
    log.append(WIDGETS, Key("", "a"), _obj(n=1))
    log.append(WIDGETS, Key("", "b"), _obj(n=1))
    before = log.revision
    log.append(WIDGETS, Key("", "a"), _obj(n=2))
    log.append(WIDGETS, Key("", "b"), None)
    log.append(WIDGETS, Key("", "c"), _obj(n=1))
    shown = {v.key.name: v.object["spec"]["n"] for v in log.items(WIDGETS, at=before)}
    assert shown == {"a": 1, "b": 1}


def test_a_compacted_revision_is_refused_and_the_newer_ones_are_not() -> None:
    """Compaction to N keeps N and everything after it."""
    log = Log()
    log.append(WIDGETS, Key("", "a"), _obj(n=1))
    log.append(WIDGETS, Key("", "a"), _obj(n=2))
    log.compact(3)
    log.append(WIDGETS, Key("", "a"), _obj(n=3))
    with pytest.raises(CompactedError):
        log.items(WIDGETS, at=2)
    with pytest.raises(CompactedError):
        log.since(WIDGETS, 2)
    assert [v.object["spec"]["n"] for v in log.items(WIDGETS, at=3)] == [2]
    assert [v.revision for v in log.since(WIDGETS, 3)] == [4]


def test_a_snapshot_asked_for_twice_is_the_same_one() -> None:
    """Pages of one list cost one snapshot, also when other collections are written meanwhile."""
    log = Log()
    log.append(WIDGETS, Key("", "a"), _obj())
    first = log.contents(WIDGETS)
    log.append(GroupResource("", "pods"), Key("ns", "p"), _obj())
    assert log.contents(WIDGETS, at=log.revision) is first
    log.append(WIDGETS, Key("", "b"), _obj())
    assert log.contents(WIDGETS) is not first
    assert log.contents(WIDGETS, at=2) is first


def test_listeners_hear_each_write_of_their_collection_until_they_stop() -> None:
    """Other collections are not heard."""
    log = Log()
    heard: list[int] = []
    stop = log.listen(WIDGETS, lambda version: heard.append(version.revision))
    log.append(WIDGETS, Key("", "a"), _obj())
    log.append(GroupResource("", "pods"), Key("ns", "p"), _obj())
    stop()
    log.append(WIDGETS, Key("", "b"), _obj())
    assert heard == [2]


def test_a_log_that_loads_an_image_is_as_it_was_and_uses_the_revisions_again() -> None:
    """This is a cluster restored from a backup."""
    log = Log()
    log.append(WIDGETS, Key("", "a"), _obj(n=1))
    image, backup = log.image(), log.revision
    log.append(WIDGETS, Key("", "a"), _obj(n=2))
    log.append(WIDGETS, Key("", "b"), _obj(n=1))
    log.load(image)
    assert [v.object["spec"]["n"] for v in log.items(WIDGETS)] == [1]
    assert log.append(WIDGETS, Key("", "c"), _obj()).revision == backup + 1
    assert _names(log.items(WIDGETS)) == ["/a", "/c"]


_writes = st.lists(
    st.tuples(st.sampled_from(["a/x", "a/y", "a-/x", "b/x"]), st.booleans()), max_size=30
)


@given(writes=_writes, compactions=st.sets(st.integers(1, 31), max_size=3))
def test_every_revision_since_compaction_shows_the_state_a_simple_copy_kept(
    writes: list[tuple[str, bool]], compactions: set[int]
) -> None:
    """Snapshots equal full copies taken at each revision, in any order of asking."""
    log = Log()
    copies: dict[int, dict[str, int]] = {1: {}}
    for path, delete in writes:
        state = dict(copies[log.revision])
        key = Key(*path.split("/"))
        if delete and path not in state:
            continue
        version = log.append(WIDGETS, key, None if delete else _obj())
        state.pop(path, None)
        if not delete:
            state[path] = version.revision
        copies[version.revision] = state
        if version.revision in compactions:
            log.compact(version.revision - 1)
    for revision in sorted(copies, key=lambda each: (each % 3, each)):
        if revision >= log.compacted:
            shown = {v.key.path: v.revision for v in log.items(WIDGETS, at=revision)}
            assert shown == copies[revision]
            assert list(shown) == sorted(shown)
