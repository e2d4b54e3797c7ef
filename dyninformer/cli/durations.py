"""How long: in seconds, or as kubectl writes it."""

from __future__ import annotations

import math
import re
from typing import Final

_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ms|h|m|s)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """The seconds that ``90``, ``1.5``, ``30s``, ``1m30s`` or ``2h`` are; negative is negative.

    >>> seconds("1m30s"), seconds("250ms"), seconds("-1s"), seconds("90")
    (90.0, 0.25, -1.0, 90.0)
    """
    sign, digits = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
    try:
        plain = float(digits)
    except ValueError:
        if not digits or _PART.sub("", digits):
            raise ValueError(
                f"{text!r} is no duration: write seconds, or a form like 30s, 1m30s or 2h"
            ) from None
        return sign * sum(float(part[1]) * _SECONDS[part[2]] for part in _PART.finditer(digits))
    if not math.isfinite(plain):
        raise ValueError(f"{text!r} is no duration: it has no end; leave it out instead")
    return sign * plain
