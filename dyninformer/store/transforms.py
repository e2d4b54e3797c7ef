"""What a transform makes of an object before it is stored; transforms that work on bytes."""

from __future__ import annotations

from math import inf, isinf
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from dyninformer.jsonpath import JSONPath
from dyninformer.jsonpath.compiling import KeyStep
from dyninformer.options import Drop, Transform
from dyninformer.store.codec import on_fresh_stack, read
from dyninformer.types import Object

Way: TypeAlias = tuple[str, ...]
"""The keys that lead to a field."""

_KEPT: tuple[Way, ...] = (("metadata",), ("metadata", "name"), ("metadata", "namespace"))

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_strict = msgspec.json.Decoder()


@runtime_checkable
class BytesTransform(Protocol):
    """A transform that does not need the object decoded, and leaves name and namespace alone."""

    def on_bytes(self, data: bytes) -> bytes:
        """The object to keep, as JSON."""


class Strip:
    """A transform that removes what some paths of keys lead to. Made by ``strip``.

    Two of the same paths are equal.
    Not for import.
    """

    def __init__(self, ways: tuple[Way, ...]) -> None:
        self._ways = ways
        self._last_names = tuple(f'"{way[-1]}"'.encode() for way in ways)

    def on_bytes(self, data: bytes) -> bytes:
        """The object's JSON without the paths; the very same bytes if it has none of them."""
        # A name is in the bytes as it is, unless some of its characters are escaped.
        if b"\\u" not in data and not any(name in data for name in self._last_names):
            return data
        return _without(data, self._ways)

    def __call__(self, obj: Object) -> Object:
        """The object, itself, without the paths."""
        for *way, last in self._ways:
            inner: Any = obj
            for name in way:
                inner = inner.get(name) if isinstance(inner, dict) else None
            if isinstance(inner, dict):
                inner.pop(last, None)
        return obj

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Strip) and self._ways == other._ways

    def __hash__(self) -> int:
        return hash(self._ways)

    def __repr__(self) -> str:
        return f"strip({', '.join(repr('.'.join(way)) for way in self._ways)})"


def strip(*paths: str) -> Strip:
    """A transform without these fields, which costs next to nothing: it works on bytes.

    A path is of keys alone, in either dialect. A path that an object does not have is no error.

    >>> strip("metadata.managedFields", "status").on_bytes(
    ...     b'{"metadata":{"name":"web","managedFields":[{}]},"status":{"ready":true}}')
    b'{"metadata":{"name":"web"}}'
    """
    if not paths:
        raise TypeError("strip needs at least one path, such as 'metadata.managedFields'")
    ways = []
    for path in paths:
        expression = JSONPath(path).parsed
        names = tuple(step.name for step in expression.steps if isinstance(step, KeyStep))
        if not names or len(names) < len(expression.steps) or expression.rest:
            raise ValueError(
                f"strip cannot remove {path!r}: give a path of keys alone, like "
                "'metadata.managedFields' or 'metadata.annotations.example\\.com/note'"
            )
        if names in _KEPT:
            raise ValueError(f"strip cannot remove {path!r}: an object needs its name")
        ways.append(names)
    return Strip(tuple(sorted(set(ways))))


def _without(data: bytes, ways: tuple[Way, ...]) -> bytes:
    """The JSON without the paths, or unchanged if it is not an object."""
    if not data.startswith(b"{"):
        return data
    fields = _fields.decode(data)
    inner: dict[str, list[Way]] = {}
    for first, *rest in ways:
        if not rest:
            fields.pop(first, None)
        elif first in fields:
            inner.setdefault(first, []).append(tuple(rest))
    for name, deeper in inner.items():
        if name in fields:
            fields[name] = msgspec.Raw(_without(bytes(fields[name]), tuple(deeper)))
    return msgspec.json.encode(fields)


def transformed(transform: Transform, data: bytes, namespace: str, name: str) -> bytes | None:
    """What the transform makes of an object, None for DROP (S17). Raises whatever it raises.

    The namespace and name are put back if it changed them.
    """
    if isinstance(transform, BytesTransform):
        try:
            return transform.on_bytes(data)
        except RecursionError:
            return on_fresh_stack(transform.on_bytes, data)
    try:
        obj, wild = _strict.decode(data), False
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        obj, wild = read(data), True
    result = transform(obj)
    if isinstance(result, Drop):
        return None
    if not isinstance(result, dict):
        raise TypeError(
            f"a transform returns the object to keep or dyninformer.DROP, not {_kind(result)}"
        )
    kept = _of_the_same_name(result, namespace, name)
    return msgspec.json.encode(_spelled(kept) if wild else kept)


def _kind(value: object) -> str:
    return "None (is a return missing?)" if value is None else f"a {type(value).__name__}"


def _of_the_same_name(obj: Object, namespace: str, name: str) -> Object:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    if metadata.get("name") == name and metadata.get("namespace", "") == namespace:
        return obj
    own = {"name": name, "namespace": namespace} if namespace else {"name": name}
    rest = {key: value for key, value in metadata.items() if key not in ("name", "namespace")}
    # What the transform returned may be an object that it goes on using.
    return {**obj, "metadata": {**own, **rest}}


def _spelled(value: Any) -> Any:
    """The value with each infinite number in a spelling that JSON has, and is read so again."""
    if isinstance(value, dict):
        return {key: _spelled(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_spelled(each) for each in value]
    if isinstance(value, float) and isinf(value):
        return msgspec.Raw(b"1e999" if value == inf else b"-1e999")
    return value
