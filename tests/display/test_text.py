"""Cluster data made safe to show."""

from __future__ import annotations

import pytest

from dyninformer.display.text import padded, visible, visible_lines, width


@pytest.mark.parametrize(
    ("unsafe", "shown"),
    [
        ("\x1b[2J", "^[[2J"),
        ("a\x00b\x07", "a^@b^G"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\x7f\x9b31m", "\\x7f\\x9b31m"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_a_terminal_would_act_on_is_spelled_out(unsafe: str, shown: str) -> None:
    """Escapes, controls, and what reorders or hides text."""
    assert visible(unsafe) == shown


def test_lines_stay_lines() -> None:
    """Line breaks and tabs are all that a text of several lines keeps."""
    assert visible_lines("a\n\tb\x1b\r") == "a\n\tb^[\\r"


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("\uff21", 2)]
)
def test_width_is_what_a_terminal_takes(text: str, columns: int) -> None:
    """Wide characters take two columns, combining ones none."""
    assert width(text) == columns
    assert padded(text, 5) == text + " " * (5 - columns)
