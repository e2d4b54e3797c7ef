"""YAML as the server reads it: into what JSON can hold, bounded in depth and in size."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

import yaml

from dyninformer.testing.cluster.json_bodies import MAX_DEPTH, BodyError, decode_json
from dyninformer.testing.cluster.yaml_scalars import PLAIN, is_text, scalar
from dyninformer.types import Object

MAX_NODES: Final = 1_000_000
"""How many values a YAML body may come to, aliases written out."""

_ALIAS: Final = re.compile(r"\*([\w-]+)")
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def decode_yaml(raw: bytes) -> tuple[Any, tuple[str, ...]]:
    """The value as JSON has it, and a complaint for each key that is there twice.

    Of several documents the first counts.
    """
    if raw.lstrip()[:1] == b"{":
        try:
            return decode_json(raw)
        except BodyError:
            pass  # flow style that is not JSON
    text = raw.decode("utf-8", errors="replace")
    try:
        anchors = _read_events(text)
        loader = _Loader(text)
        try:
            node = loader.get_node() if loader.check_node() else None
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise BodyError(f"yaml: {_go_words(error, text)}") from None
    except (ValueError, RecursionError) as error:
        raise BodyError(f"yaml: {error}") from None
    if node is None:
        return None, ()
    reader = _Reader(anchors)
    return reader.value(node), tuple(reader.repeated)


def _read_events(text: str) -> dict[int, str]:
    """Where the first document has its anchors; BodyError if it nests too deeply."""
    depth = 0
    anchors: dict[int, str] = {}
    for event in yaml.parse(text, Loader=_SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise BodyError("yaml: exceeded max depth")
        if isinstance(event, yaml.DocumentEndEvent):
            break
        anchor = getattr(event, "anchor", None)
        if anchor is not None and event.start_mark is not None:
            anchors[event.start_mark.index] = anchor
    return anchors


class _Loader(_SafeLoader):  # type: ignore[misc]
    """Composes nodes; what a plain scalar stands for is not PyYAML's to say."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {None: [(PLAIN, re.compile(""))]}


class _Reader:
    """Writes nodes out as values, aliases too, and counts: few lines cannot become gigabytes."""

    def __init__(self, anchors: dict[int, str]) -> None:
        self._anchors = anchors
        self._left = MAX_NODES
        self._open: set[int] = set()
        self.repeated: list[str] = []

    def value(self, node: Any) -> Any:
        """What a node stands for."""
        self._left -= 1
        if self._left < 0 or len(self._open) > MAX_DEPTH:
            raise BodyError("yaml: document contains excessive aliasing")
        if isinstance(node, yaml.ScalarNode):
            return scalar(node.tag, node.value)
        if id(node) in self._open:
            name = self._anchors.get(node.start_mark.index, "")
            raise BodyError(f"yaml: anchor '{name}' value contains itself")
        self._open.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            found: Any = [self.value(below) for below in node.value]
        else:
            found = self._mapping(node)
        self._open.remove(id(node))
        return found

    def _mapping(self, node: Any) -> Object:
        found: Object = {}
        merged: Object = {}
        for key, below in node.value:
            if key.tag == PLAIN and key.value == "<<":
                merged = {**self._merged(below), **merged}
                continue
            name = self._key(key)
            if name in found:
                line = key.start_mark.line + 1
                quoted = f'"{name}"' if key.tag != PLAIN or is_text(key.value) else name
                self.repeated.append(f"line {line}: key {quoted} already set in map")
            found[name] = self.value(below)
        return {**merged, **found} if merged else found

    def _merged(self, node: Any) -> Object:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: Object = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                why = "map merge requires map or sequence of maps as the value"
                raise BodyError(f"yaml: {why}")
            merged = {**self.value(source), **merged}
        return merged

    def _key(self, node: Any) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise BodyError("yaml: invalid map key")
        value = scalar(node.tag, node.value)
        if value is None:
            raise BodyError("unsupported map key of type: %!s(<nil>), key: <nil>")
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)


def _go_words(error: yaml.YAMLError, text: str) -> str:
    """What go-yaml says of the same mistake, with the line as it counts them."""
    if isinstance(error, yaml.reader.ReaderError):
        return "control characters are not allowed"
    problem = getattr(error, "problem", None) or str(error)
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    if isinstance(error, yaml.composer.ComposerError) and mark is not None:
        alias = _ALIAS.match(text, mark.index)
        if alias is not None:
            return f"unknown anchor '{alias[1]}' referenced"
    line = 0
    if mark is not None and mark.line:
        line = mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif context is not None:
        line = context.line
    return f"line {line}: {problem}" if line else problem
