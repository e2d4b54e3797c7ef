"""What a resource is called, and where it lives, told from its objects alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from dyninformer.cli.manifests import Manifest
from dyninformer.cli.recording import Resource

Manifests: TypeAlias = Sequence[Manifest]
Resources: TypeAlias = list[Resource]

_CLUSTER_FOLDER: Final = "cluster-scoped-resources"  # of a must-gather
_VOWELS: Final = "aeiou"


def plural(kind: str) -> str:
    """The plural in lower case, nearly as kubectl guesses it, and as English has it.

    >>> [plural(kind) for kind in ("Certificate", "IngressClass", "NetworkPolicy", "Gateway")]
    ['certificates', 'ingressclasses', 'networkpolicies', 'gateways']
    """
    word = kind.lower()
    if word == "endpoints":
        return word
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        return f"{word[:-1]}ies"
    return f"{word}s"


def guessed(found: Manifests) -> Resources:
    """The resource that objects of one kind seem to be of, in each of their versions."""
    kind = found[0].object["kind"]
    namespaced = _is_namespaced(kind, found)
    versions = dict.fromkeys(each.object["apiVersion"] for each in found)
    names = (f"{each}/{plural(kind)}" for each in versions)
    # A group or kind that no API could have is a ValueError when it is served.
    return [Resource(name, kind, namespaced) for name in names]


def group_of(api_version: str) -> str:
    """The group of an apiVersion; the core group is ""."""
    return api_version.rpartition("/")[0]


def _is_namespaced(kind: str, found: Iterable[Manifest]) -> bool:
    """An object of a cluster says its namespace; one that was never there need not."""
    lives = False
    for each in found:
        metadata = each.object["metadata"]
        if metadata.get("namespace"):
            return True
        lives = lives or "uid" in metadata or _CLUSTER_FOLDER in each.path.parts
    return not lives and not kind.startswith("Cluster")
