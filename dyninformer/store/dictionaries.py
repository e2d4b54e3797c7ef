"""Dictionaries for what a store holds: trained on some objects, and tried on others.

What suits a collection follows from what it is. Pods of a hundred charts are a fifth smaller with
2 MB than with 64 kB; certificates have no use for that much, and a dictionary weighs as much as
thousands of them. What comes is always matched in a hurry: a list or an update waits for it. What
stays may be packed again with care, for three to six times the CPU time. Pods and applications are
a quarter smaller then, noise and certificates hardly at all. So each way is tried on objects that
no dictionary was trained on. What counts is what all objects take, the dictionary and its tables
included, with a price on CPU time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from random import Random
from time import thread_time_ns
from typing import Final, NamedTuple, TypeAlias

import zstandard

Plain: TypeAlias = list[bytes]
Samples: TypeAlias = list[bytes | bytearray | memoryview]
Compress: TypeAlias = Callable[[bytes], bytes]
Parameters: TypeAlias = zstandard.ZstdCompressionParameters

TRIED: Final = 160
"""So many of a sample are kept from the training, to try what it gave."""

BYTES_PER_MICROSECOND: Final = 2.0
"""What a microsecond is worth, once in an entry's life, of a thread that has nothing else to do:
2 MB for a second. What stays of pods is made smaller by 7 to 10 bytes for each that it takes, of
certificates by one."""

_WORTH: Final = 0.96  # of the bytes that are held: else nothing is worth a move
_BESIDE: Final = 64  # bytes that an entry takes whatever is done: its stamp, what Python adds
_PAYS: Final = 0.9  # of the plain size: else nothing is compressed
_MOST_OF_HELD: Final = 10  # a dictionary larger than this part of what is held is not tried
_SIZES: Final = 2  # so many of those that fit are trained, the largest
SAMPLE_PART: Final = 8192  # of a large object the beginning is enough to learn from
_SAMPLE_TIMES: Final = 12  # so many times the dictionary's size in samples: more makes it no better
_LEAST_SAMPLE: Final = 1 << 20
_DMER, _LOG, _ACCELERATION = 8, 20, 4  # how zstd looks for what is frequent; one pass
_LEAST_MATCH: Final = 7  # of what is matched in a hurry: shorter ones cost more than they save


class Recipe(NamedTuple):
    """A size of dictionary, and how it is made and looked up in."""

    size: int
    segment: int
    """What is taken from a sample is taken in pieces of this size. The longer, the fewer matches:
    zstd's own search for it tries 50 and 2,000, in twice the time."""
    hash_log: int

    @property
    def memory(self) -> int:
        """The bytes of a dictionary with its table, for as long as it is packed with."""
        return self.size + (4 << self.hash_log)


RECIPES: Final = (
    Recipe(1 << 14, 2_000, 14),
    Recipe(1 << 16, 2_000, 15),
    Recipe(1 << 18, 6_000, 16),
    Recipe(1 << 20, 20_000, 17),
    Recipe(1 << 21, 20_000, 17),
)

Recipes: TypeAlias = tuple[Recipe, ...]


def _parameters(
    strategy: int, tables: int, least_match: int, tries: int
) -> zstandard.ZstdCompressionParameters:
    return zstandard.ZstdCompressionParameters(
        strategy=strategy,
        window_log=21,
        hash_log=tables,
        chain_log=tables,
        search_log=tries,
        min_match=least_match,
        target_length=0,
        write_dict_id=True,
        write_content_size=True,
    )


WAYS: Final[tuple[Parameters, ...]] = (
    _parameters(zstandard.STRATEGY_GREEDY, 18, 6, 4),
    _parameters(zstandard.STRATEGY_LAZY2, 18, 6, 3),
)
"""How what stays may be matched: three and six times as slow as what comes."""


