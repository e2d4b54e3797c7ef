"""Names of a package that are imported when they are first used.

So a program pays only for the parts that it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's ``__getattr__``: each name is in the module, below the package, that it says.

    >>> on_first_use("dyninformer", {"JSONPath": "jsonpath"})("JSONPath").__name__
    'JSONPath'
    """

    def found(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return found
