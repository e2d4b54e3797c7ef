"""What a caller gives, looked at where it comes in.

What is of the wrong type is a TypeError in words: what it is called, what was given, and what to
give. Without this it would surface later and elsewhere, as an error of the code that uses it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_SHOWN = 80  # characters of a value in a message


def wrong(name: str, value: object, give: str) -> TypeError:
    """The error: what is called so is no such thing.

    >>> print(wrong("resync", "10", "seconds"))
    resync is '10': give seconds
    """
    shown = repr(value)
    if len(shown) > _SHOWN:
        shown = f"a {type(value).__name__}"
    return TypeError(f"{name} is {shown}: give {give}")


def checked(name: str, value: object, kind: type[T], give: str) -> T:
    """A value of that type."""
    if not isinstance(value, kind):
        raise wrong(name, value, give)
    return value


def checked_or_none(name: str, value: object, kind: type[T], give: str) -> T | None:
    """A value of that type, or None."""
    return None if value is None else checked(name, value, kind, give)


def checked_text(name: str, value: object, give: str = "text") -> str:
    """A text, whatever it says."""
    return checked(name, value, str, give)


def checked_name(name: str, value: object, give: str = "a name") -> str:
    """A text that is not empty."""
    text = checked(name, value, str, give)
    if not text:
        raise ValueError(f"{name} is empty: give {give}")
    return text


def checked_flag(name: str, value: object) -> bool:
    """True or False: any other value has a truth as well, which need not be what it says."""
    return checked(name, value, bool, "True or False")


def checked_number(name: str, value: object, give: str) -> float:
    """A number; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(name, value, give)
    return value


def checked_count(name: str, value: object, give: str = "a whole number") -> int:
    """A whole number; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(name, value, give)
    return value


def checked_path(name: str, value: object, give: str = "the path of a file") -> str:
    """The path of a file, as text that is not empty: that would be the folder one is in."""
    if not isinstance(value, str | os.PathLike):
        raise wrong(name, value, give)
    return checked_name(name, str(os.fspath(value)), give)


def checked_object(name: str, value: object, give: str) -> Mapping[str, Any]:
    """A mapping, whatever its keys are."""
    if not isinstance(value, Mapping):
        raise wrong(name, value, give)
    return value


def checked_mapping(name: str, value: object, give: str) -> Mapping[str, Any]:
    """A mapping from texts."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(name, value, give)
    return value


def checked_texts(name: str, value: object, give: str) -> tuple[str, ...]:
    """Several texts, or one."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise wrong(name, value, give)
    texts = tuple(value)
    for each in texts:
        if not isinstance(each, str):
            raise wrong(f"an element of {name}", each, "text")
    return texts


def check_function(name: str, value: object, give: str = "a function") -> None:
    """A function that is called and whose result counts: no coroutine function."""
    if not callable(value):
        raise wrong(name, value, give)
    if is_asynchronous(value):
        raise TypeError(f"{name} is a coroutine function, which nobody awaits here: give {give}")


def check_fields(made: Any) -> None:
    """What the fields of a dataclass were given, by their annotations: for its __post_init__."""
    kind: Any = type(made)
    for name, kinds, values, give in _fields_of(kind):
        value = getattr(made, name)
        if isinstance(value, bool) and bool not in kinds:
            raise wrong(name, value, give)
        if not isinstance(value, kinds) and value not in values:
            raise wrong(name, value, give)


@cache
def _fields_of(kind: Any) -> tuple[tuple[str, tuple[type, ...], tuple[object, ...], str], ...]:
    """Of each field its name, the types and the values that it may have, and words for them."""
    hints = get_type_hints(kind)
    found = []
    for each in fields(kind):
        kinds: list[type] = []
        values: list[object] = []
        words = []
        hint = hints[each.name]
        for option in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
            if get_origin(option) is Literal:
                values += get_args(option)
                words += [repr(value) for value in get_args(option)]
                continue
            plain = get_origin(option) or option
            kinds += [int, float] if plain is float else [plain]
            words.append(_word(plain))
        found.append((each.name, tuple(kinds), tuple(values), " or ".join(words)))
    return tuple(found)


def _word(kind: type) -> str:
    if issubclass(kind, Enum):
        return " or ".join(str(each) for each in kind)
    return _WORDS.get(kind, f"a {kind.__name__}")


_WORDS: Mapping[Any, str] = {
    NoneType: "None",
    bool: "True or False",
    bytes: "bytes",
    Callable: "a function",
    float: "a number",
    int: "a whole number",
    Mapping: "a mapping",
    object: "anything",
    str: "text",
}


def is_asynchronous(function: object) -> bool:
    """It returns a coroutine, or an asynchronous generator."""
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)
        for each in (function, type(function).__call__)
    )


def check_takes(name: str, function: Any, *parameters: str) -> None:
    """It can be called with so many arguments; what does not say how it is called, may."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # it is of C
        return
    try:
        signature.bind(*parameters)
    except TypeError:
        wanted = ", ".join(parameters)
        raise TypeError(f"{name} is called as {name}({wanted}), and takes {signature}") from None
