"""YAML as the server reads it: into what JSON can hold, bounded in depth and in size."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

import yaml

from dyninformer.testing.cluster.json_bodies import (
    INT64,
    MAX_DEPTH,
    BodyError,
    decode_json,
)

MAX_NODES: Final = 1_000_000
"""How many values a YAML body may come to, aliases written out."""


def decode_yaml(raw: bytes) -> tuple[Any, tuple[str, ...]]:
    """The value as JSON has it, and a complaint for each key that is there twice."""
    if raw.lstrip()[:1] == b"{":
        try:
            return decode_json(raw)
        except BodyError:
            pass  # flow style that is not JSON
    text = raw.decode("utf-8", errors="replace")
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise BodyError("yaml: exceeded max depth")
        loader = _Loader(text)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise BodyError(f"yaml: {_yaml_words(error)}") from None
    except (ValueError, RecursionError) as error:
        raise BodyError(f"yaml: {error}") from None
    return _Expansion().json(value), tuple(loader.repeated)


_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
    """YAML as the server reads it: dates stay strings, and repeated keys are told of."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, regexp) for tag, regexp in found if not tag.endswith(":timestamp")]
        for first, found in _SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.repeated: list[str] = []

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            if key.value.__hash__ is not None and (key.tag, key.value) in seen:
                line = key.start_mark.line + 1
                self.repeated.append(f'line {line}: key "{key.value}" already set in map')
            elif isinstance(key.value, str):
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


class _Expansion:
    """Writes aliases out, counting, so that a few lines cannot become gigabytes."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def json(self, value: Any, depth: int = 0) -> Any:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise BodyError("yaml: document contains excessive aliasing")
        if isinstance(value, dict):
            return {_key(key): self.json(below, depth + 1) for key, below in value.items()}
        if isinstance(value, (list, set, tuple)):
            return [self.json(below, depth + 1) for below in value]
        if isinstance(value, bytes):
            return value.decode("utf-8", errors="replace")
        if isinstance(value, float):
            if not math.isfinite(value):
                raise BodyError("json: unsupported value: " + str(value))
            return int(value) if value.is_integer() and abs(value) < 2**63 else value
        if isinstance(value, int) and not isinstance(value, bool) and value not in INT64:
            return float(value)
        return value


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        return "null"
    return str(key)


def _yaml_words(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}: {problem}" if mark is not None else problem
