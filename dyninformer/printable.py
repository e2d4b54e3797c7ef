"""Text for messages and reprs.

That of other programs is on one line, and nothing in it acts on a terminal; a number of things has
its noun.
"""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text with what is not printable spelled out.

    >>> printable("red \x1b[31m\n")
    'red \\x1b[31m\\x0a'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _spelled(ord(each)) for each in text)


def counted(number: int, noun: str) -> str:
    """The number with its noun.

    >>> counted(1, "object"), counted(2000, "object"), counted(2, "index")
    ('1 object', '2,000 objects', '2 indexes')
    """
    ending = "" if number == 1 else "es" if noun.endswith("x") else "s"
    return f"{number:,} {noun}{ending}"


def _spelled(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
