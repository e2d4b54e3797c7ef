"""YAML bodies in, YAML answers out, in the dialect of Kubernetes."""

from __future__ import annotations

import re
from typing import Any

import yaml

from dyninformer.testing.api.json_text import JsonTextError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_BOOLEANS = re.compile(
    r"(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$"
)
_TRUE = frozenset(("y", "yes", "true", "on"))


class _KubernetesLoader(_Loader):  # type: ignore[misc]
    """YAML 1.1, but dates are strings and ``y`` and ``n`` are booleans, as in sigs.k8s.io/yaml."""


class _KubernetesDumper(_Dumper):  # type: ignore[misc]
    """Strings that would be read as something else, booleans of YAML 1.1 too, are quoted."""


def _boolean(loader: Any, node: Any) -> bool:
    return str(loader.construct_scalar(node)).lower() in _TRUE


def _string(dumper: Any, text: str) -> Any:
    """Double quotes for what a reader would take for another type, blocks for several lines."""
    tag = "tag:yaml.org,2002:str"
    if "\n" in text:
        return dumper.represent_scalar(tag, text, style="|")
    plain = dumper.resolve(yaml.ScalarNode, text, (True, False)) == tag
    return dumper.represent_scalar(tag, text, style=None if plain else '"')


_KubernetesLoader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith((":timestamp", ":bool"))]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}
_KubernetesLoader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOLEANS, list("yYnNtTfFoO"))
_KubernetesLoader.add_constructor("tag:yaml.org,2002:bool", _boolean)
_KubernetesDumper.yaml_implicit_resolvers = dict(_Dumper.yaml_implicit_resolvers)
_KubernetesDumper.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOLEANS, list("yYnNtTfFoO"))
_KubernetesDumper.add_representer(str, _string)


def read_yaml(body: bytes) -> Any:
    """The first document; JsonTextError with the words of Go's YAML reader."""
    try:
        return _json_like(yaml.load(body, _KubernetesLoader))  # noqa: S506  it extends the safe loader
    except yaml.MarkedYAMLError as error:
        raise JsonTextError(f"yaml: {_where(error)}{error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise JsonTextError(f"yaml: {error}") from error


def write_yaml(value: Any) -> bytes:
    """``value`` as the server writes it: keys sorted, block style, long lines folded."""
    text: str = yaml.dump(value, Dumper=_KubernetesDumper, allow_unicode=True, sort_keys=True)
    return text.encode()


def _where(error: yaml.MarkedYAMLError) -> str:
    """The line, counted as Go's reader does: from 1 while scanning, from 0 while parsing."""
    if error.problem_mark and error.problem_mark.line:
        scanning = isinstance(error, yaml.scanner.ScannerError)
        return f"line {error.problem_mark.line + scanning}: "
    if error.context_mark and error.context_mark.line:
        return f"line {error.context_mark.line}: "
    return ""


def _json_like(value: Any) -> Any:
    """The value that the same document has as JSON: keys are strings."""
    if isinstance(value, dict):
        return {_key(key): _json_like(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_json_like(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)
