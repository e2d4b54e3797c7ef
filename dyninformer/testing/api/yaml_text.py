"""YAML answers, in the dialect of Kubernetes."""

from __future__ import annotations

import re
from typing import Any

import yaml

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_BOOLEANS = re.compile(
    r"(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$"
)


class _KubernetesDumper(_Dumper):  # type: ignore[misc]
    """Strings that would be read as something else, booleans of YAML 1.1 too, are quoted."""


def _string(dumper: Any, text: str) -> Any:
    """Double quotes for what a reader would take for another type, blocks for several lines."""
    tag = "tag:yaml.org,2002:str"
    if "\n" in text:
        return dumper.represent_scalar(tag, text, style="|")
    plain = dumper.resolve(yaml.ScalarNode, text, (True, False)) == tag
    return dumper.represent_scalar(tag, text, style=None if plain else '"')


# Copied list by list: PyYAML would add to the lists that all loaders and dumpers share.
_KubernetesDumper.yaml_implicit_resolvers = {
    first: list(found) for first, found in _Dumper.yaml_implicit_resolvers.items()
}
_KubernetesDumper.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOLEANS, list("yYnNtTfFoO"))
_KubernetesDumper.add_representer(str, _string)


def write_yaml(value: Any) -> bytes:
    """``value`` as the server writes it: keys sorted, block style, long lines folded."""
    text: str = yaml.dump(value, Dumper=_KubernetesDumper, allow_unicode=True, sort_keys=True)
    return text.encode()
