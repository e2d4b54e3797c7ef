"""Public doors: what users call with arguments, and calls of it with something wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple

from dyninformer.writing import Writes
from tests.public_names import NOT_FOR_IMPORT, named, on_the_reference_page, public_names


class Door(NamedTuple):
    """A call of a public function or method, with something wrong, and what is said."""

    name: str
    call: Callable[[Any], object]
    said: str


SECONDS = "a timeout is '5': give seconds, or None for no limit"
TEXT = "give text"


def shown(door: Door) -> str:
    """The name of a door's test."""
    return f"{door.name}: {door.said[:40]}"


def doors(*packages: str) -> Iterator[str]:
    """``open_informer``, ``GenericLister``, ``GenericLister.get``, and so on.

    A method is named by the class that has it, be that public or the base of some that are.
    """
    called = on_the_reference_page()
    for dotted in public_names():
        package, _, name = dotted.rpartition(".")
        thing = named(dotted)
        if package not in packages:
            continue
        if inspect.isfunction(thing):
            yield name
        if not inspect.isclass(thing) or issubclass(thing, BaseException | Enum):
            continue
        if called.get(dotted, called.get(f"dyninformer.{name}")):
            yield name
        for kind in thing.__mro__:
            if kind.__module__.startswith("dyninformer."):
                # The writes are each informer's own: that base is nobody's to call.
                yield from _methods(kind, name if kind is Writes else kind.__name__)


def _methods(kind: type, name: str) -> Iterator[str]:
    for attribute, value in vars(kind).items():
        method = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if attribute.startswith("_") or not inspect.isfunction(method):
            continue
        parameters = len(inspect.signature(method).parameters)
        if parameters > 1 and NOT_FOR_IMPORT not in (method.__doc__ or ""):
            yield f"{name}.{attribute}"
