"""Indexes added while the store is written (S15), and readers beside a writer (S7)."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from dyninformer.errors import OptionsConflictError
from dyninformer.store.codec import Codec
from dyninformer.store.store import Store
from dyninformer.types import Object
from tests.store.objects import WIDGETS, add, delete, held, relist, widget

LONG = 30.0  # seconds after which a test that waits has failed


class Worker(threading.Thread):
    """Does something over and over until it is stopped; joining raises what it raised."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._stop_asked = threading.Event()
        self.rounds = 0
        self.busy = threading.Event()  # it has done a good deal, or failed
        self.raised: BaseException | None = None

    def run(self) -> None:
        """Work until stopped."""
        try:
            while not self._stop_asked.is_set():
                self._work()
                self.rounds += 1
                if self.rounds == 20:
                    self.busy.set()
        except BaseException as error:  # noqa: BLE001 - it is raised again by the thread that joins
            self.raised = error
            self.busy.set()

    def end(self) -> None:
        """Stop, and say what went wrong."""
        self._stop_asked.set()
        self.join()
        if self.raised is not None:
            raise self.raised


def numbered(index: int, version: int) -> bytes:
    """One of 300 objects, with values that change from version to version."""
    return widget(f"w{index}", version, n=str(version % 7), m=[str(version % 3), "all"])


def writing(store: Store) -> Callable[[], None]:
    """A reflector's work: events, deletes and now and then a relist, one after another."""
    versions = itertools.count(1000)

    def work() -> None:
        version = next(versions)
        index = version * 7 % 300
        if version % 50 == 0:
            relist(store, *(numbered(each, version) for each in range(0, 300, 2)))
        elif version % 5 == 0:
            delete(store, numbered(index, version))
        else:
            add(store, numbered(index, version))

    return work


def scanned(store: Store, values: Callable[[Object], list[str]]) -> dict[str, list[str]]:
    """The index that a scan of all objects gives."""
    found: dict[str, list[str]] = {}
    for obj in store.view():
        for value in values(obj):
            found.setdefault(value, []).append(f"ns/{obj['metadata']['name']}")
    return {value: sorted(keys) for value, keys in found.items()}


def indexed(store: Store, name: str) -> dict[str, list[str]]:
    """What an index has."""
    return {value: sorted(store.index_keys(name, value)) for value in store.index_values(name)}


class Gate:
    """A place in one thread's work where it is held up until it is let go on."""

    def __init__(self) -> None:
        self._thread = 0
        self._reached, self._open = threading.Event(), threading.Event()

    def pass_through(self) -> None:
        """Stand still here, if this is the thread."""
        if threading.get_ident() == self._thread:
            self._reached.set()
            assert self._open.wait(LONG)

    @contextmanager
    def held_up(self, work: Callable[[], object]) -> Iterator[None]:
        """A thread does the work, and stands at the gate for as long as the block runs."""

        def act() -> None:
            self._thread = threading.get_ident()
            work()

        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(act)
            try:
                assert self._reached.wait(LONG)
                yield
            finally:
                self._open.set()
            working.result(LONG)


class GatedCodec(Codec):
    """A codec that stands still where entries are unpacked, or packed anew."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    def plain(self, payload: bytes) -> bytes:
        """Wait, and then unpack."""
        self._gate.pass_through()
        return super().plain(payload)


@pytest.mark.parametrize("how", ["path", "function"])
@pytest.mark.parametrize("by", ["events", "a relist"])
def test_s15_an_index_has_what_is_written_while_it_is_built(how: str, by: str) -> None:
    """What was read for it before, and has changed or gone since, does not come back."""
    gate = Gate()
    store = Store(WIDGETS, codec=GatedCodec(gate))
    old, new = ["all", "old"], ["all", "new"]
    add(store, *(widget(name, 1, m=old) for name in ("kept", "moved", "gone", "anew")))

    def read(obj: Object) -> list[str]:
        gate.pass_through()
        return list(obj["spec"]["m"])

    index = ".spec.m[*]" if how == "path" else read
    with gate.held_up(lambda: store.add_indexers({"m": index})):
        assert list(store.get_indexers()) == ["namespace"]
        if by == "events":
            add(store, widget("moved", 2, m=new), widget("came", 3, m=new))
            delete(store, widget("gone", 4))
            delete(store, widget("anew", 5))
            add(store, widget("anew", 6, uid="other", m=new))
        else:
            relist(store, widget("kept", 1, m=old))
            changed = [widget(name, 7, m=new) for name in ("moved", "came", "anew")]
            relist(store, widget("kept", 1, m=old), *changed)
    for _ in range(2):
        assert indexed(store, "m") == scanned(store, lambda obj: obj["spec"]["m"])
        assert len(store.index_keys("m", "all")) == 4
        assert store.index_keys("m", "old") == ["ns/kept"]
        add(store, widget("moved", 8, m=[]), widget("moved", 9, m=new))


@pytest.mark.parametrize("by", ["event", "relist", "update in a relist"])
def test_s15_what_is_taken_while_an_index_is_added_is_in_it(by: str) -> None:
    """An index is added after an object's values were read, and before the object is stored."""
    gate = Gate()
    store = Store(WIDGETS)
    if by == "update in a relist":
        add(store, widget("a", 1, n="old"))
    state, early = store.relist(), store.receive(widget("a", 2, n="new"))
    state.add([early])

    def gated(obj: Object) -> list[str]:
        gate.pass_through()
        return [obj["spec"]["n"]]

    store.add_indexers({"first": gated})
    write = (
        (lambda: store.apply([("ADDED", early)])) if by == "event" else (lambda: state.swap(False))
    )
    with gate.held_up(write):
        store.add_indexers({"path": ".spec.n", "function": lambda obj: [obj["spec"]["n"]]})
    for name in ("first", "path", "function"):
        assert indexed(store, name) == {"new": ["ns/a"]}


