"""The order of resourceVersions (S30)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.store import versions

NUMBERS = st.integers(0, 10**20 - 1)


@given(NUMBERS, NUMBERS)
def test_numbers_are_compared_as_numbers(left: int, right: int) -> None:
    """Not as text."""
    assert versions.older(str(left), str(right)) is (left < right)


@given(NUMBERS, st.integers(0, 5))
def test_leading_zeros_change_nothing(value: int, zeros: int) -> None:
    """As long as it has at most 20 digits."""
    text = ("0" * zeros + str(value))[-20:]
    assert not versions.older(text, str(int(text)))
    assert not versions.older(str(int(text)), text)


@pytest.mark.parametrize("opaque", ["", "abc", "-1", "1.5", " 1", "1" * 21, "١٢", "²"])
def test_what_is_no_number_is_neither_older_nor_newer(opaque: str) -> None:
    """Equality is all that can be told."""
    assert versions.number(opaque) is None
    assert not versions.older(opaque, "5")
    assert not versions.older("5", opaque)
    assert not versions.older(opaque, opaque)
