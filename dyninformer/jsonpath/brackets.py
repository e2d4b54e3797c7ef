"""What of a text stands outside of its brackets: there an operator or a comma is no path's own."""

from __future__ import annotations

from collections.abc import Iterator


def outside_brackets(text: str) -> Iterator[tuple[int, str]]:
    """Each character outside of all brackets, and its place; within them quotes hide brackets.

    >>> "".join(character for _, character in outside_brackets("{.a[?(@.b==']')].c}>=3"))
    '>=3'
    """
    depth, quote = 0, ""
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"" and depth:
            quote = character
        elif character in "[({":
            depth += 1
        elif character in "])}":
            depth -= 1
        elif not depth:
            yield at, character
