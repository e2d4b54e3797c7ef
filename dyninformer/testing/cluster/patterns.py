"""Go's regular expressions on Python's ``re``.

Unlike the server's engine, ``re`` can backtrack for very long: patterns come from whoever
wrote the CRD, and are trusted as much. A pattern that ``re`` does not know is not checked.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache


def matches(pattern: str, value: str) -> bool:
    """Whether a Go pattern is found in a text."""
    compiled = compiled_pattern(pattern)
    return compiled is None or compiled.search(value) is not None


@lru_cache(maxsize=1024)
def compiled_pattern(pattern: str) -> re.Pattern[str] | None:
    """A Go pattern as Python's, None if it has what Python does not know."""
    translated = re.sub(r"\\z", r"\\Z", pattern)
    for name, members in _POSIX.items():
        translated = translated.replace(f"[:{name}:]", members)
    translated = re.sub(r"(?<!\\)((?:\\\\)*)\$(?=\)|\||$)", r"\1\\Z", translated)
    try:
        with warnings.catch_warnings():  # what may change in Python's patterns is no concern here
            warnings.simplefilter("ignore")
            return re.compile(translated, re.ASCII)
    except (re.error, RecursionError, OverflowError):
        return None


_POSIX = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z",
    "space": r"\s", "word": r"\w", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
