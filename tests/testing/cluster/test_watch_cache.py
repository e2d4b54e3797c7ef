"""A watch cache forgets by age and number, and knows the revision it has seen."""

from __future__ import annotations

import pytest

from dyninformer.testing.cluster.watch_cache import TooOldError, WatchCache

from .one_collection import CLUS, WIDGETS, OneCollection


def _cache(collection: OneCollection) -> WatchCache:
    cache = collection.caches.of(collection.resource.collection)
    cache.touch()
    return cache


def _write(collection: OneCollection, count: int) -> None:
    for number in range(count):
        collection.put(f"ns/o{number}")


def _oldest(cache: WatchCache) -> int:
    """The lowest revision from which a watch may start."""
    with pytest.raises(TooOldError) as caught:
        list(cache.since(0))
    return int(str(caught.value).rpartition("(")[2].rstrip(")"))


def test_as_measured_sixty_old_events_give_way_to_new_ones() -> None:
    """60 events, 80 seconds, 140 events: the first 60 are gone, and only those."""
    collection = OneCollection()
    cache = _cache(collection)
    _write(collection, 60)
    after_sixty = collection.log.revision
    collection.clock.advance(80)
    _write(collection, 140)
    assert _oldest(cache) == after_sixty
    assert len(list(cache.since(after_sixty))) == 140


def test_old_events_stay_while_there_are_few() -> None:
    """A hundred are kept however old they are."""
    collection = OneCollection()
    cache = _cache(collection)
    start = collection.log.revision
    _write(collection, 100)
    collection.clock.advance(100_000)
    assert len(list(cache.since(start))) == 100


def test_fresh_events_stay_up_to_the_limit() -> None:
    """Beyond it the oldest go, however fresh."""
    collection = OneCollection(window_limit=150)
    cache = _cache(collection)
    _write(collection, 149)
    assert _oldest(cache) == 1
    _write(collection, 11)
    assert _oldest(cache) == 11


def test_compaction_of_the_log_does_not_shrink_the_window() -> None:
    """But the events can be forgotten by hand."""
    collection = OneCollection()
    cache = _cache(collection)
    _write(collection, 10)
    collection.log.compact(collection.log.revision)
    assert len(list(cache.since(1))) == 10
    collection.caches.forget_events(5)
    assert _oldest(cache) == 5
    assert len(list(cache.since(5))) == 6


def test_forgetting_ahead_of_the_log_stops_at_its_newest() -> None:
    """A watch from the newest revision always works."""
    collection = OneCollection()
    cache = _cache(collection)
    _write(collection, 2)
    collection.caches.forget_events(99)
    assert _oldest(cache) == collection.log.revision


def test_a_consistent_read_anywhere_moves_every_cache() -> None:
    """As progress notifications of etcd do."""
    collection = OneCollection()
    widgets, clus = _cache(collection), collection.caches.of(CLUS.collection)
    clus.touch()
    collection.put("ns/a")
    assert (widgets.revision, clus.revision) == (2, 1)
    collection.page()
    assert clus.revision == 2


def test_a_rebuilt_collection_has_a_cold_cache_filled_at_its_next_request() -> None:
    """What happened between is not in its window."""
    collection = OneCollection()
    _cache(collection)
    collection.put("ns/a")
    collection.caches.rebuild(WIDGETS.collection)
    collection.put("ns/b")
    fresh = _cache(collection)
    assert fresh.filled_at == 3
    assert _oldest(fresh) == 3


def test_a_rebuilt_collection_is_encoded_anew() -> None:
    """What was encoded for the old spec is let go."""
    collection = OneCollection()
    version = collection.put("ns/a")
    collection.body(collection.page())
    assert version.encoded
    collection.caches.rebuild(WIDGETS.collection)
    assert not version.encoded


def test_an_old_generation_stops_listening_when_its_watches_have_ended() -> None:
    """Nothing of it is left in the log."""
    collection = OneCollection()
    old = _cache(collection)
    watch = collection.watch("resourceVersion=1")
    collection.caches.rebuild(WIDGETS.collection)
    collection.put("ns/a")
    assert old.revision == 2
    collection.clock.advance(1.0)
    assert watch.take()
    collection.put("ns/b")
    collection.put("ns/c")
    assert old.revision == 2


def test_a_restored_log_is_served_afresh() -> None:
    """After a restore from a backup, caches are as after a restart."""
    collection = OneCollection()
    collection.put("ns/a")
    backup, image = collection.page().revision, collection.log.image()
    collection.put("ns/b")
    collection.page()
    collection.log.load(image)
    collection.caches.reset_all()
    assert collection.page().revision == backup
    assert [v.key.name for v in collection.page("resourceVersion=0").versions] == ["a"]


def test_a_seed_gives_the_same_timeouts_again() -> None:
    """A simulation that failed can be run again."""
    first, second = OneCollection().caches, OneCollection().caches
    assert [first.timeout(None) for _ in range(5)] == [second.timeout(0) for _ in range(5)]
