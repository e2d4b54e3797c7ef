"""Whatever comes, in whatever order, a store says what a plain dict would."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dyninformer.store.codec import SAMPLE_SIZE, Codec
from dyninformer.store.decide import Delta, Deltas
from dyninformer.store.relist import Relist
from dyninformer.store.store import Store
from dyninformer.types import Object
from tests.store.objects import WIDGETS, widget

NAMESPACES = st.sampled_from(["one", "two"])
NAMES = st.sampled_from(["a", "b", "c"])
SPECS = st.fixed_dictionaries(
    {
        "size": st.sampled_from([1, 2, "big", None, [], True]),
        "tags": st.lists(st.sampled_from(["x", "y", "z"]), max_size=3),
    }
)
STEPS = st.integers(-2, 3)
UIDS = st.sampled_from(["uid-1", "uid-2"])
INDEXES: dict[str, Any] = {
    "size": ".spec.size",
    "tag": ".spec.tags[*]",
    "call": lambda obj: obj["spec"]["tags"],
}

SAMPLE = [
    widget("abc"[at % 3], at, "one", "uid-1", size=at % 3, tags=["x", "y", "z"][: at % 4])
    for at in range(SAMPLE_SIZE)
]

Objects = dict[str, Object]


def values(name: str, obj: Object) -> set[str]:
    """What an index has of an object, by the rules of DESIGN's JSONPath section."""
    spec = obj["spec"]
    if name != "size":
        return set(spec["tags"])
    texts = {1: "1", 2: "2", "big": "big", None: None}
    size = "true" if spec["size"] is True else "[]" if spec["size"] == [] else texts[spec["size"]]
    return set() if size is None else {size}


