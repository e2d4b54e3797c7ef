"""What ``import dyninformer`` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dyninformer
from dyninformer import testing


@pytest.mark.parametrize("package", [dyninformer, testing])
def test_every_public_name_is_there(package: object) -> None:
    """Each name of __all__ can be had, and dir() shows it."""
    for name in package.__all__:  # type: ignore[attr-defined]
        assert getattr(package, name) is not None
        assert name in dir(package)


@pytest.mark.parametrize("package", [dyninformer, testing])
def test_a_name_that_is_not_there_is_an_attribute_error(package: object) -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        package.nope  # type: ignore[attr-defined]  # noqa: B018


HEAVY = ("kubernetes", "rich", "pandas", "jsonpath_ng", "urllib3", "yaml", "zstandard")


def imported_by(statement: str) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded after a statement."""
    report = f"{statement}; import sys; print(*[m for m in {HEAVY} if m in sys.modules])"
    ran = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True, timeout=60
    )
    return set(ran.stdout.split())


def test_importing_the_package_is_light() -> None:
    """It loads nothing that only some use."""
    assert imported_by("import dyninformer") == set()


def test_the_public_names_import_no_client_and_no_display() -> None:
    """Every name can be had without the official client, rich, pandas or jsonpath-ng."""
    found = imported_by("from dyninformer import *")
    assert found & {"kubernetes", "rich", "pandas", "jsonpath_ng", "yaml"} == set()
