"""Two states are the same if their JSON says the same (S12)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.store.decide import same_content

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=2),
    lambda inner: (
        st.dictionaries(st.text(max_size=1), inner, max_size=3) | st.lists(inner, max_size=3)
    ),
    max_leaves=10,
)


@given(VALUES, VALUES)
def test_content_is_the_same_where_its_canonical_text_is(left: Any, right: Any) -> None:
    """In whatever order the keys come, and with whatever white space."""
    canonical = json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
    one, other = json.dumps({"v": left}).encode(), json.dumps({"v": right}, indent=1).encode()
    assert same_content(one, other) == canonical


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (b'{"a":1}', b'{"a":1.0}', True),
        (b'{"a":1}', b'{"a":true}', False),
        (b'{"a":[0]}', b'{"a":[false]}', False),
        (b'{"a":1e999}', b'{"a": 1e999}', True),
        (b'{"a":null}', b"{}", False),
    ],
)
def test_values_of_different_types_differ(left: bytes, right: bytes, same: bool) -> None:
    """Numbers are compared by value."""
    assert same_content(left, right) is same
