"""Text of other programs, for messages: on one line, and nothing in it acts on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text with what is not printable spelled out.

    >>> printable("red \x1b[31m\n")
    'red \\x1b[31m\\x0a'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _spelled(ord(each)) for each in text)


def _spelled(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
