"""The dictionary is the one that makes what is held smallest, itself included."""

from __future__ import annotations

import random
import threading

from dyninformer.store.dictionaries import (
    RECIPES,
    TRIED,
    Better,
    Contexts,
    Dictionary,
    better,
    first,
    in_a_hurry,
    pays,
    sample_size,
)
from tests.store.objects import widget


def with_noise(count: int) -> list[bytes]:
    """Objects that have nothing but noise, of which a third is gone by its letters alone."""
    noise = random.Random(1)
    return [widget(f"w{at}", at, text=noise.randbytes(700).hex()) for at in range(count)]


def of_charts(count: int, charts: int) -> list[bytes]:
    """Objects each of which is like a few others: one in so many."""
    texts = [
        " ".join(f"{random.Random(f'{chart}/{word}').getrandbits(40):x}" for word in range(250))
        for chart in range(charts)
    ]
    return [widget(f"w{at}", at, text=texts[at % charts]) for at in range(count)]


def started(objects: list[bytes]) -> Dictionary:
    """The dictionary that the first of them gave."""
    found = first(objects[:1000], 1)
    assert found is not None
    return found


def best(objects: list[bytes], count: int) -> Better | None:
    """What makes so many such objects smaller than they came."""
    now = started(objects)
    return better(objects, count, in_a_hurry(now, objects), now, 2)


def test_a_few_objects_get_a_small_dictionary() -> None:
    """A large one would weigh more than it saves."""
    assert started(of_charts(1000, 150)).content_size == RECIPES[0].size
    found = best(of_charts(1000, 150), 1000)
    assert found is None or found.dictionary.content_size == RECIPES[0].size


def test_many_objects_that_differ_get_a_large_dictionary() -> None:
    """Each is like a few others, which only a large one can hold."""
    found = best(of_charts(1200, 150), 200_000)
    assert found is not None
    assert found.dictionary.content_size >= RECIPES[2].size


def test_objects_of_one_template_stay_as_they_came() -> None:
    """Nothing is gained by more of the same, nor by care."""
    assert best(of_charts(1200, 1), 20_000) is None


def test_noise_is_compressed_in_a_hurry_and_no_better() -> None:
    """Careful matching would find nothing; letters alone save a half of what is hexadecimal."""
    hexadecimal = with_noise(1000)
    plain = len(hexadecimal[0])
    assert pays(in_a_hurry(started(hexadecimal), hexadecimal), plain)
    assert best(hexadecimal, 20_000) is None
    assert not pays(0.95 * plain, plain)


def test_what_was_compressed_is_read_when_nothing_is_any_more() -> None:
    """Without the table that compressing takes."""
    objects = of_charts(1000, 3)
    found = started(objects)
    assert found.reading().decompress(found.contexts.compress(objects[7])) == objects[7]


def test_a_sample_is_larger_where_objects_are_small_and_many() -> None:
    """Enough bytes for the largest dictionary, and some to try it on; no more than there are."""
    assert sample_size(10_000, 1000, 500) > sample_size(10_000, 6000, 500) > TRIED
    assert sample_size(100_000, 6000, 500) > sample_size(10_000, 6000, 500)
    assert sample_size(300, 1000, 500) == 300


def test_each_thread_has_a_compressor_of_its_own() -> None:
    """Also where one has kept the other's method: zstd's own, used by two, crashes the process."""
    contexts = Contexts(None)
    kept, both = contexts.compress, threading.Barrier(2)
    used = set[int]()

    def use() -> None:
        for _ in range(2):
            assert contexts.decompress(kept(b"the same " * 100)) == b"the same " * 100
        used.add(id(vars(contexts)["compress"].__self__))
        both.wait(10)

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(used) == 2
