"""Labels and fields that reads ask for twice get indexes, which answer as scans do."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import count
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from dyninformer.errors import SelectorError, UnknownIndexError
from dyninformer.options import DROP, Drop
from dyninformer.store import asked
from dyninformer.store.codec import Codec
from dyninformer.store.frozen import FrozenStore
from dyninformer.store.store import Entries, Store
from dyninformer.types import Object
from tests.store.objects import WIDGETS, add, delete, relist, widget
from tests.store.test_matching import as_selectors_say
from tests.store.test_state_machine import CompressedStoreMachine

APPS = ("shop", "till", "web")


def labelled(name: str, version: int = 1, namespace: str = "ns", **labels: Any) -> bytes:
    """A widget with labels, which stand in its spec as well."""
    obj = msgspec.json.decode(widget(name, version, namespace, **labels))
    obj["metadata"]["labels"] = labels
    return msgspec.json.encode(obj)


def store_of(count: int = 12, codec: Codec | None = None, **options: Any) -> Store:
    """A store of widgets in two namespaces, of three apps."""
    store = Store(WIDGETS, codec=codec, **options)
    for at in range(count):
        space = "ns" if at % 2 else "dev"
        add(store, labelled(f"w{at}", 1, space, app=APPS[at % 3], tier=str(at % 2)))
    return store


def names(objects: list[Object]) -> list[str]:
    """Their names, sorted."""
    return sorted(obj["metadata"]["name"] for obj in objects)


def indexed(store: Store) -> tuple[str, ...]:
    """What has an index because it was asked for."""
    return store.asked.names


def ask(store: Store, selector: str, times: int = 2) -> list[str]:
    """What a selector finds when it is asked for again."""
    return [names(store.selected(selector)) for _ in range(times)][-1]


class Stopping(Codec):
    """A codec that does something, once, when it next unpacks an entry."""

    act: Callable[[], object] | None = None

    def plain(self, entry: bytes) -> bytes:
        """Unpack, after what is to be done before."""
        act, self.act = self.act, None
        if act is not None:
            act()
        return super().plain(entry)


def test_s43_the_second_read_by_a_label_has_it_indexed() -> None:
    """The first alone costs no index; the answers are the same."""
    store = store_of()
    assert ask(store, "app=shop", 1) == ["w0", "w3", "w6", "w9"]
    assert indexed(store) == ()
    assert ask(store, "app=shop", 1) == ["w0", "w3", "w6", "w9"]
    assert (indexed(store), store.asked.size > 0) == (("label app",), True)
    assert ask(store, "app=shop", 1) == ["w0", "w3", "w6", "w9"]


def test_s43_then_only_what_is_selected_is_unpacked() -> None:
    """In one namespace, too, and where another label has to be looked at."""
    codec, unpacked = Stopping(), list[str]()
    store = store_of(codec=codec)
    ask(store, "app=shop")

    def count() -> None:
        unpacked.append("")
        codec.act = count

    for selector, namespace, most in (
        ("app=shop", None, 4),
        ("app=shop", "dev", 2),
        ("app=shop,tier!=0", None, 4),
        ("app in (shop,web)", None, 8),
    ):
        unpacked.clear()
        codec.act = count
        found = store.selected(selector, None, namespace)
        codec.act = None
        assert (len(found) <= most, len(unpacked) <= most) == (True, True), selector


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("app=shop,tier=0", ["w0", "w6"]),
        ("app=shop,tier!=0", ["w3", "w9"]),
        ("app in (shop,web),tier=1", ["w11", "w3", "w5", "w9"]),
        ("app,tier=1,app!=shop", ["w1", "w11", "w5", "w7"]),
        ("app=nobody", []),
        ("app", [f"w{at}" for at in sorted(range(12), key=str)]),
        ("app=shop,app!=shop", []),
        ("app!=shop,app=web", ["w11", "w2", "w5", "w8"]),
        ("app notin (web),app notin (shop)", ["w1", "w10", "w4", "w7"]),
    ],
)
def test_several_requirements_are_met_by_several_indexes(selector: str, found: list[str]) -> None:
    """Whichever of them leads, the others rule out."""
    store = store_of()
    assert ask(store, selector, 1) == found
    assert ask(store, "app,tier") == sorted(f"w{at}" for at in range(12))
    assert indexed(store) == ("label app", "label tier")
    assert ask(store, selector) == found


@pytest.mark.parametrize("selector", ["app!=shop", "!app", "app notin (a,b)", "app>1", "app<1"])
def test_what_is_not_there_is_looked_for_by_scans(selector: str) -> None:
    """An index has those that have the label."""
    store = store_of()
    before = ask(store, selector, 1)
    assert ask(store, selector, 4) == before
    assert indexed(store) == ()


@pytest.mark.parametrize(
    "field", ["spec.app=shop", "metadata.labels.app=shop", ".spec.app=shop"]
)  # fmt: skip
def test_s43_plain_fields_are_indexed_too(field: str) -> None:
    """Whatever stands before them."""
    store = store_of()
    for _ in range(3):
        assert names(store.selected(None, field)) == ["w0", "w3", "w6", "w9"]
    assert indexed(store) == (f"field {field.strip('.').partition('=')[0]}",)


@pytest.mark.parametrize("field", ["spec.app!=shop", "spec.app=", "spec.nothing[*].a=b"])
def test_other_fields_are_not(field: str) -> None:
    """What is missing is in no index, nor is the first of several."""
    store = store_of()
    before = names(store.selected(None, field))
    assert [names(store.selected(None, field)) for _ in range(3)] == [before] * 3
    assert indexed(store) == ()


def test_names_and_namespaces_need_no_index() -> None:
    """Keys tell them, with whatever else is asked."""
    store = store_of()
    add(store, labelled("w1", 1, "dev", app="shop"))
    for fields, selector, found in (
        ("metadata.name=w1", "", ["w1", "w1"]),
        ("metadata.name=w1,metadata.namespace=dev", "", ["w1"]),
        ("metadata.name=w1", "app=shop", ["w1"]),
        ("metadata.name=w1,metadata.name=w2", "", []),
        ("metadata.namespace=dev", "app=till", ["w10", "w4"]),
        ("metadata.namespace=", "", []),
        ("metadata.name=w1,spec.app=shop", "", ["w1"]),
    ):
        assert names(store.selected(selector, fields)) == found
        assert sorted(store.selected_entries(selector, fields)) == sorted(
            f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
            for obj in store.selected(selector, fields)
        )
    assert store.selected(None, "metadata.namespace=dev", "ns") == []


def test_cluster_scoped_objects_are_selected_alike() -> None:
    """Their namespace is empty."""
    store = Store(WIDGETS)
    add(store, labelled("a", 1, "", app="shop"), labelled("b", 1, "", app="web"))
    for _ in range(3):
        assert names(store.selected("app=shop")) == ["a"]
        assert names(store.selected("app=shop", "metadata.namespace=")) == ["a"]
        assert names(store.selected("app", "metadata.name=b")) == ["b"]


def test_s43_users_do_not_see_such_an_index() -> None:
    """Theirs may even have its name."""
    store = store_of()
    ask(store, "app=shop")
    assert list(store.get_indexers()) == ["namespace"]
    with pytest.raises(UnknownIndexError, match="it has: namespace\\. "):
        store.by_index("label app", "shop")
    store.add_indexers({"label app": ".spec.app"})
    assert len(store.by_index("label app", "shop")) == 4
    add(store, labelled("new", 1, app="shop"))
    assert ask(store, "app=shop", 1) == ["new", "w0", "w3", "w6", "w9"]


def test_s43_a_frozen_store_answers_the_same() -> None:
    """With indexes of its own."""
    store = store_of()
    frozen = FrozenStore(store.view(), store.get_indexers())
    add(store, labelled("late", 1, app="shop"))
    for _ in range(3):
        assert names(frozen.selected("app=shop")) == ["w0", "w3", "w6", "w9"]
        assert names(frozen.selected("app=shop", None, "dev")) == ["w0", "w6"]
    assert indexed(frozen) == ("label app",)
    assert indexed(store) == ()


def test_a_read_of_a_small_namespace_hardly_counts() -> None:
    """It costs little, and an index of the whole store would cost much."""
    store = store_of(80)
    add(store, labelled("one", 1, "small", app="shop"))
    for _ in range(4):
        store.selected("app=shop", None, "small")
    assert indexed(store) == ()
    ask(store, "app=shop")
    assert indexed(store) == ("label app",)


def test_s43_what_is_written_while_an_index_is_built_is_in_it() -> None:
    """Added, moved to another value, deleted, or listed anew."""
    codec = Stopping()
    store = store_of(200, codec)
    ask(store, "app=shop", 1)

    def write() -> None:
        add(store, labelled("new", 5, app="shop"), labelled("w3", 5, "ns", app="web"))
        delete(store, labelled("w0", 5, "dev", app="shop"))
        relist(store, labelled("w9", 6, app="shop"), labelled("x", 6, app="shop"), scope="ns")

    codec.act = write
    during = ask(store, "app=shop", 1)
    assert indexed(store) == ("label app",)
    kept = sorted(f"w{at}" for at in range(6, 200, 6))
    assert during == ask(store, "app=shop", 1) == sorted([*kept, "w9", "x"])


def test_s43_nobody_waits_while_an_index_is_built() -> None:
    """Others read and write meanwhile, and the index is there at the end."""
    codec = Stopping()
    store = store_of(200, codec)
    ask(store, "app=shop", 1)
    begun, go_on = threading.Event(), threading.Event()

    def stop() -> None:
        begun.set()
        assert go_on.wait(30)

    codec.act = stop
    builder = threading.Thread(target=store.selected, args=("app=shop",))
    builder.start()
    assert begun.wait(30)
    before = ask(store, "app=shop", 3)
    add(store, labelled("new", 1, app="shop"))
    assert (indexed(store), ask(store, "app=shop", 1)) == ((), sorted([*before, "new"]))
    go_on.set()
    builder.join(30)
    assert indexed(store) == ("label app",)
    assert ask(store, "app=shop", 1) == sorted([*before, "new"])


def test_an_interrupt_leaves_no_half_of_an_index() -> None:
    """And the next read builds it."""
    codec = Stopping()
    store = store_of(codec=codec)
    ask(store, "app=shop", 1)

    def interrupt() -> None:
        raise KeyboardInterrupt

    codec.act = interrupt
    with pytest.raises(KeyboardInterrupt):
        store.selected("app=shop")
    assert (indexed(store), store.entries.is_added_to) == ((), False)
    assert ask(store, "app=shop", 1) == ["w0", "w3", "w6", "w9"]
    assert indexed(store) == ("label app",)


@pytest.mark.usefixtures("unmeasured")
def test_s23_an_interrupt_wherever_indexes_are_exchanged_leaves_them_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was built or dropped is so wholly or not at all: reads and writes go on."""
    monkeypatch.setattr(asked, "MOST_INDEXES", 1)
    places = {each.__code__ for each in (Entries.begin, Entries.publish, Entries.drop)}
    for after in count():
        store = store_of()
        ask(store, "app=shop")
        ask(store, "tier=0", 1)
        lines = iter(range(after))

        def trace(frame: FrameType, event: str, _: object, lines: Any = lines) -> Any:
            if frame.f_code in places and event == "line" and next(lines, None) is None:
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            store.selected("tier=0")
        except KeyboardInterrupt:
            came = True
        else:
            came = False
        finally:
            sys.settrace(None)
        add(store, labelled("w0", 9, "dev", app="till", tier="1"), labelled("new", 9, app="shop"))
        assert ask(store, "app=shop", 3) == ["new", "w3", "w6", "w9"]
        assert ask(store, "tier=0", 3) == ["w10", "w2", "w4", "w6", "w8"]
        relist(store, labelled("w0", 10, "dev", app="shop"))
        assert (ask(store, "app=shop", 3), ask(store, "tier=0", 3)) == (["w0"], [])
        if not came:
            break


