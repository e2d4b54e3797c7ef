"""What a read or watch selects of a collection: namespace, labels, fields, shard."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from dyninformer.selectors import FieldSelector, LabelSelector, go_quoted
from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.resources import Resource, value_at
from dyninformer.testing.cluster.schema import prepare_for_read
from dyninformer.testing.status import ApiError, bad_request
from dyninformer.types import Object

ANY_LABELS = LabelSelector()
ANY_FIELDS = FieldSelector()


@dataclass(frozen=True, slots=True)
class Selection:
    """Equal selections select the same objects of the same resource."""

    namespace: str = ""
    labels: LabelSelector = ANY_LABELS
    fields: FieldSelector = ANY_FIELDS
    shard: ShardSelector | None = None

    @property
    def everything(self) -> bool:
        """Whether only the namespace selects."""
        return not self.labels and not self.fields and self.shard is None

    def matches(self, version: Version, resource: Resource) -> bool:
        """Whether the object was selected in the state of this version."""
        if self.namespace and version.key.namespace != self.namespace:
            return False
        if self.labels and not self.labels.matches(version.object["metadata"].get("labels")):
            return False
        if self.shard is not None and not self.shard.matches(version):
            return False
        return not self.fields or self.fields.matches(partial(field_text, version, resource))


def check_field_labels(selector: FieldSelector, resource: Resource) -> None:
    """Raises the 400 that names the first field by which the resource cannot be selected."""
    named = {"metadata.name", *(path.lstrip(".") for path in resource.selectable_fields)}
    plain = resource.builtin and not resource.selectable_fields
    if resource.namespaced or plain:
        named.add("metadata.namespace")
    for requirement in selector.requirements:
        if requirement.field not in named:
            raise _unknown_field(requirement.field, resource, plain=plain)


def _unknown_field(field: str, resource: Resource, *, plain: bool) -> ApiError:
    if plain:
        known = 'only "metadata.name", "metadata.namespace"'
        return bad_request(f"{go_quoted(field)} is not a known field selector: {known}")
    if (resource.group, resource.plural) == ("batch", "jobs"):
        return bad_request(f'field label "{field}" not supported for Job')
    return bad_request(f"field label not supported: {field}")


def field_text(version: Version, resource: Resource, field: str) -> str:
    """A selectable field's value as text: "" where there is none."""
    if field == "metadata.name":
        return version.key.name
    if field == "metadata.namespace":
        return version.key.namespace
    special = _SPECIAL.get((resource.group, resource.plural, field))
    obj = prepare_for_read(resource, version.object) if resource.builtin else version.object
    if special is not None:
        return special(obj)
    value = value_at(obj, field)
    if value is None and resource.structural is not None:
        value = value_at(prepare_for_read(resource, obj), field)
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else ""


def _flag(path: str) -> Callable[[Object], str]:
    return lambda obj: _text(bool(value_at(obj, path)))


def _count(path: str) -> Callable[[Object], str]:
    return lambda obj: _text(value_at(obj, path) or 0)


def _source(event: Object) -> str:
    return _text(value_at(event, "source.component") or event.get("reportingComponent"))


_SPECIAL: dict[tuple[str, str, str], Callable[[Object], str]] = {
    ("", "pods", "spec.hostNetwork"): _flag("spec.hostNetwork"),
    ("", "nodes", "spec.unschedulable"): _flag("spec.unschedulable"),
    ("", "replicationcontrollers", "status.replicas"): _count("status.replicas"),
    ("", "events", "source"): _source,
    ("batch", "jobs", "status.successful"): _count("status.succeeded"),
}
"""Fields of built-ins whose text is not simply the value at the path of that name."""


_FIELDS = ("object.metadata.uid", "object.metadata.namespace")
_END = 1 << 64


@dataclass(frozen=True, slots=True)
class ShardRange:
    """Hashes from ``start`` up to, not including, ``end``."""

    field: str
    start: int
    end: int


_ShardRanges = tuple[ShardRange, ...]


@dataclass(frozen=True, slots=True)
class ShardSelector:
    """Ranges over one field; an object in any of them is selected."""

    text: str
    ranges: _ShardRanges

    def matches(self, version: Version) -> bool:
        """Whether the object's hash lies in the shard."""
        if self.ranges[0].field == _FIELDS[0]:
            hashed = fnv1a(version.object["metadata"].get("uid", ""))
        else:
            hashed = fnv1a(version.key.namespace)
        return any(each.start <= hashed < each.end for each in self.ranges)


