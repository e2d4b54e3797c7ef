"""Better dictionaries are looked for aside, and what is held is moved over a little at a time."""

from __future__ import annotations

import gc
import logging
import random
import sys
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable

import pytest

from dyninformer.store import repacking
from dyninformer.store.codec import SAMPLE_SIZE, EntryList, Mover
from dyninformer.store.decide import Deltas
from dyninformer.store.dictionaries import spread
from dyninformer.store.repacking import Replaced
from dyninformer.store.store import Store
from tests.store.objects import WIDGETS, Told, held, relist, widget
from tests.store.test_indexes import Worker

MANY = 8000


class Aside:
    """In place of the thread that things are done on later."""

    def __init__(self) -> None:
        self.acts: deque[tuple[float, Callable[[], None]]] = deque()
        self.seconds = 0.0

    def __call__(self, seconds: float, act: Callable[[], None]) -> None:
        """Have it done when asked."""
        self.acts.append((seconds, act))

    def do_all(self) -> int:
        """Do what is there, and what comes of it; how many there were."""
        done = 0
        while self.acts:
            seconds, act = self.acts.popleft()
            self.seconds += seconds
            act()
            done += 1
        return done


def text(chart: int) -> str:
    """What the objects of one chart have in common, and others have not."""
    words = random.Random(chart)
    return " ".join(f"{words.getrandbits(48):x}" for _ in range(100))


TEXTS = [text(chart) for chart in range(40)]


def charted(number: int, version: int = 1) -> bytes:
    """An object of one of 40 charts, of which the first thousand objects have three."""
    chart = number % 40 if number >= SAMPLE_SIZE else number % 3
    return widget(f"w{number:05}", version, f"ns{number // 200:03}", text=TEXTS[chart])


@pytest.fixture(autouse=True)
def _looks_at_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Than in a cluster, where it is looked from 30,000 on."""
    monkeypatch.setattr("dyninformer.store.codec.FIRST_LOOK", MANY)


@pytest.fixture
def aside() -> Aside:
    """Where the store's thread would be."""
    return Aside()


@pytest.fixture
def store(aside: Aside) -> Store:
    """A store that has synced as many objects as are looked at again."""
    told = Told()
    store = Store(WIDGETS, indexers={"text": ".spec.text"}, on_changes=told)
    store.repacking.call_later = aside
    relist(store, *map(charted, range(MANY)), first=True)
    return store


def packed_with(store: Store) -> Counter[tuple[int, bool]]:
    """How many entries need which dictionary, and were packed with care."""
    return Counter((entry[5], bool(entry[4] & 0x10)) for _, entry in store.view().items())


def test_when_there_are_many_more_objects_a_better_dictionary_is_looked_for_aside(
    store: Store, aside: Aside
) -> None:
    """The thread that brings them only hands over a sample; then what is held is moved."""
    assert store.codec.dictionary == 1
    before, size = store.view(), store.entries.size
    assert aside.do_all() > 2
    assert store.codec.dictionary == 2
    assert set(packed_with(store)) == {(2, True)}
    assert store.entries.size < 0.8 * size
    assert store.entries.size == sum(len(entry) for _, entry in store.view().items())
    assert [*before] == [*store.view()]
    assert held(store, "ns039/w07999")["spec"]["text"] == TEXTS[7999 % 40]


def test_moving_takes_a_tenth_of_a_core_at_most(store: Store, aside: Aside) -> None:
    """After each slice it rests for nine times as long as that took."""
    aside.do_all()
    assert aside.seconds > 9 * 0.005


def test_a_list_waits_for_the_first_dictionary_alone() -> None:
    """Nothing is looked for before the whole state is there."""
    aside = Aside()
    store = Store(WIDGETS)
    store.repacking.call_later = aside
    state = store.relist()
    state.add(store.receive(charted(number)) for number in range(MANY))
    assert store.codec.dictionary == 1
    assert not aside.acts
    state.swap(first=True)
    assert aside.acts


