"""Objects are packed small, and can always be read (DESIGN 4)."""

from __future__ import annotations

import json
import threading
from functools import lru_cache
from math import inf
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dyninformer.store.codec import NO_STAMP, SAMPLE_SIZE, Codec, Entry, Identity, follows
from dyninformer.store.indexes import IndexFunctions
from tests.store.objects import widget


def texts(count: int) -> list[bytes]:
    """Objects of one template."""
    return [
        widget(f"w{at}", at, text="what all of them have in common " * 9) for at in range(count)
    ]


def a_trained_codec() -> Codec:
    """One that has its dictionary."""
    codec = Codec()
    codec.learn(lambda: [codec.pack(data) for data in texts(SAMPLE_SIZE)])
    return codec


WAYS: Final = 7


@lru_cache
def packed_in_all_ways() -> tuple[Codec, list[tuple[Entry, bytes]]]:
    """A codec with two dictionaries; an entry for each way to keep an object, and its JSON."""
    codec = a_trained_codec()
    first, second, third = texts(3)
    older = codec.pack(first, stamp=bytes(range(16)))
    other = "what the objects that came later have in common " * 9
    assert codec.improve([widget(f"o{at}", at, text=other) for at in range(300)], 3000, 500.0)
    large = b'{"a":"' + b"much " * 4000 + b'"}'
    ways = [
        (codec.pack(second), second),
        (older, first),
        (third, third),
        (Codec().pack(large), large),
        (codec.pack(second, Identity("u", "1")), second),
        (b'{"n":1e999}', b'{"n":1e999}'),
        (codec.pack(first, Identity("u", "2"), bytes(range(16))), first),
    ]
    assert len({entry[:6] for entry, _ in ways}) == len(ways) == WAYS
    return codec, ways


def test_before_there_is_a_dictionary_entries_are_plain_json() -> None:
    """An entry is the object's own bytes."""
    codec = Codec()
    data = widget("a")
    assert codec.pack(data) is data
    assert codec.plain(data) is data


def test_with_a_dictionary_objects_of_a_template_are_many_times_smaller() -> None:
    """They come back as they were."""
    codec = a_trained_codec()
    for data in texts(50):
        packed = codec.pack(data)
        assert len(packed) * 5 < len(data)
        assert codec.plain(packed) == data
        assert codec.decode(packed) == json.loads(data)


def test_a_packed_entry_takes_no_more_memory_than_its_bytes() -> None:
    """It is no shrunken allocation: it has the size of a copy."""
    packed = a_trained_codec().pack(texts(1)[0])
    assert packed.__sizeof__() == bytes(bytearray(packed)).__sizeof__()


def test_what_compression_makes_no_smaller_stays_as_it_is() -> None:
    """The smallest object there is."""
    codec = a_trained_codec()
    assert codec.pack(b"{}") == b"{}"


def test_a_large_object_is_compressed_without_a_dictionary() -> None:
    """Before there is one, and readable after."""
    codec = Codec()
    data = widget("big", 1, text="x" * 20_000)
    packed = codec.pack(data)
    assert len(packed) < 1000
    codec.learn(lambda: texts(SAMPLE_SIZE))
    assert codec.plain(packed) == data
    assert codec.plain(codec.pack(data)) == data


def test_compression_can_be_turned_off() -> None:
    """Then nothing is compressed, and no sample is wanted."""
    codec = Codec(compress=False)
    data = widget("big", 1, text="x" * 20_000)
    assert codec.pack(data) is data
    assert not codec.wants_sample
    assert not codec.learn(lambda: texts(SAMPLE_SIZE))


def test_a_sample_with_nothing_in_common_does_no_harm() -> None:
    """The codec goes on without a dictionary."""
    codec = Codec()
    assert codec.learn(lambda: [b"{}"] * SAMPLE_SIZE)
    data = texts(1)[0]
    assert codec.plain(codec.pack(data)) == data
    assert not codec.wants_sample


def test_a_codec_learns_once() -> None:
    """A dictionary that entries were packed with stays."""
    codec = a_trained_codec()
    packed = codec.pack(texts(1)[0])
    assert not codec.learn(lambda: [b'{"other": "things"}'] * SAMPLE_SIZE)
    assert codec.plain(packed) == texts(1)[0]


