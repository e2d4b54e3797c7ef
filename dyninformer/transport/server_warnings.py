"""The warnings that an API server sends beside its answers, such as that of an unknown field.

kubectl prints them. Here they are logged, each text once, at WARNING, on a logger of their own.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from dyninformer.printable import printable

WARNINGS: Final = "dyninformer.server_warnings"

# The value of the header is `299 AGENT "TEXT"`, several with commas. kubectl reads no other code.
_WARNING: Final = re.compile(r'\b299 \S+ "((?:[^"\\]|\\.)+)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_LONGEST: Final = 4096
_REMEMBERED: Final = 1000

_logger: Final = logging.getLogger(WARNINGS)
_logged: Final[dict[str, object]] = {}
_unlogged: Final = ContextVar("unlogged", default=False)


@contextmanager
def unlogged_warnings() -> Iterator[None]:
    """Log no warnings of what this thread asks for: the user did not name the kinds."""
    before = _unlogged.set(True)
    try:
        yield
    finally:
        _unlogged.reset(before)


def log_warnings(request: str, headers: Mapping[str, str]) -> None:
    """Log each warning in the headers of an answer, unless this process has logged its text."""
    for name, value in headers.items():
        if name.lower() != "warning" or _unlogged.get():
            continue
        for found in _WARNING.finditer(value):
            text = printable(" ".join(_ESCAPED.sub(r"\1", found[1]).split()))[:_LONGEST]
            if len(_logged) >= _REMEMBERED:
                _logged.clear()
            mine = object()
            if _logged.setdefault(text, mine) is mine:  # one step: no other thread logs it, too
                _logger.warning(
                    "%s: the API server warns: %s", request, text, extra={"warning": text}
                )
