"""YAML as the API server writes it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from dyninformer.testing.api.yaml_text import write_yaml


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [{"x": "y z"}]}, "a:\n- x: y z\nb: 1\n"),
        ({"t": "2026-01-01T00:00:00Z"}, 't: "2026-01-01T00:00:00Z"\n'),
        ({"t": "true", "u": "1", "v": "", "w": "null"}, 't: "true"\nu: "1"\nv: ""\nw: "null"\n'),
        ({"y": "n"}, '"y": "n"\n'),
        ({"q": "a: b"}, "q: 'a: b'\n"),
        ({"m": "a\nb"}, "m: |-\n  a\n  b\n"),
        ({"e": {}, "l": []}, "e: {}\nl: []\n"),
        ({"u": "é"}, "u: é\n"),
    ],
)
def test_text_is_quoted_as_go_quotes_it(value: Any, text: str) -> None:
    """What would be read as another type is in double quotes, what must be in single ones."""
    assert write_yaml(value).decode() == text


@pytest.mark.parametrize(
    "text", ["", "~", "0x1f", "1e3", ".inf", "=", "on", "- a", "#", "a\n\n", "\t"]
)
def test_what_is_written_reads_back(text: str) -> None:
    """Any string comes back as that string."""
    assert yaml.safe_load(write_yaml({"k": text})) == {"k": text}


def test_other_readers_of_yaml_are_left_as_they_are() -> None:
    """The dialect is this server's own: PyYAML reads for everybody else as ever."""
    assert yaml.safe_load("n") == "n"