def test_what_comes_after_the_move_is_packed_in_a_hurry_and_moved_when_it_is_much(
    store: Store, aside: Aside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten minutes later at the earliest, and without another look."""
    aside.do_all()
    number = store.codec.dictionary
    for at in range(MANY):
        store.apply([("MODIFIED", store.receive(charted(at, 2)))])
    assert packed_with(store) == {(number, False): MANY}
    assert not aside.acts
    store.repacking._move_not_before = 0.0  # as when the ten minutes are over
    monkeypatch.setattr(store.repacking, "_moved_size", store.entries.size / MANY / 1.2)
    store.apply([("MODIFIED", store.receive(charted(0, 3)))])
    assert aside.do_all() > 1
    assert store.codec.dictionary == number
    assert packed_with(store)[number, True] > 0


def test_what_a_move_has_passed_by_is_moved_too_if_that_is_asked_for_meanwhile(
    store: Store, aside: Aside
) -> None:
    """It goes through all once more."""
    while packed_with(store)[2, True] == 0:
        _, act = aside.acts.popleft()
        act()
    store.apply([("MODIFIED", store.receive(charted(0, 2)))])
    assert packed_with(store)[2, False] == 1
    store.repacking.move()
    aside.do_all()
    held = [entry for _, entry in store.view().items()]
    assert store.codec.mover().repacked(held) == held  # what care makes no smaller stays as it was


def test_a_move_that_fails_leaves_what_is_held_and_is_tried_again(
    store: Store, aside: Aside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of memory, say: in the look, and in the midst of moving."""

    def fails(*_: object) -> None:
        raise MemoryError

    before = [*store.view()]
    with monkeypatch.context() as patch:
        patch.setattr(store.codec, "improve", fails)
        with pytest.raises(MemoryError):
            aside.do_all()
    store.apply([("MODIFIED", store.receive(charted(0, 2)))])
    assert not aside.acts
    store.repacking._look_not_before = 0.0  # as when the minute is over
    store.apply([("MODIFIED", store.receive(charted(0, 1)))])
    store.repacking.look_at_held()
    with monkeypatch.context() as patch:
        patch.setattr(store.codec, "mover", fails)
        with pytest.raises(MemoryError):
            aside.do_all()
    assert [*store.view()][1:] == before[1:]
    store.repacking.look_at_held()
    assert not aside.acts
    store.repacking._move_not_before = 0.0
    store.repacking.look_at_held()
    assert aside.do_all() > 1
    assert [*store.view()][1:] == before[1:]
    assert packed_with(store).most_common(1)[0][0][1]


def test_entries_are_freed_some_megabytes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that they leave large holes, which are given back, each as it comes."""
    replaced, entry, given_back = Replaced(), bytes(1 << 20), list[int]()
    held = sys.getrefcount(entry)
    monkeypatch.setattr(
        repacking, "give_back_memory", lambda: given_back.append(len(replaced._entries))
    )
    for count in range(1, 4):
        replaced.add([entry])
        assert sys.getrefcount(entry) == held + count
    assert given_back == []
    replaced.add([entry])
    assert given_back == [0]
    assert sys.getrefcount(entry) == held


def test_an_entry_that_is_kept_elsewhere_is_read_whatever_came_after_it(
    store: Store, aside: Aside
) -> None:
    """A view, and what handlers were told, have entries of the first dictionary."""
    view = store.view()
    aside.do_all()
    store.apply([("MODIFIED", store.receive(charted(0, 5)))])
    assert {entry[5] for _, entry in view.items()} == {1}
    assert next(iter(view))["metadata"]["resourceVersion"] == "1"
    assert held(store, "ns000/w00000")["metadata"]["resourceVersion"] == "5"


def test_an_entry_that_was_moved_still_knows_its_stamp(store: Store, aside: Aside) -> None:
    """S30: an update of it is told from an older state without reading it."""
    before = dict(store.view().items())
    aside.do_all()
    moved = {key: entry for key, entry in store.view().items() if entry != before[key]}
    assert len(moved) > MANY // 2
    assert all(entry[-16:] == before[key][-16:] for key, entry in moved.items())
    assert any(entry[-16:] != bytes(16) for entry in moved.values())


def test_entries_that_become_larger_than_usual_are_looked_at(store: Store, aside: Aside) -> None:
    """Other objects than those that the dictionary was trained with."""
    aside.do_all()
    number, texts = store.codec.dictionary, [text(1000 + chart) for chart in range(40)]
    for at in range(MANY):
        data = widget(f"w{at:05}", 2, f"ns{at // 200:03}", text=texts[at % 40])
        store.apply([("MODIFIED", store.receive(data))])
        if at % 1000 == 0:
            aside.do_all()
    aside.do_all()
    assert number < store.codec.dictionary < number + 4
    assert packed_with(store).most_common(1)[0][0][0] == store.codec.dictionary


def noise(number: int, version: int = 1, size: int = 3000) -> bytes:
    """An object that has nothing in common with others."""
    return widget(f"w{number:05}", version, text=random.Random(number).randbytes(size // 2).hex())


def test_a_few_objects_that_take_much_are_not_looked_at_again_and_again(aside: Aside) -> None:
    """The sample misses them: what is usual is what all that is held takes, until it has grown."""
    count, large = 3000, 1_000_000
    store = Store(WIDGETS)
    store.repacking.call_later = aside
    state = store.relist()
    state.add(store.receive(noise(number)) for number in range(SAMPLE_SIZE))
    numbers = [str(number).encode() for number in range(count)]
    sampled = set(map(int, spread(numbers, count, store.codec.sample_size(count, 0.0))))
    missed = [number for number in range(SAMPLE_SIZE, count) if number not in sampled]
    for number in range(SAMPLE_SIZE, count):
        data = noise(number, size=large) if number in missed[:4] else noise(number)
        state.add([store.receive(data)])
    state.swap(first=True)
    assert aside.do_all() > 0
    store.apply([("MODIFIED", store.receive(noise(0, 2)))])
    aside.do_all()
    for version in range(3, 13):
        store.apply([("MODIFIED", store.receive(noise(0, version)))])
        assert not aside.acts
    for number in missed[4:9]:
        assert not aside.acts
        store.apply([("MODIFIED", store.receive(noise(number, 2, large)))])
    assert aside.acts


def test_where_no_thread_can_be_begun_events_are_applied_and_it_is_tried_again_later(
    store: Store, aside: Aside, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is held stays as it is, and nothing is looked at for it in between."""
    aside.do_all()
    asked: list[float] = []

    def no_thread(seconds: float, _: Callable[[], None]) -> None:
        asked.append(seconds)
        raise RuntimeError("can't start new thread")

    store.repacking.call_later = no_thread
    monkeypatch.setattr(store.codec, "usual_size", 1.0)
    with caplog.at_level(logging.WARNING):
        for version in range(2, 6):
            store.apply([("MODIFIED", store.receive(charted(0, version)))])
        store.repacking.move()
    assert held(store, "ns000/w00000")["metadata"]["resourceVersion"] == "5"
    assert len(asked) == 2
    assert "can't start new thread" in caplog.text
    store.repacking._look_not_before = 0.0  # as when the minute is over
    store.repacking.call_later = aside
    store.apply([("MODIFIED", store.receive(charted(0, 6)))])
    assert aside.acts
    aside.do_all()
    assert not store.repacking._moves


def test_a_store_that_is_gone_is_not_kept_by_what_was_to_be_done(aside: Aside) -> None:
    """The rest is left."""
    store = Store(WIDGETS)
    store.repacking.call_later = aside
    relist(store, *map(charted, range(MANY)), first=True)
    assert aside.acts
    del store
    aside.do_all()


def test_readers_events_and_moves_at_the_same_time() -> None:
    """All that is held, and all that was told, can be read; what is written stays."""
    told: list[Deltas] = []
    store = Store(WIDGETS, on_changes=told.append)
    aside = Aside()
    store.repacking.call_later = aside
    relist(store, *map(charted, range(MANY)), first=True)
    begun = threading.Event()
    numbers = random.Random(5)
    newest: dict[int, int] = {}

    def write() -> None:
        begun.set()
        number = numbers.randrange(MANY)
        newest[number] = newest.get(number, 1) + 1
        store.apply([("MODIFIED", store.receive(charted(number, newest[number])))])

    def read() -> None:
        for key, entry in store.first(300, f"ns{len(told) % 40:03}").items():
            obj = store.codec.decode(entry)
            assert key.endswith(obj["metadata"]["name"])
            assert obj["spec"]["text"] in TEXTS

    def move() -> None:
        begun.wait()
        aside.do_all()

    mover = threading.Thread(target=move)
    workers = [Worker(write), Worker(read), Worker(read)]
    mover.start()
    for worker in workers:
        worker.start()
    mover.join()
    for worker in workers:
        worker.busy.wait()
        worker.end()
    assert store.codec.dictionary > 1
    assert 1 in {entry[5] for deltas in told[1:] for each in deltas if (entry := each.old)}
    for deltas in told[1:]:
        for each in deltas:
            assert each.old is not None
            assert each.new is not None
            old, new = store.codec.decode(each.old), store.codec.decode(each.new)
            assert old["metadata"]["name"] == new["metadata"]["name"]
    for number, version in newest.items():
        found = held(store, f"ns{number // 200:03}/w{number:05}")
        assert found["metadata"]["resourceVersion"] == str(version)
    assert store.entries.size == sum(len(entry) for _, entry in store.view().items())


def test_a_store_that_is_gone_is_not_kept_by_a_move_that_has_begun(aside: Aside) -> None:
    """What walks over its keys keeps no store."""
    store = Store(WIDGETS)
    store.repacking.call_later = aside
    relist(store, *map(charted, range(MANY)), first=True)
    for _ in range(2):  # the look, and a slice
        aside.acts.popleft()[1]()
    assert aside.acts
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None
    aside.do_all()


def test_a_look_that_fails_inside_is_tried_again(
    store: Store, aside: Aside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of memory, say: not at ten times as many objects, but after a minute."""

    def fails(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("dyninformer.store.codec.better", fails)
        with pytest.raises(MemoryError):
            aside.do_all()
    store.repacking._look_not_before = 0.0
    store.repacking.look_at_held()
    assert aside.do_all() > 1
    assert store.codec.dictionary == 2


def test_large_objects_are_moved_few_at_a_time(
    store: Store, aside: Aside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch is not interrupted: it is of no more JSON than is packed in milliseconds."""
    aside.do_all()
    for number in range(300):
        data = widget(f"w{number:05}", 2, f"ns{number // 200:03}", text=TEXTS[0] * 80)
        store.apply([("MODIFIED", store.receive(data))])
    batches: list[int] = []
    moved = Mover.repacked

    def noted(mover: Mover, entries: EntryList) -> EntryList:
        batches.append(sum(map(store.codec.plain_size, entries)))
        return moved(mover, entries)

    monkeypatch.setattr(Mover, "repacked", noted)
    store.repacking.move()
    aside.do_all()
    assert max(batches) < 500_000
    assert sum(batches) > 25_000_000


def test_objects_whose_ends_are_larger_than_their_beginnings_are_not_looked_at_for_ever(
    aside: Aside,
) -> None:
    """What is tried are beginnings: what all take as they come, the store knows."""
    letters = random.Random(1)
    words = ["".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(1000)]
    head = "managed field of a controller, " * 470

    def tailed(number: int, version: int) -> bytes:
        text = " ".join(random.Random(number).choices(words, k=2500))
        return widget(f"w{number:05}", version, head=head, text=text)

    count = 1200
    store = Store(WIDGETS)
    store.codec.next_look = count
    store.repacking.call_later = aside
    state = store.relist()
    state.add(store.receive(tailed(number, 1)) for number in range(count))
    state.swap(first=True)
    looks: list[int] = []
    for version in range(1, 6):
        if version > 1:
            for number in range(count):
                store.apply([("MODIFIED", store.receive(tailed(number, version)))])
                while aside.acts:
                    act = aside.acts.popleft()[1]
                    looks += [version] if act == store.repacking._look else []
                    act()
        else:
            aside.do_all()
    assert len(looks) < 2
