"""Names that are imported when they are first used."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from dyninformer.first_use import on_first_use


def test_a_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """From then on it is an attribute of the package, as if it had been imported there."""
    package, home = ModuleType("package_of_names"), ModuleType("package_of_names.home")
    home.__dict__["name"] = found = object()
    monkeypatch.setitem(sys.modules, "package_of_names", package)
    monkeypatch.setitem(sys.modules, "package_of_names.home", home)
    assert on_first_use("package_of_names", {"name": "home"})("name") is found
    assert package.__dict__["name"] is found


def test_a_name_that_is_nowhere_is_no_attribute() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match=r"module 'dyninformer' has no attribute 'nobody'"):
        on_first_use("dyninformer", {})("nobody")
