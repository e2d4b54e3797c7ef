"""The last versions of each object, within limits."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from dyninformer.options import ALL_NAMESPACES, History
from dyninformer.store import history
from dyninformer.store.history import ADDED, DELETED, INITIAL, MISSED, UPDATED, VersionHistory
from dyninformer.store.store import Store
from tests.store.objects import WIDGETS, add, delete, relist, widget


class Clock:
    """The wall's, as the history reads it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        """Seconds since 1970."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """One that the test moves."""
    made = Clock()
    monkeypatch.setattr(history, "time", made)
    return made


def kept(options: History) -> tuple[Store, VersionHistory]:
    """A store whose changes are noted."""
    noted = VersionHistory(options, ALL_NAMESPACES)
    return Store(WIDGETS, on_changes=noted.note), noted


def kinds(store: Store, noted: VersionHistory, key: str = "ns/a") -> list[tuple[int, int]]:
    """Of each version of a key what it was, and its ``spec.n``."""
    decode = store.codec.decode
    found = noted.of(key, store.get(key))
    return [(each.kind, decode(each.entry)["spec"].get("n", 0)) for each in found]


def test_s38_versions_are_kept_oldest_first_also_of_the_deleted() -> None:
    """From what was there at first to the deletion, and what came after it."""
    store, noted = kept(History(versions=20))
    relist(store, widget("a", 1), first=True)
    add(store, widget("a", 2, n=2), widget("b", 3))
    delete(store, widget("a", 4, n=2))
    assert kinds(store, noted) == [(ADDED | INITIAL, 0), (UPDATED, 2), (DELETED, 2)]
    add(store, widget("a", 5, n=5))
    assert kinds(store, noted)[3:] == [(ADDED, 5)]
    assert kinds(store, noted, "ns/b") == [(ADDED, 0)]
    assert kinds(store, noted, "ns/never") == []


def test_s38_what_does_not_change_takes_nothing(clock: Clock) -> None:
    """Its one version is the cache's, with the time at which it was found."""
    store, noted = kept(History())
    relist(store, *(widget(f"{n}", 1) for n in range(50)), first=True)
    clock.now += 100
    assert (len(noted), noted.bytes) == (0, 0)
    (found,) = noted.of("ns/7", store.get("ns/7"))
    assert (found.time, found.kind, found.entry) == (1000, ADDED | INITIAL, store.get("ns/7"))


def test_s38_no_more_than_so_many_versions_of_each(clock: Clock) -> None:
    """The oldest goes; a key that changes often takes no other's, and leaves no traces behind."""
    store, noted = kept(History(versions=3))
    add(store, widget("b", 1))
    for n in range(2, 5000):
        clock.now += 1
        add(store, widget("a", n, n=n))
    assert [n for _, n in kinds(store, noted)] == [4997, 4998, 4999]
    assert len(noted) == 4
    assert len(noted._order) < 3000
    assert kinds(store, noted, "ns/b") == [(ADDED, 0)]


def test_s38_a_missed_deletion_says_so() -> None:
    """A relist found it."""
    store, noted = kept(History())
    relist(store, widget("a", 1), first=True)
    relist(store)
    assert kinds(store, noted)[-1] == (DELETED | MISSED, 0)


@pytest.mark.parametrize("seed", range(3))
def test_s38_the_bytes_are_never_exceeded(seed: int) -> None:
    """At any moment; what is counted is what there is, and no less than what Python takes."""
    chosen = random.Random(seed)
    most = 256 << 10
    store, noted = kept(History(versions=5, most_bytes=most))
    relist(store, *(widget(f"{n}", 1) for n in range(20)), first=True)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for version in range(2, 3000):
            name = f"{int(chosen.paretovariate(0.5)) % 300}"
            if chosen.random() < 0.1:
                delete(store, widget(name, version))
            else:
                add(store, widget(name, version, x="y" * chosen.choice([1, 100, 5000])))
            assert noted.bytes <= most
        counted = sum(
            history._KEY_BYTES
            + len(key)
            + sum(history._VERSION_BYTES + len(each.entry) for each in versions)
            for key, versions in noted._versions.items()
        )
        assert counted == noted.bytes > most // 2
        held = tracemalloc.get_traced_memory()[0]
        noted.forget()
        freed = held - tracemalloc.get_traced_memory()[0]
        assert 0 < freed <= counted, (before, held)
    finally:
        tracemalloc.stop()
    assert len(noted) == noted.bytes == 0


def test_s38_a_version_that_is_too_large_leaves_no_gap() -> None:
    """What came before it would seem to be the newest: it goes, too."""
    store, noted = kept(History(most_bytes=64 << 10))
    add(store, widget("a", 1), widget("a", 2, n=2))
    noise = random.Random(0).randbytes(100_000).hex()
    add(store, widget("a", 3, n=3, x=noise))
    assert noted.bytes == 0
    (found,) = noted.of("ns/a", store.get("ns/a"))
    assert (found.time, store.codec.decode(found.entry)["spec"]["n"]) == (0, 3)
    add(store, widget("a", 4, n=4))
    assert kinds(store, noted) == [(UPDATED, 4)]


def test_s38_a_version_that_was_replaced_too_long_ago_goes(clock: Clock) -> None:
    """What was there within the time stays, however old it is, so that changes have a base."""
    store, noted = kept(History(seconds=60))
    relist(store, widget("a", 1), first=True)
    clock.now += 1000
    add(store, widget("a", 2, n=2))
    assert [n for _, n in kinds(store, noted)] == [0, 2]
    clock.now += 50
    add(store, widget("a", 3, n=3))
    clock.now += 20
    assert [n for _, n in kinds(store, noted)] == [2, 3]
    delete(store, widget("a", 4))
    clock.now += 61
    assert kinds(store, noted) == []
    add(store, widget("b", 5))
    assert len(noted) == 1


def test_s38_what_was_let_go_of_has_no_time(clock: Clock) -> None:
    """The state is there, and nobody knows any more since when."""
    store, noted = kept(History(seconds=60))
    add(store, widget("a", 1), widget("b", 2))
    clock.now += 100
    add(store, widget("b", 3))
    (found,) = noted.of("ns/a", store.get("ns/a"))
    assert found.time == 0
