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

    >>> counted(1, "object"), counted(2000, "object"), counted(2, "index"), counted(3, "try")
    ('1 object', '2,000 objects', '2 indexes', '3 tries')
    """
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("ry"):
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith('x') else 's'}"


def _spelled(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
