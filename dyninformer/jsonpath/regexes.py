"""Regular expressions of ``=~`` and ``sub()`` that cannot run for minutes on hostile text.

Python's engine backtracks, so a pattern is measured before it is used: what can repeat inside
a repeat is refused, and everything else has a cost that grows with a known power of the text's
length. One evaluation may spend a fixed sum of that.
"""

from __future__ import annotations

import re
import threading

from dyninformer.errors import JSONPathError

MAX_LENGTH = 512
MAX_REPEATS = 3
PATIENCE = 100_000_000
"""Steps of the engine that one evaluation may take at worst, about two seconds' worth."""

_MAX_CHOICES = 1000
_TOKEN = re.compile(
    r"""(?P<escape>\\.)
    |   (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])
    |   (?P<open>\((?:\?:|\?P<\w+>|(?!\?)))
    |   (?P<flags>\(\?[aimsu]+\))
    |   (?P<close>\))
    |   (?P<branch>\|)
    |   (?P<repeat>(?:[*+?]|\{\d*,?\d*\})[?+]?)
    |   (?P<plain>[^\\()|*+?])
    """,
    re.VERBOSE | re.DOTALL,
)


class _Remaining(threading.local):
    """What the evaluation that runs on this thread may still spend."""

    steps = PATIENCE


_remaining = _Remaining()


def start_evaluation() -> None:
    """Give the evaluation that begins on this thread its full allowance."""
    _remaining.steps = PATIENCE


def spend(steps: int) -> bool:
    """Take from what this thread's evaluation may do; whether it had so much."""
    _remaining.steps -= steps
    return _remaining.steps >= 0


class BoundedRegex:
    """A pattern that was measured; used as ``re.Pattern`` is, where jsonpath-ng uses one.

    >>> BoundedRegex("^(bolt|nut)$").search("nut")
    True
    >>> BoundedRegex("(a+)+$")
    Traceback (most recent call last):
    dyninformer.errors.JSONPathError: the pattern '(a+)+$' repeats what itself can repeat...
    """

    __slots__ = ("_choices", "_pattern", "_power")

    def __init__(self, pattern: object) -> None:
        if not isinstance(pattern, str):
            raise JSONPathError(f"a pattern is a text in quotes, not {pattern!r}")
        if len(pattern) > MAX_LENGTH:
            raise JSONPathError(f"a pattern may have {MAX_LENGTH} characters, not {len(pattern)}")
        try:
            self._pattern = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as bad:
            raise JSONPathError(f"the pattern {pattern!r} is malformed: {bad}") from None
        self._choices, self._power = _measure(pattern)

    def search(self, text: str) -> bool:
        """Whether the pattern matches somewhere in the text."""
        self._spend(text)
        return self._pattern.search(text) is not None

    def sub(self, replacement: str, text: str) -> str:
        """The text with every match replaced."""
        self._spend(text)
        return self._pattern.sub(replacement, text)

    def _spend(self, text: str) -> None:
        if not spend(self._choices * (len(text) + 1) ** self._power):
            raise JSONPathError(
                f"gave up on the pattern {self._pattern.pattern!r}: on texts this long it could "
                "take minutes; anchor it with ^, or use fewer repeats"
            )


class _Group:
    """What was measured of one group so far."""

    __slots__ = ("choices", "repeats", "varies")

    def __init__(self) -> None:
        self.choices = 1
        self.repeats = 0
        self.varies = False


def _measure(pattern: str) -> tuple[int, int]:
    """The ways to match that do not depend on the text, and the power of its length."""
    groups = [_Group()]
    last = _Group()
    at = 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None or _is_reference(match):
            raise JSONPathError(
                f"the pattern {pattern!r} uses a reference, a lookaround or another extension, "
                "which filters do not allow"
            )
        at = match.end()
        found = match.lastgroup
        if found == "open":
            groups.append(_Group())
        elif found == "close":
            last = groups.pop()
            _merge(groups[-1], last)
        elif found == "branch":
            groups[-1].choices += 1
            groups[-1].varies = True
        elif found == "repeat":
            _repeat(groups[-1], last, match[0], pattern)
        elif found != "flags":
            last = _Group()
    whole = groups[0]
    if whole.repeats > MAX_REPEATS or whole.choices > _MAX_CHOICES:
        raise JSONPathError(
            f"the pattern {pattern!r} has too many repeats or choices; "
            f"{MAX_REPEATS} unlimited repeats are allowed"
        )
    anchored = pattern.startswith(("^", "\\A")) and "|" not in pattern
    return whole.choices, whole.repeats + (not anchored)


def _is_reference(match: re.Match[str]) -> bool:
    return bool(match["escape"]) and match["escape"][1] in "123456789"


def _merge(outer: _Group, inner: _Group) -> None:
    outer.choices = min(outer.choices * inner.choices, _MAX_CHOICES + 1)
    outer.repeats += inner.repeats
    outer.varies |= inner.varies


def _repeat(group: _Group, last: _Group, token: str, pattern: str) -> None:
    bounds = token.rstrip("?+") if token[0] == "{" else token[0]
    if bounds in {"*", "+"}:
        low, high = int(bounds == "+"), None
    elif bounds == "?":
        low, high = 0, 1
    elif re.fullmatch(r"\{\d+\}|\{\d*,\d*\}", bounds):
        first, _, second = bounds[1:-1].partition(",")
        low = int(first or 0)
        high = low if "," not in bounds else int(second) if second else None
    else:
        return  # "{" that stands for itself
    if (high is None or high > 1) and last.varies:
        raise JSONPathError(
            f"the pattern {pattern!r} repeats what itself can repeat or vary, "
            "which can take for ever; write it without the outer repeat"
        )
    if high is None:
        group.repeats += 1
    else:
        group.choices = min(group.choices * (high - low + 1), _MAX_CHOICES + 1)
    group.varies |= high != low
