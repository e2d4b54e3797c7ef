"""Ages in cells, and text that would move a terminal's cursor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.cells import age, cell, check_column, custom_column

NOW = datetime(2026, 3, 2, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (3000 * 86400, "8y"),
    ],
)
def test_an_age_is_told_in_kubectls_words(seconds: int, shown: str) -> None:
    """Two figures while they matter, then one, then years."""
    assert age(timedelta(seconds=seconds)) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-03-02T11:59:00Z", "60s"),
        ("2026-03-02T12:59:00+01:00", "60s"),
        ("2026-03-02T11:59:00.5Z", "59s"),
        ("", "<unknown>"),
        ("null", "<unknown>"),
        ("0001-01-01T00:00:00Z", "<unknown>"),
        ("0001-01-02T00:00:00Z", "292y"),
        ("2026-03-02", "<invalid>"),
        ("2026-02-30T00:00:00Z", "<invalid>"),
        ("2026-03-02T12:00:00", "<invalid>"),
        ("2030-01-01T00:00:00Z", "<invalid>"),
    ],
)
def test_a_date_is_told_as_an_age(text: str, shown: str) -> None:
    """A date column shows how long ago it was, and what is no date as invalid."""
    assert cell(".at", "date", {"at": text}, now=NOW) == shown


@pytest.mark.parametrize(
    ("type", "value", "shown"),
    [
        ("integer", 1e300, -(2**63)),
        ("integer", 2**63, -(2**63)),
        ("integer", -2.9, -2),
        ("number", 3, 3.0),
        ("number", True, None),
        ("string", {"a": [1.0]}, '{"a":[1]}'),
    ],
)
def test_a_number_is_cut_to_its_column(type: str, value: object, shown: object) -> None:
    """A number that no int64 holds becomes the lowest one, as it does in the API server."""
    assert cell(".a", type, {"a": value}) == shown


def test_a_literal_is_no_number_of_a_cell() -> None:
    """A number written in the path itself has another type in Go, and leaves the cell empty."""
    assert cell("1", "integer", {}) is None
    assert cell("1", "string", {}) == "1"


def test_what_is_nested_too_deep_to_be_printed_is_an_empty_cell() -> None:
    """As what a path fails on."""
    deep: list[object] = []
    for _ in range(500):
        deep = [deep]
    assert cell(".spec", "string", {"spec": deep}) is None


def test_a_path_that_the_api_server_refuses_is_an_error() -> None:
    """A CRD's column is checked before it is used."""
    check_column(".spec.x")
    with pytest.raises(JSONPathError):
        check_column(".spec.x[")


def test_control_characters_of_a_custom_column_are_visible() -> None:
    """An object's text cannot change the colours of the terminal that shows it."""
    assert custom_column(".a", {"a": "\x1b[31mred\r"}) == "^[[31mred\\r"