class StoreMachine(RuleBasedStateMachine):
    """A store beside the dict that it should equal, and a handler's replay of its changes."""

    def __init__(self) -> None:
        super().__init__()
        self.replayed: dict[str, bytes] = {}
        self.names = ["size"]
        self.store = Store(
            WIDGETS, codec=self.a_codec(), indexers={"size": ".spec.size"}, on_changes=self.told
        )
        self.model: Objects = {}
        self.version = 100
        self.states: dict[str, tuple[Relist, Objects, set[str]]] = {}

    def a_codec(self) -> Codec:
        """So few objects are not compressed."""
        return Codec()

    def told(self, changes: Deltas) -> None:
        """A handler's replay: each change fits to what was told of its key before."""
        for change in changes:
            self.check(change)
            if change.new is None:
                del self.replayed[change.key]
            else:
                self.replayed[change.key] = change.new

    def check(self, change: Delta) -> None:
        """The old state is what was told last."""
        assert (change.old is not None or change.new is not None) is True
        held = self.replayed.get(change.key)
        decode = self.store.codec.decode
        assert (held is None) == (change.old is None)
        if held is not None and change.old is not None:
            assert decode(held) == decode(change.old)
        if change.old is not None and change.new is not None:
            before, after = decode(change.old), decode(change.new)
            assert change.recreated == (before["metadata"]["uid"] != after["metadata"]["uid"])

    def an_object(self, namespace: str, name: str, step: int, uid: str, spec: Object) -> bytes:
        """An object of a version near the newest."""
        self.version += max(step, 0)
        return widget(name, self.version + min(step, 0), namespace, uid, **spec)

    @rule(namespace=NAMESPACES, name=NAMES, step=STEPS, uid=UIDS, spec=SPECS)
    def event(self, namespace: str, name: str, step: int, uid: str, spec: Object) -> None:
        """ADDED or MODIFIED."""
        if namespace in self.states:
            return  # a reflector has one conversation at a time
        data = self.an_object(namespace, name, step, uid, spec)
        obj = msgspec.json.decode(data)
        self.store.apply([("MODIFIED", self.store.receive(data))])
        held = self.model.get(f"{namespace}/{name}")
        if held is None or version(held) <= version(obj):
            self.model[f"{namespace}/{name}"] = obj

    @rule(namespace=NAMESPACES, name=NAMES, step=STEPS, uid=UIDS)
    def delete(self, namespace: str, name: str, step: int, uid: str) -> None:
        """DELETED, perhaps of another uid or too old."""
        if namespace in self.states:
            return
        data = self.an_object(namespace, name, step, uid, {"size": None, "tags": []})
        self.store.apply([("DELETED", self.store.receive(data, deleted=True))])
        held = self.model.get(f"{namespace}/{name}")
        if (
            held
            and held["metadata"]["uid"] == uid
            and version(held) <= version(msgspec.json.decode(data))
        ):
            del self.model[f"{namespace}/{name}"]

    @rule(namespace=NAMESPACES)
    def begin(self, namespace: str) -> None:
        """A relist begins."""
        self.states.setdefault(namespace, (self.store.relist(namespace), {}, set()))

    @precondition(lambda self: self.states)
    @rule(data=st.data(), name=NAMES, step=STEPS, uid=UIDS, spec=SPECS)
    def listed(self, data: st.DataObject, name: str, step: int, uid: str, spec: Object) -> None:
        """A relist gets an object."""
        namespace = data.draw(st.sampled_from(sorted(self.states)))
        state, model, kept = self.states[namespace]
        raw = self.an_object(namespace, name, step, uid, spec)
        state.add([self.store.receive(raw)])
        model[f"{namespace}/{name}"] = msgspec.json.decode(raw)
        kept.discard(f"{namespace}/{name}")

    @precondition(lambda self: self.states)
    @rule(data=st.data(), name=NAMES)
    def listed_as_held(self, data: st.DataObject, name: str) -> None:
        """A relist gets what is held, or an unusable object of that key."""
        namespace = data.draw(st.sampled_from(sorted(self.states)))
        state, model, kept = self.states[namespace]
        key = f"{namespace}/{name}"
        if key in self.model and data.draw(st.booleans()):
            state.add([self.store.receive(msgspec.json.encode(self.model[key]))])
            model[key] = self.model[key]
        elif key not in model:
            state.keep(key)
            kept.add(key)

    @precondition(lambda self: self.states)
    @rule(data=st.data(), name=NAMES)
    def deleted_while_listed(self, data: st.DataObject, name: str) -> None:
        """A streaming list tells of a deletion."""
        namespace = data.draw(st.sampled_from(sorted(self.states)))
        state, model, kept = self.states[namespace]
        state.remove(self.store.receive(widget(name, self.version, namespace), deleted=True))
        model.pop(f"{namespace}/{name}", None)
        kept.discard(f"{namespace}/{name}")

    @precondition(lambda self: self.states)
    @rule(data=st.data(), first=st.booleans())
    def swap(self, data: st.DataObject, first: bool) -> None:
        """A relist ends."""
        namespace = data.draw(st.sampled_from(sorted(self.states)))
        state, model, kept = self.states.pop(namespace)
        state.swap(first)
        self.replace_scope(namespace, model, kept)

    @precondition(lambda self: len(self.states) == 2)
    @rule(namespace=NAMESPACES)
    def give_up(self, namespace: str) -> None:
        """A relist is thrown away."""
        del self.states[namespace]

    @rule(
        namespace=NAMESPACES,
        objects=st.lists(st.tuples(NAMES, STEPS, UIDS, SPECS), max_size=6),
        first=st.booleans(),
    )
    def list_all(
        self, namespace: str, objects: list[tuple[str, int, str, Object]], first: bool
    ) -> None:
        """A whole relist at once; a key may come twice."""
        self.states.pop(namespace, None)
        state = self.store.relist(namespace)
        model: Objects = {}
        for name, step, uid, spec in objects:
            raw = self.an_object(namespace, name, step, uid, spec)
            state.add([self.store.receive(raw)])
            model[f"{namespace}/{name}"] = msgspec.json.decode(raw)
        assert len(state) == len(model)
        state.swap(first)
        self.replace_scope(namespace, model, set())

    def replace_scope(self, namespace: str, model: Objects, kept: set[str]) -> None:
        """The model's side of a swap."""
        for key in [key for key in self.model if key.startswith(f"{namespace}/")]:
            if key not in kept:
                del self.model[key]
        self.model.update(model)

    @rule(name=st.sampled_from(sorted(INDEXES)))
    def add_index(self, name: str) -> None:
        """An index is added, or was there."""
        self.store.add_indexers({name: INDEXES[name]})
        if name not in self.names:
            self.names.append(name)

    @invariant()
    def the_store_holds_what_the_dict_holds(self) -> None:
        """Objects, keys, length, and what was told."""
        view = self.store.view()
        assert {key: self.store.codec.decode(held) for key, held in view.items()} == self.model
        assert len(self.store) == len(self.model)
        assert set(self.store.keys()) == set(self.model)
        assert {
            key: self.store.codec.decode(held) for key, held in self.replayed.items()
        } == self.model

    @invariant()
    def the_indexes_hold_what_a_scan_finds(self) -> None:
        """Each value with exactly its keys, and no empty value."""
        for name in self.names:
            scanned: dict[str, set[str]] = {}
            for key, obj in self.model.items():
                for value in values(name, obj):
                    scanned.setdefault(value, set()).add(key)
            assert sorted(self.store.index_values(name)) == sorted(scanned)
            for value, keys in scanned.items():
                found = self.store.index_keys(name, value)
                assert len(found) == len(keys)
                assert set(found) == keys


