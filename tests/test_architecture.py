"""docs/architecture.md names what is there."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "dyninformer"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
IMAGES = ROOT / "docs" / "images"

_PLACE = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+(?:\.py|/))`")
_LOCKS = ("Lock", "ReentrantLock", "RLock", "lock_across_forks")


@pytest.mark.parametrize("place", sorted(set(_PLACE.findall(PAGE))))
def test_a_module_that_the_page_names_exists(place: str) -> None:
    """A module that is renamed or merged is renamed there, too."""
    where = ROOT if place.split("/", maxsplit=1)[0] in ("tests", "docs") else PACKAGE
    assert (where / place).exists()


def test_every_room_is_on_the_page() -> None:
    """And every module at the top level."""
    top = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py"}
    rooms = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    assert top | rooms <= set(_PLACE.findall(PAGE))


def locks() -> Iterator[str]:
    """Each lock that the package keeps, as the page names it; the embedded server has its own."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if place.startswith("testing/"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
            owner = f"{scope.name}." if isinstance(scope, ast.ClassDef) else ""
            inner = ast.walk(scope) if owner else iter(tree.body)
            for node in inner:
                if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                    continue
                made = ast.unparse(node.value.func).rpartition(".")[2]
                target = ast.unparse(node.targets[0])
                name = target.removeprefix("self.")
                if made in _LOCKS and name.isidentifier() and bool(owner) == (name != target):
                    yield f"`{place}`: `{owner}{name}`"


def test_every_lock_is_in_the_table_of_locks() -> None:
    """And no lock that is gone."""
    rows = re.findall(r"^\| (`[^`]+\.py`: `[^`]+`) \|", PAGE, re.MULTILINE)
    assert sorted(set(locks())) == sorted(rows)


def test_the_picture_is_drawn_from_its_text() -> None:
    """And names modules that are there."""
    walk = runpy.run_path(str(IMAGES / "draw.py"))["Walk"]
    read = walk.read((IMAGES / "event.txt").read_text(encoding="utf-8"))
    assert read.svg() == (IMAGES / "event.svg").read_text(encoding="utf-8")
    places = [step.place for step in read.steps if step.place.endswith(".py")]
    assert len(places) > 5
    assert all((PACKAGE / place).exists() for place in places)