class GatedPacking(GatedCodec):
    """A codec that stands still where an entry is packed again."""

    def plain(self, payload: bytes) -> bytes:
        """Unpack."""
        return Codec.plain(self, payload)

    def repacked(self, payload: bytes) -> bytes:
        """Wait, and then pack."""
        self._gate.pass_through()
        return super().repacked(payload)


def test_an_entry_that_is_written_while_it_is_compressed_stays_as_it_was_written() -> None:
    """By a thread of another namespace; what was deleted does not come back."""
    gate = Gate()
    store = Store(WIDGETS, codec=GatedPacking(gate))
    text = "what all of them have in common " * 20
    names = ("kept", "changed", "gone")
    add(store, *(widget(name, 1, "two", text=text) for name in names))
    with gate.held_up(
        lambda: store.repacking.learn(lambda: [data for _, data in store.view().items()])
    ):
        add(store, widget("changed", 2, "two", text="new"))
        delete(store, widget("gone", 3, "two"))
    assert held(store, "two/changed")["spec"] == {"text": "new"}
    assert store.keys() == ["two/kept", "two/changed"]
    assert held(store, "two/kept")["spec"] == {"text": text}
    assert (store.get("two/kept") or b"")[:1] == b"("


def test_s15_threads_that_add_the_same_index_add_it_once() -> None:
    """All return when it is there."""
    store = Store(WIDGETS)
    add(store, *(numbered(index, index + 1) for index in range(300)))
    seen: list[int] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        store.add_indexers({"n": ".spec.n"})
        seen.append(len(store.index_values("n")))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [7] * 4


def test_s7_readers_beside_a_writer_see_whole_states() -> None:
    """An object found by an index value has that value; keys and entries of a view agree."""
    store = Store(WIDGETS, indexers={"n": ".spec.n"})
    add(store, *(numbered(index, index + 1) for index in range(300)))

    def read() -> None:
        for key, payload in store.by_index("n", "3"):
            obj = store.codec.decode(payload)
            assert obj["spec"]["n"] == "3"
            assert key == f"ns/{obj['metadata']['name']}"
        view = store.view()
        assert len(view) == len(view.keys()) == len(list(view))
        shared = store.shared("ns/w4")
        assert shared is None or shared["metadata"]["name"] == "w4"

    workers = [Worker(writing(store)), Worker(read), Worker(read)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.busy.wait()
    for worker in workers:
        worker.end()


def test_two_scopes_are_written_and_compressed_by_two_threads_at_once() -> None:
    """Each holds what it was given last, in compressed form, readable all the while."""
    store = Store(WIDGETS, indexers={"n": ".spec.n"})

    def reflect(namespace: str) -> None:
        for version in (1, 2):
            relist(
                store,
                *(
                    widget(f"w{index}", version, namespace, n=str(index % 9), text="long " * 40)
                    for index in range(700)
                ),
                scope=namespace,
            )

    threads = [threading.Thread(target=reflect, args=(name,)) for name in ("one", "two")]
    reader = Worker(lambda: [obj["spec"]["n"] for obj in store.view()])
    for thread in (*threads, reader):
        thread.start()
    for thread in threads:
        thread.join()
    reader.end()
    relist(store, scope="three")
    assert [obj["metadata"]["resourceVersion"] for obj in store.view()] == ["2"] * 1400
    assert len(store.index_keys("n", "4")) == 2 * 78
    add(store, widget("last", 1, "one", text="long " * 40))
    assert all(payload[:1] == b"(" for _, payload in store.view().items())


def test_s15_the_same_index_again_changes_nothing_and_another_function_is_a_conflict() -> None:
    """Paths are the same by their text, functions by identity; a conflict adds nothing."""

    def by_m(obj: Object) -> list[str]:
        return list(obj["spec"]["m"])

    store = Store(WIDGETS, indexers={"n": ".spec.n", "m": by_m})
    store.add_indexers({"n": ".spec.n", "m": by_m})
    with pytest.raises(OptionsConflictError, match=r"'n'.*\.spec\.n.*\.spec\.other"):
        store.add_indexers({"new": ".spec.m", "n": ".spec.other"})
    with pytest.raises(OptionsConflictError, match="'m'"):
        store.add_indexers({"m": lambda obj: [*obj["spec"]["m"]]})
    assert list(store.get_indexers()) == ["namespace", "n", "m"]


def test_s23_an_interrupt_while_an_index_is_built_leaves_none_of_it() -> None:
    """It can be added afterwards, and is complete then."""
    store = Store(WIDGETS, indexers={"n": ".spec.n"})
    add(store, *(numbered(index, index + 1) for index in range(300)))
    calls = itertools.count()

    def interrupted(obj: Object) -> list[str]:
        if next(calls) == 200:
            raise KeyboardInterrupt
        return list(obj["spec"]["m"])

    with pytest.raises(KeyboardInterrupt):
        store.add_indexers({"m": interrupted})
    assert list(store.get_indexers()) == ["namespace", "n"]
    add(store, numbered(1, 5000))
    store.add_indexers({"m": interrupted})
    assert indexed(store, "m") == scanned(store, lambda obj: obj["spec"]["m"])


def test_what_was_read_before_an_index_was_added_is_in_it_when_it_is_applied() -> None:
    """The row of an object is of the index functions of its time."""
    store = Store(WIDGETS)
    early: Any = store.receive(numbered(1, 9))
    store.add_indexers({"n": ".spec.n"})
    store.apply([("ADDED", early)])
    assert store.index_keys("n", "2") == ["ns/w1"]