class CompressedStoreMachine(StoreMachine):
    """The same, with entries that are compressed, and stamped."""

    def a_codec(self) -> Codec:
        """With a dictionary, as for a large collection."""
        codec = Codec()
        codec.learn(lambda: SAMPLE)
        assert codec.pack(SAMPLE[0]) != SAMPLE[0]
        return codec


class MovingStoreMachine(CompressedStoreMachine):
    """The same, while dictionaries follow one another, and entries are moved step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.later: deque[Callable[[], None]] = deque()
        self.store.repacking.call_later = lambda _, act: self.later.append(act)
        self.kept: list[tuple[bytes, Object]] = []

    @rule(number=st.integers(0, 9))
    def other_objects(self, number: int) -> None:
        """The sample is of objects that the dictionary of now knows nothing of."""
        words = Random(number)
        text = " ".join(f"{words.getrandbits(48):x}" for _ in range(60))
        sample = [widget(f"n{at}", at, "one", "uid-1", text=text, n=at) for at in range(300)]
        before = self.store.codec.dictionary
        better = self.store.codec.improve(sample, 3000, float(len(sample[0])))
        assert better >= (self.store.codec.dictionary > before)

    @rule()
    def move(self) -> None:
        """All that is held is to be packed with the newest."""
        self.store.repacking.move()

    @precondition(lambda self: self.later)
    @rule()
    def go_on(self) -> None:
        """The other thread does what it has to do next."""
        self.later.popleft()()

    @rule()
    def keep(self) -> None:
        """Somebody keeps an entry, for ever."""
        decode = self.store.codec.decode
        self.kept += [(entry, decode(entry)) for _, entry in self.store.first(1).items()]

    @invariant()
    def what_was_kept_can_be_read(self) -> None:
        """Whatever dictionary it needs."""
        for entry, obj in self.kept:
            assert self.store.codec.decode(entry) == obj

    @invariant()
    def the_bytes_held_are_known(self) -> None:
        """To the byte."""
        assert self.store.entries.size == sum(len(entry) for _, entry in self.store.view().items())


def version(obj: Object) -> int:
    """An object's version as a number."""
    return int(obj["metadata"]["resourceVersion"])


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestCompressedStoreMachine = CompressedStoreMachine.TestCase
TestCompressedStoreMachine.settings = TestStoreMachine.settings
TestMovingStoreMachine = MovingStoreMachine.TestCase
TestMovingStoreMachine.settings = settings(TestStoreMachine.settings, max_examples=50)
