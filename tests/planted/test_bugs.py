"""The planted bugs are bugs of the code as it is now."""

from __future__ import annotations

from ast import PyCF_ONLY_AST
from pathlib import Path

import pytest

import dyninformer
from tests.planted.bugs import BUGS, Bug

_PACKAGE = Path(dyninformer.__file__).parent
_TESTS = Path(__file__).parents[1]


def _name(bug: Bug) -> str:
    return bug.name


@pytest.mark.parametrize("bug", BUGS, ids=_name)
def test_a_bug_can_be_planted(bug: Bug) -> None:
    """What it replaces is there once, and what stands there then is Python."""
    text = (_PACKAGE / bug.file).read_text(encoding="utf-8")
    assert text.count(bug.old) == 1
    assert bug.new != bug.old
    compile(text.replace(bug.old, bug.new), bug.file, "exec", PyCF_ONLY_AST)


@pytest.mark.parametrize("bug", BUGS, ids=_name)
def test_who_should_object_is_there(bug: Bug) -> None:
    """A test that was renamed would object to nothing."""
    assert bug.tests
    for each in bug.tests:
        assert (_TESTS / each.partition("::")[0]).exists()


def test_there_are_enough_bugs_of_each_room() -> None:
    """Sixty in all at least; and their names tell them apart. Some are found by the simulation."""
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 60
    assert sum(bug.name.endswith("(simulated)") for bug in BUGS) >= 10
    rooms = {bug.file.partition("/")[0].removesuffix(".py") for bug in BUGS}
    assert rooms >= {"watching", "store", "delivery", "follow", "discovery", "selectors"}
