"""The text of an expression: what stands outside of its brackets, and where it is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from dyninformer.errors import JSONPathError

_WIDTH = 96
_LONGEST = 200


def explain(source: str, problem: str, column: int, fix: str | None = None) -> JSONPathError:
    """The error for a problem at a column, counted from 1, of what the user wrote.

    >>> print(explain(".spec.x[", "the bracket opened here is not closed", 8, ".spec.x[*]"))
    the bracket opened here is not closed, at column 8
      .spec.x[
             ^
    did you mean .spec.x[*]?
    """
    if len(problem) > _LONGEST:
        problem = f"{problem[: _LONGEST - 3]}..."
    lines = [f"{problem}, at column {column}", *_caret(source, column)]
    if fix is not None:
        lines.append(f"did you mean {fix}?")
    return JSONPathError("\n".join(lines), column=column)


def _caret(source: str, column: int) -> list[str]:
    """The part of the source around the column, on one line, and the caret below it."""
    start = max(0, column - 1 - _WIDTH // 2)
    shown = source[start : start + _WIDTH]
    before = "..." if start else ""
    after = "..." if start + _WIDTH < len(source) else ""
    # A character that moves the cursor would put the caret in the wrong place.
    visible = "".join(char if char.isprintable() else " " for char in shown)
    return [f"  {before}{visible}{after}", "  " + " " * (len(before) + column - 1 - start) + "^"]


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