class Contexts(threading.local):
    """This thread's compressor and decompressor, each made when it is first needed.

    With a dictionary it reads frames that were made without one, too.
    """

    def __init__(
        self,
        dictionary: zstandard.ZstdCompressionDict | None,
        parameters: Parameters | None = None,
    ) -> None:
        self._dictionary = dictionary
        self._parameters = parameters

    # What is made takes the method's place in this thread. Who has kept the method calls it on.

    def compress(self, data: bytes) -> bytes:
        """A frame."""
        own = vars(self)
        if "compress" not in own:
            given, parameters = self._dictionary, self._parameters
            # By level without parameters: then as fast as can be.
            compressor = (
                zstandard.ZstdCompressor(level=1, dict_data=given, write_content_size=True)
                if parameters is None
                else zstandard.ZstdCompressor(compression_params=parameters, dict_data=given)
            )
            own["compress"] = compressor.compress
        compressed: bytes = own["compress"](data)
        return compressed

    def decompress(self, frame: bytes) -> bytes:
        """What was compressed."""
        own = vars(self)
        if "decompress" not in own:
            own["decompress"] = zstandard.ZstdDecompressor(dict_data=self._dictionary).decompress
        plain: bytes = own["decompress"](frame)
        return plain


_WITHOUT: Final = Contexts(None)  # one for all: those of a thousand stores would take megabytes


class Dictionary:
    """What entries are compressed with. Immutable, for any thread.

    A zstd compressor or decompressor that two threads use at once crashes the process: each has its
    own, ``contexts``. What all threads share, the dictionary and its table, is only read.
    """

    def __init__(self, number: int, content: bytes, recipe: Recipe | None) -> None:
        self.number = number
        """The dictionary id of its frames; 0 for those without one."""
        self.content_size = len(content)
        dictionary, parameters = None, None
        self.memory = 0
        """The bytes that all threads share."""
        if recipe is not None:
            dictionary = zstandard.ZstdCompressionDict(content)
            parameters = _parameters(
                zstandard.STRATEGY_FAST, recipe.hash_log, _LEAST_MATCH, tries=1
            )
            dictionary.precompute_compress(compression_params=parameters)
            self.memory = recipe.memory
        self._dictionary = dictionary
        self.contexts = _WITHOUT if dictionary is None else Contexts(dictionary, parameters)

    def careful(self, way: Parameters) -> Compress:
        """Makes frames of it with care, for one thread.

        Its tables are as large as a dictionary: nobody keeps it for longer than it is used.
        """
        again: zstandard.ZstdCompressionDict | None = None
        if self._dictionary is not None:
            again = zstandard.ZstdCompressionDict(self._dictionary.as_bytes())
            again.precompute_compress(compression_params=way)
        compress: Compress = zstandard.ZstdCompressor(
            compression_params=way, dict_data=again
        ).compress
        return compress

    def reading(self) -> Contexts:
        """Contexts for what was compressed with it, when nothing is any more: without a table."""
        found = self._dictionary
        return Contexts(None if found is None else zstandard.ZstdCompressionDict(found.as_bytes()))


class Better(NamedTuple):
    """What makes entries smaller than they are."""

    dictionary: Dictionary
    """It may be that of now."""
    way: Parameters
    per_object: float
    """The bytes of an object that is packed so."""


def without() -> Dictionary:
    """None is trained yet."""
    return Dictionary(0, b"", None)


def average(several: Iterable[bytes]) -> float:
    """The bytes of each; 0 if there are none."""
    sizes = [*map(len, several)]
    return sum(sizes) / len(sizes) if sizes else 0.0


def in_a_hurry(found: Dictionary, objects: Plain) -> float:
    """The bytes of an object as it comes."""
    return average(map(found.contexts.compress, objects))


def pays(per_object: float, plain: float) -> bool:
    """Whether it is worth it to compress objects of that plain size."""
    return per_object < _PAYS * plain