def test_an_identity_beside_the_object_is_found_again() -> None:
    """Without one it is read from the object."""
    codec = a_trained_codec()
    data = texts(3)[2]
    packed = codec.pack(data, Identity("other", "99"))
    assert codec.plain(packed) == data
    assert codec.identity(packed) == ("other", "99")
    assert codec.identity(codec.pack(data)) == ("uid-w2", "2")
    assert codec.identity(codec.pack(b"{}")) == ("", "")


def test_a_stamp_tells_a_newer_state_of_the_same_object_and_index_values() -> None:
    """S30, S6: anything else, and what is not known, has to be read."""
    codec, data = a_trained_codec(), texts(1)[0]
    functions = IndexFunctions({"n": ".spec.n"}, lambda name, error: None)
    others = IndexFunctions({"n": ".spec.n"}, lambda name, error: None)
    calls = IndexFunctions({"n": lambda obj: ["1"]}, lambda name, error: None)
    entry = codec.pack(data, None, functions.stamp("uid", "99", [("1",)]))
    assert codec.plain(entry) == data
    assert follows(functions.stamp("uid", "100", [("1",)]), entry)
    assert not follows(functions.stamp("uid", "99", [("1",)]), entry)
    assert not follows(functions.stamp("uid", "98", [("1",)]), entry)
    assert not follows(functions.stamp("other", "100", [("1",)]), entry)
    assert not follows(functions.stamp("uid", "100", [("2",)]), entry)
    assert not follows(others.stamp("uid", "100", [("1",)]), entry)
    assert not follows(NO_STAMP, entry)
    for unknown in ("", "abc", "1" * 20, "\u0661", "\ud800", "-1", "1_0"):
        assert functions.stamp("uid", unknown, [("1",)]) == NO_STAMP
    assert calls.stamp("uid", "100", [("1",)]) == NO_STAMP
    newer = functions.stamp("uid", "100", [("1",)])
    assert not follows(newer, codec.pack(data))
    assert not follows(newer, data)
    assert not follows(newer, codec.pack(data, Identity("uid", "7"), newer))


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("1e999", inf),
        ("-1e999", -inf),
        ("98765432109876543210", 98765432109876543210),
        ("9" * 5000, inf),
        ('"\\ud800"', "\ufffd"),
    ],
)
def test_values_that_msgspec_refuses_are_read_all_the_same(number: str, value: Any) -> None:
    """As the standard library reads them."""
    codec = Codec()
    assert codec.decode(codec.pack(b'{"n":' + number.encode() + b"}")) == {"n": value}


@given(st.lists(st.integers(0, WAYS - 1), max_size=200))
@example([0] * 150)
@example([0] * 63 + [1] + [0] * 64 + [2])
@example([5] * 65)
def test_many_are_read_as_each_alone(chosen: list[int]) -> None:
    """However each of them is packed, and whatever its neighbours are."""
    codec, ways = packed_in_all_ways()
    entries = [ways[way][0] for way in chosen]
    assert codec.plain_all(entries) == [ways[way][1] for way in chosen]
    assert codec.decode_all(entries) == [codec.decode(entry) for entry in entries]


def test_a_reader_deep_in_its_stack_reads_a_deep_object() -> None:
    """What was accepted when it came in can be read from anywhere."""
    codec = Codec()
    deep = b'{"a":' * 700 + b"1" + b"}" * 700

    def descend(levels: int) -> int:
        if levels:
            return descend(levels - 1)
        obj: Any = codec.decode(deep)
        depth = 0
        while isinstance(obj, dict):
            obj, depth = obj["a"], depth + 1
        return depth

    assert descend(600) == 700


def test_many_threads_pack_and_read_with_one_codec() -> None:
    """Each with its own contexts: sharing one would crash the process."""
    codec = a_trained_codec()
    objects = texts(200)
    wrong: list[bytes] = []

    def work() -> None:
        for _ in range(5):
            for data in objects:
                if codec.plain(codec.pack(data)) != data:
                    wrong.append(data)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
