"""Each numbered rule of docs/semantics.md is held by tests that are named for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
RULES = (TESTS.parent / "docs" / "semantics.md").read_text(encoding="utf-8")
NUMBERS = [int(number) for number in re.findall(r"^- S(\d+) ", RULES, re.MULTILINE)]

WITHOUT_A_RULE = {"test_aio.py", "test_relay.py", "test_work.py", "test_writes.py"}
"""What stands on top of an informer, or beside it as the relay does, and has no numbers."""


def collect_tests() -> dict[int, list[str]]:
    """The conformance tests that are named for a rule, by its number."""
    found: dict[int, list[str]] = {}
    for path in sorted((TESTS / "conformance" / "informer").glob("test_*.py")):
        if path.name in WITHOUT_A_RULE:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                match = re.match(r"test_s(\d\d)_", node.name)
                assert match, f"{path.name}: {node.name} is named for no rule"
                found.setdefault(int(match[1]), []).append(f"{path.name}::{node.name}")
    return found


def _of_scale() -> Iterator[tuple[int, str]]:
    """Rules of several machines are held in tests/scale, by the tests there that have a number."""
    for path in sorted((TESTS / "scale").glob("test_*.py")):
        for name in re.findall(r"^def (test_s\d\d_\w+)", path.read_text("utf-8"), re.MULTILINE):
            yield int(name[6:8]), f"{path.name}::{name}"


BY_NUMBER = collect_tests()
for _number, _name in _of_scale():
    BY_NUMBER.setdefault(_number, []).append(_name)


def test_rules_are_numbered_without_a_gap() -> None:
    """S1, S2, and so on, each once."""
    assert max(NUMBERS) == len(NUMBERS) == len(set(NUMBERS))


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"S{number}")
def test_a_rule_is_held_by_a_test_of_its_number(number: int) -> None:
    """On the embedded server, and on a real one where it can be shown there."""
    assert BY_NUMBER.get(number), f"no test_s{number:02}_... in tests/conformance/informer"


def test_no_test_is_named_for_a_rule_that_does_not_exist() -> None:
    """A rule that is taken away takes its tests along, or they are renamed."""
    assert set(BY_NUMBER) <= set(NUMBERS)
