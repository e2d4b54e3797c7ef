"""Public names that are imported on first use."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def look_up(package: str, name: str, homes: Mapping[str, str]) -> Any:
    """What ``name`` means in ``package``; ``homes`` has the module of each public name.

    For a package's ``__getattr__``: raises AttributeError for a name that is none of its.
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(f"{package}.{homes[name]}"), name)