@lru_cache(maxsize=1 << 16)
def fnv1a(value: str) -> int:
    """FNV-1a, 64 bits, over the value's UTF-8 bytes.

    >>> hex(fnv1a("ns1"))
    '0x20fc0b19253e64d5'
    """
    hashed = 0xCBF29CE484222325
    for byte in value.encode():
        hashed = ((hashed ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return hashed


def parse_shard_selector(text: str) -> ShardSelector:
    """Raises the server's 500 (it has no reason) for anything but ranges joined by ``||``."""
    ranges = tuple(_ranges(_Expression(text).whole()))
    for each in ranges:
        if each.field != ranges[0].field:
            named = f'"{ranges[0].field}" and "{each.field}"'
            raise _refused(f"all shard ranges must use the same field, got {named}")
    return ShardSelector(text, ranges)


def _refused(why: str) -> ApiError:
    return ApiError(500, None, f"invalid shard selector: {why}")


# The language is a corner of CEL. A node is a call, or something that is no call, which is
# refused by the number of its kind in CEL's syntax tree.


@dataclass(frozen=True, slots=True)
class _Node:
    kind: int
    text: str
    parts: tuple[_Node, ...] = ()


_CALL, _NAME, _LITERAL, _SELECT = 1, 3, 5, 7
_TOKEN = re.compile(
    r"""\s*(?:(\|\||&&|[(),])|('[^']*'|"[^"]*")|(0[xX][0-9a-fA-F]+|[0-9]+)|([A-Za-z_][\w.]*)|$)"""
)


class _Expression:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while not self._tokens or self._tokens[-1][0] != "end":
            match = _TOKEN.match(text, position)
            if match is None:
                raise _refused(f'syntax error at character {position + 1} of "{text}"')
            symbol, string, number, name = match.groups()
            kinds = ("symbol", symbol), ("string", string), ("int64", number), ("name", name)
            self._tokens.append(next(((kind, text) for kind, text in kinds if text), ("end", "")))
            position = match.end()
        self._next = 0

    def whole(self) -> _Node:
        node = self._joined("||")
        if self._tokens[self._next][0] != "end":
            raise _refused(f'syntax error at "{self._tokens[self._next][1]}"')
        return node

    def _joined(self, operator: str) -> _Node:
        node = self._joined("&&") if operator == "||" else self._simple()
        while self._tokens[self._next] == ("symbol", operator):
            self._next += 1
            other = self._joined("&&") if operator == "||" else self._simple()
            node = _Node(_CALL, f"_{operator}_", (node, other))
        return node

    def _simple(self) -> _Node:
        kind, text = self._tokens[self._next]
        if kind == "end" or (kind == "symbol" and text != "("):
            raise _refused(f'syntax error at "{text}"')
        self._next += 1
        if kind == "symbol":
            node = self._joined("||")
            self._expect(")")
            return node
        if text in ("true", "false", "null"):
            return _Node(_LITERAL, "bool" if text != "null" else "null_type")
        if kind in ("string", "int64"):
            return _Node(_LITERAL, text if kind == "string" else kind)
        if self._tokens[self._next] != ("symbol", "("):
            return _Node(_SELECT if "." in text else _NAME, text)
        self._next += 1
        return _Node(_CALL, text, tuple(self._arguments()))

    def _arguments(self) -> Iterator[_Node]:
        if self._tokens[self._next] != ("symbol", ")"):
            yield self._joined("||")
            while self._tokens[self._next] == ("symbol", ","):
                self._next += 1
                yield self._joined("||")
        self._expect(")")

    def _expect(self, symbol: str) -> None:
        if self._tokens[self._next] != ("symbol", symbol):
            raise _refused(f'syntax error at "{self._tokens[self._next][1]}"')
        self._next += 1


def _ranges(node: _Node) -> Iterator[ShardRange]:
    if node.kind != _CALL:
        raise _refused(
            f"unexpected expression kind {node.kind}; expected shardRange() call or || operator"
        )
    if node.text == "_||_":
        for part in node.parts:
            yield from _ranges(part)
        return
    if node.text != "shardRange":
        raise _refused(f'unsupported function "{node.text}"; only shardRange() and || are allowed')
    if len(node.parts) != 3:
        raise _refused(f"shardRange() requires exactly 3 arguments, got {len(node.parts)}")
    field, low, high = node.parts
    if field.text not in _FIELDS:
        raise _refused(f'unsupported field path "{field.text}"; supported: {", ".join(_FIELDS)}')
    start, end = _bound("hexStart", low), _bound("hexEnd", high)
    if start >= end:
        raise _refused(f"shard range start 0x{start:016x} must be less than end 0x{end:016x}")
    yield ShardRange(field.text, start, end)


def _bound(name: str, node: _Node) -> int:
    if node.kind != _LITERAL or node.text[0] not in "'\"":
        got = node.text if node.kind == _LITERAL else "an expression"
        raise _refused(f"{name} must be a string literal, got {got}")
    text = node.text[1:-1]
    if not text.startswith("0x"):
        raise _refused(f"{name} must have '0x' prefix, got \"{text}\"")
    digits = text[2:]
    if len(digits) == 17:
        if int(digits, 16) != _END:
            raise _refused(
                f"{name}: 17-digit hex value must be '0x10000000000000000' (2^64), got \"{text}\""
            )
        return _END
    if not re.fullmatch("[0-9a-fA-F]{16}", digits):
        meant = f' (did you mean "0x{digits:0>16}"?)' if len(digits) < 16 else ""
        raise _refused(f'{name} must be a 0x-prefixed 16-digit hex value, got "{text}"{meant}')
    return int(digits, 16)
