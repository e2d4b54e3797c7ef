"""What is declared for places, found step by step."""

from __future__ import annotations

import pytest

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.patterns import Patterns


def at(patterns: Patterns[int], *steps: str | None) -> int | None:
    """The value at a place; None is an element."""
    place: Patterns[int] | None = patterns
    for step in steps:
        if place is None:
            return None
        place = place.element() if step is None else place.field(step)
    return place.value if place is not None else None


def test_names_elements_and_any_key() -> None:
    """In any spelling of a path; a name goes before any key."""
    found = Patterns.of({".a[*].b": 1, "{.a}": 2, r"m.x\.y": 3, ".m.*": 4, ".m.*[*]": 5})
    assert at(found, "a") == 2
    assert at(found, "a", None, "b") == 1
    assert at(found, "a", None) is None
    assert at(found, "m", "x.y") == 3
    assert at(found, "m", "other") == 4
    assert at(found, "m", "other", None) == 5
    assert at(found, "b", None, "c") is None


@pytest.mark.parametrize("path", ['.a[?(@.b=="c")]', ".a}{.b", ".a..b", ".a["])
def test_what_is_no_pattern_is_refused(path: str) -> None:
    """It would fit nothing."""
    with pytest.raises(JSONPathError):
        Patterns.of({path: 1})
