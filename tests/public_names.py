"""What a user of the package meets: its public names, and the types that these take and return."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import typing
from collections import ChainMap
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

from tests.documents import ROOT

PACKAGES = (
    "dyninformer",
    "dyninformer.aio",
    "dyninformer.jsonpath",
    "dyninformer.metrics",
    "dyninformer.testing",
    "dyninformer.testing.faults",
)
REFERENCE = ROOT / "docs" / "reference.md"
NOT_FOR_IMPORT = "Not for import"

_DIRECTIVE = re.compile(
    r"^\.\. auto(?:class|exception|function|data):: ([\w.]+)(\(\))?$", re.MULTILINE
)


def public_names() -> Iterator[str]:
    """Every name of every public package, as a user imports it: ``dyninformer.Event``."""
    for package in PACKAGES:
        for name in import_module(package).__all__:
            if not name.startswith("__"):
                yield f"{package}.{name}"


def named(dotted: str) -> Any:
    """What a dotted name stands for."""
    package, _, name = dotted.rpartition(".")
    return getattr(import_module(package), name)


@cache
def on_the_reference_page() -> dict[str, bool]:
    """The names that the page documents, and whether users call them: ``Event()`` they do not."""
    return {found[1]: not found[2] for found in _DIRECTIVE.finditer(REFERENCE.read_text("utf-8"))}


def reached_types() -> dict[type, set[str]]:
    """Each class of this package that a public name's annotations have, and where."""
    reached: dict[type, set[str]] = {}
    made_by_users = {id(named(name)) for name, called in on_the_reference_page().items() if called}
    for name in public_names():
        thing = named(name)
        for where, annotated in _annotated(thing, name, id(thing) in made_by_users):
            for found in _classes(_hints(annotated)):
                if found.__module__.partition(".")[0] == "dyninformer":
                    reached.setdefault(found, set()).add(where)
    return reached


def _annotated(thing: Any, name: str, made_by_users: bool) -> Iterator[tuple[str, Any]]:
    """A function; or a class, its fields, its public methods and properties."""
    if inspect.isfunction(thing):
        yield name, thing
    if not inspect.isclass(thing):
        return
    for each in thing.__mro__:
        if each.__module__.partition(".")[0] != "dyninformer":
            continue
        yield name, each
        for attribute, value in vars(each).items():
            used = made_by_users if attribute == "__init__" else not attribute.startswith("_")
            if used and (function := _function(value)):
                yield f"{name}.{attribute}", function


def _function(value: Any) -> Any:
    if isinstance(value, property):
        return value.fget
    if isinstance(value, cached_property):
        return value.func
    if isinstance(value, classmethod | staticmethod):
        return value.__func__
    return value if inspect.isfunction(value) else None


def _hints(annotated: Any) -> list[Any]:
    """The annotations, with names that only type checkers import."""
    module = sys.modules[annotated.__module__]
    if inspect.isclass(annotated):
        own = {k: v for k, v in vars(annotated).get("__annotations__", {}).items() if k[0] != "_"}
        holder = type("Holder", (), {"__annotations__": own, "__module__": annotated.__module__})
    else:
        holder = annotated
    # An alias that quotes a name is read in the module that uses it, which may not have the name.
    names = ChainMap(_type_checking_names(module), vars(module), _everywhere())
    return list(typing.get_type_hints(holder, None, names).values())


@cache
def _everywhere() -> dict[str, Any]:
    modules = [module for name, module in sys.modules.items() if name.startswith("dyninformer.")]
    return {name: value for module in modules for name, value in vars(module).items()}


@cache
def _type_checking_names(module: ModuleType) -> dict[str, Any]:
    tree = ast.parse(inspect.getsource(module))
    blocks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    found: dict[str, Any] = {}
    for block in blocks:
        exec(ast.unparse(ast.Module(block.body, [])), found)
    return found


def _classes(hint: Any) -> Iterator[type]:
    """The classes that an annotation is made of."""
    if isinstance(hint, list | tuple):
        for each in hint:
            yield from _classes(each)
    elif inspect.isclass(hint) and typing.get_origin(hint) is None:
        yield hint
    else:
        yield from _classes(typing.get_origin(hint) or ())
        yield from _classes(typing.get_args(hint))
