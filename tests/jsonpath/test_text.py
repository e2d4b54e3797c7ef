"""What stands outside of brackets."""

from __future__ import annotations

import pytest

from dyninformer.jsonpath.text import outside_brackets


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("a=b", "a=b"),
        ("", ""),
        (".a[?(@.b=='x')].c=1", ".a.c=1"),
        ("{.a}!={.b}", "!="),
        ("{.a['}=']}=1", "=1"),
        ('{.a["]"]},x', ",x"),
        ("it's=fine", "it's=fine"),
        ("a]=b", "a"),
        ("a[=b", "a"),
    ],
)
def test_only_what_no_bracket_holds_is_outside(text: str, outside: str) -> None:
    """Quotes hide brackets within brackets alone; what is not balanced hides the rest."""
    found = list(outside_brackets(text))
    assert "".join(character for _, character in found) == outside
    assert all(text[at] == character for at, character in found)