def test_an_index_function_may_read_while_its_index_is_built() -> None:
    """What it asks for is answered by a scan: one index is built at a time."""
    store = store_of()
    ask(store, "app=shop", 1)
    found: list[list[str]] = []

    def reads(obj: Object) -> list[str]:
        found.append(ask(store, "app=shop"))
        return [obj["metadata"]["name"]]

    store.add_indexers({"reads": reads})
    assert found == [["w0", "w3", "w6", "w9"]] * 12
    assert store.index_keys("reads", "w3") == ["ns/w3"]


def test_s43_so_many_labels_have_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was not used for the longest goes."""
    monkeypatch.setattr(asked, "MOST_INDEXES", 2)
    store = store_of()
    ask(store, "app=shop")
    ask(store, "tier=0")
    ask(store, "app=shop", 1)
    ask(store, "other=a")
    assert indexed(store) == ("label app", "label other")
    assert ask(store, "tier=0", 1) == ["w0", "w10", "w2", "w4", "w6", "w8"]
    add(store, labelled("w1", 2, tier="0"))
    assert ask(store, "tier=0", 3)[:3] == ["w0", "w1", "w10"]


def test_s43_all_indexes_together_take_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is too large alone is not tried again before there are twice as many objects."""
    monkeypatch.setattr(asked, "LEAST_BYTES", 1)
    monkeypatch.setattr(asked, "MOST_BYTES_EACH", 1)
    codec = Stopping()
    store = store_of(codec=codec)
    ask(store, "app=shop")
    assert (indexed(store), store.asked.size) == ((), 0)
    monkeypatch.setattr(asked, "MOST_BYTES_EACH", 1000)
    ask(store, "app=shop", 4)
    assert indexed(store) == ()
    for at in range(12, 24):
        add(store, labelled(f"w{at}", 1, app="till"))
    ask(store, "app=shop", 3)
    assert indexed(store) == ("label app",)
    monkeypatch.setattr(asked, "MOST_BYTES_EACH", 1)
    for at in range(24, 60):
        add(store, labelled(f"w{at}", 1, app="till"))
    assert ask(store, "app=shop", 1) == ["w0", "w3", "w6", "w9"]
    assert indexed(store) == ()