def sample_size(count: int, plain: float, held: float) -> int:
    """How many of ``count`` objects, of so many bytes plain and held, are a sample of them."""
    largest = _fitting(held * count)[-1].size
    wanted = _SAMPLE_TIMES * largest / max(1.0, min(plain, SAMPLE_PART))
    return min(count, TRIED + min(4000, max(500, int(wanted))))


def tried_step(size: int) -> int:
    """Each so many-th of a sample is kept to try; 1 if all are."""
    return 1 + (size - 1) // TRIED if size > TRIED else 1


def divided(sample: Plain) -> tuple[Plain, Plain]:
    """What is to be trained with, and what it is tried on."""
    step = tried_step(len(sample))
    if step < 2:
        return sample, sample
    return [each for at, each in enumerate(sample) if at % step], sample[::step]


def first(sample: Plain, number: int) -> Dictionary | None:
    """A small dictionary, with which any objects are smaller than with none, if they can be."""
    content = trained(sample, RECIPES[0], number)
    return None if content is None else Dictionary(number, content, RECIPES[0])


def better(sample: Plain, count: int, held: float, now: Dictionary, number: int) -> Better | None:
    """How ``count`` objects like the sample, of ``held`` bytes each, are smaller; None if they are.

    Takes a tenth of a second, or three where objects are many and large.
    """
    rest, objects = divided(sample)
    most = _WORTH * ((held + _BESIDE) * count + now.memory)
    least = held * count + now.memory
    best: Better | None = None
    for each in _candidates(rest, _fitting(held * count), now, number):
        for way in WAYS:
            per_object, took = _tried(each.careful(way), objects)
            total = (per_object + took * BYTES_PER_MICROSECOND) * count + each.memory
            if total < least and (per_object + _BESIDE) * count + each.memory < most:
                best, least = Better(each, way, per_object), total
    return best


def _tried(compress: Compress, objects: Plain) -> tuple[float, float]:
    """The bytes of an object, and its microseconds."""
    begun = thread_time_ns()
    per_object = average(map(compress, objects))
    return per_object, (thread_time_ns() - begun) / 1000 / len(objects)


def _fitting(held: float) -> Recipes:
    """What may be worth it where so many bytes are held, the smallest first."""
    fits = [each for each in RECIPES if each.memory * _MOST_OF_HELD <= held]
    return tuple(fits) or RECIPES[:1]


def _candidates(
    rest: Plain, fitting: Recipes, now: Dictionary, number: int
) -> Iterable[Dictionary]:
    """The dictionary of now, and the largest that may be worth it."""
    if now.number:
        yield now
    for recipe in fitting[-_SIZES:]:
        content = trained(rest, recipe, number)
        if content is not None:
            yield Dictionary(number, content, recipe)


def trained(objects: Sequence[bytes], recipe: Recipe, number: int) -> bytes | None:
    """A dictionary's bytes, or None if these samples have nothing in common."""
    parts: Samples = [data[:SAMPLE_PART] for data in objects]
    most = max(_LEAST_SAMPLE, _SAMPLE_TIMES * recipe.size)
    size = sum(map(len, parts))
    if size > most:
        parts = Random(size).sample(parts, len(parts) * most // size)  # noqa: S311 - no secret
    try:
        return zstandard.train_dictionary(
            recipe.size,
            parts,
            dict_id=number,
            k=recipe.segment,
            d=_DMER,
            f=_LOG,
            accel=_ACCELERATION,
        ).as_bytes()
    except zstandard.ZstdError:
        return None


def spread(entries: Iterable[bytes], count: int, wanted: int) -> Plain:
    """About so many of ``count`` entries, in their order, from the first to the last.

    The steps are uneven: each namespace may have the same few objects, in the same order.
    """
    rest, most = iter(entries), max(1, 2 * count // max(1, wanted) - 1)
    steps = Random(count)  # noqa: S311 - no secret
    found: Plain = []
    while (entry := next(islice(rest, steps.randrange(most), None), None)) is not None:
        found.append(entry)
    return found
