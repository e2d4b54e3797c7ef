"""The order of resourceVersions: numbers where they look like numbers, else only equal or not.

>>> older("9", "10"), older("10", "10"), older("10", "9")
(True, False, False)
>>> older("abc", "abd"), older("", "7")
(False, False)
"""

from __future__ import annotations

from collections.abc import Sequence

_DIGITS = 20  # as many as the largest unsigned 64-bit number has


def number(version: str) -> int | None:
    """The version as a number, None if it is opaque: not 1 to 20 ASCII digits."""
    if 0 < len(version) <= _DIGITS and version.isascii() and version.isdigit():
        return int(version)
    return None


def older(version: str, than: str) -> bool:
    """``version`` is certainly from before ``than``; never certain if one of them is opaque."""
    if len(version) == len(than) and version >= than:
        return False  # the usual case of an event that is newer: no number is made
    left, right = number(version), number(than)
    return left is not None and right is not None and left < right


def lowest(found: Sequence[str]) -> str:
    """The oldest of some versions, at least one.

    >>> lowest(["10", "9", "11"])
    '9'
    """
    first = found[0]
    for version in found[1:]:
        if older(version, first):
            first = version
    return first