def test_s43_what_a_transform_made_is_what_is_selected() -> None:
    """What it drops is not there, and a label that it changes is the new one."""

    def transform(obj: Object) -> Object | Drop:
        if obj["metadata"]["labels"]["app"] == "till":
            return DROP
        return {**obj, "metadata": {**obj["metadata"], "labels": {"app": "x"}}}

    store = store_of(transform=transform)
    for _ in range(3):
        assert (store.selected("app=till"), store.selected("app=shop")) == ([], [])
        assert len(store.selected("app=x")) == 8


def test_s43_metadata_alone_has_labels() -> None:
    """And no other fields."""
    store = store_of(metadata_only=True)
    for _ in range(3):
        assert names(store.selected("app=shop")) == ["w0", "w3", "w6", "w9"]
        assert store.selected(None, "spec.app=shop") == []


def test_a_selector_that_cannot_be_read_is_refused() -> None:
    """Each time."""
    store = store_of()
    for _ in range(3):
        with pytest.raises(SelectorError):
            store.selected("app in shop")


TERMS = [
    "app=big", "app=", "app", "app!=big", "!app", "app in (big,x)", "tier=x", "tier in (x,y)",
    "tier notin (x)", "tier=z,app=big", "app=1", "name=a",
]  # fmt: skip
FIELDS = [
    "", "", "spec.size=1", "spec.size=big", "spec.size=", "metadata.labels.app=true",
    "spec.size!=2", "metadata.name=a", "metadata.namespace=one", "metadata.uid=uid-1",
]  # fmt: skip


