"""Parsed expressions are kept, and shared between threads."""

from __future__ import annotations

import threading

from dyninformer.jsonpath import JSONPath
from dyninformer.jsonpath.cache import ExpressionCache


def test_an_expression_is_parsed_once() -> None:
    """The same text gives the same parsed expression, and another reading another one."""
    assert JSONPath(".cached.once").parsed is JSONPath(".cached.once").parsed
    strict = JSONPath(".cached.once", allow_missing_keys=False)
    assert strict.parsed is not JSONPath(".cached.once").parsed


def test_the_oldest_expressions_are_forgotten() -> None:
    """The cache does not grow with the number of expressions ever seen."""
    cache = ExpressionCache()
    parsed: list[str] = []

    def parse(text: str, flag: bool) -> str:
        parsed.append(text)
        return f"{text} {flag}"

    for number in range(5000):
        cache.get(parse, str(number))
    assert cache.get(parse, "4999") == "4999 True"
    assert parsed.count("4999") == 1
    assert cache.get(parse, "0") == "0 True"
    assert parsed.count("0") == 2


def test_threads_that_meet_in_the_cache_all_get_answers() -> None:
    """Many threads over more expressions than fit get each its own, right answer."""
    wrong: list[str] = []
    start = threading.Barrier(8)

    def work(seed: int) -> None:
        start.wait()
        for number in range(400):
            key = f"k{(number * 7 + seed) % 50}"
            dialect = "$" if number % 5 == 0 else ""
            if JSONPath(f"{dialect}.a.{key}").values(b'{"a": {"%s": 1}}' % key.encode()) != [1]:
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