class SelectingMachine(CompressedStoreMachine):
    """The store of that machine, of objects with odd labels, read by selectors."""

    def __init__(self) -> None:
        super().__init__()
        self.most = asked.MOST_INDEXES
        asked.MOST_INDEXES = 3  # type: ignore[misc] # put back at the end

    def teardown(self) -> None:
        """Put the number back."""
        asked.MOST_INDEXES = self.most  # type: ignore[misc]

    def an_object(self, namespace: str, name: str, step: int, uid: str, spec: Object) -> bytes:
        """With labels that stand for its spec, some of which are no texts."""
        obj = msgspec.json.decode(super().an_object(namespace, name, step, uid, spec))
        obj["metadata"]["labels"] = {"app": spec["size"], "name": name}
        if spec["tags"]:
            obj["metadata"]["labels"]["tier"] = spec["tags"][0]
        return msgspec.json.encode(obj)

    @rule(
        selector=st.sampled_from(TERMS),
        fields=st.sampled_from(FIELDS),
        namespace=st.sampled_from([None, "one", "two"]),
        times=st.integers(1, 3),
    )
    def select(self, selector: str, fields: str, namespace: str | None, times: int) -> None:
        """It finds what the selectors say of each object, by scan or by index."""
        matching = [
            key
            for key, obj in self.model.items()
            if namespace in (None, key.partition("/")[0])
            and as_selectors_say(obj, selector, fields)
        ]
        for _ in range(times):
            found = self.store.selected_entries(selector, fields, namespace)
            assert sorted(found) == sorted(matching)
            objects = self.store.selected(selector, fields, namespace)
            assert len(objects) == len(matching)
            for obj in objects:
                metadata = obj["metadata"]
                assert obj == self.model[f"{metadata['namespace']}/{metadata['name']}"]


TestSelectingMachine = SelectingMachine.TestCase
TestSelectingMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
